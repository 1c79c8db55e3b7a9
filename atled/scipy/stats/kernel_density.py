"""`gaussian_kde`: a density estimated as the mean of Gaussians around samples."""

from __future__ import annotations

from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import random
from atled.core import tree_registry
from atled.core.array import type_of
from atled.numpy.promotion import promote_inexact
from atled.scipy import linalg, special
from atled.scipy.stats.family import LOG_TWO_PI
from atled.staging.jit import library_function

_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov")


class gaussian_kde:  # noqa: N801
    """A density estimated from `dataset`, [dimensions, samples]: a Gaussian of the same width around each sample.

    `bw_method` is the width relative to the standard deviation of the samples: "scott", "silverman", a number, or a
    function of this object that returns a number. An instance is a pytree: transforms accept it.

    >>> import atled.numpy as jnp
    >>> density = gaussian_kde(jnp.array([0.0, 1.0, 3.0]))
    >>> round(float(density.integrate_box_1d(-50.0, 50.0)), 4)
    1.0
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        dataset, weights = _samples(dataset, weights)
        self.dataset, self.weights = dataset, weights / jnp.sum(weights)
        self.neff = 1 / jnp.sum(self.weights**2)
        factor = self._factor("scott" if bw_method is None else bw_method)
        covariance = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=self.weights))
        self.covariance = covariance * factor**2
        self.inv_cov = jnp.linalg.inv(covariance) / factor**2

    def _factor(self, method: Any) -> Any:
        if callable(method):
            return method(self)
        if isinstance(method, str) and method in ("scott", "silverman"):
            count = self.neff if method == "scott" else self.neff * (self.d + 2) / 4
            return count ** (-1 / (self.d + 4))
        if isinstance(method, str) or jnp.ndim(method):
            raise ValueError(
                f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function; got {method!r}."
            )
        return method

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def evaluate(self, points: Any) -> Any:
        """The density at points, [dimensions, points]."""
        return jnp.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points, [dimensions, points]."""
        points = jnp.atleast_2d(x)
        if points.type.kind == "c":
            raise NotImplementedError(f"gaussian_kde: points must be real; got {points.type}.")
        if points.shape[0] != self.d and points.shape == (1, self.d):
            points = points.T
        if points.shape[0] != self.d:
            raise ValueError(f"gaussian_kde: points must have {self.d} dimensions; got {points.type}.")
        return _log_density(points, self.dataset, self.weights, self.covariance)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the density times the normal density with mean `mean` and covariance `cov`."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(
                f"gaussian_kde: mean and cov must have {self.d} dimensions; got {mean.type} and {cov.type}."
            )
        return jnp.exp(_log_density(mean[:, None], self.dataset, self.weights, self.covariance + cov))[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The integral of the density between two limits, for one dimension."""
        if self.d != 1:
            raise ValueError(f"gaussian_kde: integrate_box_1d needs one dimension; got {self.d}.")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError("gaussian_kde: the limits of integrate_box_1d must be numbers; got arrays.")
        return _integral(low, high, self.dataset[0], self.weights, self.covariance[0, 0])

    def integrate_kde(self, other: Any) -> Any:
        """The integral of the product of this density estimate and another one."""
        if other.d != self.d:
            raise ValueError(
                f"gaussian_kde: other must have the same number of dimensions; got {self.d} and {other.d}."
            )
        logs = _log_density(other.dataset, self.dataset, self.weights, self.covariance + other.covariance)
        return jnp.sum(jnp.exp(logs) * other.weights)

    def resample(self, key: Any, shape: Any = ()) -> Any:
        """New samples, [dimensions, *shape]."""
        dims = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        which, noise = random.split(key)
        chosen = random.choice(which, self.n, dims, p=self.weights)
        normal = random.normal(noise, (*dims, self.d), self.dataset.dtype)
        return self.dataset[:, chosen] + jnp.moveaxis(normal @ jnp.linalg.cholesky(self.covariance).T, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Not supported; see `integrate_box_1d`."""
        raise NotImplementedError("gaussian_kde: boxes must have one dimension; use integrate_box_1d.")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not supported: instances are immutable."""
        raise NotImplementedError(
            "gaussian_kde: instances are immutable; create another one with a different bw_method."
        )


def _samples(dataset: Any, weights: Any) -> tuple[Any, Any]:
    """The dataset as an array [dimensions, samples], and the weights, by default equal, in a common floating dtype."""
    dataset = jnp.atleast_2d(dataset)
    if dataset.type.kind == "c":
        raise NotImplementedError(f"gaussian_kde: the dataset must be real; got {dataset.type}.")
    if dataset.ndim != 2 or dataset.size < 2:
        raise ValueError(f"gaussian_kde: the dataset must have two samples or more; got {dataset.type}.")
    n = dataset.shape[1]
    weights = jnp.full(n, 1 / n, dataset.dtype if dataset.type.kind == "f" else None) if weights is None else weights
    weights = jnp.atleast_1d(weights)
    if weights.shape != (n,):
        raise ValueError(f"gaussian_kde: there must be one weight for each of {n} samples; got {type_of(weights)}.")
    return tuple(promote_inexact("gaussian_kde", dataset, weights))  # pyright: ignore[reportReturnType]


@library_function
def _log_density(points: Any, samples: Any, weights: Any, covariance: Any) -> Any:
    points, samples, weights, covariance = promote_inexact("gaussian_kde", points, samples, weights, covariance)
    root = jnp.linalg.cholesky(covariance)
    white = [linalg.solve_triangular(root, x, lower=True) for x in (points, samples)]
    away = white[0][:, :, None] - white[1][:, None, :]
    size = jnp.sum(jnp.log(jnp.diagonal(root))) + LOG_TWO_PI / 2 * covariance.shape[0]
    return special.logsumexp(jnp.sum(away * away, 0) * -0.5, axis=1, b=weights) - size


@library_function
def _integral(low: Any, high: Any, samples: Any, weights: Any, variance: Any) -> Any:
    low, high = ((v - samples) / jnp.sqrt(variance) for v in (low, high))
    # for positive limits, from the upper tails: the difference of the lower tails would cancel
    part = jnp.where(low > 0, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))
    return jnp.sum(weights * part)


def _remade(_: Any, children: Any) -> gaussian_kde:
    kde = object.__new__(gaussian_kde)
    for name, value in zip(_FIELDS, children, strict=True):
        setattr(kde, name, value)
    return kde


tree_registry.register_node(gaussian_kde, lambda kde: ([getattr(kde, name) for name in _FIELDS], None), _remade)
