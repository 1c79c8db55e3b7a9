"""A NaN reaches what depends on it, in arrays that are large enough for the compiler's own kernels.

Those of the engine take the other number where one of two is NaN, which the ops here avoid.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn, ops

KINDS = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}

# function of x, and what NumPy says where NaN is
WITHIN: dict[str, tuple[Any, Any]] = {
    "max of rows": (lambda x: jnp.max(x, 1), lambda n: n.any(1)),
    "max of columns": (lambda x: jnp.max(x, 0), lambda n: n.any(0)),
    "max": (jnp.max, lambda n: n.any()),
    "min of rows": (lambda x: jnp.min(x, 1), lambda n: n.any(1)),
    "min of 2 x + 1": (lambda x: jnp.min(2 * x + 1, 0), lambda n: n.any(0)),
    "ptp": (lambda x: jnp.ptp(x, 1), lambda n: n.any(1)),
    "maximum": (lambda x: jnp.maximum(x, 0), lambda n: n),
    "sum of maximum": (lambda x: jnp.sum(jnp.maximum(x, 0), 1), lambda n: n.any(1)),
    "sum of maximum, swapped": (lambda x: jnp.sum(jnp.maximum(0, x), 0), lambda n: n.any(0)),
    "sum of maximum of two": (lambda x: jnp.sum(jnp.maximum(x, jnp.flip(x)), 1), lambda n: (n | np.flip(n)).any(1)),
    "sum of minimum": (lambda x: jnp.sum(jnp.minimum(x, 1), 1), lambda n: n.any(1)),
    "sum of relu": (lambda x: jnp.sum(nn.relu(x), 1), lambda n: n.any(1)),
    "mean of relu6": (lambda x: jnp.mean(nn.relu6(x), 1), lambda n: n.any(1)),
    "sum of hard_tanh": (lambda x: jnp.sum(nn.hard_tanh(x), 1), lambda n: n.any(1)),
    "sum of clip": (lambda x: jnp.sum(jnp.clip(x, -1, 1), 1), lambda n: n.any(1)),
    "relu of sums": (lambda x: nn.relu(jnp.sum(x, 1)), lambda n: n.any(1)),
    "sum of exp of maximum": (lambda x: jnp.sum(jnp.exp(jnp.maximum(x, -1)), 1), lambda n: n.any(1)),
    "softmax": (nn.softmax, lambda n: np.broadcast_to(n.any(1)[:, None], n.shape)),
    "log_softmax": (nn.log_softmax, lambda n: np.broadcast_to(n.any(1)[:, None], n.shape)),
    "logsumexp": (lambda x: nn.logsumexp(x, 1), lambda n: n.any(1)),
    "softmax of relu": (lambda x: nn.softmax(nn.relu(x)), lambda n: np.broadcast_to(n.any(1)[:, None], n.shape)),
    "product with relu": (
        lambda x: nn.relu(x) @ jnp.ones_like(x).T, lambda n: np.broadcast_to(n.any(1)[:, None], (len(n),) * 2)
    ),
    "relu of a product": (
        lambda x: nn.relu(x @ jnp.ones_like(x).T), lambda n: np.broadcast_to(n.any(1)[:, None], (len(n),) * 2)
    ),
    "cummax": (lambda x: lax.cummax(x, 1), lambda n: np.logical_or.accumulate(n, 1)),
    "max pool": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, x.shape[1]), (1, 1), "VALID")[:, 0], lambda n: n.any(1)
    ),
    "segment_max": (
        lambda x: ops.segment_max(x, jnp.arange(x.shape[0]) // 2, x.shape[0] // 2),
        lambda n: n.reshape(-1, 2, n.shape[1]).any(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WITHIN)
def test_nan_is_not_lost(name, kind):
    f, where = WITHIN[name]
    r = np.random.default_rng(0)
    for dims in [(6, 1001), (300, 300), (1200, 4)]:
        x = r.standard_normal(dims).astype(KINDS[kind])
        x[1, ::7] = x[::5, 2] = np.nan
        with atled.enable_x64(kind == "float64"):
            for call in (f, atled.jit(f)):
                got = np.isnan(np.asarray(call(x)).astype(np.float64))
                np.testing.assert_array_equal(got, where(np.isnan(x.astype(np.float64))), err_msg=f"{dims}")


@pytest.mark.parametrize(
    "length", [1, 2, 7, 31, 63, 64, 65, 127, 128, 129, 255, 256, 512, 1023, 1024, 1025, 4096, 65536]
)
def test_nan_at_each_kind_of_place_in_rows_of_each_length(length):
    for at in {0, length // 3, max(0, length - 5), max(0, length - 2), length - 1}:
        x = np.ones((3, length), np.float32)
        x[1, at] = np.nan
        for f in (jnp.max, jnp.min):
            np.testing.assert_array_equal(np.asarray(f(x, 1)), [1, np.nan, 1])
            assert np.isnan(f(x[1]))
        assert np.isnan(float(atled.jit(lambda v: jnp.sum(jnp.maximum(v, 0)))(x[1])))
        assert int(jnp.argmax(x[1])) == int(jnp.argmin(x[1])) == at


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("log", ["log", "log2", "log10", "log1p"])
def test_logarithms_of_powers_of_negative_numbers(log, dtype):
    """XLA takes log(x**y) for y log(abs(x)), which hides that the power is NaN or negative."""
    x = np.array([-2.0, -0.5, 2.0], KINDS[dtype])
    for exponent in (0.5, 3.0, x):
        power = lambda x: jnp.power(x, np.asarray(exponent, KINDS[dtype]))  # noqa: B023
        f = lambda x: getattr(jnp, log)(power(x))  # noqa: B023
        with np.errstate(invalid="ignore"):
            want = np.isnan(getattr(np, log)(np.power(x.astype("f8"), np.asarray(exponent, "f8"))))
        assert want.any()
        in_a_call = atled.jit(lambda x: getattr(jnp, log)(atled.jit(power)(x)))  # noqa: B023
        in_a_loop = atled.jit(lambda x: lax.scan(lambda c, v: (c, getattr(jnp, log)(v)), 0, power(x))[1])  # noqa: B023
        for g in (f, atled.jit(f), in_a_call, in_a_loop):
            np.testing.assert_array_equal(np.isnan(np.asarray(g(x), "f8")), want)


@pytest.mark.parametrize("dtype", KINDS)
def test_nan_is_the_largest_whatever_its_sign(dtype):
    """The NaN that a processor makes has a sign bit."""
    nan = np.copysign(np.array(np.nan, KINDS[dtype]), KINDS[dtype](-1))
    x = np.array([1.0, nan, 3.0, 2.0], KINDS[dtype])
    for f in (lax.top_k, atled.jit(lax.top_k, static_argnums=1)):
        values, positions = f(x, 2)
        assert np.isnan(values[0]) and values[1] == 3 and positions.tolist() == [1, 2]
    assert np.isnan(jnp.max(x)) and np.isnan(jnp.sort(x)[-1]) and jnp.argmax(x) == 1 and jnp.argsort(x)[-1] == 1
