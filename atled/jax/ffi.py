"""`atled.ffi`, and lowering rules of user-defined primitives that call registered functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from atled.engine import ffi_targets
from atled.ffi import *  # noqa: F403
from atled.ffi import __all__ as _ours
from atled.ffi import minor_to_major
from atled.jax.interpreters.mlir import aval_to_ir_type, ir_attribute

__all__ = [*_ours, "build_ffi_lowering_function", "ffi_lowering"]  # pyright: ignore[reportUnsupportedDunderAll]
__dir__ = __all__.copy


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A function `(context, *values, **params)` that emits a call of a registered function and returns the MLIR op.

    By default, types and row-major layouts are those of the context. Layouts list axes from the fastest to the slowest,
    in contrast to `ffi_call`. Parameters of the primitive become attributes of the call.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> from atled.jax.interpreters import mlir
    >>> root = Primitive("root")
    >>> _ = root.def_abstract_eval(lambda x: x)
    >>> call = build_ffi_lowering_function("my_root", has_side_effect=True)
    >>> _ = mlir.register_lowering(root, lambda ctx, x: [call(ctx, x).result])
    >>> "my_root" in atled.jit(root.bind).lower(1.0).as_text()
    True
    """

    def write(ctx: Any, *operands: Any, **params: Any) -> Any:
        given: dict[str, Any] = {"api_version": 4, **lowering_args}
        if given["api_version"] >= 4:
            if backend_config is not None and not isinstance(backend_config, Mapping):
                raise ValueError("ffi_lowering: from api_version 4 on, backend_config must be a dict of attributes.")
            given["backend_config"] = {**(backend_config or {}), **{k: ir_attribute(v) for k, v in params.items()}}
        elif params:
            raise ValueError(
                f"ffi_lowering: attributes need at least api_version 4; got {given['api_version']} and {list(params)}."
            )
        else:
            given["backend_config"] = backend_config
        given.setdefault("result_types", [aval_to_ir_type(t) for t in ctx.avals_out])
        if not skip_ffi_layout_processing:
            given["operand_layouts"] = minor_to_major(ctx.avals_in, operand_layouts)
            given["result_layouts"] = minor_to_major(ctx.avals_out, result_layouts)
        return ffi_targets.custom_call(call_target_name, operands=operands, **given)

    return write


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A lowering rule that calls a registered function; for parameters, see `build_ffi_lowering_function`.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> from atled.jax.interpreters import mlir
    >>> root = Primitive("root")
    >>> _ = root.def_abstract_eval(lambda x: x)
    >>> _ = mlir.register_lowering(root, ffi_lowering("my_root"))
    >>> "my_root" in atled.jit(root.bind).lower(1.0).as_text()
    True
    """
    write = build_ffi_lowering_function(
        call_target_name, operand_layouts=operand_layouts, result_layouts=result_layouts,
        backend_config=backend_config, skip_ffi_layout_processing=skip_ffi_layout_processing, **lowering_args,
    )  # fmt: skip
    return lambda ctx, *operands, **params: list(write(ctx, *operands, **params).results)
