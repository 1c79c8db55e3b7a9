"""`jax.interpreters.mlir`: it is for primitives of one's own, which are not offered here."""
