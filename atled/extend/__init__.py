"""The names that libraries written for JAX use from `jax.extend` and `jax.core`. `import atled` does not load it."""
