"""What a traced program is: types, trees, ops, interpreters and programs. Imports nothing else from atled."""

import importlib

# The names of `jax.core`, for programs written for JAX, are imported lazily from `extend/core/`.
_JAX_NAMES = (
    "AbstractValue", "Atom", "ClosedJaxpr", "ConcretizationTypeError", "DropVar", "Jaxpr", "JaxprEqn", "Literal",
    "ParamDict", "Primitive", "ShapedArray", "Trace", "Tracer", "Value", "Var", "concrete_or_error",
    "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "is_concrete", "jaxpr_as_fun", "mapped_aval",
    "max_dim", "min_dim", "subjaxprs", "trace_state_clean", "unmapped_aval", "valid_jaxtype",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _JAX_NAMES:
        return getattr(importlib.import_module("atled.extend.core"), name)
    raise AttributeError(f"module 'atled.core' has no attribute {name!r}")
