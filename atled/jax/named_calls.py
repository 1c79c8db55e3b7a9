"""`named_call` and `fwd_and_bwd`, with JAX's API."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from atled.core.source import named_scope
from atled.staging.jit import jit
from atled.transforms.grad import vjp

_F = TypeVar("_F", bound=Callable[..., Any])


def named_call(fun: _F, *, name: str | None = None) -> _F:
    """`fun`, run in a `named_scope` with its own name or with `name`.

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


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function as two functions, which share a pytree of residuals.

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
