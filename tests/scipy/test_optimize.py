"""`minimize` on functions with known minima, in both precisions, alone and in batches."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.scipy import line_search
from atled.scipy.optimize import OptimizeResults, minimize

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11.0) ** 2 + (x[0] + x[1] ** 2 - 7.0) ** 2


def matyas(x):
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


def eggholder(x):
    left = (x[1] + 47.0) * jnp.sin(jnp.sqrt(jnp.abs(x[0] / 2.0 + 47.0 + x[1])))
    return -left - x[0] * jnp.sin(jnp.sqrt(jnp.abs(x[0] - (x[1] + 47.0))))


def stretched(x):
    return 0.5 * jnp.sum(jnp.asarray(np.logspace(0, 6, 6), x.dtype) * (x - 1.0) ** 2)


def shifted(x):
    return 1000.0 + jnp.sum((x - 2.0) ** 2) + jnp.sum((x - 2.0) ** 4)


CASES = {
    "rosenbrock": (rosenbrock, np.array([-1.2, 1.0]), lambda x: np.abs(x - 1).max()),
    "rosenbrock in 6": (rosenbrock, np.zeros(6), lambda x: np.abs(x - 1).max()),
    "himmelblau": (himmelblau, np.array([1.0, 1.0]), lambda x: np.abs(x - [3, 2]).max()),
    "matyas": (matyas, np.array([3.0, -7.0]), lambda x: np.abs(x).max()),
    "ill-conditioned": (stretched, np.zeros(6), lambda x: np.abs(x - 1).max()),
    "a large constant": (shifted, np.array([8.0, -3.0, 0.5]), lambda x: np.abs(x - 2).max()),
}


@pytest.mark.parametrize("method", ["BFGS", LIMITED])
@pytest.mark.parametrize("name", CASES)
def test_minima_in_both_precisions(name, method):
    f, x0, error = CASES[name]
    for dtype, tol in (("float64", 1e-4), ("float32", 1e-3 if name != "a large constant" else 0.05)):
        with atled.enable_x64():
            found = minimize(f, jnp.asarray(x0, dtype), method=method)
        assert isinstance(found, OptimizeResults) and found.x.dtype == dtype and found.jac.dtype == dtype
        assert bool(found.success) and int(found.status) in (0, 4), (found.status, found.x)
        assert error(np.asarray(found.x, np.float64)) < tol, (found.x, found.nit)
        np.testing.assert_allclose(found.fun, f(found.x), rtol=1e-5, atol=1e-6)
        assert int(found.nfev) == int(found.njev) < 400
        if method == "BFGS":
            assert found.hess_inv.shape == (x0.size, x0.size)
        else:
            assert found.hess_inv is None


def test_many_starts_are_successes_in_float32():
    """jit and vmap over starts; almost all of them reach a small gradient, and none fails for rounding."""
    starts = jnp.asarray(np.random.RandomState(0).uniform(-3, 3, (64, 2)), "float32")
    run = atled.jit(atled.vmap(lambda x: minimize(rosenbrock, x, method="BFGS")))
    found = run(starts)
    assert np.asarray(found.success).all()
    assert np.abs(np.asarray(found.x) - 1).max() < 2e-2
    one = minimize(rosenbrock, starts[3], method="BFGS")
    np.testing.assert_allclose(found.x[3], one.x, rtol=1e-3)


def test_arguments_and_the_inverse_hessian():
    with atled.enable_x64():
        scale = np.array([1.0, 10.0])
        f = lambda x, a, shift: jnp.sum(a * (x - shift) ** 2)
        found = minimize(f, np.zeros(2), (scale, 3.0), method="bfgs", tol=1e-9)
        np.testing.assert_allclose(found.x, [3.0, 3.0], rtol=1e-9)
        np.testing.assert_allclose(found.hess_inv, np.diag(0.5 / scale), rtol=1e-2, atol=1e-3)
        assert minimize(f, np.arange(2), (scale, 3.0), method="bfgs").x.dtype == np.float64


def test_a_start_at_the_minimum_and_limits():
    with atled.enable_x64():
        at = minimize(rosenbrock, np.ones(2), method="BFGS")
        assert int(at.nit) == 0 and bool(at.success) and int(at.nfev) == 1
        few = minimize(rosenbrock, np.array([-1.2, 1.0]), method="BFGS", options={"maxiter": 3})
        assert int(few.nit) == 3 and int(few.status) == 1 and not bool(few.success)
        start = np.array([-1.2, 1.0])
        for option, status in (("maxfun", 2), ("maxgrad", 3)):
            found = minimize(rosenbrock, start, method=LIMITED, options={option: 5})
            assert int(found.status) == status and not bool(found.success)
        by_value = minimize(rosenbrock, start, method=LIMITED, options={"ftol": 1e-3, "gtol": 0.0})
        assert int(by_value.status) == 4
        broken = minimize(lambda x: jnp.sum(x) * np.nan, np.ones(2), method="BFGS")
        assert not bool(broken.success) and int(broken.status) == 5
        norm = minimize(rosenbrock, start, method="BFGS", options={"norm": 2, "gtol": 1e-8})
        assert np.linalg.norm(norm.jac) < 1e-8


def test_walls_and_plateaus():
    """Steps into NaN and infinity are taken back."""
    with atled.enable_x64():
        barrier = lambda x: jnp.sum(x) - jnp.sum(jnp.log(x))  # NaN for negative x
        found = minimize(barrier, np.array([1e-3, 20.0]), method="BFGS")
        np.testing.assert_allclose(found.x, [1.0, 1.0], rtol=1e-4)
        found = minimize(eggholder, np.array([100.0, 100.0]), method="BFGS")
        assert bool(found.success) and float(found.fun) < float(eggholder(np.array([100.0, 100.0])))


def test_complex_numbers():
    with atled.enable_x64():
        f = lambda z: jnp.sum(jnp.abs(z - (1 + 2j)) ** 2) + jnp.abs(z[0] * z[1] - (1 + 2j) ** 2) ** 2
        found = minimize(f, np.array([0.5 + 1j, 2.0]), method=LIMITED, options={"ftol": 0.0})
        np.testing.assert_allclose(found.x, [1 + 2j, 1 + 2j], rtol=1e-4)
        np.testing.assert_allclose(found.jac, atled.grad(f)(found.x), atol=1e-9)


def test_the_search_meets_the_strong_wolfe_conditions():
    with atled.enable_x64():
        phi = lambda a: jnp.cos(3 * a) + 0.3 * a**2 - 2 * a
        both = atled.value_and_grad(phi)

        @atled.jit
        def run(first):
            point = lambda a: line_search.Point(a, *both(a), jnp.zeros(1))
            return line_search.line_search(point, point(jnp.asarray(0.0)), first, 30)

        value, slope = (float(v) for v in both(0.0))
        for first in (1e-6, 0.01, 0.4, 1.0, 3.0, 100.0):
            found = run(jnp.asarray(first))
            assert bool(found.is_done)
            assert float(found.last.value) <= value + 1e-4 * float(found.last.at) * slope + 1e-14
            assert abs(float(found.last.slope)) <= 0.9 * abs(slope)


COMPLAINTS = [
    (lambda: minimize(rosenbrock, np.ones(2), method="simplex"), ValueError, "minimize: the method is 'BFGS' or"),
    (
        lambda: minimize(rosenbrock, np.ones((2, 2)), method="BFGS"),
        ValueError,
        "minimize: x0 must have one axis",
    ),
    (lambda: minimize(rosenbrock, np.ones(2) * 1j, method="BFGS"), ValueError, "minimize: BFGS takes real numbers"),
    (lambda: minimize(rosenbrock, np.ones(2), 1.0, method="BFGS"), TypeError, "minimize: args must be a tuple"),
    (lambda: minimize(rosenbrock, np.ones(2), method="BFGS", options={"a": 1}), TypeError, "minimize: the options of"),
]


@pytest.mark.parametrize("call, kind, message", COMPLAINTS)
def test_complaints(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
