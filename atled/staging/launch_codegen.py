"""The launch path: Python code generated for cached calls of a jitted function.

A `Site` has the code for calls with one structure of arguments. The code flattens the arguments, looks up the
executable by the placements of their leaves and the values of static arguments, runs it, wraps the buffers and
rebuilds the result. All other calls go to `miss`. The code becomes that of the jitted function itself, so a call costs
one Python frame.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import errors, source, tree
from atled.core.array import type_of, wide
from atled.core.cache_keys import Plain, exact
from atled.core.settings import scope
from atled.core.trace import Tracer
from atled.core.tree_codegen import Code, Mismatch, builder, matcher
from atled.engine.array import DeviceArray, as_array
from atled.engine.execution_errors import failed
from atled.engine.jaxlib_versions import EngineError
from atled.staging.jit_signature import Arguments

MISS = object()
_DTYPES = [type(np.dtype(c)) for c in "?bhilqBHILQefdFD"]
CLEAN = {int, str, bool, type(None), Plain, *_DTYPES}  # classes whose equal values are interchangeable


class _Unset:
    """The default value of every optional parameter in generated code; it means that the argument was not given."""

    def __repr__(self) -> str:
        return "unset"


UNSET: Any = _Unset()


class LaunchParameters:
    """The parameters of generated code: those of the function itself, or `*args, **kwargs`.

    With named parameters, a call builds no tuple and no dict, and `f(x, y)` and `f(x, y=y)` use the same code.
    """

    def __init__(self, f: Callable[..., Any] | None) -> None:
        try:
            parameters = list(inspect.signature(f, follow_wrapped=False).parameters.values()) if f else []
        except (TypeError, ValueError):
            parameters = []
        odd = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        is_named = parameters and not any([p.kind in odd or _OWN_NAME.fullmatch(p.name) for p in parameters])
        is_named = is_named and not hasattr(f, "__signature__")  # an overridden signature may be wrong
        parameters = parameters if is_named else []
        keyword_only = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
        self.positional = [p.name for p in positional]
        self.keyword_only = [p.name for p in keyword_only]
        self.defaults = (UNSET,) * len([p for p in positional if p.default is not p.empty])
        self.keyword_defaults = {p.name: UNSET for p in keyword_only if p.default is not p.empty}
        if not is_named:
            self.header, self.given = "*args, **kwargs", "args, kwargs"
            return
        texts = [p.name if p.default is p.empty else f"{p.name}=UNSET" for p in parameters]
        only = len([p for p in positional if p.kind is p.POSITIONAL_ONLY])
        marks = [*texts[:only], *(["/"] if only else []), *texts[only : len(positional)]]
        self.header = ", ".join([*marks, *(["*"] if keyword_only else []), *texts[len(positional) :]])
        names = "".join([f"{n}, " for n in self.positional])
        self.given = f"({names}), {{{', '.join([f'{n!r}: {n}' for n in self.keyword_only])}}}"

    def sorted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that generated code received, without those that were not given."""
        if self.keyword_only:
            kwargs = {k: v for k, v in kwargs.items() if v is not UNSET}
        for i, x in enumerate(args):
            if x is UNSET:
                rest = {n: v for n, v in zip(self.positional[i:], args[i:], strict=False) if v is not UNSET}
                return args[:i], {**rest, **kwargs}
        return args, kwargs


class Site:
    """Generated code for calls with one structure: number of arguments, keywords, argument trees, result tree."""

    def __init__(
        self, number: int, form: LaunchParameters, call: Arguments, result: tree.TreeDef, is_library: bool,
        is_wide: bool, names: Sequence[str], namespace: dict[str, Any],
    ) -> None:  # fmt: skip
        self.entries: dict[Any, Any] = {}
        self.result = result
        code = Code(f"s{number}_")
        leaf_names = code.name(names)
        entries = code.name(self.entries)
        static = {key for key, _, _ in call.statics}
        clean = [kind in CLEAN for _, kind, _ in call.given_statics]
        items = [*enumerate(call.args), *sorted(call.kwargs.items(), key=lambda item: item[0])]  # sorted as in trees
        structures = {k: tree.structure(v) for k, v in items if k not in static}
        lines = code.lines
        otherwise = f"return miss({form.given})"
        lines += [" here = scope()", f" if here.off: {otherwise}"]
        lines.append(" try:")
        if form.positional or form.keyword_only:
            names = form.positional[: len(call.args)]
            absent = [n for n in (*form.positional, *form.keyword_only) if n not in names and n not in call.kwargs]
            if absent:
                lines.append(f"  if {' or '.join([f'{n} is not UNSET' for n in absent])}: {otherwise}")
            named = {n: n for n in call.kwargs}
        else:
            names = [code.name() for _ in call.args]
            lines.append(f"  {'(' + ''.join(n + ', ' for n in names) + ')'} = args")
            lines.append(f"  if {f'len(kwargs) != {len(call.kwargs)}' if call.kwargs else 'kwargs'}: {otherwise}")
            named = {n: f"kwargs[{n!r}]" for n in call.kwargs}
        arrays, statics = [], []
        # a site of a library function accepts an array or a number; other functions have a site for each
        other = "wide_leaf({0})" if is_wide else "leaf({0}, here)"
        either = f"{{0}} if type({{0}}) is A else {other}"
        take = {True: either, False: either} if is_library else {True: "{0}", False: other}
        leaves = iter(call.is_array)
        for key, _ in items:
            value = names[key] if isinstance(key, int) else named[key]
            if key not in structures:
                statics += [f"type({value})", value] if clean.pop(0) else [f"exact({value})"]
                continue
            for leaf in matcher(code, structures[key], value, "{}", "  "):
                arrays.append(code.name())
                lines.append(f"  {arrays[-1]} = {take[next(leaves)].format(leaf)}")
        key_text = "".join([f"{a}._placed, " for a in arrays] + [f"{s}, " for s in statics] + ["here, "])
        lines.append(f"  execute, handlers, placed, captured, build = {entries}[({key_text})]")
        buffers = ", ".join([f"{a}._buffer" for a in arrays])
        lines.append(f"  buffers = [{buffers}]")
        lines.append(f" except (AttributeError, KeyError, ValueError, TypeError, OverflowError, Mismatch): {otherwise}")
        lines.append(" if captured: buffers = captured + buffers")
        lines.append(" try: results = execute(buffers).consume_with_handlers(handlers)")
        lines.append(f" except EngineError as error: raise failure(buffers, error, {leaf_names}) from None")
        lines.append(" if build is not None: return build(results, placed)")
        _emit_result(code, result)
        namespace.update(code.namespace)
        # the same code, but it returns MISS instead of taking the slow path, so that several sites can be tried
        self.run = _function(f"def call({form.header}):", lines, {**namespace, "miss": lambda *_: MISS})

    def remember(self, call: Arguments, arrays: Sequence[DeviceArray], entry: Any, result: tree.TreeDef) -> None:
        """Register the executable in `entry` for arguments with these placements and static values."""
        if len(self.entries) >= 4096:
            self.entries.clear()
        statics = [v for _, kind, x in call.given_statics for v in ((kind, x) if kind in CLEAN else (exact(x),))]
        key = (*[a._placed for a in arrays], *statics, scope())
        with contextlib.suppress(TypeError):  # unhashable static arguments, such as lists of axes, take the slow path
            self.entries[key] = (*entry, None if result == self.result else result_builder(result))


def _function(header: str, lines: list[str], namespace: dict[str, Any]) -> Any:
    local: dict[str, Any] = {}
    exec(_compiled("\n".join([header, *lines])), namespace, local)
    return next(iter(local.values()))


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> Any:
    return source.compiled(text)


def _emit_result(code: Code, structure: tree.TreeDef) -> None:
    """Emit code that wraps the buffers in `results` as arrays and returns the result tree."""
    names = [(f"a{i}", f"o{i}", f"p{i}") for i in range(structure.num_leaves)]
    if names:
        code.lines.append(f" {', '.join(o for _, o, _ in names)}, = results")
        code.lines.append(f" {', '.join(p for _, _, p in names)}, = placed")
    code.lines.extend([f" {a} = A(); {a}._buffer = {o}; {a}._placed = {p}" for a, o, p in names])
    code.lines.append(f" return {builder(code, structure, iter([a for a, _, _ in names]))}")


@functools.lru_cache(maxsize=1024)
def result_builder(structure: tree.TreeDef) -> Callable[[list[Any], list[Any]], Any]:
    """A function that builds the result tree from buffers and their placements."""
    code = Code("r")
    _emit_result(code, structure)
    return _function("def build(results, placed):", code.lines, {**NAMESPACE, **code.namespace})


def _leaf(x: Any, here: Any) -> Any:
    """Convert an argument to a device array."""
    if x.__class__ is np.ndarray:
        return as_array(x)
    try:
        return here.scalars[x.__class__, repr(x) if x.__class__ is float and not x else x]
    except (KeyError, TypeError):
        if isinstance(x, Tracer) or hasattr(x, "__jax_array__"):
            raise Mismatch from None
        return as_array(x)


def _wide_leaf(x: Any) -> Any:
    """Like `_leaf`, with 64-bit Python numbers, because another argument is a 64-bit array."""
    if isinstance(x, Tracer) or hasattr(x, "__jax_array__"):
        raise Mismatch
    return as_array(x, wide(type_of(x)))


def taking(execute: Callable[..., Any], left: Sequence[int], count: int) -> Callable[..., Any]:
    """A launch that takes all `count` inputs of a function and passes only those in `left`, which the program uses."""
    if len(left) == count:
        return execute
    return lambda buffers: execute([buffers[i] for i in left])


donors: dict[str, str] = {}  # function -> its donated arguments, for functions called with them; newest last


def failure_of(buffers: Sequence[Any], error: Exception, names: Sequence[str] = ()) -> RuntimeError:
    """The exception for a failed launch: a donated buffer was used, or the engine's own error.

    The last `len(names)` buffers are leaves of arguments, with these names.
    """
    labels = ["a value that the function closes over"] * (len(buffers) - len(names)) + list(names)
    places: dict[int, list[int]] = {}
    for i, b in enumerate(buffers):
        places.setdefault(id(b), []).append(i)
    if "the same" in str(error):  # search by identity: the positions in the engine's message skip unused arguments
        for same in places.values():
            if len(same) > 1:
                both = " and ".join([labels[i] for i in same[:2]]) if names else "two arguments"
                return RuntimeError(
                    errors.explained(
                        f"donation: {both} are the same array, {buffers[same[0]].aval.type}; a donated array "
                        "must be passed only once.",
                        "numpy.copy(x) for one of them, or leave one out of donate_argnums.",
                    )
                )
    for label, b in zip(labels, buffers, strict=True):
        if b.is_deleted():
            who = "".join([f"\n  {name} donates its argument {what}." for name, what in list(donors.items())[-3:]])
            what = f"argument {label}, {b.aval.type}," if names else f"{b.aval.type}"
            return RuntimeError(
                errors.explained(
                    f"deleted array: {what} was deleted or donated, and its memory is gone.{who}",
                    "use the result of the call to which it was donated, or leave it out of donate_argnums.",
                )
            )
    return failed(buffers[0] if buffers else None, error)


NAMESPACE = {
    "scope": scope,
    "exact": exact,
    "Mismatch": Mismatch,
    "EngineError": EngineError,
    "failure": failure_of,
    "A": DeviceArray,
    "UNSET": UNSET,
    "leaf": _leaf,
    "wide_leaf": _wide_leaf,
}
# names in generated code; for a function with a parameter of such a name, the code takes `*args, **kwargs`
_OWN = (
    "args|kwargs|miss|here|execute|handlers|placed|captured|build|buffers|results|error|type|len|dict|list|tuple|kind"
)
_OWN_NAME = re.compile(rf"(?:{_OWN}|{'|'.join(NAMESPACE)}|\w*Error|[aop]\d+|s\d+_\d+)")
FIRST_CODE = _function("def call(*args, **kwargs):", [" return miss(args, kwargs)"], {}).__code__
