"""NumPy's `out`, an array to write into, is refused by name wherever it is a parameter."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import atled
import atled.numpy as jnp

NAMES = [
    n for n in jnp.__all__ if callable(getattr(jnp, n)) and not isinstance(getattr(jnp, n), type)
    and "out" in inspect.signature(getattr(jnp, n)).parameters
]  # fmt: skip
ARGUMENTS = {
    "choose": ([0, 1], [[1, 2], [3, 4]]), "compress": ([True], [[1.0]]), "stack": ([jnp.ones(2)],), "outer": (2, 3),
    "einsum": ("i->i", jnp.ones(2)), "take": (jnp.ones(2), jnp.arange(2)),
}  # fmt: skip
ALIAS = {"amax": "max", "amin": "min", "around": "round"}
TWO = ("percentile", "quantile", "nanpercentile", "nanquantile")


def test_many_have_it():
    assert {"sum", "mean", "max", "all", "argmax", "nanstd", "median", "round", "trace", "cumsum"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_out_is_refused(name):
    args = ARGUMENTS.get(name, (jnp.ones((2, 2)), *((0.5,) if name in TWO else ())))
    for out in (np.zeros(2), jnp.zeros(2)):
        message = f"{ALIAS.get(name, name)}: arrays are immutable, so `out` must be None; got"
        with pytest.raises(NotImplementedError, match=message):
            getattr(jnp, name)(*args, out=out)


def test_by_position_and_under_jit():
    for f in (lambda x: jnp.sum(x, None, None, x), lambda x: jnp.mean(x, out=x)):
        for g in (f, atled.jit(f), atled.grad(f)):
            with pytest.raises(NotImplementedError, match="`out` must be None; got f32"):
                g(jnp.ones(()))
    assert float(jnp.sum(jnp.ones(3), None, None, None)) == 3.0
