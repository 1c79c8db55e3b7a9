"""Matrices on the last two axes: the base class of their ops, their parts, and triangular and tridiagonal solvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.compiler.builder import U8
from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp, Op
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import contraction, conversion, elementwise, indexing, shape

_LETTER = {dtypes.float32: "s", dtypes.float64: "d", dtypes.complex64: "c", dtypes.complex128: "z"}
INT = np.dtype(np.int32)


# -- building blocks --------------------------------------------------------------------------------------------------


def matmul(a: Any, b: Any) -> Any:
    """Matrix products over the last two axes; the leading axes agree."""
    n = type_of(a).ndim
    lead = tuple(range(n - 2))
    return contraction.dot_general(a, b, ((n - 1,), (n - 2,)), (lead, lead), "HIGHEST")


def transposed(a: Any) -> Any:
    """a with its last two axes exchanged."""
    n = type_of(a).ndim
    return shape.transpose(a, (*range(n - 2), n - 1, n - 2))


def adjoint(a: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return transposed(conversion.conj(a) if type_of(a).kind == "c" else a)


def triangle(a: Any, lower: bool, offset: int = 0) -> Any:
    """The lower or upper triangle up to the diagonal `offset`, zero elsewhere."""
    t = type_of(a)
    rows, columns = (shape.iota(INT, t.shape[-2:], i) for i in (0, 1))
    edge = elementwise.add(rows, offset)
    keep = elementwise.ge(edge, columns) if lower else elementwise.le(edge, columns)
    keep = shape.broadcast(keep, t.shape, (t.ndim - 2, t.ndim - 1))
    return elementwise.select(keep, a, np.zeros((), t.dtype))


def diagonal(a: Any) -> Any:
    """The main diagonal of each matrix."""
    t = type_of(a)
    k, n = min(t.shape[-2:]), t.ndim
    square = shape.slice(a, (0,) * n, (*t.shape[:-2], k, k))
    flat = shape.reshape(square, (*t.shape[:-2], k * k))
    return shape.slice_in_axis(flat, 0, k * k, n - 2, k + 1) if k else shape.reshape(flat, (*t.shape[:-2], 0))


def scale_columns(a: Any, v: Any) -> Any:
    """Column j of each matrix times v[j]."""
    t = type_of(a)
    return elementwise.mul(
        a, shape.broadcast(conversion.convert(v, t.dtype), t.shape, (*range(t.ndim - 2), t.ndim - 1))
    )


def scale_rows(a: Any, v: Any) -> Any:
    """Row i of each matrix times v[i]."""
    t = type_of(a)
    return elementwise.mul(a, shape.broadcast(conversion.convert(v, t.dtype), t.shape, tuple(range(t.ndim - 1))))


def identity(like: ArrayType, n: int) -> Any:
    """Identity matrices with the leading axes and dtype of an array type."""
    rows, columns = (shape.iota(INT, (n, n), i) for i in (0, 1))
    eye = conversion.convert(elementwise.eq(rows, columns), like.dtype)
    return shape.broadcast(eye, (*like.shape[:-2], n, n), (like.ndim - 2, like.ndim - 1))


def combined_inverted(w: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """The matrix of 1 / combine(w[j], w[i]), zero where combine gives zero."""
    t = type_of(w)
    n = t.shape[-1]
    dims = (*t.shape[:-1], n, n)
    lead = tuple(range(t.ndim - 1))
    gap = combine(shape.broadcast(w, dims, (*lead, t.ndim)), shape.broadcast(w, dims, (*lead, t.ndim - 1)))
    is_zero = elementwise.eq(gap, 0)
    one, zero = (np.asarray(v, t.dtype) for v in (1, 0))
    return elementwise.select(is_zero, zero, elementwise.div(one, elementwise.select(is_zero, one, gap)))


class Matrices(Op):
    """Base class of ops on the last two axes of arrays. A batch axis is one more leading axis."""

    gives_tuple = True
    emitted_from = 2**14  # LAPACK's matrices are column-major

    def check(self, *types: ArrayType, square: bool = False) -> None:
        for t in types:
            if t.dtype not in _LETTER:
                raise TypeError(f"{self.name}: float32, float64, complex64 or complex128 are needed; got {t}.")
        a = types[0]
        if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
            raise TypeError(
                f"{self.name}: expected {'square ' if square else ''}matrices on the last two axes; got {a}."
            )

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        size = next(type_of(x).shape[0] for x, b in zip(operands, batched, strict=True) if b)
        return bind(self, *[x if b else shape.add_axis(x, size) for x, b in zip(operands, batched, strict=True)])


def lapack(build: Any, op: Op, name: str, operands: Sequence[Any], types: Sequence[ArrayType], **config: Any) -> Any:
    """Call a LAPACK routine, with matrices in column-major order."""
    if build.platform != "cpu":
        raise NotImplementedError(
            f"{op.name}: there is no lowering for {build.platform} yet; move the array to a CPU device."
        )
    lead = operands[0].type.ndim - 2
    layout = lambda t: _column_major(t.ndim) if t.ndim == lead + 2 else tuple(range(t.ndim))[::-1]  # noqa: E731
    letter = _LETTER[operands[0].type.dtype]
    return build.custom_call(
        f"lapack_{letter}{name}_ffi", operands, types, config,
        [layout(x.type) for x in operands], [layout(t) for t in types],
    )  # fmt: skip


def _column_major(ndim: int) -> tuple[int, ...]:
    return (ndim - 2, ndim - 1, *range(ndim - 3, -1, -1))


def letter(letter: str) -> U8:
    """A letter as an option of a LAPACK routine, which takes one byte."""
    return U8(ord(letter))


def or_nan(build: Any, info: Any, *values: Any) -> tuple[Any, ...]:
    """The values where LAPACK's status `info` is zero, else NaN."""

    def choose(code: Any, *xs: Any) -> tuple[Any, ...]:
        out = []
        for x in xs:
            t = type_of(x)
            is_fine = shape.broadcast(elementwise.eq(code, 0), t.shape, tuple(range(type_of(code).ndim)))
            out.append(elementwise.select(is_fine, x, np.asarray(np.nan, t.dtype)))
        return tuple(out)

    return build.apply(choose, info, *values)


# -- solvers ----------------------------------------------------------------------------------------------------------


class TriangularSolve(LinearOp):
    """x such that a x = b (or x a = b), for triangular a. The other triangle of a is ignored."""

    linear_in = ((1,),)
    emitted_from = 2**14
    is_left: bool
    is_lower: bool
    form: str = "N"  # a itself, its transpose "T", or its adjoint "C"
    has_unit_diagonal: bool = False

    def result_type(self, a: ArrayType, b: ArrayType) -> ArrayType:
        fits = a.ndim == b.ndim >= 2 and a.shape[:-2] == b.shape[:-2] and a.shape[-1] == a.shape[-2]
        if not fits or a.shape[-1] != b.shape[-2 if self.is_left else -1] or a.dtype is not b.dtype:
            raise TypeError(f"triangular_solve: {a} and {b} have incompatible shapes.")
        if a.dtype not in _LETTER:
            raise TypeError(f"triangular_solve: float32, float64, complex64 or complex128 are needed; got {a}.")
        return b.strong()

    def lower(self, build: Any, a: Any, b: Any) -> Any:
        if b.type.size == 0:
            return b
        out = self.result_type(a.type, b.type)
        if build.platform == "cpu":
            config = {
                "side": letter("L" if self.is_left else "R"),
                "uplo": letter("L" if self.is_lower else "U"),
                "trans_x": letter(self.form),
                "diag": letter("U" if self.has_unit_diagonal else "N"),
            }
            return lapack(build, self, "trsm", (a, b), (out,), **config)
        form = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[self.form]
        attributes = {
            "left_side": self.is_left,
            "lower": self.is_lower,
            "unit_diagonal": self.has_unit_diagonal,
            "transpose_a": f"#stablehlo<transpose {form}>",
        }
        return build.emit("stablehlo.triangular_solve", (a, b), (out,), attributes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a, b), (s, t) = primals, tangents
        x = bind(self, a, b)
        right = None if type(t) is Zero else t
        if type(s) is not Zero:
            da = triangle(
                s, self.is_lower, -int(self.has_unit_diagonal) if self.is_lower else int(self.has_unit_diagonal)
            )
            if self.form != "N":
                da = transposed(da) if self.form == "T" else adjoint(da)
            moved = elementwise.neg(matmul(da, x) if self.is_left else matmul(x, da))
            right = moved if right is None else elementwise.add(right, moved)
        return x, Zero(type_of(x).tangent()) if right is None else bind(self, a, right)

    def transpose(self, cotangent: Any, a: Any, b: Any) -> Any:
        turned = {"N": "T", "T": "N"}.get(self.form)
        if turned is None:  # the transpose of an adjoint is a conjugate, which LAPACK lacks
            a, turned = conversion.conj(a) if type_of(a).kind == "c" else a, "N"
        op = TriangularSolve(self.is_left, self.is_lower, turned, self.has_unit_diagonal)
        return None, bind(op, a, cotangent)

    def batch(self, batched: tuple[bool, ...], a: Any, b: Any) -> Any:
        size = type_of(a if batched[0] else b).shape[0]
        a, b = (x if f else shape.add_axis(x, size) for x, f in zip((a, b), batched, strict=True))
        return bind(self, a, b)


def triangular_solve(
    a: Any, b: Any, left: bool = True, lower: bool = False, form: str = "N", unit: bool = False
) -> Any:
    """x such that a x = b (or x a = b), for triangular a."""
    return bind(TriangularSolve(left, lower, form, unit), a, b)


class TridiagonalSolve(LinearOp):
    """x such that A x = b, for A with diagonals dl, d and du; dl[0] and du[-1] are ignored."""

    linear_in = ((3,),)

    def result_type(self, dl: ArrayType, d: ArrayType, du: ArrayType, b: ArrayType) -> ArrayType:
        fits = dl is d is du and b.ndim == d.ndim + 1 and b.shape[:-1] == d.shape and b.dtype is d.dtype
        if not fits or d.dtype not in _LETTER:
            raise TypeError(f"tridiagonal_solve: diagonals {dl}, {d}, {du} do not match {b}.")
        return b

    def lower(self, build: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
        t = b.type
        if t.size == 0:
            return b
        if build.platform != "cpu":
            raise NotImplementedError(f"tridiagonal_solve: there is no lowering for {build.platform} yet.")
        info = ArrayType(t.shape[:-2], INT)
        flat = lambda k: tuple(range(k))[::-1]  # noqa: E731
        layouts = [flat(t.ndim - 1)] * 3 + [_column_major(t.ndim)]
        types = (dl.type, d.type, du.type, t, info)
        name = f"lapack_{_LETTER[t.dtype]}gtsv_ffi"
        *_, x, code = build.custom_call(name, (dl, d, du, b), types, {}, layouts, [*layouts, flat(info.ndim)])
        return or_nan(build, code, x)[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (dl, d, du, b), (sl, s, su, t) = primals, tangents
        x = bind(self, dl, d, du, b)
        zero = lambda v, like: shape.zeros(type_of(like)) if type(v) is Zero else v  # noqa: E731
        right = None if type(t) is Zero else t
        if any(type(v) is not Zero for v in (sl, s, su)):
            moved = elementwise.neg(_tridiagonal_product(zero(sl, dl), zero(s, d), zero(su, du), x))
            right = moved if right is None else elementwise.add(right, moved)
        return x, Zero(type_of(x).tangent()) if right is None else bind(self, dl, d, du, right)

    def transpose(self, cotangent: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
        assert type(b) is Linear
        last = type_of(d).ndim - 1
        shift = lambda x, lo, hi: shape.pad(x, 0, [(0, 0, 0)] * last + [(lo, hi, 0)])  # noqa: E731
        return None, None, None, bind(self, shift(du, 1, -1), d, shift(dl, -1, 1), cotangent)

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        return Matrices.batch(self, batched, *operands)  # type: ignore[arg-type]


def _tridiagonal_product(dl: Any, d: Any, du: Any, x: Any) -> Any:
    t = type_of(x)
    row = t.ndim - 2
    spread = lambda v: shape.broadcast(v, t.shape, tuple(range(t.ndim - 1)))  # noqa: E731
    shift = lambda v, lo: shape.pad(v, 0, [(0, 0, 0)] * row + [(lo, -lo, 0), (0, 0, 0)])  # noqa: E731
    below = elementwise.mul(spread(dl), shift(x, 1))
    above = elementwise.mul(spread(du), shift(x, -1))
    return elementwise.add(elementwise.add(elementwise.mul(spread(d), x), below), above)


# -- permutations -----------------------------------------------------------------------------------------------------


def take_rows(a: Any, permutation: Any) -> Any:
    """The rows of each matrix in the order of a permutation."""
    t = type_of(a)
    indices = shape.broadcast(permutation, t.shape, tuple(range(t.ndim - 1)))
    return indexing.take_along(a, indices, t.ndim - 2)


def permutation_of(swaps: Any, m: int) -> Any:
    """The permutation of m rows that results from row exchanges (LAPACK's pivots) one after another.

    Each exchange becomes a permutation; adjacent permutations are composed pairwise, in log2(n) rounds.
    """
    t = type_of(swaps)
    lead, k = t.shape[:-1], t.shape[-1]
    d, dims = len(lead), (*lead, k, m)
    step, column = shape.iota(INT, dims, d), shape.iota(INT, dims, d + 1)
    partner = shape.broadcast(swaps, dims, tuple(range(d + 1)))
    rows = elementwise.select(
        elementwise.eq(column, step), partner, elementwise.select(elementwise.eq(column, partner), step, column)
    )
    if k == 0 or 0 in lead:
        return shape.iota(INT, (*lead, m), d)
    while k > 1:
        first, second = (shape.slice_in_axis(rows, i, k - k % 2, d, 2) for i in (0, 1))
        joined = indexing.take_along(first, second, d + 1)
        rows = shape.concatenate([joined, shape.slice_in_axis(rows, k - 1, k, d)], d) if k % 2 else joined
        k = k - k // 2
    return shape.reshape(rows, (*lead, m))
