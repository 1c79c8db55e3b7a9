"""Attention against a loop in float64, and its derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.nn import dot_product_attention

R = np.random.RandomState(0)
B, T, S, N, H = 2, 5, 6, 4, 3
QUERY = R.randn(B, T, N, H).astype("f4")
KEYS = {k: R.randn(2, B, S, k, H).astype("f4") for k in (1, 2, 4)}
MASK = R.rand(B, N, T, S) > 0.4
MASK[0, 1, 2] = False  # a query that sees nothing


def test_a_loop_over_heads_in_double_precision():
    key, value = KEYS[2].astype(float)
    query = QUERY.astype(float)
    got = dot_product_attention(query, key, value, mask=MASK | True, is_causal=True)
    assert got.dtype == np.float64
    want = np.zeros(QUERY.shape)
    for b in range(B):
        for n in range(N):
            logits = query[b, :, n] @ key[b, :, n // 2].T / np.sqrt(H)
            weights = np.tril(np.exp(logits))
            want[b, :, n] = weights / weights.sum(1, keepdims=True) @ value[b, :, n // 2]
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_a_query_without_keys_gives_the_mean_and_finite_gradients():
    key, value = KEYS[4]
    f = lambda q, k, v: dot_product_attention(q, k, v, mask=MASK)
    np.testing.assert_allclose(f(QUERY, key, value)[0, 2, 1], value[0, :, 1].mean(0), rtol=1e-5, atol=1e-6)
    for x in atled.grad(lambda *xs: jnp.sum(f(*xs)), (0, 1, 2))(QUERY, key, value):
        assert np.isfinite(np.asarray(x)).all()
    # queries past their end are zero
    out = dot_product_attention(QUERY, key, value, query_seq_lengths=np.array([1, 0]))
    assert not np.asarray(out)[1].any() and not np.asarray(out)[0, 1:].any() and np.asarray(out)[0, 0].all()


def test_three_axes_vmap_and_jit():
    key, value = KEYS[2]
    whole = dot_product_attention(QUERY, key, value, is_causal=True)
    alone = [dot_product_attention(q, k, v, is_causal=True) for q, k, v in zip(QUERY, key, value)]
    assert alone[0].shape == QUERY.shape[1:]
    np.testing.assert_allclose(np.stack(alone), whole, rtol=1e-5, atol=1e-6)
    f = lambda q, k, v: dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(atled.vmap(f)(QUERY, key, value), whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(atled.jit(f)(QUERY, key, value), whole, rtol=1e-5, atol=1e-6)
    _, total = dot_product_attention(QUERY[0], key[0], value[0], return_residual=True)
    assert total.shape == (T, N)
    lengths = np.array([3, 5])
    one = lambda q, k, v, n: dot_product_attention(q, k, v, key_value_seq_lengths=n[None])
    want = dot_product_attention(QUERY, key, value, key_value_seq_lengths=lengths)
    np.testing.assert_allclose(atled.vmap(one)(QUERY, key, value, lengths), want, rtol=1e-5, atol=1e-6)


def test_derivatives_against_differences():
    with atled.enable_x64():
        query, (key, value) = jnp.asarray(QUERY[:1].astype(float)), jnp.asarray(KEYS[2][:, :1].astype(float))
        bias = jnp.asarray(R.randn(1, N, T, S))
        f = lambda *xs: jnp.sum(jnp.sin(dot_product_attention(*xs, is_causal=True)))
        operands = (query, key, value, bias)
        for i, slope in enumerate(atled.grad(f, (0, 1, 2, 3))(*operands)):
            way = R.randn(*operands[i].shape)
            at = lambda h, i=i, way=way: float(f(*operands[:i], operands[i] + h * way, *operands[i + 1 :]))
            np.testing.assert_allclose(float(jnp.sum(slope * way)), (at(1e-5) - at(-1e-5)) / 2e-5, rtol=1e-7)


def test_what_does_not_fit_raises():
    key, value = KEYS[2]
    attend = dot_product_attention
    with pytest.raises(ValueError, match="value must have the shape"):
        attend(QUERY, key, value[:, 1:])
    with pytest.raises(ValueError, match="query must have the dtype float32"):
        attend(QUERY.astype("f2"), key, value)
    with pytest.raises(ValueError, match="query heads must be a multiple of the 2"):
        attend(QUERY[:, :, :3], key, value)
    with pytest.raises(ValueError, match="mask must be bool"):
        attend(QUERY, key, value, mask=MASK.astype("f4"))
    with pytest.raises(ValueError, match="mask must broadcast to the shape"):
        attend(QUERY, key, value, mask=MASK[:, :3])
    with pytest.raises(ValueError, match="implementation must be None or 'xla'; got 'cudnn'"):
        attend(QUERY, key, value, implementation="cudnn")
    with pytest.raises(ValueError, match="query_seq_lengths must have the shape"):
        attend(QUERY, key, value, query_seq_lengths=np.int32([1, 2, 3]))
    with pytest.raises(ValueError, match="key_value_seq_lengths must be integers"):
        attend(QUERY, key, value, key_value_seq_lengths=np.float32([1, 2]))
    with pytest.raises(ValueError, match="operands must be floating"):
        attend(QUERY.astype(int), key.astype(int), value.astype(int))
    with pytest.raises(ValueError, match="key must have the axes"):
        attend(QUERY, key[None], value)
