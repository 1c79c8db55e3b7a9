"""`linear_call`: a linear function with a custom transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.op import Op, instantiate
from atled.core.program import Program, evaluate, record
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.higher_order.call import run_program
from atled.higher_order.cond import Recorded, record_tree
from atled.ops import conversion, elementwise, shape
from atled.transforms.jvp import jvp_program
from atled.transforms.vmap import batch_program


class LinearCall(Op):
    """Runs `forward`, linear in all operands except the first `constants`; `backward` is its transpose."""

    gives_tuple = True
    splits = True
    constants: int
    forward: Program  # constants, linear operands -> results
    backward: Program  # constants, cotangents of results -> cotangents of linear operands

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.forward.output_types

    def lower(self, build: Any, *operands: Any) -> Any:
        return build.call(self.forward, operands)

    def stepwise(self, *operands: Any) -> Any:
        return tuple(evaluate(self.forward, operands))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        n = self.constants
        out = bind(self, *primals)
        moved: list[Any] = [Zero(t.tangent()) for t in self.forward.output_types]
        if any([type(t) is not Zero for t in tangents[n:]]):
            moved = list(bind(self, *primals[:n], *[instantiate(t) for t in tangents[n:]]))
        given = tuple([type(t) is not Zero for t in tangents[:n]])
        if any(given):
            derivative, nonzero = jvp_program(self.forward, (*given, *[False] * (len(primals) - n)))
            results = run_program(derivative, [*primals, *[t for t in tangents[:n] if type(t) is not Zero]])
            more = iter(results[len(out) :])
            for i, is_moved in enumerate(nonzero):
                if is_moved:
                    extra = next(more)
                    moved[i] = extra if type(moved[i]) is Zero else elementwise.add(moved[i], extra)
        return out, tuple(moved)

    def split(self, tape: Any, operands: Sequence[Any]) -> Any:
        if any([tape.owns(x) for x in operands[: self.constants]]):
            raise TypeError("linear_call: fun can only be transposed with respect to linear_args.")
        return tape.write(self, operands)

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        n = self.constants
        turned = LinearCall(n, self.backward, self.forward)
        return (*[None] * n, *bind(turned, *operands[:n], *[instantiate(c) for c in cotangent]))

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        n, size, name = self.constants, batch.size, batch.axis_name

        def make(program: Program) -> Program:
            flags = (*batched[:n], *[True] * (len(program.inputs) - n))
            return batch_program(program, flags, size, (True,) * len(program.outputs), name)[0]

        linear = [x if b else shape.add_axis(x, size) for x, b in zip(operands[n:], batched[n:])]
        return bind(LinearCall(n, make(self.forward), make(self.backward)), *operands[:n], *linear)


def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """`fun(residual_args, linear_args)`, linear in `linear_args`, with the transpose `fun_transpose(residual_args, g)`.

    >>> import atled
    >>> half = lambda x: linear_call(lambda r, x: x / r, lambda r, g: g / r, 2.0, x)
    >>> atled.linear_transpose(half, 1.0)(6.0)
    (Array(3., dtype=float32),)
    """
    try:
        return _linear_call(fun, fun_transpose, residual_args, linear_args)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _linear_call(fun: Any, fun_transpose: Any, residual_args: Any, linear_args: Any) -> Any:
    residuals, _ = tree.flatten(residual_args)
    given, _ = tree.flatten(linear_args)
    kept_types, types = [type_of(x) for x in residuals], [type_of(x) for x in given]
    there = record_tree(fun, tree.structure((residual_args, linear_args)), [*kept_types, *types])
    out_types = list(there.program.output_types)
    both = tree.structure((residual_args, there.structure.unflatten([0.0] * len(out_types))))
    back = record_tree(fun_transpose, both, [*kept_types, *out_types])
    expected = tree.structure(linear_args)
    if back.structure != expected:
        raise TypeError(
            f"linear_call: fun_transpose must return the tree of linear_args, {expected}; got {back.structure}."
        )
    for got, t in zip(back.program.output_types, types, strict=True):
        if got.shape != t.shape:
            raise TypeError(f"linear_call: fun_transpose must return the shapes of linear_args, here {t}; got {got}.")
    captured: dict[int, Any] = {id(x): x for r in (there, back) for x in r.captured}
    order, values = list(captured), list(captured.values())
    first = [type_of(x) for x in values]
    forward = _over(there, order, [*first, *kept_types, *types], out_types)
    backward = _over(back, order, [*first, *kept_types, *out_types], types)
    op = LinearCall(len(values) + len(residuals), forward, backward)
    return there.structure.unflatten(list(bind(op, *values, *residuals, *given)))


def _over(r: Recorded, order: list[int], inputs: list[ArrayType], wanted: Sequence[ArrayType]) -> Program:
    """The program of `r` with the captured values of both functions as first inputs, and results of types `wanted`."""
    mine, n = [order.index(id(x)) for x in r.captured], len(order)

    def f(*operands: Any) -> list[Any]:
        out = evaluate(r.program, [*[operands[i] for i in mine], *operands[n:]])
        return [x if type_of(x) is t else conversion.convert(x, t.dtype, t.weak) for x, t in zip(out, wanted)]

    return record(f, inputs, r.program.name)[0]
