"""Lowering of user-defined primitives, with the API of `jax.interpreters.mlir`.

A rule gets a context and one MLIR value for each operand, and returns a sequence of values. `lower_fun` makes a rule
from a traced function. MLIR's bindings are those of `jaxlib.mlir`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.compiler.builder import Value as BuilderValue
from atled.core.array import type_of
from atled.core.program import record_closed
from atled.core.sharding import Mesh
from atled.core.types import ArrayType
from atled.engine import ffi_targets, mlir_attributes
from atled.engine.mlir import ir
from atled.engine.mlir import stablehlo as hlo
from atled.jax.extend.primitive import Lowering as LoweringRuleContext
from atled.jax.extend.primitive import ModuleContext, lowerings
from atled.jax.interpreters.modules import (
    AxisContext,
    LoweringParameters,
    LoweringResult,
    ShardingContext,
    SPMDAxisContext,
    lower_jaxpr_to_fun,
    lower_jaxpr_to_module,
)
from atled.ops.callback import Host

__all__ = [
    "DEVICE_TO_DEVICE_TYPE",
    "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE",
    "AxisContext",
    "ConstantHandler",
    "LoweringParameters",
    "LoweringResult",
    "LoweringRule",
    "LoweringRuleContext",
    "Mesh",
    "MeshAxisName",
    "ModuleContext",
    "SPMDAxisContext",
    "ShardingContext",
    "Token",
    "Value",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "core_call_lowering",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "emit_python_callback",
    "flatten_ir_values",
    "i32_attr",
    "i64_attr",
    "ir_attribute",
    "ir_constant",
    "ir_constants",
    "ir_type_handlers",
    "jaxpr_subcomp",
    "lower_fun",
    "lower_jaxpr_to_fun",
    "lower_jaxpr_to_module",
    "make_ir_context",
    "merge_mlir_modules",
    "module_to_bytecode",
    "module_to_string",
    "register_constant_handler",
    "register_lowering",
    "shape_tensor",
    "token_type",
]  # fmt: skip
__dir__ = __all__.copy
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3  # types of StableHLO channels
LoweringRule = Callable[..., Any]
MeshAxisName = Any
Token = Value = ir.Value
token_type = hlo.TokenType.get


def register_lowering(
    prim: Any, rule: Callable[..., Any], platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Callable[..., Any]:
    """Register the lowering rule of a primitive for one platform, or for all.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> negate = Primitive("negate")
    >>> _ = negate.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(negate, lambda ctx, x: [hlo.negate(x)])
    >>> atled.jit(negate.bind)(2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    del inline, cacheable
    lowerings[prim, platform] = rule
    return rule


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A lowering rule that traces a function and emits its program.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> triple = Primitive("triple")
    >>> _ = triple.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(triple, lower_fun(lambda x: 3 * x, multiple_results=False))
    >>> atled.jit(triple.bind)(2.0)
    Array(6., dtype=float32, weak_type=True)
    """

    def rule(context: Any, *values: Any, **params: Any) -> list[Any]:
        def flat(*operands: Any) -> list[Any]:
            out = fun(*operands, **params)
            return list(out) if multiple_results else [out]

        return context.inlined(record_closed(flat, context.avals_in, getattr(fun, "__name__", "f")), values)

    return rule


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR element type of a dtype.

    >>> print(dtype_to_ir_type("float32"))
    f32
    """
    return aval_to_ir_type(ArrayType((), np.dtype(dtype))).element_type


def aval_to_ir_type(ctx: Any, aval: Any = None) -> Any:
    """The MLIR type of an array. The first argument, the module context, may be omitted.

    >>> print(aval_to_ir_type(ArrayType((2, 3), np.dtype("float32"))))
    tensor<2x3xf32>
    """
    aval = ctx if aval is None else aval
    handler = ir_type_handlers.get(type(aval))
    return _array_type(type_of(aval)) if handler is None else handler(aval)


def _array_type(aval: ArrayType) -> Any:
    with mlir_attributes.context, ir.Location.unknown(mlir_attributes.context):
        return mlir_attributes.module_type(aval)


# By class of type: functions from a type to its MLIR type.
ir_type_handlers: dict[type, Callable[..., Any]] = {ArrayType: _array_type}


def aval_to_ir_types(ctx: Any, aval: Any) -> tuple[Any, ...]:
    """The MLIR types of an array, as a tuple with one element.

    >>> print(*aval_to_ir_types(None, ArrayType((2, 3), np.dtype("float32"))))
    tensor<2x3xf32>
    """
    return (aval_to_ir_type(ctx, aval),)


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """Emit a constant with the type of `val` and return its MLIR value.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> answer = Primitive("answer")
    >>> _ = answer.def_abstract_eval(lambda: ArrayType((), np.dtype("int32")))
    >>> _ = register_lowering(answer, lambda ctx: [ir_constant(np.int32(42))])
    >>> atled.jit(answer.bind)()
    Array(42, dtype=int32)
    """
    del const_lowering
    for kind in type(val).__mro__:
        if kind in _constant_handlers:
            return _constant_handlers[kind](val, aval)
    if isinstance(val, (bool, int, float, complex, np.generic)):
        t = type_of(val)
        return hlo.constant(mlir_attributes.dense(np.asarray(val, t.dtype), t.dtype, ()))
    return hlo.constant(ir_attribute(val))


ConstantHandler = Callable[..., Any]
_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Register the function by which `ir_constant` emits values of a class: takes the value and `aval`, or None.

    >>> import atled, fractions
    >>> from atled.jax.extend.core import Primitive
    >>> register_constant_handler(fractions.Fraction, lambda value, aval: ir_constant(np.float32(value)))
    >>> half = Primitive("half")
    >>> _ = half.def_abstract_eval(lambda: ArrayType((), np.dtype("float32")))
    >>> _ = register_lowering(half, lambda ctx: [ir_constant(fractions.Fraction(1, 2))])
    >>> atled.jit(half.bind)()
    Array(0.5, dtype=float32)
    """
    _constant_handlers[type_] = handler_fun


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> tuple[Any, ...]:
    """The MLIR values of a constant, as a tuple with one element.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> primes = Primitive("primes")
    >>> _ = primes.def_abstract_eval(lambda: ArrayType((3,), np.dtype("int32")))
    >>> _ = register_lowering(primes, lambda ctx: ir_constants(np.int32([2, 3, 5])))
    >>> atled.jit(primes.bind)()
    Array([2, 3, 5], dtype=int32)
    """
    return (ir_constant(val, const_lowering=const_lowering, aval=aval),)


def ir_attribute(val: Any) -> Any:
    """A number, a string, an array or a sequence of these as an MLIR attribute; Python integers have 64 bits.

    >>> with mlir_attributes.context:
    ...     print(ir_attribute(np.int32(3)), ir_attribute("a"), ir_attribute([True]))
    3 : i32 "a" [true]
    """
    return ffi_targets.attribute(val)


def shape_tensor(ctx: Any, sizes: Any) -> Any:
    """Emit a shape as a constant vector of 32-bit integers and return its MLIR value.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> lengths = Primitive("lengths")
    >>> _ = lengths.def_abstract_eval(lambda x: ArrayType((len(x.shape),), np.dtype("int32")))
    >>> _ = register_lowering(lengths, lambda ctx, x: [shape_tensor(ctx, ctx.avals_in[0].shape)])
    >>> atled.jit(lengths.bind)(atled.numpy.ones((5, 7)))
    Array([5, 7], dtype=int32)
    """
    return ir_constant(np.asarray([int(n) for n in sizes], np.int32))


def dense_int_array(xs: Any) -> Any:
    """Integers as a dense array attribute of 64-bit integers.

    >>> with make_ir_context():
    ...     print(dense_int_array([1, 2]))
    array<i64: 1, 2>
    """
    return ir.DenseI64ArrayAttr.get([int(x) for x in xs])


def dense_int_elements(xs: Any) -> Any:
    """Integers as a dense elements attribute, a tensor of 64-bit integers.

    >>> with make_ir_context():
    ...     print(dense_int_elements([1, 2]))
    dense<[1, 2]> : tensor<2xi64>
    """
    return ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))  # type: ignore[arg-type]


def i32_attr(i: int) -> Any:
    """A 32-bit integer as an attribute.

    >>> with make_ir_context():
    ...     print(i32_attr(3))
    3 : i32
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """A 64-bit integer as an attribute.

    >>> with make_ir_context():
    ...     print(i64_attr(3))
    3 : i64
    """
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def flatten_ir_values(xs: Any) -> list[Any]:
    """Flatten values and tuples of values to one list.

    >>> flatten_ir_values([1, (2, 3)])
    [1, 2, 3]
    """
    return [v for x in xs for v in (x if isinstance(x, (tuple, list)) else (x,))]


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """A module as text.

    >>> import atled
    >>> "func.func" in module_to_string(atled.jit(lambda x: x + 1).lower(1.0).compiler_ir())
    True
    """
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))


def module_to_bytecode(module: Any) -> bytes:
    """A module as MLIR bytecode.

    >>> import atled
    >>> module_to_bytecode(atled.jit(lambda x: x + 1).lower(1.0).compiler_ir())[:2]
    b'ML'
    """
    out = io.BytesIO()
    module.operation.write_bytecode(file=out)
    return out.getvalue()


def core_call_lowering(ctx: Any, *args: Any, name: str, backend: Any = None, call_jaxpr: Any) -> list[Any]:
    """A lowering rule that inlines the called program.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> program = atled.jax.make_jaxpr(lambda x: x * 3)(1.0)
    >>> triple = Primitive("triple")
    >>> _ = triple.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(triple, lambda ctx, x: core_call_lowering(ctx, x, name="triple", call_jaxpr=program))
    >>> atled.jit(triple.bind)(2.0)
    Array(6., dtype=float32, weak_type=True)
    """
    del name, backend
    given = [ir_constant(np.asarray(c)) for c in call_jaxpr.consts]
    return ctx.inlined(call_jaxpr, [*given, *args])


def emit_python_callback(
    ctx: Any,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Emit a call of a Python function from NumPy arrays to a sequence of NumPy arrays; returns (values, token, None).

    A callback with a side effect runs after all earlier ones. `token` is returned unchanged.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> root = Primitive("root")
    >>> _ = root.def_abstract_eval(lambda x: x)
    >>> def rule(ctx, x):
    ...     host = lambda x: (np.sqrt(x),)
    ...     return emit_python_callback(ctx, host, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)[0]
    >>> _ = register_lowering(root, rule)
    >>> atled.jit(root.bind)(9.0)
    Array(3., dtype=float32, weak_type=True)
    """
    del returns_token, partitioned, sharding
    host = Host(callback, [type_of(t) for t in result_avals], getattr(callback, "__name__", "callback"))
    given = [BuilderValue(v, type_of(t)) for v, t in zip(operands, operand_avals, strict=True)]
    results = ctx.build.callback(host.from_engine, given, host.types, has_side_effect)
    return ctx.build.handles(list(results)), token, None


def jaxpr_subcomp(
    ctx: Any,
    jaxpr: Any,
    name_stack: Any,
    tokens: Any,
    consts_for_constvars: Sequence[Any],
    *args: Any,
    dim_var_values: Any = (),
    const_lowering: Any = None,
    outer_traceback: Any = None,
) -> tuple[list[Any], Any]:
    """Emit the equations of a program at the insertion point; returns (values, `tokens` unchanged).

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> program = atled.jax.make_jaxpr(lambda x: x * 3)(1.0)
    >>> triple = Primitive("triple")
    >>> _ = triple.def_abstract_eval(lambda x: x)
    >>> rule = lambda ctx, x: jaxpr_subcomp(ctx.module_context, program, None, None, [], x)[0]
    >>> _ = register_lowering(triple, rule)
    >>> atled.jit(triple.bind)(2.0)
    Array(6., dtype=float32, weak_type=True)
    """
    del name_stack, dim_var_values, const_lowering, outer_traceback
    given = [*consts_for_constvars, *args]
    values = [BuilderValue(v, t) for v, t in zip(given, jaxpr.input_types, strict=True)]
    return ctx.build.handles(ctx.build.inline(jaxpr, values)), tokens


def make_ir_context() -> Any:
    """An MLIR context with the dialects that programs use.

    >>> with make_ir_context():
    ...     print(ir.Type.parse("!stablehlo.token"))
    !stablehlo.token
    """
    return mlir_attributes.make_context()


def merge_mlir_modules(dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None) -> str:
    """Copy all functions of one module into another as private functions; returns the new name of `main`.

    The new name is `sym_name`, with a number if that name exists already. Nothing in `dst_module` is renamed.

    >>> import atled
    >>> one, other = (atled.jit(f).lower(1.0).compiler_ir() for f in (lambda x: x + 1, lambda x: x * 2))
    >>> merge_mlir_modules(one, "helper", other), "func.func private @helper" in str(one)
    ('helper', True)
    """
    there = ir.SymbolTable(dst_module.operation) if dst_symtab is None else dst_symtab
    here = ir.SymbolTable(src_module.operation)
    names: dict[str, str] = {}
    for op in src_module.body.operations:
        old = ir.StringAttr(op.operation.attributes["sym_name"]).value
        base = new = sym_name if old == "main" else old
        n = 0
        while new in there or new in names.values() or (new in here and new != old):
            new, n = f"{base}_{n}", n + 1
        names[old] = new
    for op in list(src_module.body.operations):
        operation = op.operation
        old = ir.StringAttr(operation.attributes["sym_name"]).value
        if names[old] != old:
            here.replace_all_symbol_uses(old, names[old], src_module.operation)
            here.set_symbol_name(operation, names[old])
        here.set_visibility(operation, "private")
        there.insert(operation.clone(ip=ir.InsertionPoint(dst_module.body)))
    return names["main"]
