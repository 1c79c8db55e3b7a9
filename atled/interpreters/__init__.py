"""Rules for user-defined primitives, and a few names that libraries use, with the API of `jax.interpreters`."""
