"""`optim.minimize` and `optim.LBFGS` on public test problems, against SciPy from the same start, in float64."""

import itertools

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import optim

scipy_optimize = pytest.importorskip("scipy.optimize")

R = np.random.RandomState(0)
X, LABELS = R.randn(60, 5), R.rand(60) < 0.5
SPREAD = np.logspace(0, 6, 12)


def rosenbrock(m, x):
    return m.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def beale(m, x):
    a, b = x[0], x[1]
    return (1.5 - a + a * b) ** 2 + (2.25 - a + a * b**2) ** 2 + (2.625 - a + a * b**3) ** 2


def powell_singular(m, x):
    return (x[0] + 10 * x[1]) ** 2 + 5 * (x[2] - x[3]) ** 2 + (x[1] - 2 * x[2]) ** 4 + 10 * (x[0] - x[3]) ** 4


def wood(m, x):
    a = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + 90 * (x[3] - x[2] ** 2) ** 2 + (1 - x[2]) ** 2
    return a + 10 * (x[1] + x[3] - 2) ** 2 + 0.1 * (x[1] - x[3]) ** 2


def helical_valley(m, x):
    turn = m.arctan2(x[1], x[0]) / (2 * np.pi)
    return 100 * ((x[2] - 10 * turn) ** 2 + (m.sqrt(x[0] ** 2 + x[1] ** 2) - 1) ** 2) + x[2] ** 2


def trid(m, x):
    return m.sum((x - 1) ** 2) - m.sum(x[1:] * x[:-1])


def zakharov(m, x):
    s = m.sum(0.5 * np.arange(1, 6) * x)
    return m.sum(x**2) + s**2 + s**4


def dixon_price(m, x):
    return (x[0] - 1) ** 2 + m.sum(np.arange(2, 6) * (2 * x[1:] ** 2 - x[:-1]) ** 2)


def logistic(m, w):
    z = (X @ w) * np.where(LABELS, 1.0, -1.0)
    return m.mean(m.logaddexp(0.0, -z)) + 0.01 * m.sum(w**2)


def freudenstein_roth(m, x):
    a, b = x[0], x[1]
    return (-13 + a + ((5 - b) * b - 2) * b) ** 2 + (-29 + a + ((b + 1) * b - 14) * b) ** 2


def box(m, x):
    t = 0.1 * np.arange(1, 11)
    return m.sum((m.exp(-t * x[0]) - m.exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t))) ** 2)


def variably_dimensioned(m, x):
    s = m.sum(np.arange(1, 9) * (x - 1))
    return m.sum((x - 1) ** 2) + s**2 + s**4


def penalty(m, x):
    return 1e-5 * m.sum((x - 1) ** 2) + (m.sum(x**2) - 0.25) ** 2


PROBLEMS = {
    "Rosenbrock, 2": (rosenbrock, [-1.2, 1.0]),
    "Rosenbrock, 10": (rosenbrock, [-1.2, 1.0] * 5),
    "Rosenbrock, 50": (rosenbrock, [-1.2, 1.0] * 25),
    "Beale": (beale, [1.0, 1.0]),
    "Beale, from far": (beale, [-3.0, -3.0]),
    "Booth": (lambda m, x: (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2, [0.0, 0.0]),
    "Himmelblau": (lambda m, x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2, [1.0, 1.0]),
    "Powell singular": (powell_singular, [3.0, -1.0, 0.0, 1.0]),
    "Wood": (wood, [-3.0, -1.0, -3.0, -1.0]),
    "Brown badly scaled": (
        lambda m, x: (x[0] - 1e6) ** 2 + (x[1] - 2e-6) ** 2 + (x[0] * x[1] - 2) ** 2, [1.0, 1.0],
    ),
    "Helical valley": (helical_valley, [-1.0, 0.1, 0.0]),
    "Trid": (trid, [0.0] * 6),
    "Zakharov": (zakharov, [1.0, -2.0, 3.0, 0.5, -1.0]),
    "Dixon-Price": (dixon_price, [2.0, 1.0, 1.5, 1.0, 0.7]),
    "sphere": (lambda m, x: m.sum(x**2), [3.0, -4.0, 5.0]),
    "quadratic, condition 1e6": (lambda m, x: 0.5 * m.sum(SPREAD * (x - 1) ** 2), [0.0] * 12),
    "logistic regression": (logistic, [0.0] * 5),
    "Freudenstein-Roth": (freudenstein_roth, [0.5, -2.0]),
    "Box, 3": (box, [0.0, 10.0, 20.0]),
    "variably dimensioned": (variably_dimensioned, list(1 - np.arange(1, 9) / 8)),
    "penalty I": (penalty, [1.0, 2.0, 3.0, 4.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_end_where_scipy_ends(name):
    """As low as the lower one of BFGS and L-BFGS-B from the same start, and with a gradient as small as they have."""
    f, start = PROBLEMS[name]
    start = np.asarray(start)
    found = optim.minimize(lambda x: f(jnp, x), start, maxiter=5000)
    slope = atled.jit(atled.grad(lambda x: f(jnp, x)))
    more = {"jac": lambda x: np.asarray(slope(x))}
    ends = [
        scipy_optimize.minimize(lambda x: f(np, x), start, method=method, options=options, **more)
        for method, options in (("BFGS", {"gtol": 1e-9}), ("L-BFGS-B", {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 5000}))
    ]
    assert bool(found.is_converged), int(found.status)
    assert found.x.dtype == np.float64
    want = min([e.fun for e in ends])
    assert float(found.value) <= want + 1e-8 * (1 + abs(want)), (float(found.value), [e.fun for e in ends])
    np.testing.assert_allclose(float(f(np, np.asarray(found.x))), float(found.value), rtol=1e-9, atol=1e-18)


def test_trees_of_mixed_arrays_and_arguments():
    def f(p, scale):
        return scale * (jnp.sum(jnp.abs(p["z"] - (1 + 2j)) ** 2) + jnp.sum((p["x"] - 3.0) ** 4))

    start = {"z": jnp.zeros(2, "complex128"), "x": jnp.zeros((2, 2), "float64")}
    found = optim.minimize(f, start, 2.0, tol=1e-12)
    np.testing.assert_allclose(found.x["z"], 1 + 2j, atol=1e-6)
    np.testing.assert_allclose(found.x["x"], 3.0, atol=1e-3)
    assert found.x["x"].dtype == "float64" and found.x["x"].shape == (2, 2)


def test_it_is_compiled_once_for_a_function_and_may_be_inside_of_jit_and_vmap():
    def f(x, a):
        return jnp.sum((x - a) ** 2) + jnp.sum(jnp.cos(x))

    starts = np.zeros((3, 2))
    many = atled.vmap(lambda x, a: optim.minimize(f, x, a).x)(starts, np.arange(3.0))
    for i in range(3):
        np.testing.assert_allclose(many[i], optim.minimize(f, starts[i], np.float64(i)).x, atol=1e-7)


def test_what_it_refuses_and_where_it_gives_up():
    with pytest.raises(TypeError, match=r"optim\.minimize: x0 must consist of floating-point arrays; got i32\[2\]"):
        optim.minimize(lambda x: jnp.sum(x**2), jnp.arange(2))
    with pytest.raises(ValueError, match=r"optim\.minimize: x0 must have arrays; got none"):
        optim.minimize(lambda x: jnp.float32(0), {})
    found = optim.minimize(lambda x: rosenbrock(jnp, x), np.array([-1.2, 1.0]), maxiter=3)
    assert not bool(found.is_converged) and int(found.status) == 1 and int(found.steps) == 3
    nan = optim.minimize(lambda x: jnp.sum(x) * jnp.nan, np.ones(2))
    assert not bool(nan.is_converged)


@pytest.mark.parametrize("name", ["Rosenbrock, 10", "logistic regression", "Brown badly scaled"])
def test_the_optimizer_gets_there_too(name):
    f, start = PROBLEMS[name]
    loss, lbfgs = lambda p: f(jnp, p["x"]), optim.LBFGS()
    p = {"x": jnp.asarray(np.asarray(start))}
    state = lbfgs.init(p)

    @atled.jit
    def step(p, state):
        value, grads = atled.value_and_grad(loss)(p)
        return *lbfgs.step(p, grads, state, value=value, loss=loss), value

    values = []
    for _ in range(120):
        p, state, value = step(p, state)
        values.append(float(value))
    want = float(optim.minimize(lambda x: f(jnp, x), np.asarray(start)).value)
    assert values[-1] <= want + 1e-6 * (1 + abs(want))
    assert all([b <= a * (1 + 1e-12) + 1e-300 for a, b in itertools.pairwise(values)])  # never uphill
