"""Calls that a checker refuses: each line with a comment has an error, and no other line."""

import atled.numpy as jnp
from atled import lax

x = jnp.ones(3)
jnp.sin("x")  # error: a string is no array
jnp.sin(x, x)  # error: too many operands
jnp.sum(x, axes=0)  # error: the parameter is axis
jnp.reshape(x)  # error: a shape is needed
jnp.add(x)  # error: two operands are needed
jnp.maximum(x1=x, x2=x)  # error: operands of ufuncs have no names
lax.sin(y=x)  # error: the parameter is x
jnp.max(x, where=[True])  # error: a list is no array
