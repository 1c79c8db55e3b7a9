"""Names of `jax._src.state`."""
