"""Optimizers put together wrongly are refused, with the way out; and what is accepted gives the right numbers."""

import logging

import numpy as np
import pytest
from optimizer_cases import CASES

import atled
import atled.numpy as jnp
from atled import nn, optim, random, train, tree

SGD = optim.SGD(0.1)
P = {"a": jnp.ones(2), "b": jnp.ones(2)}


def loss(p):
    return jnp.sum(p["a"] ** 2) + jnp.sum(p["b"] ** 2)


REFUSED = {
    r"accumulate: the inner optimizer must not need the loss.*got SAM(.|\n)*larger batches": (
        lambda: optim.accumulate(optim.SAM(SGD), 2)
    ),
    r"accumulate: the inner optimizer must not need the loss.*got LBFGS": lambda: optim.accumulate(optim.LBFGS(), 2),
    r"chain: SAM evaluates the loss itself.*position 1(.|\n)*SAM\(optim\.chain": (
        lambda: optim.chain(optim.clip_by_global_norm(1.0), optim.SAM(SGD))
    ),
    r"chain: ApplyIfFinite evaluates the loss": (
        lambda: optim.chain(optim.add_noise(), optim.apply_if_finite(optim.SAM(SGD)))
    ),
    r"chain: LBFGS evaluates the loss": lambda: optim.chain(optim.add_decayed_weights(0.1), optim.LBFGS()),
    r"chain: Average keeps its own copy of the weights.*got ReduceOnPlateau after it(.|\n)*average\(optim\.chain": (
        lambda: optim.chain(optim.average(SGD), optim.reduce_on_plateau())
    ),
    r"chain: Lookahead keeps its own copy": lambda: optim.chain(optim.Lookahead(SGD), optim.clip_by_global_norm(1.0)),
    r"chain: ScheduleFree keeps its own copy": lambda: optim.chain(optim.ScheduleFree(SGD), optim.reduce_on_plateau()),
    r"chain: Accumulate keeps its own": (
        lambda: optim.chain(optim.accumulate(optim.average(SGD), 2), optim.reduce_on_plateau())
    ),
    r"chain: Chain keeps its own copy": lambda: optim.chain(optim.chain(optim.average(SGD)), optim.reduce_on_plateau()),
    r"chain: Partition keeps its own copy": (
        lambda: optim.chain(optim.partition({"**": optim.average(SGD)}), optim.reduce_on_plateau())
    ),
    r"Lookahead: the inner optimizer must not keep its own .*got Average": lambda: optim.Lookahead(optim.average(SGD)),
    r"ScheduleFree: the inner optimizer must not keep its own copy": lambda: optim.ScheduleFree(optim.Lookahead(SGD)),
    r"partition: LossScale must wrap the whole partition; got LossScale": (
        lambda: optim.partition({"**": optim.LossScale(SGD)})
    ),
    r"partition: LossScale must wrap the whole partition; got Chain": (
        lambda: optim.partition({"**": optim.chain(optim.LossScale(SGD), optim.reduce_on_plateau())})
    ),
    r"SAM: LossScale must be outside": lambda: optim.SAM(optim.LossScale(SGD)),
    r"ApplyIfFinite: LossScale must be outside": lambda: optim.apply_if_finite(optim.average(optim.LossScale(SGD))),
    r"LossScale: LossScale must be outside": lambda: optim.LossScale(optim.LossScale(SGD)),
    r"chain: LossScale must be outermost": lambda: optim.chain(optim.clip_by_global_norm(1.0), optim.LossScale(SGD)),
    r"partition: an optimizer that evaluates the loss needs the whole model; got SAM": (
        lambda: optim.partition({"a": optim.SAM(SGD), "**": SGD})
    ),
    r"partition: an optimizer that evaluates the loss .* got LBFGS": lambda: optim.partition({"**": optim.LBFGS()}),
    r"partition: the parts must be optimizers, or None; got float": lambda: optim.partition({"**": 0.1}),
    r"accumulate: every must be an integer; got 2\.5": lambda: optim.accumulate(SGD, 2.5),
    r"accumulate: every must be an integer; got True": lambda: optim.accumulate(SGD, True),
    r"Lookahead: sync_period must be an integer; got 2\.0": lambda: optim.Lookahead(SGD, 2.0),
    r"LossScale: growth_interval must be an integer; got 1\.5": lambda: optim.LossScale(SGD, growth_interval=1.5),
    r"average: every must be an integer; got 1\.5": lambda: optim.average(SGD, every=1.5),
    r"average: begin must be an integer; got 0\.5": lambda: optim.average(SGD, begin=0.5),
    r"LBFGS: memory_size must be an integer; got 2\.5": lambda: optim.LBFGS(memory_size=2.5),
    r"LBFGS: max_linesearch_steps must be an integer; got None": lambda: optim.LBFGS(max_linesearch_steps=None),
    r"reduce_on_plateau: patience must be an integer; got 2\.5": lambda: optim.reduce_on_plateau(0.5, 2.5),
    r"average: decay must be 0 or more, and below 1; got 1\.0": lambda: optim.average(SGD, decay=1.0),
    r"average: decay must be 0 or more, and below 1; got -0\.5": lambda: optim.average(SGD, decay=-0.5),
    r"average: decay must be 0 or more, and below 1; got nan": lambda: optim.average(SGD, decay=float("nan")),
    r"LossScale: scale must be a number, .* got a schedule": lambda: optim.LossScale(SGD, optim.cosine(1.0, 10)),
    r"Lookahead: the state must be that of this wrapper; got that of Average": (
        lambda: optim.Lookahead(SGD).step(P, P, optim.average(SGD).init(P))
    ),
    r"set_hyperparams: learning_rate must be one number; got f32\[2\]": (
        lambda: optim.set_hyperparams(SGD.init(P), learning_rate=jnp.array([1.0, 2.0]))
    ),
    r"set_hyperparams: scale is ambiguous; got LossScale\.scale and ReduceOnPlateau\.scale": (
        lambda: optim.set_hyperparams(optim.LossScale(optim.chain(SGD, optim.reduce_on_plateau())).init(P), scale=0.5)
    ),
    r"set_hyperparams: max_norm is ambiguous; got those of state\[0\] and state\[2\]": (
        lambda: optim.set_hyperparams(
            optim.chain(optim.clip_by_global_norm(1.0), SGD, optim.clip_by_global_norm(0.1)).init(P), max_norm=0.5
        )
    ),
    r"set_hyperparams: learning_rate is ambiguous; got Adam\.learning_rate and SGD\.learning_rate": (
        lambda: optim.set_hyperparams(optim.partition({"a": SGD, "b": optim.Adam()}).init(P), learning_rate=0.5)
    ),
    r"set_hyperparams: the state has learning_rate; got Adam\.learning_rate": (
        lambda: optim.set_hyperparams(SGD.init(P), **{"Adam.learning_rate": 0.5})
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_would_give_wrong_numbers_is_refused(message):
    with pytest.raises((TypeError, ValueError), match=message):
        REFUSED[message]()


def test_numbers_are_changed_by_class_and_in_all_groups():
    state = optim.set_hyperparams(optim.average(optim.AdamW(), decay=0.9).init(P), **{"AdamW.weight_decay": 0.5})
    assert float(state.inner.hyperparams["weight_decay"]) == 0.5 and float(
        state.own.hyperparams["decay"]
    ) == np.float32(0.9)
    state = optim.set_hyperparams(optim.partition({"a": SGD, "b": optim.SGD(0.2)}).init(P), learning_rate=0.5)
    assert float(state["a"].hyperparams["learning_rate"]) == float(state["b"].hyperparams["learning_rate"]) == 0.5


def test_integers_of_numpy_are_integers():
    assert optim.accumulate(SGD, np.int64(2)) == optim.accumulate(SGD, 2)
    assert type(optim.Lookahead(SGD, np.int32(2)).sync_period) is int


def test_plateaus_of_accumulated_steps_see_the_mean_of_values():
    step = optim.accumulate(optim.chain(SGD, optim.reduce_on_plateau(0.5, patience=1, accumulation_size=2)), 2)
    p, state = P, step.init(P)
    for value in (1.0, 3.0, 5.0):
        p, state = step.step(p, P, state, value=value)
    assert float(state.inner[1].slots["mean"]) == 2.0 and float(state.own.slots["value"]) == 5.0


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_given_in_some_batches_only(compiled):
    """The mean is that of those given; what never had one stays, and so does what is remembered of it."""
    two, none = jnp.full(2, 2.0), None
    adam = optim.accumulate(optim.AdamW(0.1, weight_decay=0.5), 3)
    plain = optim.AdamW(0.1, weight_decay=0.5)
    step = atled.jit(adam.step) if compiled else adam.step
    for given, want in (
        (((two, two), (two, none), (3 * two, none)), (5 / 3 * two, two)),
        (((two, two), (two, none), (two, 3 * two)), (two, 2 * two)),
        (((two, none), (two, none), (two, none)), (two, none)),
    ):
        p, state = P, adam.init(P)
        for a, b in given:
            before, (p, state) = p, step(p, {"a": a, "b": b}, state)
        np.testing.assert_array_equal(before["a"], P["a"])
        after, later = plain.step(P, {"a": want[0], "b": want[1]}, plain.init(P))
        for x, y in zip(tree.leaves((p, state.inner)), tree.leaves((after, later)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)
        assert not any([np.any(x) for x in tree.leaves(state.own.slots)])


def test_parameters_without_any_gradient_stay_beside_those_with_some():
    adam = optim.accumulate(optim.AdamW(0.1, weight_decay=0.5), 2)
    p, state = {**P, "c": jnp.ones(2)}, adam.init({**P, "c": jnp.ones(2)})
    for b in (P["b"], None):
        p, state = adam.step(p, {"a": P["a"], "b": b, "c": None}, state)
    np.testing.assert_array_equal(p["c"], 1)
    assert (np.asarray(p["b"]) < 1).all()


def test_sam_leaves_what_has_no_gradient():
    sam = optim.SAM(SGD, 0.5)
    p, _ = sam.step(P, {"a": 2 * P["a"], "b": None}, sam.init(P), loss=loss)
    np.testing.assert_array_equal(p["b"], 1)
    assert (np.asarray(p["a"]) < 1).all()


def test_sam_around_accumulated_steps():
    """The way out of accumulate(SAM) gives the mean of the gradients uphill of each batch."""
    sam, p = optim.SAM(optim.accumulate(SGD, 2), 0.5), {"w": jnp.ones(1)}
    state, losses = sam.init(p), [lambda p, k=k: k * jnp.sum(p["w"] ** 2) for k in (1.0, 3.0)]
    for f in losses:
        p, state = sam.step(p, atled.grad(f)(p), state, loss=f)
    np.testing.assert_allclose(p["w"], 1 - 0.1 * (2 * 1.5 + 6 * 1.5) / 2, rtol=1e-6)


@pytest.mark.parametrize(
    "around",
    [
        lambda o: optim.accumulate(o, 2),
        optim.average,
        optim.Lookahead,
        lambda o: optim.chain(o, optim.clip_by_global_norm(9.0)),
    ],
)
def test_what_may_be_around_a_scaled_loss_gives_the_same_steps(around):
    found = []
    for inner in (SGD, optim.LossScale(SGD)):
        optimizer = around(inner)
        p, state = P, optimizer.init(P)
        for _ in range(6):
            grads = atled.grad(lambda p, o=optimizer, s=state: o.scale_loss(loss(p), s))(p)
            p, state = optimizer.step(p, grads, state)
        found.append(np.asarray(p["a"]))
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_sam_may_have_a_schedule():
    sam, p = optim.SAM(SGD, optim.piecewise(0.5, {1: 0.5})), {"w": jnp.ones(1)}
    state = sam.init(p)
    size = lambda p: jnp.sum(p["w"] ** 2)
    for rho in (0.5, 0.25):
        want = p["w"] - 0.2 * (p["w"] + rho)
        p, state = sam.step(p, atled.grad(size)(p), state, loss=size)
        np.testing.assert_allclose(p["w"], want, rtol=1e-6)


class Two(nn.Module):
    def __init__(self):
        self.first, self.second = [nn.Linear(2, 2, key=random.key(i)) for i in range(2)]

    def __call__(self, x):
        return self.second(self.first(x))


@pytest.mark.parametrize("inner", [SGD, optim.SAM(SGD), optim.chain(SGD, optim.reduce_on_plateau())])
def test_steps_under_a_condition_read_nothing_from_outside(inner, caplog):
    with caplog.at_level(logging.WARNING, "atled"):
        state = train.State(Two(), optim.apply_if_finite(inner))
        train.step(lambda m, x: (m(x) ** 2).mean())(state, jnp.ones((3, 2)))
    assert "from outside" not in caplog.text


@pytest.mark.parametrize("name", [*CASES, "ReduceOnPlateau as it is"])
def test_first_states_hold_no_array_twice(name):
    optimizer = CASES[name] if name in CASES else optim.chain(SGD, optim.reduce_on_plateau())
    leaves = tree.leaves(optimizer.init(Two()))
    assert len({id(x) for x in leaves}) == len(leaves)
    assert int(train.State(Two(), optimizer).step) == 0
    assert int(atled.jit(lambda m: train.State(m, optimizer))(Two()).step) == 0
