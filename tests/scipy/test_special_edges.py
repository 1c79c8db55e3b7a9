"""Special functions where operands are huge, tiny, zero or infinite: values and derivatives stay exact."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.scipy import special

mpmath = pytest.importorskip("mpmath")
inf, nan = np.inf, np.nan


def test_slope_of_betaln_by_the_larger_operand():
    """A difference of digammas, which are almost equal."""
    a, b = (v.ravel() for v in np.meshgrid([0.05, 0.5, 3.0, 12.0, 1e5], [1e-12, 1e-4, 0.09, 0.11, 5.0, 1e8]))
    with mpmath.workdps(50):
        want = [float(mpmath.digamma(p) - mpmath.digamma(mpmath.mpf(p) + q)) for p, q in zip(a, b)]
    with atled.enable_x64():
        got = atled.vmap(atled.grad(special.betaln))(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(got, want, rtol=1e-12)


ROWS = [  # name, operands, results
    ("boxcox", ([inf, inf, inf, 0.0, 0.0, 0.0], [0.5, 0.0, -0.5, 0.5, 0.0, -0.5]), [inf, inf, 2, -2, -inf, -inf]),
    ("boxcox1p", ([inf, inf, -1.0, inf], [0.5, -0.5, 2.0, nan]), [inf, 2, -0.5, nan]),
    ("polygamma", ([0.0, 1.0, 3.0], [inf, inf, inf]), [inf, 0, 0]),
    ("zeta", ([inf, inf, inf, inf], [0.5, 1.0, 2.0, nan]), [inf, 1, 0, nan]),
    (
        "betaln",
        ([1e8, 1e-300, 1.0, 1e300], [1.0, 1.0, 1.0, 2.0]),
        [-np.log(1e8), 300 * np.log(10), 0, -600 * np.log(10)],
    ),
]


@pytest.mark.parametrize("name, operands, want", ROWS, ids=[row[0] for row in ROWS])
def test_values(name, operands, want):
    np.testing.assert_allclose(getattr(special, name)(*map(np.array, operands)), want, rtol=1e-14, atol=1e-14)


def test_multigammaln_outside_of_its_domain():
    got = special.multigammaln(np.array([0.3, 1.0, 1.2]), 3)
    assert np.isnan(np.asarray(got)[:2]).all() and np.isfinite(got[2])


def test_weights_of_logsumexp():
    """They sum to one, however large the operands; what is infinite has all of it."""
    rows = np.array([[1e300, 1e300, 0], [inf, 1, -inf], [inf, inf, 3], [-inf, -inf, -inf], [-inf, 1, 1], [nan, 0, 1]])
    want = [[0.5, 0.5, 0], [1, 0, 0], [0.5, 0.5, 0], [0, 0, 0], [0, 0.5, 0.5], [nan, nan, nan]]
    with atled.enable_x64():
        np.testing.assert_array_equal(atled.vmap(atled.grad(special.logsumexp))(jnp.asarray(rows)), want)
    logits = jnp.float32([1e4, 1e4 - 1, 1e4 - 3])
    shares = np.exp([0.0, -1, -3]) / np.exp([0.0, -1, -3]).sum()
    np.testing.assert_allclose(atled.grad(special.logsumexp)(logits), shares, rtol=3e-7)
    curve = atled.hessian(special.logsumexp)(logits)
    np.testing.assert_allclose(curve, np.diag(shares) - np.outer(shares, shares), rtol=1e-5, atol=1e-7)


def test_weights_given_to_logsumexp_broadcast_and_promote():
    x = np.float32([[1.0], [2.0]])
    with atled.enable_x64():
        got = special.logsumexp(x, axis=0, b=np.array([1.0, 2.0, 1e-50]))
    assert got.dtype == np.float64
    want = np.log(np.exp(1.0) + np.exp(2.0)) + np.log([1.0, 2.0, 1e-50])
    np.testing.assert_allclose(got, want, rtol=1e-14)
