"""`ensure_compile_time_eval`: evaluates ops on concrete values while a function is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from atled.core import settings
from atled.core.trace import bottom, state


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A `with` block in which ops on concrete values are evaluated eagerly, even while a function is traced.

    Python code can branch on the results of these ops. Branching on tracers raises as usual.

    >>> import atled, atled.numpy as jnp
    >>> @atled.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         is_positive = jnp.sin(3.0) > 0
    ...     return x if is_positive else -x
    >>> float(f(2.0))
    2.0
    """
    base, token = state.base, settings.ordinary()
    state.base = bottom()
    try:
        yield
    finally:
        state.base = base
        settings.restore(token)
