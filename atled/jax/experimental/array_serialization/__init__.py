"""A stub of `jax.experimental.array_serialization`, so that Orbax can be imported."""
