"""Functions that set the disk cache directory (the setting `cache_dir`) and clear caches, with JAX's API."""

from __future__ import annotations

from typing import Any

from atled.core import settings
from atled.staging.jit_calls import clear_caches

__all__ = ["reset_cache", "set_cache_dir"]
__dir__ = __all__.copy


def set_cache_dir(path: Any) -> None:
    """Set the directory of the disk cache.

    >>> import atled, tempfile
    >>> before = atled.settings.read("cache_dir")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     set_cache_dir(place)
    ...     set_cache_dir(before)
    """
    settings.update("cache_dir", None if path is None else str(path))


def reset_cache() -> None:
    """Drop the programs compiled in this process; the files of the disk cache stay.

    >>> reset_cache()
    """
    clear_caches()
