"""Attention in chunks gives what plain attention gives, in less memory."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree

CASES = {  # queries, keys, heads, heads of keys, causal, window, chunk
    "causal": (37, 37, 4, 2, True, None, 8),
    "causal, in bands": (64, 64, 2, 1, True, None, 8),
    "causal, in bands, odd": (67, 67, 2, 1, True, None, 7),
    "window": (40, 40, 4, 4, False, (5, 3), 8),
    "window, causal": (41, 41, 4, 4, True, (5, 0), 16),
    "window, longer than all": (9, 9, 2, 2, False, (50, 50), 4),
    "all at once": (33, 50, 2, 2, False, None, 64),
    "more keys": (33, 50, 2, 2, True, None, 5),
    "one query": (1, 7, 2, 1, False, None, 256),
}


def given(name, dtype="float32"):
    targets, sources, heads, groups, causal, window, chunk = CASES[name]
    q = random.normal(random.key(0), (2, targets, heads, 8), dtype)
    k, v = [random.normal(random.key(i), (2, sources, groups, 8), dtype) for i in (1, 2)]
    return (q, k, v), causal, window, chunk


def both(name, bias=None, mask=None):
    _, causal, window, chunk = given(name)

    def plain(q, k, v, b=None):
        return nn.dot_product_attention(q, k, v, b, mask, is_causal=causal, local_window_size=window)

    def chunked(q, k, v, b=None):
        return nn.memory_efficient_attention(
            q, k, v, bias=b, mask=mask, is_causal=causal, local_window_size=window, chunk_size=chunk
        )

    return plain, chunked


def close(a, b, tolerance=1e-5):
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x, "f4"), np.asarray(y, "f4"), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    args, _, window, _ = given(name)
    targets, sources, heads = CASES[name][:3]
    bias = random.normal(random.key(4), (1, heads, targets, sources))
    mask = None if window else random.bernoulli(random.key(5), 0.8, (2, 1, targets, sources)).at[..., 0].set(True)
    total = lambda f: lambda *xs: (jnp.sin(f(*xs)).sum(), f(*xs))
    run = [
        atled.jit(atled.grad(total(f), argnums=(0, 1, 2, 3), has_aux=True))(*args, bias) for f in both(name, mask=mask)
    ]
    close(*run)


@pytest.mark.parametrize("name", ["causal", "window, causal"])
def test_other_transforms(name):
    args = given(name)[0]
    plain, chunked = both(name)
    close(*[atled.jvp(f, args, args) for f in (plain, chunked)])
    close(*[atled.vmap(f)(*[jnp.stack([x, 2 * x]) for x in args]) for f in (plain, chunked)])
    curve = [
        atled.jvp(atled.grad(lambda q, f=f: jnp.sin(f(q, *args[1:])).sum()), args[:1], args[:1])[1]
        for f in (plain, chunked)
    ]
    close(*curve, 1e-4)


def test_functions_of_places():
    args = given("causal")[0]
    far = lambda t, s: jnp.abs(t - s)[None, None].astype("float32")
    near = lambda t, s: (jnp.abs(t - s) < 9)[None, None]
    places = jnp.arange(37)
    want = nn.dot_product_attention(*args, far(places[:, None], places), near(places[:, None], places), is_causal=True)
    close(nn.memory_efficient_attention(*args, bias=far, mask=near, is_causal=True, chunk_size=8), want)


def test_half_precision_and_wide():
    wide, short = given("causal", "float64")[0], given("causal")[0]
    want = nn.dot_product_attention(*wide, is_causal=True)
    got = nn.memory_efficient_attention(*wide, is_causal=True, chunk_size=8)
    assert got.dtype == np.float64 and abs(np.asarray(got - want)).max() < 1e-13
    short = [x.astype("bfloat16") for x in short]
    got = nn.memory_efficient_attention(*short, is_causal=True, chunk_size=8)
    assert got.dtype == jnp.bfloat16
    close(got, nn.dot_product_attention(*[x.astype("float32") for x in short], is_causal=True), 2e-2)


def test_nan_is_seen_where_it_is():
    q, k, v = given("causal")[0]
    out = nn.memory_efficient_attention(q.at[0, 3, 0, 0].set(jnp.nan), k, v, is_causal=True, chunk_size=8)
    assert np.isnan(out[0, 3, 0]).all() and np.isfinite(out[0, 4]).all() and np.isfinite(out[1]).all()


def peak(f, *args):
    return atled.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes


def test_memory_at_8192_tokens():
    x = atled.ShapeDtypeStruct((1, 8192, 4, 64), "float32")
    plain = lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True)
    chunked = lambda q, k, v: nn.memory_efficient_attention(q, k, v, is_causal=True)
    total = lambda f: atled.grad(lambda *xs: f(*xs).sum(), argnums=(0, 1, 2))
    assert peak(chunked, x, x, x) <= 0.1 * peak(plain, x, x, x)
    assert peak(total(chunked), x, x, x) <= 0.1 * peak(total(plain), x, x, x)


def test_messages():
    x = jnp.ones((1, 4, 2, 3))
    with pytest.raises(ValueError, match=r"query must be \[B, T, N, H\].*K divide N; got f32\[1,4,2,3\], f32\[1,4,3\]"):
        nn.memory_efficient_attention(x, x[:, :, 0], x)
    with pytest.raises(ValueError, match=r"bias must broadcast to \(1, 2, 4, 4\); got f32\[1,1,4,5\]"):
        nn.memory_efficient_attention(x, x, x, bias=jnp.ones((4, 5)))
    with pytest.raises(ValueError, match="chunk_size must be 1 or more, and local_window_size two numbers"):
        nn.memory_efficient_attention(x, x, x, chunk_size=0)


def test_the_layer_is_as_accurate_as_the_function():
    """Logits are not rounded to bfloat16, and a scale keeps its digits next to float64 operands under jit."""
    x = np.random.RandomState(0).randn(2, 33, 4, 16)
    logits = np.einsum("btnh,bsnh->bnts", x, x) / 4
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    want = np.einsum("bnts,bsnh->btnh", weights / weights.sum(-1, keepdims=True), x)
    for f in (nn.dot_product_attention, nn.memory_efficient_attention):
        for way in (f, atled.jit(f)):
            np.testing.assert_allclose(way(x, x, x), want, rtol=1e-13, atol=1e-14)
    layer = nn.MultiHeadAttention(64, 4, use_bias=False, dtype="bfloat16", key=random.key(0))
    for part in (layer.query_proj, layer.key_proj, layer.value_proj, layer.out_proj):
        part.weight = jnp.eye(64)
    half = jnp.asarray(x, "bfloat16")
    flat = layer(half.reshape(2, 33, 64)).reshape(2, 33, 4, 16)
    np.testing.assert_array_equal(flat, nn.dot_product_attention(half, half, half))
    assert abs(np.asarray(flat, float) - want).max() < 0.02
