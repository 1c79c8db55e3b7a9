"""Memory layouts, with the API of `jax.experimental.layout`.

Arrays in atled are always row-major, and any other layout raises.
"""

from __future__ import annotations

from typing import Any

from atled.core.layout import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]
__dir__ = __all__.copy


def with_layout_constraint(x: Any, layouts: Layout) -> Any:
    """Return `x` unchanged if the layout is row-major, else raise.

    >>> import atled.numpy as jnp
    >>> with_layout_constraint(jnp.ones((2, 3)), Layout((0, 1))).shape
    (2, 3)
    """
    if not layouts.is_row_by_row:
        raise NotImplementedError(f"with_layout_constraint: arrays are always row-major in atled; got {layouts}.")
    return x
