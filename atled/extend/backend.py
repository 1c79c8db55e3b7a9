"""Backends under the names of `jax.extend.backend` and `jax.lib`."""

from __future__ import annotations

from typing import Any

from atled.engine import client

__all__ = ["backends", "clear_backends", "get_backend", "get_default_device"]


def get_backend(platform: str | None = None) -> Any:
    """The client of a platform, or of the default one."""
    return client.devices(platform)[0].client


def backends() -> dict[str, Any]:
    """All clients by platform."""
    return dict(client.clients())


def clear_backends() -> None:
    """Forget the clients; the next use of a device makes new ones."""
    client.reset()


get_default_device = client.default_device
