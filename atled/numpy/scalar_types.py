"""`float32`, `int8`, `bfloat16`, ...: dtypes that can be called to make an array."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array


class ScalarType:
    """A scalar type such as `float32`: pass it as a dtype, or call it on a value.

    >>> float32(1)
    Array(1., dtype=float32)
    >>> float32 == np.dtype("float32")
    True
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, x: Any = 0) -> Array:
        """x as an array of this dtype."""
        from atled.numpy.creation import asarray

        return asarray(x, dtype=self.dtype)

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, ScalarType):
            return self.dtype == other.dtype
        try:
            return other is not None and dtypes.canonical(other) is self.dtype  # to NumPy, None is float64
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"atled.numpy.{self.dtype.name}"

    @property
    def __name__(self) -> str:
        return self.dtype.name

    def __reduce__(self) -> str:
        return self.dtype.name  # copy and pickle look up the name: no new object


bool_ = bool = ScalarType(dtypes.bool_)
int2, int4, int8, int16, int32, int64 = (
    ScalarType(d) for d in (dtypes.int2, dtypes.int4, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
)
uint2, uint4, uint8, uint16, uint32, uint64 = (
    ScalarType(d) for d in (dtypes.uint2, dtypes.uint4, dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
)
bfloat16, float16, float32, float64 = (
    ScalarType(d) for d in (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)
)
complex64, complex128 = ScalarType(dtypes.complex64), ScalarType(dtypes.complex128)
float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz = (
    ScalarType(dtypes.narrow_floats[n])
    for n in [
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
    ]
)
float8_e8m0fnu, float4_e2m1fn = (ScalarType(dtypes.narrow_floats[n]) for n in ("float8_e8m0fnu", "float4_e2m1fn"))
single, double, csingle, cdouble = float32, float64, complex64, complex128
half = float16
ubyte, byte, short, ushort, longlong, ulonglong = uint8, int8, int16, uint16, int64, uint64
intc, uintc = int32, uint32


class _DefaultScalarType(ScalarType):
    """A scalar type whose width is the default one, 32 or 64 bits: `int_`, `float_`, `complex_`."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return dtypes.default(self.kind)

    def __reduce__(self) -> str:
        return {"i": "int_", "u": "uint", "f": "float_", "c": "complex_"}[self.kind]


int_, uint, float_, complex_ = (_DefaultScalarType(k) for k in "iufc")
generic, number, integer, signedinteger, unsignedinteger = (
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger,
)  # fmt: skip
inexact, floating, complexfloating = np.inexact, np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_
