"""Dtypes: limits, kinds and promotion."""

from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.dtypes import PromotionError as TypePromotionError
from atled.core.dtypes import bfloat16, canonical, extended, finfo, float0, iinfo, issubdtype, prng_key
from atled.numpy.inspection import dtype_and_weakness


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype of an array that is created with `dtype`; under `as_jax`, 64 bits become 32 unless x64 is on.

    >>> canonicalize_dtype("float32")
    dtype('float32')
    """
    if issubdtype(dtype, extended) and not allow_extended_dtype:
        raise ValueError(f"canonicalize_dtype: a numeric dtype is needed; got {dtype}.")
    return canonical(dtype)


def itemsize_bits(dtype: Any) -> int:
    """The number of bits of an element; a bool has 8.

    >>> itemsize_bits("int4"), itemsize_bits(bool), itemsize_bits("complex64")
    (4, 8, 64)
    """
    if dtype is None:
        raise ValueError("itemsize_bits: a dtype is needed; got None.")
    resolved = dtypes.canonical(dtype)
    return 8 if resolved == np.dtype(bool) else dtypes.bits(resolved)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype to which arrays, numbers and dtypes are promoted; optionally also whether it is weakly typed.

    >>> result_type(1, 2.0, return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    if not args:
        raise ValueError("result_type: at least one array or dtype is needed.")
    promoted, is_weak = dtypes.promote(*[dtype_and_weakness(x) for x in args])
    return (promoted, is_weak) if return_weak_type_flag else promoted


def scalar_type_of(x: Any) -> type:
    """The Python type of the same kind as a value's dtype: bool, int, float or complex.

    >>> scalar_type_of(np.float16(1)), scalar_type_of(3)
    (<class 'float'>, <class 'int'>)
    """
    kinds = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
    kind = type_of(x).kind
    if kind not in kinds:
        raise TypeError(f"scalar_type_of: a number or an array of numbers is needed; got {type_of(x)}.")
    return kinds[kind]


__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonical",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]
__dir__ = __all__.copy
