"""Derivatives at edges: forward, in reverse, mapped, again, and as the guide says."""

from __future__ import annotations

import functools
import json
import pathlib
import sys

import edges
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn
from atled.core.array import type_of
from atled.core.trace import entered, state
from atled.core.types import Linear, Zero
from atled.scipy import special
from atled.transforms.masked_tangents import Masked

sys.path.append(str(pathlib.Path(__file__).parents[1] / "ops"))
import cases

NAMES = {"jnp": jnp, "nn": nn, "lax": lax, "special": special}
CASES = [(title, i) for title, found in edges.TABLE.items() for i in range(len(found))]
IDS = [edges.TABLE[title][i].key for title, i in CASES]


def derivatives(edge, x):
    """By every mode: forward, reverse, reverse in a batch, and the second derivative in its four ways."""
    f = edges.function(edge, NAMES)
    slope, ways = atled.grad(f), (atled.jacfwd, atled.jacrev)
    twice = [] if edge.second is None else [outer(inner)(x) for outer in ways for inner in (slope, atled.jacfwd(f))]
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


OF_TABLE = [*edges.GUARDS, *edges.PAIRS]


@pytest.mark.parametrize("edge", OF_TABLE, ids=[e.key for e in OF_TABLE])
def test_without_jit(edge):
    f, x = edges.function(edge, NAMES), jnp.asarray(np.asarray(edge.point, np.float32))
    agrees(atled.grad(f)(x), edge.first)
    agrees(atled.grad(atled.jit(f))(x), edge.first)
    basis = jnp.eye(x.size).reshape(x.size, *x.shape)
    if x.ndim == 0:  # the zeros of unit vectors count as left out in `jacfwd` alone
        agrees(atled.jvp(f, (x,), (jnp.ones_like(x),))[1], edge.first)
        agrees(atled.linearize(f, x)[1](jnp.ones_like(x)), edge.first)
    elif edge in edges.GUARDS:
        agrees(atled.vmap(lambda t: atled.jvp(f, (x,), (t,))[1])(basis).reshape(x.shape), edge.first)


@pytest.mark.parametrize("edge", edges.PAIRS, ids=[e.key for e in edges.PAIRS])
def test_inverses_are_right_or_say_that_they_are_not(edge):
    theirs = json.loads(edges.KEPT.read_text())[edge.key]
    f, x = edges.function(edge, NAMES), jnp.asarray(np.asarray(edge.point, np.float32))
    assert not np.isfinite(edge.first) or edge.first == 1
    assert not np.isclose(theirs, 1) or edge.first == 1
    ways = [outer(inner) for outer in (atled.jacfwd, atled.jacrev) for inner in (atled.grad(f), atled.jacfwd(f))]
    for second in atled.jit(lambda x: [way(x) for way in ways])(x):
        assert not np.isfinite(second) or abs(second) < 1e-5  # which is that of x


def test_guards_are_finite():
    assert all([np.isfinite(e.first).all() and np.isfinite(e.second or 0).all() for e in edges.GUARDS])
    assert len(OF_TABLE) >= 40


@pytest.mark.parametrize(
    "f", [lambda x: jnp.log(1 + jnp.exp(x)), lambda x: jnp.log1p(jnp.exp(x))], ids=["log", "log1p"]
)
def test_no_silent_zero_where_an_exponential_overflows(f):
    assert np.isnan(atled.grad(f)(100.0))  # the slope is 1, and both the reciprocal and the exponential are rounded
    assert np.isnan(atled.jvp(f, (100.0,), (1.0,))[1])
    np.testing.assert_allclose(atled.jvp(f, (80.0,), (1.0,))[1], 1.0)


def reaches(op, operands):
    """The reach of the masks that the tangent and the cotangents of an op get."""
    types = [type_of(x) for x in operands]
    masks, tangent, cotangents = Masked(state.level + 1), [], []
    some = lambda t: jnp.ones(t.shape, t.dtype) if t.kind in "fc" else Zero(t.tangent())
    as_tuple = lambda x: x if type(x) is tuple else (x,)
    with entered(masks):
        linear = op.linear_groups(len(operands))
        if not linear:
            tangent = as_tuple(masks.differentiate(op, operands, [some(t) for t in types])[1])
        for group in linear:
            cotangent = [some(t) for t in as_tuple(op.result_type(*types))]
            given = [Linear(t) if i in group else x for i, (x, t) in enumerate(zip(operands, types, strict=True))]
            cotangents += masks.transpose(op, cotangent, given)
    return [max([x.mask.reach for x in found if masks.owns(x)], default=0) for found in (tangent, cotangents)]


def test_the_table_of_rules_has_all_selecting_ops():
    """What it says is what the ops do, in all cases of the laws."""
    found = {}
    for case in cases.CASES:
        if case.op.selects is True and not case.op.splits and "float32" in case.dtypes:
            ours = reaches(case.op, [jnp.asarray(x) for x in case.operands("float32")])
            name = type(case.op).__name__
            found[name] = [max(a, b) for a, b in zip(ours, found.get(name, (0, 0)), strict=True)]
    assert found == {name: [rule.tangent, rule.cotangents] for name, rule in edges.RULES.items()}


def test_the_guide_says_the_same():
    assert edges.PAGE.read_text() == edges.page(edges.PAGE.read_text())
