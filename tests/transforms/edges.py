"""Functions at the points where their derivative is in question, with what is expected there, and why.

`python tests/transforms/edges.py` writes the table of `docs/guide/edges.md` from this one. What JAX gives is kept in
`edges_of_jax.json`; `python tests/transforms/edges.py --jax` collects it again.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any, NamedTuple

import numpy as np

from atled.core.tangent_mask import PRODUCTS as PRODUCTS_ONLY
from atled.core.tangent_mask import SLOPES, SUMS

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "guide" / "edges.md"
KEPT = HERE / "edges_of_jax.json"
inf, nan = np.inf, np.nan
EYE, ZEROS, RANK_ONE, ONES = [[1, 0], [0, 1]], [[0, 0], [0, 0]], [[1, 2], [2, 4]], [[1, 1], [1, 1]]
FLAT = "a step function: 0 everywhere"


class Edge(NamedTuple):
    """A function of x, summed, at a point: its first derivative there, and its second if that one is looked at."""

    expression: str
    point: Any
    first: Any
    why: str
    second: Any = None

    @property
    def key(self) -> str:
        return f"{self.expression} at {shown(self.point)}"


def guard(expression: str, point: Any, why: str = "not selected", first: Any = 0, second: Any = None) -> Edge:
    """A branch that is not chosen, by default with no derivative of any order."""
    return Edge(expression, point, first, why, np.zeros(np.shape(first) * 2).tolist() if second is None else second)


def pair(expression: str, point: Any, first: Any = nan, why: str = "an infinite slope times zero") -> Edge:
    """A function that is x, made of two: 1 is right, and what is not known must say so."""
    return Edge(expression, point, first, why)


GUARDS = [
    guard("jnp.where(x > 0, jnp.sqrt(x), 0)", 0),
    guard("jnp.where(x > 0, jnp.log(x), 0)", 0),
    guard("jnp.where(x > 0, jnp.log(x), 0)", -1),
    guard("jnp.where(x != 0, 1 / x, 0)", 0),
    guard("jnp.where(x[1] != 0, x[0] / x[1], 0)", [1, 0], first=[0, 0]),
    guard("jnp.where(x > 0, x**0.5, 0)", 0),
    guard("jnp.where(x > 0, x**-1, 0)", 0),
    guard("jnp.where(x > 0, x**x, 0)", 0),
    guard("jnp.where(x < 1, jnp.arccos(x), 0)", 1),
    guard("jnp.where(x < 1, jnp.arctanh(x), 0)", 1),
    guard("jnp.where(x > 1, jnp.arccosh(x), 0)", 0),
    guard("jnp.where(x > 0, jnp.sqrt(x) * jnp.log(x), 0)", 0, "both factors are discarded"),
    guard("jnp.where(x > 0, jnp.log(jnp.sqrt(x)), 0)", 0),
    guard("jnp.where(x > 0, jnp.exp(-1 / x), 0)", 0),
    guard("jnp.where(jnp.isnan(x), 0, (x - 1) ** 2)", nan, "a missing value contributes nothing"),
    guard("jnp.where(jnp.isnan(x), 0, jnp.sin(x) * x)", nan, "a missing value contributes nothing"),
    Edge("jnp.nansum(x * x)", [nan, 2], [0, 4], "a missing value contributes nothing", [[0, 0], [0, 2]]),
    Edge("jnp.sum(jnp.log(x), where=x > 0)", [0, 4], [0, 0.25], "left out of the sum", [[0, 0], [0, -0.0625]]),
    guard("jnp.where(jnp.any(x > 0), nn.softmax(x)[0], 0)", [-inf, -inf], "a fully masked row", [0, 0]),
    guard("jnp.select([x > 0], [jnp.log(x)], 0)", 0),
    guard("lax.select(x > 0, jnp.log(x), jnp.zeros_like(x))", 0),
    guard("lax.cond(x > 0, jnp.log, lambda x: 0.0 * x, x)", 0),
    guard("jnp.piecewise(x, [x > 0], [jnp.log, 0])", 0),
    guard("(x > 0) * jnp.sqrt(x)", 0, "a boolean times a number selects"),
    guard("jnp.where(x > 0, jnp.sqrt(x), jnp.where(x < 0, jnp.sqrt(-x), 0))", 0, "nested guards"),
    guard("jnp.where(x > 0, jnp.log(x), 0) * jnp.where(x < 0, jnp.sqrt(-x), 1)", 0, "a product of two guards"),
    guard("jnp.exp(jnp.where(x > 0, jnp.log(x), -jnp.inf))", 0, "ops after the selection see zero"),
    guard("jnp.where(x == 0, 1, jnp.sin(x) / x)", 0),
    guard("jnp.where(x > 0, lax.fori_loop(0, 2, lambda i, c: c * jnp.log(x), x), 0)", 0, "through a loop"),
    Edge(
        "lax.scan(lambda c, v: (c + jnp.where(v > 0, jnp.log(v), 0), 0.0), 0.0, x)[0]",
        [0, 4],
        [0, 0.25],
        "inside a loop",
        [[0, 0], [0, -0.0625]],
    ),
    Edge("jnp.where(x > 0, jnp.log(x), 0).cumsum()[-1]", [0, 4], [0, 0.25], "before a sum", [[0, 0], [0, -0.0625]]),
    guard("jnp.where(x[0] > 0, jnp.sum(jnp.log(x)), 0)", [0, 1], "after a sum that is discarded as a whole", [0, 0]),
    Edge("(jnp.where(x > 0, jnp.log(x), 0) + x) ** 3", -2, 12, "only the second term is selected", -12),
    Edge("jnp.where(x > 0, jnp.log(x), 0) + x**2", 4, 8.25, "both terms are selected", 1.9375),
    Edge("jnp.tril(1 / x)", [[1, 0], [2, 4]], [[-1, 0], [-0.25, -0.0625]], "discarded above the diagonal"),
    Edge("(1 / x).at[0].set(0)", [0, 2], [0, -0.25], "overwritten", [[0, 0], [0, 0.25]]),
    Edge("(1 / x).at[x == 0].set(0)", [0, 2], [0, -0.25], "overwritten", [[0, 0], [0, 0.25]]),
    Edge("jnp.sqrt(x)[1]", [0, 4], [0, 0.25], "not read", [[0, 0], [0, -0.03125]]),
    Edge("jnp.log(x)[jnp.argmax(x)]", [0, 4], [0, 0.25], "not read", [[0, 0], [0, -0.0625]]),
    guard("jnp.sqrt(x).at[9].get(mode='fill', fill_value=0)", [0, 4], "nothing is read", [0, 0]),
    Edge("lax.dynamic_slice(jnp.sqrt(x), (1,), (1,))", [0, 4], [0, 0.25], "not read", [[0, 0], [0, -0.03125]]),
    Edge("jnp.max(jnp.sqrt(x))", [0, 4], [0, 0.25], "not the largest", [[0, 0], [0, -0.03125]]),
    Edge("jnp.sort(jnp.sqrt(x))[1]", [0, 4], [0, 0.25], "not selected after sorting", [[0, 0], [0, -0.03125]]),
    Edge("lax.top_k(jnp.sqrt(x), 1)[0]", [0, 4], [0, 0.25], "not the largest", [[0, 0], [0, -0.03125]]),
    guard("jnp.sqrt(nn.relu(x))", -1, "constant on this side"),
    guard("jnp.clip(1 / x, -1, 1)", 0, "outside of the bounds"),
    guard("jnp.minimum(1 / x, 1.0)", 0, "outside of the bounds"),
    guard("jnp.nan_to_num(jnp.log(x))", -1, "replaced"),
    guard("jnp.nan_to_num(1 / x)", 0, "replaced"),
    Edge("jnp.mean(jnp.sqrt(x), where=x > 0)", [0, 4], [0, 0.25], "left out of the mean", [[0, 0], [0, -0.03125]]),
    Edge("jnp.prod(jnp.sqrt(x), where=x > 0)", [0, 4], [0, 0.25], "left out of the product", [[0, 0], [0, -0.03125]]),
]

PAIRS = [
    *[pair(e, 0) for e in (
        "jnp.sqrt(x) ** 2", "jnp.square(jnp.sqrt(x))", "jnp.cbrt(x) ** 3", "jnp.cbrt(x**3)", "(x**0.5) ** 2",
        "(x ** (1 / 3)) ** 3", "jnp.exp(jnp.log(x))", "jnp.exp2(jnp.log2(x))", "10 ** jnp.log10(x)",
        "special.expit(special.logit(x))", "special.ndtr(special.ndtri(x))", "jnp.arccosh(jnp.cosh(x))",
        "jnp.arccos(jnp.cos(x))", "1 / (1 / x)", "(x**-1) ** -1", "x * x / x",
        "jnp.where(x > -1, jnp.exp(jnp.log(x)), 0)",
    )],
    pair("jnp.expm1(jnp.log1p(x))", -1),
    pair("jnp.tanh(jnp.arctanh(x))", 1),
    pair("jnp.sin(jnp.arcsin(x))", 1, -inf, "the cosine is rounded to a negative number"),
    pair("jnp.cos(jnp.arccos(x))", 1),
    pair("jnp.cosh(jnp.arccosh(x))", 1),
    pair("special.erf(special.erfinv(x))", 1),
    pair("jnp.arctanh(jnp.tanh(x))", 50, why="tanh(50) is rounded to 1"),
    pair("jnp.log1p(jnp.expm1(x))", 200, why="the exponential overflows"),
    pair("special.logit(special.expit(x))", 200, why="expit(200) is rounded to 1"),
    pair("special.erfinv(special.erf(x))", 10, why="erf(10) is rounded to 1"),
    pair("-jnp.log(jnp.exp(-x))", 200, why="the exponential is rounded to 0"),
    pair("jnp.angle(jnp.exp(1j * x))", 0, 1, "exact"),
    pair("jnp.log(jnp.exp(x))", 80, 1, "exact"),
]  # fmt: skip

ROOTS = [
    Edge("jnp.sqrt(x)", 0, inf, "a vertical tangent, with no guard", -inf),
    Edge("jnp.cbrt(x)", 0, inf, "a vertical tangent"),
    Edge("jnp.log(x)", 0, inf, "a pole", -inf),
    Edge("jnp.arcsin(x)", 1, inf, "a vertical tangent"),
    Edge("jnp.arccos(x)", 1, -inf, "a vertical tangent"),
    Edge("jnp.arccosh(x)", 1, inf, "a vertical tangent"),
    Edge("jnp.sqrt(x * x)", 0, nan, "zero times infinity: the slopes are -1 and 1"),
    Edge("jnp.sqrt(x**4)", 0, nan, "zero times infinity"),
    Edge("jnp.sqrt(0 * x)", 1, nan, "zero times infinity"),
    Edge("jnp.sqrt(jnp.maximum(x, 0))", -1, 0, "constant on this side", 0),
    Edge("jnp.sqrt(jnp.clip(x, 0, 1))", -1, 0, "constant on this side", 0),
    Edge("jnp.sqrt(jnp.sum(x**2))", [0, 0], [nan, nan], "zero times infinity; `linalg.norm` is 0"),
    Edge("jnp.linalg.norm(x[:, None] - x, axis=-1)[0]", [1, 1], [0, 0], "the distance of a point from itself"),
    Edge("x**0", 0, 0, "a constant", 0),
    Edge("x**1", 0, 1, "exact", 0),
    Edge("x**2", 0, 0, "exact", 2),
    Edge("x**2.5", 0, 0, "the limit", 0),
    Edge("x**0.5", 0, inf, "a vertical tangent"),
    Edge("jnp.power(x, jnp.array([0.0, 1.0, 2.0, 3.0]))", 0, 1, "0, 1, 0 and 0", 2),
    Edge("x ** jnp.float32(3)", -2, 12, "defined for a negative base", -12),
    Edge("0.0**x", 2, 0, "0 for every exponent above 0", 0),
    Edge("x[0] ** x[1]", [0, 2], [0, 0], "the limit, for base and exponent"),
    Edge("x[0] ** x[1]", [-2, 3], [12, nan], "none for the exponent: a negative base has no real power near 3"),
    Edge("x[0] ** x[1]", [0, 0], [0, 0], "x**0 is 1, and 0**y is constant"),
]

NORMS = [
    Edge("jnp.linalg.norm(x)", [0, 0], [0, 0], "the minimum-norm subgradient", ZEROS),
    Edge("jnp.linalg.norm(x, 1)", [0, 2], [0, 1], "the minimum-norm subgradient", ZEROS),
    Edge("jnp.linalg.norm(x, 3)", [0, 0], [0, 0], "the minimum-norm subgradient", ZEROS),
    Edge("jnp.linalg.norm(x, 3)", [0, 1], [0, 1], "smooth there", ZEROS),
    Edge("jnp.linalg.norm(x, jnp.inf)", [1, -1], [0.5, -0.5], "ties share evenly", ZEROS),
    Edge("jnp.linalg.norm(x, axis=1)", [[0, 0], [3, 4]], [[0, 0], [0.6, 0.8]], "each row separately"),
    Edge("jnp.linalg.norm(x, 'fro')", ZEROS, ZEROS, "the minimum-norm subgradient"),
    Edge("jnp.linalg.norm(x, 'nuc')", ZEROS, ZEROS, "the minimum-norm subgradient"),
    Edge("jnp.linalg.norm(x, 'nuc')", EYE, EYE, "U V*, for any order of equal values"),
    Edge("jnp.linalg.norm(x, 'nuc')", RANK_ONE, [[0.2, 0.4], [0.4, 0.8]], "values that round to zero are ignored"),
    Edge("jnp.linalg.norm(x, 2)", ZEROS, ZEROS, "the minimum-norm subgradient"),
    Edge("jnp.linalg.norm(x, 2)", EYE, [[0.5, 0], [0, 0.5]], "ties share evenly"),
    Edge("jnp.hypot(x[0], x[1])", [0, 0], [0, 0], "the minimum-norm subgradient", ZEROS),
    Edge("jnp.hypot(x[0], x[1])", [1e30, 1e30], [0.5**0.5, 0.5**0.5], "no intermediate overflow"),
    Edge("jnp.abs(x)", 0, 0, "the midpoint of -1 and 1", 0),
    Edge("jnp.abs(x[0] + 1j * x[1])", [0, 0], [0, 0], "the minimum-norm subgradient", ZEROS),
    Edge("jnp.arctan2(x[0], x[1])", [0, 0], [0, 0], "undefined: zero by convention", ZEROS),
    Edge("jnp.arctan2(x[0], x[1])", [1e-30, 1e-30], [5e29, -5e29], "no intermediate underflow"),
    Edge("jnp.std(x)", [2, 2], [0, 0], "a norm at zero", ZEROS),
    Edge("jnp.nanstd(x)", [2, nan, 2], [0, 0, 0], "a norm at zero"),
    Edge("jnp.nanvar(x)", [nan, 1, 3], [0, -1, 1], "a missing value contributes nothing"),
    Edge("x[0] @ x[1] / jnp.maximum(jnp.linalg.norm(x[0]) * jnp.linalg.norm(x[1]), 1e-6)", [[0, 0], [1, 0]],
         [[1e6, 0], [0, 0]], "cosine similarity, bounded away from 0 / 0"),
]  # fmt: skip

EXPONENTIALS = [
    Edge("jnp.logaddexp(x[0], x[1])", [-inf, 0], [0, 1], "no weight", ZEROS),
    Edge("jnp.logaddexp(x[0], x[1])", [1, 1], [0.5, 0.5], "equal weights", [[0.25, -0.25], [-0.25, 0.25]]),
    Edge("special.logsumexp(x)", [-inf, -inf], [0, 0], "nothing has weight", ZEROS),
    Edge("special.logsumexp(x)", [-inf, 0], [0, 1], "no weight", ZEROS),
    Edge("special.logsumexp(x)", [inf, 0], [1, 0], "all the weight", ZEROS),
    Edge("special.logsumexp(x, b=jnp.array([1.0, 0.0]))", [0, inf], [1, 0], "weight zero", ZEROS),
    Edge("nn.softmax(x)[0]", [-inf, 0], [0, 0], "masked", ZEROS),
    Edge("nn.softmax(x)[0]", [-inf, -inf], [nan, nan], "0 / 0: the value is NaN as well"),
    Edge("nn.softmax(x, where=jnp.array([False, False]))[0]", [1, 2], [0, 0], "masked with `where=`", ZEROS),
    Edge("nn.log_softmax(x)[1]", [-inf, 0], [0, 0], "masked", ZEROS),
    Edge("nn.log_softmax(x, where=jnp.array([True, False]))[0]", [1, 2], [0, 0], "masked with `where=`", ZEROS),
    Edge("lax.cumlogsumexp(x)[2]", [-inf, -inf, 0], [0, 0, 1], "no weight"),
    Edge("nn.softplus(x)", -inf, 0, "the limit", 0),
    Edge("nn.softplus(x)", inf, 1, "the limit", 0),
    Edge("nn.log_sigmoid(x)", -200, 1, "the limit", 0),
    Edge("special.expit(x)", -200, 0, "the limit", 0),
    Edge("special.log_ndtr(x)", -50, 50.019984, "approximately -x"),
    Edge("jnp.tanh(x)", inf, 0, "the limit", 0),
    Edge("jnp.exp(x)", -inf, 0, "the limit", 0),
    Edge("jnp.exp(-(x**2))", 1e25, 0, "the limit"),
]

TIES = [
    Edge("jnp.max(x)", [1, 1], [0.5, 0.5], "ties share evenly", ZEROS),
    Edge("jnp.max(x)", [-inf, -inf], [0.5, 0.5], "ties share evenly", ZEROS),
    Edge("jnp.maximum(x[0], x[1])", [1, 1], [0.5, 0.5], "ties share evenly", ZEROS),
    Edge("jnp.maximum(x, x)", 1, 1, "the sum of two halves", 0),
    Edge("jnp.fmax(x[0], x[1])", [nan, 1], [0, 1], "NaN is ignored", ZEROS),
    Edge("jnp.clip(x, 0, 1)", 0, 0.5, "a tie between the bound and x", 0),
    Edge("lax.clamp(0.0, x, 1.0)", 0, 0, "the bound counts as outside", 0),
    Edge("nn.relu(x)", 0, 0, "the usual convention", 0),
    Edge("nn.relu6(x)", 6, 0, "the usual convention", 0),
    Edge("nn.leaky_relu(x)", 0, 1, "the slope to the right", 0),
    Edge("nn.elu(x)", 0, 1, "the slopes agree"),
    Edge("jnp.sign(x)", 0, 0, FLAT, 0),
    Edge("jnp.ptp(x)", [1, 1], [0, 0], "a half minus a half", ZEROS),
    Edge("jnp.sort(x)[0]", [1, 1], [1, 0], "the order is stable", ZEROS),
    Edge("lax.top_k(x, 1)[0]", [1, 1], [1, 0], "the first one", ZEROS),
    Edge("jnp.median(x)", [1, 1], [0.5, 0.5], "the mean of the two in the middle", ZEROS),
    Edge("lax.cummax(x)[1]", [1, 1], [1, 0], "the first one"),
    Edge("jnp.nanmax(x)", [1, nan, 1], [0.5, 0, 0.5], "ties share evenly, NaN is ignored"),
    Edge("jnp.nanmean(x)", [nan, 1], [0, 1], "a missing value contributes nothing", ZEROS),
    Edge("jnp.nanmean(x)", [nan, nan], [0.5, 0.5], "the mean of all elements, since all are NaN", ZEROS),
    Edge("jnp.interp(x, jnp.arange(3.0), jnp.array([0.0, 1.0, 3.0]))", 1, 2, "the slope to the right", 0),
    Edge("jnp.floor(x)", 1, 0, FLAT, 0),
    Edge("jnp.round(x)", 0.5, 0, FLAT, 0),
    Edge("jnp.mod(x[0], x[1])", [2, 1], [1, -2], "x - floor(x / y) y, with floor constant", ZEROS),
]

DECOMPOSITIONS = [
    Edge("jnp.linalg.eigvalsh(x)", EYE, EYE, "the trace"),
    Edge("jnp.linalg.eigvalsh(x) ** 2", EYE, [[2, 0], [0, 2]], "the trace of the square"),
    Edge("jnp.linalg.eigvalsh(x)[0]", EYE, [[1, 0], [0, 0]], "one of many valid eigenvectors"),
    Edge("(lambda w, v: v[:, :2] @ v[:, :2].T)(*jnp.linalg.eigh(x))[0, 2]", [[1, 0, 0], [0, 1, 0], [0, 0, 3]],
         [[0, 0, -0.25], [0, 0, 0], [-0.25, 0, 0]], "a projection, which does not depend on the basis"),
    Edge("jnp.linalg.svd(x, compute_uv=False)", EYE, EYE, "U V*"),
    Edge("jnp.linalg.svd(x, compute_uv=False) ** 2", ZEROS, ZEROS, "the sum of the squares of x"),
    Edge("jnp.linalg.svd(x, compute_uv=False) ** 2", [[1, 0], [0, 0]], [[2, 0], [0, 0]], "the sum of the squares of x"),
    Edge("(lambda u, s, v: u @ v)(*jnp.linalg.svd(x, full_matrices=False))[0, 1]", EYE, [[0, 0.5], [-0.5, 0]],
         "the polar factor is unique, though U and V are not"),
    Edge("jnp.linalg.det(x)", RANK_ONE, [[4, -2], [-2, 1]], "the cofactors",
         [[[[0, 0], [0, 1]], [[0, 0], [-1, 0]]], [[[0, -1], [0, 0]], [[1, 0], [0, 0]]]]),
    Edge("jnp.linalg.det(x)", np.diag([1, 2, 3, 0]).tolist(), np.diag([0, 0, 0, 6]).tolist(), "the cofactors"),
    Edge("jnp.linalg.pinv(x)[0, 0]", RANK_ONE, [[0.0112, 0.0064], [0.0064, -0.0192]], "the derivative at fixed rank"),
    Edge("jnp.linalg.pinv(x)", ZEROS, ZEROS, "the derivative at fixed rank"),
]  # fmt: skip

PRODUCTS = [
    Edge("jnp.prod(x)", [0, 2, 3], [6, 0, 0], "the product of the others", [[0, 3, 2], [3, 0, 0], [2, 0, 0]]),
    Edge("jnp.prod(x)", [0, 0, 3], [0, 0, 0], "the product of the others", [[0, 3, 0], [3, 0, 0], [0, 0, 0]]),
    Edge("jnp.cumprod(x)", [2, 0, 0], [1, 2, 0], "the products of the others", [[0, 1, 0], [1, 0, 2], [0, 2, 0]]),
    Edge("jnp.nanprod(x)", [0, 2, nan], [2, 0, 0], "the product of the others", [[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
    Edge("jnp.sinc(x)", 0, 0, "the series", -(np.pi**2) / 3),
    Edge("special.i0(x)", 0, 0, "the series", 0.5),
    Edge("special.i1(x)", 0, 0.5, "the series", 0),
    Edge("special.xlogy(x, x)", 0, 0, "0 by convention, as for the value"),
    Edge("special.xlogy(x[0], x[1])", [0, 0], [0, 0], "0 log(0) is 0"),
    Edge("special.entr(x)", 0, 0, "0 by convention, as for the value"),
    Edge("special.rel_entr(x[0], x[1])", [0, 1], [0, 0], "0 by convention, as for the value"),
]

TABLE = {
    "Discarded values": GUARDS,
    "Functions and their inverses": PAIRS,
    "Roots, logarithms and powers": ROOTS,
    "Norms and angles": NORMS,
    "Exponentials and their sums": EXPONENTIALS,
    "Ties, steps and orders": TIES,
    "Decompositions": DECOMPOSITIONS,
    "Products and special functions": PRODUCTS,
}


class Rule(NamedTuple):
    """How an op discards: the reach of the masks that its tangent and its cotangents get (0: none), and why."""

    tangent: int
    cotangents: int
    why: str


WHERE = "the discarded operand may be infinite or NaN, also as a sum that is discarded as a whole"
INDEX = "unread elements may be infinite or NaN; at a sum, the mask would cost a pass over the indexed array"
COMPARED = "the operand that loses a comparison is a number, not NaN"
MOVED = "a constant mask, which the compiler folds"
NOTHING = "only moves existing masks"
RULES = {
    "Select": Rule(0, SUMS, WHERE),
    "Gate": Rule(0, SUMS, "as `Select`; its derivatives are the next two ops"),
    "GateTangent": Rule(0, SLOPES, COMPARED),
    "GateCotangent": Rule(0, SUMS, "occurs in higher derivatives"),
    "Max": Rule(SUMS, 0, "its tangent is a `GateTangent`"),
    "Min": Rule(SUMS, 0, "its tangent is a `GateTangent`"),
    "Clamp": Rule(SUMS, 0, "its tangent is a `GateTangent`"),
    "Relu": Rule(SUMS, 0, "its tangent is a `GateTangent`"),
    "ReduceMax": Rule(SUMS, 0, "its tangent is a `GateTangent`"),
    "ReduceMin": Rule(SUMS, 0, "its tangent is a `GateTangent`"),
    "Cummax": Rule(0, 0, "its tangent is a scan of `GateTangent`"),
    "Cummin": Rule(0, 0, "its tangent is a scan of `GateTangent`"),
    "ReduceWindow": Rule(SUMS, 0, "its tangent is a `SelectAndGather`, or a scan of `GateTangent`"),
    "SelectAndGather": Rule(0, SLOPES, COMPARED),
    "SelectAndScatter": Rule(0, 0, "its transpose is `SelectAndGather`"),
    "Gather": Rule(PRODUCTS_ONLY, PRODUCTS_ONLY, INDEX),
    "Scatter": Rule(
        SUMS, SUMS, "overwritten elements as in `Select`, updates out of bounds as in `Gather`, extrema as in `Max`"
    ),
    "Slice": Rule(0, SUMS, MOVED),
    "Pad": Rule(0, SUMS, MOVED),
    "DynamicSlice": Rule(0, SUMS, WHERE),
    "DynamicUpdateSlice": Rule(0, SUMS, WHERE),
    "Concatenate": Rule(0, 0, NOTHING),
    "Split": Rule(0, 0, NOTHING),
}
GUARDED = {0: "nothing", SLOPES: "slopes", PRODUCTS_ONLY: "all factors", SUMS: "all factors, through sums"}


def function(edge: Edge, names: dict[str, Any]) -> Any:
    """The expression as a function of x, with a sum around it, which makes all of them scalar."""
    return eval(f"lambda x: jnp.sum({edge.expression})", dict(names))


def shown(value: Any) -> str:
    """A point or a derivative as it is written in the table."""
    if isinstance(value, list):
        return f"[{', '.join([shown(v) for v in value])}]"
    return (
        np.format_float_positional(value, 4, fractional=False, trim="-") if 1e-4 < abs(value) < 1e4 else f"{value:.4g}"
    )


def cell(value: Any) -> str:
    """A derivative in as few characters as say it, without what is only rounding."""
    array = np.asarray(value, float)
    array = np.where(np.abs(array) < 1e-6, 0, array)
    if array.ndim and np.isnan(array).all():
        return "nan"
    return shown(array.tolist()) if array.any() else "0"


def rows() -> str:
    """The tables of the page."""
    theirs = json.loads(KEPT.read_text())
    out = ["## Which selections create masks", ""]
    out += ["| op | its tangent guards | its cotangents guard | why |", "| --- | --- | --- | --- |"]
    out += [f"| `{n}` | {GUARDED[r.tangent]} | {GUARDED[r.cotangents]} | {r.why} |" for n, r in RULES.items()] + [""]
    for title, edges in TABLE.items():
        out += [f"## {title}", "", "| function | at | atled | JAX | why |", "| --- | --- | --- | --- | --- |"]
        for e in edges:
            jax = cell(theirs[e.key])
            ours = cell(e.first)
            code = e.expression.replace("|", "\\|")
            out.append(f"| `{code}` | {shown(e.point)} | {ours} | {'same' if jax == ours else jax} | {e.why} |")
        out.append("")
    return "\n".join(out)


def page(text: str) -> str:
    """The text of the page with its tables as they should be."""
    start, end = text.index("<!-- tables -->"), text.index("<!-- end -->")
    return f"{text[:start]}<!-- tables -->\n\n{rows()}\n{text[end:]}"


def of_jax() -> dict[str, Any]:
    """What JAX's reverse mode gives."""
    import jax
    import jax.numpy as jnp
    from jax.scipy import special

    names = {"jnp": jnp, "nn": jax.nn, "lax": jax.lax, "special": special}
    out = {}
    for e in [e for edges in TABLE.values() for e in edges]:
        slope, x = jax.grad(function(e, names)), jnp.asarray(np.asarray(e.point, np.float32))
        try:
            found = jax.jit(slope)(x)
        except jax.errors.NonConcreteBooleanIndexError:
            found = slope(x)
        out[e.key] = np.asarray(found).tolist()
    return out


if __name__ == "__main__":
    if "--jax" in sys.argv:
        KEPT.write_text(json.dumps(of_jax(), indent=0) + "\n")
    PAGE.write_text(page(PAGE.read_text()))
