"""Memory layouts, with the API of `jax.experimental.layout`.

Arrays are always row-major here; these classes describe that. Any other order raises.
"""

from __future__ import annotations

from typing import Any

from atled.core.layout import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]
__dir__ = __all__.copy


def with_layout_constraint(x: Any, layouts: Layout) -> Any:
    """A value constrained to this layout.

    >>> import atled.numpy as jnp
    >>> with_layout_constraint(jnp.ones((2, 3)), Layout((0, 1))).shape
    (2, 3)
    """
    if not layouts.is_row_by_row:
        raise NotImplementedError(f"with_layout_constraint: arrays are always row-major here; got {layouts}.")
    return x
