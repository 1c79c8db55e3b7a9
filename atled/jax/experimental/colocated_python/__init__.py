"""A stub of `jax.experimental.colocated_python`, so that libraries that use it can be imported. All functions raise."""

from __future__ import annotations

from typing import Any

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """Not supported."""
    raise _ERROR


def colocated_python(fun: Any) -> Any:
    """Not supported."""
    raise _ERROR


def colocated_python_class(cls: Any) -> Any:
    """Not supported."""
    raise _ERROR


_ERROR = NotImplementedError("jax.experimental.colocated_python: remote runtimes are not supported.")
