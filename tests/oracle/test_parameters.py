"""Parameters of JAX's functions that NumPy's do not have, or that few use: values as JAX gives them."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy

jax = pytest.importorskip("jax")

X = np.asarray([[1.0, np.nan, 3.0], [4.0, 5.0, -6.0]], np.float32)
Y = np.asarray([[2.0, 7.0, 1.0], [-4.0, 0.5, 6.5]], np.float32)
M = np.asarray([[True, True, False], [True, False, True]])
P = np.asarray([[0, -1], [2, 5]], np.int32)
NUMPY = {
    "take_along_axis fill_value": lambda np_: np_.take_along_axis(Y, P, 1, fill_value=9.0),
    "take_along_axis mode and fill_value": lambda np_: np_.take_along_axis(Y, P, 1, "fill", -1.0),
    "take_along_axis of integers": lambda np_: np_.take_along_axis(P, P, 1, fill_value=3),
    "take_along_axis without wrapping": lambda np_: np_.take_along_axis(Y, P, 1, wrap_negative_indices=False),
    "take_along_axis clip, no wrapping": lambda np_: np_.take_along_axis(Y, P, 1, "clip", wrap_negative_indices=False),
    "nansum dtype": lambda np_: np_.nansum(X, 0, "float16"),
    "nansum initial, where, keepdims": lambda np_: np_.nansum(X, 1, None, None, True, 10.0, M),
    "nanprod initial, where": lambda np_: np_.nanprod(X, axis=0, initial=2.0, where=M),
    "nanprod of integers": lambda np_: np_.nanprod(P, axis=1, keepdims=True),
    "nanvar mean": lambda np_: np_.nanvar(X, 1, mean=np.ones((2, 1), "f4")),
    "nanstd mean, where": lambda np_: np_.nanstd(X, 1, where=M, mean=np.ones((2, 1), "f4")),
    "fmax by name": lambda np_: np_.fmax(x1=X, x2=Y),
    "fmin by name": lambda np_: np_.fmin(x1=X, x2=Y),
    "gcd by name": lambda np_: np_.gcd(x1=P, x2=np.asarray(4, "i4")),
    "lcm by name": lambda np_: np_.lcm(x1=P, x2=np.asarray(4, "i4")),
    "i0 by name": lambda np_: np_.i0(x=Y),
    "trunc by name": lambda np_: np_.trunc(x=Y),
    "empty_like by name": lambda np_: np_.empty_like(prototype=Y, shape=(2,)),
    "round": lambda np_: np_.round(Y, 1, None),
    "modf": lambda np_: np_.modf(Y, None),
    "isposinf": lambda np_: np_.isposinf(X / 0, None),
    "issubdtype by name": lambda np_: np.asarray(np_.issubdtype(arg1="float32", arg2=np.floating)),
    "reshape copy": lambda np_: np_.reshape(Y, (3, 2), copy=True),
}  # fmt: skip


def compare(ours, theirs):
    ours, theirs = atled.tree.leaves(ours), jax.tree.leaves(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_numpy(name):
    compare(NUMPY[name](atled.numpy), NUMPY[name](jax.numpy))
