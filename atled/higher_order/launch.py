"""The launch path: Python code generated for the calls that a function has seen.

A `Site` is made for calls of one shape. Its code takes the arguments apart, looks the executable up by the placement of
their leaves and the values of static arguments, runs it, wraps the buffers and builds the result. Whatever it was not made
for goes to `miss`. The code is installed as the code of the jitted function itself, so a call costs one Python frame.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from atled.core import tree
from atled.core.config import fast
from atled.core.trace import Tracer
from atled.core.tree_code import Code, builder, matcher
from atled.engine.array import DeviceArray, as_array, failed, scalars
from atled.engine.execute import EngineError
from atled.higher_order.signature import Arguments

MISS = object()


class Mismatch(Exception):  # noqa: N818
    """The arguments are not of the kind that generated code was made for."""


class Site:
    """Generated code for calls of one shape: so many arguments, these keywords, these trees, this kind of result."""

    def __init__(
        self, number: int, call: Arguments, result: tree.Structure, is_inline: bool, namespace: dict[str, Any]
    ) -> None:
        self.entries: dict[Any, Any] = {}
        self.result = result
        code = Code(f"s{number}_")
        entries = code.name(self.entries)
        static = {key for key, _, _ in call.statics}
        items = [*enumerate(call.args), *sorted(call.kwargs.items(), key=lambda item: item[0])]  # as trees do
        structures = {k: tree.structure(v) for k, v in items if k not in static}
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
        take = {True: either, False: either} if is_inline else {True: "{0}", False: "leaf({0})"}
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
        namespace.update(code.namespace)
        # the same code, which says MISS instead of going to the slow path: to try this site among others
        self.run = _function("def call(*args, **kwargs):", lines, {**namespace, "miss": lambda *_: MISS})


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
def result_builder(structure: tree.Structure) -> Callable[[list[Any], list[Any]], Any]:
    """A function that makes a result of buffers and their placements."""
    code = Code("r")
    _emit_result(code, structure)
    return _function("def build(out, placed):", code.lines, {**NAMESPACE, **code.namespace})


def _leaf(x: Any) -> Any:
    """An argument that is not an array on a device yet, as one."""
    try:
        return scalars[x.__class__, x]
    except (KeyError, TypeError):
        if isinstance(x, Tracer):
            raise Mismatch from None
        return as_array(x)


def failure_of(buffers: Sequence[Any], error: Exception) -> RuntimeError:
    for b in buffers:
        if b.is_deleted():
            return failed(b, RuntimeError("deleted"))
    return failed(buffers[0], error) if buffers else RuntimeError(str(error))


NAMESPACE = {
    "fast": fast,
    "Mismatch": Mismatch,
    "EngineError": EngineError,
    "failure": failure_of,
    "A": DeviceArray,
    "new": object.__new__,
    "leaf": _leaf,
}
FIRST_CODE = _function("def call(*args, **kwargs):", [" return miss(args, kwargs)"], {}).__code__
