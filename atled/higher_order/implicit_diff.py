"""Implicit differentiation: solutions of equations, differentiated independently of the solver.

`custom_linear_solve` solves A x = b: its derivative is a solve with A, its transpose one with the transpose of A.
`custom_root` solves f(x) = 0 and uses the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.op import Op, instantiate
from atled.core.program import Program, evaluate, record
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.higher_order.call import run_program
from atled.higher_order.cond import Recorded, record_tree
from atled.higher_order.custom_derivative_calls import CustomJvp, LazyProgram
from atled.ops import conversion, elementwise, shape
from atled.transforms.grad import jvp, linear_transpose
from atled.transforms.jvp import jvp_program
from atled.transforms.vmap import batch_program


class LinearSolve(Op):
    """x with A x = b, computed by the program `solve`. Operands: the constants of all programs, then b."""

    gives_tuple = True
    splits = True
    constants: int
    matvec: Program  # constants, x -> A x
    solve: Program  # constants, b -> x
    transpose_matvec: Program | None
    transpose_solve: Program | None

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return tuple([t.strong() for t in self.solve.output_types])

    def lower(self, build: Any, *operands: Any) -> Any:
        return build.call(self.solve, operands)

    def stepwise(self, *operands: Any) -> Any:
        return tuple(evaluate(self.solve, operands))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        n = self.constants
        x = bind(self, *primals)
        # A dx = db - dA x
        given = tuple([type(t) is not Zero for t in tangents[:n]])
        right = [instantiate(t) for t in tangents[n:]]
        if any(given):
            derivative, nonzero = jvp_program(self.matvec, (*given, *[False] * len(x)))
            moves = [t for t in tangents[:n] if type(t) is not Zero]
            moved = iter(run_program(derivative, [*primals[:n], *x, *moves])[len(x) :])
            right = [elementwise.sub(r, next(moved)) if m else r for r, m in zip(right, nonzero)]
        return x, tuple(bind(self, *primals[:n], *right))

    def split(self, tape: Any, operands: Sequence[Any]) -> Any:
        if any([tape.owns(x) for x in operands[: self.constants]]):
            raise TypeError("custom_linear_solve: it is linear only in b, but another operand has a tangent here.")
        return tape.write(self, operands)

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        n = self.constants
        if self.transpose_solve is None or self.transpose_matvec is None:
            raise TypeError(
                "custom_linear_solve: reverse mode needs a solver of the transposed equation."
                "\n  try: custom_linear_solve(..., transpose_solve=...), or symmetric=True."
            )
        turned = LinearSolve(n, self.transpose_matvec, self.transpose_solve, self.matvec, self.solve)
        assert all([type(x) is Linear for x in operands[n:]])
        out = bind(turned, *operands[:n], *[instantiate(c) for c in cotangent])
        return (*[None] * n, *out)

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        n, size = self.constants, batch.size
        every = (True,) * (len(batched) - n)
        flags = (*batched[:n], *every)

        def make(program: Program | None) -> Any:
            if program is None:
                return None
            return batch_program(program, flags, size, every, batch.axis_name)[0]

        programs = [make(p) for p in (self.matvec, self.solve, self.transpose_matvec, self.transpose_solve)]
        right = [x if b else shape.add_axis(x, size) for x, b in zip(operands[n:], batched[n:])]
        return bind(LinearSolve(n, *programs), *operands[:n], *right)


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve `matvec(x) = b` for a linear `matvec`, by `solve(matvec, b)`, which need not be differentiable.

    Reverse mode needs `transpose_solve(vecmat, b)`, which solves the transposed equation, or `symmetric=True`, which
    uses `solve` for both.

    >>> import atled, atled.numpy as jnp
    >>> A = jnp.array([[2.0, 0.0], [1.0, 4.0]])
    >>> f = lambda b: custom_linear_solve(lambda x: A @ x, b, lambda _, b: jnp.linalg.solve(A, b),
    ...                                   lambda _, b: jnp.linalg.solve(A.T, b))
    >>> atled.grad(lambda b: f(b).sum())(jnp.ones(2))
    Array([0.375, 0.25 ], dtype=float32)
    """
    if has_aux:
        raise NotImplementedError("custom_linear_solve: has_aux is not supported; compute them from the solution.")
    try:
        return _linear_solve(matvec, b, solve, transpose_solve, symmetric)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _linear_solve(matvec: Any, b: Any, solve: Any, transpose_solve: Any, symmetric: bool) -> Any:
    leaves, structure = tree.flatten(b)
    types = [type_of(x).strong() for x in leaves]
    one = tree.structure((b,))
    turned = matvec if symmetric else lambda y: linear_transpose(matvec, b)(y)[0]
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    recorded: list[Recorded | None] = [
        record_tree(matvec, one, types),
        record_tree(lambda y: solve(matvec, y), one, types),
    ]
    if transpose_solve is None:
        recorded += [None, None]
    else:
        recorded += [record_tree(turned, one, types), record_tree(lambda y: transpose_solve(turned, y), one, types)]
    for r, name in zip(recorded, ("matvec", "solve", "matvec", "transpose_solve")):
        if r is not None and (
            r.structure != structure
            or [(t.shape, t.dtype) for t in r.program.output_types] != [(t.shape, t.dtype) for t in types]
        ):
            got = ", ".join(map(str, r.program.output_types))
            raise TypeError(
                f"custom_linear_solve: {name} must return the types of b, {', '.join(map(str, types))}; it returns "
                f"{got}."
            )
    captured: dict[int, Any] = {id(x): x for r in recorded if r is not None for x in r.captured}
    order, values = list(captured), list(captured.values())
    programs = [None if r is None else _over(r, order, [type_of(x) for x in values], types) for r in recorded]
    right = [conversion.convert(x, t.dtype) if type_of(x) is not t else x for x, t in zip(leaves, types)]
    return structure.unflatten(list(bind(LinearSolve(len(values), *programs), *values, *right)))  # type: ignore[arg-type]


def _over(r: Recorded, order: list[int], constants: list[ArrayType], types: list[ArrayType]) -> Program:
    """The program of a function that takes the captured values of all functions and casts results to `types`."""
    mine = [order.index(id(x)) for x in r.captured]
    n = len(order)

    def f(*operands: Any) -> list[Any]:
        out = evaluate(r.program, [*[operands[i] for i in mine], *operands[n:]])
        return [conversion.convert(x, t.dtype) if type_of(x) is not t else x for x, t in zip(out, types)]

    return record(f, [*constants, *types], r.program.name)[0]


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Solve `f(x) = 0` by `solve(f, initial_guess)`, which need not be differentiable.

    Derivatives with respect to values that `f` closes over come from the implicit function theorem, by
    `tangent_solve(g, y)`, which solves `g(x) = y` for a linear `g`.

    >>> import atled, atled.numpy as jnp
    >>> from atled import lax
    >>> newton = lambda f, x: lax.fori_loop(0, 20, lambda i, x: x - f(x) / (2.0 * x), x)
    >>> root = lambda t: custom_root(lambda x: x**2 - t, 1.0, newton, lambda g, y: y / g(1.0))
    >>> round(float(atled.grad(root)(4.0)), 4)
    0.25
    """
    if has_aux:
        raise NotImplementedError("custom_root: has_aux is not supported; compute auxiliary values from the solution.")
    try:
        return _root(f, initial_guess, solve, tangent_solve)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _root(f: Any, guess: Any, solve: Any, tangent_solve: Any) -> Any:
    leaves, structure = tree.flatten(guess)
    types = [type_of(x).strong() for x in leaves]
    start = [conversion.convert(x, t.dtype) if type_of(x) is not t else x for x, t in zip(leaves, types)]
    one = tree.structure((guess,))
    residual = record_tree(f, one, types)
    constants = residual.captured
    n = len(constants)

    def of(values: Sequence[Any]) -> Callable[[Any], Any]:
        """`f`, with these values for the arrays that it closes over."""
        return lambda x: residual.structure.unflatten(list(evaluate(residual.program, [*values, *tree.leaves(x)])))

    def find(*operands: Any) -> list[Any]:
        out, got = tree.flatten(solve(of(operands[:n]), structure.unflatten(list(operands[n:]))))
        if got != structure:
            raise TypeError(f"custom_root: solve must return the tree of the guess, {structure}; got {got}.")
        return [conversion.convert(x, t.dtype) if type_of(x) is not t else x for x, t in zip(out, types)]

    program, captured = record(find, [*[type_of(x) for x in constants], *types], "custom_root")
    k = len(captured)
    moves = [t.tangent() for t in program.input_types if t.tangent().kind != "0"]

    def rule(*operands: Any) -> list[Any]:
        inputs, given = operands[: len(program.inputs)], iter(operands[len(program.inputs) :])
        x = list(bind(op, *inputs))
        values = inputs[k : k + n]
        every = [Zero(type_of(v).tangent()) if type_of(v).tangent().kind == "0" else next(given) for v in inputs]
        speeds = every[k : k + n]  # the root does not depend on the arrays that `solve` closes over
        has = tuple([type(t) is not Zero for t in speeds])
        derivative, _ = jvp_program(
            residual.program, (*has, *[False] * len(x)), (True,) * len(residual.program.outputs)
        )
        out = evaluate(derivative, [*values, *x, *[t for t in speeds if type(t) is not Zero]])
        right = [elementwise.neg(t) for t in out[len(residual.program.outputs) :]]
        at = structure.unflatten(x)

        def matvec(v: Any) -> Any:
            return jvp(of(values), (at,), (v,))[1]

        dx = _linear_solve(matvec, structure.unflatten(right), tangent_solve, tangent_solve, False)
        return [*x, *tree.leaves(dx)]

    def make() -> Program:
        return record(rule, [*program.input_types, *moves], "custom_root")[0]

    op = CustomJvp(program, LazyProgram(make), 0)
    return structure.unflatten(list(bind(op, *captured, *constants, *start)))
