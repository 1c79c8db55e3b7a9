"""Backends under the names of `jax.extend.backend` and `jax.lib`."""

from __future__ import annotations

from typing import Any

from atled.engine import client
from atled.higher_order.jit import clear_caches

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend",
    "get_default_device", "register_backend_cache",
]  # fmt: skip
_caches: list[Any] = []  # of others, that are about backends


def get_backend(platform: str | None = None) -> Any:
    """The client of a platform, or of the default one."""
    return client.devices(platform)[0].client


def backends() -> dict[str, Any]:
    """All clients by platform."""
    return dict(client.clients())


def clear_backends() -> None:
    """Forget the clients; the next use of a device makes new ones."""
    client.reset()
    for cache in _caches:
        cache.cache_clear()


def backend_xla_version(platform: str | None = None) -> int | None:
    """The number of the compiler's version, if the client of a platform says it.

    >>> backend_xla_version("cpu") is None
    True
    """
    return getattr(get_backend(platform), "xla_version", None)


def register_backend_cache(cache: Any, for_what: str = "") -> None:
    """Let `clear_backends` call `cache.cache_clear()`, too.

    >>> import functools
    >>> @functools.cache
    ... def where():
    ...     return get_backend().platform
    >>> register_backend_cache(where, "where")
    """
    _caches.append(cache)


def clear_in_memory_compilation_cache() -> None:
    """Forget compiled programs, but not those on disk.

    >>> clear_in_memory_compilation_cache()
    """
    clear_caches()


get_default_device = client.default_device
