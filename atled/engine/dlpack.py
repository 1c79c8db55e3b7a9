"""DLPack import of dtypes that NumPy's own DLPack does not support: bfloat16 and narrow floats.

A capsule holds the address of a `DLTensor`; its layout is part of the protocol (dlpack.h).
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes

_CPU = 1
# the type codes of dlpack.h that NumPy does not support
_DTYPES = {4: dtypes.bfloat16}
_NAMES = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
_DTYPES.update({7 + i: dtypes.narrow_floats[f"float8_{name}"] for i, name in enumerate(_NAMES)})


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def to_host(x: Any) -> np.ndarray:
    """Convert another library's array to a NumPy array: a view if NumPy supports the dtype, else a copy."""
    try:
        return np.from_dlpack(x)
    except (RuntimeError, BufferError) as error:  # NumPy 2.5 and later raise BufferError
        if "dtype" not in str(error):
            raise
    if x.__dlpack_device__()[0] != _CPU:
        raise BufferError("from_dlpack: only arrays in host memory can be read.\n  try: x.cpu() first.")
    capsule = x.__dlpack__()  # keeps the memory alive until it is copied
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    dtype = _DTYPES.get(tensor.code)
    if dtype is None or tensor.lanes != 1:
        raise TypeError(f"from_dlpack: the dtype must be one of numpy.dtypes; got DLPack type code {tensor.code}.")
    dims = tuple(tensor.shape[: tensor.ndim])
    if 0 in dims:
        return np.empty(dims, dtype)
    packed = [prod(dims[i + 1 :]) for i in range(tensor.ndim)]
    strides = tensor.strides[: tensor.ndim] if tensor.strides else packed
    size = (1 + sum([(n - 1) * s for n, s in zip(dims, strides)])) * dtype.itemsize
    raw: Any = (ctypes.c_char * size).from_address(tensor.data + tensor.byte_offset)
    return np.ndarray(dims, dtype, raw, strides=tuple([s * dtype.itemsize for s in strides])).copy()
