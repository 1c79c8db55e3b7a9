"""A stub of `jax.experimental.array_serialization.serialization`, so that Orbax can be imported."""

__all__ = ["GlobalAsyncCheckpointManagerBase"]


class GlobalAsyncCheckpointManagerBase:
    """JAX's base class of checkpoint managers, which libraries use in type checks."""
