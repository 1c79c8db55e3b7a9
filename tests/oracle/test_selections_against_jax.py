"""Random programs that select, under all transforms, against JAX; `scripts/fuzz-selections` runs thousands of them."""

from __future__ import annotations

import pathlib
import sys

import jax
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn

sys.path.append(str(pathlib.Path(__file__).parents[1] / "programs"))
import selecting


@pytest.mark.parametrize("seed", range(10_000_000, 10_000_012))
def test_derivatives_of_programs_that_select(seed):
    with jax.enable_x64(True):
        counts = selecting.check(seed, atled, jax)
    assert counts["pairs"] == 12


def test_a_wrong_derivative_is_not_explained():
    """A slope that is neither that of a side nor of the limit, and a finite slope of a NaN, are no matter of taste."""
    x, right = np.array([0.5, 0.0, -1.0, 2.0]), np.array([1.0, 0.0, -1.0, 1.0])
    why = lambda value, slopes, by_factor=0.0: selecting.Case(
        value, lambda _: np.diag(slopes), lambda _: np.diag(right), lambda _: np.full(4, by_factor)
    ).explain(x)
    for i, slope in ((0, 1.01), (1, 1.5), (3, 0.0)):
        wrong = right.copy()
        wrong[i] = slope
        assert why(np.abs, wrong) == {None}
    assert why(np.abs, np.array([1.0, 0.5, -1.0, 1.0])) == {"kink"}
    nothing = lambda x: np.full(4, np.nan)
    assert why(nothing, 2 * right) == {None}
    assert why(nothing, 2 * right, np.nan) == {"a NaN that passes"}


def test_a_hidden_nan_is_not_explained():
    """A derivative that a NaN does not reach, seen from the line in which it arises."""
    hidden = atled.custom_jvp(lambda x: jnp.maximum(x, 0.0))
    hidden.defjvp(lambda x, t: (hidden(x[0]), jnp.where(x[0] > 0, t[0], 0.0)))
    text = "def f(x):\n    v0 = jnp.log(x)\n    v1 = pick(v0)\n    return jnp.sum(v1)"
    x = np.array([-1.0, 2.0, 3.0, 5.0])
    other = lambda x: jax.numpy.where(jax.numpy.isnan(x), 3.0 * x, x)
    with jax.enable_x64(True):
        for pick, why in ((nn.relu, "a NaN that passes"), (hidden, None)):
            programs = selecting.Programs(text, atled, jax)
            programs.spaces[0]["pick"], programs.spaces[1]["pick"] = pick, other
            assert selecting.reason(programs, "reverse", x, np.asarray(atled.grad(programs.scalar()[0])(x))) == why
