"""Modules under attack: what is hidden, shared, changed, raced for, or named like something of ours."""

import copy
import dataclasses
import functools
import pickle
import sys
import threading
import types
import typing

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree

X = jnp.arange(1.0, 3.0)


def linear(seed=0):
    return nn.Linear(2, 2, key=random.key(seed))


class Holder(nn.Module):
    def __init__(self, make):
        self.w = nn.Param(jnp.array(2.0))
        self.part = make(self)

    def own(self, x):
        return self.w * x


class Record(typing.NamedTuple):
    layer: object


LAYER = linear(3)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.own,
        lambda m: LAYER.__call__,
        lambda m: functools.partial(LAYER),
        lambda m: (lambda layer: lambda x: layer(x))(LAYER),
        lambda m: {LAYER},
        lambda m: types.SimpleNamespace(layer=LAYER),
        lambda m: Record(nn.Dropout(0.5)),
        lambda m: [1, m.own],
    ],
    ids=["method", "call", "partial", "closure", "set", "object", "named tuple", "in a list"],
)
def test_modules_out_of_sight_are_refused(make):
    with pytest.raises(TypeError, match=r"Holder\.part.* holds a \w+ which is not a part of the pytree"):
        Holder(make)


@pytest.mark.parametrize("make", [lambda m: functools.partial(jnp.add, X), lambda m: types.SimpleNamespace(x=X)])
def test_arrays_out_of_sight_are_refused(make):
    with pytest.raises(TypeError, match=r"Holder\.part: arrays must be declared"):
        Holder(make)


def test_a_dict_of_layers_has_one_order():
    class Net(nn.Module):
        def __init__(self):
            self.parts = {"z": linear(0), "a": linear(1)}

        def __call__(self, x):
            for layer in self.parts.values():
                x = jnp.tanh(layer(x))
            return x

    net = Net()
    for other in (atled.jit(net), net.eval(), copy.deepcopy(net)):
        np.testing.assert_allclose(net(X), other(X), rtol=1e-6)


def test_statics_that_their_class_takes_for_equal():
    @dataclasses.dataclass(frozen=True)
    class Setting:
        name: str
        scale: float = dataclasses.field(compare=False, default=1.0)

    class Net(nn.Module):
        def __init__(self, setting):
            self.setting = setting

        def __call__(self, x):
            return self.setting.scale * x

    one, ten = Net(Setting("a", 1.0)), Net(Setting("a", 10.0))
    assert (float(one(1.0)), float(ten(1.0))) == (1.0, 10.0)
    f = atled.jit(lambda m, x: m(x))
    assert (float(f(one, 1.0)), float(f(ten, 1.0))) == (1.0, 10.0)
    one.setting = Setting("a", 3.0)
    assert (float(one(1.0)), float(f(one, 1.0))) == (3.0, 3.0)


def test_properties_and_class_attributes():
    class Net(nn.Module):
        rate = 1.0

        def __init__(self):
            self.scale = 2.0

        @property
        def double(self):
            return self.scale * 2

        @double.setter
        def double(self, value):
            self.scale = value / 2

    net = Net()
    net.double = 10.0
    assert (net.scale, net.double) == (5.0, 10.0)
    Net.scale = 7.0
    assert net.scale == 5.0 and Net().scale == 2.0
    del Net.scale
    net.rate = 3.0
    assert tree.map(lambda x: x, net).rate == 3.0
    with pytest.raises(TypeError, match="got __slots__"):
        type("Slotted", (nn.Module,), {"__slots__": ("w",)})


def test_cached_properties_belong_to_no_tree():
    class Net(nn.Module):
        def __init__(self):
            self.w = nn.Param(X)

        @functools.cached_property
        def square(self):
            return self.w**2

    net = Net()
    assert net.square.shape == (2,)
    net.note = "a static, so that it is looked at again"
    assert len(tree.leaves(net)) == 1
    other = tree.map(lambda x: 2 * x, net)
    np.testing.assert_array_equal(other.square, 4 * net.square)


@pytest.mark.parametrize("what", [..., None, 10**20, (1, 2), "text", b"bytes", 1.5])
def test_any_static_value_stands_in_lists_and_over_class_attributes(what):
    class Net(nn.Module):
        axis = 0

        def __init__(self):
            self.w = nn.Param(X)
            self.axis = what
            self.parts = [linear(), what]

    f = atled.jit(lambda m: m)
    for net in (Net(), copy.deepcopy(Net())):
        for _ in range(4):
            out = f(net)
        assert out.axis == what and out.parts[1] == what
    assert len(f.compiles) == 1


def test_lists_that_change_after_all():
    class Net(nn.Module):
        def __init__(self):
            self.parts = [linear(0)]
            self.later = []

        def __call__(self, x):
            for f in (*self.parts, *self.later):
                x = f(x)
            return x

    net, f = Net(), atled.jit(lambda m, x: m(x))
    for change in (
        lambda: net.parts.append(jnp.tanh),
        lambda: net.later.append(linear(1)),
        lambda: net.parts.pop(),
        lambda: net.parts.insert(0, linear(2)),
        lambda: net.later.clear(),
    ):
        f(net, X)
        change()
        for _ in range(3):
            np.testing.assert_allclose(f(net, X), net(X), rtol=1e-6)
        assert tree.structure(copy.deepcopy(net)) == tree.structure(net)
    net.later.append(X)
    with pytest.raises(TypeError, match=r"Net\.later\[0\]: arrays must be declared"):
        f(net, X)


def test_a_module_in_place_of_a_declared_array_has_its_own_kinds():
    class Net(nn.Module):
        def __init__(self):
            self.norm = nn.Param(X)

    net = Net()
    net.norm = nn.BatchNorm(2)
    assert tree.structure(net).kinds == tree.structure(nn.BatchNorm(2)).kinds


def test_numbers_take_the_dtype_of_what_they_replace():
    class Net(nn.Module):
        def __init__(self):
            self.a, self.b = nn.Buffer(jnp.int8(1)), nn.Param(jnp.ones((), "bfloat16"))

    net = Net()
    net.a, net.b = 3, 2.0
    assert [x.dtype.name for x in tree.leaves(net)] == ["int8", "bfloat16"]
    assert [float(x) for x in tree.leaves(net)] == [3.0, 2.0]


def test_freezing_a_part_of_what_is_declared_together_is_refused():
    class Net(nn.Module):
        def __init__(self):
            self.ws = [nn.Param(X), nn.Param(2 * X)]
            self.norm = nn.BatchNorm(2, use_scale=False, use_bias=False)

    assert tree.structure(nn.freeze(Net(), "ws")).kinds[:2] == (nn.Frozen, nn.Frozen)
    for pattern in ("ws/0", "norm"):
        with pytest.raises(ValueError, match=r"nn\.freeze: a pattern must match attributes declared as Param"):
            nn.freeze(Net(), pattern)


def test_threads_that_meet_a_module_that_is_not_settled():
    text = pickle.dumps(nn.MultiHeadAttention(4, 2, key=random.key(0)))
    x = jnp.ones((1, 3, 4))
    want = np.asarray(pickle.loads(text)(x))
    before, wrong = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(15):
            model = pickle.loads(text)

            def run(model=model):
                try:
                    tree.structure(model)
                    np.testing.assert_allclose(model(x), want, rtol=1e-6)
                except Exception as error:
                    wrong.append(error)

            threads = [threading.Thread(target=run) for _ in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_structures_can_be_pickled():
    structure = tree.structure(linear())
    assert pickle.loads(pickle.dumps(structure)) == structure


def test_trees_of_train_and_eval_say_what_differs():
    model = nn.Dropout(0.5)
    with pytest.raises(ValueError, match=r"\.training: expected True, got False"):
        tree.map(lambda a, b: a, model, model.eval())


def test_a_local_copy_is_no_lost_assignment(recwarn):
    def f(m, x):
        other = nn.cast(m, param_dtype="bfloat16")
        other.weight = other.weight * 2
        return other(x)

    atled.jit(f)(linear(), X)
    assert not recwarn.list


def test_capture_keeps_attributes_and_refuses_what_does_not_leave():
    class Net(nn.Module):
        def __init__(self):
            self.tap, self.place = 3.0, 2.0
            self.inner = linear()

        def __call__(self, x):
            return atled.vmap(self.inner)(x[None])[0] * self.tap * self.place

    net = Net()
    with pytest.raises(atled.errors.UnexpectedTracerError, match=r"nn\.capture: inner was called inside of vmap"):
        nn.capture(net, "inner")(X)
    assert nn.summary(net, X).rows[0].output == "f32[2]"


def test_decoding_beyond_the_end():
    attention = nn.MultiHeadAttention(4, 2, key=random.key(0))
    x = jnp.ones((1, 1, 4))
    state = nn.init_cache(attention, 1, 2)
    step = atled.jit(lambda m, x: (m(x), m))
    for _ in range(2):
        out, state = step(state, x)
        assert np.isfinite(np.asarray(out)).all()
    assert np.isnan(np.asarray(step(state, x)[0])).all()
    with pytest.raises(ValueError, match="its cache has room for 2 steps; got 3"):
        state(x)
    with pytest.raises(ValueError, match=r"decoding takes \(batch, time, features\)"):
        nn.init_cache(attention, 1, 2)(x[0])


def test_a_layer_that_changes_its_tree_in_a_stack():
    class Lazy(nn.Module):
        def __init__(self, key):
            self.seen = nn.Buffer(None)

        def __call__(self, x):
            self.seen = x
            return x

    with pytest.raises(
        TypeError, match=r"Stack: a layer must keep its tree structure in a call; layers\.seen was None"
    ):
        nn.Stack(Lazy, 2, key=random.key(0))(X)


def test_cells_in_half_precision():
    rnn = nn.RNN(nn.LSTMCell(2, 3, key=random.key(0)))
    assert nn.cast(rnn, param_dtype="bfloat16")(jnp.ones((1, 4, 2))).dtype == jnp.float32
    assert nn.cast(rnn, compute_dtype="bfloat16")(jnp.ones((1, 4, 2))).dtype == jnp.bfloat16


def test_nested_stacks_out_and_in():
    make = lambda key: nn.Stack(lambda k: nn.Linear(2, 2, key=k), 3, key=key)
    one, other = [nn.Stack(make, 2, key=random.key(s)) for s in (0, 1)]
    found = nn.state_dict(one)
    np.testing.assert_array_equal(found["1.2.weight"], np.asarray(one.layers.layers.weight)[1, 2].T)
    for a, b in zip(tree.leaves(nn.load_state_dict(other, found)), tree.leaves(one), strict=True):
        np.testing.assert_array_equal(a, b)


def test_two_rules_to_one_name_are_refused():
    class Two(nn.Module):
        def __init__(self):
            self.a, self.b = linear(0), linear(1)

    with pytest.raises(
        ValueError, match=r"nn\.state_dict: rename must give each array its own name; two arrays get x\.weight"
    ):
        nn.state_dict(Two(), {"a": "x", "b": "x"})


def test_a_donated_model_is_named_outside_of_jit_as_well():
    model = linear()
    atled.jit(lambda m: m, donate_argnums=0)(model)
    for use in (lambda: atled.grad(lambda m: m(X).sum())(model), lambda: atled.vmap(model)(X[None])):
        with pytest.raises(RuntimeError, match="was deleted or donated"):
            use()


def test_children_have_one_order_whatever_they_were_before():
    class Net(nn.Module):
        def __init__(self):
            self.count = nn.Buffer(0)
            self.last = None
            self.name = "net"
            self.late = nn.Param(X)

    def filled(net):
        net.last = nn.Buffer(jnp.ones(1))
        return net

    eager, traced = filled(Net()), atled.jit(filled)(Net())
    assert tree.structure(eager) == tree.structure(traced)
    assert [n for n in vars(traced) if not n.startswith("_")] == ["count", "last", "name", "late"]


def test_a_module_with_a_method_like_one_of_stacks():
    class Net(nn.Module):
        def __init__(self):
            self.lin = linear()

        def mapped(self, *_):
            raise AssertionError("not for you")

    assert nn.replace(Net(), "lin", lambda old: nn.Dropout(0.5)).lin.rate == 0.5


def test_errors_in_a_traced_model_show_nothing_of_the_library():
    with pytest.raises(ValueError) as caught:
        atled.jit(lambda m, x: m(x))(linear(), jnp.ones(3))
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_keys_and_childless_nodes():
    class Net(nn.Module):
        def __init__(self):
            self.lin, self.drop = linear(), nn.Dropout(0.1)
            self.list = [jnp.tanh]

    made = nn.replace(Net(), "lin", lambda old, key: nn.Linear(2, 3, key=key), key=random.key(1))
    assert made.lin.out_features == 3
    assert tree.structure(nn.freeze(nn.freeze(Net()))) == tree.structure(nn.freeze(Net()))
    with pytest.raises(TypeError, match=r"Holder\.part: Keys belongs to one function call"):
        Holder(lambda m: nn.Keys(0))


def test_scalars_and_rules_that_match_nothing():
    class Net(nn.Module):
        def __init__(self):
            self.temperature = nn.Param(2.0)
            self.lin = linear()

    found = nn.state_dict(Net())
    assert float(nn.load_state_dict(Net(), {**found, "temperature": np.float32(5)}).temperature) == 5.0
    with pytest.raises(ValueError, match=r"a rule must match a path; 'line' matches none"):
        nn.load_state_dict(Net(), found, {"line": "fc"})


@pytest.mark.parametrize(
    "mistake, says",
    [
        (lambda: nn.BatchNorm(2)(X), "BatchNorm: while training, the input must have a batch"),
        (
            lambda: nn.Conv(2, 2, (3, 3), strides=(1,), key=random.key(0)),
            "Conv: strides must have an entry for each of 2",
        ),
        (
            lambda: nn.Stack(LAYER, 2, key=random.key(0)),
            "Stack: the first argument must be a function that makes a layer from a key; got a Linear",
        ),
    ],
)
def test_messages(mistake, says):
    with pytest.raises((ValueError, TypeError), match=says):
        mistake()


def test_gradients_in_bfloat16_are_added_up_in_float32():
    layer = nn.Linear(2, 3, dtype="bfloat16", key=random.key(0))
    total = lambda layer, x: layer(x).astype("float32").sum()
    np.testing.assert_array_equal(atled.grad(total)(layer, jnp.ones((64, 64, 2))).bias, np.full(3, 4096))
    table = nn.Embedding(4, 3, dtype="bfloat16", key=random.key(0))
    np.testing.assert_array_equal(atled.grad(total)(table, jnp.zeros(4096, "int32")).weight[0], np.full(3, 4096))
    for dtype in ("bfloat16", "float16"):
        x = jnp.ones((64, 40, 3), dtype)
        for run in (atled.ops.reduction.reduce_sum, atled.jit(atled.ops.reduction.reduce_sum, static_argnums=1)):
            np.testing.assert_array_equal(np.asarray(run(x, (0, 1)), "float32"), np.full(3, 2560))


def test_variances_of_large_numbers():
    x = random.normal(random.key(0), (1000, 1)) + 1e4
    assert abs(float(nn.BatchNorm(1)(x).std()) - 1) < 0.01


def test_attention_drops_weights():
    attention = nn.MultiHeadAttention(4, 2, dropout_rate=0.5, key=random.key(0))
    x = random.normal(random.key(1), (2, 5, 4))
    mean = np.mean([np.asarray(attention(x, is_causal=True, key=random.key(i))) for i in range(400)], 0)
    np.testing.assert_allclose(mean, attention.eval()(x, is_causal=True), atol=0.15)
    attention.dropout = nn.Dropout(0.0)
    np.testing.assert_allclose(attention(x, is_causal=True), attention.eval()(x, is_causal=True), atol=1e-6)
    with pytest.raises(TypeError, match="Dropout: a key must be given while training"):
        nn.MultiHeadAttention(4, 2, dropout_rate=0.5, key=random.key(0))(x)
