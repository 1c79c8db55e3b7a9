"""Names that libraries import from JAX's private modules, `jax._src`. They exist only under the alias `jax`."""
