"""Functions that select: each gives NaN for a NaN among its arguments, and so must some derivative of it.

`row(expression, x)`: the expression is a function of x, summed. It is tested as a function of w, at x * w with w = 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

nan = np.nan
ROW, SQUARE = [0.5, nan, 2.0, -1.0], [[0.5, 2.0], [nan, -1.0]]
IMAGE = [[0.5, 2.0, -1.0, 0.3], [1.0, nan, 0.2, 0.1]]


class Selection(NamedTuple):
    """A function of x, and an x for which it is NaN; whether its derivative by x is NaN, too (not only that by w)."""

    expression: str
    x: Any = ROW
    is_direct: bool = False


def extremum(expression: str, x: Any = ROW) -> Selection:
    """A function that is not differentiable at NaN."""
    return Selection(expression, x, True)


SELECTIONS = [
    *[extremum(e) for e in (
        "jnp.max(x)", "jnp.min(x)", "jnp.amax(x)", "jnp.ptp(x)", "jnp.maximum(x, 0.0)", "jnp.maximum(0.0, x)",
        "jnp.minimum(x, 1.0)", "jnp.maximum(x, x[::-1])", "jnp.minimum(x[::-1], x)", "jnp.clip(x, 0.0, 1.0)",
        "jnp.clip(x, 0.0, None)", "jnp.clip(x, None, 1.0)", "x.clip(0.0, 1.0)", "lax.clamp(0.0, x, 1.0)",
        "lax.max(x, jnp.ones_like(x))", "lax.min(x, jnp.ones_like(x))", "jnp.linalg.norm(x, jnp.inf)",
        "jnp.linalg.norm(x, -jnp.inf)", "jnp.max(jnp.maximum(1.0 - x, 0.0))", "jnp.mean(jnp.maximum(0.0, 1.0 - x))",
        "jnp.max(x, where=jnp.array([True, True, False, True]), initial=-9.0)", "jnp.max(jnp.abs(x))",
        "jnp.maximum(jnp.maximum(x, 0.0), 1.0)", "jnp.clip(x, x - 1.0, x + 1.0)", "jnp.clip(x, jnp.nan, 1.0)[2]",
        "jnp.maximum(x, jnp.nan)[0]", "jnp.minimum(jnp.nan, x)[0]", "jnp.max(x[:, None] * x)",
        "lax.reduce(x, -jnp.inf, lax.max, (0,))", "lax.reduce_max(x, (0,))", "lax.reduce_min(x, (0,))",
    )],
    extremum("jnp.max(x, axis=0)", SQUARE),
    extremum("jnp.linalg.norm(x, jnp.inf)", SQUARE),
    extremum("x.at[jnp.array([1, 1])].max(jnp.array([0.0, 5.0]))"),
    extremum("jnp.zeros(2).at[jnp.array([0, 0, 1, 1])].max(x)"),
    extremum("jnp.full(2, 9.0).at[jnp.array([0, 0, 1, 1])].min(x)"),
    extremum("ops.segment_max(x, jnp.array([0, 0, 1, 1]), 2)"),
    extremum("ops.segment_min(x, jnp.array([0, 0, 1, 1]), 2)"),
    Selection("lax.cummax(x)"),
    Selection("lax.cummin(x)"),
    Selection("jnp.maximum.accumulate(x)"),
    Selection("lax.associative_scan(jnp.maximum, x)"),
    Selection("lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), 'VALID')", IMAGE),
    Selection("lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (2, 2), 'SAME')", IMAGE),
    Selection("nn.max_pool(x[None, :, :, None], (2, 2))", IMAGE),
    *[Selection(e) for e in (
        "nn.relu(x)", "nn.relu6(x)", "nn.leaky_relu(x)", "nn.hard_tanh(x)", "nn.hard_sigmoid(x)", "nn.hard_silu(x)",
        "nn.elu(x)", "nn.celu(x)", "nn.selu(x)", "nn.sparse_plus(x)", "nn.sparse_sigmoid(x)", "nn.softplus(x)",
        "nn.relu(x) ** 2", "nn.softmax(x)[0]", "nn.log_softmax(x)[0]", "nn.logsumexp(x)", "jnp.logaddexp(x, 0.0)",
        "nn.log1mexp(x)", "nn.glu(x)", "jnp.abs(x)", "jnp.sort(x)", "jnp.sort(x)[-1]", "lax.top_k(x, 2)[0]",
        "x[jnp.argmax(x)]", "jnp.take(x, jnp.argmin(x))", "jnp.median(x)", "jnp.quantile(x, 0.3)",
        "jnp.percentile(x, 50.0, method='lower')", "jnp.quantile(x, 0.5, method='nearest')", "jnp.partition(x, 2)",
        "jnp.where(x > 0, x, 0.5 * x)", "jnp.select([x > 1, x > 0], [x, 2 * x], 3 * x)", "jnp.fmax(x, x)",
        "jnp.fmin(x[1], x[1])", "jnp.nanmax(x[1:2])", "jnp.nanmin(x[1:2])", "jnp.nanmedian(x[1:2])",
        "jnp.nanmean(x[1:2])", "lax.cond(x[1] > 0, lambda x: x, lambda x: 2 * x, x)",
        "jnp.piecewise(x, [x > 0], [lambda x: x, lambda x: 2 * x])", "jnp.copysign(x, 1.0)", "jnp.unwrap(x)",
        "jnp.interp(x, jnp.arange(3.0), jnp.array([0.0, 1.0, 3.0]))", "jnp.mod(x, 1.0)", "jnp.fmod(x, 1.0)",
        "jnp.hypot(x, 1.0)", "jnp.where(x == x, x, jnp.nan)", "jnp.where(x > 0, x, jnp.nan)",
        "jnp.roll(x, 1)[::2]", "jnp.tril(x[:, None] * x)", "jnp.cumsum(jnp.where(x > 9, 0, x))", "jnp.trapezoid(x)",
        "lax.scan(lambda c, v: (jnp.maximum(c, v), c), 0.0, x)[0]",
        "lax.fori_loop(0, 4, lambda i, c: jnp.minimum(c, x[i]), 9.0)",
        "lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.maximum(c[1], x[c[0]])), (0, 0.), max_steps=4)[1]",
        "stats.norm.logpdf(x)", "stats.expon.logpdf(x)", "stats.uniform.logpdf(x)[1]",
        "stats.norm.logpdf(1.0, 0.0, x)[3]", "nn.losses.hinge(x, jnp.ones(4))", "nn.losses.huber(x, jnp.ones(4))",
        "nn.losses.absolute_error(x, jnp.ones(4))", "nn.losses.binary_cross_entropy(x, jnp.ones(4))",
        "nn.losses.squared_hinge(x, jnp.ones(4))",
    )],
]  # fmt: skip
