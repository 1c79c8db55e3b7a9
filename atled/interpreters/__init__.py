"""Rules for primitives of one's own, and a few names that libraries take, as `jax.interpreters` has them."""
