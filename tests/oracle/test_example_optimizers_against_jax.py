"""`example_libraries.optimizers`: states step by step, schedules and trees, as in JAX."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.jax.example_libraries import optimizers

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.example_libraries.optimizers")

R = np.random.RandomState(0)
PARAMS = {"a": R.randn(3, 2).astype("f4"), "b": [R.randn(4).astype("f4"), R.randn(2, 3, 2).astype("f4")]}
MAKERS = {
    "sgd": lambda o: o.sgd(0.1),
    "sgd schedule": lambda o: o.sgd(o.exponential_decay(0.1, 3, 0.5)),
    "momentum": lambda o: o.momentum(0.1, mass=0.9),
    "nesterov": lambda o: o.nesterov(o.polynomial_decay(0.1, 4, 0.01), 0.9),
    "adagrad": lambda o: o.adagrad(0.1),
    "adagrad none": lambda o: o.adagrad(0.1, momentum=0.0),
    "rmsprop": lambda o: o.rmsprop(0.1, 0.8, 1e-3),
    "rmsprop_momentum": lambda o: o.rmsprop_momentum(o.constant(0.1), gamma=0.8, momentum=0.5),
    "adam": lambda o: o.adam(0.1),
    "adam settings": lambda o: o.adam(o.inverse_time_decay(0.1, 2, 0.5), b1=0.5, b2=0.9, eps=1e-3),
    "adamax": lambda o: o.adamax(0.1, b1=0.8),
    "sm3": lambda o: o.sm3(o.piecewise_constant([2, 4], [0.1, 0.05, 0.01])),
}
SCHEDULES = {
    "constant": lambda o: o.constant(0.1),
    "exponential_decay": lambda o: o.exponential_decay(0.1, 10, 0.5),
    "inverse_time_decay": lambda o: o.inverse_time_decay(0.1, 10, 0.5),
    "staircase": lambda o: o.inverse_time_decay(0.1, 3, 0.5, staircase=True),
    "polynomial_decay": lambda o: o.polynomial_decay(0.1, 10, 0.01),
    "polynomial_decay power": lambda o: o.polynomial_decay(0.1, 10, 0.01, power=2.0),
    "piecewise_constant": lambda o: o.piecewise_constant([3, 6], [1.0, 0.5, 0.1]),
    "make_schedule": lambda o: o.make_schedule(0.25),
    "make_schedule function": lambda o: o.make_schedule(lambda i: 0.1 / (1 + i)),
}


def gradients(step):
    r = np.random.RandomState(step)
    leaf = lambda x: (r.randn(*x.shape) * (r.rand(*x.shape) > 0.3)).astype("f4")  # some are 0
    return {"a": leaf(PARAMS["a"]), "b": [leaf(x) for x in PARAMS["b"]]}


def leaves_close(ours, wanted, tolerance=1e-5):
    ours, wanted = atled.tree.leaves(ours), jax.tree.leaves(wanted)
    for a, b in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), tolerance, tolerance)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_steps(name, is_compiled):
    (init, update, params), (their_init, their_update, their_params) = (MAKERS[name](o) for o in (optimizers, theirs))
    if is_compiled:
        update, their_update = atled.jit(update), jax.jit(their_update)
    state, wanted = (f(PARAMS) for f in (init, their_init))
    for step in range(6):
        assert len(atled.tree.leaves(state)) == len(jax.tree.leaves(wanted))
        leaves_close(state.packed_state, wanted.packed_state)
        leaves_close(params(state), their_params(wanted))
        state, wanted = update(step, gradients(step), state), their_update(step, gradients(step), wanted)
    leaves_close(state, wanted)
    assert atled.tree.structure(params(state)) == atled.tree.structure(PARAMS)
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert atled.tree.structure(again) == atled.tree.structure(state)
    leaves_close(again, wanted)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    ours, wanted = (SCHEDULES[name](o) for o in (optimizers, theirs))
    for step in (0, 1, 3, 5, 6, 7, 10, 15):
        np.testing.assert_allclose(ours(step), wanted(step), 1e-6)
        np.testing.assert_allclose(atled.jit(ours)(step), jax.jit(wanted)(step), 1e-6)


def test_norms():
    tree = {"a": np.array([3.0, 4.0], "f4"), "b": [np.array(12.0, "f4")]}
    assert float(optimizers.l2_norm(tree)) == 13
    for largest in (1.0, 12.9, 13.0, 100.0):
        leaves_close(optimizers.clip_grads(tree, largest), theirs.clip_grads(tree, largest))
    leaves_close(optimizers.clip_grads({"a": np.zeros(2, "f4")}, 1.0), {"a": np.zeros(2)})
    leaves_close(atled.grad(optimizers.l2_norm)(tree), jax.grad(theirs.l2_norm)(tree))
    assert float(optimizers.l2_norm({})) == 0


def test_a_new_optimizer():
    def maker(o, lib):
        @o.optimizer
        def centred(step_size, slow=0.5):
            def update(i, g, state):
                x, mean = state["x"], slow * state["mean"] + g
                return {"x": x - step_size / (i + 1) * mean, "mean": mean}

            return lambda x: {"x": x, "mean": lib.zeros_like(x)}, update, lambda state: state["x"]

        return centred

    ours, wanted = maker(optimizers, jnp)(0.1, slow=0.2), maker(theirs, jax.numpy)(0.1, slow=0.2)
    assert type(ours).__name__ == "Optimizer" and ours._fields == wanted._fields
    state, their_state = ours.init_fn(PARAMS), wanted.init_fn(PARAMS)
    for step in range(3):
        state, their_state = (o.update_fn(step, gradients(step), s) for o, s in ((ours, state), (wanted, their_state)))
    leaves_close(ours.params_fn(state), wanted.params_fn(their_state))
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked["a"], optimizers.JoinPoint) and set(marked["a"].subtree) == {"x", "mean"}
    assert state._fields == their_state._fields


def test_training_learns_in_a_loop():
    init, update, params = optimizers.adam(0.1)
    loss = lambda p: jnp.sum((p["w"] - 3) ** 2)
    step = lambda i, s: update(i, atled.grad(loss)(params(s)), s)
    state = atled.lax.fori_loop(0, 200, step, init({"w": jnp.zeros(2)}))
    assert float(loss(params(state))) < 1e-3


def test_half_precision_moves():
    init, update, params = optimizers.adam(0.1)
    state = update(0, {"w": jnp.ones(2, jnp.bfloat16)}, init({"w": jnp.ones(2, jnp.bfloat16)}))
    assert params(state)["w"].dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(params(state)["w"]).astype("f4"), 0.9, 1e-2)


def test_names():
    for name in optimizers.__all__:
        ours, wanted = getattr(optimizers, name), getattr(theirs, name)
        if inspect.isfunction(wanted):
            a, b = (inspect.signature(f).parameters for f in (ours, wanted))
            assert [(p.name, p.default) for p in a.values()] == [(p.name, p.default) for p in b.values()], name
    own = {n for n in vars(theirs) if getattr(getattr(theirs, n), "__module__", "") == theirs.__name__}
    assert own - {*optimizers.__all__} == set()


SGD = optimizers.sgd(0.1)
MISTAKES = {
    "structure of the parameters": (TypeError, lambda: SGD[1](0, {"b": 1.0}, SGD[0]({"a": 1.0}))),
    "with the structure of its input": (
        TypeError,
        lambda: optimizers.optimizer(lambda: (lambda x: (x, x), lambda i, g, s: s[0], lambda s: s[0]))().update_fn(
            0, 1.0, optimizers.momentum(0.1, 0.9)[0](1.0)
        ),
    ),
    "boundaries and values must be sequences": (ValueError, lambda: optimizers.piecewise_constant([[1]], [1.0, 2.0])),
    "one more value": (ValueError, lambda: optimizers.piecewise_constant([1, 2], [1.0, 2.0])),
    "a number or a function": (TypeError, lambda: optimizers.make_schedule(jnp.ones(2))),
    "all leaves must be JoinPoints": (TypeError, lambda: optimizers.pack_optimizer_state({"a": 1.0})),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_mistakes(says):
    error, call = MISTAKES[says]
    with pytest.raises(error, match=says):
        call()
