"""Attention with options, positions and recurrent layers: against loops in NumPy, step by step, and misused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree

R = np.random.RandomState(0)


def close(a, b, tolerance=1e-6):
    np.testing.assert_allclose(np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=tolerance, atol=tolerance)


# -- positions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary_dim", [None, 4])
def test_rope_is_a_turn_of_complex_numbers(interleaved, rotary_dim):
    x, places = R.randn(2, 5, 3, 6), np.array([[0, 1, 2, 3, 4], [7, 9, 100, 5, 0]])
    n = (rotary_dim or 6) // 2
    want = x.copy()
    for b, t, h, i in itertools.product(range(2), range(5), range(3), range(n)):
        one, other = (2 * i, 2 * i + 1) if interleaved else (i, i + n)
        angle = places[b, t] * 500.0 ** (-2 * i / (2 * n))
        z = complex(x[b, t, h, one], x[b, t, h, other]) * np.exp(1j * angle)
        want[b, t, h, one], want[b, t, h, other] = z.real, z.imag
    rope = nn.RoPE(6, 500.0, rotary_dim=rotary_dim, interleaved=interleaved)
    close(rope(x, places), want, 1e-13)
    assert rope(x, places).dtype == np.float64
    close(rope(x.astype("f4"), places), want, 1e-5)
    close(rope(x), rope(x, np.arange(5)), 0)
    half = rope(jnp.asarray(x, "bfloat16"), places)
    assert half.dtype == jnp.bfloat16
    close(half, want, 2e-2)


def test_rope_depends_on_distances_alone():
    q, k = R.randn(2, 1, 1, 8)
    rope = nn.RoPE(8)
    product = lambda a, b: float((rope(q[None], [a]) * rope(k[None], [b])).sum())
    assert abs(product(3, 10) - product(1003, 1010)) < 1e-10
    assert abs(product(3, 10) - product(3, 11)) > 1e-3


def published_bucket(relative, bidirectional, buckets, distance):
    """The number of a bucket by the formula of T5: `relative` is where the key is, seen from the query."""
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if relative > 0 else 0
        n = abs(relative)
    else:
        n = max(-relative, 0)
    exact = buckets // 2
    if n < exact:
        return first + n
    # a little more than nothing is added for logarithms that should be integers, and are not quite
    more = int(math.log(n / exact) / math.log(distance / exact) * (buckets - exact) + 1e-9)
    return first + min(exact + more, buckets - 1)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("buckets, distance", [(32, 128), (8, 20), (6, 9), (16, 1000), (64, 64), (4, 3)])
def test_buckets_are_those_of_t5(bidirectional, buckets, distance):
    if buckets // (1 + bidirectional) // 2 >= distance:
        distance *= 2
    layer = nn.RelativePositions(1, buckets, distance, bidirectional, key=random.key(0))
    layer.weight = np.arange(buckets, dtype="f4")[:, None]
    keys = np.arange(-distance - 50, distance + 50)
    got = layer(np.array([3]), keys + 3)[0, 0]
    want = [published_bucket(int(n), bidirectional, buckets, distance) for n in keys]
    np.testing.assert_array_equal(got, want)


def test_biases_have_heads_queries_and_keys():
    layer = nn.RelativePositions(3, key=random.key(0))
    queries, keys = R.randint(0, 300, (2, 4)), R.randint(0, 300, (2, 5))
    weight = np.asarray(layer.weight)
    alibi = nn.ALiBi(3)
    slopes = [2.0**-4, 2.0**-8, 2.0**-2]
    for b, h, i, j in itertools.product(range(2), range(3), range(4), range(5)):
        far = int(keys[b, j] - queries[b, i])
        assert layer(queries, keys)[b, h, i, j] == weight[published_bucket(far, True, 32, 128), h]
        assert alibi(queries, keys)[b, h, i, j] == -slopes[h] * abs(far)
    assert alibi(queries.astype("uint8"), keys.astype("uint8")).shape == (2, 3, 4, 5)
    close(alibi(np.uint8([3]), np.uint8([200])), alibi(np.array([3]), np.array([200])), 0)


def test_slopes_of_the_paper():
    close(nn.ALiBi(8).slopes, [2.0**-i for i in range(1, 9)], 0)
    close(nn.ALiBi(16).slopes, [2.0 ** (-i / 2) for i in range(1, 17)], 1e-15)
    close(nn.ALiBi(12).slopes, [*[2.0**-i for i in range(1, 9)], *[2.0 ** -(i + 0.5) for i in range(4)]], 1e-15)
    close(nn.ALiBi(1).slopes, [2.0**-8], 0)
    assert nn.ALiBi(2)(np.arange(2), np.arange(3), "float64").dtype == np.float64


def test_sines_and_cosines():
    places = np.array([0, 1, 5, 1000])
    want = np.zeros((4, 6))
    for t, i in itertools.product(range(4), range(3)):
        angle = places[t] / 10000 ** (2 * i / 6)
        want[t, 2 * i : 2 * i + 2] = math.sin(angle), math.cos(angle)
    close(nn.SinusoidalPositions(6)(places), want, 1e-4)
    close(nn.SinusoidalPositions(6)(places.astype("f8")), want, 1e-13)
    halves = nn.SinusoidalPositions(6, interleaved=False, dtype="bfloat16")(places)
    assert halves.dtype == jnp.bfloat16
    close(halves, np.concatenate([want[:, ::2], want[:, 1::2]], 1), 1e-2)


# -- attention --------------------------------------------------------------------------------------------------------

KV_HEADS = (4, 2, 1)
WINDOWS = (None, 2, (1, 0), (0, 3))
POSITIONS = {
    "none": lambda: None,
    "rope": lambda: nn.RoPE(4),
    "rope, interleaved": lambda: nn.RoPE(4, 50.0, rotary_dim=2, interleaved=True),
    "alibi": lambda: nn.ALiBi(4),
    "relative": lambda: nn.RelativePositions(4, 8, 12, weight_init=nn.initializers.normal(1.0), key=random.key(9)),
    "relative, causal": lambda: nn.RelativePositions(
        4, 4, 5, False, weight_init=nn.initializers.normal(1.0), key=random.key(8)
    ),
}


def made(positions="none", **settings):
    return nn.MultiHeadAttention(16, 4, positions=POSITIONS[positions](), key=random.key(0), **settings).eval()


def looped(layer, x, context=None, mask=None, is_causal=False):
    """Attention in float64, query by query; each head of keys is used by its group of heads of queries."""
    p = {n: np.asarray(v, "f8") for n, v in nn.state_dict(layer, layout={}).items()}
    context = x if context is None else context
    inputs = (("query", x), ("key", context), ("value", context))
    q, k, v = [y @ p[f"{n}_proj.weight"] + p[f"{n}_proj.bias"] for n, y in inputs]
    q, k, v = [y.reshape(*y.shape[:2], -1, 4) for y in (q, k, v)]
    bias = np.zeros((4, x.shape[1], context.shape[1]))
    as_wide = lambda y: np.broadcast_to(np.asarray(y, "f8"), bias.shape)
    if isinstance(layer.positions, nn.RoPE):
        q, k = [np.asarray(layer.positions(y)) for y in (q, k)]
    elif layer.positions is not None:
        wide = "float64" if layer.query_proj.weight.dtype == np.float64 else "float32"
        bias = as_wide(layer.positions(np.arange(x.shape[1]), np.arange(context.shape[1]), wide))
    out = np.zeros(q.shape)
    for b, n, i in itertools.product(range(len(x)), range(4), range(x.shape[1])):
        own = n // (4 // layer.num_kv_heads)
        logits = k[b, :, own] @ q[b, i, n] / 2 + bias[n, i]
        for j in range(len(logits)):
            hidden = (is_causal and j > i) or (mask is not None and not mask[b, 0, i, j])
            if layer.local_window_size is not None:
                hidden |= not i - layer.local_window_size[0] <= j <= i + layer.local_window_size[1]
            if hidden:
                logits[j] = -np.inf
        weights = np.exp(logits - logits.max()) if np.isfinite(logits.max()) else np.ones(len(logits))
        out[b, i, n] = weights / weights.sum() @ v[b, :, own]
    return out.reshape(*out.shape[:2], -1) @ p["out_proj.weight"] + p["out_proj.bias"]


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kv_heads", KV_HEADS)
def test_attention_is_the_loop(positions, kv_heads):
    x = R.randn(2, 6, 16)
    mask = R.rand(2, 1, 6, 6) > 0.2
    mask[0, 0, 3] = False  # a query that sees nothing
    for window, is_causal in itertools.product(WINDOWS, (False, True)):
        layer = nn.cast(made(positions, num_kv_heads=kv_heads, local_window_size=window), param_dtype="float64")
        for m in (None, mask):
            want = looped(layer, x, mask=m, is_causal=is_causal)
            close(layer(x, mask=m, is_causal=is_causal), want, 1e-12)


@pytest.mark.parametrize("positions", POSITIONS)
def test_in_parts_it_is_the_loop(positions):
    x, mask = R.randn(2, 6, 16), (R.rand(2, 1, 6, 6) > 0.4) | np.eye(6, dtype=bool)
    for window, is_causal, m in ((None, False, None), (2, True, mask), ((0, 3), False, mask)):
        layer = nn.cast(
            made(positions, num_kv_heads=2, local_window_size=window, memory_efficient=True), param_dtype="float64"
        )
        run = atled.jit(lambda layer, x, m, is_causal=is_causal: layer(x, mask=m, is_causal=is_causal))
        close(run(layer, x, m), looped(layer, x, mask=m, is_causal=is_causal), 1e-12)


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kv_heads", KV_HEADS)
def test_decoding_is_the_whole_at_once(positions, kv_heads):
    x = jnp.asarray(R.randn(2, 9, 16))
    settings = [{"local_window_size": window} for window in (None, 2, (3, 1))]
    if kv_heads == 2:
        settings.append({"local_window_size": 2, "memory_efficient": True})
    for more in settings:
        layer = nn.cast(made(positions, num_kv_heads=kv_heads, **more), param_dtype="float64")
        whole = atled.jit(lambda m, x: m(x, is_causal=True))(layer, x)
        state = nn.init_cache(layer, 2, 11)
        assert state.cache["key"].shape == (2, kv_heads, 11, 4)
        step = atled.jit(lambda m, x: (m(x), m))
        for start, stop in ((0, 4), (4, 5), (5, 9)):
            out, state = step(state, x[:, start:stop])
            close(out, whole[:, start:stop], 1e-12)


def test_decoding_without_compiling():
    layer, x = made("rope", num_kv_heads=2, local_window_size=2), R.randn(1, 5, 16).astype("f4")
    state = nn.init_cache(layer, 1, 5)
    close(jnp.concatenate([state(x[:, :3]), state(x[:, 3:4]), state(x[:, 4:])], 1), layer(x, is_causal=True), 1e-5)


def test_gradients_of_the_efficient_way_are_the_same():
    x = jnp.asarray(R.randn(2, 7, 16))
    for positions in ("rope", "relative"):
        both = []
        for efficient in (False, True):
            layer = nn.cast(
                made(positions, num_kv_heads=2, local_window_size=3, memory_efficient=efficient), param_dtype="float64"
            )
            grads = atled.grad(lambda m, x: jnp.sum(jnp.sin(m(x, is_causal=True))), (0, 1))(layer, x)
            both.append(tree.leaves(grads))
        for a, b in zip(*both, strict=True):
            close(a, b, 1e-11)


def test_a_bias_of_ones_own():
    class Near(nn.Module):
        def __init__(self):
            self.strength = nn.Param(0.7)

        def __call__(self, queries, keys, dtype):
            return -self.strength * abs(keys - queries[:, None]).astype(dtype)

    x = R.randn(2, 5, 16).astype("f4")
    run = lambda efficient: nn.MultiHeadAttention(
        16, 4, num_kv_heads=2, positions=Near(), memory_efficient=efficient, key=random.key(0)
    )
    want = run(False)(x)
    close(run(True)(x), want, 1e-5)
    close(want, looped(run(False), x), 1e-5)


def test_a_query_that_sees_nothing_gives_the_mean():
    x = R.randn(1, 4, 16).astype("f4")
    for settings in ({}, {"num_kv_heads": 1, "positions": "alibi"}, {"positions": "relative", "local_window_size": 1}):
        layer = made(**settings)
        value = np.asarray(layer.value_proj(x)).reshape(1, 4, -1, 4).mean(1, keepdims=True)
        value = np.repeat(value, 4 // layer.num_kv_heads, 2).reshape(1, 1, 16)
        got = layer(x, mask=np.zeros((1, 1, 4, 4), bool))
        close(got, np.broadcast_to(layer.out_proj(value), got.shape), 1e-5)
        grads = atled.grad(lambda x, m=layer: jnp.sum(m(x, mask=np.zeros((4, 4), bool)) ** 2))(x)
        assert np.isfinite(np.asarray(grads)).all()


def test_masks_in_double_precision():
    layer, x = nn.cast(made(), param_dtype="float64"), R.randn(1, 3, 16)
    assert np.isfinite(np.asarray(layer(x, mask=np.zeros((1, 1, 3, 3), bool)))).all()
    assert np.isfinite(np.asarray(layer(x, is_causal=True))).all()


def test_cross_attention_with_positions():
    x, context = R.randn(2, 3, 16), R.randn(2, 5, 16)
    for positions in POSITIONS:
        layer = nn.cast(made(positions, num_kv_heads=2, local_window_size=3), param_dtype="float64")
        close(layer(x, context), looped(layer, x, context), 1e-12)
    x, context = x.astype("f4"), context.astype("f4")
    layer = nn.init_cache(made(local_window_size=3), 2, 5)
    with pytest.raises(
        ValueError, match="with positions or local_window_size, decoding with a context is not supported"
    ):
        layer(x, context)
    plain = made()
    close(nn.init_cache(plain, 2, 5)(x, context), plain(x, context))


def test_half_precision_keeps_long_distances_apart():
    """A bias of -500 and one of -501 are the same number in bfloat16, but not in the logits."""
    layer = nn.MultiHeadAttention(4, 1, positions=nn.ALiBi(1), dtype="bfloat16", key=random.key(0)).eval()
    near, far = layer.positions(np.array([0]), np.array([128_000, 128_256]))[0, 0]
    assert far - near == -1
    x = 0.1 * R.randn(1, 40, 4).astype("f4")
    wide = nn.MultiHeadAttention(4, 1, positions=nn.ALiBi(1), key=random.key(0)).eval()
    close(layer(x), wide(x), 2e-2)

    class Asked(nn.Module):
        def __call__(self, queries, keys, dtype):
            assert dtype == "float32"
            return jnp.zeros((1, 1), dtype)

    nn.MultiHeadAttention(4, 1, positions=Asked(), dtype="bfloat16", key=random.key(0))(x)


def test_no_batch_many_batches_and_nothing():
    layer = made("rope", num_kv_heads=2, local_window_size=2)
    x = R.randn(2, 3, 5, 16).astype("f4")
    whole = layer(x, is_causal=True)
    close(layer(x[0, 1], is_causal=True), whole[0, 1], 1e-5)
    assert layer(x[:, :0]).shape == (2, 0, 5, 16) and made()(x[0, :0]).shape == (0, 5, 16)
    close(made("relative")(x[0, :, :1]), looped(made("relative"), x[0, :, :1]), 1e-5)
    nan = x[0].copy()
    nan[0, 0] = np.nan
    out = np.asarray(layer(nan, is_causal=True))
    assert np.isnan(out[0, 0]).all() and np.isfinite(out[1:]).all()


def test_second_derivatives_and_vmap():
    layer, x = nn.cast(made("relative", num_kv_heads=2, local_window_size=2), param_dtype="float64"), R.randn(2, 4, 16)
    f = lambda x: jnp.sum(jnp.sin(layer(x, is_causal=True)))
    way = R.randn(*x.shape)
    slope = lambda h: atled.grad(f)(jnp.asarray(x + h * way))
    got = atled.jvp(atled.grad(f), (jnp.asarray(x),), (jnp.asarray(way),))[1]
    close(got, (slope(1e-5) - slope(-1e-5)) / 2e-5, 1e-6)
    close(atled.vmap(lambda x: layer(x, is_causal=True))(x), layer(x, is_causal=True), 1e-12)


def test_a_stack_decodes():
    make = lambda k: nn.MultiHeadAttention(8, 4, num_kv_heads=2, positions=nn.RoPE(2), local_window_size=2, key=k)
    stack = nn.Stack(make, 2, key=random.key(0)).eval()

    class Model(nn.Module):
        def __init__(self, stack):
            self.stack = stack

        def __call__(self, x):
            return self.stack(x, is_causal=True)

    model, x = Model(stack), R.randn(1, 5, 8).astype("f4")
    state = nn.init_cache(model, 1, 5)
    close(jnp.concatenate([state(x[:, i : i + 1]) for i in range(5)], 1), model(x), 1e-5)


BAD_POSITIONS = {
    r"RoPE: the number of rotated features must be even, and at most 5; got 5": lambda: nn.RoPE(5),
    r"RoPE: the number of rotated features must be even, and at most 4; got 6": lambda: nn.RoPE(4, rotary_dim=6),
    r"RoPE: base must be positive; got -1": lambda: nn.RoPE(4, -1),
    r"RoPE: the input must be floats \(…, time, heads, 4\); got f32\[3,4\]": lambda: nn.RoPE(4)(jnp.ones((3, 4))),
    r"RoPE: the input must be floats .*; got i32": lambda: nn.RoPE(4)(jnp.ones((3, 2, 4), int)),
    r"RoPE: there must be one position for each time step .*; got i32\[2\]": lambda: nn.RoPE(2)(
        jnp.ones((3, 1, 2)), jnp.arange(2)
    ),
    r"RelativePositions: num_buckets must be an even number of 4 or more; got 7": lambda: nn.RelativePositions(
        2, 7, key=random.key(0)
    ),
    r"RelativePositions: max_distance must be more than 8": lambda: nn.RelativePositions(2, 32, 8, key=random.key(0)),
    r"RelativePositions: num_heads must be 1 or more; got 0": lambda: nn.RelativePositions(0, key=random.key(0)),
    r"RelativePositions: a key must be given": lambda: nn.RelativePositions(2),
    r"ALiBi: num_heads must be 1 or more; got 0": lambda: nn.ALiBi(0),
    r"ALiBi: positions of keys must be integers": lambda: nn.ALiBi(2)(np.arange(2), np.ones(3)),
    r"ALiBi: positions of queries must be integers": lambda: nn.ALiBi(2)(1, np.arange(3)),
    r"SinusoidalPositions: the number of features must be even; got 3": lambda: nn.SinusoidalPositions(3),
    r"SinusoidalPositions: positions must be numbers; got bool": lambda: nn.SinusoidalPositions(4)(jnp.ones(2, bool)),
    r"MultiHeadAttention: RoPE must be for heads of length 4; got 8": lambda: nn.MultiHeadAttention(
        16, 4, positions=nn.RoPE(8), key=random.key(0)
    ),
    r"MultiHeadAttention: ALiBi must be for 4 heads; got 2": lambda: nn.MultiHeadAttention(
        16, 4, positions=nn.ALiBi(2), key=random.key(0)
    ),
    r"positions must be RoPE, RelativePositions or ALiBi; got str": lambda: nn.MultiHeadAttention(
        16, 4, positions="rope", key=random.key(0)
    ),
    r"positions must be RoPE.*; got SinusoidalPositions(.|\n)*try: x \+ nn.Sinusoidal": lambda: nn.MultiHeadAttention(
        16, 4, positions=nn.SinusoidalPositions(16), key=random.key(0)
    ),
    r"num_heads must divide in_features; got 0 for 16": lambda: nn.MultiHeadAttention(16, 0, key=random.key(0)),
    r"num_kv_heads must divide num_heads; got 3 for 4(.|\n)*try: num_kv_heads=2": lambda: made(num_kv_heads=3),
    r"num_kv_heads must divide num_heads; got 8 for 4": lambda: made(num_kv_heads=8),
    r"num_kv_heads must divide num_heads; got 0 for 4": lambda: made(num_kv_heads=0),
    r"local_window_size must be a number of positions, or \(left, right\); got -1": lambda: made(local_window_size=-1),
    r"local_window_size must be a number of positions.*; got \(1, 2, 3\)": lambda: made(local_window_size=(1, 2, 3)),
    r"local_window_size must be a number of positions.*; got 1\.5": lambda: made(local_window_size=1.5),
    r"with memory_efficient, dropout_rate must be 0; got 0\.1": lambda: made(memory_efficient=True, dropout_rate=0.1),
    r"with memory_efficient, the input must be \(batch, time": lambda: made(memory_efficient=True)(jnp.ones((3, 16))),
    r"its cache was made for a batch of 3; got 2(.|\n)*try: init_cache\(model, batch_size=2, max_length=5\)": lambda: (
        nn.init_cache(made(), 3, 5)(jnp.ones((2, 1, 16)))
    ),
}


@pytest.mark.parametrize("message", BAD_POSITIONS)
def test_what_does_not_fit_says_so(message):
    with pytest.raises((ValueError, TypeError), match=message):
        BAD_POSITIONS[message]()


# -- recurrent layers -------------------------------------------------------------------------------------------------

CELLS = {
    "plain": lambda key: nn.RNNCell(3, 4, key=key),
    "relu": lambda key: nn.RNNCell(3, 4, activation=nn.relu, key=key),
    "lstm": lambda key: nn.LSTMCell(3, 4, key=key),
    "gru": lambda key: nn.GRUCell(3, 4, bias_init=nn.initializers.normal(0.5), key=key),
    "conv": lambda key: nn.ConvLSTMCell(3, 4, (2, 3), key=key),
    "conv, circular": lambda key: nn.ConvLSTMCell(3, 4, (3,), padding="CIRCULAR", key=key),
}
PLACES = {"conv": (3, 4), "conv, circular": (5,)}


def sequences(name, *batch):
    return R.randn(*batch, 6, *PLACES.get(name, ()), 3)


def each_cell(function):
    return pytest.mark.parametrize("name", CELLS)(function)


def wide(layer):
    return nn.cast(layer, param_dtype="float64")


@each_cell
def test_steps_one_after_the_other(name):
    cell, x = wide(CELLS[name](random.key(0))), sequences(name, 2)
    state, out = cell.initial_state((2, *PLACES.get(name, ())), "float64"), []
    for t in range(6):
        state, y = cell(state, x[:, t])
        out.append(y)
    got, last = nn.RNN(cell)(x, return_state=True)
    close(got, np.stack(out, 1), 1e-12)
    for a, b in zip(tree.leaves(last), tree.leaves(state), strict=True):
        close(a, b, 1e-12)
    alone = nn.RNN(cell)(x[0])
    close(alone, got[0], 1e-12)
    assert nn.RNN(cell)(x[:0]).shape == (0, *got.shape[1:]) and nn.RNN(cell)(x[:, :0]).shape[1] == 0


@each_cell
@pytest.mark.parametrize("reverse", [False, True])
def test_lengths_are_each_sequence_alone(name, reverse):
    cell, x, lengths = wide(CELLS[name](random.key(0))), sequences(name, 4), np.array([6, 1, 4, 0])
    rnn = nn.RNN(cell, reverse=reverse)
    start = tree.map(
        lambda x: jnp.asarray(R.randn(*x.shape)), cell.initial_state((4, *PLACES.get(name, ())), "float64")
    )
    for first in (None, start):
        got, last = atled.jit(lambda m, x, n, s: m(x, s, lengths=n, return_state=True))(rnn, x, lengths, first)
        for i, n in enumerate(lengths):
            own = None if first is None else tree.map(lambda x, i=i: x[i], first)
            want, state = rnn(x[i, :n], own, return_state=True)
            close(got[i, :n], want, 1e-12)
            assert not np.asarray(got[i, n:]).any()
            for a, b in zip(tree.leaves(last), tree.leaves(state), strict=True):
                close(a[i], b, 1e-12)


@each_cell
def test_what_is_past_a_length_does_not_matter(name):
    rnn, x, lengths = nn.RNN(CELLS[name](random.key(0))), sequences(name, 3).astype("f4"), np.array([2, 6, 0])
    bad = x.copy()
    bad[0, 2:] = np.nan
    bad[2] = np.inf
    f = atled.value_and_grad(lambda m, x: jnp.sum(m(x, lengths=lengths) ** 2), (0, 1))
    (a, grads), (b, others) = f(rnn, x), f(rnn, bad)
    assert a == b
    for p, q in zip(tree.leaves(grads), tree.leaves(others), strict=True):
        np.testing.assert_array_equal(p, q)
    assert not np.asarray(grads[1])[0, 2:].any()
    bad[1, 3] = np.nan  # this one is not past the end
    assert np.isnan(float(f(rnn, bad)[0]))


def test_lengths_of_several_axes_and_of_one_sequence():
    rnn, x = nn.RNN(nn.GRUCell(3, 4, key=random.key(0))), R.randn(2, 3, 5, 3).astype("f4")
    lengths = np.array([[1, 5, 2], [0, 3, 4]])
    got = rnn(x, lengths=lengths)
    for i, j in itertools.product(range(2), range(3)):
        close(got[i, j], rnn(x[i, j], lengths=lengths[i, j]), 1e-6)
    close(atled.vmap(lambda x, n: rnn(x, lengths=n))(x, lengths), got, 1e-6)


@pytest.mark.parametrize("merge", ["concatenate", "sum", "mean", "product", lambda a, b: a - b])
def test_both_directions(merge):
    one, two = [wide(nn.GRUCell(3, 4, key=random.key(i))) for i in range(2)]
    x, lengths = R.randn(3, 5, 3), np.array([5, 2, 3])
    a, first = nn.RNN(one)(x, lengths=lengths, return_state=True)
    b, second = nn.RNN(two, reverse=True)(x, lengths=lengths, return_state=True)
    want = {
        "concatenate": np.concatenate([a, b], -1), "sum": a + b, "mean": (a + b) / 2, "product": a * b,
    }.get(merge, a - b)  # fmt: skip
    for layer in (
        nn.Bidirectional(one, two, merge_mode=merge),
        nn.Bidirectional(nn.RNN(one), nn.RNN(two, reverse=True, unroll=2), merge_mode=merge),
    ):
        got, states = layer(x, lengths=lengths, return_state=True)
        close(got, want, 1e-14)
        close(states[0], first, 1e-14)
        close(states[1], second, 1e-14)
    again = layer(x, states)
    close(again, nn.Bidirectional(one, two, merge_mode=merge)(x, (first, second)), 1e-14)


def test_gru_applies_the_reset_gate_after_the_product():
    cell = wide(CELLS["gru"](random.key(0)))
    h, x = R.randn(4), R.randn(3)
    w, u, b, s = [np.asarray(p).reshape(-1, 3, 4) for p in tree.leaves(cell)]
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    r, z = [sigmoid(x @ w[:, i] + b[0, i] + h @ u[:, i] + s[0, i]) for i in range(2)]
    n = np.tanh(x @ w[:, 2] + b[0, 2] + r * (h @ u[:, 2] + s[0, 2]))
    close(cell(h, x)[1], (1 - z) * n + z * h, 1e-13)


def test_convolutions_for_products_in_a_loop():
    cell = wide(nn.ConvLSTMCell(2, 3, (3,), key=random.key(0)))
    c, h, x = R.randn(4, 3), R.randn(4, 3), R.randn(4, 2)
    p = {n: np.asarray(v) for n, v in nn.state_dict(cell, layout={}).items()}
    gates = np.zeros((4, 12)) + p["input_conv.bias"]
    for t, k in itertools.product(range(4), range(3)):
        if 0 <= t + k - 1 < 4:
            gates[t] += x[t + k - 1] @ p["input_conv.weight"][k] + h[t + k - 1] @ p["state_conv.weight"][k]
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    i, f, g, o = np.split(gates, 4, -1)
    (got_c, got_h), y = cell((c, h), x)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    close(got_c, c, 1e-13)
    close(got_h, sigmoid(o) * np.tanh(c), 1e-13)
    close(y, got_h, 0)


@each_cell
def test_half_precision_and_states_of_other_dtypes(name):
    cell = nn.cast(CELLS[name](random.key(0)), compute_dtype="bfloat16")
    x = sequences(name, 2).astype("f4")
    out, state = nn.RNN(cell)(x, return_state=True)
    assert out.dtype == jnp.bfloat16 and all([s.dtype == jnp.bfloat16 for s in tree.leaves(state)])
    close(out, nn.RNN(CELLS[name](random.key(0)))(x), 5e-2)
    start = cell.initial_state((2, *PLACES.get(name, ())), "float32")
    for lengths in (None, np.array([3, 6])):
        found = tree.leaves(nn.RNN(cell)(x, start, lengths=lengths, return_state=True))
        assert all([s.dtype == jnp.bfloat16 for s in found])
    assert all([s.dtype == jnp.bfloat16 for s in tree.leaves(cell.initial_state())])


@each_cell
def test_second_derivatives_of_cells(name):
    rnn, x = nn.RNN(wide(CELLS[name](random.key(0)))), jnp.asarray(sequences(name, 2))
    f = lambda x: jnp.sum(jnp.sin(rnn(x, lengths=np.array([6, 3]))))
    way = jnp.asarray(R.randn(*x.shape))
    got = atled.jvp(atled.grad(f), (x,), (way,))[1]
    close(got, (atled.grad(f)(x + 1e-5 * way) - atled.grad(f)(x - 1e-5 * way)) / 2e-5, 1e-6)


@each_cell
def test_a_cell_says_what_its_method_is_called_now(name):
    with pytest.raises(AttributeError, match=r"Cell\.start was renamed to initial_state in 0\.1"):
        CELLS[name](random.key(0)).start


def test_a_cell_of_ones_own_with_lengths():
    class Sum(nn.Module):
        def initial_state(self, batch_shape):
            return {"sum": jnp.zeros((*batch_shape, 2))}

        def __call__(self, state, x):
            return {"sum": state["sum"] + x}, state["sum"] + x

    x = R.randn(2, 4, 2).astype("f4")
    out, last = nn.RNN(Sum())(x, lengths=np.array([4, 2]), return_state=True)
    close(out[0], np.cumsum(x[0], 0), 1e-5)
    close(last["sum"], [x[0].sum(0), x[1, :2].sum(0)], 1e-5)


LSTM, GRU, PLAIN, CONV = [
    CELLS[n](random.key(i)) for i, n in enumerate(("lstm", "gru", "plain", "conv"))
]  # of 3 inputs and 4 features
X = jnp.ones((2, 3))
BAD_CELLS = {
    r"LSTMCell: the first argument must be the state, a pair \(cell, output\) of arrays \(…, 4\); got f32\[2,3\].*"
    r"(.|\n)*try: cell\(state, x\), from cell\.initial_state": lambda: LSTM(X, LSTM.initial_state((2,))),
    r"LSTMCell: the first argument must be the state, a pair .*; got f32\[2,4\], f32\[2,5\]": lambda: LSTM(
        (jnp.ones((2, 4)), jnp.ones((2, 5))), X
    ),
    r"GRUCell: the first argument must be the state, an array \(…, 4\); got f32\[2,3\]": lambda: GRU(
        X, GRU.initial_state((2,))
    ),
    r"GRUCell: the first argument must be the state, an array \(…, 4\); got tuple": lambda: GRU(
        LSTM.initial_state((2,)), X
    ),
    r"RNNCell: the first argument must be the state, an array \(…, 4\); got None": lambda: PLAIN(None, X),
    r"ConvLSTMCell: the first argument must be the state, a pair": lambda: CONV(
        jnp.ones((2, 3, 4, 3)), CONV.initial_state((2, 3, 4))
    ),
    r"ConvLSTMCell: an input must have 3 axes, or more with batch axes; got f32\[3\]": lambda: CONV(
        CONV.initial_state(), jnp.ones(3)
    ),
    r"ConvLSTMCell: padding must be SAME or CIRCULAR, .*; got 'VALID'": lambda: nn.ConvLSTMCell(
        3, 4, (3,), padding="VALID", key=random.key(0)
    ),
    r"GRUCell: the last axis of the input must have length 3; got f32\[2,4\]": lambda: GRU(
        GRU.initial_state((2,)), jnp.ones((2, 4))
    ),
    r"GRUCell: the last axis of the input must have length 3; got f32\[2,5,4\]": lambda: nn.RNN(GRU)(
        jnp.ones((2, 5, 4))
    ),
    r"GRUCell: a key must be given": lambda: nn.GRUCell(3, 4),
    r"ConvLSTMCell: a key must be given": lambda: nn.ConvLSTMCell(3, 4, (3,)),
    r"RNN: a cell must have initial_state and __call__; got type": lambda: nn.RNN(nn.GRUCell),
    r"RNN: the input must be \(…, time, features\) for its cell; got f32\[3\]": lambda: nn.RNN(GRU)(jnp.ones(3)),
    r"RNN: lengths must be integers of the shape \(2,\), .*; got f32\[2\]": lambda: nn.RNN(GRU)(
        jnp.ones((2, 5, 3)), lengths=jnp.ones(2)
    ),
    r"RNN: lengths must be integers of the shape \(2,\), .*; got i32\[3\]": lambda: nn.RNN(GRU)(
        jnp.ones((2, 5, 3)), lengths=jnp.arange(3)
    ),
    r"LSTMCell: the first argument must be the state": lambda: nn.RNN(LSTM)(jnp.ones((2, 5, 3)), jnp.ones((2, 4))),
    r"Bidirectional: forward and backward must be two cells; got the same one twice": lambda: nn.Bidirectional(
        GRU, GRU
    ),
    r"Bidirectional: merge_mode must be one of concatenate, sum, mean, product, or a function; got 'add'": lambda: (
        nn.Bidirectional(GRU, LSTM, merge_mode="add")
    ),
    r"Bidirectional: forward must be an RNN with reverse=False, .*; got False and False": lambda: nn.Bidirectional(
        GRU, nn.RNN(LSTM)
    ),
    r"Bidirectional: a state must be a pair, one for each cell; got f32": lambda: nn.Bidirectional(GRU, PLAIN)(
        jnp.ones((2, 5, 3)), jnp.ones((2, 4))
    ),
}


@pytest.mark.parametrize("message", BAD_CELLS)
def test_misused_cells_say_so(message):
    with pytest.raises((ValueError, TypeError), match=message):
        BAD_CELLS[message]()
