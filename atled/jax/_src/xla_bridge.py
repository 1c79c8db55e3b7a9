"""Names of `jax._src.xla_bridge`."""

from typing import Any

from atled.engine import client
from atled.jax.extend.backend import backends, get_backend

__all__ = ["backends", "backends_are_initialized", "get_backend"]


def backends_are_initialized() -> bool:
    """Whether a client has already been created."""
    return client.is_used()


def __getattr__(name: str) -> Any:
    if name == "_backends":
        return dict(client.clients()) if backends_are_initialized() else {}
    raise AttributeError(f"module 'jax._src.xla_bridge' has no attribute {name!r} in atled")
