"""Calls that a checker refuses: each line with a comment has an error, and no other line."""

import atled.numpy as jnp
from atled import lax, metrics, nn, optim, random
from atled.scipy import linalg, special

x = jnp.ones(3)
key = random.key(0)
jnp.sin("x")  # error: a string is no array
jnp.sin(x, x)  # error: too many operands
jnp.sum(x, axes=0)  # error: the parameter is axis
jnp.reshape(x)  # error: a shape is needed
jnp.add(x)  # error: two operands are needed
jnp.maximum(x1=x, x2=x)  # error: operands of ufuncs have no names
lax.sin(y=x)  # error: the parameter is x
jnp.max(x, where=[True])  # error: a list is no array
jnp.zeros("ab")  # error: a shape is numbers
jnp.zeros(3, dtype=4)  # error: a number is no dtype
jnp.sum(x, axis="rows")  # error: axes are numbers
jnp.stack("ab")  # error: strings are no arrays
lax.dot(x)  # error: two operands are needed
lax.full((2,), "a")  # error: a string is no number
lax.igamma(x, "a")  # error: a string is no array
lax.dynamic_slice(x, "a", (1,))  # error: a position is numbers
nn.relu6("a")  # error: a string is no array
nn.softmax(x, axis="rows")  # error: axes are numbers
nn.max_pool([1.0], (2,))  # error: a list is no array
nn.dot_product_attention(x, x)  # error: values are needed
nn.losses.cross_entropy("a", x)  # error: a string is no array
nn.losses.squared_error(x, x, where=[True, False, True])  # error: a list is no array
nn.initializers.he_normal(dtype=2)  # error: a number is no dtype
random.normal(key, shape="ab")  # error: a shape is numbers
random.uniform("seed")  # error: a string is no key
random.bits(key, (2,), dtype=8)  # error: a number is no dtype
special.gammaln("x")  # error: a string is no array
linalg.solve(x)  # error: two operands are needed
linalg.lu_solve(x, x)  # error: a pair is needed
metrics.auc("a", x)  # error: a string is no array
optim.clip_by_global_norm("1")  # error: a string is no number
