"""Names of `jax._src.dtypes`."""

from typing import Any

from atled.errors import TypePromotionError
from atled.jax.dtypes import *  # noqa: F403
from atled.jax.dtypes import extended, finfo

__all__ = ["DType", "ExtendedDType", "TypePromotionError", "extended", "finfo", "supports_inf"]
DType = Any


class ExtendedDType:
    """A base class for dtypes that libraries define; arrays of such dtypes are not supported."""


def supports_inf(dtype: Any) -> bool:
    """Whether a float type has infinities."""
    return bool(finfo(dtype).max < float("inf")) and "fn" not in finfo(dtype).dtype.name
