"""Distributions on the circle, and multivariate ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core.array import type_of
from atled.numpy.promotion import cast
from atled.scipy import linalg, special
from atled.scipy.stats.family import LOG_TWO_PI, continuous, wide_operands
from atled.staging.jit import library_function

# 1 - cos(x) is computed as 2 sin(x / 2)**2 in these formulas, which is accurate for small angles
vonmises = continuous(
    "vonmises",
    "the von Mises distribution of angles",
    "kappa",
    allows=lambda kappa: kappa > 0,
    place="",
    logpdf=lambda x, kappa: -2 * kappa * jnp.sin(x / 2) ** 2 - jnp.log(special.i0e(kappa)) - LOG_TWO_PI,
)

wrapcauchy = continuous(
    "wrapcauchy",
    "the Cauchy distribution wrapped around the circle, from 0 to 2 pi",
    "c",
    support=lambda c: (0, 2 * math.pi),
    allows=lambda c: (c > 0) & (c < 1),
    place="",
    logpdf=lambda x, c: jnp.log1p(-c) + jnp.log1p(c) - LOG_TWO_PI - jnp.log((1 - c) ** 2 + 4 * c * jnp.sin(x / 2) ** 2),
)


# -- multivariate ----------------------------------------------------------------------------------------------------


@library_function
def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    """The log density of the Dirichlet distribution; proportions are on the first axis, the last may be left out."""
    (x, alpha), dtype = wide_operands("dirichlet.logpdf", x, alpha)
    x, alpha = jnp.asarray(x), jnp.asarray(alpha)
    if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.size, alpha.size - 1):
        raise ValueError(
            "dirichlet.logpdf: alpha must have one axis, and the first axis of x its length, or one less; "
            f"got {type_of(x)} and {type_of(alpha)}."
        )
    if x.shape[0] != alpha.size:
        x = jnp.concatenate([x, 1 - jnp.sum(x, 0, keepdims=True)])
    is_whole = jnp.all(x > 0, 0) & (jnp.abs(jnp.sum(x, 0) - 1) < 1e-6)
    safe = jnp.where(is_whole, x, 1 / alpha.size)
    powers = special.xlogy((alpha - 1).reshape(-1, *[1] * (x.ndim - 1)), safe)
    out = jnp.sum(powers, 0) + special.gammaln(jnp.sum(alpha)) - jnp.sum(special.gammaln(alpha))
    return cast(jnp.where(is_whole, out, -np.inf), dtype)


def _dirichlet_pdf(x: Any, alpha: Any) -> Any:
    """The density of the Dirichlet distribution; proportions are on the first axis, the last may be left out."""
    return jnp.exp(_dirichlet_logpdf(x, alpha))


dirichlet = {"logpdf": _dirichlet_logpdf, "pdf": _dirichlet_pdf}


@library_function
def _normal_logpdf(x: Any, mean: Any, cov: Any) -> Any:
    (x, mean, cov), dtype = wide_operands("multivariate_normal.logpdf", x, mean, cov)
    x, mean, cov = jnp.asarray(x), jnp.asarray(mean), jnp.asarray(cov)
    if not mean.ndim:
        return cast(((x - mean) ** 2 / cov + LOG_TWO_PI + jnp.log(cov)) * -0.5, dtype)
    n = mean.shape[-1]
    away = x - mean
    if not cov.ndim:
        square, log_determinant = jnp.sum(away * away, -1) / cov, n * jnp.log(cov)
    elif cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            "multivariate_normal.logpdf: cov must be a number or an n x n matrix, where n is the length of mean; "
            f"got {type_of(mean)} and {type_of(cov)}."
        )
    else:
        root = jnp.linalg.cholesky(cov)
        lead = jnp.broadcast_shapes(away.shape[:-1], cov.shape[:-2])
        if cov.ndim == 2:  # one matrix: solve for all vectors at once, as columns
            columns = away.reshape(-1, n).T
            white = linalg.solve_triangular(root, columns, lower=True).T.reshape(away.shape)
        else:
            root = jnp.broadcast_to(root, (*lead, n, n))
            white = linalg.solve_triangular(root, jnp.broadcast_to(away, (*lead, n))[..., None], lower=True)[..., 0]
        square = jnp.sum(white * white, -1)
        log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)), -1)
    return cast((square + n * LOG_TWO_PI + log_determinant) * -0.5, dtype)


def _multivariate_logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """The log density of the multivariate normal distribution; vectors are on the last axis."""
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf: covariances must not be singular; allow_singular is None."
        )
    return _normal_logpdf(x, mean, cov)


def _multivariate_pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density of the multivariate normal distribution; vectors are on the last axis."""
    return jnp.exp(_normal_logpdf(x, mean, cov))


multivariate_normal = {"logpdf": _multivariate_logpdf, "pdf": _multivariate_pdf}
