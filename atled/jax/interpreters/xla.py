"""Names of `jax.interpreters.xla`."""

from __future__ import annotations

from functools import partial
from typing import Any

from atled.core.trace import bind
from atled.engine.mlir import xla_client
from atled.staging.jit import jit

__all__ = ["Backend", "apply_primitive"]
__dir__ = __all__.copy
Backend = xla_client.Client


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Compile a single primitive and run it on `args`.

    >>> from atled.jax.extend.core.primitives import sin_p
    >>> apply_primitive(sin_p, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    out = jit(partial(bind, prim.op_of(params)))(*args)
    return list(out) if prim.multiple_results else out
