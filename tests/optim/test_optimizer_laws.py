"""Every optimizer obeys every law: see `optimizer_cases.py`."""

import copy
import pickle

import numpy as np
import pytest
from optimizer_cases import CASES

import atled
import atled.numpy as jnp
from atled import nn, optim, random, train, tree
from atled.core.struct import static, struct
from atled.higher_order import jit as jit_file


class Model(nn.Module):
    def __init__(self, key):
        keys = nn.Keys(key)
        self.first = nn.Linear(3, 4, key=keys())
        self.norm = nn.BatchNorm(3)
        self.second = nn.Linear(4, 2, key=keys())

    def __call__(self, x):
        return self.second(jnp.tanh(self.first(self.norm(x))))


X, Y = random.normal(random.key(1), (8, 3)), random.normal(random.key(2), (8, 2))


def loss(model, x, y):
    return ((model(x) - y) ** 2).mean()


def equal(a, b, tolerance=0.0):
    assert tree.structure(a) == tree.structure(b)
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


def run(optimizer, count=5, model=None, compiled=False):
    model = Model(0) if model is None else model
    state = optimizer.init(model)

    def one(model, state):
        _, model, grads = train.gradients(loss)(model, X, Y)
        return optimizer.step(model, grads, state)

    one = atled.jit(one) if compiled else one
    for _ in range(count):
        model, state = one(model, state)
    return model, state


each = pytest.mark.parametrize("name", CASES)


@each
def test_it_makes_the_loss_smaller_and_jit_changes_nothing(name):
    optimizer = CASES[name]
    a, b = run(optimizer), run(optimizer, compiled=True)
    equal(a, b, 1e-5)
    assert float(loss(b[0].eval(), X, Y)) < float(loss(run(optimizer, 0)[0].eval(), X, Y))


@each
def test_what_is_not_trained_stays(name):
    start = nn.freeze(Model(0), "first")
    model, _ = run(CASES[name], model=start, compiled=True) if name != "Groups" else (start, None)
    equal(model.first, start.first)
    assert tree.structure(model) == tree.structure(start)


@each
def test_the_state_has_names_and_keeps_its_tree(name):
    before, after = run(CASES[name], 0, compiled=True)[1], run(CASES[name], 2, compiled=True)[1]
    assert tree.structure(before) == tree.structure(after)
    assert [x.dtype for x in tree.leaves(before)] == [x.dtype for x in tree.leaves(after)]
    leaves = [*tree.leaves(before), *tree.leaves(after)]
    assert not any([atled.core.array.type_of(x).weak for x in leaves])
    assert all(["<flat" not in atled.tree_util.keystr(p) for p, _ in tree.leaves_with_path(before)])


@each
def test_it_is_compared_by_value_and_copied(name):
    optimizer = CASES[name]
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert other == optimizer and hash(other) == hash(optimizer)
    assert tree.leaves(optimizer) == []


@each
def test_steps_made_anew_are_traced_once(name, monkeypatch):
    optimizer, seen, record = CASES[name], [], jit_file._record

    def recording(shared, call, types):
        seen.append(shared.name)
        return record(shared, call, types)

    monkeypatch.setattr(jit_file, "_record", recording)
    for _ in range(3):
        state, step = train.State(Model(0), copy.deepcopy(optimizer), key=random.key(0)), train.step(loss)
        for _ in range(2):
            state, metrics = step(state, X, Y)
    assert int(state.step) == 2 and np.isfinite(float(metrics["loss"]))
    assert seen.count("loss") == 1


def test_numbers_can_be_read_and_changed_without_compiling():
    optimizer = optim.chain(optim.clip(1.0), optim.SGD(0.5))
    params = {"w": jnp.ones(2)}
    one = atled.jit(lambda p, g, s: optimizer.step(p, g, s))
    state = optimizer.init(params)
    first, state = one(params, {"w": jnp.full(2, 0.1)}, state)
    state = optim.change(state, rate=0.0)
    second, state = one(first, {"w": jnp.full(2, 0.1)}, state)
    np.testing.assert_array_equal(first["w"], second["w"])
    assert float(state[1].hyper["rate"]) == 0.0
    assert len(one.compiles) == 1
    with pytest.raises(ValueError, match=r"optim\.change: the state has limit, rate; got speed"):
        optim.change(state, speed=1.0)
    with pytest.raises(ValueError, match="rate follows a schedule"):
        optim.change(optim.SGD(optim.cosine(1.0, 10)).init(params), rate=0.0)
    with pytest.raises(ValueError, match="got momentum"):
        optim.change(optim.SGD(1.0).init(params), momentum=0.9)


def test_a_schedule_shows_the_rate_of_the_last_step():
    optimizer = optim.SGD(optim.linear(1.0, 10))
    params = {"w": jnp.zeros(1)}
    state = optimizer.init(params)
    for want in (1.0, 0.9, 0.8):
        params, state = optimizer.step(params, {"w": jnp.ones(1)}, state)
        assert abs(float(state.scheduled["rate"]) - want) < 1e-6
    assert abs(float(params["w"][0]) + 2.7) < 1e-5


@each
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_parameters_are_updated_in_float32(name, dtype):
    wide, narrow = run(CASES[name], 40)[0], run(CASES[name], 40, nn.cast(Model(0), params=dtype))[0]
    state = run(CASES[name], 1, nn.cast(Model(0), params=dtype))[1]
    assert not any([x.dtype.name == dtype for x in tree.leaves(state)])
    assert narrow.first.weight.dtype.name == dtype
    np.testing.assert_allclose(float(loss(narrow.eval(), X, Y)), float(loss(wide.eval(), X, Y)), rtol=0.1)


@each
def test_complex_parameters(name):
    if name == "Groups":
        pytest.skip("its patterns are of another model")
    optimizer, target = CASES[name], jnp.array([1 + 2j, -1j])
    p = {"weight": jnp.zeros(2, "complex64")}
    state = optimizer.init(p)
    size = lambda p: jnp.sum(jnp.abs(p["weight"] - target) ** 2)
    first = float(size(p))
    for _ in range(20):
        grads = tree.map(jnp.conj, atled.grad(size)(p))
        p, state = optimizer.step(p, grads, state)
    assert float(size(p)) < first


def test_a_rule_is_what_it_is_now():
    factor = [1.0]

    @struct
    class Own(optim.Rule):
        rate: object = static(default=1.0)
        kind: object = static(default=1)

        def rule(self, g, p, s, h):
            return jnp.full_like(g, factor[0] * {int: 1.0, float: 2.0, bool: 3.0}[type(self.kind)]), {}

    p = {"w": jnp.zeros(1)}
    found = []
    for kind in (1, 1.0, True):
        own = Own(1.0, kind)
        found += [own.step(p, p, own.init(p))[0], atled.jit(lambda p, o=own: o.step(p, p, o.init(p))[0])(p)]
    assert [float(x["w"][0]) for x in found] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    own, factor[0] = Own(1.0, 1), 5.0
    assert float(own.step(p, p, own.init(p))[0]["w"][0]) == 5.0


def test_a_rate_may_be_an_array_or_traced():
    p = {"w": jnp.ones(2)}

    def after(rate):
        sgd = optim.SGD(rate)
        return sgd.step(p, p, sgd.init(p))[0]["w"].sum()

    assert float(after(jnp.float32(0.25))) == 1.5
    assert float(atled.grad(after)(0.25)) == -2.0


def test_only_parameters_are_updated():
    norm = nn.BatchNorm(2)
    sgd = optim.SGD(0.1)
    after, _ = sgd.step(norm, tree.map(jnp.ones_like, norm), sgd.init(norm))
    np.testing.assert_array_equal(after.mean, norm.mean)
    assert float(after.scale[0]) == np.float32(0.9)


def test_patterns_that_match_nothing_and_parameters_without_a_group():
    with pytest.raises(ValueError, match=r"AdamW, decays: a pattern must match something; 'wieght'"):
        optim.AdamW(1e-3, decays="wieght").init(Model(0))
    with pytest.raises(ValueError, match="every parameter must be in a group; norm/scale"):
        optim.groups({"first": optim.SGD(0.1)}).init(Model(0))
    optim.groups({"first": None, "second": None, "scale": None, "norm/bias": None}).init(Model(0))  # not the Buffers


def test_nan_gradients_are_not_clipped_away():
    clip = optim.clip(1.0)
    p = {"a": jnp.ones(2), "b": jnp.array([jnp.nan])}
    assert np.isnan(np.asarray(clip.update(p, clip.init(p), p)[0]["a"])).all()


def test_states_and_gradients_of_another_kind_are_refused():
    p = {"w": jnp.ones(3)}
    adam, sgd = optim.Adam(0.1), optim.SGD(0.1)
    with pytest.raises(TypeError, match="Adam: the state must be its own, with rate, b1, b2, eps; got one with rate"):
        adam.step(p, p, sgd.init(p))
    with pytest.raises(TypeError, match="Chain: the state must be its own, of 2 parts"):
        optim.chain(optim.clip(1.0), sgd).step(p, p, sgd.init(p))
    with pytest.raises(ValueError, match=r"SGD: the gradient of w must be f32\[3\]; got f32\[4,3\]"):
        sgd.step(p, {"w": jnp.ones((4, 3))}, sgd.init(p))
    with pytest.raises(ValueError, match=r"Adam: the slot first of w must be f32\[3\]; got f32\[4\]"):
        adam.step(p, p, adam.init({"w": jnp.ones(4)}))


def test_steps_say_what_they_take():
    step = train.step(loss)
    with pytest.raises(TypeError, match=r"train\.step: the first argument must be a train\.State; got Model"):
        step(Model(0), X, Y)
    with pytest.raises(TypeError, match=r"with has_aux, the loss must give \(value, dict\)"):
        train.step(lambda m, x, y: (loss(m, x, y), 1.0), has_aux=True)(train.State(Model(0), optim.SGD(0.1)), X, Y)
    state, _ = train.step(lambda m, x, y, key=None: loss(m, x, y))(train.State(Model(0), optim.SGD(0.1)), X, Y)
    assert int(state.step) == 1


def test_every_optimizer_has_a_row():
    names = {n for n in optim.__all__ if isinstance(getattr(optim, n), type)}
    names = {n for n in names if issubclass(getattr(optim, n), optim.Optimizer)} - {"Optimizer", "Rule"}
    assert names == {name.split(",")[0] for name in CASES}
