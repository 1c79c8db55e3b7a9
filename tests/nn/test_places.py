"""Convolutions, pooling, normalization and dropout: against loops in float64, at their edges, and what they refuse."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree

R = np.random.RandomState(0)
LINE, IMAGE = R.randn(2, 9, 4), R.randn(2, 7, 6, 4)


def key(seed=0):
    return random.key(seed)


def check_derivatives(f, x, tolerance=1e-6):
    """First and second derivatives along a direction against differences, in float64."""
    x, way = jnp.asarray(x), jnp.asarray(np.random.RandomState(5).randn(*x.shape))
    total = lambda x: jnp.sum(jnp.sin(f(x)))
    slope = lambda x: jnp.sum(atled.grad(total)(x) * way)
    for g, small in ((total, slope(x)), (slope, jnp.sum(atled.grad(slope)(x) * way))):
        difference = (g(x + 1e-5 * way) - g(x - 1e-5 * way)) / 2e-5
        np.testing.assert_allclose(float(small), float(difference), rtol=tolerance, atol=1e-6)


# -- convolutions -----------------------------------------------------------------------------------------------------

WINDOWS = [  # size, stride, dilation, groups
    ((3,), (1,), (1,), 1), ((4,), (1,), (1,), 2), ((3,), (3,), (1,), 1), ((2,), (3,), (1,), 1), ((5,), (2,), (2,), 2),
    ((3, 2), (1, 2), (2, 1), 1), ((2, 4), (3, 1), (1, 2), 2),
]  # fmt: skip


@pytest.mark.parametrize("padding", ["SAME", "VALID", "CIRCULAR", "numbers"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_it_is_the_transpose_of_the_convolution(window, padding):
    size, stride, dilation, groups = window
    pairs = tuple([(1, 0), (0, 2)][: len(size)])
    settings = {"strides": stride, "dilation": dilation, "groups": groups, "padding": padding, "param_dtype": "float64"}
    if padding == "numbers":
        settings["padding"] = pairs
    up = nn.ConvTranspose(4, 6, size, use_bias=False, key=key(), **settings)
    y = R.randn(2, *[5, 4][: len(size)], 4)
    out = up(y)
    down = nn.Conv(6, 4, size, use_bias=False, key=key(1), **settings)
    assert down.weight.shape == up.weight.shape
    down.weight = up.weight
    if padding in ("SAME", "CIRCULAR"):
        assert out.shape[1:-1] == tuple([n * s for n, s in zip(y.shape[1:-1], stride, strict=True)])
    x = R.randn(*out.shape)
    np.testing.assert_allclose(float(jnp.vdot(down(x), y)), float(jnp.vdot(x, out)), rtol=1e-12)


def test_a_transposed_convolution_in_a_loop():
    up = nn.ConvTranspose(4, 3, (3, 2), strides=(2, 3), dilation=(2, 1), padding=0, param_dtype="float64", key=key())
    weight = np.asarray(up.weight)
    want = np.zeros((2, 6 * 2 + 5, 5 * 3 + 2, 3))
    for i, j, a, b in itertools.product(range(7), range(6), range(3), range(2)):
        want[:, 2 * i + 2 * a, 3 * j + b] += IMAGE[:, i, j] @ weight[a, b].T
    np.testing.assert_allclose(up(IMAGE), want, rtol=1e-12, atol=1e-12)
    more = nn.ConvTranspose(
        4, 3, (3, 2), strides=(2, 3), dilation=(2, 1), padding=((1, 3), 0), output_padding=(1, 2),
        param_dtype="float64", key=key(),
    )  # fmt: skip
    np.testing.assert_allclose(more(IMAGE)[:, :, :-2], want[:, 1:-2], rtol=1e-12, atol=1e-12)
    assert not np.asarray(more(IMAGE))[:, :, -2:].any()


def test_first_weights_of_a_transposed_convolution_keep_variances():
    for groups in (1, 4):
        up = nn.ConvTranspose(64, 64, (3, 3), strides=1, groups=groups, key=key())
        y = up(random.normal(key(1), (4, 16, 16, 64)))[:, 2:-2, 2:-2]
        assert 0.9 < float(y.var()) < 1.1


@pytest.mark.parametrize("padding, mode", [("REFLECT", "reflect"), ("REPLICATE", "edge"), ("CIRCULAR", "wrap")])
def test_paddings_that_repeat_the_input(padding, mode):
    settings = {"strides": (2, 1), "dilation": (1, 2), "param_dtype": "float64"}
    conv = nn.Conv(4, 3, (4, 3), padding=padding, key=key(), **settings)
    plain = nn.Conv(4, 3, (4, 3), padding="VALID", key=key(), **settings)
    want = plain(np.pad(IMAGE, ((0, 0), (1, 2), (2, 2), (0, 0)), mode))
    np.testing.assert_allclose(conv(IMAGE), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(conv(IMAGE[0]), want[0], rtol=1e-12, atol=1e-12)
    check_derivatives(conv, IMAGE)


def test_a_causal_convolution_does_not_look_ahead():
    conv = nn.Conv(4, 3, (3, 2), dilation=(1, 2), padding="CAUSAL", param_dtype="float64", key=key())
    moved = IMAGE.copy()
    moved[:, 4:, :] += 1
    moved[:, :, 3:] += 1
    a, b = conv(IMAGE), conv(moved)
    np.testing.assert_array_equal(a[:, :4, :3], b[:, :4, :3])
    assert (np.asarray(a[:, 4:, 3:]) != np.asarray(b[:, 4:, 3:])).all()
    assert a.shape == (2, 7, 6, 3)


def test_four_axes_and_no_batch():
    x = R.randn(1, 3, 4, 3, 2, 2).astype("f4")
    up = nn.ConvTranspose(2, 3, (2, 2, 2, 2), strides=2, key=key())
    assert up(x).shape == (1, 6, 8, 6, 4, 3) and up(x[0]).shape == (6, 8, 6, 4, 3)
    pool = nn.MaxPool((2, 2, 1, 2), strides=1)
    np.testing.assert_array_equal(pool(x)[0], pool(x[0]))
    assert pool(x).shape == (1, 2, 3, 3, 1, 2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_dtypes_of_convolutions(dtype):
    x = jnp.asarray(LINE, dtype)
    for layer in (
        nn.Conv1d(4, 4, 3, padding="REFLECT", param_dtype=dtype, key=key()),
        nn.ConvTranspose1d(4, 4, 3, padding="CIRCULAR", param_dtype=dtype, key=key()),
    ):
        assert layer(x).dtype == jnp.dtype(dtype)
        assert type(layer)(4, 4, 3, dtype=dtype, key=key())(LINE.astype("f4")).dtype == jnp.dtype(dtype)


def test_no_examples():
    for layer in (
        nn.ConvTranspose1d(4, 3, 3, padding="CIRCULAR", key=key()), nn.Conv1d(4, 3, 3, padding="REFLECT", key=key()),
        nn.MaxPool1d(3), nn.AvgPool1d(3, padding=1), nn.AdaptiveAvgPool1d(4), nn.AdaptiveMaxPool1d(3),
        nn.GlobalAvgPool(), nn.GlobalMaxPool(), nn.GroupNorm(4, 2), nn.InstanceNorm(4), nn.RMSNorm(4),
        nn.WeightNorm(nn.Linear(4, 3, key=key())), nn.SpectralNorm(nn.Linear(4, 3, key=key())),
    ):  # fmt: skip
        assert layer(jnp.zeros((0, 9, 4))).shape[0] == 0


# -- pooling ----------------------------------------------------------------------------------------------------------


def pooled(x, size, stride, padding, f):
    """A loop over windows; each is handed to a function, without what is beyond the ends."""
    n = len(size)
    lengths = x.shape[1:-1]
    dims = [
        (m + sum(p) - k) // s + 1 for m, k, s, p in zip(lengths, size, stride, padding, strict=True)
    ]  # fmt: skip
    out = np.zeros((x.shape[0], *dims, x.shape[-1]))
    for at in itertools.product(*[range(d) for d in dims]):
        starts = [i * s - p[0] for i, s, p in zip(at, stride, padding, strict=True)]
        where = [slice(max(a, 0), min(a + k, m)) for a, k, m in zip(starts, size, lengths, strict=True)]
        out[(slice(None), *at)] = f(x[(slice(None), *where)], tuple(range(1, n + 1)))
    return out


POOLS = [  # places, size, stride, padding
    ((9,), (3,), (2,), ((0, 0),)),
    ((9,), (4,), (3,), ((2, 1),)),
    ((7, 6), (3, 2), (2, 2), ((1, 2), (0, 1))),
    ((7, 6), (3, 5), (1, 3), ((2, 0), (4, 3))),
    ((4, 3, 5), (2, 2, 3), (1, 2, 2), ((1, 0), (1, 1), (0, 2))),
    ((3, 3, 2, 4), (2, 1, 2, 2), (1, 2, 1, 2), ((0, 1), (0, 0), (1, 1), (0, 0))),
]


@pytest.mark.parametrize("places, size, stride, padding", POOLS, ids=str)
def test_pooling_in_a_loop(places, size, stride, padding):
    x = R.randn(2, *places, 3)
    for got, f in (
        (nn.max_pool(x, size, stride, padding), np.max),
        (nn.avg_pool(x, size, stride, padding), np.mean),
        (nn.avg_pool(x, size, stride, padding, count_include_pad=True), lambda w, a: w.sum(a) / math.prod(size)),
    ):
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, pooled(x, size, stride, padding, f), rtol=1e-12, atol=1e-12)
    check_derivatives(lambda x: nn.max_pool(x, size, stride, padding), x)
    check_derivatives(lambda x: nn.avg_pool(x, size, stride, padding), x)


@pytest.mark.parametrize(
    "places, size",
    [((9,), (4,)), ((8,), (3,)), ((9,), (3,)), ((7, 6), (3, 9)), ((7, 6), (1, None)), ((4, 3, 5), (3, 3, 2))],
)
def test_as_many_windows_as_asked_for(places, size):
    x = R.randn(2, *places, 3)
    y = {"mean": x, "max": x}
    for axis, (n, m) in enumerate(zip(places, size, strict=True), 1):
        ends = [(i * n // (m or n), math.ceil((i + 1) * n / (m or n))) for i in range(m or n)]
        for f, v in y.items():
            y[f] = np.concatenate([getattr(v.take(range(*e), axis), f)(axis, keepdims=True) for e in ends], axis)
    for layer, want in ((nn.AdaptiveAvgPool(size), y["mean"]), (nn.AdaptiveMaxPool(size), y["max"])):
        np.testing.assert_allclose(layer(x), want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(layer(x[0]), want[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(atled.jit(layer)(x), want, rtol=1e-12, atol=1e-12)
        check_derivatives(layer, x)


def test_pooling_over_all_places():
    np.testing.assert_allclose(nn.GlobalAvgPool()(IMAGE), IMAGE.mean((1, 2)), rtol=1e-12)
    np.testing.assert_allclose(nn.GlobalMaxPool(keepdims=True)(IMAGE), IMAGE.max((1, 2), keepdims=True), rtol=1e-12)
    check_derivatives(nn.GlobalAvgPool(), IMAGE)
    check_derivatives(nn.GlobalMaxPool(), IMAGE)


def test_nan_stays_in_its_windows():
    x = R.randn(1, 8, 1).astype("f4")
    x[0, 4] = np.nan
    for layer, where in (
        (nn.MaxPool1d(2), [2]), (nn.AvgPool1d(2), [2]), (nn.MaxPool1d(3, strides=1, padding=1), [3, 4, 5]),
        (nn.AvgPool1d(3, strides=1, padding=1), [3, 4, 5]), (nn.AdaptiveAvgPool1d(3), [1]),
        (nn.AdaptiveMaxPool1d(3), [1]), (nn.AdaptiveAvgPool1d(4), [2]), (nn.GlobalMaxPool(), [0]),
        (nn.GlobalAvgPool(), [0]),
    ):  # fmt: skip
        assert np.flatnonzero(np.isnan(np.asarray(layer(x)))).tolist() == where, layer
        assert np.flatnonzero(np.isnan(np.asarray(atled.jit(layer)(x)))).tolist() == where, layer
    x[0, 4] = np.inf
    assert np.flatnonzero(~np.isfinite(np.asarray(nn.AdaptiveAvgPool1d(3)(x)))).tolist() == [1]
    x[:] = -np.inf
    assert (np.asarray(nn.max_pool(x, (3,), 1, 1)) == -np.inf).all()


def test_at_ties_gradients_are_not_doubled():
    zeros = jnp.zeros((1, 8, 1))
    for pool in (nn.MaxPool1d(2), nn.AdaptiveMaxPool1d(4), nn.AdaptiveMaxPool1d(3), nn.GlobalMaxPool()):
        grads = atled.grad(lambda x, pool=pool: jnp.sum(pool(x)))(zeros)
        np.testing.assert_allclose(float(grads.sum()), pool(zeros).size, rtol=1e-6)
    first = atled.grad(lambda x: jnp.sum(nn.max_pool(x, (4,))))(zeros)
    np.testing.assert_array_equal(first.ravel(), [1, 0, 0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_dtypes_of_pooling(dtype):
    x = jnp.full((1, 4096, 1), 1.25, dtype)
    for pool in (
        nn.MaxPool1d(4096),
        nn.AvgPool1d(4096),
        nn.AdaptiveAvgPool1d(1),
        nn.AdaptiveAvgPool1d(3),
        nn.GlobalAvgPool(),
    ):
        assert pool(x).dtype == jnp.dtype(dtype)
        np.testing.assert_array_equal(
            np.asarray(pool(x)).astype("f4"), np.float32(1.25)
        )  # sums in bfloat16 stop at 256
    assert not np.isinf(np.asarray(nn.avg_pool(jnp.full((1, 4096, 1), 60000.0, dtype), (4096,))).astype("f8")).any()


def test_integers_in_pooling():
    x = np.arange(-8, 0).reshape(1, 8, 1)
    top = nn.max_pool(x.astype("i4"), (3,), 2, 1)
    assert top.dtype == np.int32 and top.ravel().tolist() == [-7, -5, -3, -1]
    mean = nn.avg_pool(np.full((1, 4, 1), 2**31 - 1, "i4"), (4,))
    assert mean.dtype == np.float32 and abs(float(mean[0, 0, 0]) - 2**31) < 256
    assert nn.GlobalAvgPool()(x.astype("i4")).dtype == np.float32


def test_windows_larger_than_the_input():
    assert nn.max_pool(jnp.ones((1, 2, 1)), (5,), 1, "SAME").shape == (1, 2, 1)
    np.testing.assert_allclose(nn.avg_pool(jnp.ones((1, 2, 1)), (5,), 1, "SAME").ravel(), [1, 1])


# -- normalization ----------------------------------------------------------------------------------------------------


def test_normalization_in_double_precision():
    x = IMAGE * 3 + 1
    scale, bias = R.rand(4) + 0.5, R.randn(4)
    groups = x.reshape(2, 7, 6, 2, 2)
    mean, variance = [getattr(groups, f)((1, 2, 4), keepdims=True) for f in ("mean", "var")]
    want = {
        nn.RMSNorm: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) * scale,
        nn.GroupNorm: ((groups - mean) / np.sqrt(variance + 1e-3)).reshape(x.shape) * scale + bias,
        nn.InstanceNorm: (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-3) * scale
        + bias,
    }
    for kind, y in want.items():
        layer = kind(4, *[2] * (kind is nn.GroupNorm), eps=1e-3, param_dtype="float64")
        layer.scale = scale
        if kind is not nn.RMSNorm:
            layer.bias = bias
        got = layer(x)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, y, rtol=1e-12, atol=1e-12)
        check_derivatives(layer, x)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_statistics_are_wide(dtype):
    """With a mean of 100, squares in half precision would cancel or run over."""
    x = jnp.asarray(IMAGE + 100, dtype)
    exact = np.asarray(x).astype("f8")
    for kind, axes in ((nn.InstanceNorm, (1, 2)), (nn.GroupNorm, (1, 2, 3)), (nn.RMSNorm, None)):
        layer = kind(4, *[1] * (kind is nn.GroupNorm), param_dtype=dtype)
        y = layer(x * 10 if axes is None else x)
        assert y.dtype == jnp.dtype(dtype)
        if axes is None:
            want = exact * 10 / np.sqrt(((exact * 10) ** 2).mean(-1, keepdims=True))
        else:
            want = (exact - exact.mean(axes, keepdims=True)) / exact.std(axes, keepdims=True)
        np.testing.assert_allclose(np.asarray(y).astype("f8"), want, rtol=2e-2, atol=2e-2)


def test_integers_are_normalized_as_floats():
    x = np.full((2, 4), 10**6, "i4")  # squares run over in int32
    np.testing.assert_allclose(nn.RMSNorm(4)(x), np.ones((2, 4)), rtol=1e-6)
    np.testing.assert_allclose(nn.LayerNorm(4)(np.arange(4, dtype="u1")), nn.LayerNorm(4)(jnp.arange(4.0)), rtol=1e-6)


def test_nan_stays_with_its_example():
    x = IMAGE.astype("f4")
    x[0, 1, 2, 3] = np.nan
    for layer in (nn.GroupNorm(4, 2), nn.InstanceNorm(4)):
        y = np.isnan(np.asarray(layer(x)))
        assert y[0, ..., 3].all() and not y[1].any() and not y[0, ..., :2].any()


# -- computed weights -------------------------------------------------------------------------------------------------


def test_weight_norm_begins_as_the_layer_and_owns_its_arrays():
    layer = nn.Linear(3, 2, key=key())
    norm = nn.WeightNorm(layer)
    x = jnp.asarray(R.randn(5, 3).astype("f4"))
    np.testing.assert_allclose(norm(x), layer(x), rtol=1e-6, atol=1e-6)
    assert layer.weight is not None and norm.layer.weight is None  # the layer is not changed
    norm.direction = norm.direction * 7  # its length does not count
    np.testing.assert_allclose(norm(x), layer(x), rtol=1e-6, atol=1e-6)
    norm.scale = norm.scale * 2
    np.testing.assert_allclose(norm(x) - layer.bias, 2 * (layer(x) - layer.bias), rtol=1e-5, atol=1e-6)
    grads = atled.grad(lambda m: jnp.sum(jnp.sin(m(x))))(norm)
    np.testing.assert_allclose((grads.direction * norm.direction).sum(0), 0, atol=1e-5)  # across the direction

    class Both(nn.Module):
        def __init__(self):
            self.plain, self.norm = layer, nn.WeightNorm(layer)

    with pytest.raises(ValueError, match="are the same array; in a pytree they would become two copies"):
        Both()


def test_a_path_to_a_parameter():
    rnn = nn.RNN(nn.LSTMCell(3, 4, key=key()))
    norm = nn.WeightNorm(rnn, "cell/state_weight")
    x = jnp.asarray(R.randn(2, 5, 3).astype("f4"))
    np.testing.assert_allclose(norm(x), rnn(x), rtol=1e-5, atol=1e-6)
    assert norm.layer.cell.state_weight is None and norm.merged().cell.state_weight.shape == (4, 16)
    assert norm.merged().cell.initial_state((2,))[0].shape == (2, 4)


def test_frozen_layers_stay_frozen():
    layer = nn.freeze(nn.Linear(3, 2, key=key()), "weight")
    for norm in (nn.WeightNorm(layer), nn.SpectralNorm(layer)):
        grads = atled.grad(lambda m: (jnp.sum(m(jnp.ones(3))), m), has_aux=True)(norm)[0]
        assert [p is not None for p in (grads.layer.bias,)] == [True] and len(tree.leaves(grads)) == 1


def test_layers_inside_keep_their_statistics():
    class Block(nn.Module):
        def __init__(self):
            self.weight = nn.Param(jnp.ones((3, 3)))
            self.norm = nn.BatchNorm(3)

        def __call__(self, x):
            return self.norm(x @ self.weight)

    for norm in (nn.WeightNorm(Block()), nn.SpectralNorm(Block())):
        _, after = atled.jit(lambda m, x: (m(x), m))(norm, jnp.asarray(R.randn(8, 3).astype("f4")))
        assert np.asarray(after.layer.norm.mean).any() and after.layer.weight is None
        assert not np.asarray(norm.layer.norm.mean).any()
        assert tree.structure(after) == tree.structure(norm)


def test_compiled_calls_of_models_from_outside():
    """In use, nothing is assigned, so a function may close over the model."""
    x = jnp.ones((2, 3))
    for norm in (nn.WeightNorm(nn.Linear(3, 2, key=key())), nn.SpectralNorm(nn.Linear(3, 2, key=key())).eval()):
        np.testing.assert_allclose(atled.jit(lambda x, norm=norm: norm(x))(x), norm(x), rtol=1e-6)
        atled.grad(lambda x, norm=norm: jnp.sum(norm(x)))(x)
        atled.vmap(norm)(x)


def test_power_iteration_in_a_loop():
    conv = nn.Conv(2, 3, (3, 2), param_dtype="float64", key=key())
    norm = nn.SpectralNorm(conv, power_iterations=2, key=key(1))
    matrix = np.asarray(conv.weight).reshape(-1, 3)
    v = np.asarray(norm.v, "f8").ravel()
    np.testing.assert_allclose(
        np.linalg.norm(matrix @ (u := matrix.T @ v)) / np.linalg.norm(u), np.linalg.norm(matrix, 2), rtol=1e-2
    )
    for _ in range(3):
        norm(jnp.ones((1, 4, 4, 2)))
        for _ in range(2):
            u = matrix.T @ v / np.linalg.norm(matrix.T @ v)
            v = matrix @ u / np.linalg.norm(matrix @ u)
        np.testing.assert_allclose(norm.u, u, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.ravel(norm.v), v, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(norm.merged().weight, np.asarray(conv.weight) / (v @ matrix @ u), rtol=1e-6)
    still = norm.eval()
    still(jnp.ones((1, 4, 4, 2)))
    np.testing.assert_array_equal(still.u, norm.u)


@pytest.mark.parametrize("training", [False, True])
def test_the_gradient_of_spectral_norm_takes_the_vectors_as_constants(training):
    norm = nn.SpectralNorm(nn.Linear(4, 3, param_dtype="float64", key=key()))
    norm.v = random.normal(key(1), (4,))  # far from the end, where its slope would not matter
    norm, x = norm if training else norm.eval(), R.randn(4)
    grads, after = atled.grad(lambda m: (jnp.sum(m(x)), m), has_aux=True)(norm)
    assert (np.asarray(after.v) != np.asarray(norm.v)).all() == training
    u, v, w = [np.asarray(a, "f8") for a in (after.u, after.v, norm.weight)]
    sigma = v @ w @ u
    want = x[:, None] / sigma - (x @ w).sum() / sigma**2 * np.outer(v, u)
    np.testing.assert_allclose(grads.weight, want, rtol=1e-5)


def test_a_weight_of_zeros_stays_zeros():
    norm = nn.SpectralNorm(nn.Linear(4, 3, weight_init=nn.initializers.zeros, key=key()))
    assert not np.asarray(norm(jnp.ones(4))).any()
    norm.weight = jnp.ones((4, 3))  # the vectors are no zeros, from which nothing would lead away
    for _ in range(3):
        norm(jnp.ones(4))
    np.testing.assert_allclose(np.linalg.norm(norm.merged().weight, 2), 1, rtol=1e-5)


def test_half_precision_weights():
    for norm in (
        nn.WeightNorm(nn.Linear(300, 3, param_dtype="bfloat16", key=key())),
        nn.SpectralNorm(nn.Linear(300, 3, param_dtype="bfloat16", key=key())),
    ):
        y = norm(jnp.ones((2, 300), "bfloat16"))
        assert y.dtype == jnp.bfloat16 and norm.merged().weight.dtype == jnp.bfloat16
    assert norm.u.dtype == np.float32


def test_computed_weights_are_trained():
    x, y = R.randn(16, 3).astype("f4"), R.randn(16, 2).astype("f4")
    for norm in (nn.WeightNorm(nn.Linear(3, 2, key=key())), nn.SpectralNorm(nn.Linear(3, 2, key=key()))):
        loss = lambda m: (jnp.mean((m(x) - y) ** 2), m)
        step = atled.jit(atled.value_and_grad(loss, has_aux=True))
        losses = []
        for _ in range(20):
            (value, norm), grads = step(norm)
            losses.append(float(value))
            norm = nn.merge(tree.map(lambda p, g: p - 0.2 * g, nn.params(norm), grads), norm)
        assert losses[-1] < losses[0] and len(step.compiles) == 1
        assert norm.layer.weight is None


# -- dropout ----------------------------------------------------------------------------------------------------------


def test_whole_features_and_whole_examples():
    x = np.abs(R.randn(200, 6, 5, 30)).astype("f4") + 1
    for layer, drawn in ((nn.SpatialDropout(0.3), (200, 1, 1, 30)), (nn.StochasticDepth(0.3), (200, 1, 1, 1))):
        y, back = atled.vjp(lambda x, layer=layer: layer(x, key=key()), x)
        kept = np.asarray(y) != 0
        some = kept[tuple([slice(0, n) for n in drawn])]
        assert (kept == some).all()
        assert abs(1 - some.mean() - 0.3) <= 4 * np.sqrt(0.21 / some.size)
        np.testing.assert_allclose(y, x * kept / 0.7, rtol=1e-6)
        np.testing.assert_allclose(back(np.ones_like(x))[0], kept / 0.7, rtol=1e-6)
        assert (np.asarray(layer(x, key=key(1))) != np.asarray(y)).any()
        np.testing.assert_array_equal(atled.jit(lambda x, k, layer=layer: layer(x, key=k))(x, key()), y)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
def test_alpha_dropout_keeps_mean_and_variance(rate):
    x = random.normal(key(1), (400, 1000))
    y = np.asarray(nn.AlphaDropout(rate)(x, key=key()))
    low = -1.0507009873554805 * 1.6732632423543772
    a = ((1 - rate) * (1 + rate * low**2)) ** -0.5
    dropped = abs(y - (a * low - a * rate * low)) < 1e-5
    assert abs(dropped.mean() - rate) < 0.003
    np.testing.assert_allclose(y[~dropped], np.asarray(a * x - a * rate * low)[~dropped], rtol=1e-4, atol=1e-5)
    assert abs(y.mean()) < 0.01 and abs(y.var() - 1) < 0.02
    hidden = nn.selu(x)  # of which SELU makes mean 0 and variance 1 itself
    again = np.asarray(nn.AlphaDropout(rate)(hidden, key=key()))
    assert abs(again.mean()) < 0.01 and abs(again.var() - 1) < 0.02


DROPOUTS = (nn.Dropout, nn.SpatialDropout, nn.AlphaDropout, nn.StochasticDepth)


@pytest.mark.parametrize("kind", DROPOUTS)
def test_rules_of_all_dropouts(kind):
    x, name = jnp.ones((2, 3, 4)), kind.__name__
    assert kind(0.5).eval()(x) is x and kind(0.0)(x) is x
    assert not np.asarray(kind(1.0)(x)).any()
    assert kind(0.5)(x.astype("bfloat16"), key=key()).dtype == jnp.bfloat16
    with pytest.raises(TypeError, match=f"{name}: a key must be given while training"):
        kind(0.5)(x)
    with pytest.raises(TypeError, match=rf"{name}: the input must be floating; got i32\[2\]"):
        kind(0.5)(jnp.ones(2, "int32"), key=key())
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=f"{name}: the rate must be between 0 and 1"):
            kind(rate)
    keys = random.split(key(), 3)
    many = atled.vmap(lambda k: kind(0.5)(x, key=k))(keys)
    for i in range(3):
        np.testing.assert_array_equal(many[i], kind(0.5)(x, key=keys[i]))


# -- the number of axes -----------------------------------------------------------------------------------------------

SLIDING = [  # layers of any number of axes, and what they are given before the window
    ("Conv", (4, 6)), ("ConvTranspose", (4, 6)), ("MaxPool", ()), ("AvgPool", ()), ("AdaptiveAvgPool", ()),
    ("AdaptiveMaxPool", ()),
]  # fmt: skip


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("name, before", SLIDING, ids=[name for name, _ in SLIDING])
def test_one_number_is_the_length_along_each_axis(name, before, axes):
    """`Conv2d(…, 2)` and `Conv2d(…, (2, 2))` are `Conv(…, (2, 2))`."""
    named, tuples = getattr(nn, f"{name}{axes}d"), (2,) * axes
    make = lambda kind, size: kind(*before, size, **({"key": key()} if before else {}))
    layer, x = make(getattr(nn, name), tuples), R.randn(2, *(4, 5, 3)[:axes], 4).astype("f4")
    for other in (make(named, 2), make(named, tuples)):
        assert isinstance(other, type(layer))
        np.testing.assert_array_equal(other(x), layer(x))


ONE_NUMBER = [
    (lambda: nn.Conv(3, 8, 3, key=key()), "Conv: kernel_size", "Conv1d or Conv2d or Conv3d; or kernel_size=(3, 3)"),
    (
        lambda: nn.ConvTranspose(3, 8, 3, key=key()), "ConvTranspose: kernel_size",
        "ConvTranspose1d or ConvTranspose2d or ConvTranspose3d; or kernel_size=(3, 3)",
    ),
    (lambda: nn.MaxPool(2), "MaxPool: kernel_size", "MaxPool1d or MaxPool2d or MaxPool3d; or kernel_size=(2, 2)"),
    (lambda: nn.AvgPool(2), "AvgPool: kernel_size", "AvgPool1d or AvgPool2d or AvgPool3d; or kernel_size=(2, 2)"),
    (
        lambda: nn.AdaptiveAvgPool(2), "AdaptiveAvgPool: output_size",
        "AdaptiveAvgPool1d or AdaptiveAvgPool2d or AdaptiveAvgPool3d; or output_size=(2, 2)",
    ),
    (
        lambda: nn.AdaptiveMaxPool(2), "AdaptiveMaxPool: output_size",
        "AdaptiveMaxPool1d or AdaptiveMaxPool2d or AdaptiveMaxPool3d; or output_size=(2, 2)",
    ),
    (lambda: nn.max_pool(X, 2), "max_pool: kernel_size", "kernel_size=(2, 2)"),
    (lambda: nn.avg_pool(X, np.int64(2)), "avg_pool: kernel_size", "kernel_size=(2, 2)"),
    (lambda: nn.ConvLSTMCell(2, 3, 3, key=key()), "ConvLSTMCell: kernel_size", "kernel_size=(3, 3)"),
]  # fmt: skip


@pytest.mark.parametrize("run, what, way_out", ONE_NUMBER, ids=[what for _, what, _ in ONE_NUMBER])
def test_one_number_does_not_say_how_many_axes_there_are(run, what, way_out):
    with pytest.raises(TypeError) as raised:
        run()
    first, *rest = str(raised.value).splitlines()
    assert first.startswith(f"{what} must have a length for each axis, or the number of axes is unknown; got ")
    assert rest[-1] == f"  try: {way_out} for images."


OTHER_AXES = [
    (lambda: nn.Conv1d(4, 4, 3, key=key())(P), "Conv2d"),
    (lambda: nn.ConvTranspose1d(4, 4, 3, key=key())(P), "ConvTranspose2d"),
    (lambda: nn.MaxPool3d(2)(X), "MaxPool1d"),
    (lambda: nn.AdaptiveAvgPool2d(2)(P[None]), "AdaptiveAvgPool3d"),
    (lambda: nn.AdaptiveAvgPool((2,))(P), "output_size=(3, 3) for 2 axes"),
    (lambda: nn.AvgPool((2,))(P), "kernel_size=(3, 3) for 2 axes"),
]


@pytest.mark.parametrize("run, way_out", OTHER_AXES, ids=[way_out for _, way_out in OTHER_AXES])
def test_an_input_with_other_axes_names_the_layer_for_them(run, way_out):
    with pytest.raises(ValueError, match=r"the input must have \d axes, or \d without a batch") as raised:
        run()
    assert str(raised.value).splitlines()[-1] == f"  try: {way_out}, or an input of another shape."


# -- messages ---------------------------------------------------------------------------------------------------------

X, P = jnp.ones((2, 5, 4)), jnp.ones((2, 5, 5, 4))
WRONG: Any = "ab"


def conv(kernel_size: Any = (3,), **settings):
    return nn.Conv(4, 4, kernel_size, key=key(), **settings)


def up(kernel_size: Any = (3,), **settings):
    return nn.ConvTranspose(4, 4, kernel_size, key=key(), **settings)


def linear(**settings):
    return nn.Linear(4, 3, key=key(), **settings)


MISTAKES = [
    (lambda: conv((0,)), r"Conv: kernel_size must be 1 or more; got \(0,\)"),
    (lambda: nn.Conv1d(4, 4, 0, key=key()), "Conv1d: kernel_size must be 1 or more; got 0"),
    (lambda: conv(()), "Conv: kernel_size must have an entry for each"),
    (lambda: nn.Conv2d(4, 4, (3,), key=key()), r"Conv2d: kernel_size must have .* 2 axes; got \(3,\)"),
    (lambda: nn.Conv2d(4, 4, (3, 3, 3), key=key()), "Conv2d: kernel_size must have an entry for each of 2 axes"),
    (lambda: nn.ConvTranspose3d(4, 4, (3, 3), key=key()), "ConvTranspose3d: kernel_size must have .* 3 axes"),
    (lambda: nn.MaxPool1d((2, 2)), "MaxPool1d: kernel_size must have an entry for each of 1 axes"),
    (lambda: nn.AdaptiveMaxPool2d((2, 2, 2)), "AdaptiveMaxPool2d: output_size must have an entry for each of 2 axes"),
    (lambda: conv(2.5), "Conv: kernel_size must be a whole number, or one for each axis; got 2.5"),
    (lambda: conv(strides=0), "Conv: strides must be 1 or more; got 0"),
    (lambda: conv((3, 3), dilation=(1,)), "Conv: dilation must have an entry for each of 2 axes"),
    (lambda: conv(groups=3), "Conv: groups must divide in_features and out_features; got 3 for 4, 4"),
    (lambda: conv(groups=0), "Conv: groups must divide in_features and out_features; got 0"),
    (lambda: conv(padding="causal"), "Conv: padding must be SAME, VALID, .*; got 'causal'"),
    (lambda: conv(padding=(1, 1)), "Conv: padding must have an entry for each of 1 axes"),
    (lambda: conv(padding=1.5), "Conv: padding must have an entry for each of 1 axes; got 1.5"),
    (lambda: conv(padding=[(1, 2, 3)]), "Conv: padding must have an entry for each of 2 axes"),
    (lambda: conv()(P), r"Conv: the input must have 3 axes, or 2 without a batch; got f32\[2,5,5,4\]"),
    (lambda: conv()(jnp.ones(4)), r"Conv: the input must have 3 axes, or 2 without a batch; got f32\[4\]"),
    (lambda: conv((7,), padding="REFLECT")(X[:, :3]), "Conv: an axis must be longer than the padding that REFLECT"),
    (lambda: conv(padding="REPLICATE")(X[:, :0]), "Conv: an axis must be longer than the padding that REPLICATE adds"),
    (lambda: nn.ConvTranspose(4, 4, (3,)), "ConvTranspose: a key must be given"),
    (lambda: up(padding="REFLECT"), "ConvTranspose: padding must be SAME, VALID, CIRCULAR, or pairs"),
    (lambda: up(output_padding=1), "ConvTranspose: output_padding needs numeric padding; got 'SAME'"),
    (lambda: up(padding=0, output_padding=1), "ConvTranspose: output_padding must be less than the stride or"),
    (lambda: up(padding=0, output_padding=-1), "ConvTranspose: output_padding must be 0 or more"),
    (lambda: up(groups=8), "ConvTranspose: groups must divide"),
    (lambda: up(padding=5)(X), r"ConvTranspose: the output must not be empty .*; got f32\[2,5,4\]"),
    (lambda: up()(X[:, :0]), "ConvTranspose: the output must not be empty"),
    (lambda: up()(X[..., :3]), "ConvTranspose: the last axis of the input must have length 4"),
    (lambda: up((3, 3))(X[0]), r"ConvTranspose: the input must have 4 axes, or 3 without a batch; got f32\[5,4\]"),
    (lambda: nn.max_pool(P, (2,)), r"max_pool: the input must have 3 axes, or 2 without a batch; got f32\[2,5,5,4\]"),
    (lambda: nn.max_pool(X, (6,)), r"max_pool: a window of size \(6,\) must fit into the input; got f32\[2,5,4\]"),
    (lambda: nn.max_pool(X[:, :0], (1,), padding="SAME"), "max_pool: a window of size .* must fit"),
    (lambda: nn.max_pool(X, (2,), padding=2), "max_pool: padding must be 0 or more, and less than the size"),
    (lambda: nn.avg_pool(X, (2,), padding=-1), "avg_pool: padding must be 0 or more, and less than the size"),
    (lambda: nn.avg_pool(X, (2,), 0), "avg_pool: strides must be 1 or more; got 0"),
    (lambda: nn.max_pool(X > 0, (2,)), r"max_pool: the input must be real numbers; got bool\[2,5,4\]"),
    (lambda: nn.max_pool(X * 1j, (2,)), "max_pool: the input must be real numbers; got c64"),
    (lambda: nn.MaxPool((2, 2), strides=(1, 1, 1)), "MaxPool: strides must have an entry for each of 2 axes"),
    (lambda: nn.AvgPool((2,), padding="CIRCULAR"), "AvgPool: padding must be VALID, SAME, or pairs"),
    (lambda: nn.AvgPool((2,))(P), "AvgPool: the input must have 3 axes"),
    (lambda: nn.AdaptiveAvgPool((0,)), "AdaptiveAvgPool: output_size must be 1 or more"),
    (lambda: nn.AdaptiveAvgPool((2,))(P), "AdaptiveAvgPool: the input must have 3 axes"),
    (lambda: nn.AdaptiveMaxPool(WRONG), "AdaptiveMaxPool: output_size must be a whole number"),
    (lambda: nn.AdaptiveMaxPool((2,))(X[:, :0]), "AdaptiveMaxPool: spatial axes must not be empty"),
    (lambda: nn.GlobalAvgPool()(X[0]), r"GlobalAvgPool: the input must be \(batch, \*spatial, features\)"),
    (lambda: nn.GlobalMaxPool()(X[:, :0]), r"GlobalMaxPool: the input must be \(batch, \*spatial, features\), with"),
    (lambda: nn.RMSNorm(3)(X), "RMSNorm: the last axis of the input must have length 3"),
    (lambda: nn.RMSNorm(4)(X * 1j), r"RMSNorm: the input must be real; got c64\[2,5,4\]"),
    (lambda: nn.LayerNorm(4)(X * 1j), "LayerNorm: the input must be real"),
    (lambda: nn.GroupNorm(4, 3), "GroupNorm: num_groups must divide num_features; got 3 for 4"),
    (lambda: nn.GroupNorm(4, 0), "GroupNorm: num_groups must divide num_features; got 0 for 4"),
    (lambda: nn.GroupNorm(4, 2)(X[0, 0]), r"GroupNorm: the input must have the axes \(batch, …, features\)"),
    (lambda: nn.GroupNorm(4, 4)(X[0]), "GroupNorm: at least two numbers are needed to normalize over"),
    (lambda: nn.InstanceNorm(4)(X[0]), r"InstanceNorm: the input must have the axes \(batch, \*spatial, features\)"),
    (lambda: nn.InstanceNorm(4)(X[:, :1]), "InstanceNorm: at least two numbers are needed to normalize over"),
    (lambda: nn.WeightNorm(jnp.ones), "WeightNorm: the first argument must be a layer; got function"),
    (lambda: nn.WeightNorm(linear(), "kernel"), "WeightNorm: the layer must have a Param called 'kernel'; got"),
    (lambda: nn.WeightNorm(linear(), "a/b"), "WeightNorm: the layer must have a Param called 'a/b'"),
    (lambda: nn.WeightNorm(nn.Dropout(0.1)), "WeightNorm: the layer must have a Param called .* Dropout with none"),
    (lambda: nn.WeightNorm(nn.BatchNorm(3), "mean"), "WeightNorm: the layer must have a Param called 'mean'"),
    (lambda: nn.WeightNorm(linear(use_bias=False), "bias"), "WeightNorm: the layer must have a Param called 'bias'"),
    (lambda: nn.WeightNorm(nn.WeightNorm(linear())), "WeightNorm: .* got a WeightNorm with scale, direction"),
    (lambda: nn.WeightNorm(linear(), axis=2), "WeightNorm: weight must have two axes or more, and axis 2"),
    (lambda: nn.SpectralNorm(linear(), "bias"), r"SpectralNorm: bias must have two axes or more, .*; got f32\[3\]"),
    (lambda: nn.SpectralNorm(linear(), power_iterations=0), "SpectralNorm: power_iterations must be 1 or more; got 0"),
    (lambda: nn.SpatialDropout(0.5)(X[0], key=key()), r"SpatialDropout: the input must have the axes \(batch, \*"),
    (lambda: nn.StochasticDepth(0.5)(X[0, 0], key=key()), "StochasticDepth: the input must have the axes"),
]  # fmt: skip


@pytest.mark.parametrize("run, message", MISTAKES, ids=[m[:60] for _, m in MISTAKES])
def test_mistakes(run, message):
    with pytest.raises((ValueError, TypeError), match=message):
        run()
