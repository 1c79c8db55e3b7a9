"""Scheduling groups: ops that the compiler schedules together, with the API of `jax.experimental.scheduling_groups`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled.higher_order.frontend_attributes import marked_call

__all__ = ["scheduling_group"]
__dir__ = __all__.copy


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that makes a function one call in the compiled program, annotated with the group's name.

    >>> import atled, atled.numpy as jnp
    >>> f = atled.jit(scheduling_group("first")(lambda x: jnp.sin(x) * 2))
    >>> 'scheduling_group = "first"' in f.lower(1.0).as_text()
    True
    """
    if not isinstance(name, str):
        raise TypeError(f"scheduling_group: the name of a group must be a string; got {name!r}.")
    return lambda f: marked_call(f, (("scheduling_group", name),))
