"""Axes, lengths and counts as NumPy's programs give them: NumPy numbers and arrays, lists, arrays on a device."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp

one, two = np.int64(1), np.int32(2)
CALLS = {
    "reshape": lambda n, x: n.reshape(x, np.array([2, 3])),
    "reshape method": lambda n, x: x.reshape(two, 3),
    "zeros": lambda n, x: n.zeros(np.array([2, 2])) + x[0],
    "full": lambda n, x: n.full([2, one], 3.0) + x[0],
    "broadcast_to": lambda n, x: n.broadcast_to(x, np.array([2, 6])),
    "tile": lambda n, x: n.tile(x, np.array([2, 1])),
    "transpose": lambda n, x: n.transpose(x.reshape(2, 3), np.array([1, 0])),
    "sum": lambda n, x: n.sum(x.reshape(2, 3), axis=one),
    "sum over axes": lambda n, x: n.sum(x.reshape(2, 3), axis=(np.int64(0), one)),
    "std": lambda n, x: n.std(x, ddof=one),
    "moveaxis": lambda n, x: n.moveaxis(x.reshape(2, 3), np.array([0]), np.array([1])),
    "swapaxes": lambda n, x: n.swapaxes(x.reshape(2, 3), np.int64(0), one),
    "expand_dims": lambda n, x: n.expand_dims(x, (np.int64(0),)),
    "squeeze": lambda n, x: n.squeeze(x[None], np.int64(0)),
    "flip": lambda n, x: n.flip(x, np.int64(0)),
    "rot90": lambda n, x: n.rot90(x.reshape(2, 3), two),
    "roll": lambda n, x: n.roll(x, two, np.int64(0)),
    "pad": lambda n, x: n.pad(x, np.array([1, 2])),
    "split": lambda n, x: n.concatenate(n.split(x, np.array([2, 4]))[::-1], axis=np.int64(0)),
    "repeat": lambda n, x: n.repeat(x, np.array([1, 2, 0, 1, 1, 1])),
    "eye": lambda n, x: n.eye(two) * x[1],
    "linspace": lambda n, x: n.linspace(0, 1, two) + x[:2],
    "round": lambda n, x: n.round(x / 7, two),
    "take": lambda n, x: n.take(x, np.array([1, 2]), axis=np.int32(0)),
    "cumsum": lambda n, x: n.cumsum(x, np.int64(0)),
    "diff": lambda n, x: n.diff(x, n=two),
    "stack": lambda n, x: n.stack([x, x], axis=one),
    "diagonal": lambda n, x: n.diagonal(x.reshape(2, 3), one),
    "triu": lambda n, x: n.triu(x.reshape(2, 3), one),
    "vander": lambda n, x: n.vander(x, two),
    "fft": lambda n, x: n.fft.fft(x, np.int64(4)),
    "norm": lambda n, x: n.linalg.norm(x.reshape(2, 3), two, np.int64(0)),
    "tensordot": lambda n, x: n.tensordot(x, x, one),
    "tensordot over axes": lambda n, x: n.tensordot(x, x, [np.array([0]), np.array([0])]),
    "unravel_index": lambda n, x: n.stack(n.unravel_index(np.array([3, 5]), np.array([2, 3]))) + x[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_numpy_numbers_and_arrays(name):
    call = CALLS[name]
    x = np.arange(6.0, dtype="float32")
    wanted = call(np, x)
    for f in (lambda v: call(jnp, v), atled.jit(lambda v: call(jnp, v))):
        np.testing.assert_allclose(np.asarray(f(jnp.asarray(x))), wanted, rtol=1e-5, atol=1e-5)
    mapped = atled.vmap(lambda v: call(jnp, v))(jnp.stack([jnp.asarray(x)] * 2))
    np.testing.assert_allclose(np.asarray(mapped), np.stack([wanted] * 2), rtol=1e-5, atol=1e-5)


def test_arrays_on_a_device():
    x = jnp.arange(6.0)
    assert jnp.reshape(x, jnp.array([2, 3])).shape == (2, 3) == jnp.zeros(jnp.array([2, 3])).shape
    assert x.reshape(jnp.int32(2), 3).sum(axis=jnp.array(0)).shape == (3,)
    assert jnp.transpose(x.reshape(2, 3), jnp.array([1, 0])).shape == (3, 2)


def test_the_second_call_is_a_launch(monkeypatch):
    """A NumPy number is looked up as it was given, and not made plain again."""
    x = jnp.ones((3, 4))
    first = jnp.sum(x, axis=one)
    monkeypatch.setattr("atled.staging.jit_calls._slow", None)
    np.testing.assert_array_equal(np.asarray(jnp.sum(x, axis=one)), np.asarray(first))
