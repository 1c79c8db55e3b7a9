"""Ops for linear systems, determinants and the pseudoinverse, with their own derivative rules.

Each op takes a decomposition of its matrix as a constant operand. The derivative of an op is a short formula in its
result and the matrix, so the decomposition is not differentiated, and the formula is correct even where the
decomposition has no derivative. Matrices are on the last two axes; leading axes are batch axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp, Op
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import conversion, cumulative, elementary, reduction, shape, sorting
from atled.ops import elementwise as ew
from atled.ops import linalg as ops
from atled.ops import matrix_ops as blocks
from atled.ops.matrix_ops import Matrices, adjoint, matmul, scale_columns, take_rows, transposed, triangular_solve

_INT = dtypes.int32


def _check_dtype(name: str, a: ArrayType) -> None:
    if a.kind not in "fc" or dtypes.bits(dtypes.real_part(a.dtype)) < 32:
        raise TypeError(f"{name}: float32, float64, complex64 or complex128 are needed; got {a}.")


class Solve(LinearOp):
    """x such that a x = b, or a^T x = b, given the LU decomposition of a, which is not differentiated."""

    linear_in = ((1,),)
    is_transposed: bool = False

    def result_type(self, a: ArrayType, b: ArrayType, lu: ArrayType, permutation: ArrayType) -> ArrayType:
        fits = a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2] and a.shape[-2] == a.shape[-1] == b.shape[-2]
        if not fits or a.dtype is not b.dtype or lu.shape != a.shape or permutation.shape != a.shape[:-1]:
            raise TypeError(f"solve: {a} and {b} have incompatible shapes.")
        _check_dtype("solve", a)
        return b.strong()

    def lower(self, build: Any, a: Any, b: Any, lu: Any, permutation: Any) -> Any:
        if b.type.size == 0:
            return b
        form = "T" if self.is_transposed else "N"
        return build.apply(lambda y, f, p: solve_factored(f, p, y, form), b, lu, permutation)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a, b, lu, permutation), (s, t, *_) = primals, tangents
        x = bind(self, a, b, lu, permutation)
        right = None if type(t) is Zero else t
        if type(s) is not Zero:
            moved = ew.neg(matmul(transposed(s) if self.is_transposed else s, x))
            right = moved if right is None else ew.add(right, moved)
        return x, Zero(type_of(x).tangent()) if right is None else bind(self, a, right, lu, permutation)

    def transpose(self, cotangent: Any, a: Any, b: Any, lu: Any, permutation: Any) -> Any:
        return None, bind(Solve(not self.is_transposed), a, cotangent, lu, permutation), None, None

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        return Matrices.batch(self, batched, *operands)  # type: ignore[arg-type]


class LogDeterminant(Op):
    """The sign of the determinant of a, and the logarithm of its magnitude, given the LU decomposition of a."""

    gives_tuple = True

    def result_type(
        self, a: ArrayType, lu: ArrayType, pivots: ArrayType, permutation: ArrayType
    ) -> tuple[ArrayType, ArrayType]:
        _check_dtype("slogdet", a)
        return ArrayType(a.shape[:-2], a.dtype), ArrayType(a.shape[:-2], dtypes.real_part(a.dtype))

    def lower(self, build: Any, a: Any, lu: Any, pivots: Any, permutation: Any) -> Any:
        return build.apply(_sign_and_logarithm, lu, pivots)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a, lu, pivots, permutation), (t, *_) = primals, tangents
        sign, size = bind(self, a, lu, pivots, permutation)
        rate = _trace(bind(Solve(), a, t, lu, permutation))
        if type_of(a).kind != "c":
            return (sign, size), (Zero(type_of(sign).tangent()), rate)
        turn = conversion.complex(np.zeros((), type_of(size).dtype), conversion.imag(rate))
        return (sign, size), (ew.mul(sign, turn), conversion.real(rate))

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        return Matrices.batch(self, batched, *operands)  # type: ignore[arg-type]


class Determinant(Op):
    """The determinant of a, given its LU decomposition. First and second derivatives are exact for singular a."""

    def result_type(self, a: ArrayType, lu: ArrayType, pivots: ArrayType, permutation: ArrayType) -> ArrayType:
        _check_dtype("det", a)
        return ArrayType(a.shape[:-2], a.dtype)

    def lower(self, build: Any, a: Any, lu: Any, pivots: Any, permutation: Any) -> Any:
        def multiply(f: Any, p: Any) -> Any:
            return ew.mul(
                reduction.reduce_prod(blocks.diagonal(f), (type_of(f).ndim - 2,)), _parity(p, type_of(f).dtype)
            )

        return build.apply(multiply, lu, pivots)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a, lu, pivots, permutation), (t, *_) = primals, tangents
        at, real = type_of(a), dtypes.real_part(type_of(a).dtype)
        out = bind(self, a, lu, pivots, permutation)
        s, u, vt = bind(ops.Svd(False, True), fixed(a))
        # det(a) tr(a^-1 t) loses digits for ill-conditioned a, more with each order; cofactors from the SVD lose none
        last = at.ndim - 2
        limit = ew.mul(reduction.reduce_max(s, (last,)), float(dtypes.finfo(real).eps) ** 0.5)
        is_singular = ew.le(reduction.reduce_min(s, (last,)), limit)
        of = lambda y: shape.broadcast(is_singular, type_of(y).shape, tuple(range(last)))  # noqa: E731
        unit = blocks.identity(at, at.shape[-1])
        order = shape.iota(_INT, at.shape[:-1], last)
        safe = [ew.select(of(x), y, x) for x, y in ((a, unit), (lu, unit), (permutation, order))]
        regular = ew.mul(out, _trace(bind(Solve(), safe[0], t, *safe[1:])))
        singular = reduction.reduce_sum(ew.mul(t, _cofactors(a, s, u, vt)), (last, last + 1))
        return out, ew.select(is_singular, singular, regular)

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        return Matrices.batch(self, batched, *operands)  # type: ignore[arg-type]


def _cofactors(a: Any, s: Any, u: Any, vt: Any) -> Any:
    """The derivative of det with respect to a = u diag(s) vt of any rank; this function can be differentiated once.

    u* a v is diagonal, but its tangent is not: off-diagonal elements contribute to the cofactors to first order.
    """
    t = type_of(a)
    last = t.ndim - 2
    real = type_of(s).dtype
    u, vt, s = fixed(u), fixed(vt), fixed(s)
    inside = matmul(matmul(adjoint(u), a), adjoint(vt))
    change = ew.sub(inside, fixed(inside))  # zero, with the tangent of u* a v
    middle = ew.add(conversion.convert(s, t.dtype), blocks.diagonal(change))
    top = shape.broadcast(reduction.reduce_max(s, (last,)), type_of(s).shape, tuple(range(last)))
    tiny = float(dtypes.finfo(real).eps) ** 2
    size = ew.maximum(ew.maximum(s, ew.mul(top, tiny)), tiny)  # positive, because products are divided by it
    lead = tuple(range(last))
    without = shape.broadcast(_products_of_others(size), t.shape, (*lead, last + 1))
    without_both = ew.div(without, shape.broadcast(size, t.shape, (*lead, last)))
    unit = blocks.identity(t, t.shape[-1])
    diagonal = scale_columns(unit, _products_of_others(middle))
    beside = ew.mul(ew.mul(transposed(change), conversion.convert(without_both, t.dtype)), ew.sub(unit, 1))
    joint = matmul(u, vt)
    sign, _ = _sign_and_logarithm(*bind(ops.Lu(), joint)[:2])
    turned = matmul(matmul(_conjugate(u), ew.add(diagonal, beside)), _conjugate(vt))
    return ew.mul(turned, shape.broadcast(sign, t.shape, lead))


def _products_of_others(x: Any) -> Any:
    """For each element along the last axis, the product of the other elements."""
    last, n = type_of(x).ndim - 1, type_of(x).shape[-1]
    edges = [(0, 0, 0)] * last
    before = shape.pad(shape.slice_in_axis(x, 0, n - 1, last), 1, [*edges, (1, 0, 0)])
    after = shape.pad(shape.slice_in_axis(x, 1, n, last), 1, [*edges, (0, 1, 0)])
    return ew.mul(cumulative.cumprod(before, last), cumulative.cumprod(after, last, True))


class PseudoInverse(Op):
    """The pseudoinverse of a, passed as an operand, with its derivative for constant rank (Golub and Pereyra)."""

    def result_type(self, a: ArrayType, inverse: ArrayType) -> ArrayType:
        return inverse

    def lower(self, build: Any, a: Any, inverse: Any) -> Any:
        return inverse

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a, given), (t, _) = primals, tangents
        p = bind(self, a, given)
        m, n = type_of(a).shape[-2:]
        # multiply in the order whose intermediate matrix is the smaller square matrix
        product = lambda x, y, z: matmul(matmul(x, y), z) if m >= n else matmul(x, matmul(y, z))  # noqa: E731
        ph, th = adjoint(p), adjoint(t)
        rows, columns = product(p, ph, th), product(th, ph, p)
        rows = ew.sub(rows, product(rows, a, p))
        columns = ew.sub(columns, product(p, a, columns))
        return p, ew.sub(ew.add(rows, columns), product(p, t, p))

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        return Matrices.batch(self, batched, *operands)  # type: ignore[arg-type]


class Reflectors(Matrices):
    """R of a QR decomposition, packed with the Householder vectors of Q below its diagonal, and their scales."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a)
        return a.strong(), ArrayType((*a.shape[:-2], min(a.shape[-2:])), a.dtype)

    def lower(self, build: Any, a: Any) -> Any:
        types = self.result_type(a.type)
        return blocks.lapack(build, self, "geqrf", (a,), types) if a.type.size else (a, build.constant(0, types[1]))


def fixed(x: Any) -> Any:
    """x, with derivative zero."""
    return bind(ew.StopGradient(), x)


def _conjugate(x: Any) -> Any:
    return conversion.conj(x) if type_of(x).kind == "c" else x


def _trace(a: Any) -> Any:
    return reduction.reduce_sum(blocks.diagonal(a), (type_of(a).ndim - 2,))


def factored(a: Any) -> tuple[Any, Any, Any]:
    """The LU decomposition of a, with derivative zero: L and U in one matrix, the pivots, and the permutation."""
    lu, pivots, permutation = bind(ops.Lu(), fixed(a))
    return lu, pivots, permutation


def solve_factored(lu: Any, permutation: Any, b: Any, form: str = "N") -> Any:
    """x such that a x = b (or a^T x = b, or a* x = b, by `form`), given the LU decomposition of a."""
    if form == "N":
        y = triangular_solve(lu, take_rows(b, permutation), left=True, lower=True, unit=True)
        return triangular_solve(lu, y, left=True, lower=False)
    y = triangular_solve(lu, b, left=True, lower=False, form=form)
    y = triangular_solve(lu, y, left=True, lower=True, form=form, unit=True)
    last = type_of(permutation).ndim - 1
    _, inverse = sorting.sort((permutation, shape.iota(_INT, type_of(permutation).shape, last)), last)
    return take_rows(y, inverse)


def solve_matrices(a: Any, b: Any) -> Any:
    """x such that a x = b, for operands of the same dtype with the same leading axes."""
    lu, _, permutation = factored(a)
    return bind(Solve(), a, b, lu, permutation)


def inverse_of(a: Any) -> Any:
    """The inverses of square matrices."""
    return solve_matrices(a, blocks.identity(type_of(a), type_of(a).shape[-1]))


def _parity(pivots: Any, dtype: Any) -> Any:
    """-1 where an odd number of rows was exchanged, else 1."""
    t = type_of(pivots)
    last = t.ndim - 1
    moved = conversion.convert(ew.ne(pivots, shape.iota(_INT, t.shape, last)), _INT)
    is_odd = ew.eq(ew.logical_and(reduction.reduce_sum(moved, (last,)), 1), 1)
    return ew.select(is_odd, np.asarray(-1, dtype), np.asarray(1, dtype))


def _sign_and_logarithm(lu: Any, pivots: Any) -> tuple[Any, Any]:
    on = blocks.diagonal(lu)
    last = type_of(on).ndim - 1
    sign = ew.mul(reduction.reduce_prod(elementary.sign(on), (last,)), _parity(pivots, type_of(lu).dtype))
    return sign, reduction.reduce_sum(elementary.log(elementary.absolute(on)), (last,))
