"""Types and attributes of MLIR modules, and the context that they belong to; recurring ones are cached."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

from atled.compiler.builder import I32, U8, U64
from atled.core import dtypes
from atled.core.cache_keys import exact
from atled.core.sharding import physical
from atled.core.types import ArrayType


def upstream() -> ir.DialectRegistry:
    """The dialects that come with MLIR."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


def make_context() -> ir.Context:
    """An MLIR context with the dialects that modules use."""
    return prepare(ir.Context())


def prepare(context: ir.Context) -> ir.Context:
    """Register with a context the dialects that modules use; returns the context."""
    context.append_dialect_registry(upstream())
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(context)
    context.dialects["func"]  # loads it
    return context


context = make_context()
lock = threading.RLock()  # one module is built at a time; building holds the GIL anyway

with context:
    UNKNOWN = ir.Location.unknown()
    _ELEMENT: dict[Any, Any] = {
        dtypes.bool_: ir.IntegerType.get_signless(1),
        dtypes.bfloat16: ir.BF16Type.get(),
        dtypes.float16: ir.F16Type.get(),
        dtypes.float32: ir.F32Type.get(),
        dtypes.float64: ir.F64Type.get(),
        dtypes.complex64: ir.ComplexType.get(ir.F32Type.get()),
        dtypes.complex128: ir.ComplexType.get(ir.F64Type.get()),
        **{np.dtype(f"int{n}"): ir.IntegerType.get_signless(n) for n in (8, 16, 32, 64)},
        **{np.dtype(f"uint{n}"): ir.IntegerType.get_unsigned(n) for n in (8, 16, 32, 64)},
        dtypes.int2: ir.IntegerType.get_signless(2),
        dtypes.int4: ir.IntegerType.get_signless(4),
        dtypes.uint2: ir.IntegerType.get_unsigned(2),
        dtypes.uint4: ir.IntegerType.get_unsigned(4),
        **{
            dtype: getattr(ir, "Float" + name.removeprefix("float").replace("_", "").upper() + "Type").get()
            for name, dtype in dtypes.narrow_floats.items()
        },
    }
known_types: dict[ArrayType, Any] = {}
known_attributes: dict[Any, Any] = {}


def module_type(t: ArrayType) -> Any:
    """The MLIR tensor type of an array."""
    tensor = known_types.get(t)
    if tensor is None:
        shape, dtype = physical(t)
        tensor = known_types[t] = ir.RankedTensorType.get(shape, _ELEMENT[dtype])
    return tensor


def attribute_of(value: Any) -> Any:
    """A Python value as an attribute; see `Builder.emit`."""
    if isinstance(value, np.ndarray):
        return dense(value, value.dtype, value.shape)
    if isinstance(value, dict):
        return ir.DictAttr.get({k: attribute_of(v) for k, v in value.items()})
    if isinstance(value, ir.Attribute):
        return value
    key = exact(value)
    attribute = known_attributes.get(key)
    if attribute is None:
        attribute = known_attributes[key] = _make_attribute(value)
    return attribute


def _make_attribute(value: Any) -> Any:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, U8):
        return ir.IntegerAttr.get(ir.IntegerType.get_unsigned(8), value)
    if isinstance(value, I32):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)
    if isinstance(value, U64):
        return ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, str):
        if value == "#unit":
            return ir.UnitAttr.get()
        return ir.Attribute.parse(value) if value.startswith("#") else ir.StringAttr.get(value)
    if isinstance(value, tuple):
        if all(isinstance(v, str) for v in value) and value:
            return ir.ArrayAttr.get([attribute_of(v) for v in value])
        if all(isinstance(v, bool) for v in value) and value:
            return ir.DenseBoolArrayAttr.get(list(value))
        return ir.DenseI64ArrayAttr.get(list(value))
    raise AssertionError(f"no attribute for {value!r}")


_CARRIER = {1: np.uint8, 2: np.uint16}


def dense(value: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """The data of a constant as an attribute; a single element fills the shape."""
    value = np.ascontiguousarray(value)
    kind = dtypes.kind(dtype)
    if kind in "iu" and dtypes.bits(dtype) < 8:
        value = value.astype(np.uint8 if kind == "u" else np.int8)
    elif value.dtype.kind == "V":
        value = value.view(_CARRIER[value.dtype.itemsize])
    if kind == "b":
        value = value.astype(np.bool_)
        if value.size == 1:
            text = "true" if value.item() else "false"
            dims = "".join(f"{n}x" for n in shape)
            return ir.Attribute.parse(f"dense<{text}> : tensor<{dims}i1>")
        return ir.DenseElementsAttr.get(value, type=_ELEMENT[dtype], shape=list(shape))
    return ir.DenseElementsAttr.get(value, type=_ELEMENT[dtype], shape=list(shape))
