"""The arguments of a jitted function: static ones, donated ones, and the leaves of the others."""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes, errors, tree, tree_registry
from atled.core.array import Array, describe, type_of, types_of
from atled.core.cache_keys import exact
from atled.core.dtypes import bits
from atled.core.program import Program
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding, mesh_or_current
from atled.core.types import ArrayType
from atled.engine.array import DeviceArray
from atled.engine.compile_options import CompilerOptions

_KIND = inspect.Parameter


class Options(NamedTuple):
    """The arguments of `jit` in hashable form, and flags of library functions."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    is_inline: bool = False  # under a trace, inline the equations
    is_library: bool = False  # a library function: static arguments are normalized, numbers become literals
    is_thin: bool = False  # hardly more than one op: under a trace, run the Python function
    device: Any = None
    keeps_unused: bool = False  # pass unused arguments to the program, too
    max_compiles: int | None = None  # raise after this many compilations
    in_shardings: Any = None  # a `ShardingTree`
    out_shardings: Any = None
    out_at: int | None = None  # position of NumPy's `out` in a library function
    is_shown: bool = False  # for make_program: keep dead code
    compiler_options: CompilerOptions = ()


class Signature:
    """The parameters of a function, and which of them are static or donated."""

    def __init__(self, function: Callable[[], Callable[..., Any]], name: str, options: Options) -> None:
        self._function = function
        self.name = name
        self.options = options

    @functools.cached_property
    def _declared(self) -> list[tuple[str, Any]] | None:
        """Names and kinds of all parameters, without defaults, which may be large, or None if there is no signature."""
        try:
            parameters = inspect.signature(self._function()).parameters.values()
        except (TypeError, ValueError):
            return None
        return [(p.name, p.kind) for p in parameters]

    @functools.cached_property
    def parameters(self) -> list[str]:
        """The names of the positional parameters; empty if there is no signature."""
        return [
            name for name, kind in self._declared or () if kind in (_KIND.POSITIONAL_ONLY, _KIND.POSITIONAL_OR_KEYWORD)
        ]

    @functools.cached_property
    def static(self) -> tuple[set[int], set[str]]:
        """Positions and names of static arguments; a positional parameter is in both sets."""
        return self._positions_and_names(self.options.static_argnums, self.options.static_argnames)

    @functools.cached_property
    def donated(self) -> tuple[set[int], set[str]]:
        """Positions and names of donated arguments."""
        return self._positions_and_names(self.options.donate_argnums, self.options.donate_argnames)

    def _positions_and_names(self, numbers: Sequence[int], names: Sequence[str]) -> tuple[set[int], set[str]]:
        self._check(numbers, names)
        count = len(self.parameters)
        positions = {n % count if n < 0 and count else n for n in numbers}
        both = set(names)
        for i, name in enumerate(self.parameters):
            if i in positions:
                both.add(name)
            if name in both:
                positions.add(i)
        return positions, both

    def _check(self, numbers: Sequence[int], names: Sequence[str]) -> None:
        """Raise an error for names and positions that no parameter has."""
        if self._declared is None:
            return
        kinds = {kind for _, kind in self._declared}
        known = [name for name, kind in self._declared if kind is not _KIND.VAR_POSITIONAL]
        for name in names:
            if name not in known and _KIND.VAR_KEYWORD not in kinds:
                close = [k for k in known if k.startswith(name) or name.startswith(k)]
                raise ValueError(
                    f"jit: static and donated names must be parameters; {self.name} has {', '.join(known) or 'none'}; "
                    f"got {name!r}.\n  try: {f'the name {close[0]!r}' if close else 'one of its parameters'}."
                )
        count = len(self.parameters)
        for n in numbers:
            if not -count <= n < count and _KIND.VAR_POSITIONAL not in kinds:
                raise ValueError(
                    f"jit: static and donated positions must be positions of parameters; {self.name} has {count} "
                    f"parameters; got {n}.\n  try: a position from 0 to {count - 1}."
                )

    def frozen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a library function, static ones normalized."""
        positions, names = self.static
        frozen_args = tuple([_frozen(x) if i in positions else x for i, x in enumerate(args)])
        return frozen_args, {k: _frozen(x) if k in names else x for k, x in kwargs.items()} if kwargs else kwargs

    def label(self, key: Any) -> str:
        """The name of an argument for messages, given its position or keyword."""
        if isinstance(key, int):
            return self.parameters[key] if key < len(self.parameters) else str(key)
        return str(key)


_PLAIN = {int, str, bool, float, type(None)}


def _frozen(x: Any) -> Any:
    """A normalized static argument of a library function: sequences become tuples, NumPy scalars Python numbers."""
    kind = type(x)
    if kind in _PLAIN:
        return x
    if kind is tuple:
        return x if all([type(v) in _PLAIN for v in x]) else tuple([_frozen(v) for v in x])
    if kind is list:
        return tuple([_frozen(v) for v in x])
    return _frozen(x.tolist()) if isinstance(x, (np.ndarray, np.generic, DeviceArray)) else x


class Arguments:
    """A call's arguments, separated into static values and the leaves of dynamic arguments."""

    __slots__ = ("args", "dynamic", "is_library", "kwargs", "leaves", "static_key", "statics", "structure")

    def __init__(self, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        positions, names = (
            signature.static if signature.options.static_argnums or signature.options.static_argnames else ((), ())
        )
        statics: list[Any] = []
        self.is_library = is_library = signature.options.is_library
        if positions or names:
            dynamic: list[Any] = []
            for i, x in enumerate(args):
                if i in positions:
                    x = _frozen(x) if is_library else _checked_static(signature, i, x)
                    statics.append((i, type(x), x))
                else:
                    dynamic.append(x)
            rest = {}
            for k, x in sorted(kwargs.items(), key=lambda item: item[0]):
                if k in names:
                    x = _frozen(x) if is_library else _checked_static(signature, k, x)
                    statics.append((k, type(x), x))
                else:
                    rest[k] = x
            self.dynamic: Any = (tuple(dynamic), rest)
        else:
            self.dynamic = (args, kwargs)
        self.statics = tuple(statics)
        self.static_key = tuple([(key, exact(x)) for key, _, x in statics])
        self.leaves, self.structure = tree.flatten(self.dynamic)
        try:
            hash(self.statics)
        except TypeError:
            bad = next(s for s in statics if not _is_hashable(s[2]))
            raise ValueError(
                f"jit: static arguments must be hashable; argument {signature.label(bad[0])} of {signature.name} "
                f"is {describe(bad[2])}."
                f"\n  try: {_HASHABLE.get(type(bad[2]), 'x.item(), a Python number')}, or leave the argument dynamic."
            ) from None
        try:
            hash(self.structure)
        except TypeError as error:
            raise TypeError(
                f"{signature.name}: the static data of pytree nodes must be hashable, or dicts, "
                f"lists, sets, arrays and dataclasses of hashable values; got {error}."
                "\n  try: a frozen dataclass, a tuple, or a class with __eq__ and __hash__."
            ) from None
        for x in self.leaves:
            if not isinstance(x, Array):
                _check_leaf(signature, self, x)

    @property
    def given_statics(self) -> list[tuple[Any, type, Any]]:
        """Position or keyword, class and value of each static argument, before normalization."""
        given = [(k, self.args[k] if isinstance(k, int) else self.kwargs[k]) for k, _, _ in self.statics]
        return [(k, type(x), x) for k, x in given]

    @property
    def is_array(self) -> tuple[bool, ...]:
        """For each leaf, whether it is a device array."""
        return tuple([type(x) is DeviceArray for x in self.leaves])

    def types(self) -> list[ArrayType]:
        """The types of the leaves. If a library function gets a 64-bit dtype, its Python numbers are 64 bits wide."""
        is_wide = self.is_library and any([x is dtypes.float64 or x is dtypes.complex128 for _, _, x in self.statics])
        return types_of(self.leaves, is_wide)

    def rebuild(self, leaves: Iterable[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, rebuilt with other leaves."""
        dynamic, rest = self.structure.unflatten(list(leaves))
        if not self.statics:
            return dynamic, rest
        positional = iter(dynamic)
        fixed = {k: v for k, _, v in self.statics}
        args = [fixed[i] if i in fixed else next(positional) for i in range(len(self.args))]
        return args, {**rest, **{k: v for k, v in fixed.items() if isinstance(k, str)}}


def _checked_static(signature: Signature, key: Any, x: Any) -> Any:
    """The static argument itself; raises for a model or another tree that contains arrays."""
    if (
        type(x) in tree_registry.nodes
        and type(x) not in _BUILT_IN
        and any([isinstance(v, Array) for v in tree.leaves(x)])
    ):
        raise ValueError(
            f"jit: static arguments must be hashable, and may hold no arrays; argument {signature.label(key)} of "
            f"{signature.name} is {describe(x)}, which holds arrays.\n  try: leave it dynamic; models are pytrees."
        )
    return x


_BUILT_IN = {tuple, list, dict, type(None)}
_HASHABLE = {list: "a tuple instead of a list", dict: "tuple(x.items())", set: "frozenset(x)"}


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _check_leaf(signature: Signature, call: Arguments, x: Any) -> None:
    try:
        t = type_of(x)
        if isinstance(x, int) and t.kind == "i" and not -(2 ** (bits(t.dtype) - 1)) <= x < 2 ** (bits(t.dtype) - 1):
            raise OverflowError(
                f"{signature.name}: Python integers must fit into {t.dtype.name}; got {x}."
                "\n  try: numpy.asarray(n, 'int64') or another array with a wider dtype, or a float."
            )
    except TypeError:
        names = [n for n, leaf in zip(leaf_names(signature, call), call.leaves, strict=False) if leaf is x]
        which = f"argument {names[0]} of {signature.name}" if names else "an argument"
        hint = "" if signature.options.is_library or not names else _static_hint(names[0])
        own = getattr(type(x), "not_an_argument", None)  # a hint that its class defines
        raise TypeError(
            f"{signature.name}: {which} must be an array, a number, or a tree of these; got {describe(x)}."
            + (hint if own is None else f"\n  try: {own}")
        ) from None


def _static_hint(name: str) -> str:
    if name == "self":
        return "\n  try: tree.register_dataclass for its class, or static_argnames='self' if the object never changes."
    return f"\n  try: jit(f, static_argnames={name.split('[')[0].split('.')[0]!r}) if it is a setting."


def leaf_names(signature: Signature, call: Arguments) -> list[str]:
    """For each leaf, the name of its argument and the path in it, for messages."""
    positions = signature.static[0] if call.statics else set()
    order = [i for i in range(len(call.args)) if i not in positions]
    names = []
    for path, _ in tree.leaves_with_path(call.dynamic):
        top, second, *rest = path
        label = signature.label(order[second[0]]) if top[0] == 0 else str(second[0])
        names.append(label + tree.keystr(rest))
    return names


def donations(
    signature: Signature, call: Arguments, program: Program, captured: int, left: Sequence[int]
) -> tuple[int | None, ...]:
    """For each used input of the program, the position of the output that may reuse its donated buffer, or None."""
    if not signature.options.donate_argnums and not signature.options.donate_argnames:
        return ()
    positions, names = signature.donated
    static_positions = signature.static[0] if call.statics else set()
    order = [i for i in range(len(call.args)) if i not in static_positions]
    out_types = program.output_types
    free = list(range(len(out_types)))
    chosen: list[int | None] = [None] * captured
    unused = []
    dynamic, rest = call.dynamic
    flags = [(order[i] in positions, x) for i, x in enumerate(dynamic)]
    flags += [(k in names, rest[k]) for k in sorted(rest)]
    taken = set(left)
    places = itertools.count(captured)
    for is_donated, subtree in flags:
        for leaf in tree.leaves(subtree):
            if next(places) not in taken:
                continue
            t = type_of(leaf)
            match = next((j for j in free if (out_types[j].shape, out_types[j].dtype) == (t.shape, t.dtype)), None)
            if is_donated and match is not None:
                free.remove(match)
                chosen.append(match)
            else:
                chosen.append(None)
                if is_donated:
                    unused.append(t)
    if unused:
        warnings.warn(
            f"Some donated buffers were not usable, because no output of {signature.name} has their type: "
            + ", ".join(map(str, unused)) + ".",  # the first words are those of JAX's warning, which programs filter
            stacklevel=6,
        )  # fmt: skip
    return tuple(chosen)


class ShardingTree:
    """A tree of shardings in the options of `jit`, compared by leaves and structure."""

    __slots__ = ("_key", "tree")

    def __init__(self, made: Any) -> None:
        leaves, structure = tree.flatten(made, is_leaf=_is_sharding)
        self.tree = structure.unflatten(leaves)  # copies lists
        self._key = (tuple(leaves), structure)

    @property
    def leaves(self) -> tuple[Any, ...]:
        """The shardings, or None where no sharding is requested."""
        return self._key[0]

    def after(self, first: Any) -> ShardingTree:
        """These shardings, with `first` prepended."""
        if not isinstance(self.tree, (tuple, list)):
            raise TypeError(
                f"jit: in_shardings of a method must be a tuple, with one entry per argument; got {self.tree}."
            )
        return ShardingTree((first, *self.tree))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShardingTree) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _is_sharding(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, PartitionSpec))


def flat_shardings(boxed: ShardingTree | None, target: Any, name: str, what: str) -> list[Any]:
    """One sharding, or None, for each leaf of `target`, from a prefix tree of shardings."""
    if boxed is None:
        return [None] * len(tree.leaves(target))
    prefix = boxed.tree
    is_one = _is_sharding(prefix) or isinstance(prefix, (tuple, list))
    if what == "in_shardings" and isinstance(target, tuple) and len(target) == 1 and not is_one:
        prefix = (prefix,)
    way_out = "one sharding for a whole dict or list, or a tuple with a sharding or None for each argument."
    return [concrete(s, what) for s in tree.spread(prefix, target, _is_sharding, f"jit: {what} of {name}", way_out)]


def concrete(s: Any, what: str) -> Any:
    """The sharding or `Format` that `s` means: a `PartitionSpec` refers to the current mesh."""
    if not _is_sharding(s) and not hasattr(s, "sharding_for"):
        raise TypeError(f"jit: {what} must be a tree of shardings, PartitionSpecs and Formats; got {describe(s)}.")
    if isinstance(s, PartitionSpec):
        return NamedSharding(mesh_or_current(None, what), s)
    if isinstance(s, SingleDeviceSharding):
        return NamedSharding(Mesh([s.device], ("device",)), PartitionSpec())
    return s


def fitted(s: Any, shape: tuple[int, ...], what: str) -> Any:
    """The requested sharding, or that of a `Format`; raises if it cannot split an array of this shape."""
    if hasattr(s, "sharding_for"):
        s = concrete(s.sharding_for(shape, what), what)
    if s is not None:
        s.check(shape, what)
    return s


def refuse_out(name: str, out: Any) -> None:
    """Raise if the argument `out`, an array that NumPy writes into, is given."""
    if out is not None:
        raise NotImplementedError(
            errors.explained(
                f"{name}: arrays are immutable, so `out` must be None; got {describe(out)}.",
                "use the result of the call, or x.at[...].set(result) to write it into a part of x.",
            )
        )
