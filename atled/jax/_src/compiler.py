"""Names of `jax._src.compiler`: none. Placeholder for code that patches JAX's compiler; patches have no effect."""
