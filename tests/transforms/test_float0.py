"""Tangents of integers and booleans, of dtype float0, pass through every transform as other results do."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.jax.dtypes import float0

X = jnp.arange(3.0)


def sign(x):
    return atled.jvp(lambda x: x > 0, (x,), (x,))


def gradient(x):
    return atled.grad(lambda n: n * 2.0, allow_int=True)(lax.convert_element_type(x, "int32"))


mesh = atled.make_mesh((1,), ("i",))
over = atled.sharding.P("i")
WAYS = {
    "jit": (lambda f: atled.jit(f), (3,)),
    "jit of jit": (lambda f: atled.jit(lambda x: atled.jit(f)(x)), (3,)),
    "vmap": (lambda f: atled.vmap(f), (3,)),
    "jit of vmap": (lambda f: atled.jit(atled.vmap(f)), (3,)),
    "vmap of jit": (lambda f: atled.vmap(atled.jit(f)), (3,)),
    "map": (lambda f: lambda x: lax.map(f, x), (3,)),
    "cond": (lambda f: lambda x: lax.cond(jnp.sum(x) > 0, f, f, x), (3,)),
    "batched cond": (lambda f: atled.vmap(lambda x: lax.cond(x > 1, f, f, x)), (3,)),
    "scan": (lambda f: lambda x: lax.scan(lambda c, v: (c, f(v)), 0.0, x)[1], (3,)),
    "pmap": (lambda f: lambda x: atled.pmap(f)(x[None]), (1, 3)),
    "shard_map": (lambda f: atled.shard_map(f, mesh=mesh, in_specs=over, out_specs=over), (3,)),
    "checkpoint": (lambda f: atled.remat(f), (3,)),
    "ahead of time": (lambda f: lambda x: atled.jit(f).lower(x).compile()(x), (3,)),
    "jvp": (lambda f: lambda x: atled.jvp(f, (x,), (x,))[0], (3,)),
}


@pytest.mark.parametrize("name", WAYS)
def test_as_a_result(name):
    way, dims = WAYS[name]
    for _ in range(2):
        truth, tangent = way(sign)(X)
        assert truth.dtype == bool
        assert tangent.dtype == float0
        assert tangent.shape == truth.shape == dims
        host = np.asarray(tangent)
        assert host.dtype == float0
        assert host.shape == dims


@pytest.mark.parametrize("way", [atled.jit, atled.vmap, lambda f: atled.jit(atled.vmap(f))])
def test_of_integers(way):
    if way is atled.jit:
        assert way(gradient)(2.0).dtype == float0
    else:
        assert way(gradient)(X).shape == (3,)


def test_as_an_argument():
    n, t = jnp.arange(3), np.zeros(3, float0)
    push = lambda n, t: atled.jvp(lambda n: (n * 2, n * 2.0), (n,), (t,))
    (doubled, _), (zero, slope) = atled.jit(push)(n, t)
    assert doubled.tolist() == [0, 2, 4]
    assert zero.dtype == float0
    assert slope.tolist() == [0.0, 0.0, 0.0]
    (_, again), _ = atled.jit(push)(n, zero)
    assert again.tolist() == [0.0, 2.0, 4.0]
    assert atled.jit(lambda t: t)(t).dtype == float0


def test_there_is_no_arithmetic():
    with pytest.raises(TypeError, match="float0"):
        atled.jit(sign)(X)[1] + 1.0
