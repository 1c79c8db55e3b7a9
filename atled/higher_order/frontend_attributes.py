"""Frontend attributes: hints to the compiler on an operation or a function call, which do not change results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.op import LinearOp
from atled.core.program import Program
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.higher_order.call import Call, has_effects
from atled.higher_order.cond import record_tree

Marks = tuple[tuple[str, str], ...]


class Mark(LinearOp):
    """The identity; sets frontend attributes on the operation that produces its operand."""

    marks: Marks

    def result_type(self, x: ArrayType) -> ArrayType:
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return build.mark(x, dict(self.marks))

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (cotangent,)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *values), masks[0]

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


class MarkedCall(Call):
    """A call of a program with frontend attributes; transformed calls keep them."""

    marks: Marks = ()

    def again(self, program: Program) -> Call:
        return MarkedCall(program, self.marks)

    def lower(self, build: Any, *operands: Any) -> Any:
        if has_effects(self.program):
            return super().lower(build, *operands)
        return build.call(self.program, operands, marks=dict(self.marks))


def marks_of(given: dict[str, Any]) -> Marks:
    """Names and values of attributes as text."""
    return tuple([(k, str(v).lower() if isinstance(v, bool) else str(v)) for k, v in sorted(given.items())])


def marked_call(f: Callable[..., Any], marks: Marks) -> Callable[..., Any]:
    """A function that runs `f` as one call with frontend attributes; all its arguments must be arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        types = [type_of(x) for x in leaves]

        def body(args: Any, kwargs: Any) -> Any:
            return f(*args, **kwargs)

        try:
            recorded = record_tree(body, structure, types)
            out = bind(MarkedCall(recorded.program, marks), *recorded.captured, *leaves)
            return recorded.structure.unflatten(list(out))
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    call.__name__ = getattr(f, "__name__", "marked")
    call.__doc__ = getattr(f, "__doc__", None)
    return call
