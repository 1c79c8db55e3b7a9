"""Decompositions of matrices that need not be Hermitian: eigenvalues, Schur, Hessenberg and tridiagonal forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.compiler.builder import I32
from atled.core import dtypes
from atled.core.array import type_of
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.ops import conversion, elementary, elementwise, reduction, shape, solvers
from atled.ops.matrix_ops import (
    INT,
    Matrices,
    combined_inverted,
    diagonal,
    lapack,
    letter,
    matmul,
    or_nan,
    scale_columns,
)


class Eig(Matrices):
    """Complex eigenvalues and, if `with_vectors`, right eigenvectors of any square a."""

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
        info = ArrayType(a.type.shape[:-2], INT)
        config = {"compute_left": letter("N"), "compute_right": letter("V" if self.with_vectors else "N")}
        if a.type.kind == "c":
            w, _, v, code = lapack(build, self, "geev", (a,), (values, vectors, vectors, info), **config)
        else:
            part = ArrayType(values.shape, a.type.dtype)
            re, im, _, v, code = lapack(build, self, "geev", (a,), (part, part, vectors, vectors, info), **config)
            w = build.apply(conversion.complex, re, im)
        return or_nan(build, code, w, v) if self.with_vectors else or_nan(build, code, w)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (t,) = primals, tangents
        w, v = bind(Eig(True), a)
        t = conversion.convert(t, type_of(v).dtype)
        inner = solvers.solve_matrices(v, matmul(t, v))
        dw = diagonal(inner)
        if not self.with_vectors:
            return (w,), (dw,)
        gaps = combined_inverted(w, elementwise.sub)
        dv = matmul(v, elementwise.mul(gaps, inner))
        # LAPACK's vectors have length 1 and a real largest component: remove the tangent that would change this
        lead = tuple(range(type_of(w).ndim))
        rows = type_of(v).ndim - 2
        overlap = conversion.real(reduction.reduce_sum(elementwise.mul(conversion.conj(v), dv), (rows,)))
        size = elementary.absolute(v)
        top = shape.broadcast(reduction.reduce_max(size, (rows,)), type_of(size).shape, (*lead[:-1], rows + 1))
        picked = elementwise.select(elementwise.eq(size, top), elementwise.div(dv, v), np.zeros((), type_of(v).dtype))
        phase = conversion.imag(reduction.reduce_sum(picked, (rows,)))
        return (w, v), (dw, elementwise.sub(dv, scale_columns(v, conversion.complex(overlap, phase))))


class Schur(Matrices):
    """The block upper triangular Schur form T, and unitary Z, with Z T Z* = a."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a, square=True)
        return a.strong(), a.strong()

    def lower(self, build: Any, a: Any) -> Any:
        t = a.type.strong()
        if t.size == 0:
            return a, a
        info, values = ArrayType(t.shape[:-2], INT), ArrayType(t.shape[:-1], t.dtype)
        parts = (values,) if t.kind == "c" else (values, values)
        form, vectors, *_, code = lapack(
            build, self, "gees", (a,), (t, t, *parts, info, info), mode=letter("V"), sort=letter("N")
        )
        return or_nan(build, code, form, vectors)


class Hessenberg(Matrices):
    """The Hessenberg form of a, packed with its Householder vectors below the first subdiagonal, and their scales."""

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ArrayType]:
        self.check(a, square=True)
        return a.strong(), ArrayType((*a.shape[:-2], max(a.shape[-1] - 1, 0)), a.dtype)

    def lower(self, build: Any, a: Any) -> Any:
        out, taus = self.result_type(a.type)
        if out.size == 0:
            return a, build.constant(0, taus)
        info = ArrayType(out.shape[:-2], INT)
        n = I32(a.type.shape[-1])
        packed, scales, code = lapack(build, self, "gehrd", (a,), (out, taus, info), low=I32(1), high=n)
        return or_nan(build, code, packed, scales)


class Tridiagonal(Matrices):
    """The tridiagonal form of Hermitian a, packed with Householder vectors; its diagonals; and the vectors' scales."""

    is_lower: bool = True

    def result_type(self, a: ArrayType) -> tuple[ArrayType, ...]:
        self.check(a, square=True)
        if a.shape[-1] == 0:
            raise TypeError(
                f"tridiagonal: expected square matrices on the last two axes, with at least one row; got {a}."
            )
        lead, n, real = a.shape[:-2], a.shape[-1], dtypes.real_part(a.dtype)
        return (
            a.strong(), ArrayType((*lead, n), real), ArrayType((*lead, n - 1), real), ArrayType((*lead, n - 1), a.dtype)
        )  # fmt: skip

    def lower(self, build: Any, a: Any) -> Any:
        types = self.result_type(a.type)
        info = ArrayType(a.type.shape[:-2], INT)
        name = "hetrd" if a.type.kind == "c" else "sytrd"
        uplo = letter("L" if self.is_lower else "U")
        *out, code = lapack(build, self, name, (a,), (*types, info), uplo=uplo)
        return or_nan(build, code, *out)
