"""Derivatives do not hide a NaN of the value: what determined the value passes its NaN on."""

from __future__ import annotations

import numpy as np
import pytest
from selections import SELECTIONS

import atled
import atled.numpy as jnp
from atled import lax, nn
from atled.scipy import stats

NAMES = {"jnp": jnp, "lax": lax, "nn": nn, "ops": atled.ops, "stats": stats}
IDS = [f"{s.expression} at {np.shape(s.x)}" for s in SELECTIONS]


def function(selection):
    f = eval(f"lambda x: {selection.expression}", dict(NAMES))
    return lambda x: jnp.sum(f(x))


def derivatives(f, x, is_direct):
    """The derivative of f by every transform: all of them in one program, and two of them op by op, too."""
    found = ways(f, is_direct)
    compiled = atled.jit(lambda x: {name: way(x) for name, way in found.items()})(x)
    return {**compiled, **{f"{name}, op by op": found[name](x) for name in ("grad", "jvp")}}


def ways(f, is_direct):
    """The derivative of f, by every transform."""
    one = lambda x: jnp.ones_like(x)
    found = {
        "grad": atled.grad(f),
        "jvp": lambda x: atled.jvp(f, (x,), (one(x),))[1],
        "linearize": lambda x: atled.linearize(f, x)[1](one(x)),
        "grad(jit)": atled.grad(atled.jit(f)),
        "jvp(jit)": lambda x: atled.jvp(atled.jit(f), (x,), (one(x),))[1],
        "vmap(grad)": lambda x: atled.vmap(atled.grad(f))(x[None]),
        "grad(vmap)": lambda x: atled.grad(lambda x: jnp.sum(atled.vmap(f)(x)))(x[None]),
        "checkpoint": atled.grad(atled.remat(f)),
        "jacfwd": atled.jacfwd(f),
        "jacrev": atled.jacrev(f),
        "scan": atled.grad(lambda x: lax.scan(lambda c, _: (c + f(x), None), 0.0, length=2)[0]),
        "cond": atled.grad(lambda x: lax.cond(jnp.sum(x) == 0, lambda x: 0.0 * jnp.sum(x), f, x)),
    }
    if not is_direct:  # of a scalar
        found["cond"] = atled.grad(lambda w: lax.cond(w > 0, f, lambda w: 0.0 * w, w))
    return found


@pytest.mark.parametrize("selection", SELECTIONS, ids=IDS)
def test_a_nan_of_the_value_is_in_its_derivative(selection):
    x, f = jnp.asarray(np.asarray(selection.x, "f4")), function(selection)
    assert np.isnan(f(x))
    scaled = lambda w: f(x * w)
    # as a function of w, on which every element depends
    bad = [name for name, d in derivatives(scaled, jnp.float32(1.0), False).items() if not np.isnan(d).all()]
    assert not bad
    if selection.is_direct:
        bad = [name for name, d in derivatives(f, x, True).items() if not np.isnan(d).any()]
        assert not bad


@pytest.mark.parametrize("selection", SELECTIONS, ids=IDS)
def test_a_guard_discards_it(selection):
    """A `where` around the whole, or before it, gives zero and no NaN."""
    x, f = jnp.asarray(np.asarray(selection.x, "f4")), function(selection)
    outside = lambda w: jnp.where(jnp.isnan(f(x * w)), 0.0, f(x * w))
    for name, derivative in derivatives(outside, jnp.float32(1.0), False).items():
        assert derivative.sum() == 0, name


def test_there_are_enough():
    assert len(SELECTIONS) >= 60
