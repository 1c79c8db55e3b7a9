"""Names of `jax.interpreters.xla`."""

from __future__ import annotations

from functools import partial
from typing import Any

from atled.core.trace import bind
from atled.engine.mlir import xla_client
from atled.staging.jit import jit

__all__ = ["Backend", "apply_primitive"]
Backend = xla_client.Client


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Compile a single primitive, and run it."""
    out = jit(partial(bind, prim.op_of(params)))(*args)
    return list(out) if prim.multiple_results else out
