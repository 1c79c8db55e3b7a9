"""Names of `jax._src.distributed`."""

from __future__ import annotations

from typing import Any

from atled.engine import client

__all__ = ["global_state"]


class _State:
    """The index of this process and the number of processes, as JAX's private distributed state has them."""

    @property
    def client(self) -> Any:
        """None for a single process; raises for several, since atled lacks JAX's key-value store."""
        if self.num_processes > 1:
            raise NotImplementedError("jax._src.distributed: atled has no key-value store for several processes.")

    @property
    def process_id(self) -> int:
        """The rank of this process."""
        return client.process_index() if client.is_used() else 0

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return client.process_count() if client.is_used() else 1


global_state = _State()
