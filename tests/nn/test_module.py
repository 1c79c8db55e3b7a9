"""Modules as trees: what the core gives them, and what an assignment does."""

import builtins
import dataclasses
import threading
import warnings

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn, random, tree
from atled.core.tree_diff import difference


class Norm(nn.Module):
    def __init__(self, size=2):
        self.mean = nn.Buffer(jnp.zeros(size))
        self.count = nn.Buffer(0)

    def __call__(self, x):
        if self.training:
            self.mean = x.mean(0)
            self.count = self.count + 1
        return x - self.mean


class Net(nn.Module):
    def __init__(self, heads=2, function=jnp.tanh):
        self.weight = nn.Param(jnp.arange(4.0).reshape(2, 2))
        self.layers = [Norm(), function, nn.Linear(2, 2, key=random.key(0))]
        self.sizes = {"a": [1, 2]}
        self.heads = heads

    def __call__(self, x):
        x = x @ self.weight * self.heads
        for layer in self.layers:
            x = layer(x)
        return x * self.sizes["a"][0]


X = jnp.arange(6.0).reshape(3, 2)


# -- what the core gives ----------------------------------------------------------------------------------------------


def test_launch_code_takes_modules_apart_without_calls(monkeypatch):
    model, f = Net(), atled.jit(lambda m, x: (m(x), m))
    for _ in range(2):
        f(model, X)
    monkeypatch.setattr(tree, "flatten", None)  # would be called on the slow path
    monkeypatch.setattr("atled.core.tree.flatten", None)
    _, after = f(model, X)
    assert type(after) is Net and type(after.layers[0]) is Norm
    assert int(after.layers[0].count) == 1


def test_launch_code_sees_each_change_of_a_module():
    f = atled.jit(lambda m, x: m(x))
    model = Net().eval()
    for _ in range(3):
        f(model, X)

    def changed(change):
        other = model.__copy__()
        change(other)
        np.testing.assert_allclose(f(other, X), other(X), rtol=1e-6)
        np.testing.assert_allclose(f(other, X), other(X), rtol=1e-6)

    changed(lambda m: setattr(m, "heads", 3))
    changed(lambda m: setattr(m, "heads", 2.0))
    changed(lambda m: m.sizes["a"].__setitem__(0, 5))
    changed(lambda m: m.layers.append(jnp.sin))
    changed(lambda m: m.layers.__setitem__(1, jnp.cos))
    changed(lambda m: m.layers.pop(2))
    changed(lambda m: setattr(m, "weight", m.weight * 2))
    changed(lambda m: setattr(m.layers[2], "bias", m.layers[2].bias + 1))
    changed(lambda m: setattr(m, "layers", tuple(m.layers)))
    np.testing.assert_allclose(f(model, X), model(X), rtol=1e-6)


@pytest.mark.parametrize("heads", [(1, True), (0.0, -0.0), (1, 1.0), (2, np.int32(2)), ((1,), (True,))])
def test_statics_are_told_apart_exactly(heads):
    first, second = [Net(heads=h) for h in heads]
    assert tree.structure(first) != tree.structure(second)
    assert tree.structure(first) == tree.structure(Net(heads=heads[0]))


def test_derivatives_go_by_declarations():
    model = Net().eval()

    def f(m):
        return m(X).sum()

    grads = atled.grad(f)(model)
    assert grads.layers[0].mean is None and grads.layers[0].count is None
    np.testing.assert_allclose(atled.grad(f, wrt=nn.Param)(model).weight, grads.weight)
    by_buffer = atled.grad(f, wrt=lambda path, x: "mean" in path)(model)
    assert by_buffer.weight is None and by_buffer.layers[0].mean.shape == (2,)
    frozen = atled.grad(f)(nn.freeze(model, "layers/**"))
    assert frozen.layers[2].weight is None and frozen.weight is not None
    _, pull = atled.vjp(f, model)
    np.testing.assert_allclose(pull(jnp.float32(1))[0].weight, grads.weight)
    ones = tree.map(jnp.ones_like, nn.params(model))
    slope = sum([g.sum() for g in tree.leaves(grads)])
    np.testing.assert_allclose(atled.jvp(f, (model,), (ones,))[1], slope, rtol=1e-5)
    np.testing.assert_allclose(atled.linearize(f, model)[1](ones), slope, rtol=1e-5)
    for transform in (atled.jacfwd, atled.jacrev):
        rows = transform(lambda m: m(X).sum(0))(model)
        assert rows.layers[0].mean is None
        np.testing.assert_allclose(rows.weight.sum(0), grads.weight, rtol=1e-5)
    second = atled.hessian(f, wrt=lambda path, x: path == ".weight")(model)
    assert second.weight.weight.shape == (2, 2, 2, 2) and second.layers[2].bias is None


def test_paths_in_wrt_begin_inside_of_the_argument():
    seen = []
    atled.grad(lambda p: p["w"] ** 2, wrt=lambda path, x: seen.append(path) is None)({"w": 2.0})
    assert seen == ["['w']"]


def test_an_error_in_wrt_is_the_users_own():
    def wrong(path, x):
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        atled.grad(lambda p: p**2, wrt=wrong)(2.0)


def test_jit_of_a_model_and_of_its_method():
    model = Net().eval()
    run, method = atled.jit(model), atled.jit(model.__call__)
    np.testing.assert_allclose(run(X), model(X), rtol=1e-6)
    model.weight = model.weight + 1
    np.testing.assert_allclose(run(X), model(X), rtol=1e-6)
    np.testing.assert_allclose(method(X), model(X), rtol=1e-6)
    assert len(run.compiles) == 1
    assert run.eval_shape(X).shape == (3, 2)
    assert "dot" in run.lower(X).as_text()


def test_a_changed_static_is_named_by_its_field(caplog):
    class Outer(nn.Module):
        def __init__(self, heads):
            self.head = Net(heads)

    f = atled.jit(lambda model: model.head.weight * model.head.heads)
    f(Outer(8))
    f(Outer(12))
    assert "model.head.heads was 8 and is 12" in caplog.text
    assert difference(tree.structure(Net().eval()), tree.structure(Net())) == (".training", "False", "True")


def test_a_model_that_is_read_from_outside_is_told(caplog):
    model = Net().eval()
    run = atled.jit(lambda x: model(x))
    run(X)
    assert "reads model from outside, with its current arrays" in caplog.text
    caplog.clear()
    atled.jit(lambda m, x: m(x))(model, X)
    run(X)
    assert not caplog.text


def test_loops_and_branches_name_the_path_that_differs():
    with pytest.raises(TypeError, match=r"carry\.heads starts as 2, and becomes 3"):
        lax.scan(lambda m, _: (_with_heads(m, 3), None), Net(), None, length=2)
    with pytest.raises(TypeError, match=r"result\.heads is 3 from false_fun, and 2 from true_fun"):
        lax.cond(True, lambda m: m, lambda m: _with_heads(m, 3), Net())


def _with_heads(m, heads):
    made = m.__copy__()
    made.heads = heads
    return made


def test_a_model_is_no_static_argument():
    with pytest.raises(ValueError, match=r"argument m of .* holds arrays"):
        atled.jit(lambda m, x: m(x), static_argnames="m")(Net(), X)


def test_a_donated_array_at_two_places_and_one_used_again_are_named():
    f = atled.jit(lambda a, b: (a.weight + 1, b + 1), donate_argnums=(0, 1))
    model = nn.Linear(2, 2, use_bias=False, key=random.key(0))
    with pytest.raises(RuntimeError, match=r"a\.weight and b are the same array, f32\[2,2\]"):
        f(model, model.weight)
    for _ in range(3):
        f(nn.Linear(2, 2, use_bias=False, key=random.key(0)), jnp.ones((2, 2)))
        taken = nn.Linear(2, 2, use_bias=False, key=random.key(0))
        f(taken, jnp.ones((2, 2)))
        with pytest.raises(RuntimeError, match=r"argument a\.weight, f32\[2,2\], was deleted or donated"):
            f(taken, jnp.ones((2, 2)))


def test_functions_made_anew_see_what_models_read(monkeypatch):
    model, out = Reader(), []
    for value in (2.0, 2.0, 3.0, 2.0):
        monkeypatch.setattr(Reader, "factor", value)
        out.append(float(atled.jit(lambda m, x: m(x))(model, 1.0)))
    assert out == [2.0, 2.0, 3.0, 2.0]


class Reader(nn.Module):
    factor = 1.0

    def __init__(self):
        self.w = nn.Param(jnp.float32(1))

    def __call__(self, x):
        return self.w * x * Reader.factor


def test_launch_code_is_made_in_the_second_call(monkeypatch):
    atled.jit(lambda x: x * 3.5)(X)  # the first use of an op makes its constructor
    made = []
    real = builtins.compile
    monkeypatch.setattr(builtins, "compile", lambda *a, **k: made.append(1) or real(*a, **k))
    f = atled.jit(lambda x: {"a very long name": x * 3.25, "b": [x, (x, [x])]})  # code that no other test makes
    f(X)
    assert not made
    f(X)
    assert made
    count = len(made)
    f(X)
    assert len(made) == count


# -- assigning --------------------------------------------------------------------------------------------------------


def test_an_eager_call_changes_the_module_and_a_transform_a_copy():
    norm = Norm()
    norm(X)
    assert int(norm.count) == 1
    _, after = atled.jit(lambda m, x: (m(x), m))(norm, X)
    assert (int(norm.count), int(after.count)) == (1, 2)


def loss(model, x):
    return model(x).sum()


@pytest.mark.parametrize(
    "transformed",
    [
        atled.jit(loss),
        atled.grad(loss),
        lambda m, x: atled.vmap(loss, in_axes=(None, 0))(m, x[None]),
        lambda m, x: lax.scan(lambda c, m: (loss(m, x), None), 0.0, tree.map(lambda v: v[None], m)),
        atled.remat(lambda m, x: atled.grad(lambda y: atled.remat(loss)(m, y))(x)),
        lambda m, x: lax.cond(jnp.bool_(True), loss, lambda m, x: 0.0, m, x),
    ],
    ids=["jit", "grad", "vmap", "scan", "remat", "cond"],
)
def test_what_is_assigned_and_not_returned_is_told(transformed):
    with pytest.warns(UserWarning, match=r"Norm\.mean: assigned in .*, which does not return the model, so it is lost"):
        transformed(Norm(), X)


def test_no_false_alarms():
    def returns(model, x):
        return model(x).sum(), model

    def local(x):
        return Norm()(x).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        atled.jit(returns)(Norm(), X)
        atled.grad(returns, has_aux=True)(Norm(), X)
        atled.jit(atled.grad(local))(X)
        atled.jit(loss)(Norm().eval(), X)
        atled.jit(lambda m, x: atled.grad(returns, has_aux=True)(m, x)[1])(Norm(), X)
        atled.jit(lambda m, x: tree.map(lambda v: v * 2, returns(m, x)[1]))(Norm(), X)


@pytest.mark.parametrize("transform", [atled.jit, atled.grad, atled.vmap, atled.remat])
def test_a_module_from_outside_keeps_no_traced_value(transform):
    norm = Norm()
    run = transform(lambda x: norm(x).sum() if transform is not atled.vmap else norm(x[None]))
    run = (lambda x: atled.grad(transform(lambda y: norm(y).sum()))(x)) if transform is atled.remat else run
    with pytest.raises(atled.errors.UnexpectedTracerError, match=r"Norm\.mean: the module comes from outside of"):
        run(X)
    assert int(norm.count) == 0
    atled.jit(lambda x: norm.mean + x)(X)  # reading is allowed


def test_a_module_from_outside_keeps_no_module_with_traced_values():
    holder = Net()
    with pytest.raises(atled.errors.UnexpectedTracerError, match=r"Net\.layers"):
        atled.jit(lambda m: setattr(holder, "layers", [m]) or m.mean)(Norm())


def test_arrays_must_be_declared():
    class Bad(nn.Module):
        def __init__(self, what):
            self.w = what

    for what in (jnp.ones(2), np.ones(2)):
        with pytest.raises(TypeError, match=r"Bad\.w: arrays must be declared"):
            Bad(what)
        with pytest.raises(TypeError, match=r"Bad\.w\[0\]: arrays must be declared"):
            Bad([what])
        with pytest.raises(TypeError, match=r"Bad\.w\['a'\]\[1\]: arrays must be declared"):
            Bad({"a": (1, what)})


def test_ties_are_refused():
    class Tied(nn.Module):
        def __init__(self, same):
            self.a = nn.Linear(2, 2, key=random.key(0))
            self.b = self.a if same else nn.Linear(2, 2, key=random.key(1))
            if not same:
                self.b.weight = self.a.weight

    with pytest.raises(ValueError, match="Tied: a and b are the same module"):
        Tied(True)
    with pytest.raises(ValueError, match="Tied: a/weight and b/weight are the same array"):
        Tied(False)


def test_numbers_become_strong_arrays_of_their_own():
    class Two(nn.Module):
        def __init__(self):
            self.a, self.b = nn.Buffer(0), nn.Buffer(0)
            self.c = nn.Buffer({"x": 1.5, "y": [np.float64(2)]})

    two = Two()
    assert [x.dtype.name for x in tree.leaves(two)] == ["int32", "int32", "float32", "float32"]
    count = atled.jit(lambda m: _counted(m))
    for _ in range(3):
        two = count(two)
    assert len(count.compiles) == 1 and int(two.a) == 3


def _counted(m):
    m.a = m.a + 1
    return m


def test_a_later_assignment_keeps_the_kind():
    layer = nn.Linear(2, 2, key=random.key(0))
    layer.weight = jnp.ones((2, 2))
    assert tree.structure(layer).kinds == (nn.Param, nn.Param)
    layer.weight = nn.Buffer(jnp.ones((2, 2)))
    assert tree.structure(layer).kinds == (nn.Buffer, nn.Param)


def test_a_declaration_of_a_whole_module_holds_for_all_in_it():
    class Averaged(nn.Module):
        def __init__(self):
            self.model = Net()
            self.average = nn.Buffer(Net())

    kinds = tree.structure(Averaged()).kinds
    assert kinds[: len(kinds) // 2] == tree.structure(Net()).kinds
    assert set(kinds[len(kinds) // 2 :]) == {nn.Buffer}


def test_own_kinds_inheritance_and_dataclasses():
    class Cache(nn.Buffer):
        pass

    class Base(nn.Module):
        def __init__(self, n):
            self.n = n
            self.cache = Cache(jnp.zeros(n))

    class Derived(Base):
        def __init__(self, n):
            super().__init__(n)
            self.more = nn.Param(jnp.ones(n))

    @dataclasses.dataclass(eq=False)
    class Record(nn.Module):
        size: int
        part: Base

    record = Record(3, Derived(2))
    assert [x.shape for x in tree.leaves(nn.filter(record, Cache))] == [(2,)]
    assert [x.shape for x in tree.leaves(nn.params(record))] == [(2,)]
    assert tree.map(lambda x: x, record).size == 3


def test_an_unknown_attribute_says_which_one_is_close():
    with pytest.raises(AttributeError, match=r"Linear has no attribute 'weigth'\.\n  try: weight"):
        nn.Linear(2, 2, key=random.key(0)).weigth


def test_many_threads_make_one_form():
    found = []

    def make():
        for i in range(50):
            found.append(tree.structure(Net(heads=10_000 + i)))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({id(s.meta) for s in found}) == 50 and len(set(found)) == 50


def test_patterns():
    assert nn.matches("query", "blocks/0/query/weight")
    assert nn.matches("blocks/*/query", "blocks/0/query/weight")
    assert not nn.matches("blocks/query", "blocks/0/query/weight")
    assert nn.matches("blocks/**/weight", "blocks/0/query/weight")
    assert not nn.matches("/query", "blocks/0/query/weight")
    assert nn.matches("/blocks", "blocks/0/query/weight")
    assert nn.matches("w*t", "a/weight") and not nn.matches("w", "a/weight")
    with pytest.raises(ValueError, match=r"nn\.freeze: a pattern must match something; 'wieght' matches no path"):
        nn.freeze(Net(), "wieght")


def test_replace_inside_of_a_stack():
    class Low(nn.Module):
        def __init__(self, inner, key):
            self.inner = inner
            self.a = nn.Param(random.normal(key, (inner.in_features, 1)))
            self.b = nn.Param(jnp.zeros((1, inner.out_features)))

        def __call__(self, x):
            return self.inner(x) + x @ self.a @ self.b

    stack = nn.Stack(lambda key: nn.Linear(2, 2, key=key), 3, key=random.key(0))
    made = nn.replace(nn.freeze(stack), nn.Linear, Low, key=random.key(1))
    assert made.layers.a.shape == (3, 2, 1)
    assert len({float(x) for x in made.layers.a[:, 0, 0]}) == 3
    np.testing.assert_allclose(made(X), stack(X), rtol=1e-6)
    grads = atled.grad(lambda m: m(X).sum())(made)
    assert grads.layers.inner.weight is None and grads.layers.b.shape == (3, 1, 2)


class Normed(nn.Module):
    def __init__(self, key):
        self.linear, self.norm = nn.Linear(3, 3, key=key), nn.BatchNorm(3)
        self.sums, self.calls, self._last = [nn.Buffer(jnp.zeros(()))], 0, "never"
        self.table = {1: "a", "b": 2}  # a setting; as a tree, its keys could not be sorted

    def __call__(self, x):
        y = self.norm(self.linear(x))
        self.sums[0] = self.sums[0] + y.sum()
        self.calls, self._last = self.calls + 1, "now"
        return y


@pytest.mark.parametrize("pattern", ["norm", "linear", "**"])
def test_a_captured_call_assigns_what_a_call_does(pattern):
    x = random.normal(random.key(1), (5, 3))
    plain, seen_in = Normed(random.key(0)).train(), Normed(random.key(0)).train()
    call, norm = nn.capture(seen_in, pattern), seen_in.norm
    for _ in range(2):  # the second call begins with what the first assigned
        expected, (out, _) = plain(x), call(x)
        np.testing.assert_array_equal(out, expected)
        assert seen_in.norm is norm and seen_in.calls == plain.calls and seen_in._last == "now"
        for a, b in zip(atled.tree.leaves(seen_in), atled.tree.leaves(plain), strict=True):
            np.testing.assert_array_equal(a, b)
    assert tree.structure(seen_in) == tree.structure(plain)
    step = atled.jit(lambda m, x: (nn.capture(m, pattern)(x)[0], m))
    np.testing.assert_array_equal(step(plain, x)[1].norm.mean, atled.jit(lambda m, x: (m(x), m))(plain, x)[1].norm.mean)


def test_a_captured_stack_assigns_what_a_call_does():
    x = random.normal(random.key(1), (5, 3))
    make = lambda: nn.Stack(lambda key: nn.BatchNorm(3), 2, key=random.key(0)).train()
    plain, seen_in = make(), make()
    plain(x)
    nn.capture(seen_in, "layers")(x)
    np.testing.assert_array_equal(seen_in.layers.mean, plain.layers.mean)
    assert type(seen_in.layers) is nn.BatchNorm and tree.structure(seen_in) == tree.structure(plain)
    assert float(abs(plain.layers.mean).sum()) > 0


def test_capture_in_a_stack_and_of_several_calls():
    class Twice(nn.Module):
        def __init__(self, key):
            self.inner = nn.Linear(2, 2, key=key)

        def __call__(self, x):
            return self.inner(self.inner(x))

    out, seen = nn.capture(Twice(random.key(0)), "inner")(X)
    assert len(seen["inner"]) == 2
    np.testing.assert_array_equal(seen["inner"][1], out)
    stack = nn.Stack(Twice, 3, key=random.key(1))
    out, seen = atled.jit(lambda m, x: nn.capture(m, "layers")(x))(stack, X)
    assert seen["layers"].shape == (3, 3, 2)
    np.testing.assert_allclose(seen["layers"][-1], out, rtol=1e-6)


def test_decoding_step_by_step_is_the_whole_at_once():
    class Block(nn.Module):
        def __init__(self, key):
            self.norm = nn.LayerNorm(8)
            self.attention = nn.MultiHeadAttention(8, 2, key=key)

        def __call__(self, x):
            return x + self.attention(self.norm(x), is_causal=True)

    model = nn.Stack(Block, 3, key=random.key(0)).eval()
    x = random.normal(random.key(1), (2, 6, 8))
    whole = model(x)
    step = atled.jit(lambda m, x: (m(x), m))
    state, parts = nn.init_cache(model, 2, 6), []
    for start, stop in ((0, 3), (3, 4), (4, 5), (5, 6)):
        out, state = step(state, x[:, start:stop])
        parts.append(out)
    np.testing.assert_allclose(jnp.concatenate(parts, 1), whole, rtol=1e-5, atol=1e-6)


def test_summary_counts():
    text = nn.summary(Net(), X)
    rows = {r.path: r for r in text.rows}
    assert rows[""].params == 10 and rows["layers/2"].params == 6 and rows["layers/2"].bytes == 24
    assert rows["layers/2"].flops == 3 * 2 * 2 * 2 + 6
    assert rows["layers/2"].output == "f32[3,2]"
    assert "parameters" in str(text)


def test_weights_out_and_in_again():
    class Model(nn.Module):
        def __init__(self, key):
            keys = nn.Keys(key)
            self.tokens = nn.Embedding(5, 4, key=keys())
            self.blocks = nn.Stack(lambda k: nn.MultiHeadAttention(4, 2, key=k), 2, key=keys())
            self.conv = nn.Conv(4, 3, (3, 2), key=keys())
            self.rnn = nn.RNN(nn.LSTMCell(3, 2, key=keys()))
            self.norms = [nn.BatchNorm(3), nn.LayerNorm(3)]

    from atled.nn.state_dicts import HUGGING_FACE_GPT2

    one, other = Model(0), Model(1)
    rules = {"blocks/*": "h.{}.attn", "tokens": "wte"}
    for layout in (None, HUGGING_FACE_GPT2):
        found = nn.state_dict(one, rules, layout)
        assert found["h.1.attn.in_proj_weight" if layout is None else "h.1.attn.c_attn.weight"].size == 48
        loaded = nn.load_state_dict(other, found, rules, layout)
        for a, b in zip(tree.leaves(one), tree.leaves(loaded), strict=True):
            np.testing.assert_array_equal(a, b)
    assert found["wte.weight"].shape == (5, 4) and found["conv.weight"].shape == (3, 4, 3, 2)
    del found["wte.weight"]
    found["extra"] = np.zeros(1)
    with pytest.raises(ValueError, match=r"missing: tokens/weight \(wte\.weight\); unused: extra"):
        nn.load_state_dict(other, found, rules, layout)


def test_views():
    model = Net()
    assert "layers=[" in repr(model) and "tanh" in repr(model)
    page = model._repr_html_()
    assert page.count("<details") == 6 and "Param f32[2,2]" in page


def test_keys_stay_inside_of_a_function():
    keys = nn.Keys(0)
    assert nn.Keys(None)() is None
    with pytest.raises(TypeError, match=r"got Keys\.\n.*try: the key itself|try: the key itself"):
        atled.jit(lambda keys, x: x)(keys, X)


def test_slips_of_those_who_come_from_elsewhere():
    with pytest.raises(
        TypeError,
        match=r"Linear: takes 3 positional arguments but 4 were given.*\n.*\n.*\n"
        r"  try: Linear\(in_features, out_features, \*",
    ):
        nn.Linear(3, 4, random.key(0))
    with pytest.raises(TypeError, match="Linear: got an unexpected keyword argument 'kye'"):
        nn.Linear(3, 4, kye=random.key(0))
    layer = nn.Linear(3, 4, key=random.key(0))
    with pytest.raises(
        TypeError, match=r"Linear.wieght: arrays must be declared.*\n.*\n.*\n  try: weight, which is declared"
    ):
        layer.wieght = jnp.ones((3, 4))
    assert layer.train(False).training is False and layer.eval().train(True).training is True

    class Torch(nn.Module):
        def forward(self, x):
            return x

    with pytest.raises(TypeError, match="Torch: a module is called by its __call__; got forward"):
        Torch()(1)
    with pytest.raises(TypeError, match=r"got Keys.*\n.*\n.*\n  try: the key itself"):
        atled.vmap(lambda keys, x: x)(nn.Keys(0), jnp.ones(2))
    with pytest.raises(TypeError, match=r"grad: wrt must be a kind such as nn\.Param, or a function"):
        atled.grad(lambda m: m(jnp.ones(3)).sum(), wrt="weight")(layer)
    mesh = atled.make_mesh((1,), ("data",), devices=atled.devices()[:1])
    with pytest.raises(ValueError, match="the spec of weight must name axes of the mesh, data; got 'model'"):
        nn.shardings(layer, {"weight": atled.sharding.PartitionSpec("model")}, mesh)


def test_a_type_error_in_a_constructor_is_the_users_own():
    class Own(nn.Module):
        def __init__(self):
            len(3)

    with pytest.raises(TypeError, match="object of type 'int' has no len"):
        Own()


def test_layers_of_a_stack_one_by_one():
    stack = nn.Stack(lambda key: nn.Linear(2, 2, key=key), 3, key=random.key(0))
    assert len(stack) == 3
    np.testing.assert_array_equal(stack[-1].weight, stack.layers.weight[2])
    assert len(list(stack)) == 3
    with pytest.raises(IndexError, match="there are 3 layers; got 3"):
        stack[3]
