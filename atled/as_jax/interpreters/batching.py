"""`jax.interpreters.batching`: it is for primitives of one's own, which are not offered here."""
