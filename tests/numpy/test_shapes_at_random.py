"""Functions whose work is with shapes and axes, on shapes and axes that Hypothesis thinks of, against NumPy.

`ATLED_EXAMPLES` says how many; new shapes are compiled anew, so there are few by default.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import atled.numpy as jnp

EXAMPLES = int(os.environ.get("ATLED_EXAMPLES", "4"))
settings = hypothesis.settings(
    max_examples=EXAMPLES, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)  # fmt: skip
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
DTYPES = st.sampled_from(["float32", "int32", "bool", "complex64"])


def numbers(shape: Any, dtype: Any = "float32") -> np.ndarray:
    """Different numbers; what they are does not matter here."""
    return (np.arange(np.prod(shape)).reshape(shape) * 3 % 7 - 2).astype(dtype)


def same(call: Any, *arrays: np.ndarray) -> None:
    """The same result as NumPy's, or an error where NumPy has one."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = call(np, *arrays)
        except Exception:
            with pytest.raises((TypeError, ValueError, IndexError)):
                call(jnp, *arrays)
            return
        got = call(jnp, *[jnp.asarray(x) for x in arrays])
    pairs = zip(got, want, strict=True) if isinstance(want, (tuple, list)) else [(got, want)]
    for g, w in pairs:
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape, (g.shape, w.shape)
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


@settings
@hypothesis.given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3), DTYPES)
def test_broadcasting(shapes: Any, dtype: str):
    x, y, z = (numbers(s, dtype) for s in shapes.input_shapes)
    same(lambda m, x, y, z: m.where(x != 0, m.add(x, y), m.multiply(y, z)), x, y, z)
    same(lambda m, *xs: m.broadcast_arrays(*xs), x, y, z)


@settings
@hypothesis.given(SHAPES, SHAPES)
def test_shapes_that_may_not_fit(a: Any, b: Any):
    same(lambda m, x, y: m.subtract(x, y), numbers(a), numbers(b))
    same(lambda m, x, y: m.matmul(x, y), numbers(a), numbers(b))
    same(lambda m, x: m.broadcast_to(x, b), numbers(a))
    same(lambda m, x: m.reshape(x, b), numbers(a))


@settings
@hypothesis.given(st.data(), SHAPES, DTYPES)
def test_reductions(data: Any, shape: Any, dtype: str):
    ndim = len(shape)
    axes = (
        st.none() | st.lists(st.integers(-ndim, ndim - 1), unique_by=lambda a: a % max(ndim, 1)).map(tuple)
        if ndim
        else st.none()
    )
    axis, keepdims = data.draw(axes), data.draw(st.booleans())
    x = numbers(shape, dtype)
    mask = numbers(shape) > 0
    for name in ("sum", "any", "mean") if dtype != "bool" else ("sum", "all"):
        same(lambda m, x, w, n=name: getattr(m, n)(x, axis=axis, keepdims=keepdims, where=w), x, mask)
    if dtype != "complex64":
        same(lambda m, x: m.max(x, axis=axis, keepdims=keepdims), x)


@settings
@hypothesis.given(st.data(), SHAPES)
def test_moving_elements(data: Any, shape: Any):
    ndim = len(shape)
    x = numbers(shape)
    order = data.draw(st.permutations(range(ndim)))
    shift, axis = data.draw(st.integers(-4, 4)), data.draw(st.integers(-4, 3))
    repeats = data.draw(st.lists(st.integers(0, 2), max_size=3))
    width = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=ndim, max_size=ndim))
    mode = data.draw(st.sampled_from(["constant", "edge", "wrap", "reflect", "symmetric"]))
    same(lambda m, x: m.transpose(x, order), x)
    same(lambda m, x: m.roll(x, shift, axis), x)
    same(lambda m, x: m.flip(x, axis), x)
    same(lambda m, x: m.tile(x, repeats), x)
    same(lambda m, x: m.moveaxis(x, axis, 0), x)
    same(lambda m, x: m.expand_dims(x, axis), x)
    if ndim:  # NumPy takes 0 as an axis of some arrays that have none
        same(lambda m, x: m.cumsum(x, axis), x)
        same(lambda m, x: m.sort(x, axis), x)
        same(lambda m, x: m.squeeze(x, axis), x)
        same(lambda m, x: m.pad(x, width, mode=mode), x)


@settings
@hypothesis.given(st.data(), st.integers(1, 3))
def test_joining_and_splitting(data: Any, count: int):
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    xs = [numbers(shape) + k for k in range(count)]
    cuts = data.draw(st.lists(st.integers(-3, 4), max_size=3))
    same(lambda m, *xs: m.concatenate(xs, axis), *xs)
    same(lambda m, *xs: m.stack(xs, axis), *xs)
    same(lambda m, x: m.array_split(x, cuts, axis), xs[0])
    same(lambda m, x: m.take(x, np.asarray(cuts, np.int32), axis, mode="wrap"), xs[0])


@settings
@hypothesis.given(st.data())
def test_einsum(data: Any):
    sizes = {"i": 2, "j": 3, "k": 1, "l": 0}
    labels = st.text("ijkl" if data.draw(st.booleans()) else "ijk", max_size=3)
    terms = data.draw(st.lists(labels, min_size=1, max_size=3))
    out = "".join(data.draw(st.permutations(sorted(set("".join(terms))))))[: data.draw(st.integers(0, 4))]
    operands = [numbers([sizes[c] for c in t]) for t in terms]
    same(lambda m, *xs: m.einsum(f"{','.join(terms)}->{out}", *xs), *operands)


def test_einsum_of_axes_of_length_none_and_one():
    for terms, first, second in (("i,i->i", 0, 1), ("i,i->i", 1, 0), ("i,i->", 1, 0), ("i,i->", 1, 3), ("i,i->", 3, 1)):
        same(lambda m, x, y, terms=terms: m.einsum(terms, x, y), np.ones(first), np.ones(second))
    same(lambda m, x, y: m.einsum("ij,jk->ik", x, y), np.ones((2, 0)), np.ones((1, 3)))
    same(lambda m, x, y: m.einsum("ij,jk->ijk", x, y), np.ones((2, 1)), np.ones((0, 3)))
