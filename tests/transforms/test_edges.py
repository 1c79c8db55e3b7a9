"""Derivatives at edges: forward, in reverse, mapped, again, and as the guide says."""

from __future__ import annotations

import functools

import edges
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn
from atled.scipy import special

NAMES = {"jnp": jnp, "nn": nn, "lax": lax, "special": special}
CASES = [(title, i) for title, found in edges.TABLE.items() for i in range(len(found))]
IDS = [edges.TABLE[title][i].key for title, i in CASES]


def derivatives(edge, x):
    """By every mode: forward, reverse, reverse in a batch, and the second derivative by two of its four ways."""
    f = edges.function(edge, NAMES)
    slope = atled.grad(f)
    twice = [] if edge.second is None else [atled.jacfwd(slope)(x), atled.jacrev(slope)(x)]
    return atled.jacfwd(f)(x), slope(x), atled.vmap(slope)(jnp.stack([x, x])), twice


@functools.cache
def found(title):
    """All derivatives of a section, in one compilation."""
    rows = edges.TABLE[title]
    points = [np.asarray(e.point, np.float32) for e in rows]
    every = lambda xs: [derivatives(e, x) for e, x in zip(rows, xs, strict=True)]
    return atled.jit(every)([jnp.asarray(p) for p in points])


def agrees(got, wanted):
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize(("title", "i"), CASES, ids=IDS)
def test_first_derivatives(title, i):
    edge = edges.TABLE[title][i]
    forward, reverse, mapped, _ = found(title)[i]
    agrees(forward, edge.first)
    agrees(reverse, edge.first)
    agrees(mapped, np.stack([edge.first, edge.first]))


TWICE = [(title, i) for title, i in CASES if edges.TABLE[title][i].second is not None]


@pytest.mark.parametrize(("title", "i"), TWICE, ids=[edges.TABLE[title][i].key for title, i in TWICE])
def test_second_derivatives(title, i):
    edge = edges.TABLE[title][i]
    for way in found(title)[i][3]:
        agrees(way, edge.second)


@pytest.mark.parametrize("edge", edges.SHIELDS[:8], ids=[e.key for e in edges.SHIELDS[:8]])
def test_without_jit(edge):
    f = edges.function(edge, NAMES)
    agrees(atled.grad(f)(jnp.asarray(np.asarray(edge.point, np.float32))), edge.first)


@pytest.mark.parametrize(
    "f", [lambda x: jnp.log(1 + jnp.exp(x)), lambda x: jnp.log1p(jnp.exp(x))], ids=["log", "log1p"]
)
def test_no_silent_zero_where_an_exponential_overflows(f):
    assert np.isnan(atled.grad(f)(100.0))  # the slope is 1, and both the reciprocal and the exponential are rounded
    assert np.isnan(atled.jvp(f, (100.0,), (1.0,))[1])
    np.testing.assert_allclose(atled.jvp(f, (80.0,), (1.0,))[1], 1.0)


def test_the_guide_says_the_same():
    assert edges.PAGE.read_text() == edges.page(edges.PAGE.read_text())
