"""How primitives of one's own are compiled, under the names of `jax.interpreters.mlir`.

A rule gets a context and one MLIR value for each operand, and gives a sequence of values. `lower_fun` makes a rule of
a function that is traced. MLIR's bindings are those of `jaxlib.mlir`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core.array import type_of
from atled.core.program import record_closed
from atled.core.types import ArrayType
from atled.engine import stablehlo
from atled.engine.mlir import ir
from atled.engine.mlir import stablehlo as hlo
from atled.extend.primitive import Lowering as LoweringRuleContext
from atled.extend.primitive import lowerings

__all__ = [
    "LoweringRuleContext", "aval_to_ir_type", "dense_int_array", "dense_int_elements", "dtype_to_ir_type",
    "flatten_ir_values", "i32_attr", "i64_attr", "ir_constant", "lower_fun", "module_to_string", "register_lowering",
]  # fmt: skip


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


def aval_to_ir_type(aval: Any) -> Any:
    """The type of an array."""
    with stablehlo.context:
        return stablehlo.module_type(type_of(aval) if not isinstance(aval, ArrayType) else aval)


def ir_constant(val: Any) -> Any:
    """A constant, as a value of the module that is being built."""
    return hlo.constant(stablehlo.dense(np.asarray(val)))


def dense_int_array(xs: Any) -> Any:
    """Integers as an attribute."""
    return ir.DenseI64ArrayAttr.get(np.asarray(xs, np.int64))


def dense_int_elements(xs: Any) -> Any:
    """Integers as an attribute that is a tensor."""
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def i32_attr(i: int) -> Any:
    """A number of 32 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """A number of 64 bits as an attribute."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def flatten_ir_values(xs: Any) -> list[Any]:
    """Values and tuples of values as one list."""
    return [v for x in xs for v in (x if isinstance(x, (tuple, list)) else (x,))]


def module_to_string(module: Any, enable_debug_info: bool = False) -> str:
    """A module as text."""
    return module.operation.get_asm(enable_debug_info=enable_debug_info)
