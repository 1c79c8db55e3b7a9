"""Stubs for JAX's remote runtimes, so that Orbax, which imports them, can be imported. Using one raises.

They stand for `jax.experimental.colocated_python`, `jax.experimental.array_serialization` and
`jax.extend.ifrt_programs`, and for the modules inside them.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "DeviceList", "GlobalAsyncCheckpointManagerBase", "colocated_cpu_devices", "colocated_python",
    "colocated_python_class", "ifrt_programs",
]  # fmt: skip

DeviceList = tuple


class GlobalAsyncCheckpointManagerBase:
    """JAX's base class of checkpoint managers, which libraries compare types with."""


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """Not supported."""
    raise NotImplementedError("jax.experimental.colocated_python: remote runtimes are not supported by atled.as_jax.")


colocated_python = colocated_python_class = colocated_cpu_devices


class ifrt_programs:  # noqa: N801
    """Programs for the plugins of a remote runtime: there are none."""
