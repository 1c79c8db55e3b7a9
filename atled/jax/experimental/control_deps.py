"""The order in which the compiler computes values, with the API of `jax.experimental.control_deps`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from atled.core.array import ArrayLike
from atled.ffi import ffi_call

__all__ = ["control_dep", "schedule"]
__dir__ = __all__.copy


def control_dep(src: ArrayLike, dst: ArrayLike) -> tuple[()]:
    """Make a compiled program compute `src` before `dst`; neither may depend on the other.

    Their derivatives are not ordered.

    >>> import atled, atled.numpy as jnp
    >>> @atled.jit
    ... def f(x):
    ...     a, b = x @ x, x @ x.T
    ...     control_dep(b, a)
    ...     return a, b
    >>> "control-predecessors" in f.lower(jnp.ones((64, 64))).compile().as_text()
    True
    """
    ffi_call("control_dep", (), has_side_effect=True, vmap_method="broadcast_all")(src, dst)
    return ()


def schedule(ops: Sequence[ArrayLike]) -> None:
    """Make a compiled program compute values in the given order: adds a `control_dep` from each to the next.

    >>> import atled, atled.numpy as jnp
    >>> @atled.jit
    ... def f(x):
    ...     steps = [x @ x, x @ x.T, x.T @ x]
    ...     schedule(steps)
    ...     return steps
    >>> f.lower(jnp.ones((64, 64))).compile().as_text().count("control-predecessors")
    2
    """
    for src, dst in itertools.pairwise(ops):
        control_dep(src, dst)
