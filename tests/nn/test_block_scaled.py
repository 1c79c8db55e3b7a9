"""Products by blocks against NumPy, and straight-through derivatives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.nn import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

R = np.random.RandomState(0)
LAST = (((2,), (2,)), ((0,), (0,)))


def expected(a, b, s, t):
    a, b = (
        np.asarray(x, float) * np.repeat(np.asarray(y, float), x.shape[2] // y.shape[2], 2) for x, y in ((a, s), (b, t))
    )
    return np.einsum("bmk,bnk->bmn", a, b)


@pytest.mark.parametrize("dtype, scale", [("float32", "float32"), ("float8_e4m3fn", "float8_e8m0fnu"),
                                          ("float8_e5m2", "float8_e8m0fnu"), ("float4_e2m1fn", "float8_e4m3fn"),
                                          ("int32", "float32"), ("float64", "float64")])  # fmt: skip
def test_scaled_matmul(dtype, scale):
    a, b = (np.round(R.randn(2, n, 8) * 2).astype(jnp.dtype(dtype)) for n in (3, 5))
    s, t = (np.exp2(R.randint(-2, 3, (2, n, 2))).astype(jnp.dtype(scale)) for n in (3, 5))
    got = scaled_matmul(a, b, s, t)
    assert got.dtype == np.float32 and got.shape == (2, 3, 5)
    np.testing.assert_allclose(got, expected(a, b, s, t), rtol=1e-6)
    np.testing.assert_allclose(atled.jit(scaled_matmul)(a, b, s, t), got, rtol=1e-6)
    for out in ("float16", "bfloat16", "float64"):
        low = scaled_matmul(a, b, s, t, out)
        assert low.dtype == out
        np.testing.assert_allclose(np.asarray(low).astype(float), expected(a, b, s, t), rtol=1e-2)


def test_scaled_matmul_is_differentiable():
    a, b, s, t = (R.randn(1, 2, n) for n in (4, 4, 2, 2))
    with atled.enable_x64():
        f = lambda *xs: jnp.sum(jnp.sin(scaled_matmul(*xs, np.float64)))
        for i, slope in enumerate(atled.grad(f, (0, 1, 2, 3))(a, b, s, t)):
            way, at = R.randn(*slope.shape), [a, b, s, t]
            moved = lambda h, i=i, way=way, at=at: float(f(*at[:i], at[i] + h * way, *at[i + 1 :]))
            np.testing.assert_allclose(float(jnp.sum(slope * way)), (moved(1e-5) - moved(-1e-5)) / 2e-5, rtol=1e-6)


def test_blocks_without_size_and_without_number():
    for mode in ("mxfp8", "nvfp4"):
        config = get_scaled_dot_general_config(mode)
        zero = jnp.zeros((1, 1, 32))
        assert not np.asarray(scaled_dot_general(zero, zero, LAST, configs=[config] * 3)).any()
        lost = zero.at[0, 0, 3].set(np.nan)
        if mode == "mxfp8":
            assert np.isnan(scaled_dot_general(lost, zero + 1, LAST, configs=[config] * 3)).all()
        tiny = zero + 1e-38
        assert np.isfinite(scaled_dot_general(tiny, tiny, LAST, configs=[config] * 3)).all()


def rounded(x, mode):
    """Quantized and back, in NumPy."""
    size, largest = {"mxfp8": (32, 448.0), "nvfp4": (16, 6.0)}[mode]
    blocks = x.reshape(*x.shape[:-1], -1, size)
    scale = np.abs(blocks).max(-1, keepdims=True) / largest
    if mode == "mxfp8":
        scale, kind = np.exp2(np.ceil(np.log2(scale))), ml_dtypes.float8_e4m3fn
    else:
        scale, kind = scale.astype(ml_dtypes.float8_e4m3fn).astype("f4"), ml_dtypes.float4_e2m1fn
    return ((blocks / scale).astype(kind).astype("f4") * scale).reshape(x.shape)


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_dot_general_and_its_gradients(mode):
    a, b = R.randn(2, 32, 64).astype("f4"), R.randn(2, 64, 64).astype("f4")
    g = R.randn(2, 32, 64).astype("f4")
    configs = [get_scaled_dot_general_config(mode)] * 3
    product = lambda x, y: np.einsum("bmk,bnk->bmn", x, y)
    q = lambda x: rounded(np.ascontiguousarray(x), mode)
    f = lambda x, y: scaled_dot_general(x, y, LAST, configs=configs)
    got, back = atled.vjp(f, a, b)
    np.testing.assert_allclose(got, product(q(a), q(b)), rtol=1e-4, atol=1e-4)
    turned = [np.swapaxes(x, 1, 2) for x in (a, b, g)]
    if mode == "mxfp8":
        want = product(q(g), q(turned[1])), product(q(turned[2]), q(turned[0]))
    else:
        want = product(g, turned[1]), product(turned[2], turned[0])
    for x, y in zip(back(jnp.asarray(g)), want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(atled.jit(f)(a, b), got, rtol=1e-5, atol=1e-5)


def test_other_axes_and_global_scale():
    a, b = R.randn(4, 3, 8, 5).astype("f4"), R.randn(8, 6, 4).astype("f4")
    numbers = (((0, 2), (2, 0)), ((), ()))
    exact = np.einsum("asbt,bua->stu", a, b)
    np.testing.assert_allclose(scaled_dot_general(a, b, numbers), exact, rtol=1e-5, atol=1e-5)
    for mode, scale, tol in (("mxfp8", None, 0.1), ("nvfp4", np.float32([0.5]), 0.5)):
        configs = [get_scaled_dot_general_config(mode, scale)] * 3
        got = scaled_dot_general(a, b, numbers, np.float32, configs)
        assert got.shape == exact.shape
        assert np.abs(got - exact).max() < tol * np.abs(exact).max()
        assert scaled_dot_general(a, b, numbers, "bfloat16", configs).dtype == "bfloat16"
    # a number that nvfp4 cannot reach has no slope
    config = get_scaled_dot_general_config("nvfp4")
    x = jnp.ones((1, 1, 16)).at[0, 0, 0].set(3000.0)
    slope = atled.grad(lambda v: jnp.sum(scaled_dot_general(v, jnp.ones((1, 1, 16)), LAST, configs=[config] * 3)))(x)
    assert slope[0, 0, 0] == 0 and slope[0, 0, 1] == 1


def test_what_does_not_fit_raises():
    x, s = jnp.ones((1, 2, 4)), jnp.ones((1, 2, 2))
    with pytest.raises(ValueError, match="scaled_matmul: operands must be"):
        scaled_matmul(x[0], x, s, s)
    with pytest.raises(ValueError, match="scaled_matmul: operands must be"):
        scaled_matmul(x, x, jnp.ones((1, 2, 3)), jnp.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="mode must be 'nvfp4' or 'mxfp8'; got 'fp8'"):
        get_scaled_dot_general_config("fp8")
    configs = [get_scaled_dot_general_config("mxfp8")] * 2
    with pytest.raises(ValueError, match="multiple of the block size 32"):
        scaled_dot_general(x, x, LAST, configs=configs)
    with pytest.raises(TypeError, match="preferred_element_type must be"):
        scaled_dot_general(x, x, LAST, "float64", configs)
    with pytest.warns(DeprecationWarning, match="implementation is ignored"):
        scaled_dot_general(x, x, LAST, implementation="cudnn")
    y = jnp.ones((1, 32, 32))
    with pytest.raises(ValueError, match="gradients need a third config"):
        atled.grad(lambda v: jnp.sum(scaled_dot_general(v, y, LAST, configs=configs)))(y)
