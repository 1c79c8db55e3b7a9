"""Special functions at poles, at infinity and of NaN: as SciPy, where it gives a number."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
import scipy.special

import atled
import atled.numpy as jnp
from atled.scipy import special

POINTS = [0.0, -0.0, -1.0, -2.0, 1.0, np.inf, -np.inf, np.nan, 0.5, 2.5, -0.5, -1.5, 3.0]
ONE = ("loggamma", "digamma", "gamma", "entr", "psi", "rgamma", "expit", "erf", "erfc", "i0e", "i1e", "ndtr", "dawsn",
       "exp1", "expi", "log_ndtr", "xlog1py", "xlogy", "spence")  # fmt: skip
TWO = ("beta", "betaln", "poch", "polygamma", "rel_entr", "zeta")


def as_scipy(name, *operands):
    theirs = getattr(scipy.special, name)
    if name == "polygamma":
        return np.array([theirs(int(n), x) for n, x in zip(*operands, strict=True)])
    return theirs(*operands)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", [n for n in (*ONE, *TWO) if hasattr(special, n)])
def test_as_scipy(name, dtype):
    ours = getattr(special, name)
    count = 2 if name in (*TWO, "xlogy", "xlog1py") else 1
    first = [0.0, 1.0, 2.0, 3.0] if name == "polygamma" else POINTS
    rows = list(itertools.product(*([POINTS] if count == 1 else [first, POINTS])))
    operands = [np.array(column, np.float64) for column in zip(*rows, strict=True)]
    with np.errstate(all="ignore"):
        want = as_scipy(name, *operands)
    given = [jnp.asarray(x).astype(dtype) for x in operands]
    for way in (ours, atled.jit(ours)):
        got = np.asarray(way(*given)).astype(np.float64)
        for row, a, b in zip(rows, got, want, strict=True):
            if np.isnan(b) or np.isnan(row).any() or (name == "beta" and -np.inf in row):
                continue  # SciPy gives numbers for some NaNs, and signs to functions of -inf
            tolerance = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 2e-2}[dtype]
            assert a == b or abs(a - b) <= tolerance * (1 + abs(b)), (row, a, b)


@pytest.mark.parametrize("name", [n for n in (*ONE, *TWO) if hasattr(special, n)])
def test_nan_gives_nan(name):
    count = 2 if name in (*TWO, "xlogy", "xlog1py") else 1
    for place in range(count):
        row = [1.0] * count
        row[place] = np.nan
        assert np.isnan(getattr(special, name)(*row))


def test_derivatives_at_poles():
    inf = np.inf
    for f, x, want in (
        (special.entr, inf, -inf), (special.entr, 0.0, 0.0), (special.loggamma, 0.0, -inf), (special.digamma, 0.0, inf),
        (lambda x: special.polygamma(1, x), 0.0, -inf), (lambda x: special.polygamma(1, x), inf, 0.0),
    ):  # fmt: skip
        assert float(atled.grad(f)(x)) == want
        assert float(atled.jvp(f, (x,), (1.0,))[1]) == want


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 2e-15), ("float32", 1e-6)])
def test_beta_of_a_negative_and_a_large_number(dtype, tolerance):
    """A difference of large logarithms lost all digits: beta(-0.5, 1e300) was -1."""
    r = np.random.RandomState(0)
    a, b = -np.exp(r.uniform(-3, 3, 60)), np.exp(r.uniform(3, 20, 60))
    good = np.abs(a - np.round(a)) > 0.05
    a, b = a[good].astype(dtype), b[good].astype(dtype)
    want = [float(mpmath.log(abs(mpmath.beta(float(x), float(y))))) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(special.betaln(a, b), want, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(float(special.beta(np.array(-0.5), np.array(1e300))), -3.544907701811032e150, rtol=1e-12)


def test_dawson_of_huge_numbers():
    x = np.array([1e8, 1e100, 1e160, 1e300, -1e300, np.inf])
    np.testing.assert_allclose(special.dawsn(x), 0.5 / x, rtol=1e-14)
    np.testing.assert_allclose(special.dawsn(np.array([1e30], "f4")), 5e-31, rtol=1e-6)
