"""Backends with the API of `jax.extend.backend` and `jax.lib`."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.engine import client
from atled.engine.mlir import xla_client
from atled.staging.jit_calls import clear_caches

__all__ = [
    "backend_xla_version", "backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend",
    "get_compile_options", "get_default_device", "register_backend_cache",
]  # fmt: skip
__dir__ = __all__.copy
_caches: list[Any] = []  # registered with register_backend_cache


def get_backend(platform: str | None = None) -> Any:
    """The client of a platform, by default of the default platform.

    >>> get_backend("cpu").platform, get_backend("cpu").device_count() > 0
    ('cpu', True)
    """
    return client.devices(platform)[0].client


def backends() -> dict[str, Any]:
    """All clients by platform.

    >>> "cpu" in backends()
    True
    """
    return dict(client.clients())


def clear_backends() -> None:
    """Drop the clients; the next use of a device creates new ones.

    >>> before = get_backend("cpu")
    >>> clear_backends()
    >>> get_backend("cpu") is before
    False
    """
    client.reset()
    for cache in _caches:
        cache.cache_clear()


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version number of XLA that a platform's client reports, or None.

    >>> backend_xla_version("cpu") is None
    True
    """
    return getattr(get_backend(platform), "xla_version", None)


def register_backend_cache(cache: Any, for_what: str = "") -> None:
    """Make `clear_backends` also call `cache.cache_clear()`.

    >>> import functools
    >>> @functools.cache
    ... def where():
    ...     return get_backend().platform
    >>> register_backend_cache(where, "where")
    """
    _caches.append(cache)


def clear_in_memory_compilation_cache() -> None:
    """Drop the compiled programs in memory; the disk cache is unchanged.

    >>> clear_in_memory_compilation_cache()
    """
    clear_caches()


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """Compiler options for these numbers of replicas and partitions; `device_assignment` is [replica, partition].

    >>> get_compile_options(1, 2).num_partitions
    2
    """
    del detailed_logging, backend
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas, options.num_partitions = num_replicas, num_partitions
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    if env_options_overrides:
        options.env_option_overrides = list(env_options_overrides.items())
    if device_assignment is not None:
        given = np.asarray(device_assignment)
        grid = given[:, None] if given.ndim == 1 and num_partitions == 1 else given
        if grid.shape != (num_replicas, num_partitions):
            raise ValueError(
                f"get_compile_options: device_assignment must have {num_replicas} x {num_partitions} devices; got "
                f"{' x '.join(map(str, grid.shape))}."
            )
        numbers = [[getattr(d, "id", d) for d in row] for row in grid]
        options.device_assignment = xla_client.DeviceAssignment.create(np.asarray(numbers, np.int32))
    return options


get_default_device = client.default_device
