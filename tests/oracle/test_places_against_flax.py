"""Convolutions, pooling and normalization against flax with the same weights: outputs, and gradients by everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flax_rows import ZEROS, ZEROS_THERE, Case, check_half_precision, check_precisely, drawn

import atled
import atled.numpy as jnp
from atled import nn, random

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")

KERNEL_AND_BIAS = {"weight": ("kernel",), "bias": ("bias",)}
LINE, IMAGE = drawn(2, 11, 4), drawn(2, 7, 6, 4)


def conv(x: np.ndarray, size: Any, outputs: int = 8, **settings: Any) -> Case:
    names = {"dilation": "kernel_dilation", "groups": "feature_group_count"}
    theirs = {names.get(n, n): v for n, v in settings.items()}
    window = (size,) if isinstance(size, int) else size
    return Case(
        lambda **kw: nn.Conv(4, outputs, window, weight_init=ZEROS, key=random.key(0), **settings, **kw),
        lambda **kw: nnx.Conv(4, outputs, size, kernel_init=ZEROS_THERE, rngs=nnx.Rngs(0), **theirs, **kw),
        KERNEL_AND_BIAS,
        (x,),
    )


def transposed(x: np.ndarray, size: Any, stride: Any = 1, padding: Any = "SAME", dilation: Any = 1) -> Case:
    """Pairs there are what is put around the input, which is less the more is cut off."""
    lengths = (size,) if isinstance(size, int) else size
    steps = (dilation,) * len(lengths) if isinstance(dilation, int) else dilation
    reach = [(k - 1) * d for k, d in zip(lengths, steps, strict=True)]
    there = padding if isinstance(padding, str) else [(r - a, r - b) for r, (a, b) in zip(reach, padding, strict=True)]
    return Case(
        lambda **kw: nn.ConvTranspose(
            4, 3, lengths, strides=stride, padding=padding, dilation=dilation, weight_init=ZEROS,
            key=random.key(0), **kw,
        ),
        lambda **kw: nnx.ConvTranspose(
            4, 3, size, stride, padding=there, kernel_dilation=dilation, transpose_kernel=True,
            kernel_init=ZEROS_THERE, rngs=nnx.Rngs(0), **kw,
        ),
        KERNEL_AND_BIAS,
        (x,),
    )  # fmt: skip


def norm(kind: str, x: np.ndarray, scale: bool = True, bias: bool = True, eps: float = 1e-6, groups: int = 0) -> Case:
    count = x.shape[-1]
    own, there = {"use_scale": scale, "eps": eps}, {"use_scale": scale, "epsilon": eps, "use_fast_variance": False}
    if kind != "RMSNorm":
        own, there = {**own, "use_bias": bias}, {**there, "use_bias": bias}
    more = (groups,) if groups else ()
    return Case(
        lambda **kw: getattr(nn, kind)(count, *more, **own, **kw),
        lambda **kw: getattr(nnx, kind)(count, *more, **there, rngs=nnx.Rngs(0), **kw),
        {n: (n,) for n, is_there in (("scale", scale), ("bias", bias and kind != "RMSNorm")) if is_there},
        (x,),
    )


CASES = {
    "conv 1d, CAUSAL": conv(LINE, 3, padding="CAUSAL"),
    "conv 1d, CAUSAL, even, dilation": conv(LINE, 4, padding="CAUSAL", dilation=2),
    "conv 1d, CAUSAL, stride": conv(LINE, 3, padding="CAUSAL", strides=2),
    "conv 1d, REFLECT": conv(LINE, 5, padding="REFLECT"),
    "conv 1d, REFLECT, even": conv(LINE, 4, padding="REFLECT"),
    "conv 2d, REFLECT, stride, dilation": conv(IMAGE, (3, 2), padding="REFLECT", strides=2, dilation=(2, 1)),
    "conv 2d, depthwise": conv(IMAGE, (3, 3), 8, groups=4),
    "conv 2d, depthwise, one": conv(IMAGE, (3, 3), 4, groups=4, strides=2),
    "transposed 1d": transposed(LINE, 3),
    "transposed 1d, even": transposed(LINE, 4),
    "transposed 1d, stride": transposed(LINE, 3, 2),
    "transposed 1d, stride larger": transposed(LINE, 2, 3),
    "transposed 1d, VALID": transposed(LINE, 3, 2, "VALID"),
    "transposed 1d, VALID, stride larger": transposed(LINE, 2, 4, "VALID"),
    "transposed 1d, CIRCULAR": transposed(LINE, 3, 1, "CIRCULAR"),
    "transposed 1d, CIRCULAR, stride": transposed(LINE, 4, 2, "CIRCULAR"),
    "transposed 1d, CIRCULAR, long": transposed(LINE[:, :2], 5, 2, "CIRCULAR", 3),
    "transposed 2d": transposed(IMAGE, (3, 4), (2, 1)),
    "transposed 2d, no batch": transposed(IMAGE[0], (3, 4), (2, 1)),
    "transposed 2d, VALID, dilation": transposed(IMAGE, (3, 2), (1, 2), "VALID", (2, 3)),
    "transposed 2d, CIRCULAR": transposed(IMAGE, (3, 5), (2, 1), "CIRCULAR"),
    "transposed 2d, pairs": transposed(IMAGE, (3, 4), 2, ((1, 0), (2, 1))),
    "transposed 2d, pairs, dilation": transposed(IMAGE, (3, 2), (1, 2), ((2, 1), (0, 3)), (2, 1)),
    "transposed 3d": transposed(drawn(1, 3, 4, 3, 4), (2, 3, 2), 2),
    "rms norm": norm("RMSNorm", drawn(3, 4, 6)),
    "rms norm, no scale": norm("RMSNorm", drawn(3, 6), scale=False, eps=1e-3),
    "group norm": norm("GroupNorm", IMAGE, groups=2),
    "group norm, one": norm("GroupNorm", IMAGE, groups=1, eps=1e-3),
    "group norm, each": norm("GroupNorm", LINE, groups=4),
    "group norm, no places": norm("GroupNorm", drawn(5, 6), groups=3),
    "group norm, no parameters": norm("GroupNorm", IMAGE, scale=False, bias=False, groups=2),
    "instance norm": norm("InstanceNorm", IMAGE),
    "instance norm, 1d, no bias": norm("InstanceNorm", LINE, bias=False, eps=1e-2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same(name):
    check_precisely(CASES[name])


HALF = (
    "conv 1d, CAUSAL", "conv 1d, REFLECT", "conv 2d, depthwise", "transposed 1d, CIRCULAR, stride", "transposed 2d",
    "transposed 2d, pairs", "rms norm", "group norm", "instance norm",
)  # fmt: skip


@pytest.mark.parametrize("name", HALF)
def test_half_precision(name):
    check_half_precision(CASES[name])


# -- pooling ----------------------------------------------------------------------------------------------------------

TIES = np.random.RandomState(0).randint(0, 3, (2, 9, 8, 3)).astype("f4")
HOLES = np.where(np.random.RandomState(1).rand(2, 9, 8, 3) < 0.03, np.nan, drawn(2, 9, 8, 3))
POOLS = {  # input, size, stride, padding
    "1d": (LINE, (2,), (2,), "VALID"),
    "1d, SAME": (LINE, (4,), (3,), "SAME"),
    "1d, no batch": (LINE[0], (3,), (1,), "VALID"),
    "2d": (IMAGE, (2, 3), (2, 1), "VALID"),
    "2d, SAME": (IMAGE, (3, 3), (2, 2), "SAME"),
    "2d, pairs": (IMAGE, (3, 4), (2, 3), ((1, 2), (3, 0))),
    "2d, ties": (TIES, (3, 2), (2, 1), "VALID"),
    "2d, ties, SAME": (TIES, (3, 3), (2, 2), "SAME"),
    "2d, below zero": (-np.abs(IMAGE) - 1, (3, 3), (1, 1), "SAME"),
    "3d": (drawn(2, 5, 4, 6, 2), (2, 2, 3), (2, 1, 2), ((1, 0), (0, 1), (1, 1))),
}


def both(ours: Any, theirs: Any, x: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Outputs of two functions, and gradients with the same weights for their sums."""
    y, back = atled.vjp(ours, x)
    there, back_there = jax.vjp(theirs, x)
    assert y.shape == there.shape
    weights = np.random.RandomState(9).randn(*y.shape).astype(y.dtype)
    return y, there, back(jnp.asarray(weights))[0], back_there(weights)[0]


@pytest.mark.parametrize("name", POOLS)
def test_max_pool(name):
    x, *window = POOLS[name]
    y, want, grad, want_grad = both(lambda x: nn.max_pool(x, *window), lambda x: nnx.max_pool(x, *window), x)
    np.testing.assert_array_equal(y, want)
    np.testing.assert_allclose(grad, want_grad, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_avg_pool(name, count_include_pad):
    x, *window = POOLS[name]
    y, want, grad, want_grad = both(
        lambda x: nn.avg_pool(x, *window, count_include_pad=count_include_pad),
        lambda x: nnx.avg_pool(x, *window, count_include_pad=count_include_pad),
        x,
    )
    np.testing.assert_allclose(y, want, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(grad, want_grad, rtol=2e-6, atol=2e-6)


def test_max_pool_of_nan():
    y, want, _, _ = both(lambda x: nn.max_pool(x, (2, 2)), lambda x: nnx.max_pool(x, (2, 2), (2, 2)), HOLES)
    assert 0 < np.isnan(np.asarray(want)).mean() < 0.5
    np.testing.assert_array_equal(y, want)


def test_avg_pool_in_half_precision():
    x = (drawn(2, 33, 32, 3) + 3).astype(jnp.bfloat16)
    want = x.astype("f8").reshape(2, 3, 11, 2, 16, 3).mean((2, 4))
    ours, theirs = nn.avg_pool(x, (11, 16)), nnx.avg_pool(x, (11, 16), (11, 16))
    assert ours.dtype == jnp.bfloat16
    own, other = [np.sqrt(((np.asarray(y).astype("f8") - want) ** 2).mean()) for y in (ours, theirs)]
    assert own <= 1.5 * other and own < 0.01


def test_the_largest_singular_value():
    """Both iterate, from different vectors: where they end, both have it."""
    kernel, x = drawn(6, 5, seed=3), drawn(3, 6)
    ours = nn.SpectralNorm(nn.Linear(6, 5, weight_init=ZEROS, key=random.key(0)), power_iterations=100)
    ours.weight = jnp.asarray(kernel)
    theirs = nnx.SpectralNorm(nnx.Linear(6, 5, rngs=nnx.Rngs(0)), n_steps=100, rngs=nnx.Rngs(1))
    theirs.layer_instance.kernel.set_value(jax.numpy.asarray(kernel))
    np.testing.assert_allclose(ours(x), theirs(x, update_stats=True), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(ours(x), x @ kernel / np.linalg.norm(kernel, 2), rtol=2e-5, atol=2e-5)
