"""What libraries take from JAX's private modules, `jax._src`, under those names. Only the alias has it."""
