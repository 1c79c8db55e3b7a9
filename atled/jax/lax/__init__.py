"""`atled.lax`, and the primitives under JAX's names.

>>> from atled.jax import lax
>>> lax.add_p, lax.add(1, 2)
(add, Array(3, dtype=int32, weak_type=True))
"""

from typing import Any

from atled import lax
from atled.jax.extend.core import primitives


def __getattr__(name: str) -> Any:
    if name.endswith("_p") and not name.startswith("_"):
        return getattr(primitives, name)
    return getattr(lax, name)


__all__ = lax.__all__  # pyright: ignore[reportUnsupportedDunderAll]
__dir__ = __all__.copy
