"""Ids and labels out of range: named in the first call of compiled code, NaN in later ones."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, optim, random, train
from atled.nn.index_checks import expected

TABLE = nn.Embedding(10, 4, key=random.key(0))
IDS = jnp.array([[1, 2, 3], [4, 5, 6]])


def raises(value):
    return pytest.raises(ValueError, match=rf"Embedding: ids must be 0 to 9; got {value}\.")


@pytest.mark.parametrize("ids, value", [([1, 10], 10), ([-1, 3], -1), ([[0], [99]], 99), (12, 12)])
def test_at_once_outside_of_transforms(ids, value):
    with raises(value):
        TABLE(jnp.array(ids))
    with raises(value):
        TABLE(np.array(ids, "int64"))


def test_in_the_first_call_and_nan_later():
    run = atled.jit(TABLE)
    with raises(10):
        run(IDS.at[1, 1].set(10))
    with raises(-1):
        run(IDS.at[0, 0].set(-1))  # nothing was remembered
    assert np.isfinite(run(IDS)).all()
    for _ in range(2):
        assert np.isnan(run(IDS.at[1, 1].set(10))[1, 1]).all()
        assert np.isnan(run(IDS.at[1, 1].set(-1))[1, 1]).all()
        assert np.isfinite(run(IDS.at[1, 1].set(10))[0]).all()
    with raises(10):
        run(IDS[:1].at[0, 1].set(10))  # compiled for another shape


def test_what_is_computed_from_arguments():
    def inner(table, ids):
        return table(ids[:, :-1] * 2)

    run = atled.jit(lambda table, ids: atled.jit(inner)(table, ids + 0).sum())
    with raises(10):
        run(TABLE, IDS)  # 5 * 2; 6 * 2 is not looked up
    run(TABLE, IDS - 1)


def test_steps_of_training():
    def loss(model, ids):
        return (model(ids) ** 2).sum()

    state, step = train.State(nn.Embedding(10, 4, key=random.key(0)), optim.SGD(0.1)), train.step(loss)
    with raises(11):
        step(state, IDS + 5)
    state, metrics = step(state, IDS)  # the state was not taken by the call that failed
    assert np.isfinite(float(metrics["loss"]))


def test_under_vmap_and_without_elements():
    run = atled.jit(lambda ids: atled.vmap(lambda i: expected(i, 0, 10, "Embedding: ids"))(ids))
    assert run(jnp.zeros((0, 2), int)).shape == (0, 2)
    with raises(12):
        run(IDS * 2)


def test_what_a_model_computes_is_not_computed_twice():
    calls = []

    def f(x, ids):
        atled.debug.callback(lambda: calls.append(1))
        return TABLE(ids).sum() + TABLE(jnp.argmax(x, -1) + 20).sum()

    assert np.isnan(float(atled.jit(f)(jnp.ones((2, 3)), IDS)))  # numbers from numbers that are no integers
    atled.effects_barrier()
    assert len(calls) == 1


def test_gradients_stay():
    grads = atled.grad(lambda t: (t(IDS) ** 2).sum())(TABLE)
    want = np.zeros((10, 4), "f4")
    want[1:7] = 2 * np.asarray(TABLE.weight)[1:7]
    np.testing.assert_allclose(grads.weight, want, rtol=1e-6)


def test_integers_alone():
    with pytest.raises(TypeError, match=r"labels must be integers; got f32\[\]"):
        expected(jnp.float32(1.5), 0, 2, "labels")
