"""Integrals, hypergeometric functions, Bessel functions and harmonics against mpmath and SciPy; derivatives, edges."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.scipy import special

scipy_special = pytest.importorskip("scipy.special")
mpmath = pytest.importorskip("mpmath")
mpf = mpmath.mpf
inf, nan = np.inf, np.nan


def table(*axes):
    return [v.ravel() for v in np.meshgrid(*[np.asarray(a, float) for a in axes])]


LINE = np.r_[1e-8, 0.01, 0.3, 1.0, 1.9, 2.1, 3.9, 4.1, 7.7, 39.0, 41.0, 300.0]
BOTH = np.r_[LINE, -LINE]
VALUES = {  # name: (function, the same in mpmath, operands, tolerance)
    "exp1": (special.exp1, mpmath.e1, [LINE], 1e-14),
    "expi": (special.expi, mpmath.ei, [np.r_[LINE, -LINE[:-1], 0.2, 0.372507410781, 0.5]], 1e-13),
    "expn": (special.expn, mpmath.expint, table([0, 1, 2, 3, 10, 60], LINE[:-1]), 1e-13),
    "si": (lambda x: special.sici(x)[0], mpmath.si, [BOTH], 1e-14),
    "ci": (lambda x: special.sici(x)[1], lambda x: mpmath.ci(abs(x)), [BOTH], 1e-13),
    "fresnel_s": (lambda x: special.fresnel(x)[0], mpmath.fresnels, [BOTH], 1e-14),
    "fresnel_c": (lambda x: special.fresnel(x)[1], mpmath.fresnelc, [BOTH], 1e-14),
    "dawsn": (special.dawsn, lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x), [BOTH], 1e-14),
    "spence": (special.spence, lambda x: mpmath.polylog(2, 1 - x), [np.r_[LINE, 0.49, 0.51, 1 + 1e-9, 1e6]], 1e-14),
    "poch": (
        special.poch,
        mpmath.rf,
        table([0.3, 2.5, 30.0, 1e5, -0.7, -3.3, -3], [0, 1, 2, 3.5, 20, -0.6, -2]),
        1e-12,
    ),
    "hyp1f1": (
        special.hyp1f1,
        mpmath.hyp1f1,
        table([0.3, 1, 10, -0.5, -3, 0], [0.4, 3.3, 15, -0.5], [-5000, -300, -20, -0.1, 0, 1, 50, 300]),
        5e-12,
    ),
    "hyp2f1": (
        special.hyp2f1,
        mpmath.hyp2f1,
        table([0.3, 1, 2.5, -3], [0.4, 3.3, -0.5], [0.7, 2, 4.5], [-1e4, -3, -0.1, 0, 0.3, 0.6, 0.9, 0.999]),
        1e-12,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    f, exact, operands, tol = VALUES[name]
    with mpmath.workdps(40):
        want = np.array([float(mpmath.re(exact(*[mpf(float(v)) for v in row]))) for row in zip(*operands)])
    got = f(*operands)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=tol)
    for dtype in ("float16", "bfloat16", "float32"):
        kinds = [atled.ShapeDtypeStruct((2,), dtype)] * len(operands)
        assert atled.eval_shape(f, *kinds).dtype == dtype
    kinds = [atled.ShapeDtypeStruct((), "int32")] * len(operands)
    assert atled.eval_shape(f, *kinds).dtype == np.float32
    with pytest.raises(TypeError, match="real numbers are needed"):
        f(*[np.ones(1) * 1j for _ in operands])


def test_faddeeva():
    x, y = table(np.r_[-7:7:0.53, 1e-5, 0, 30.0, 1e5], np.r_[-4:9:0.41, 0, 1e-9, -1e-9, 50])
    z = x + 1j * y
    np.testing.assert_allclose(special.wofz(z), scipy_special.wofz(z), rtol=5e-14)
    np.testing.assert_allclose(special.wofz(z.astype("complex64")), scipy_special.wofz(z), rtol=1e-2)
    assert special.wofz(1.0).dtype == np.complex64
    assert special.wofz(z.astype("complex64")).dtype == np.complex64
    near = z[np.abs(z) < 20]
    with atled.enable_x64():
        slope = atled.vmap(atled.grad(special.wofz, holomorphic=True))(jnp.asarray(near))
    want = -2 * near * scipy_special.wofz(near) + 2j / np.sqrt(np.pi)
    np.testing.assert_allclose(slope, want, rtol=1e-10)
    far = np.array([1e3, 1e6])  # where the closed form of the derivative cancels
    with atled.enable_x64():
        np.testing.assert_allclose(
            atled.vmap(atled.grad(special.dawsn))(far), -0.5 / far**2 - 1.5 / 2 / far**4, rtol=1e-11
        )


def test_owens_t():
    h, a = table([0, 0.01, 0.5, 1, 3, 8, 20, -2, 1e-200], [0, 0.1, 0.5, 0.99, 1, 1.01, 3, 50, inf, -0.7, -4, 1e6])
    np.testing.assert_allclose(special.owens_t(h, a), scipy_special.owens_t(h, a), rtol=2e-13)
    np.testing.assert_array_equal(special.owens_t(np.array([inf, nan, 1.0]), np.array([1.0, 1.0, nan])), [0, nan, nan])


def test_bessel_functions():
    z = np.r_[-40.0, -1, 0, 1e-35, 1e-8, 0.1, 1, 5, 20, 29.9, 30.1, 50, 200, 1e4]
    want = np.stack([scipy_special.jv(k, z) for k in range(36)])
    got = np.asarray(special.bessel_jn(z, v=35))
    assert got.shape == (36, z.size)
    np.testing.assert_allclose(got, want, rtol=2e-11, atol=2e-16)
    assert special.bessel_jn(jnp.ones((2, 3)), v=0).shape == (1, 2, 3)
    with atled.enable_x64():
        at = jnp.asarray(np.r_[-3.0, 0.0, 0.7, 31.0])
        slope = atled.vmap(atled.jacrev(lambda u: special.bessel_jn(u, v=2)))(at)
        np.testing.assert_allclose(
            slope, np.stack([scipy_special.jvp(k, at) for k in range(3)], 1), rtol=1e-12, atol=1e-15
        )
        curve = atled.vmap(atled.grad(atled.grad(lambda u: special.bessel_jn(u, v=1)[1])))(at)
        np.testing.assert_allclose(curve, scipy_special.jvp(1, at, 2), rtol=1e-12, atol=1e-15)
    with pytest.raises(ValueError, match="bessel_jn: the order must not be negative; got -1"):
        special.bessel_jn(1.0, v=-1)
    with pytest.raises(TypeError, match=r"bessel_jn: the order must be a whole number; got 1\.5"):
        special.bessel_jn(1.0, v=1.5)


def test_spherical_harmonics():
    n = np.array([0, 1, 1, 1, 2, 3, 3, 10, 10, 10, 30])
    m = np.array([0, -1, 0, 1, 2, -2, 3, 0, 10, -7, 20])
    theta, phi = np.array([0.3, 1.2, 2.5, 0, np.pi / 2])[:, None], np.array([0.3, 1.2, 2.5, 0, 6])[:, None]
    want = scipy_special.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, rtol=1e-13, atol=1e-15)
    got = special.sph_harm_y(n, m, theta.astype("float32"), phi.astype("float32"))
    assert got.dtype == np.complex64
    traced = atled.jit(lambda k: special.sph_harm_y(k, m, theta, phi, n_max=30))(n)
    np.testing.assert_allclose(traced, want, rtol=1e-13, atol=1e-15)
    with atled.enable_x64():
        real = lambda t, p: jnp.sum(jnp.real(special.sph_harm_y(n, m, t, p)))
        slopes = atled.grad(real, (0, 1))(jnp.asarray(theta[:3]), jnp.asarray(phi[:3]))
    h = 1e-6
    y = lambda t, p: scipy_special.sph_harm_y(n, m, t, p).real.sum(1, keepdims=True)
    t, p = theta[:3], phi[:3]
    np.testing.assert_allclose(slopes[0], (y(t + h, p) - y(t - h, p)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(slopes[1], (y(t, p + h) - y(t, p - h)) / (2 * h), rtol=1e-6)
    with pytest.raises(ValueError, match="sph_harm_y: n_max is required if n is traced"):
        atled.jit(lambda k: special.sph_harm_y(k, m, theta, phi))(n)
    with pytest.raises(NotImplementedError, match="sph_harm_y: derivatives are taken with grad"):
        special.sph_harm_y(n, m, theta, phi, diff_n=1)
    with pytest.raises(ValueError, match=r"sph_harm_y: n must be whole numbers; got f64\[1\]"):
        special.sph_harm_y(np.ones(1), 0, 0.1, 0.1)


def test_bernoulli():
    np.testing.assert_allclose(special.bernoulli(30), scipy_special.bernoulli(30).astype("float32"), rtol=2e-7)
    assert special.bernoulli(0).shape == (1,)
    with pytest.raises(ValueError, match="bernoulli: n must be a non-negative whole number; got -1"):
        special.bernoulli(-1)
    with pytest.raises(TypeError, match=r"bernoulli: n must be a whole number; got 1\.5"):
        special.bernoulli(1.5)


EDGES = [  # name, operands, results
    ("exp1", ([0.0, -1.0, inf, nan],), [inf, nan, 0, nan]),
    ("expi", ([0.0, inf, -inf, nan],), [-inf, inf, 0, nan]),
    ("expn", ([0, 1, 2, 3, -1, 2, 1.5, 2], [0.0, 0, 0, 0, 1, -1, 1, inf]), [inf, inf, 1, 0.5, nan, nan, nan, 0]),
    ("dawsn", ([0.0, inf, -inf, nan],), [0, 0, 0, nan]),
    ("spence", ([0.0, 1.0, -1.0, nan],), [np.pi**2 / 6, 0, nan, nan]),
    ("poch", ([-3.0, -3.0, 2.0, -2.5, nan], [2.0, 5.0, -2.0, 0.5, 1.0]), [6, 0, inf, inf, nan]),
    ("hyp1f1", ([1, -2, 1, nan], [-1, -3, 2, 1], [1.0, 1.0, nan, 1]), [inf, 11 / 6, nan, nan]),
    (
        "hyp2f1",
        ([1, 1, 1, -2, 2, 1, nan], [1, 1, 0.5, 1, 3, 1, 1], [2, 3, 3, 2, 4, -1, 1], [1.5, 1, 1, 1, 1, 0.5, 0.5]),
        [nan, 2, 4 / 3, 1 / 3, inf, inf, nan],
    ),
]


@pytest.mark.parametrize("name, operands, want", EDGES, ids=[row[0] for row in EDGES])
def test_edges(name, operands, want):
    np.testing.assert_allclose(getattr(special, name)(*map(np.array, operands)), want, rtol=1e-12)


def test_edges_of_pairs():
    si, ci = special.sici(np.array([0.0, inf, -inf, nan]))
    np.testing.assert_allclose(si, [0, np.pi / 2, -np.pi / 2, nan])
    np.testing.assert_allclose(ci, [-inf, 0, 0, nan])
    for part in special.fresnel(np.array([0.0, inf, -inf, nan, 1e200])):
        np.testing.assert_array_equal(part, [0, 0.5, -0.5, nan, 0.5])


SMOOTH = {  # name: (function, operands, the operands to differentiate by)
    "exp1": (special.exp1, [[0.3, 1.9, 2.1, 20.0]], [0]),
    "expi": (special.expi, [[-3.0, 0.35, 1.0, 42.0]], [0]),
    "expn": (lambda n, x: special.expn(n, x), [[0, 1, 2, 5], [0.3, 1.0, 2.5, 1.0]], [1]),
    "si": (lambda x: special.sici(x)[0], [[-3.0, 0.0, 1.0, 5.0]], [0]),
    "ci": (lambda x: special.sici(x)[1], [[-3.0, 0.2, 1.0, 5.0]], [0]),
    "fresnel_s": (lambda x: special.fresnel(x)[0], [[-3.0, 0.0, 1.0, 5.0]], [0]),
    "fresnel_c": (lambda x: special.fresnel(x)[1], [[-3.0, 0.0, 1.0, 5.0]], [0]),
    "dawsn": (special.dawsn, [[-3.0, 0.0, 0.29, 0.31, 0.5, 0.7, 5.0]], [0]),
    "owens_t": (special.owens_t, [[0.0, 0.5, 2.0, -1.0], [0.5, 0.9, 3.0, -2.0]], [0, 1]),
    "spence": (special.spence, [[0.1, 0.6, 1.0, 1.9, 3.0]], [0]),
    "poch": (special.poch, [[0.3, 20.0, 5.0, -0.7, -2.3], [0.5, 2.0, 30.0, 0.3, 3.6]], [0, 1]),
    "hyp1f1": (special.hyp1f1, [[0.5, 2.0, -2.0], [1.5, 0.7, 1.2], [-2.0, 3.0, 0.5]], [0, 1, 2]),
    "hyp2f1": (special.hyp2f1, [[0.5, 0.7, 1.0], [1.5, 0.7, 1.2], [2.5, 1.1, 3.0], [-2.0, 0.3, 0.8]], [0, 1, 2, 3]),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_first_and_second_derivatives(name):
    f, operands, which = SMOOTH[name]
    operands = [np.array(v, float) for v in operands]
    with atled.enable_x64():

        def slope(g, i, h):
            up, down = ([v + s * (j == i) for j, v in enumerate(operands)] for s in (h, -h))
            return (np.asarray(g(*up)) - np.asarray(g(*down))) / (2 * h)

        for i in which:
            first = lambda *xs, i=i: atled.grad(lambda *us: jnp.sum(f(*us)), i)(*map(jnp.asarray, xs))
            np.testing.assert_allclose(first(*operands), slope(f, i, 1e-5), rtol=1e-6, atol=1e-8)
        first = lambda *xs: atled.grad(lambda *us: jnp.sum(f(*us)), which[0])(*map(jnp.asarray, xs))
        second = atled.grad(lambda *us: jnp.sum(first(*us)), which[-1])(*map(jnp.asarray, operands))
        np.testing.assert_allclose(second, slope(first, which[-1], 1e-5), rtol=1e-6, atol=1e-8)


def test_under_transformations():
    x = np.random.RandomState(0).uniform(0.2, 3.0, (3, 4)).astype(np.float32)
    for f in (special.expi, special.dawsn, lambda v: special.hyp1f1(0.5, 1.5, v)):
        want = np.asarray(f(x))
        assert want.dtype == np.float32
        np.testing.assert_allclose(want, f(x.astype(float)), rtol=1e-7)
        np.testing.assert_array_equal(atled.vmap(f)(x), want)
        np.testing.assert_array_equal(atled.jit(f)(x), want)
        assert f(x[:0]).shape == (0, 4)
    with pytest.raises(NotImplementedError, match="expn: the derivative with respect to its order is not defined"):
        atled.grad(special.expn)(2.0, 1.0)
