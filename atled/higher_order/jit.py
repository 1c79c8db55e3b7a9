"""`jit`: a function recorded once for each signature, compiled, and launched with as little Python as possible.

A call goes one of three ways. *Launch*: generated code (`_Site`) takes the arguments apart, looks the executable up by
the placement of its leaves, runs it and builds the result. *Trace*: under another transformation, the program becomes a
`Call`, or is spliced in when `inline`. *Slow*: everything that is new, odd or wrong.

The library's own functions are `jit(inline=True)`: one launch when called on arrays, their equations when traced.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from atled.core import config, errors, tree
from atled.core.array import Array, describe, type_of
from atled.core.config import fast, settings
from atled.core.program import Program, Recorder, evaluate, inline, record
from atled.core.trace import Tracer, bind, state
from atled.core.tree_code import Code, builder, matcher
from atled.core.types import ArrayType, ShapeDtypeStruct
from atled.engine import client
from atled.engine.array import DeviceArray, as_array, device_put, failed, scalars
from atled.engine.eager import common_device
from atled.engine.execute import EngineError, Executable, executable
from atled.higher_order.call import Call
from atled.higher_order.keys import Heavy, Same, WeakIdentityDict, function_key

MISS = object()


class Mismatch(Exception):
    """The arguments are not of the kind that generated code was made for."""


class Compile(NamedTuple):
    """One compilation of a function: the types of its arguments, and what it cost."""

    types: tuple[ArrayType, ...]
    statics: tuple[Any, ...]
    milliseconds: float


class Traced:
    """A function recorded for one signature."""

    __slots__ = ("captured", "in_structure", "name", "notes", "out_structure", "program")

    def __init__(
        self, program: Program, captured: list[Any], in_structure: Any, out_structure: Any, name: str, notes: list[Any]
    ) -> None:
        self.program = program
        self.notes = notes  # what is said to each caller, such as warnings that name the line
        self.captured = captured
        self.in_structure = in_structure
        self.out_structure = out_structure
        self.name = name


class Options(NamedTuple):
    """The arguments of `jit` that matter for a call."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    is_inline: bool = False
    is_thin: bool = False  # when traced, just run the function: it is hardly more than one op
    device: Any = None


def _weak(f: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(f)
    except TypeError:
        return lambda: f


class _Shared:
    """What all jits of one function with the same options have in common: its traces, and its generated launch code.

    The functions that `jit` returns have `code` as their code and `namespace` as their globals; both change as calls of
    new shapes come in.
    """

    def __init__(self, f: Callable[..., Any], options: Options, is_anchored: bool = False) -> None:
        # a function in `_by_anchor` must not be kept alive by what is kept for it
        if not is_anchored:
            self._function: Callable[[], Any] = lambda: f
        else:
            self._function = weakref.WeakMethod(f) if isinstance(f, MethodType) else _weak(f)
        self.options = options
        self.name = getattr(f, "__name__", type(f).__name__)
        self.traces: dict[Any, Traced] = {}
        self.sites: dict[Any, _Site] = {}
        self.recent: dict[Any, list[_Site]] = {}  # by number of arguments and keywords
        self.compiles: list[Compile] = []
        self.code = _FIRST_CODE
        self.namespace: dict[str, Any] = {**_NAMESPACE, "miss": functools.partial(_missed, self)}
        self.wrappers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.misses = 0
        _all_shared.add(self)

    @property
    def f(self) -> Callable[..., Any]:
        """The function itself."""
        return self._function()

    def clear(self) -> None:
        self.traces.clear()
        self.forget_launches()
        self.compiles.clear()

    def forget_launches(self) -> None:
        self.sites.clear()
        self.recent.clear()
        self.install(_FIRST_CODE)

    def install(self, code: Any) -> None:
        """Make generated code the code of the jitted functions."""
        self.code = code
        for wrapper in self.wrappers:
            wrapper.__code__ = code

    @functools.cached_property
    def parameters(self) -> list[str]:
        """Names of the positional parameters, as far as they can be found out."""
        try:
            found = inspect.signature(self.f).parameters.values()
        except (TypeError, ValueError):
            return []
        return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    @functools.cached_property
    def static(self) -> tuple[set[int], set[str]]:
        """Positions and names of static arguments; each parameter is known by both."""
        return self._positions_and_names(self.options.static_argnums, self.options.static_argnames)

    @functools.cached_property
    def donated(self) -> tuple[set[int], set[str]]:
        """Positions and names of donated arguments."""
        return self._positions_and_names(self.options.donate_argnums, self.options.donate_argnames)

    def _positions_and_names(self, numbers: Sequence[int], names: Sequence[str]) -> tuple[set[int], set[str]]:
        count = len(self.parameters)
        positions = {n % count if n < 0 and count else n for n in numbers}
        both = set(names)
        for i, name in enumerate(self.parameters):
            if i in positions:
                both.add(name)
            if name in both:
                positions.add(i)
        return positions, both


_all_shared: weakref.WeakSet[_Shared] = weakref.WeakSet()  # for clearing
_by_function: dict[Any, _Shared] = {}  # functions that can be compared by value; the newest last
_by_anchor = WeakIdentityDict()  # others, by the function itself or the object of a bound method
_FUNCTIONS_LIMIT = 2048
_lock = threading.Lock()


def _shared_for(f: Callable[..., Any], options: Options) -> _Shared:
    """The state that this function shares with all functions that do the same."""
    anchor, inner = (f.__self__, f.__func__) if isinstance(f, MethodType) else (None, f)
    try:
        key: Any = function_key(inner)
    except Heavy:
        anchor, key = (f, None) if anchor is None else (anchor, Same(inner))
    key = (key, options._replace(device=Same(options.device)))
    with _lock:
        if anchor is None:
            table = _by_function
        else:
            table = _by_anchor.get(anchor)
            if table is None:
                table = {}
                _by_anchor.set(anchor, table)
        found = table.pop(key, None)
        if found is None:
            found = _Shared(f, options, anchor is not None)
            while len(table) >= _FUNCTIONS_LIMIT:
                table.pop(next(iter(table)))
        table[key] = found
    return found


def clear_caches() -> None:
    """Forget every trace and every compiled program in memory."""
    for shared in list(_all_shared):
        shared.clear()


def _forget_launches() -> None:
    for shared in list(_all_shared):
        shared.forget_launches()


config.on_global_change.append(_forget_launches)
client.on_fork.append(_forget_launches)


# -- the launch path -------------------------------------------------------------------------------------------------


class _Site:
    """Generated code for calls of one shape: so many arguments, these keywords, these trees, this kind of result."""

    def __init__(self, shared: _Shared, call: _Arguments, result: tree.Structure) -> None:
        self.entries: dict[Any, Any] = {}
        self.result = result
        code = Code(f"s{len(shared.sites)}_")
        entries = code.name(self.entries)
        positions, statics_by_name = shared.static if call.statics else ((), ())
        items = [*enumerate(call.args), *sorted(call.kwargs.items(), key=lambda item: item[0])]  # as trees do
        structures = {k: tree.structure(v) for k, v in items if k not in positions and k not in statics_by_name}
        names = [code.name() for _ in call.args]
        lines = code.lines
        lines.append(" if fast.off: return miss(args, kwargs)")
        lines.append(" try:")
        lines.append(f"  {'(' + ''.join(n + ', ' for n in names) + ')'} = args")
        if call.kwargs:
            lines.append(f"  if len(kwargs) != {len(call.kwargs)}: return miss(args, kwargs)")
        else:
            lines.append("  if kwargs: return miss(args, kwargs)")
        arrays, statics = [], []
        # a function of the library may get an array now and a number next; other functions have a site for each
        either = "{0} if type({0}) is A else leaf({0})"
        take = {True: either, False: either} if shared.options.is_inline else {True: "{0}", False: "leaf({0})"}
        leaves = iter(call.is_array)
        for key, _ in items:
            value = names[key] if isinstance(key, int) else f"kwargs[{key!r}]"
            if key not in structures:
                statics += [f"type({value})", value]
                continue
            for leaf in matcher(code, structures[key], value, "{}", "  "):
                arrays.append(code.name())
                lines.append(f"  {arrays[-1]} = {take[next(leaves)].format(leaf)}")
        key_text = "".join([f"{a}._placed, " for a in arrays] + [f"{s}, " for s in statics])
        lines.append(f"  execute, handlers, placed, captured, build = {entries}[({key_text})]")
        buffers = ", ".join([f"{a}._buffer" for a in arrays])
        lines.append(f"  buffers = [{buffers}]")
        lines.append(" except (AttributeError, KeyError, ValueError, TypeError, Mismatch): return miss(args, kwargs)")
        lines.append(" if captured: buffers = captured + buffers")
        lines.append(" try: out = execute(buffers).consume_with_handlers(handlers)")
        lines.append(" except EngineError as error: raise failure(buffers, error) from None")
        lines.append(" if build is not None: return build(out, placed)")
        _emit_result(code, result)
        shared.namespace.update(code.namespace)
        self.run = _function("def call(*args, **kwargs):", lines, {**shared.namespace, "miss": lambda *_: MISS})


def _function(header: str, lines: list[str], namespace: dict[str, Any]) -> Any:
    local: dict[str, Any] = {}
    exec(compile("\n".join([header, *lines]), "<atled>", "exec"), namespace, local)
    return next(iter(local.values()))


def _emit_result(code: Code, structure: tree.Structure) -> None:
    """Emit code that wraps the buffers in `out` and returns the result put together."""
    names = [(f"a{i}", f"o{i}", f"p{i}") for i in range(structure.num_leaves)]
    if names:
        code.lines.append(f" {', '.join(o for _, o, _ in names)}, = out")
        code.lines.append(f" {', '.join(p for _, _, p in names)}, = placed")
    code.lines.extend([f" {a} = new(A); {a}._buffer = {o}; {a}._placed = {p}" for a, o, p in names])
    code.lines.append(f" return {builder(code, structure, iter([a for a, _, _ in names]))}")


@functools.lru_cache(maxsize=1024)
def _result_builder(structure: tree.Structure) -> Callable[[list[Any], list[Any]], Any]:
    """A function that makes a result of buffers and their placements."""
    code = Code("r")
    _emit_result(code, structure)
    return _function("def build(out, placed):", code.lines, {**_NAMESPACE, **code.namespace})


def _leaf(x: Any) -> Any:
    """An argument that is not an array on a device yet, as one."""
    try:
        return scalars[x.__class__, x]
    except (KeyError, TypeError):
        if isinstance(x, Tracer):
            raise Mismatch from None
        return as_array(x)


def _failure(buffers: Sequence[Any], error: Exception) -> RuntimeError:
    for b in buffers:
        if b.is_deleted():
            return failed(b, RuntimeError("deleted"))
    return failed(buffers[0], error) if buffers else RuntimeError(str(error))


_NAMESPACE = {
    "fast": fast,
    "Mismatch": Mismatch,
    "EngineError": EngineError,
    "failure": _failure,
    "A": DeviceArray,
    "new": object.__new__,
    "leaf": _leaf,
}
_FIRST_CODE = _function("def call(*args, **kwargs):", [" return miss(args, kwargs)"], {}).__code__


# -- the slow path ---------------------------------------------------------------------------------------------------


def _missed(shared: _Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that the installed code was not made for."""
    if not fast.off:
        for site in shared.recent.get((len(args), *kwargs), ())[-8:]:
            if site.run.__code__ is not shared.code:
                out = site.run(*args, **kwargs)
                if out is not MISS:
                    shared.misses += 1
                    if shared.misses % 16 == 0:
                        shared.install(site.run.__code__)
                    return out
    try:
        return _slow(shared, args, kwargs)
    except Exception as error:
        raise errors.without_library_frames(error)  # noqa: B904


def _slow(shared: _Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = shared.options
    if not settings.jit and not options.is_inline:
        return shared.f(*args, **kwargs)
    is_recording = type(state.base) is Recorder
    if options.is_thin and (is_recording or any([isinstance(x, Tracer) for x in (*args, *kwargs.values())])):
        return shared.f(*args, **kwargs)
    call = _Arguments(shared, args, kwargs)
    if is_recording or any([isinstance(x, Tracer) for x in call.leaves]):
        if options.is_inline:
            return _splice(shared, call)
        traced = _trace(shared, call, [type_of(x) for x in call.leaves])
        operands = [*traced.captured, *call.leaves]
        if not settings.jit:
            out = evaluate(traced.program, operands)
        else:
            out = list(bind(Call(traced.program), *operands))
        return traced.out_structure.unflatten(out)
    return _launch(shared, call)


def _splice(shared: _Shared, call: _Arguments) -> Any:
    """The result of a library function under a trace: its recorded equations, with Python numbers written into them."""
    fixed = [(i, type(x), x) for i, x in enumerate(call.leaves) if type(x) in _NUMBERS]
    types = [None if type(x) in _NUMBERS else type_of(x) for x in call.leaves]
    traced = _trace(shared, call, types, tuple(fixed))
    if traced.notes:
        _say(traced.notes)
    operands = [*traced.captured, *[x for x, t in zip(call.leaves, types, strict=True) if t is not None]]
    if type(state.base) is Recorder or len(traced.program.equations) == 1:
        out = inline(traced.program, operands)
    else:  # differentiated or batched without jit: still one launch
        out = bind(Call(traced.program), *operands)
    return traced.out_structure.unflatten(list(out))


_NUMBERS = (int, float, complex, bool)


class _Arguments:
    """A call's arguments, sorted into static values and dynamic leaves."""

    __slots__ = ("args", "dynamic", "kwargs", "leaves", "statics", "structure")

    @property
    def is_array(self) -> tuple[bool, ...]:
        """Which leaves are arrays on a device already."""
        return tuple([type(x) is DeviceArray for x in self.leaves])

    def __init__(self, shared: _Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        positions, names = (
            shared.static if shared.options.static_argnums or shared.options.static_argnames else ((), ())
        )
        statics: list[Any] = []
        if positions or names:
            dynamic: list[Any] = []
            for i, x in enumerate(args):
                if i in positions:
                    statics.append((i, type(x), x))
                else:
                    dynamic.append(x)
            rest = {}
            for k, x in sorted(kwargs.items(), key=lambda item: item[0]):
                if k in names:
                    statics.append((k, type(x), x))
                else:
                    rest[k] = x
            self.dynamic: Any = (tuple(dynamic), rest)
        else:
            self.dynamic = (args, kwargs)
        self.statics = tuple(statics)
        self.leaves, self.structure = tree.flatten(self.dynamic)
        try:
            hash(self.statics)
        except TypeError:
            bad = next(s for s in statics if not _is_hashable(s[2]))
            raise ValueError(
                f"jit: static arguments must be hashable; argument {_label(shared, bad[0])} of {shared.name} "
                f"is {describe(bad[2])}.\n  try: a tuple instead of a list, or leave the argument dynamic."
            ) from None
        for x in self.leaves:
            if not isinstance(x, Array):
                _check_leaf(shared, self, x)

    def rebuild(self, leaves: Iterable[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments again, with other leaves."""
        dynamic, rest = self.structure.unflatten(list(leaves))
        if not self.statics:
            return dynamic, rest
        found = iter(dynamic)
        fixed = {k: v for k, _, v in self.statics}
        args = [fixed[i] if i in fixed else next(found) for i in range(len(self.args))]
        return args, {**rest, **{k: v for k, v in fixed.items() if isinstance(k, str)}}


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _label(shared: _Shared, key: Any) -> str:
    if isinstance(key, int):
        return shared.parameters[key] if key < len(shared.parameters) else str(key)
    return str(key)


def _check_leaf(shared: _Shared, call: _Arguments, x: Any) -> None:
    try:
        type_of(x)
    except TypeError:
        names = [n for n, leaf in zip(_leaf_names(shared, call), call.leaves, strict=False) if leaf is x]
        which = f"argument {names[0]} of {shared.name}" if names else "an argument"
        raise TypeError(
            f"{shared.name}: {which} must be an array or a number, or trees of those; got {describe(x)}."
            + (
                ""
                if shared.options.is_inline
                else f"\n  try: jit(f, static_argnames={names[0].split('[')[0]!r}) if it is a setting."
            )
        ) from None


def _leaf_names(shared: _Shared, call: _Arguments) -> list[str]:
    """The name of the argument that each leaf belongs to, with its path."""
    positions = shared.static[0] if call.statics else set()
    order = [i for i in range(len(call.args)) if i not in positions]
    names = []
    for path, _ in tree.leaves_with_path(call.dynamic):
        top, second, *rest = path
        label = _label(shared, order[second[0]]) if top[0] == 0 else str(second[0])
        names.append(label + tree.keystr(rest))
    return names


def _trace(shared: _Shared, call: _Arguments, types: Sequence[ArrayType | None], fixed: tuple[Any, ...] = ()) -> Traced:
    """The program of a call, recorded if it is new. Leaves without a type are `fixed`: (position, class, number)."""
    axes = tuple([(a.name, a.size) for a in state.axes.values()]) if state.axes else ()
    key = (call.structure, call.statics, tuple(types), fixed, config.trace_key(), axes)
    traced = shared.traces.get(key)
    if traced is None:
        traced = _record(shared, call, types)
        if len(shared.traces) >= 4096:
            shared.traces.clear()
        if not any([isinstance(x, Tracer) for x in traced.captured]):
            shared.traces[key] = traced
    return traced


def _record(shared: _Shared, call: _Arguments, types: Sequence[ArrayType | None]) -> Traced:
    out_structure: list[Any] = []

    def flat(*operands: Any) -> list[Any]:
        given = iter(operands)
        leaves = [x if t is None else next(given) for x, t in zip(call.leaves, types, strict=True)]
        args, kwargs = call.rebuild(leaves)
        found, structure = tree.flatten(shared.f(*args, **kwargs))
        out_structure.append(structure)
        for x in found:
            if not isinstance(x, Array):
                _check_result(shared, x)
        return found

    is_inline = shared.options.is_inline
    names = () if is_inline else _leaf_names(shared, call)
    dynamic = [t for t in types if t is not None]
    before, notes = state.notes, []
    state.notes = notes if is_inline else None
    try:
        program, captured = record(flat, dynamic, shared.name, names, with_sources=not is_inline)
    finally:
        state.notes = before
    return Traced(program, captured, call.structure, out_structure[0], shared.name, notes)


def _say(notes: list[Any]) -> None:
    """Pass on what a recorded library function has to say, to its caller's line."""
    if state.notes is not None:
        state.notes.extend(notes)
    else:
        for note in notes:
            note()


def _check_result(shared: _Shared, x: Any) -> None:
    try:
        type_of(x)
    except TypeError:
        raise TypeError(f"{shared.name}: the results must be arrays or numbers; got {describe(x)}.") from None


def _launch(shared: _Shared, call: _Arguments) -> Any:
    arrays = [x if type(x) is DeviceArray else as_array(x) for x in call.leaves]
    start = time.perf_counter()
    traced = _trace(shared, call, [a.type for a in arrays])
    if traced.notes:
        _say(traced.notes)
    captured = [as_array(x) for x in traced.captured]
    if shared.options.device is not None:
        device, committed = shared.options.device, True
    else:
        device, committed = common_device([*captured, *arrays])
    moved = [a if a.device == device else device_put(a, device, False) for a in arrays]
    captured = [a if a.device == device else device_put(a, device, False) for a in captured]
    donated = _donations(shared, call, traced, len(captured))
    is_new = ("executable", device, committed, donated) not in traced.program.derived
    ready = executable(traced.program, device, committed, donated)
    if is_new:
        spent = (time.perf_counter() - start) * 1e3
        shared.compiles.append(Compile(tuple([a.type for a in arrays]), call.statics, spent))
    buffers = [a._buffer for a in moved]
    held = [a._buffer for a in captured]
    if fast.off == 0 and not traced.notes and all([a is m for a, m in zip(arrays, moved, strict=True)]):
        _remember(shared, call, traced, arrays, (ready.execute, ready.handlers, ready.placed, held))
    try:
        out = ready(held + buffers)
    except EngineError as error:
        raise _failure(buffers, error) from None
    return _result_builder(traced.out_structure)(out, ready.placed)


def _remember(shared: _Shared, call: _Arguments, traced: Traced, arrays: list[DeviceArray], entry: Any) -> None:
    """Let the next call like this one take the launch path."""
    shape = (len(call.args), *call.kwargs)
    site_key = (shape, call.structure, None if shared.options.is_inline else call.is_array)
    site = shared.sites.get(site_key)
    if site is None:
        site = shared.sites[site_key] = _Site(shared, call, traced.out_structure)
        shared.recent.setdefault(shape, []).append(site)
    if len(site.entries) >= 4096:
        site.entries.clear()
    statics = [v for _, t, x in call.statics for v in (t, x)]
    build = None if traced.out_structure == site.result else _result_builder(traced.out_structure)
    site.entries[(*[a._placed for a in arrays], *statics)] = (*entry, build)
    if shared.code is _FIRST_CODE:
        shared.install(site.run.__code__)


def _donations(shared: _Shared, call: _Arguments, traced: Traced, captured: int) -> tuple[int | None, ...]:
    """For each input of the program, the output that may take its memory."""
    if not shared.options.donate_argnums and not shared.options.donate_argnames:
        return ()
    positions, names = shared.donated
    static_positions = shared.static[0] if call.statics else set()
    order = [i for i in range(len(call.args)) if i not in static_positions]
    out_types = traced.program.output_types
    free = list(range(len(out_types)))
    chosen: list[int | None] = [None] * captured
    unused = []
    dynamic, rest = call.dynamic
    flags = [(order[i] in positions, x) for i, x in enumerate(dynamic)]
    flags += [(k in names, rest[k]) for k in sorted(rest)]
    for is_donated, subtree in flags:
        for leaf in tree.leaves(subtree):
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
            f"jit: donated arguments of {shared.name} fit no output, so their memory is not reused: "
            + ", ".join(map(str, unused)) + ".",
            stacklevel=6,
        )  # fmt: skip
    return tuple(chosen)


# -- the public function ---------------------------------------------------------------------------------------------


def _tuple(x: Any, kind: type) -> tuple[Any, ...]:
    return () if x is None else (x,) if isinstance(x, kind) else tuple(x)


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    inline: bool = False,
    device: Any = None,
    keep_unused: bool = False,
) -> Any:
    """Compile a function with XLA, for each combination of argument types that it is called with.

    The function is run once with tracers to record what it does; later calls run the compiled program. Python side
    effects happen only while recording. Arrays that the function closes over become inputs of the program.

    Args:
        static_argnums, static_argnames: arguments that are Python values: the function is compiled for each value.
        donate_argnums, donate_argnames: arguments whose memory the results may take over; they must not be used again.
        inline: when traced, put the equations into the surrounding program instead of a call.
        device: run there, instead of where the arguments are.

    The result is a function with `.lower(...)`, `.trace(...)`, `.eval_shape(...)`, `.compiles`, a list of the signatures
    it was compiled for, and `.clear_cache()`.

    >>> import atled.numpy as jnp
    >>> @jit
    ... def f(x):
    ...     return jnp.sin(x) ** 2 + jnp.cos(x) ** 2
    >>> float(f(0.3)), len(f.compiles)
    (1.0, 1)
    """
    options = Options(
        _tuple(static_argnums, int),
        _tuple(static_argnames, str),
        _tuple(donate_argnums, int),
        _tuple(donate_argnames, str),
        is_inline=inline,
        device=device,
    )
    if f is None:
        return lambda g: _wrapped(g, _shared_for(g, options))
    if not callable(f):
        raise TypeError(f"jit: expected a function; got {describe(f)}.")
    return _wrapped(f, _shared_for(f, options))


def library_function(f: Callable[..., Any] | None = None, *, static: Sequence[str] = (), is_thin: bool = False) -> Any:
    """A function of the library: one launch on arrays, its equations under a trace.

    Composite functions are recorded once and spliced in; functions that are hardly more than one op (`is_thin`) just run.
    """
    if f is None:
        return lambda g: library_function(g, static=static, is_thin=is_thin)
    return _wrapped(f, _Shared(f, Options(static_argnames=tuple(static), is_inline=True, is_thin=is_thin)))


def _wrapped(f: Callable[..., Any], shared: _Shared) -> Any:
    call: Any = FunctionType(shared.code, shared.namespace, getattr(f, "__name__", "f"))
    shared.wrappers.add(call)
    call.__qualname__ = getattr(f, "__qualname__", call.__name__)
    call.__doc__ = getattr(f, "__doc__", None)
    call.__module__ = getattr(f, "__module__", __name__)
    call.__wrapped__ = f
    if not shared.options.is_inline:
        call.trace = lambda *args, **kwargs: trace(f, shared, args, kwargs)  # holds f, which `shared` may not
        call.lower = lambda *args, **kwargs: trace(f, shared, args, kwargs).lower()
        call.eval_shape = lambda *args, **kwargs: trace(f, shared, args, kwargs).out_info
        call.compiles = shared.compiles
        call.clear_cache = shared.clear
    return call


# -- ahead of time ---------------------------------------------------------------------------------------------------


def trace(f: Callable[..., Any], shared: _Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedFunction:
    """Record a function for arguments, which may be `ShapeDtypeStruct`s, without compiling it."""
    try:
        call = _Arguments(shared, args, kwargs)
        types = [type_of(x) for x in call.leaves]
        return TracedFunction(_trace(shared, call, types), call, shared)
    except Exception as error:
        raise errors.without_library_frames(error)  # noqa: B904


class TracedFunction:
    """A function recorded for one signature: look at `.program`, or go on to `.lower()`."""

    def __init__(self, traced: Traced, call: _Arguments, shared: _Shared) -> None:
        self._traced, self._call, self._shared = traced, call, shared

    @property
    def program(self) -> Program:
        return self._traced.program

    jaxpr = program

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their tree."""
        types = self._traced.program.output_types
        return self._traced.out_structure.unflatten(
            [ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak) for t in types]
        )

    def lower(self) -> Lowered:
        """Translate to StableHLO."""
        return Lowered(self)


class Lowered:
    """A function translated to StableHLO: look at `.as_text()`, or go on to `.compile()`."""

    def __init__(self, traced: TracedFunction) -> None:
        from atled.engine import stablehlo

        self._traced = traced
        self.device = traced._shared.options.device or client.default_device()
        t = traced._traced
        self._donated = _donations(traced._shared, traced._call, t, len(t.captured))
        self._module = stablehlo.build(t.program, self.device.platform, self._donated)

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    def as_text(self, debug_info: bool = False) -> str:
        """The StableHLO module as text; with `debug_info`, with the user's source lines."""
        from atled.engine import stablehlo

        return stablehlo.module_text(self._module, debug_info)

    def compile(self) -> Compiled:
        """Compile for the device."""
        traced = self._traced._traced
        ready = executable(traced.program, self.device, False, self._donated, self._module)
        return Compiled(ready, self._traced)


class Compiled:
    """A compiled function for one signature. Call it, or ask what it costs."""

    def __init__(self, ready: Executable, traced: TracedFunction) -> None:
        self._executable, self._traced = ready, traced

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        shared, traced = self._traced._shared, self._traced._traced
        call = _Arguments(shared, args, kwargs)
        want = traced.program.input_types[len(traced.captured) :]
        got = [type_of(x) for x in call.leaves]
        if call.structure != traced.in_structure:
            raise TypeError(f"{traced.name}: compiled for arguments {traced.in_structure}; got {call.structure}.")
        for name, w, g in zip(_leaf_names(shared, call), want, got, strict=True):
            if (w.shape, w.dtype) != (g.shape, g.dtype):
                raise TypeError(f"{traced.name}: argument {name} was compiled for {w}; got {g}.")
        if any(isinstance(x, Tracer) for x in call.leaves) or type(state.base) is Recorder:
            raise TypeError(f"{traced.name}: a compiled function cannot be transformed; use the jitted function.")
        arrays = [as_array(x) for x in [*traced.captured, *call.leaves]]
        out = self._executable([a._buffer for a in arrays])
        return _result_builder(traced.out_structure)(out, self._executable.placed)

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    def as_text(self) -> str:
        """The optimized HLO of the compiled program."""
        return self._executable.raw.get_hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's own estimate: flops, bytes accessed, and more."""
        return self._executable.raw.cost_analysis()

    def memory_analysis(self) -> Any:
        """Sizes of arguments, results and temporary memory."""
        return self._executable.raw.get_compiled_memory_stats()


def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of what a function would return, without computing anything.

    >>> from atled import ShapeDtypeStruct
    >>> eval_shape(lambda x: x @ x, ShapeDtypeStruct((10**6, 10**6), "float32"))
    ShapeDtypeStruct(shape=(1000000, 1000000), dtype=float32)
    """
    return trace(f, _Shared(f, Options()), args, kwargs).out_info


def make_program(f: Callable[..., Any], static_argnums: int | Sequence[int] | None = None) -> Callable[..., Program]:
    """A function that returns the program of `f` for its arguments, to look at.

    >>> import atled.numpy as jnp
    >>> print(make_program(lambda x: jnp.sin(x) * 2.0)(jnp.ones(3)))  # doctest: +ELLIPSIS
    program <lambda>(a: f32[3]) {
      b: f32[3] = sin a...
      c: f32[3] = mul b 2.0:f32[]...
      return c
    }
    """

    def make(*args: Any, **kwargs: Any) -> Program:
        shared = _Shared(f, Options(static_argnums=_tuple(static_argnums, int)))
        return trace(f, shared, args, kwargs).program

    return make
