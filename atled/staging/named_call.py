"""`named_call`, `ensure_compile_time_eval` and `fwd_and_bwd`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from atled.core import settings
from atled.core.source import named_scope
from atled.core.trace import bottom, state
from atled.staging.jit import jit
from atled.transforms.grad import vjp

_F = TypeVar("_F", bound=Callable[..., Any])


def named_call(fun: _F, *, name: str | None = None) -> _F:
    """A function that runs in a `named_scope` of its own name, or of another.

    >>> import atled, atled.numpy as jnp
    >>> f = atled.jit(named_call(jnp.sin, name="wave"))
    >>> "wave/sin" in f.lower(1.0).as_text(debug_info=True)
    True
    """
    shown = name or getattr(fun, "__name__", type(fun).__name__)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with named_scope(shown):
            return fun(*args, **kwargs)

    return call  # type: ignore[return-value]


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A `with` block in which ops on concrete values are evaluated eagerly, even while a function is traced.

    Python can branch on the results. Tracers stay tracers, and branching on them raises as usual.

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


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function as two functions, with a tree of residuals between them.

    >>> import atled.numpy as jnp
    >>> forward, backward = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, between = forward(jnp.float32(2), jnp.float32(3))
    >>> [float(g) for g in backward(between, jnp.float32(1))]
    [3.0, 2.0]
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def forward(*args: Any) -> Any:
        def chosen(*moving: Any) -> Any:
            return fun(*[moving[numbers.index(i)] if i in numbers else x for i, x in enumerate(args)])

        return vjp(chosen, *[args[i] for i in numbers], has_aux=has_aux)

    def backward(pull: Any, cotangent: Any) -> Any:
        cotangents = pull(cotangent)
        return cotangents[0] if isinstance(argnums, int) else cotangents

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
