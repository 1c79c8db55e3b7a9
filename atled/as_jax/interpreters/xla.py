"""`jax.interpreters.xla`: it is for primitives of one's own, which are not offered here."""
