"""Masks that are numbers, ids in narrow dtypes, statistics with an outlier, and nothing at all."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random

X = random.normal(random.key(1), (1, 5, 8))


def attention(**settings):
    return nn.MultiHeadAttention(8, 2, key=random.key(0), **settings)


@pytest.mark.parametrize("settings", [{}, {"memory_efficient": True}, {"local_window_size": 2}])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_mask_of_numbers_is_refused(settings, dtype):
    with pytest.raises(TypeError, match=r"attention: a mask must be booleans.*\n.*\n.*\n  try: mask == 0"):
        attention(**settings)(X, mask=np.tril(np.ones((5, 5), dtype)))
    x = jnp.ones((1, 5, 2, 4))
    with pytest.raises(TypeError, match="attention: a mask must be booleans"):
        nn.memory_efficient_attention(x, x, x, mask=lambda t, s: jnp.ones((1, 1, 5, 5)))


@pytest.mark.parametrize("sizes", [(2, 0, 3), (0, 4, 4), (2, 3, 0)])
def test_attention_of_nothing(sizes):
    batch, targets, sources = sizes
    q, k = jnp.ones((batch, targets, 2, 4)), jnp.ones((batch, sources, 2, 4))
    want = nn.dot_product_attention(q, k, k)
    np.testing.assert_array_equal(nn.memory_efficient_attention(q, k, k), want)


def test_compiled_decoding_of_a_part_that_is_too_long():
    layer = nn.init_cache(attention(), batch_size=1, max_length=3)
    with pytest.raises(ValueError, match="its cache has room for 3 steps; got 5"):
        atled.jit(layer)(X)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int64", "uint64"])
def test_narrow_ids(dtype):
    table = nn.Embedding(300, 4, key=random.key(0))
    ids = np.array([0, 5, 120], dtype)
    want = np.asarray(table.weight)[ids]
    for run in (table, atled.jit(table), lambda i: table(jnp.asarray(i)), lambda i: table.weight[i]):
        np.testing.assert_array_equal(run(ids), want)
    if dtype == "int8":
        np.testing.assert_array_equal(table.weight[np.array([-1], dtype)], table.weight[299:])


@pytest.mark.parametrize("first", [0.0, 3e3])
def test_variances_of_a_batch_with_an_outlier_in_front(first):
    x = np.random.RandomState(0).randn(2**18, 1).astype("f4") * 0.5 + 100
    x[0] = first
    norm = nn.BatchNorm(1, momentum=0.0)
    norm(jnp.asarray(x))
    np.testing.assert_allclose(norm.variance, x.astype("f8").var(0), rtol=1e-5)
    np.testing.assert_allclose(norm.mean, x.astype("f8").mean(0), rtol=1e-6)


def test_a_batch_of_nothing():
    with pytest.raises(ValueError, match="BatchNorm: while training, the input must have a batch"):
        nn.BatchNorm(2)(jnp.zeros((0, 2)))
    assert nn.BatchNorm(2).eval()(jnp.zeros((0, 2))).shape == (0, 2)


@pytest.mark.filterwarnings("ignore::atled.numpy.promotion.MixedWidthWarning")
def test_decoding_is_as_wide_as_its_keys():
    layer = nn.MultiHeadAttention(8, 2, key=random.key(0)).eval()
    x = np.random.RandomState(0).randn(1, 4, 8)
    whole = layer(x, is_causal=True)
    decoding = nn.init_cache(layer, 1, 4)
    parts = [decoding(x[:, i : i + 1]) for i in range(4)]
    assert whole.dtype == parts[0].dtype == "float64"
    np.testing.assert_allclose(jnp.concatenate(parts, 1), whole, atol=1e-12)
    short = nn.init_cache(layer, 1, 4, dtype="bfloat16")  # as asked for
    short(x)
    assert short.cache["key"].dtype == "bfloat16"
    half = nn.init_cache(nn.MultiHeadAttention(8, 2, key=random.key(0), dtype="bfloat16"), 1, 4)
    half(x)
    assert half.cache["key"].dtype == "bfloat16"


@pytest.mark.parametrize("wrap", [nn.WeightNorm, lambda m: nn.SpectralNorm(m)])
def test_decoding_of_wrapped_layers(wrap):
    layer = nn.replace(nn.MultiHeadAttention(8, 2, key=random.key(0)), "key_proj", wrap).eval()
    x = random.normal(random.key(1), (1, 3, 8))
    np.testing.assert_allclose(nn.init_cache(layer, 1, 3)(x), layer(x, is_causal=True), atol=1e-5)
