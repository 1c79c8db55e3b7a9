"""Names of `jax._src.compiler`: none. What patches JAX's compiler finds nothing to patch."""
