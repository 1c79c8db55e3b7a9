"""Methods of arrays and of `.at[...]`, on arrays and on traced ones."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp

X = np.array([[3.0, -1.0, 2.0], [0.0, 5.0, -4.0]], "f4")
N = np.array([[3, -1, 2], [0, 5, 4]], "i4")
METHODS = {
    "sort": lambda x: np.sort(x) if x is X else x.sort(),
    "sort axis": lambda x: np.sort(x, 0) if x is X else x.sort(axis=0),
    "argsort": lambda x: x.argsort(axis=1),
    "argpartition": lambda x: x.argpartition(1).shape,
    "searchsorted": lambda x: np.sort(X[0]).searchsorted(2.5) if x is X else jnp.sort(x[0]).searchsorted(2.5),
    "byteswap": lambda x: x.byteswap(),
    "trace": lambda x: x.trace(1),
    "diagonal": lambda x: x.diagonal(),
    "dot": lambda x: x.dot(X.T),
    "view": lambda x: x.view("int32"),
    "view narrow": lambda x: x.view("int16"),
    "compress": lambda x: x.compress(np.array([True, False]), axis=0),
    "choose": lambda x: x.astype("int32").clip(0, 1).choose([N, -N], mode="clip"),
    "round": lambda x: x.round(1),
    "reshape": lambda x: x.reshape(3, 2),
    "ravel": lambda x: x.ravel(),
    "ptp": lambda x: np.ptp(x) if x is X else x.ptp(),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    f = METHODS[name]
    want, x = f(X), jnp.asarray(X)
    for got in (f(x), f(x) if isinstance(want, tuple) else atled.jit(f)(x)):
        np.testing.assert_array_equal(got, want)
        assert isinstance(want, tuple) or np.asarray(got).dtype.itemsize in (want.dtype.itemsize, 4)


def test_methods_of_values():
    x = jnp.asarray(X)
    assert 5.0 in x and 6.0 not in x
    assert x.tobytes() == X.tobytes() and x.tobytes("F") == X.tobytes("F")
    assert [v.tolist() for v in x.nonzero()] == [v.tolist() for v in X.nonzero()]
    assert x.nonzero(size=2)[0].shape == (2,)
    assert jnp.asarray(N).astype("int8").byteswap().tolist() == N.tolist()


OPERATIONS = {
    "set": lambda old, new: new, "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "mul": np.multiply,
    "divide": np.divide, "power": np.power, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_updates(name):
    x, values = jnp.asarray(np.abs(X) + 1), np.array([2.0, 3.0], "f4")
    want = np.abs(X) + 1
    want[:, 1] = OPERATIONS[name](want[:, 1], values)
    for f in (lambda x, v: getattr(x.at[:, 1], name)(v), atled.jit(lambda x, v: getattr(x.at[:, 1], name)(v))):
        np.testing.assert_allclose(f(x, values), want, rtol=1e-6)
    update = lambda i, **options: np.asarray(getattr(x.at[0, i], name)(2.0, **options))
    clipped = np.abs(X) + 1
    clipped[0, 2] = OPERATIONS[name](clipped[0, 2], 2.0)
    i = np.array(7)
    np.testing.assert_allclose(update(i, mode="drop"), np.abs(X) + 1)
    np.testing.assert_allclose(update(i, mode="clip"), clipped, rtol=1e-6)
    np.testing.assert_allclose(update(-1), clipped, rtol=1e-6)
    np.testing.assert_allclose(update(-1, wrap_negative_indices=False), np.abs(X) + 1)
    np.testing.assert_allclose(
        update(2, indices_are_sorted=True, unique_indices=True, mode="promise_in_bounds"), clipped, rtol=1e-6
    )


def test_apply_and_get():
    x = jnp.asarray(X)
    np.testing.assert_array_equal(x.at[0].apply(lambda v: v * 10), np.stack([X[0] * 10, X[1]]))
    np.testing.assert_array_equal(x.at[-1].apply(lambda v: v * 10, wrap_negative_indices=False), X)
    i = jnp.array([-1, 0, 9])
    row = x[0]
    assert row.at[i].get(mode="fill", fill_value=7.0).tolist() == [2.0, 3.0, 7.0]
    assert row.at[i].get(mode="fill", fill_value=7.0, wrap_negative_indices=False).tolist() == [7.0, 3.0, 7.0]
    assert row.at[i].get(mode="clip", wrap_negative_indices=False).tolist() == [3.0, 3.0, 2.0]
    assert row.at[i].get(mode="wrap").tolist() == [2.0, 3.0, 3.0]
    np.testing.assert_array_equal(x.at[..., jnp.array([-1])].set(0.0, wrap_negative_indices=False), X)
    place = atled.sharding.NamedSharding(
        atled.make_mesh((1,), ("x",), devices=atled.devices()[:1]), atled.sharding.PartitionSpec("x")
    )
    assert x.at[0].add(1.0, out_sharding=place).sharding.is_equivalent_to(place, 2)
    with pytest.raises(ValueError, match="at: the mode is"):
        x.at[0].set(1.0, mode="wrap")
