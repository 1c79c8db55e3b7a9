"""Inputs where a plain formula goes wrong: NaN and infinity at one position, zeros, huge exponents, masks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import data, lax, optim, train
from atled.nn import Linear

nan, inf = np.nan, np.inf
CALLS = {  # of NumPy and atled: functions in which each result depends on some elements only
    "diff": lambda m, x: m.diff(x), "ediff1d": lambda m, x: m.ediff1d(x), "gradient": lambda m, x: m.gradient(x),
    "gradient with a spacing": lambda m, x: m.gradient(x, x.dtype.type(0.5)),
    "gradient at coordinates": lambda m, x: m.gradient(x, np.arange(7, dtype=x.dtype)),
    "gradient of edge order 2": lambda m, x: m.gradient(x, edge_order=2),
    "gradient of rows": lambda m, x: m.gradient(m.stack([x, x]), axis=0),
    "cumsum": lambda m, x: m.cumsum(x), "cumprod": lambda m, x: m.cumprod(x), "nancumsum": lambda m, x: m.nancumsum(x),
    "reflect": lambda m, x: m.pad(x, (3, 2), mode="reflect"), "wrap": lambda m, x: m.pad(x, (3, 9), mode="wrap"),
    "odd reflect": lambda m, x: m.pad(x, (3, 2), mode="reflect", reflect_type="odd"),
    "odd symmetric": lambda m, x: m.pad(x, (3, 2), mode="symmetric", reflect_type="odd"),
    "symmetric": lambda m, x: m.pad(x, (9, 2), mode="symmetric"), "edge": lambda m, x: m.pad(x, 2, mode="edge"),
    "ramp": lambda m, x: m.pad(x, 2, mode="linear_ramp"), "rows": lambda m, x: m.sum(m.reshape(x[:6], (2, 3)), 1),
    "roll": lambda m, x: m.roll(x, 2), "tril": lambda m, x: m.tril(m.stack([x, x])), "diag": lambda m, x: m.diag(x),
    "repeat": lambda m, x: m.repeat(x, 2), "outer": lambda m, x: m.outer(x, np.ones(2, x.dtype)),
    "convolve": lambda m, x: m.convolve(x, np.ones(2, x.dtype)), "interp": lambda m, x: m.interp(
        x, np.arange(2.0), np.arange(2.0) + 2),
    "where": lambda m, x: m.where(x > 0, x, -x), "clip": lambda m, x: m.clip(x, 0, 2), "sinc": lambda m, x: m.sinc(x),
    "unwrap": lambda m, x: m.unwrap(x[:1]),
    "nan_to_num": lambda m, x: m.nan_to_num(x, nan=1, posinf=2, neginf=3), "fmax": lambda m, x: m.fmax(x, 1),
    "frexp": lambda m, x: m.frexp(x)[0], "modf": lambda m, x: m.modf(x)[0], "round": lambda m, x: m.round(x, 1),
    "ldexp": lambda m, x: m.ldexp(x, np.arange(7, dtype="int32")), "heaviside": lambda m, x: m.heaviside(x, 0.5),
    "cross": lambda m, x: m.cross(m.stack([x[:3], x[3:6]]), np.ones(3, x.dtype)),
    "maximum.accumulate": lambda m, x: m.maximum.accumulate(x), "trapezoid of rows": lambda m, x: m.trapezoid(
        m.reshape(x[:6], (2, 3))),
    "vander": lambda m, x: m.vander(x, 3), "kron": lambda m, x: m.kron(x, np.ones(2, x.dtype)),
    "einsum": lambda m, x: m.einsum("ij->i", m.reshape(x[:6], (2, 3))), "median": lambda m, x: m.median(
        m.reshape(x[:6], (2, 3)), axis=1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_an_element_spoils_only_what_depends_on_it(name: str, dtype: str):
    call = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = atled.jit(lambda x: call(jnp, x))
        for at in range(7):
            for value in (nan, inf, -inf):
                x = np.array([2, 1, -1, 3, 0.5, -2, 4], dtype)
                x[at] = value
                want = call(np, x)
                for got in (call(jnp, jnp.asarray(x)), compiled(x)):
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=f"{value} at {at}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_overflows_only_if_its_result_does(dtype: str):
    tiny = float(np.finfo(dtype).tiny)
    x = np.array([0, -0.0, inf, -inf, nan, tiny, 1, -1, 1.5, 3], dtype)
    with np.errstate(all="ignore"):
        for n in (-(2**31), -2200, -300, -40, -15, -1, 0, 1, 14, 127, 128, 277, 1023, 2100, 2**31 - 1):
            want, got = np.ldexp(x, np.int32(n)), np.asarray(jnp.ldexp(x, np.int32(n)))
            is_subnormal = (np.abs(want) < tiny) & (want != 0)  # the compiler's are zero
            np.testing.assert_array_equal(got[~is_subnormal], want[~is_subnormal], err_msg=str(n))
    assert atled.grad(lambda v: jnp.ldexp(v, 3))(2.0) == 8


@pytest.mark.parametrize("is_reversed", [False, True])
def test_short_axes_are_accumulated_in_order(is_reversed: bool):
    """Partial results of others than the elements so far may overflow where none of the results does."""
    big = np.float32(3e38)
    for f, rows in (
        (lax.cumsum, [[-big, 1, big, big, -1], [big, -big, big, -big, big]]),
        (lax.cumprod, [[0, 1, big, 9, 2], [1e30, 1, 1e-30, 1e-30, 1e30, 1e5], [1e-30, 1e10, 1e20, 1e20, 1e-5, 1e-5]]),
    ):
        for row in rows:
            x = np.array(row, "float32")
            with np.errstate(over="ignore"):
                want = getattr(np, f.__name__)(x)
            np.testing.assert_allclose(
                f(x[::-1] if is_reversed else x, reverse=is_reversed)[:: -1 if is_reversed else 1], want
            )
    x = np.random.default_rng(0).normal(size=(3, 16)).astype("float32")
    np.testing.assert_array_equal(jnp.cumsum(x, 1), np.cumsum(x, 1))
    np.testing.assert_array_equal(jnp.cumprod(x, 1), np.cumprod(x, 1))


def test_values_at_zero_and_infinity():
    for dtype in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "bfloat16", "float16"):
        assert float(jnp.sinc(jnp.zeros((), dtype))) == 1
    z = np.array([inf, complex(nan, inf), 1.26 + 2.34j], "complex64")
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(jnp.round(z, 1), np.round(z, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cube_roots_of_small_numbers(dtype: str):
    tiny = np.finfo(dtype).tiny
    x = np.geomspace(float(tiny), float(tiny) * 1e12, 999).astype(dtype)
    want = np.cbrt(x.astype(np.longdouble))
    for v in (x, -x):
        assert (np.abs(np.abs(np.asarray(jnp.cbrt(v))) - want) <= np.spacing(want.astype(dtype))).all()


def test_masked_arrays_are_refused():
    m = np.ma.array([1.0, 999.0, 3.0], mask=[0, 1, 0])
    place = atled.sharding.SingleDeviceSharding(atled.devices()[0])
    for f in (
        lambda: jnp.asarray(m), lambda: jnp.sum(m), lambda: jnp.ones(3) + m, lambda: jnp.where(m, 1, 2),
        lambda: atled.jit(lambda x: x)(m), lambda: atled.jit(lambda x: x + m)(1.0), lambda: atled.grad(jnp.sum)(m),
        lambda: atled.device_put(m), lambda: data.arrays(x=m), lambda: jnp.asarray([m, m]),
        lambda: atled.make_array_from_callback((3,), place, lambda i: m[i]),
        lambda: atled.make_array_from_process_local_data(place, m), lambda: atled.vmap(lambda x: x)(m),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"masked array|MaskedArray of float64, not x\.filled"):
            f()


def test_empty_axes_and_complex_extrema():
    for axis in (0, -2, None):
        with pytest.raises(IndexError, match="an axis of length 0 has no elements to read"):
            jnp.take(jnp.zeros((0, 3)), jnp.array([0, 2]), axis=axis)
    assert jnp.take(jnp.zeros((0, 3)), jnp.array([0, 1, 2, 0]), axis=1).shape == (0, 4)
    assert jnp.take(jnp.zeros((0, 3)), jnp.zeros(0, "int32"), axis=0).shape == (0, 3)
    c = np.array([1j, 2, 3], "complex64")
    assert jnp.max(c, initial=1j) == 3 and jnp.min(c, initial=5, where=c.real > 2) == 3
    np.testing.assert_array_equal(jnp.fmax(c, 1.0), np.fmax(c, 1.0))
    np.testing.assert_array_equal(jnp.fmin(np.array([nan, 2j]), 1.0), np.fmin(np.array([nan, 2j]), 1.0))
    with pytest.raises(TypeError, match="segments: complex numbers have no order"):
        atled.ops.segment_max(c, np.array([0, 0, 1]))


def test_bools_and_narrow_integers():
    values, positions = lax.top_k(np.array([True, False, True]), 2)
    assert values.tolist() == [True, True] and positions.tolist() == [0, 2]
    assert jnp.histogram(jnp.array([1, 2, 3], "int4"), bins=3)[0].tolist() == [1, 1, 1]


def test_the_step_of_a_run_has_one_dtype():
    for is_wide in (False, True):
        with atled.enable_x64(is_wide):
            assert train.State(Linear(2, 2, key=atled.random.key(0)), optim.SGD(0.1)).step.dtype == "int32"
