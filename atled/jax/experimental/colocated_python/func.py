"""A stub of `jax.experimental.colocated_python.func`: it has no names."""
