"""The few names of `jax.interpreters` that libraries take without writing primitives of their own."""
