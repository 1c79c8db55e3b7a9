"""Rules for user-defined primitives, and a few names that libraries take, as `jax.interpreters` has them."""
