"""Layers under attack: ties, axes that are not there, NaN in padding, keys through wrappers, nothing at all."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree
from atled.nn import losses
from atled.nn.state_dicts import TORCH, Part

NAN = float("nan")


def linear(inputs=2, outputs=2):
    return nn.Linear(inputs, outputs, key=random.key(0))


# -- pooling ----------------------------------------------------------------------------------------------------------


def test_adaptive_max_pool_shares_ties_evenly():
    def of(x, size=3):
        return atled.grad(lambda x: nn.AdaptiveMaxPool1d(size)(x).sum())(x)

    np.testing.assert_allclose(of(jnp.zeros((5, 1)))[:, 0], [1 / 2, 5 / 6, 1 / 3, 5 / 6, 1 / 2], rtol=1e-6)
    np.testing.assert_allclose(of(jnp.full((5, 1), -jnp.inf))[:, 0], [1 / 2, 5 / 6, 1 / 3, 5 / 6, 1 / 2], rtol=1e-6)
    np.testing.assert_array_equal(of(jnp.arange(5.0)[:, None])[:, 0], [0, 1, 0, 1, 1])


@pytest.mark.parametrize("n, count", [(5, 3), (7, 4), (3, 5), (10, 4), (8, 4), (1, 3)])
def test_adaptive_windows(n, count):
    x = np.random.default_rng(0).normal(size=(2, n, 3)).astype("f4")
    rows = [x[:, i * n // count : -(-(i + 1) * n // count)] for i in range(count)]
    np.testing.assert_array_equal(nn.AdaptiveMaxPool1d(count)(x), np.stack([r.max(1) for r in rows], 1))
    np.testing.assert_allclose(nn.AdaptiveAvgPool1d(count)(x), np.stack([r.mean(1) for r in rows], 1), atol=1e-6)


# -- axes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [(7,), 2, (0, -3)])
def test_dropout_refuses_axes_that_the_input_has_not(axes):
    with pytest.raises(
        ValueError, match=r"Dropout: broadcast_dims .* must be axes of the input; got one of shape \(2, 3\)"
    ):
        nn.Dropout(0.5, broadcast_dims=axes)(jnp.ones((2, 3)), key=random.key(0))


def test_axes_are_python_integers():
    for given in (1, np.int64(1), [np.int32(1)], np.array([1])):
        layer = nn.Dropout(0.5, broadcast_dims=given)
        assert layer.broadcast_dims == (1,) and type(layer.broadcast_dims[0]) is int
        assert tree.structure(layer) == tree.structure(nn.Dropout(0.5, broadcast_dims=(1,)))
    for wrap in (nn.WeightNorm, nn.SpectralNorm):
        layer = wrap(linear(), axis=np.int64(1))
        assert type(layer.axis) is int and tree.structure(layer) == tree.structure(wrap(linear(), axis=1))
        with pytest.raises(TypeError, match=r"axis must be an integer; got 0\.5"):
            wrap(linear(), axis=0.5)
    with pytest.raises(TypeError, match=r"Dropout: broadcast_dims must be integers; got \(0\.5,\)"):
        nn.Dropout(0.5, broadcast_dims=(0.5,))  # pyright: ignore[reportArgumentType]


# -- graphs -----------------------------------------------------------------------------------------------------------

SENDERS, RECEIVERS = jnp.array([0, 1, 3]), jnp.array([1, 0, 3])  # the last is padding


def network(aggregate, with_edges=True):
    edges, said = (linear(2 + 4, 2), 2) if with_edges else (None, 2 + 2)
    return nn.GraphNetwork(edges, linear(2 + said, 2), linear(2 + said, 1), aggregate=aggregate)


@pytest.mark.parametrize("with_edges", [True, False])
@pytest.mark.parametrize("aggregate", ["sum", "mean", "max"])
def test_nan_in_padding_of_graphs_is_not_seen(aggregate, with_edges):
    mask = jnp.array([True, True, False])

    def total(model, nodes, edges):
        nodes, edges, whole = model(nodes, edges, SENDERS, RECEIVERS, node_mask=mask)
        edges = edges.sum() if with_edges else 0
        return (nodes**2).sum() + edges + whole.sum()

    def found(value):
        nodes, edges = jnp.ones((3, 2)).at[2].set(value), jnp.ones((3, 2)).at[2].set(value)
        return atled.value_and_grad(total, argnums=(0, 1, 2))(network(aggregate, with_edges), nodes, edges)

    for clean, dirty in zip(tree.leaves(found(1.0)), tree.leaves(found(NAN)), strict=True):
        assert np.isfinite(clean).all()
        np.testing.assert_array_equal(clean, dirty)


def test_nodes_without_update_stay_as_they_are():
    nodes = jnp.array([[1.0, 2.0], [3.0, 4.0], [NAN, 6.0]])
    model = nn.GraphNetwork(update_globals=linear(2 + 2, 1))
    new, edges, whole = model(nodes, None, SENDERS, RECEIVERS, node_mask=jnp.array([True, True, False]))
    np.testing.assert_array_equal(new, nodes)
    assert edges is None and np.isfinite(whole).all()


@pytest.mark.parametrize("normalize", [True, False])
def test_nan_in_weights_of_padding_edges_is_not_seen(normalize):
    layer = nn.GraphConv(2, 3, normalize=normalize, key=random.key(0))
    weights = jnp.array([1.0, 2.0, NAN])

    def total(layer, nodes, weights):
        return (layer(nodes, SENDERS, RECEIVERS, edge_weights=weights) ** 2).sum()

    for grad in tree.leaves(atled.grad(total, argnums=(0, 1, 2))(layer, jnp.ones((3, 2)), weights)):
        assert np.isfinite(grad).all()


def test_padding_edges_of_attention_give_no_nan():
    layer = nn.GraphAttention(2, 4, 2, key=random.key(0))

    def total(layer, nodes):
        return (layer(nodes, SENDERS, RECEIVERS) ** 2).sum()

    for grad in tree.leaves(atled.grad(total, argnums=(0, 1))(layer, jnp.ones((3, 2)))):
        assert np.isfinite(grad).all()


# -- wrappers ---------------------------------------------------------------------------------------------------------


class Noisy(nn.Linear):
    def __call__(self, x, *, key=None):
        assert key is not None
        return super().__call__(x) + random.normal(key, (self.out_features,))


WRAPPERS = {
    "WeightNorm": nn.WeightNorm,
    "SpectralNorm": nn.SpectralNorm,
    "LoRA": lambda layer: nn.LoRA(layer, 1, key=random.key(0)),
    "two": lambda layer: nn.WeightNorm(nn.Residual(layer), "layer/weight"),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_wrappers_hand_on_keys(wrap):
    x, layer = jnp.ones((4, 2)), wrap(Noisy(2, 2, key=random.key(0)))
    model = nn.Sequential(layer, jnp.tanh)
    assert not np.array_equal(model(x, key=random.key(1)), model(x, key=random.key(2)))
    assert nn.Residual(layer)(x, key=random.key(1)).shape == (4, 2)


@pytest.mark.parametrize("wrap", [nn.WeightNorm, nn.SpectralNorm])
def test_wrappers_give_no_key_to_layers_that_take_none(wrap):
    assert nn.Sequential(wrap(linear()), nn.Dropout(0.5))(jnp.ones((4, 2)), key=random.key(0)).shape == (4, 2)


def low_rank(layer, key):
    return nn.LoRA(layer, 1, dropout_rate=0.5, key=key)


def test_lora_of_a_layer_without_weight():
    for wrap in (nn.WeightNorm, nn.SpectralNorm):
        with pytest.raises(ValueError, match="LoRA: the layer must have a weight; that of this Linear is None"):
            nn.replace(nn.Sequential(wrap(linear())), nn.Linear, low_rank, random.key(0))
    merged = nn.replace(nn.Sequential(nn.WeightNorm(linear())), nn.WeightNorm, lambda layer: layer.merged())
    assert nn.replace(merged, nn.Linear, low_rank, random.key(0))(jnp.ones(2), key=random.key(0)).shape == (2,)


def test_lora_of_lora():
    once = nn.replace(nn.Sequential(linear()), nn.Linear, low_rank, random.key(0))
    with pytest.raises(TypeError, match="LoRA: the layer must be a Linear, an Embedding or a Conv; got LoRA"):
        low_rank(once[0], random.key(0))
    twice = nn.replace(once, nn.Linear, low_rank, random.key(1))
    twice = tree.map(lambda x: x + 0.5, twice)
    x = random.normal(random.key(0), (4, 2))
    assert twice(x, key=random.key(0)).shape == (4, 2)
    plain = twice[0].merged()
    assert type(plain) is nn.Linear
    np.testing.assert_allclose(plain(x), twice.eval()(x), rtol=1e-5, atol=1e-5)


# -- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [False, True])
def test_info_nce_of_nothing(symmetric):
    x = jnp.ones((0, 4))
    assert float(losses.info_nce(x, x, symmetric=symmetric)) == 0
    assert float(losses.info_nce(x, x, symmetric=symmetric, where=jnp.ones(0, bool), reduction="sum")) == 0
    assert losses.info_nce(x, x, symmetric=symmetric, reduction=None).shape == (0,)
    assert atled.grad(losses.info_nce)(x, x).shape == (0, 4)


def test_no_classes():
    for labels in (jnp.zeros(3, "int32"), jnp.zeros((3, 0))):
        with pytest.raises(
            ValueError, match=r"losses\.cross_entropy: there must be at least one class; got .*f32\[3,0\]"
        ):
            losses.cross_entropy(jnp.zeros((3, 0)), labels)
    with pytest.raises(ValueError, match=r"linear_cross_entropy: there must be at least one class; got .*f32\[0,2\]"):
        losses.linear_cross_entropy(jnp.ones((3, 2)), jnp.ones((0, 2)), jnp.zeros(3, "int32"))


@pytest.mark.parametrize("setting", ["label_smoothing", "z_loss"])
@pytest.mark.parametrize("reduction", ["mean", None])
def test_settings_of_linear_cross_entropy_are_not_traced(setting, reduction):
    def of(value):
        given = {setting: value, "reduction": reduction}
        return losses.linear_cross_entropy(jnp.ones((3, 2)), jnp.ones((4, 2)), jnp.arange(3), **given)

    with pytest.raises(TypeError, match=f"{setting} must be a static number"):
        atled.jit(of)(0.1)
    assert np.isfinite(of(np.float32(0.1))).all()


@pytest.mark.parametrize("label_smoothing, z_loss", [(0.0, 0.0), (0.1, 0.0), (0.1, 0.01)])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_gradients_of_linear_cross_entropy_with_large_logits(label_smoothing, z_loss, scale):
    rng = np.random.default_rng(0)
    x, weight = [jnp.asarray(rng.normal(size=s), "float64") for s in ((5, 3), (7, 3))]
    labels, settings = jnp.asarray(rng.integers(0, 7, 5)), {"label_smoothing": label_smoothing, "z_loss": z_loss}

    def chunked(x, weight):
        return losses.linear_cross_entropy(scale * x, weight, labels, chunk_size=2, **settings)

    def plain(x, weight):
        return losses.cross_entropy(scale * x @ weight.T, labels, **settings)

    for a, b in zip(*[tree.leaves(atled.value_and_grad(f, (0, 1))(x, weight)) for f in (chunked, plain)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12 * scale)


class MyLinear(nn.Linear):
    pass


class MyConv(nn.Conv):
    pass


class MyAttention(nn.MultiHeadAttention):
    pass


PAIRS = {  # square, so that transposed weights have the same shape
    "Linear": (MyLinear, nn.Linear, (3, 3)),
    "Conv": (MyConv, nn.Conv, (3, 3, (3, 3))),
    "MultiHeadAttention": (MyAttention, nn.MultiHeadAttention, (4, 2)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_subclass_has_the_layout_of_its_base(name):
    mine, base, sizes = PAIRS[name]
    a, b = [c(*sizes, key=random.key(0)) for c in (mine, base)]
    there = nn.state_dict(b)
    assert all([np.array_equal(x, there[n]) for n, x in nn.state_dict(a).items()])
    again = nn.load_state_dict(a, there)
    assert all([np.array_equal(x, y) for x, y in zip(tree.leaves(again), tree.leaves(a), strict=True)])
    own = {mine: {"weight": Part("kernel")}}  # the nearest class wins
    if name == "Linear":
        assert np.array_equal(nn.state_dict(a, layout={**TORCH, **own})["kernel"], np.asarray(a.weight))
    wrapped = nn.Sequential(nn.WeightNorm(a)) if name != "MultiHeadAttention" else nn.Sequential(a)
    same = nn.load_state_dict(wrapped, nn.state_dict(wrapped))
    assert all([np.array_equal(x, y) for x, y in zip(tree.leaves(same), tree.leaves(wrapped), strict=True)])


def test_statistics_are_as_wide_as_parameters():
    x = np.random.RandomState(0).randn(64, 2) + 1e8 + 0.3
    norm = nn.BatchNorm(2, momentum=0.0, param_dtype="float64")
    assert abs(np.asarray(norm(x)) - np.asarray(norm.eval()(x))).max() < 1e-3
    for param_dtype, kept in (("bfloat16", "float32"), ("float32", "float32"), ("float64", "float64")):
        assert nn.BatchNorm(2, param_dtype=param_dtype).variance.dtype == kept


@pytest.mark.parametrize("dims", [(1, 2), (1, 1, 2), (1, 1, 1, 2)])
def test_one_number_for_each_feature_is_no_batch(dims):
    with pytest.raises(ValueError, match="at least two numbers for each feature are needed"):
        nn.BatchNorm(2)(jnp.ones(dims))
    nn.BatchNorm(2).eval()(jnp.ones(dims))
    each = atled.vmap(lambda x: nn.BatchNorm(2, axis_name="i")(x), axis_name="i")
    assert each(jnp.arange(4.0).reshape(2, *dims[:-2], 1, 2)[:2]).shape[0] == 2  # one on each of two devices
