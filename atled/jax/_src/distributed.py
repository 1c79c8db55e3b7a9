"""Names of `jax._src.distributed`."""

from __future__ import annotations

from typing import Any

from atled.engine import client

__all__ = ["global_state"]


class _State:
    """What libraries ask about the world of this process."""

    @property
    def client(self) -> Any:
        """None: in a world of several processes, it would be JAX's store of keys and values, which atled lacks."""
        if self.num_processes > 1:
            raise NotImplementedError("jax._src.distributed: the store of a multi-process run is not available.")

    @property
    def process_id(self) -> int:
        """The rank of this process."""
        return client.process_index() if client.is_used() else 0

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return client.process_count() if client.is_used() else 1


global_state = _State()
