"""Arrays of other libraries, through the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import dtypes, errors
from atled.core.array import Array, describe
from atled.numpy import creation

_KINDS = "biufc"


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array with a copy of another library's data; copied because the owner may write to it.

    >>> import numpy
    >>> from_dlpack(numpy.ones(2, "float32"))
    Array([1., 1.], dtype=float32)
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            errors.explained(
                f"from_dlpack: an object with __dlpack__ and __dlpack_device__ is needed; got "
                f"{describe(external_array)}.",
                "numpy.asarray(x).",
            )
        )
    if copy is not None and not copy:
        raise ValueError(errors.explained("from_dlpack: arrays are always copied; got copy=False.", "copy=None."))
    return creation.from_dlpack(external_array, device=device)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether DLPack supports arrays of a dtype: bool, NumPy's numeric dtypes and bfloat16.

    >>> is_supported_dtype("float32"), is_supported_dtype("int4")
    (True, False)
    """
    if dtype is None:
        raise TypeError(errors.explained("is_supported_dtype: a dtype is needed; got None.", '"float32".'))
    canonical = dtypes.bfloat16 if isinstance(dtype, str) and dtype == "bfloat16" else _dtype(dtype)
    return canonical is dtypes.bfloat16 or (canonical.isbuiltin == 1 and canonical.kind in _KINDS)


def _dtype(dtype: Any) -> Any:
    if isinstance(dtype, str) and (dtype in dtypes.narrow_floats or dtype in ("int2", "int4", "uint2", "uint4")):
        return np.dtype(object)
    return np.dtype(getattr(dtype, "dtype", dtype) if not isinstance(dtype, type) else dtype)


__all__ = ["from_dlpack", "is_supported_dtype"]
__dir__ = __all__.copy
