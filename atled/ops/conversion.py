"""Conversions between dtypes, between values and their bits, and between complex numbers and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.compiler.builder import I32
from atled.core import dtypes
from atled.core.array import Array, type_of
from atled.core.basic_ops import arithmetic
from atled.core.op import Op
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import elementwise, mask_rules
from atled.ops.elementwise_family import ArrayLike, LinearElementwise, function, spread_tangent, unspread, zero_like


class Convert(LinearElementwise):
    """x in another dtype."""

    takes = "biufc"
    dtype: Any
    weak: bool = False

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, self.dtype, self.weak)

    def lower(self, build: Any, x: Any) -> Any:
        out = self.result_type(x.type)
        kind, to = x.type.kind, dtypes.kind(self.dtype)
        if to == "b":
            return build.apply(lambda v: elementwise.ne(v, 0), x)
        if kind == "c" and to != "c":
            x = build.emit("stablehlo.real", (x,), (ArrayType(x.type.shape, dtypes.real_part(x.type.dtype)),))
        if x.type.dtype is self.dtype:
            return type(x)(x.handle, out, x.literal)
        return build.emit("stablehlo.convert", (x,), (out,))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = bind(self, x)
        if not dtypes.is_inexact(self.dtype) or type(t) is Zero:
            return out, Zero(type_of(out).tangent())
        return out, convert(t, self.dtype)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (convert(cotangent, x.type.dtype),)


class BitcastConvert(Op):
    """The bits of x read as another dtype; a narrower one adds a trailing axis, a wider one removes the last axis."""

    dtype: Any

    def result_type(self, x: ArrayType) -> ArrayType:
        if x.kind == "k" or (x.dtype is dtypes.bool_) != (self.dtype is dtypes.bool_):
            raise TypeError(f"bitcast_convert: {x} cannot be read as {self.dtype.name}.")
        if x.dtype is not self.dtype and "c" in (x.kind, dtypes.kind(self.dtype)):
            raise TypeError(f"bitcast_convert: {x} cannot be read as {self.dtype.name}.")
        old, new = dtypes.bits(x.dtype), dtypes.bits(self.dtype)
        if old == new:
            return ArrayType(x.shape, self.dtype)
        if old > new:
            return ArrayType((*x.shape, old // new), self.dtype)
        if not x.shape or x.shape[-1] * old != new:
            raise TypeError(
                f"bitcast_convert: the last axis of {x} must hold {new // old} elements "
                f"to be read as {self.dtype.name}."
            )
        return ArrayType(x.shape[:-1], self.dtype)

    def lower(self, build: Any, x: Any) -> Any:
        return build.emit("stablehlo.bitcast_convert", (x,), (self.result_type(x.type),))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        return out, Zero(type_of(out).tangent())

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


class ReducePrecision(LinearElementwise):
    """x rounded to `exponent_bits` and `mantissa_bits`."""

    takes = "f"
    exponent_bits: int
    mantissa_bits: int

    def lower(self, build: Any, x: Any) -> Any:
        attributes = {
            "exponent_bits": I32(self.exponent_bits),
            "mantissa_bits": I32(self.mantissa_bits),
        }
        return build.emit("stablehlo.reduce_precision", (x,), (x.type,), attributes)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(self, cotangent),)


class Real(LinearElementwise):
    """The real part of x."""

    hlo = "stablehlo.real"
    takes = "c"

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, dtypes.real_part(dtype), weak)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (complex(cotangent, zero_like(cotangent)),)


class Imag(LinearElementwise):
    """The imaginary part of x."""

    hlo = "stablehlo.imag"
    takes = "c"

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, dtypes.real_part(dtype), weak)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (complex(zero_like(cotangent), elementwise.neg(cotangent)),)


class Complex(LinearElementwise):
    """The complex number x + iy."""

    hlo = "stablehlo.complex"
    takes = "f"
    linear_in = ((0, 1),)

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        if dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError(f"complex: the parts must be float32 or float64; got {dtypes.short_name(dtype)}.")
        return ArrayType(dims, dtypes.complex_of(dtype), weak)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        parts = [zero_like(x) if type(t) is Zero else t for x, t in zip(primals, tangents, strict=True)]
        return out, spread_tangent(complex(*parts), out)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        left = unspread(real(cotangent), x) if type(x) is Linear else None
        return left, unspread(elementwise.neg(imag(cotangent)), y) if type(y) is Linear else None

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return mask_rules.total(self, values, masks)


class Conj(LinearElementwise):
    """The complex conjugate of x."""

    hlo = "chlo.conj"
    takes = "c"

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (conj(cotangent),)


real, imag, complex, conj = map(function, (Real(), Imag(), Complex(), Conj()))


def convert(x: ArrayLike, dtype: Any, weak: bool = False) -> Any:
    """x in another dtype; unchanged if it already has that dtype."""
    dtype = dtypes.canonical(dtype)
    t = type_of(x)
    if t.dtype is dtype and t.weak == weak and isinstance(x, Array):
        return x
    return bind(Convert(dtype, weak), x)


def bitcast_convert(x: ArrayLike, dtype: Any) -> Any:
    """The bits of x read as another dtype."""
    dtype = dtypes.canonical(dtype)
    return x if type_of(x).dtype is dtype else bind(BitcastConvert(dtype), x)


def reduce_precision(x: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Any:
    """x rounded to `exponent_bits` and `mantissa_bits`."""
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: expected exponent_bits >= 1, mantissa_bits >= 0; got {exponent_bits}, {mantissa_bits}."
        )
    return bind(ReducePrecision(exponent_bits, mantissa_bits), x)


arithmetic.convert = convert
