"""A stub of `jax.experimental.array_serialization`: it has one name, in `serialization`."""
