"""Dtypes: names, kinds and widths, the defaults, and the promotion lattice.

A dtype is a `numpy.dtype` (ml_dtypes supplies bfloat16, float8, int4, ...) or the one extended dtype, `key<fry>`,
of random keys. NumPy gives the ml_dtypes the kind 'V', so use `kind` of this module instead.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from atled.core.settings import scope


class KeyDtype:
    """The dtype of random keys: two 32-bit words for the threefry generator, opaque to arithmetic."""

    name = "key<fry>"
    kind = "k"
    itemsize = 8
    type = np.void

    def __repr__(self) -> str:
        return self.name


class extended(np.generic):  # noqa: N801
    """The kind of dtypes that NumPy does not know, for `issubdtype`.

    >>> from atled import random
    >>> issubdtype(random.key(0).dtype, extended)
    True
    """


class prng_key(extended):  # noqa: N801
    """The kind of random keys, for `issubdtype`.

    >>> from atled import random
    >>> issubdtype(random.key(0).dtype, prng_key)
    True
    """


key_dtype = KeyDtype()
float0 = np.dtype([("float0", np.void, 0)])  # the tangent dtype of integers: holds no data

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
int2, int4 = np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4)
uint2, uint4 = np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4)
_NARROW = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
]
narrow_floats = {name: np.dtype(getattr(ml_dtypes, name)) for name in _NARROW}

# dtype -> (kind, bits, short name); the short name is how types print: f32[2,3]
_INFO: dict[Any, tuple[str, int, str]] = {
    bool_: ("b", 8, "bool"),
    int2: ("i", 2, "i2"),
    int4: ("i", 4, "i4"),
    uint2: ("u", 2, "u2"),
    uint4: ("u", 4, "u4"),
    bfloat16: ("f", 16, "bf16"),
    complex64: ("c", 64, "c64"),
    complex128: ("c", 128, "c128"),
    key_dtype: ("k", 64, "key"),
    float0: ("0", 0, "float0"),
}
for _n in (8, 16, 32, 64):
    _INFO[np.dtype(f"int{_n}")] = ("i", _n, f"i{_n}")
    _INFO[np.dtype(f"uint{_n}")] = ("u", _n, f"u{_n}")
for _n in (16, 32, 64):
    _INFO[np.dtype(f"float{_n}")] = ("f", _n, f"f{_n}")
for _name, _dtype in narrow_floats.items():
    _INFO[_dtype] = ("f", 4 if "float4" in _name else 8, _name.replace("float", "f").replace("_", ""))

all_dtypes: tuple[Any, ...] = tuple(_INFO)
_SINGLE = {d: d for d in _INFO}  # one object per dtype, for comparison with `is`


def kind(dtype: Any) -> str:
    """The kind of a dtype: 'b', 'i', 'u', 'f', 'c', 'k' (random key) or '0' (`float0`)."""
    return _INFO[dtype][0]


def bits(dtype: Any) -> int:
    """The width of one element, in bits."""
    return _INFO[dtype][1]


def short_name(dtype: Any) -> str:
    """The name used when types print, such as `f32`."""
    return _INFO[dtype][2]


def is_inexact(dtype: Any) -> bool:
    """Whether a dtype is floating or complex, so arrays of it can be differentiated."""
    return _INFO[dtype][0] in "fc"


def is_integer(dtype: Any) -> bool:
    """Whether a dtype is a signed or unsigned integer."""
    return _INFO[dtype][0] in "iu"


def is_known(dtype: Any) -> bool:
    """Whether arrays of this dtype are supported."""
    return dtype in _INFO


def default(kind: str) -> Any:
    """The dtype of Python numbers of a kind: 32 bits wide, or 64 inside `enable_x64`."""
    return (_DEFAULT_64 if scope().x64 else _DEFAULT_32)[kind]


_DEFAULT_32 = {"b": bool_, "i": int32, "u": uint32, "f": float32, "c": complex64}
_DEFAULT_64 = {"b": bool_, "i": int64, "u": uint64, "f": float64, "c": complex128}
_NARROWER = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}
_PYTHON_KIND = {bool: "b", int: "i", float: "f", complex: "c"}


def canonical(dtype: Any) -> Any:
    """The supported dtype for a dtype, a dtype's name, or a Python type; raises if there is none.

    >>> canonical(float), canonical("bfloat16"), canonical(np.int8)
    (dtype('float32'), dtype(bfloat16), dtype('int8'))
    """
    if dtype in _PYTHON_KIND:
        return default(_PYTHON_KIND[dtype])
    if dtype is key_dtype:
        return dtype
    if isinstance(dtype, str) and dtype in narrow_floats:
        return narrow_floats[dtype]
    try:
        result = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):  # NumPy parses a string with a comma as a list of fields
        raise TypeError(f"dtype: {dtype!r} is not a dtype, the name of one, or a Python number type.") from None
    if not result.isnative:
        result = result.newbyteorder("=")
    result = _SINGLE.get(result)
    if result is None:
        raise TypeError(f"dtype: arrays of {np.dtype(dtype)} are not supported; the dtypes are {_supported()}.")
    if result in _NARROWER and scope().narrow and not scope().x64:
        return _NARROWER[result]
    return result


def _supported() -> str:
    return ", ".join(str(d.name) for d in _INFO if d is not float0)


def real_part(dtype: Any) -> Any:
    """The dtype of the real and imaginary parts of a complex dtype; any other dtype itself."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: Any) -> Any:
    """The complex dtype whose parts are at least as wide as `dtype`."""
    return complex128 if bits(real_part(dtype)) == 64 else complex64


class FloatInfo:
    """Machine limits of a floating dtype, as Python numbers, which represent them exactly.

    The limits of dtypes of at most 8 bits are scalars of that dtype, because these dtypes do not promote with others.
    """

    _LIMITS = ("eps", "epsneg", "max", "min", "smallest_normal", "smallest_subnormal", "tiny", "resolution")
    _COUNTS = ("bits", "iexp", "machep", "maxexp", "minexp", "negep", "nexp", "nmant", "precision")
    eps: float
    epsneg: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float
    resolution: float
    bits: int
    nmant: int
    maxexp: int
    minexp: int

    def __init__(self, dtype: Any) -> None:
        info = ml_dtypes.finfo(dtype)
        self.dtype = dtype
        limit = float if dtype.itemsize > 1 else dtype.type
        for names, kind in ((self._LIMITS, limit), (self._COUNTS, int)):
            for name in names:
                setattr(self, name, kind(getattr(info, name)))

    def __repr__(self) -> str:
        return f"finfo(resolution={self.resolution}, min={self.min}, max={self.max}, dtype={self.dtype.name})"


_float_info = functools.cache(FloatInfo)


def finfo(dtype: Any) -> FloatInfo:
    """Machine limits of a floating dtype of any width, or of an array's dtype.

    >>> finfo("bfloat16").eps
    0.0078125
    """
    return _float_info(real_part(canonical(_dtype_of(dtype))))


def iinfo(dtype: Any) -> Any:
    """Machine limits of an integer dtype of any width, or of an array's dtype.

    >>> iinfo("int8").min, iinfo("int4").max
    (-128, 7)
    """
    return ml_dtypes.iinfo(canonical(_dtype_of(dtype)))


def holds(dtype: Any, number: int) -> bool:
    """Whether an integer is within the range of an integer dtype."""
    info = iinfo(dtype)
    return bool(info.min <= number <= info.max)


def _dtype_of(x: Any) -> Any:
    """The dtype of an array; anything else itself."""
    return x if isinstance(x, type) else getattr(x, "dtype", x)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether dtype `arg1` is of kind `arg2`: `numpy.issubdtype`, extended to all dtypes of the library.

    >>> issubdtype("bfloat16", np.floating), issubdtype("int4", np.integer)
    (True, True)
    """
    a, b = arg1, arg2
    if a is key_dtype:
        return b in (key_dtype, prng_key, extended, np.generic)
    if isinstance(b, type) and issubclass(b, extended):
        return False
    if isinstance(a, type) and issubclass(a, np.generic) and a not in _CONCRETE:
        return np.issubdtype(a, b) if isinstance(b, type) else False
    if isinstance(b, type) and issubclass(b, (np.flexible, np.object_)):  # no array has these dtypes: NumPy decides
        return np.issubdtype(a, b)
    a = canonical(a)
    if isinstance(b, type) and issubclass(b, np.generic) and b not in _CONCRETE:
        return a.type is not None and any(issubclass(c, b) for c in (a.type, _STANDIN[kind(a)]))
    return a == canonical(b)


_STANDIN = {
    "b": np.bool_,
    "i": np.signedinteger,
    "u": np.unsignedinteger,
    "f": np.floating,
    "c": np.complexfloating,
    "0": np.void,
}
_CONCRETE = {d.type for d in _INFO if d is not key_dtype and d is not float0}


# The promotion lattice. Nodes are dtypes and the weak kinds 'i*', 'f*', 'c*' of Python numbers; promotion is the
# least upper bound. Narrow dtypes (4- and 8-bit floats, 2- and 4-bit integers) have no edge upwards: mixing them
# with others is an error rather than a guess.
_UP: dict[Any, tuple[Any, ...]] = {
    bool_: ("i*",),
    "i*": (uint8, int8, int2, int4, uint2, uint4),
    uint8: (uint16, int16),
    uint16: (uint32, int32),
    uint32: (uint64, int64),
    uint64: ("f*",),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: ("f*",),
    "f*": (bfloat16, float16, "c*", *narrow_floats.values()),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    "c*": (complex64,),
    complex64: (complex128,),
}


class PromotionError(TypeError, ValueError):
    """Raised for dtypes without a common dtype, or for different dtypes under `numpy_dtype_promotion("strict")`.

    >>> import atled.numpy as jnp
    >>> jnp.ones(2, "float8_e4m3fn") + jnp.ones(2, "float32")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    PromotionError: promotion: float8_e4m3fn and float32 have no common dtype.
    """


@functools.cache
def _above(node: Any) -> frozenset[Any]:
    return frozenset({node}).union(*(_above(up) for up in _UP.get(node, ())))


@functools.cache
def _join(a: Any, b: Any) -> Any:
    common = _above(a) & _above(b)
    least = [c for c in common if common <= _above(c)]
    return least[0] if least else None


def node(dtype: Any, weak: bool) -> Any:
    """The lattice node of a dtype; weak types are lower in the lattice, so the other operand's dtype wins."""
    return {"i": "i*", "u": "i*", "f": "f*", "c": "c*"}.get(kind(dtype), dtype) if weak else dtype


def promote(*operands: tuple[Any, bool]) -> tuple[Any, bool]:
    """The promoted dtype, and whether it is weak, of (dtype, weak) operands.

    >>> promote((bfloat16, False), (float32, True))
    (dtype(bfloat16), False)
    """
    top = node(*operands[0])
    for dtype, weak in operands[1:]:
        other = node(dtype, weak)
        if other is top:
            continue
        joined = _join(top, other)
        if joined is None:
            a, b = _node_name(top), _node_name(other)
            raise PromotionError(
                f"promotion: {a} and {b} have no common dtype."
                + ("\n  try: random.split or random.fold_in for a new key; keys are not numbers."
                   if key_dtype in (top, other) else "\n  try: convert one of them, such as x.astype('float32').")
            )  # fmt: skip
        if scope().promotion == "strict":
            weak = [isinstance(n, str) for n in (top, other)]
            if not any(weak) or (not all(weak) and joined is not (other if weak[0] else top)):
                raise _strict_error(top, other)
        top = joined
    if isinstance(top, str):
        if top in (
            "f*",
            "c*",
        ):  # no integer dtype holds both int64 and uint64, and float32 would lose half of the bits
            given = {dtype for dtype, weak in operands if not weak}
            if uint64 in given and not given.isdisjoint(_SIGNED):
                return (float64 if top == "f*" else complex128), False
        return default(top[0]), True
    return top, False


_SIGNED = (int8, int16, int32, int64)


def _node_name(n: Any) -> str:
    return _WEAK_NAMES[n] if isinstance(n, str) else n.name


_WEAK_NAMES = {"i*": "a Python int", "f*": "a Python float", "c*": "a Python complex"}


def _strict_error(a: Any, b: Any) -> PromotionError:
    return PromotionError(
        f"promotion: numpy_dtype_promotion is 'strict', and the operands are {_node_name(a)} and {_node_name(b)}; "
        "convert one of them with .astype."
    )
