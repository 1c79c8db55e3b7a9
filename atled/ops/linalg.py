"""Matrix decompositions of the last two axes, by LAPACK on the CPU.

A decomposition that fails returns NaN. Derivatives stay finite where eigenvalues or singular values are equal:
undetermined terms are defined as zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.ops import conversion, elementwise, shape
from atled.ops.matrix_ops import (
    INT,
    Matrices,
    adjoint,
    combined_inverted,
    diagonal,
    identity,
    lapack,
    letter,
    matmul,
    or_nan,
    permutation_of,
    scale_columns,
    take_rows,
    triangle,
    triangular_solve,
)


class Cholesky(Matrices):
    """The lower triangular L with L L* = a, for positive definite a; only the lower triangle of a is read."""

    gives_tuple = False

    def result_type(self, a: ArrayType) -> ArrayType:
        self.check(a, square=True)
        return a.strong()

    def lower(self, build: Any, a: Any) -> Any:
        if a.type.size == 0:
            return a
        out = self.result_type(a.type)
        if build.platform != "cpu":
            factor = build.emit("stablehlo.cholesky", (a,), (out,), {"lower": True})
        else:
            info = ArrayType(out.shape[:-2], INT)
            factor, code = lapack(build, self, "potrf", (a,), (out, info), uplo=letter("L"))
            (factor,) = or_nan(build, code, factor)
        return build.apply(lambda x: triangle(x, True), factor)

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
    """The LU decomposition a[permutation] = L U: L and U in one matrix, the pivots, and the permutation."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType, ArrayType]:
        self.check(a)
        *lead, m, n = a.shape
        return a.strong(), ArrayType((*lead, min(m, n)), INT), ArrayType((*lead, m), INT)

    def lower(self, build: Any, a: Any) -> Any:
        out, pivots, permutation = self.result_type(a.type)
        *lead, m, _ = out.shape
        if out.size == 0:
            rows = build.emit("stablehlo.iota", (), (permutation,), {"iota_dimension": len(lead)})
            return a, build.constant(0, pivots), rows
        info = ArrayType(tuple(lead), INT)
        packed, swaps, code = lapack(build, self, "getrf", (a,), (out, pivots, info))
        code = build.apply(lambda c: elementwise.minimum(c, 0), code)  # a singular U is not an error
        swaps = build.apply(lambda s: elementwise.sub(s, 1), swaps)
        return or_nan(build, code, packed)[0], swaps, build.apply(lambda s: permutation_of(s, m), swaps)

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


def _padded_unit(lu: Any, size: int, k: int, lower: bool) -> Any:
    """L or U of a packed decomposition, extended to a square matrix by a unit block."""
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
    """The product of Householder reflectors, whose vectors are below the diagonal of a, and their scales in taus."""

    gives_tuple = False

    def result_type(self, a: ArrayType, taus: ArrayType) -> ArrayType:
        self.check(a, taus)
        if taus.shape[:-1] != a.shape[:-2] or a.shape[-2] < a.shape[-1] or taus.shape[-1] > a.shape[-1]:
            raise TypeError(f"householder_product: reflectors {a} and scales {taus} have incompatible shapes.")
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
            if k != m:
                return build.constant(0, q), build.constant(0, r)
            return build.apply(lambda _: (identity(ArrayType((*lead, m, m), a.type.dtype), m), shape.zeros(r)), a)
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
        if m < n:  # the first m columns determine Q; the others affect only R
            last = type_of(a).ndim - 1
            cut = lambda x, lo, hi: shape.slice_in_axis(x, lo, hi, last)  # noqa: E731
            dq, dr = _qr_tangent(q, cut(r, 0, m), cut(t, 0, m))
            rest = matmul(adjoint(q), elementwise.sub(cut(t, m, n), matmul(dq, cut(r, m, n))))
            return (q, r), (dq, shape.concatenate([dr, rest], last))
        return (q, r), _qr_tangent(q, r, t)


class ColumnOrder(Matrices):
    """The permutation of columns in a QR decomposition with column pivoting."""

    gives_tuple = False

    def result_type(self, a: ArrayType) -> ArrayType:
        self.check(a)
        return ArrayType((*a.shape[:-2], a.shape[-1]), INT)

    def lower(self, build: Any, a: Any) -> Any:
        order = self.result_type(a.type)
        *lead, m, n = a.type.shape
        if a.type.size == 0:
            return build.emit("stablehlo.iota", (), (order,), {"iota_dimension": len(lead)})
        scales = ArrayType((*lead, min(m, n)), a.type.dtype)
        free = build.constant(0, order)
        _, pivots, _ = lapack(build, self, "geqp3", (a, free), (a.type.strong(), order, scales))
        return build.apply(lambda p: elementwise.sub(p, 1), pivots)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        order = bind(self, *primals)
        return order, Zero(type_of(order).tangent())


def _qr_tangent(q: Any, r: Any, t: Any) -> tuple[Any, Any]:
    scaled = triangular_solve(r, t, left=False, lower=False)  # dA R^-1
    inner = matmul(adjoint(q), scaled)
    below = triangle(inner, True, -1)
    turn = elementwise.sub(below, adjoint(below))  # dQ is Q times a skew matrix, and a part outside of the span of Q
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
    """Eigenvalues in ascending order and eigenvectors of Hermitian a; only the lower triangle of a is read."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a, square=True)
        return ArrayType(a.shape[:-1], dtypes.real_part(a.dtype)), a.strong()

    def lower(self, build: Any, a: Any) -> Any:
        values, vectors = self.result_type(a.type)
        if a.type.size == 0:
            return build.constant(0, values), a
        info = ArrayType(a.type.shape[:-2], INT)
        name = "heevd" if a.type.kind == "c" else "syevd"
        v, w, code = lapack(build, self, name, (a,), (vectors, values, info), mode=letter("V"), uplo=letter("L"))
        v, w = or_nan(build, code, v, w)
        return w, v

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        w, v = bind(self, a)
        inner = matmul(matmul(adjoint(v), _hermitian_of_lower(t)), v)
        gaps = conversion.convert(combined_inverted(w, elementwise.sub), type_of(v).dtype)
        dw = diagonal(inner)
        dw = conversion.real(dw) if type_of(v).kind == "c" else dw
        return (w, v), (dw, matmul(v, elementwise.mul(gaps, inner)))


class Svd(Matrices):
    """Singular values s in descending order and, if `with_vectors`, U and V*, with a = U diag(s) V*."""

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
        info = ArrayType(a.type.shape[:-2], INT)
        mode = ("A" if self.is_full else "S") if self.with_vectors else "N"
        _, *factors, code = lapack(build, self, "gesdd", (a,), (a.type.strong(), s, u, vt, info), mode=letter(mode))
        return or_nan(build, code, *(factors if self.with_vectors else factors[:1]))

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
        # dU = U K and dV = V L with skew K and L: K + L follows from inner + inner*, K - L from inner - inner*
        of = lambda combine: conversion.convert(combined_inverted(s, combine), type_of(a).dtype)  # noqa: E731
        both = elementwise.mul(elementwise.add(inner, adjoint(inner)), of(elementwise.sub))
        turn = elementwise.mul(elementwise.sub(inner, adjoint(inner)), of(elementwise.add))
        du = matmul(u, elementwise.mul(elementwise.add(both, turn), 0.5))
        dv = matmul(v, elementwise.mul(elementwise.sub(both, turn), 0.5))
        is_zero = elementwise.eq(s, 0)
        one, zero = (np.asarray(x, type_of(s).dtype) for x in (1, 0))
        inverse = elementwise.select(is_zero, zero, elementwise.div(one, elementwise.select(is_zero, one, s)))
        if m > n:
            outside = matmul(t, v)
            outside = elementwise.sub(outside, matmul(u, matmul(adjoint(u), outside)))
            du = elementwise.add(du, scale_columns(outside, inverse))
        if n > m:
            outside = matmul(adjoint(t), u)
            outside = elementwise.sub(outside, matmul(v, matmul(adjoint(v), outside)))
            dv = elementwise.add(dv, scale_columns(outside, inverse))
        return (s, u, vt), (ds, du, adjoint(dv))
