"""How primitives of one's own are compiled, under the names of `jax.interpreters.mlir`.

A rule gets a context and one MLIR value for each operand, and gives a sequence of values. `lower_fun` makes a rule of
a function that is traced. MLIR's bindings are those of `jaxlib.mlir`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core.array import type_of
from atled.core.program import record_closed
from atled.core.sharding import Mesh
from atled.core.types import ArrayType
from atled.engine import stablehlo
from atled.engine.mlir import ir
from atled.engine.mlir import stablehlo as hlo
from atled.extend.primitive import Lowering as LoweringRuleContext
from atled.extend.primitive import ModuleContext, lowerings

__all__ = [
    "DEVICE_TO_DEVICE_TYPE",
    "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE",
    "LoweringRule",
    "LoweringRuleContext",
    "Mesh",
    "MeshAxisName",
    "ModuleContext",
    "Token",
    "Value",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "core_call_lowering",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "flatten_ir_values",
    "i32_attr",
    "i64_attr",
    "ir_attribute",
    "ir_constant",
    "ir_constants",
    "lower_fun",
    "module_to_bytecode",
    "module_to_string",
    "register_lowering",
    "shape_tensor",
    "token_type",
]  # fmt: skip
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3  # of StableHLO's channels
LoweringRule = Callable[..., Any]
MeshAxisName = Any
Token = Value = ir.Value
token_type = hlo.TokenType.get


def register_lowering(
    prim: Any, rule: Callable[..., Any], platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Callable[..., Any]:
    """Say how a primitive is compiled, for one platform or for all."""
    del inline, cacheable
    lowerings[prim, platform] = rule
    return rule


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A rule that compiles what a function does."""

    def rule(context: Any, *values: Any, **params: Any) -> list[Any]:
        def flat(*operands: Any) -> list[Any]:
            out = fun(*operands, **params)
            return list(out) if multiple_results else [out]

        return context.inlined(record_closed(flat, context.avals_in, getattr(fun, "__name__", "f")), values)

    return rule


def dtype_to_ir_type(dtype: Any) -> Any:
    """The type of an element."""
    return aval_to_ir_type(ArrayType((), np.dtype(dtype))).element_type


def aval_to_ir_type(ctx: Any, aval: Any = None) -> Any:
    """The type of an array. The module that it is for, `ctx`, may be left out."""
    aval = ctx if aval is None else aval
    with stablehlo.context:
        return stablehlo.module_type(type_of(aval) if not isinstance(aval, ArrayType) else aval)


def aval_to_ir_types(ctx: Any, aval: Any) -> tuple[Any, ...]:
    """The types of what stands for an array: one."""
    return (aval_to_ir_type(ctx, aval),)


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """A constant, as a value of the module that is being built. Each is written anew; its type is that of the value."""
    del const_lowering, aval
    return hlo.constant(ir_attribute(val))


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> tuple[Any, ...]:
    """The values that stand for a constant: one."""
    return (ir_constant(val, const_lowering=const_lowering, aval=aval),)


def ir_attribute(val: Any) -> Any:
    """A number, a string, an array or a sequence of these as an attribute; Python's integers have 64 bits.

    >>> with stablehlo.context:
    ...     print(ir_attribute(np.int32(3)), ir_attribute("a"), ir_attribute([True]))
    3 : i32 "a" [true]
    """
    with stablehlo.context:
        if isinstance(val, ir.Attribute):
            return val
        if isinstance(val, str):
            return ir.StringAttr.get(val)
        if isinstance(val, dict):
            return ir.DictAttr.get({k: ir_attribute(v) for k, v in val.items()})
        if isinstance(val, (tuple, list)):
            return ir.ArrayAttr.get([ir_attribute(v) for v in val])
        if isinstance(val, (bool, np.bool_)):
            return ir.BoolAttr.get(bool(val))
        if isinstance(val, (int, float)) and not isinstance(val, np.generic):
            val = np.int64(val) if isinstance(val, int) else np.float64(val)
        if isinstance(val, np.integer):
            return ir.IntegerAttr.get(dtype_to_ir_type(val.dtype), int(val))
        if isinstance(val, np.floating):
            return ir.FloatAttr.get(dtype_to_ir_type(val.dtype), float(val))
        found = np.asarray(val)
        return stablehlo.dense(found, found.dtype, found.shape)


def shape_tensor(ctx: Any, sizes: Any) -> Any:
    """Lengths as a value of the module: a vector of 32-bit integers."""
    return ir_constant(np.asarray([int(n) for n in sizes], np.int32))


def dense_int_array(xs: Any) -> Any:
    """Integers as an attribute."""
    return ir.DenseI64ArrayAttr.get([int(x) for x in xs])


def dense_int_elements(xs: Any) -> Any:
    """Integers as an attribute that is a tensor."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))  # type: ignore[arg-type]


def i32_attr(i: int) -> Any:
    """A number of 32 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """A number of 64 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def flatten_ir_values(xs: Any) -> list[Any]:
    """Values and tuples of values as one list."""
    return [v for x in xs for v in (x if isinstance(x, (tuple, list)) else (x,))]


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """A module as text."""
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))


def module_to_bytecode(module: Any) -> bytes:
    """A module as bytes, which MLIR reads."""
    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()


def core_call_lowering(ctx: Any, *args: Any, name: str, backend: Any = None, call_jaxpr: Any) -> list[Any]:
    """A rule that writes the program of a call where it is called."""
    del name, backend
    given = [ir_constant(np.asarray(c)) for c in call_jaxpr.consts]
    return ctx.inlined(call_jaxpr, [*given, *args])
