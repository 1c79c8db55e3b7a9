"""Every optimizer obeys every law: see `optimizer_cases.py`."""

import copy
import pickle

import numpy as np
import pytest
from optimizer_cases import CASES

import atled
import atled.numpy as jnp
from atled import nn, optim, random, train, tree
from atled.engine import compilation, memory_mappings
from atled.tree import static, struct


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
        if atled.core.array.type_of(x).kind == "k":
            x, y = random.key_data(x), random.key_data(y)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


def run(optimizer, count=5, model=None, compiled=False, x=X, y=Y):
    model = Model(0) if model is None else model
    state = optimizer.init(model)

    def one(model, state):
        scaled = lambda m: optimizer.scale_loss(loss(m, x, y), state)
        value, after, grads = train.gradients(scaled)(model)
        return optimizer.step(after, grads, state, value=value, loss=lambda m: loss(m, x, y))

    one = atled.jit(one) if compiled else one
    for _ in range(count):
        model, state = one(model, state)
    return model, state


each = pytest.mark.parametrize("name", CASES)


@each
def test_it_makes_the_loss_smaller_and_jit_changes_nothing(name):
    optimizer = CASES[name]
    # where gradients have not full rank, rounding chooses SOAP's basis, and later steps follow that choice
    start = nn.cast(Model(0), param_dtype="float64") if name == "SOAP" else Model(0)
    x, y = [v.astype(start.first.weight.dtype) for v in (X, Y)]
    count = 1 if name == "SOAP" else 5
    a, b = [run(optimizer, count, start, c, x, y) for c in (False, True)]
    equal(a[0], b[0], 1e-5)
    if name != "SOAP":  # of gradients without full rank, some eigenvectors are as good as others
        equal(a[1], b[1], 1e-5)
    assert float(loss(b[0].eval(), x, y)) < float(loss(start.eval(), x, y))


@each
def test_what_is_not_trained_stays(name):
    start = nn.freeze(Model(0), "first")
    model, _ = run(CASES[name], model=start, compiled=True) if name != "Partition" else (start, None)
    equal(model.first, start.first)
    assert tree.structure(model) == tree.structure(start)


@each
def test_the_state_has_names_and_keeps_its_tree(name):
    before, after = run(CASES[name], 0, compiled=True)[1], run(CASES[name], 2, compiled=True)[1]
    assert tree.structure(before) == tree.structure(after)
    assert [x.dtype for x in tree.leaves(before)] == [x.dtype for x in tree.leaves(after)]
    leaves = [*tree.leaves(before), *tree.leaves(after)]
    assert not any([atled.core.array.type_of(x).weak for x in leaves])
    assert all(["<flat" not in atled.jax.tree_util.keystr(p) for p, _ in tree.leaves_with_path(before)])


@each
def test_it_is_compared_by_value_and_copied(name):
    optimizer = CASES[name]
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert other == optimizer and hash(other) == hash(optimizer)
    assert tree.leaves(optimizer) == []


@each
def test_steps_made_anew_are_compiled_once(name, monkeypatch):
    optimizer, made, compile_module = CASES[name], [], compilation.compile_module
    monkeypatch.setattr(compilation, "compile_module", lambda *a: (made.append(1), compile_module(*a))[1])
    monkeypatch.setattr(memory_mappings, "MAPPINGS", 1 << 40)  # programs are dropped with those of other tests
    counts = []
    for _ in range(3):
        state, step = train.State(Model(0), copy.deepcopy(optimizer), key=random.key(0)), train.step(loss)
        for _ in range(2):
            state, metrics = step(state, X, Y)
        counts.append(len(made))
    assert int(state.step) == 2 and np.isfinite(float(metrics["loss"]))
    assert counts[0] == counts[1] == counts[2]


@each
def test_gradients_that_are_none(name):
    """No step for what has no gradient, and the same steps for the others."""
    if name == "Partition":
        pytest.skip("its patterns are of another model")
    optimizer = CASES[name]
    p = {"a": {"weight": jnp.ones((3, 2))}, "b": {"weight": jnp.ones(2)}}
    size = lambda p: jnp.sum(p["a"]["weight"] ** 2) * 0.5
    state = optimizer.init(p)
    for _ in range(2):
        grads = {"a": atled.grad(lambda p, s=state: optimizer.scale_loss(size(p), s))(p)["a"], "b": {"weight": None}}
        p, state = optimizer.step(p, grads, state, value=size(p), loss=size)
    np.testing.assert_array_equal(p["b"]["weight"], 1)
    if name != "LBFGS":  # the loss differentiates by all
        assert (np.asarray(p["a"]["weight"]) != 1).all() and np.isfinite(np.asarray(p["a"]["weight"])).all()


@each
def test_trees_without_parameters(name):
    if name in ("Partition", "LBFGS", "SAM") or "**/weight" in repr(CASES[name]):
        pytest.skip("there must be something to match or to differentiate by")
    optimizer = CASES[name]
    for empty in ({}, {"count": jnp.arange(3)}):
        grads = tree.map(lambda x: None, empty)
        after, _ = optimizer.step(empty, grads, optimizer.init(empty), value=1.0, loss=lambda p: jnp.float32(1))
        equal(after, empty)


@each
def test_arrays_without_entries_and_with_one(name):
    if name == "Partition":
        pytest.skip("its patterns are of another model")
    optimizer = CASES[name]
    shapes = {"empty": (0,), "none": (0, 3), "one": (1, 1), "scalar": (), "row": (1, 4), "cube": (2, 1, 3)}
    p = {n: {"weight": jnp.ones(d)} for n, d in shapes.items()}
    size = lambda p: sum([jnp.sum(x**2) for x in tree.leaves(p)])
    state = optimizer.init(p)
    for _ in range(2):
        grads = atled.grad(lambda p, s=state: optimizer.scale_loss(size(p), s))(p)
        p, state = optimizer.step(p, grads, state, value=size(p), loss=size)
    assert {n: x["weight"].shape for n, x in p.items()} == shapes
    for n, x in p.items():
        x = np.asarray(x["weight"])
        assert np.isfinite(x).all() and (x != 1).all(), n


@each
def test_layers_of_a_stack_are_updated_as_layers_by_themselves(name):
    """An optimizer sees through a Stack: what looks at whole arrays looks at those of one layer."""
    if name in ("Partition", "AddNoise"):
        pytest.skip("its patterns are of another model" if name == "Partition" else "it draws other numbers")
    optimizer = CASES[name]
    stack = nn.Stack(lambda key: nn.Linear(3, 3, key=key), 3, key=random.key(0))
    layers = stack.unrolled()
    x, y = random.normal(random.key(1), (4, 3)), jnp.ones((4, 3))

    def one(model, x, y):
        return ((model(x) - y) ** 2).mean()

    def many(model, x, y):
        for layer in model:
            x = layer(x)
        return ((x - y) ** 2).mean()

    found = []
    for model, f in ((stack, one), (layers, many)):
        state = optimizer.init(model)

        def step(model, state, f=f):
            grads = atled.grad(lambda m: optimizer.scale_loss(f(m, x, y), state))(model)
            return optimizer.step(model, grads, state, value=f(model, x, y), loss=lambda m: f(m, x, y))

        step = atled.jit(step)
        for _ in range(3):
            model, state = step(model, state)
        found.append(model)
    for i, layer in enumerate(found[1]):
        np.testing.assert_allclose(found[0].layers.weight[i], layer.weight, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(found[0].layers.bias[i], layer.bias, rtol=2e-4, atol=2e-5)


@each
def test_parameters_of_two_widths(name):
    """Each parameter and its state keep their dtypes, and nothing meets by accident."""
    if name == "Partition":
        pytest.skip("its patterns are of another model")
    optimizer = CASES[name]
    p = {"a": {"weight": jnp.ones((3, 2), "float32")}, "b": {"weight": jnp.ones((3, 2), "float64")}}

    def size(p):
        return 0.5 * (jnp.sum(p["a"]["weight"] ** 2) + jnp.sum(p["b"]["weight"] ** 2).astype("float32"))

    state = optimizer.init(p)
    types = [x.dtype for x in tree.leaves(state)]
    for _ in range(2):
        grads = atled.grad(lambda p, s=state: optimizer.scale_loss(size(p), s).astype("float32"))(p)
        p, state = optimizer.step(p, grads, state, value=size(p), loss=size)
    assert [x.dtype for x in tree.leaves(state)] == types
    assert p["a"]["weight"].dtype == "float32" and p["b"]["weight"].dtype == "float64"
    if name != "AddNoise":
        np.testing.assert_allclose(p["a"]["weight"], p["b"]["weight"], rtol=1e-5, atol=1e-6)


@each
def test_numbers_of_every_optimizer_can_be_changed(name):
    """Every number of the state is read by the step: another one gives other parameters, without compiling again."""
    optimizer = CASES[name]
    model = Model(0)
    state = optimizer.init(model)
    states = tree.leaves(state, is_leaf=lambda s: isinstance(s, optim.State))
    hyper = {f"{s.of}.{n}": v for s in states if isinstance(s, optim.State) for n, v in s.hyperparams.items()}
    if not hyper:
        pytest.skip("all numbers are scheduled")
    step = atled.jit(lambda m, g, s, v: optimizer.step(m, g, s, value=v, loss=lambda m: loss(m, X, Y))[0])
    grads = tree.map(jnp.ones_like, nn.params(model))
    step(model, grads, state, loss(model, X, Y))
    assert all([np.isfinite(float(v)) for v in hyper.values()])
    for n in hyper:
        step(model, grads, optim.set_hyperparams(state, **{n: 0.5}), loss(model, X, Y))
    assert len(step.compiles) == 1


def test_numbers_can_be_read_and_changed_without_compiling():
    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.SGD(0.5))
    params = {"w": jnp.ones(2)}
    one = atled.jit(lambda p, g, s: optimizer.step(p, g, s))
    state = optimizer.init(params)
    first, state = one(params, {"w": jnp.full(2, 0.1)}, state)
    state = optim.set_hyperparams(state, learning_learning_rate=0.0)
    second, state = one(first, {"w": jnp.full(2, 0.1)}, state)
    np.testing.assert_array_equal(first["w"], second["w"])
    assert float(state[1].hyperparams["learning_rate"]) == 0.0
    assert len(one.compiles) == 1
    with pytest.raises(ValueError, match=r"optim\.change: the state has limit, rate; got speed"):
        optim.set_hyperparams(state, speed=1.0)
    with pytest.raises(ValueError, match="rate follows a schedule"):
        optim.set_hyperparams(optim.SGD(optim.cosine(1.0, 10)).init(params), learning_rate=0.0)
    with pytest.raises(ValueError, match="got momentum"):
        optim.set_hyperparams(optim.SGD(1.0).init(params), momentum=0.9)


def test_a_schedule_shows_the_rate_of_the_last_step():
    optimizer = optim.SGD(optim.linear(1.0, 10))
    params = {"w": jnp.zeros(1)}
    state = optimizer.init(params)
    for want in (1.0, 0.9, 0.8):
        params, state = optimizer.step(params, {"w": jnp.ones(1)}, state)
        assert abs(float(state.scheduled["learning_rate"]) - want) < 1e-6
    assert abs(float(params["w"][0]) + 2.7) < 1e-5


@each
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_parameters_are_updated_in_float32(name, dtype):
    optimizer, short = CASES[name], nn.cast(Model(0), param_dtype=dtype)
    wide = optimizer.eval_model(*run(optimizer, 40, compiled=True))
    narrow, state = run(optimizer, 40, short, compiled=True)
    narrow = optimizer.eval_model(narrow, state)
    assert not any([x.dtype.name == dtype for x in tree.leaves(state)])
    assert narrow.first.weight.dtype.name == dtype
    got, want = float(loss(narrow.eval(), X, Y)), float(loss(wide.eval(), X, Y))
    if name.startswith("LBFGS"):  # its curvature is that of rounded weights
        assert got < float(loss(Model(0).eval(), X, Y))
    else:
        np.testing.assert_allclose(got, want, rtol=0.1)


@each
def test_complex_parameters(name):
    if name == "Partition":
        pytest.skip("its patterns are of another model")
    optimizer, target = CASES[name], jnp.array([1 + 2j, -1j])
    p = {"weight": jnp.zeros(2, "complex64")}
    state = optimizer.init(p)
    size = lambda p: jnp.sum(jnp.abs(p["weight"] - target) ** 2)
    first = float(size(p))
    if name == "ClipByValue":
        with pytest.raises(TypeError, match=r"optim\.clip_values: real gradients are expected"):
            optimizer.step(p, p, state)
        return

    @atled.jit
    def step(p, state):
        grads = tree.map(jnp.conj, atled.grad(lambda p, s=state: optimizer.scale_loss(size(p), s))(p))
        return optimizer.step(p, grads, state, value=size(p), loss=size)

    for _ in range(20):
        p, state = step(p, state)
    assert float(size(p)) < first and p["weight"].dtype == "complex64"
    assert (np.asarray(p["weight"]).imag != 0).all()


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
        optim.AdamW(1e-3, weight_decay_mask="wieght").init(Model(0))
    with pytest.raises(TypeError, match=r"AdamW, decays: a pattern must be a string; got a function"):
        optim.AdamW(1e-3, weight_decay_mask=lambda path, x: x.ndim > 1).init(Model(0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="every parameter must be in a group; norm/scale"):
        optim.partition({"first": optim.SGD(0.1)}).init(Model(0))
    optim.partition({"first": None, "second": None, "scale": None, "norm/bias": None}).init(Model(0))  # not the Buffers


def test_nan_gradients_are_not_clipped_away():
    clip = optim.clip_by_global_norm(1.0)
    p = {"a": jnp.ones(2), "b": jnp.array([jnp.nan])}
    assert np.isnan(np.asarray(clip.update(p, clip.init(p), p)[0]["a"])).all()


def test_states_and_gradients_of_another_kind_are_refused():
    p = {"w": jnp.ones(3)}
    adam, sgd = optim.Adam(0.1), optim.SGD(0.1)
    with pytest.raises(
        TypeError, match="Adam: the state must be that of this optimizer, with rate, b1, b2, eps; got one with rate"
    ):
        adam.step(p, p, sgd.init(p))
    with pytest.raises(TypeError, match="Chain: the state must be that of this chain, with 2 parts"):
        optim.chain(optim.clip_by_global_norm(1.0), sgd).step(p, p, sgd.init(p))
    with pytest.raises(ValueError, match=r"SGD: the gradient of w must be f32\[3\]; got f32\[4,3\]"):
        sgd.step(p, {"w": jnp.ones((4, 3))}, sgd.init(p))
    with pytest.raises(ValueError, match=r"Adam: the slot first of w must be f32\[3\]; got f32\[4\]"):
        adam.step(p, p, adam.init({"w": jnp.ones(4)}))


def test_steps_say_what_they_take():
    step = train.step(loss)
    with pytest.raises(TypeError, match=r"train\.step: the first argument must be a train\.State; got Model"):
        step(Model(0), X, Y)
    with pytest.raises(TypeError, match=r"with has_aux, the loss must return \(value, dict of arrays\)"):
        train.step(lambda m, x, y: (loss(m, x, y), 1.0), has_aux=True)(train.State(Model(0), optim.SGD(0.1)), X, Y)
    state, _ = train.step(lambda m, x, y, key=None: loss(m, x, y))(train.State(Model(0), optim.SGD(0.1)), X, Y)
    assert int(state.step) == 1


def test_every_optimizer_has_a_row():
    names = {n for n in optim.__all__ if isinstance(getattr(optim, n), type)}
    names = {n for n in names if issubclass(getattr(optim, n), optim.Optimizer)} - {"Optimizer", "Rule"}
    assert names == {name.split(",")[0] for name in CASES}
