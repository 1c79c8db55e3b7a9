"""Names that libraries import from JAX's private modules, `jax._src`. These names exist only under the alias `jax`."""
