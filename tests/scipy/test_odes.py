"""`scipy.integrate.odeint` has SciPy's parameters and results; the solver itself is compared with JAX's elsewhere."""

import numpy as np
import pytest
import scipy.integrate

import atled
import atled.numpy as jnp
from atled.scipy.integrate import odeint

T = np.linspace(0, 5, 11)


def pendulum(y, t, b, c, np_=jnp):
    return np_.stack([y[1], -b * y[1] - c * np_.sin(y[0]) + 0.1 * t])


def test_a_pendulum():
    y0, args = np.array([3.0, 0.5]), (0.25, 5.0)
    want = scipy.integrate.odeint(lambda *a: pendulum(*a, np), y0, T, args, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(odeint(pendulum, y0, T, args, rtol=1e-10, atol=1e-10), want, atol=1e-7)
    turned = odeint(lambda t, y, *more: pendulum(y, t, *more), y0, T, args, tfirst=True, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(turned, want, atol=1e-7)


def test_derivatives_by_arguments():
    f = lambda rate: odeint(lambda y, t, r: -r * y, np.array(2.0), T, (rate,), rtol=1e-10, atol=1e-10)[-1]
    np.testing.assert_allclose(atled.grad(f)(np.array(0.3)), -5 * 2 * np.exp(-1.5), rtol=1e-8)


def test_arguments_are_a_tuple():
    with pytest.raises(TypeError, match=r"(?s)odeint: args must be a tuple; got .*try: args=\(rate,\)"):
        odeint(lambda y, t, r: -r * y, 1.0, T, 0.3)
