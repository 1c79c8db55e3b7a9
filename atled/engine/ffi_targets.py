"""Foreign functions (FFI): their registration with the engine, and the custom call in a module."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jaxlib
import jaxlib._jax as _jax
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from atled.core.types import ArrayType
from atled.engine import mlir_attributes, program_cache

try:  # the oldest supported jaxlib has no such module
    import jaxlib._xla as _xla
except ImportError:
    _xla = None


def register_target(name: str, function: Any, api_version: int, traits: int = 0) -> None:
    """Register a function for programs on the CPU; a name that is registered already keeps its first function."""
    _jax.register_custom_call_target(name, function, "Host", api_version, traits)


def register_type(name: str, registration: Any) -> None:
    """Register a state type under a name; functions keep objects of that type between calls."""
    _jax.register_custom_type(name, registration)


def register_batched(name: str) -> None:
    """Let the partitioner split calls of a function along leading batch axes."""
    _jax.register_custom_call_as_batch_partitionable(name)
    _batched.add(name)


_batched: set[str] = set()  # names of functions whose calls may be partitioned


def batch_attributes(name: str, count: int, ins: Sequence[Sequence[int]], outs: Sequence[Sequence[int]]) -> Any:
    """Attributes with a sharding rule that lets the partitioner split the leading axes of all operands and results."""
    if name not in _batched or not count:
        return {}
    sizes: list[int] = list(ins[0][:count])

    def axes(shape: Sequence[int]) -> str:
        first = len(sizes)
        sizes.extend(shape[count:])
        return f"[{', '.join([_factor(i) for i in (*range(count), *range(first, len(sizes)))])}]"

    operands, results = (", ".join([axes(shape) for shape in shapes]) for shapes in (ins, outs))
    known = ", ".join([f"{_factor(i)}={n}" for i, n in enumerate(sizes)])
    return {
        "mhlo.frontend_attributes": ir.DictAttr.get({"num_batch_dims": ir.StringAttr.get(str(count))}),
        "sdy.sharding_rule": ir.Attribute.parse(
            f"#sdy.op_sharding_rule<({operands})->({results}) {{{known}}}, custom>"
        ),
    }


def _factor(i: int) -> str:
    """The name of an axis in a sharding rule."""
    return chr(ord("i") + i) if i < 18 else f"z_{i - 17}"


def register_transform(name: str, stage: int, callback: Any) -> None:
    """Register a function that may rewrite each module in the CPU compiler."""
    if _xla is None:
        raise NotImplementedError("register_hlo_module_transformation: this jaxlib has no such hook.")
    _xla.register_xla_transform(name, stage, callback)
    program_cache.transforms.append((name, stage))
    program_cache.forget()


def clear_transform(name: str, stage: int) -> bool:
    """Unregister a function registered with `register_transform`; returns whether there was one."""
    if _xla is None or not _xla.clear_xla_transform(name, stage):
        return False
    program_cache.transforms[:] = [t for t in program_cache.transforms if t != (name, stage)]
    program_cache.forget()
    return True


def include_dir() -> str:
    """The folder of the headers that jaxlib ships.

    >>> import os
    >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return os.path.join(os.path.abspath(next(iter(jaxlib.__path__))), "include")


def custom_call(
    call_target_name: str,
    *,
    result_types: Sequence[Any],
    operands: Sequence[Any],
    backend_config: Any = "",
    has_side_effect: bool = False,
    called_computations: Sequence[str] = (),
    api_version: int = 2,
    operand_output_aliases: dict[int, int] | None = None,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    extra_attributes: dict[str, Any] | None = None,
) -> Any:
    """Emit a call of a registered function at MLIR's insertion point; layouts are minor to major."""
    text = "" if backend_config is None else backend_config
    given: dict[str, Any] = {
        "call_target_name": ir.StringAttr.get(call_target_name),
        "has_side_effect": ir.BoolAttr.get(has_side_effect),
        "backend_config": ir.DictAttr.get(text) if isinstance(text, dict) else ir.StringAttr.get(text),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), api_version),
        "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(n) for n in called_computations]),
    }
    if operand_output_aliases is not None:
        several = len(result_types) > 1
        given["output_operand_aliases"] = ir.ArrayAttr.get([
            hlo.OutputOperandAlias.get([out] if several else [], i, []) for i, out in operand_output_aliases.items()
        ])  # fmt: skip
    for name, layouts in (("operand_layouts", operand_layouts), ("result_layouts", result_layouts)):
        if layouts is not None:
            given[name] = ir.ArrayAttr.get([_order(layout) for layout in layouts])
    given.update(extra_attributes or {})
    return hlo.CustomCallOp.build_generic(results=list(result_types), operands=list(operands), attributes=given)


def _order(layout: Sequence[int]) -> Any:
    axes: Any = np.asarray(tuple(layout), np.int64)
    return ir.DenseIntElementsAttr.get(axes, type=ir.IndexType.get())  # pyright: ignore[reportCallIssue]


def attribute(val: Any) -> Any:
    """A number, string, array, dict or sequence as an MLIR attribute; Python numbers become 64 bits wide."""
    with mlir_attributes.context:
        if isinstance(val, ir.Attribute):
            return val
        if isinstance(val, (str, bytes)):
            return ir.StringAttr.get(val)
        if isinstance(val, np.dtype):
            return ir.TypeAttr.get(_scalar(val))
        if isinstance(val, dict):
            return ir.DictAttr.get({k: attribute(v) for k, v in val.items()})
        if isinstance(val, (tuple, list)):
            return ir.ArrayAttr.get([attribute(v) for v in val])
        if isinstance(val, (bool, np.bool_)):
            return ir.BoolAttr.get(bool(val))
        if isinstance(val, (int, float)) and not isinstance(val, np.generic):
            val = np.int64(val) if isinstance(val, int) else np.float64(val)
        if isinstance(val, np.integer):
            return ir.IntegerAttr.get(_scalar(val.dtype), int(val))
        if isinstance(val, np.floating):
            return ir.FloatAttr.get(_scalar(val.dtype), float(val))
        array = np.asarray(val)
        return mlir_attributes.dense(array, array.dtype, array.shape)


def _scalar(dtype: np.dtype) -> Any:
    with mlir_attributes.context, ir.Location.unknown(mlir_attributes.context):
        return mlir_attributes.module_type(ArrayType((), dtype)).element_type
