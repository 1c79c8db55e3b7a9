"""What libraries written for JAX take from `jax.extend` and `jax.core`. `import atled` does not load it."""
