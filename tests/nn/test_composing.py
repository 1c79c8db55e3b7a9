"""Layers made of layers, and low-rank changes: keys, indices, what is refused, what comes out again."""

import functools

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree

X = random.normal(random.key(9), (4, 3))
OUTSIDE = nn.Linear(3, 3, key=random.key(1))
TABLE = jnp.ones(3)


def linear(inputs=3, outputs=3, seed=0):
    return nn.Linear(inputs, outputs, key=random.key(seed))


# -- Sequential -------------------------------------------------------------------------------------------------------


def test_a_sequential_is_its_layers():
    a, b = linear(3, 5), linear(5, 2, seed=1)
    model = nn.Sequential(a, jnp.tanh, b)
    np.testing.assert_array_equal(model(X), b(jnp.tanh(a(X))))
    assert len(model) == 3 and model[0] is a and model[-1] is b and list(model) == [a, jnp.tanh, b]
    np.testing.assert_array_equal(model[:2](X), jnp.tanh(a(X)))
    with pytest.raises(IndexError):
        model[3]


def test_an_empty_sequential_gives_its_input():
    model = nn.Sequential()
    assert model and len(model) == 0 and model(X) is X


def test_keys_are_split_among_layers_that_take_one():
    seen = []

    def noting(x, key):
        seen.append(tuple(random.key_data(key).tolist()))
        return x

    def without(x):
        return x

    inner = nn.Sequential(without, noting)
    model = nn.Sequential(noting, without, nn.Residual(nn.Lambda(noting)), inner, linear())
    model(X, key=random.key(3))
    assert len(set(seen)) == 3
    seen.clear()
    nn.Sequential(linear(), without)(X, key=random.key(3))  # nobody takes it
    with pytest.raises(TypeError, match=r"key|noting"):
        model(X)


class Passing(nn.Dropout):
    def __call__(self, x, **kwargs):
        return super().__call__(x, **kwargs)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: Passing(0.5),
        lambda: nn.Stack(lambda key: nn.Sequential(nn.Linear(3, 3, key=key), nn.Dropout(0.5)), 2, key=random.key(0)),
        lambda: nn.Residual(nn.Dropout(0.5)),
        lambda: drawn(nn.LoRA(linear(), 2, dropout_rate=0.5, key=random.key(0))),
    ],
    ids=["subclass", "stack", "residual", "low rank"],
)
def test_keys_reach_layers_inside_of_others(layer):
    model = nn.Sequential(layer())
    a, b, c = [model(X, key=random.key(i)) for i in (0, 1, 0)]
    np.testing.assert_array_equal(a, c)
    assert not np.array_equal(a, b)


def test_a_stack_without_keys_in_a_sequential_takes_none():
    model = nn.Sequential(nn.Stack(lambda key: nn.Linear(3, 3, key=key), 2, key=random.key(0)), nn.Dropout(0.5))
    assert model(X, key=random.key(0)).shape == (4, 3)


def test_values_inside_of_a_sequential_are_captured():
    model = nn.Sequential(linear(), nn.Dropout(0.5), linear(seed=1))
    out, seen = nn.capture(model, "layers/1")(X, key=random.key(0))
    np.testing.assert_array_equal(out, model[2](seen["layers/1"]))
    np.testing.assert_array_equal(out, model(X, key=random.key(0)))


def test_statistics_of_a_batch_are_kept():
    model = nn.Sequential(linear(), nn.Residual(nn.BatchNorm(3, momentum=0.0)))
    model(X)
    np.testing.assert_allclose(model[1].layer.mean, model[0](X).mean(0), rtol=1e-5, atol=1e-6)


def test_a_layer_that_does_not_fit_is_named():
    model = nn.Sequential(linear(3, 5), jnp.tanh, nn.Sequential(jnp.abs, linear(4, 2)))
    with pytest.raises(ValueError) as raised:
        model(X)
    text = str(raised.value)
    assert text.startswith("Linear: the last axis of the input must have length 4; got f32[4,5].")
    assert "at layers[1] of Sequential, Linear, for f32[4,5] from layers[0], abs" in text
    assert "at layers[2] of Sequential, Sequential, for f32[4,5] from layers[1], tanh" in text
    assert "test_composing.py" in text and "try: Linear(5, …)" in text
    with pytest.raises(ValueError, match=r"at layers\[0\] of Sequential, Linear, for f32\[4,3\] from the call"):
        atled.jit(nn.Sequential(linear(4, 2)))(X)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda: nn.Sequential([linear()]), r"Sequential: layers\[0\] must be a layer or a function; got list"),
        (lambda: nn.Sequential(linear(), 3), r"Sequential: layers\[1\] must be a layer or a function; got"),
        (lambda: nn.Sequential(nn.Linear), r"Sequential: layers\[0\] must be a layer; got the class Linear"),
        (lambda: nn.Sequential(lambda x: OUTSIDE(x)), r"Sequential: layers\[0\] reads `OUTSIDE`, a Linear"),
        (lambda: nn.Residual(None), "Residual: the layer must be a layer or a function; got None"),
        (lambda: nn.Residual(linear(), scale=jnp.ones(3)), r"Residual.scale: arrays must be declared"),
        (lambda: nn.Residual(linear(), scale="half"), "could not convert"),
        (lambda: nn.Lambda(linear()), "Lambda: a function is expected; got a Linear"),
        (lambda: nn.Lambda(TABLE), "Lambda: the function must be a layer or a function; got f32"),
        (lambda: nn.Lambda(lambda x: x * TABLE), r"Lambda: the function reads `TABLE`, an array, f32\[3\]"),
        (lambda: nn.Lambda((lambda w: lambda x: x * w)(TABLE)), "Lambda: the function reads `w`, an array"),
        (lambda: nn.Lambda(OUTSIDE.__call__), "Lambda.function: .*holds a Linear which is not a part of the pytree"),
        (lambda: nn.Lambda(functools.partial(jnp.add, TABLE)), "Lambda.function: arrays must be declared"),
    ],
)
def test_what_is_no_layer_is_refused(make, match):
    with pytest.raises((TypeError, ValueError), match=match):
        make()


def test_a_layer_at_two_places_is_refused():
    layer = linear()
    with pytest.raises(ValueError, match="are the same module"):
        nn.Sequential(layer, jnp.tanh, layer)


def test_attributes_named_like_globals_are_not_read():
    assert nn.Lambda(lambda x: x.TABLE).function is not None


# -- Residual ---------------------------------------------------------------------------------------------------------


def test_a_residual_adds():
    layer = linear()
    np.testing.assert_array_equal(nn.Residual(layer)(X), X + layer(X))
    np.testing.assert_allclose(nn.Residual(layer, scale=0.5)(X), X + 0.5 * layer(X), rtol=1e-6)
    zero = nn.Residual(linear(), scale=nn.Param(0.0))
    np.testing.assert_array_equal(zero(X), X)
    assert atled.grad(lambda m: m(X).sum())(zero).scale is not None


def test_a_residual_hands_on_arguments():
    attention = nn.MultiHeadAttention(4, 2, key=random.key(0))
    x, context = random.normal(random.key(1), (2, 3, 4)), random.normal(random.key(2), (2, 5, 4))
    mask = jnp.ones((1, 1, 3, 5), bool).at[..., 0].set(False)
    np.testing.assert_array_equal(nn.Residual(attention)(x, context, mask=mask), x + attention(x, context, mask=mask))
    assert nn.Residual(linear())(X, key=random.key(0)).shape == X.shape  # a layer without keys gets none


@pytest.mark.parametrize(
    "layer, got",
    [(lambda: linear(3, 2), r"f32\[4,2\]"), (lambda: jnp.sum, r"f32\[\]"), (lambda: lambda x: (x, x), "tuple")],
    ids=["features", "broadcast", "tuple"],
)
def test_a_residual_that_does_not_fit(layer, got):
    with pytest.raises(ValueError, match=rf"Residual: the output of .* must have the shape of its input; got {got}"):
        nn.Residual(layer())(X)


def test_a_scale_that_broadcasts_the_wrong_way():
    with pytest.raises(ValueError, match=r"Residual: the output of scale times Linear .* got f32\[2,4,3\]"):
        nn.Residual(linear(), scale=nn.Param(jnp.ones((2, 1, 3))))(X)


# -- LoRA -------------------------------------------------------------------------------------------------------------


def drawn(lora, seed=5):
    lora.up.weight = random.normal(random.key(seed), lora.up.weight.shape)
    return lora


BASES = {
    "linear": (linear, X),
    "linear, no bias": (lambda: nn.Linear(3, 5, use_bias=False, key=random.key(0)), X),
    "embedding": (lambda: nn.Embedding(7, 3, key=random.key(0)), jnp.array([[1, 6], [0, 1]])),
    "conv": (
        lambda: nn.Conv(2, 4, (3, 2), strides=(2, 1), dilation=(1, 2), padding="CIRCULAR", key=random.key(0)),
        random.normal(random.key(2), (2, 6, 7, 2)),
    ),
    "conv 1x1": (lambda: nn.Conv(2, 4, (1, 1), key=random.key(0)), random.normal(random.key(2), (6, 7, 2))),
}


@pytest.mark.parametrize("base, x", BASES.values(), ids=list(BASES))
def test_low_rank_changes_start_at_nothing_and_merge(base, x):
    base = base()
    lora = nn.LoRA(base, 2, alpha=3.0, key=random.key(1))
    np.testing.assert_array_equal(lora(x), base(x))
    lora = drawn(lora)
    plain = lora.merged()
    assert type(plain) is type(base) and tree.structure(plain) == tree.structure(base)
    np.testing.assert_allclose(lora(x), plain(x), rtol=2e-5, atol=2e-5)
    assert float(abs(lora(x) - base(x)).max()) > 0.01
    want = base.weight + 1.5 * jnp.dot(lora.down.weight, lora.up.weight)
    np.testing.assert_allclose(plain.weight, want, rtol=1e-6, atol=1e-6)
    grads = atled.grad(lambda m: jnp.sum(m(x) ** 2))(lora)
    assert grads.layer.weight is None and grads.down.weight is not None and grads.up.weight is not None
    np.testing.assert_array_equal(lora.weight, plain.weight)


def test_low_rank_changes_of_tied_outputs():
    tokens = drawn(nn.LoRA(nn.Embedding(7, 3, key=random.key(0)), 2, key=random.key(1)))
    np.testing.assert_allclose(tokens.attend(X), tokens.merged().attend(X), rtol=1e-5, atol=1e-5)


def test_low_rank_changes_inside_of_a_stack():
    stack = nn.Stack(lambda key: nn.Sequential(nn.Linear(3, 3, key=key), jnp.tanh), 4, key=random.key(0))
    tuned = nn.replace(stack, nn.Linear, lambda layer, key: nn.LoRA(layer, 2, key=key), key=random.key(1))
    np.testing.assert_allclose(tuned(X), stack(X), rtol=1e-6, atol=1e-6)
    down = tuned.layers[0].down.weight
    assert down.shape == (4, 3, 2) and not np.array_equal(down[0], down[1])
    tuned.layers[0].up.weight = random.normal(random.key(2), (4, 2, 3))
    plain = nn.replace(tuned, nn.LoRA, lambda layer: layer.merged())
    assert tree.structure(plain) == tree.structure(stack)
    np.testing.assert_allclose(plain(X), tuned(X), rtol=1e-5, atol=1e-5)


def test_low_rank_changes_of_attention_that_decodes():
    attention = nn.MultiHeadAttention(8, 2, key=random.key(0))
    tuned = nn.replace(attention, nn.Linear, lambda layer, key: nn.LoRA(layer, 2, key=key), key=random.key(1))
    x = random.normal(random.key(2), (1, 3, 8))
    steps = nn.init_cache(tuned, batch_size=1, max_length=3)
    parts = jnp.concatenate([steps(x[:, i : i + 1]) for i in range(3)], 1)
    np.testing.assert_allclose(parts, tuned.eval()(x, is_causal=True), rtol=1e-5, atol=1e-5)


def test_low_rank_changes_keep_the_dtype_of_the_base():
    base = nn.cast(linear(), param_dtype="bfloat16")
    lora = nn.LoRA(base, 2, param_dtype="float32", key=random.key(1))
    assert lora.down.weight.dtype == np.float32
    assert lora(X.astype("bfloat16")).dtype == jnp.bfloat16 and lora.merged().weight.dtype == jnp.bfloat16
    assert nn.LoRA(base, 2, key=random.key(1)).up.weight.dtype == jnp.bfloat16


def test_low_rank_dropout_takes_a_key():
    lora = drawn(nn.LoRA(linear(), 2, dropout_rate=0.5, key=random.key(1)))
    with pytest.raises(TypeError, match="Dropout: a key must be given while training"):
        lora(X)
    assert not np.array_equal(lora(X, key=random.key(0)), lora(X, key=random.key(1)))
    np.testing.assert_allclose(lora.eval()(X), lora.merged()(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "make, match",
    [
        (lambda k: nn.LoRA(nn.LayerNorm(3), 2, key=k), "LoRA: the layer must be a Linear, an Embedding or a Conv; got"),
        (lambda k: nn.LoRA(nn.LoRA(linear(), 2, key=k), 2, key=k), "LoRA: the layer must be .* got LoRA"),
        (lambda k: nn.LoRA(linear(), 0, key=k), "LoRA: the rank must be 1 or more; got 0"),
        (lambda k: nn.LoRA(linear(), 2), "LoRA: a key must be given"),
        (lambda k: nn.LoRA(nn.Conv1d(4, 4, 3, groups=2, key=k), 2, key=k), "LoRA: a Conv must not have groups"),
        (
            lambda k: nn.LoRA(nn.Embedding(4, 4, key=k), 2, dropout_rate=0.1, key=k),
            "LoRA: dropout is not supported for an Embedding",
        ),
        (lambda k: nn.LoRA(linear(), 2, dropout_rate=2.0, key=k), "the rate must be between 0 and 1"),
        (
            lambda k: nn.LoRA(nn.Stack(lambda key: nn.Linear(3, 3, key=key), 2, key=k).layers, 2, key=k),
            "LoRA: the weight must be that of one layer, with 2 axes; got f32",
        ),
    ],
)
def test_low_rank_changes_that_make_no_sense(make, match):
    with pytest.raises((TypeError, ValueError), match=match):
        make(random.key(0))


# -- features ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "run, match",
    [
        (
            lambda k: nn.FourierFeatures(2, 5, key=k),
            "FourierFeatures: out_features must be even, half cosines and half sines; got 5",
        ),
        (lambda k: nn.FourierFeatures(2, 4), "FourierFeatures: a key must be given"),
        (lambda k: nn.FourierFeatures(2, 4, key=k)(X), "FourierFeatures: the last axis of the input must have"),
        (lambda k: nn.PatchEmbedding(3, 4, 0, key=k), "PatchEmbedding: the lengths of a patch must be 1 or more"),
        (lambda k: nn.PatchEmbedding(3, 4, (), key=k), "PatchEmbedding: the lengths of a patch"),
        (lambda k: nn.PatchEmbedding(3, 4, 2), "PatchEmbedding: a key must be given"),
        (lambda k: nn.PatchEmbedding(3, 4, 2, key=k)(X), r"must have 4 axes, or 3 without a batch; got f32\[4,3\]"),
        (
            lambda k: nn.PatchEmbedding(3, 4, 2, key=k)(jnp.ones((1, 4, 5, 3))),
            r"PatchEmbedding: patches of \(2, 2\) must divide the image evenly; got \(4, 5\)",
        ),
        (lambda k: nn.PatchEmbedding(2, 4, 2, key=k)(jnp.ones((1, 4, 4, 3))), "last axis of the input must"),
    ],
)
def test_features_that_do_not_fit(run, match):
    with pytest.raises((TypeError, ValueError), match=match):
        run(random.key(0))


def test_features_of_nothing_and_of_integers():
    layer = nn.PatchEmbedding(3, 4, 2, key=random.key(0))
    assert layer(jnp.ones((0, 4, 4, 3))).shape == (0, 4, 4) and layer(jnp.ones((1, 0, 4, 3))).shape == (1, 0, 4)
    waves = nn.FourierFeatures(3, 4, key=random.key(0))
    assert waves(jnp.ones((2, 3), "int32")).dtype == np.float32 and waves(jnp.ones((0, 3))).shape == (0, 4)
    assert waves(X.astype("float16")).dtype == np.float16
    assert nn.cast(waves, compute_dtype="bfloat16")(X).dtype == jnp.bfloat16
    assert bool(jnp.isnan(waves(X.at[0, 0].set(jnp.nan)))[0].all())


def hidden(w):
    """Functions that read an array in roundabout ways."""
    inner = lambda x: x * w
    return {
        "a function that it calls": lambda x: inner(x),
        "a nested function": lambda x: (lambda y: y * w)(x),
        "a default": lambda x, w=w: x * w,
        "a default by name": lambda x, *, w=w: x * w,
        "jit": atled.jit(lambda x: x * w),
        "vmap": atled.vmap(lambda x: x * w),
        "jit of vmap": atled.jit(atled.vmap(lambda x: x * w)),
        "a global of a nested function": lambda x: (lambda y: y * GLOBAL)(x),
        "a module in a function that it calls": (lambda m: (lambda f: lambda x: f(x))(lambda x: m(x)))(nn.Dropout(0.5)),
    }


GLOBAL = jnp.ones(3)


@pytest.mark.parametrize("name", hidden(None))
def test_a_function_must_not_hide_arrays(name):
    for make in (nn.Lambda, lambda f: nn.Sequential(f), lambda f: nn.Residual(f)):
        with pytest.raises(TypeError, match=r"reads `\w+`, an? \w+.* which is not a part of the model"):
            make(hidden(jnp.ones(3))[name])


def test_functions_that_hide_nothing():
    scale, table = 2.0, np.ones(3, "f4")
    for f in (lambda x: x * scale, lambda x: x * table, jnp.tanh, nn.relu, atled.jit(jnp.sin), lambda x, s=2.0: x * s):
        assert nn.Lambda(f)(jnp.ones(3)).shape == (3,)
