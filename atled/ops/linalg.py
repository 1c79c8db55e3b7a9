"""Matrix decompositions and solvers, on the last two axes. On the CPU they run in LAPACK.

A decomposition that fails gives NaN. Derivatives stay finite where eigenvalues or singular values are equal: the part that
is not determined there is taken to be zero, which is right for every function that does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.compiler.builder import I32, U8
from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp, Op
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import contraction, conversion, elementary, elementwise, indexing, reduction, shape

_LETTER = {dtypes.float32: "s", dtypes.float64: "d", dtypes.complex64: "c", dtypes.complex128: "z"}
_INT = np.dtype(np.int32)


# -- building blocks --------------------------------------------------------------------------------------------------


def matmul(a: Any, b: Any) -> Any:
    """Matrix products over the last two axes; the leading axes agree."""
    n = type_of(a).ndim
    lead = tuple(range(n - 2))
    return contraction.dot_general(a, b, ((n - 1,), (n - 2,)), (lead, lead), "HIGHEST")


def transposed(a: Any) -> Any:
    """The last two axes exchanged."""
    n = type_of(a).ndim
    return shape.transpose(a, (*range(n - 2), n - 1, n - 2))


def adjoint(a: Any) -> Any:
    """Transposed and conjugated."""
    return transposed(conversion.conj(a) if type_of(a).kind == "c" else a)


def triangle(a: Any, lower: bool, offset: int = 0) -> Any:
    """The lower or upper triangle, up to a diagonal; zero elsewhere."""
    t = type_of(a)
    rows, columns = (shape.iota(_INT, t.shape[-2:], i) for i in (0, 1))
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
    """Unit matrices with the leading axes and dtype of a type."""
    rows, columns = (shape.iota(_INT, (n, n), i) for i in (0, 1))
    eye = conversion.convert(elementwise.eq(rows, columns), like.dtype)
    return shape.broadcast(eye, (*like.shape[:-2], n, n), (like.ndim - 2, like.ndim - 1))


def _differences_inverted(w: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """1 / combine(w[j], w[i]) as a matrix, and zero where that would be infinite."""
    t = type_of(w)
    n = t.shape[-1]
    dims = (*t.shape[:-1], n, n)
    lead = tuple(range(t.ndim - 1))
    gap = combine(shape.broadcast(w, dims, (*lead, t.ndim)), shape.broadcast(w, dims, (*lead, t.ndim - 1)))
    is_zero = elementwise.eq(gap, 0)
    one, zero = (np.asarray(v, t.dtype) for v in (1, 0))
    return elementwise.select(is_zero, zero, elementwise.div(one, elementwise.select(is_zero, one, gap)))


class Matrices(Op):
    """The family: ops on the last two axes of arrays. A batch axis is one more leading axis."""

    gives_tuple = True

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
    """Call a LAPACK routine; matrices are column-major there."""
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


def _char(letter: str) -> U8:
    return U8(ord(letter))


def _or_nan(build: Any, info: Any, *values: Any) -> tuple[Any, ...]:
    """Values where the routine says that it went well, else NaN."""

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
    """x such that a x = b (or x a = b), for triangular a. The other triangle of a is not looked at."""

    linear_in = ((1,),)
    is_left: bool
    is_lower: bool
    form: str = "N"  # a itself, its transpose "T", or its adjoint "C"
    has_unit_diagonal: bool = False

    def result_type(self, a: ArrayType, b: ArrayType) -> ArrayType:
        fits = a.ndim == b.ndim >= 2 and a.shape[:-2] == b.shape[:-2] and a.shape[-1] == a.shape[-2]
        if not fits or a.shape[-1] != b.shape[-2 if self.is_left else -1] or a.dtype is not b.dtype:
            raise TypeError(f"triangular_solve: {a} cannot be solved for {b}.")
        if a.dtype not in _LETTER:
            raise TypeError(f"triangular_solve: float32, float64, complex64 or complex128 are needed; got {a}.")
        return b.strong()

    def lower(self, build: Any, a: Any, b: Any) -> Any:
        if b.type.size == 0:
            return b
        out = self.result_type(a.type, b.type)
        if build.platform == "cpu":
            config = {
                "side": _char("L" if self.is_left else "R"),
                "uplo": _char("L" if self.is_lower else "U"),
                "trans_x": _char(self.form),
                "diag": _char("U" if self.has_unit_diagonal else "N"),
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
        if turned is None:  # the transpose of an adjoint is a conjugate
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
    """x such that A x = b, for A with diagonals dl, d and du; dl[0] and du[-1] are not looked at."""

    linear_in = ((3,),)

    def result_type(self, dl: ArrayType, d: ArrayType, du: ArrayType, b: ArrayType) -> ArrayType:
        fits = dl is d is du and b.ndim == d.ndim + 1 and b.shape[:-1] == d.shape and b.dtype is d.dtype
        if not fits or d.dtype not in _LETTER:
            raise TypeError(f"tridiagonal_solve: diagonals {dl}, {d}, {du} do not fit {b}.")
        return b

    def lower(self, build: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
        t = b.type
        if t.size == 0:
            return b
        if build.platform != "cpu":
            raise NotImplementedError(f"tridiagonal_solve: there is no lowering for {build.platform} yet.")
        info = ArrayType(t.shape[:-2], _INT)
        flat = lambda k: tuple(range(k))[::-1]  # noqa: E731
        layouts = [flat(t.ndim - 1)] * 3 + [_column_major(t.ndim)]
        types = (dl.type, d.type, du.type, t, info)
        name = f"lapack_{_LETTER[t.dtype]}gtsv_ffi"
        *_, x, code = build.custom_call(name, (dl, d, du, b), types, {}, layouts, [*layouts, flat(info.ndim)])
        return _or_nan(build, code, x)[0]

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


# -- decompositions ---------------------------------------------------------------------------------------------------


class Cholesky(Matrices):
    """The lower triangular L with L L* = a, for positive definite a, of which the lower triangle is read."""

    gives_tuple = False

    def result_type(self, a: ArrayType) -> ArrayType:
        self.check(a, square=True)
        return a.strong()

    def lower(self, build: Any, a: Any) -> Any:
        if a.type.size == 0:
            return a
        out = self.result_type(a.type)
        if build.platform != "cpu":
            found = build.emit("stablehlo.cholesky", (a,), (out,), {"lower": True})
        else:
            info = ArrayType(out.shape[:-2], _INT)
            found, code = lapack(build, self, "potrf", (a,), (out, info), uplo=_char("L"))
            (found,) = _or_nan(build, code, found)
        return build.apply(lambda x: triangle(x, True), found)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        root = bind(self, a)
        t = _hermitian_of_lower(t)
        inner = triangular_solve(root, t, left=False, lower=True, form="C")
        inner = triangular_solve(root, inner, left=True, lower=True)
        half = elementwise.sub(triangle(inner, True), elementwise.mul(_diagonal_only(inner), 0.5))
        return root, matmul(root, half)


def _hermitian_of_lower(a: Any) -> Any:
    """The Hermitian matrix whose lower triangle is that of a."""
    below = triangle(a, True, -1)
    middle = _diagonal_only(a)
    if type_of(a).kind == "c":
        middle = conversion.convert(conversion.real(middle), type_of(a).dtype)
    return elementwise.add(elementwise.add(below, adjoint(below)), middle)


def _diagonal_only(a: Any) -> Any:
    return elementwise.mul(a, identity(type_of(a), type_of(a).shape[-1]))


class Lu(Matrices):
    """L and U in one matrix, the row exchanges, and the permutation, of a[permutation] = L U."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType, ArrayType]:
        self.check(a)
        *lead, m, n = a.shape
        return a.strong(), ArrayType((*lead, min(m, n)), _INT), ArrayType((*lead, m), _INT)

    def lower(self, build: Any, a: Any) -> Any:
        out, pivots, permutation = self.result_type(a.type)
        *lead, m, _ = out.shape
        if out.size == 0:
            rows = build.emit("stablehlo.iota", (), (permutation,), {"iota_dimension": len(lead)})
            return a, build.constant(0, pivots), rows
        info = ArrayType(tuple(lead), _INT)
        found, swaps, code = lapack(build, self, "getrf", (a,), (out, pivots, info))
        code = build.apply(lambda c: elementwise.minimum(c, 0), code)  # a singular U is no failure
        swaps = build.apply(lambda s: elementwise.sub(s, 1), swaps)
        return _or_nan(build, code, found)[0], swaps, build.apply(lambda s: _permutation(s, m), swaps)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        lu, pivots, permutation = bind(self, a)
        m, n = type_of(a).shape[-2:]
        k = min(m, n)
        moved = take_rows(t, permutation)
        left = _padded_unit(lu, m, k, True)
        right = _padded_unit(lu, n, k, False)
        inner = triangular_solve(left, moved, left=True, lower=True, unit=True)
        inner = triangular_solve(right, inner, left=False, lower=False)
        below, above = triangle(inner, True, -1), triangle(inner, False)
        tangent = elementwise.add(matmul(left, below), matmul(above, right))
        zeros = [Zero(type_of(x).tangent()) for x in (pivots, permutation)]
        return (lu, pivots, permutation), (tangent, *zeros)


def _permutation(swaps: Any, m: int) -> Any:
    """Row exchanges as a permutation of m rows."""
    t = type_of(swaps)
    lead, k = t.shape[:-1], t.shape[-1]
    rows = shape.iota(_INT, (*lead, m), len(lead))
    column = shape.iota(_INT, (*lead, m), len(lead))
    for i in range(k):
        j = shape.broadcast(shape.index_in_axis(swaps, i, len(lead)), (*lead, m), tuple(range(len(lead))))
        at_j = elementwise.eq(column, j)
        value_i = shape.broadcast(shape.index_in_axis(rows, i, len(lead)), (*lead, m), tuple(range(len(lead))))
        masked = elementwise.select(at_j, rows, np.zeros((), _INT))
        value_j = shape.broadcast(reduction.reduce_sum(masked, (len(lead),)), (*lead, m), tuple(range(len(lead))))
        at_i = elementwise.eq(column, i)
        rows = elementwise.select(at_i, value_j, elementwise.select(at_j, value_i, rows))
    return rows


def take_rows(a: Any, permutation: Any) -> Any:
    """Rows of each matrix in another order."""
    t = type_of(a)
    indices = shape.broadcast(permutation, t.shape, tuple(range(t.ndim - 1)))
    return indexing.take_along(a, indices, t.ndim - 2)


def _padded_unit(lu: Any, size: int, k: int, lower: bool) -> Any:
    """L or U of a packed decomposition, completed to a square matrix with a unit block."""
    t = type_of(lu)
    lead = [(0, 0, 0)] * (t.ndim - 2)
    if lower:
        part = shape.slice_in_axis(triangle(lu, True, -1), 0, k, t.ndim - 1)
        part = shape.pad(part, 0, [*lead, (0, 0, 0), (0, size - k, 0)])
        return elementwise.add(part, identity(t, size))
    part = shape.slice_in_axis(triangle(lu, False), 0, k, t.ndim - 2)
    part = shape.pad(part, 0, [*lead, (0, size - k, 0), (0, 0, 0)])
    corner = shape.pad(identity(t, size - k), 0, [*lead, (k, 0, 0), (k, 0, 0)])
    return elementwise.add(part, corner)


class HouseholderProduct(Matrices):
    """The orthogonal matrix that the reflectors below the diagonal of a, with scales taus, multiply to."""

    gives_tuple = False

    def result_type(self, a: ArrayType, taus: ArrayType) -> ArrayType:
        self.check(a, taus)
        if taus.shape[:-1] != a.shape[:-2] or a.shape[-2] < a.shape[-1] or taus.shape[-1] > a.shape[-1]:
            raise TypeError(f"householder_product: reflectors {a} and scales {taus} do not fit.")
        return a.strong()

    def lower(self, build: Any, a: Any, taus: Any) -> Any:
        if a.type.size == 0:
            return a
        out = self.result_type(a.type, taus.type)
        name = "ungqr" if a.type.kind == "c" else "orgqr"
        return lapack(build, self, name, (a, taus), (out,))


class Qr(Matrices):
    """Q with orthonormal columns and upper triangular R with Q R = a."""

    is_full: bool = False

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a)
        *lead, m, n = a.shape
        k = m if self.is_full else min(m, n)
        return ArrayType((*lead, m, k), a.dtype), ArrayType((*lead, k, n), a.dtype)

    def lower(self, build: Any, a: Any) -> Any:
        q, r = self.result_type(a.type)
        *lead, m, n = a.type.shape
        k = q.shape[-1]
        if a.type.size == 0:
            return build.apply(lambda _: (identity(ArrayType((*lead, m, m), a.type.dtype), m), shape.zeros(r)), a) if k == m else (
                build.constant(0, q), build.constant(0, r))  # fmt: skip
        taus = ArrayType((*lead, min(m, n)), a.type.dtype)
        packed, scales = lapack(build, self, "geqrf", (a,), (a.type.strong(), taus))
        upper = build.apply(lambda x: _fit_rows(triangle(x, False), k), packed)
        reflectors = build.apply(lambda x: _fit_columns(x, k), packed)
        return HouseholderProduct().lower(build, reflectors, scales), upper

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        q, r = bind(self, a)
        m, n = type_of(a).shape[-2:]
        if self.is_full and m > n:
            raise NotImplementedError(
                "Qr has no derivative for full_matrices=True and more rows than columns; use mode='reduced'."
            )
        if m < n:  # the first m columns determine Q; the others only R
            last = type_of(a).ndim - 1
            cut = lambda x, lo, hi: shape.slice_in_axis(x, lo, hi, last)  # noqa: E731
            dq, dr = _qr_tangent(q, cut(r, 0, m), cut(t, 0, m))
            rest = matmul(adjoint(q), elementwise.sub(cut(t, m, n), matmul(dq, cut(r, m, n))))
            return (q, r), (dq, shape.concatenate([dr, rest], last))
        return (q, r), _qr_tangent(q, r, t)


def _qr_tangent(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    scaled = triangular_solve(r, t, left=False, lower=False)  # dA R^-1
    inner = matmul(adjoint(q), scaled)
    below = triangle(inner, True, -1)
    turn = elementwise.sub(below, adjoint(below))  # dQ turns the columns of Q by a skew matrix
    if type_of(q).kind == "c":
        middle = _diagonal_only(inner)
        turn = elementwise.add(
            turn, elementwise.sub(middle, conversion.convert(conversion.real(middle), type_of(q).dtype))
        )
    rest = elementwise.sub(inner, turn)
    return elementwise.sub(scaled, matmul(q, rest)), matmul(rest, r)


def _fit_rows(a: Any, k: int) -> Any:
    t = type_of(a)
    return shape.pad(a, 0, [(0, 0, 0)] * (t.ndim - 2) + [(0, k - t.shape[-2], 0), (0, 0, 0)])


def _fit_columns(a: Any, k: int) -> Any:
    t = type_of(a)
    return shape.pad(a, 0, [(0, 0, 0)] * (t.ndim - 1) + [(0, k - t.shape[-1], 0)])


class Eigh(Matrices):
    """Eigenvalues, ascending, and eigenvectors of Hermitian a, of which the lower triangle is read."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a, square=True)
        return ArrayType(a.shape[:-1], dtypes.real_part(a.dtype)), a.strong()

    def lower(self, build: Any, a: Any) -> Any:
        values, vectors = self.result_type(a.type)
        if a.type.size == 0:
            return build.constant(0, values), a
        info = ArrayType(a.type.shape[:-2], _INT)
        name = "heevd" if a.type.kind == "c" else "syevd"
        v, w, code = lapack(build, self, name, (a,), (vectors, values, info), mode=_char("V"), uplo=_char("L"))
        v, w = _or_nan(build, code, v, w)
        return w, v

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        w, v = bind(self, a)
        inner = matmul(matmul(adjoint(v), _hermitian_of_lower(t)), v)
        gaps = conversion.convert(_differences_inverted(w, elementwise.sub), type_of(v).dtype)
        dw = diagonal(inner)
        dw = conversion.real(dw) if type_of(v).kind == "c" else dw
        return (w, v), (dw, matmul(v, elementwise.mul(gaps, inner)))


class Svd(Matrices):
    """Singular values, descending, and with `with_vectors` also U and V* of a = U diag(s) V*."""

    is_full: bool = False
    with_vectors: bool = True

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ...]:
        self.check(a)
        *lead, m, n = a.shape
        k = min(m, n)
        s = ArrayType((*lead, k), dtypes.real_part(a.dtype))
        if not self.with_vectors:
            return (s,)
        rows, columns = (m, n) if self.is_full else (k, k)
        return s, ArrayType((*lead, m, rows), a.dtype), ArrayType((*lead, columns, n), a.dtype)

    def lower(self, build: Any, a: Any) -> Any:
        s, u, vt = Svd(self.is_full, True).result_type(a.type)
        if a.type.size == 0:

            def empty(t: ArrayType) -> Any:
                return (
                    build.apply(lambda _: identity(t, t.shape[-1]), a)
                    if t.shape[-1] == t.shape[-2]
                    else build.constant(0, t)
                )

            return (build.constant(0, s), empty(u), empty(vt)) if self.with_vectors else (build.constant(0, s),)
        info = ArrayType(a.type.shape[:-2], _INT)
        mode = ("A" if self.is_full else "S") if self.with_vectors else "N"
        _, *found, code = lapack(build, self, "gesdd", (a,), (a.type.strong(), s, u, vt, info), mode=_char(mode))
        return _or_nan(build, code, *(found if self.with_vectors else found[:1]))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        m, n = type_of(a).shape[-2:]
        if self.with_vectors and self.is_full and m != n:
            raise NotImplementedError("Svd has no derivative for full_matrices=True of a matrix that is not square.")
        s, u, vt = bind(Svd(False, True), a)
        is_complex = type_of(a).kind == "c"
        v = adjoint(vt)
        inner = matmul(matmul(adjoint(u), t), v)
        ds = diagonal(inner)
        ds = conversion.real(ds) if is_complex else ds
        if not self.with_vectors:
            return (s,), (ds,)
        squares = lambda x, y: elementwise.mul(elementwise.add(x, y), elementwise.sub(x, y))  # noqa: E731
        gaps = conversion.convert(_differences_inverted(s, squares), type_of(a).dtype)
        right, left = scale_columns(inner, s), scale_rows(inner, s)
        du = matmul(u, elementwise.mul(gaps, elementwise.add(right, adjoint(right))))
        dv = matmul(v, elementwise.mul(gaps, elementwise.add(left, adjoint(left))))
        is_zero = elementwise.eq(s, 0)
        one, zero = (np.asarray(x, type_of(s).dtype) for x in (1, 0))
        inverse = elementwise.select(is_zero, zero, elementwise.div(one, elementwise.select(is_zero, one, s)))
        if is_complex:  # the phase of each pair of vectors is free; it is put into u
            skew = elementwise.mul(elementwise.sub(_diagonal_only(inner), adjoint(_diagonal_only(inner))), 0.5)
            du = elementwise.add(du, matmul(u, scale_columns(skew, inverse)))
        if m > n:
            outside = matmul(t, v)
            outside = elementwise.sub(outside, matmul(u, matmul(adjoint(u), outside)))
            du = elementwise.add(du, scale_columns(outside, inverse))
        if n > m:
            outside = matmul(adjoint(t), u)
            outside = elementwise.sub(outside, matmul(v, matmul(adjoint(v), outside)))
            dv = elementwise.add(dv, scale_columns(outside, inverse))
        return (s, u, vt), (ds, du, adjoint(dv))


class Eig(Matrices):
    """Eigenvalues and, with `with_vectors`, right eigenvectors of any square a, both complex."""

    with_vectors: bool = True

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ...]:
        self.check(a, square=True)
        dtype = dtypes.complex_of(a.dtype)
        values = ArrayType(a.shape[:-1], dtype)
        return (values, ArrayType(a.shape, dtype)) if self.with_vectors else (values,)

    def lower(self, build: Any, a: Any) -> Any:
        types = Eig(True).result_type(a.type)
        values, vectors = types
        if a.type.size == 0:
            return tuple([build.constant(0, t) for t in self.result_type(a.type)])
        info = ArrayType(a.type.shape[:-2], _INT)
        config = {"compute_left": _char("N"), "compute_right": _char("V" if self.with_vectors else "N")}
        if a.type.kind == "c":
            w, _, v, code = lapack(build, self, "geev", (a,), (values, vectors, vectors, info), **config)
        else:
            part = ArrayType(values.shape, a.type.dtype)
            re, im, _, v, code = lapack(build, self, "geev", (a,), (part, part, vectors, vectors, info), **config)
            w = build.apply(conversion.complex, re, im)
        return _or_nan(build, code, w, v) if self.with_vectors else _or_nan(build, code, w)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        w, v = bind(Eig(True), a)
        t = conversion.convert(t, type_of(v).dtype)
        inner = solve(v, matmul(t, v))
        dw = diagonal(inner)
        if not self.with_vectors:
            return (w,), (dw,)
        gaps = _differences_inverted(w, elementwise.sub)
        dv = matmul(v, elementwise.mul(gaps, inner))
        # vectors keep their length, and their largest component stays real
        lead = tuple(range(type_of(w).ndim))
        rows = type_of(v).ndim - 2
        overlap = conversion.real(reduction.reduce_sum(elementwise.mul(conversion.conj(v), dv), (rows,)))
        size = elementary.absolute(v)
        top = shape.broadcast(reduction.reduce_max(size, (rows,)), type_of(size).shape, (*lead[:-1], rows + 1))
        picked = elementwise.select(elementwise.eq(size, top), elementwise.div(dv, v), np.zeros((), type_of(v).dtype))
        phase = conversion.imag(reduction.reduce_sum(picked, (rows,)))
        return (w, v), (dw, elementwise.sub(dv, scale_columns(v, conversion.complex(overlap, phase))))


def solve(a: Any, b: Any) -> Any:
    """x such that a x = b, for square a, by LU decomposition."""
    lu, _, permutation = bind(Lu(), a)
    y = triangular_solve(lu, take_rows(b, permutation), left=True, lower=True, unit=True)
    return triangular_solve(lu, y, left=True, lower=False)


class Schur(Matrices):
    """The Schur form T, upper triangular in blocks, and unitary Z with Z T Z* = a."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a, square=True)
        return a.strong(), a.strong()

    def lower(self, build: Any, a: Any) -> Any:
        t = a.type.strong()
        if t.size == 0:
            return a, a
        info, values = ArrayType(t.shape[:-2], _INT), ArrayType(t.shape[:-1], t.dtype)
        parts = (values,) if t.kind == "c" else (values, values)
        form, vectors, *_, code = lapack(
            build, self, "gees", (a,), (t, t, *parts, info, info), mode=_char("V"), sort=_char("N")
        )
        return _or_nan(build, code, form, vectors)


class Hessenberg(Matrices):
    """The Hessenberg form of a, with the reflectors that make it below the first subdiagonal, and their scales."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a, square=True)
        return a.strong(), ArrayType((*a.shape[:-2], max(a.shape[-1] - 1, 0)), a.dtype)

    def lower(self, build: Any, a: Any) -> Any:
        out, taus = self.result_type(a.type)
        if out.size == 0:
            return a, build.constant(0, taus)
        info = ArrayType(out.shape[:-2], _INT)
        n = I32(a.type.shape[-1])
        found, scales, code = lapack(build, self, "gehrd", (a,), (out, taus, info), low=I32(1), high=n)
        return _or_nan(build, code, found, scales)
