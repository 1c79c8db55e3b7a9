"""NumPy's functions on arrays: traced ones are computed by `atled.numpy`, those on a device become NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core.trace import Tracer

X = np.array([[0.5, 1.5, 2.5], [1.0, 2.0, 3.0]], np.float32)
Y = np.array([[2.0, 1.0, 0.5], [3.0, 2.0, 1.0]], np.float32)
FUNCTIONS = {
    "sin": lambda x: np.sin(x),
    "exp": lambda x: np.exp(-x),
    "add": lambda x: np.add(x, Y),
    "maximum": lambda x: np.maximum(Y, x),
    "where": lambda x: np.where(x > 1.2, x, 0.0),
    "concatenate": lambda x: np.concatenate([x, Y]),
    "stack": lambda x: np.stack([x, 2 * x]),
    "mean": lambda x: np.mean(x, axis=0),
    "sum": lambda x: np.sum(x, axis=1, keepdims=True),
    "max": lambda x: np.max(x),
    "transpose": lambda x: np.transpose(x),
    "reshape": lambda x: np.reshape(x, (3, 2)),
    "dot": lambda x: np.dot(x, Y.T),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, Y),
    "clip": lambda x: np.clip(x, 0.6, 2.0),
    "cumsum": lambda x: np.cumsum(x, axis=-1),
    "norm": lambda x: np.linalg.norm(x, axis=0),
    "fft": lambda x: np.abs(np.fft.fft(x)),
    "operator *": lambda x: Y * x,
    "operator -": lambda x: Y - x,
    "operator /": lambda x: Y / x,
    "operator **": lambda x: Y**x,
    "operator @": lambda x: Y.T @ x,
    "number on the left": lambda x: np.float32(2.0) * x + np.float64(1.0) / x,
}
EACH = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=list(FUNCTIONS))


@EACH
def test_under_jit(f):
    kinds = []
    out = atled.jit(lambda x: kinds.append(type(f(x))) or f(x))(X)
    want = f(X)
    assert issubclass(kinds[0], Tracer) and isinstance(out, atled.Array)
    assert out.shape == want.shape and out.dtype == jnp.float32
    np.testing.assert_allclose(out, want, rtol=2e-5)


@EACH
def test_under_grad(f):
    slope = atled.grad(lambda x: jnp.sum(f(x)))(X)
    step, direction = 1e-2, np.cos(np.arange(6, dtype=np.float32).reshape(2, 3))
    difference = (np.sum(f(X + step * direction)) - np.sum(f(X - step * direction))) / (2 * step)
    assert abs(float(jnp.sum(slope * direction)) - difference) < 2e-2 * max(abs(difference), 1)


@EACH
def test_under_vmap(f):
    batch = np.stack([X, X + 0.25])
    out = atled.vmap(f)(batch)
    np.testing.assert_allclose(out, np.stack([f(x) for x in batch]), rtol=2e-5)


def test_comparisons_and_divmod_with_a_numpy_array_on_the_left():
    less, equal, (whole, rest) = atled.jit(lambda x: (Y < x, Y == x, divmod(Y, x)))(X)  # noqa: SIM300
    assert less.dtype == equal.dtype == bool
    np.testing.assert_array_equal(less, Y < X)
    np.testing.assert_array_equal(equal, Y == X)
    np.testing.assert_allclose(whole, Y // X)
    np.testing.assert_allclose(rest, Y % X, rtol=1e-5)


def test_an_accumulator_that_starts_as_a_numpy_array():
    @atled.jit
    def twice(x):
        total = np.zeros(3, np.float32)
        for _ in range(2):
            total += x
        return total

    np.testing.assert_array_equal(twice(np.ones(3, np.float32)), [2, 2, 2])


def test_shapes_and_dtypes_are_known():
    seen = []
    atled.jit(lambda x: seen.append((np.shape(x), np.ndim(x), np.size(x), np.result_type(x))) or x)(X)
    assert seen == [((2, 3), 2, 6, jnp.float32)]


def test_arrays_on_a_device_become_numpy_arrays():
    x = jnp.asarray(X)
    for out in (np.sin(x), np.add(x, Y), np.where(x > 1, x, 0.0), np.concatenate([x, Y])):
        assert type(out) is np.ndarray
    for out in (Y * x, Y @ x.T, Y < x, np.float32(2.0) * x):  # noqa: SIM300
        assert isinstance(out, atled.Array)
    room = np.zeros_like(X)
    np.sin(x, out=room)
    np.testing.assert_allclose(room, np.sin(X))


@pytest.mark.parametrize(
    "f, says, way_out",
    [
        (lambda x: np.isnat(x), r"numpy\.isnat: NumPy needs values to compute with; got a traced f32\[2,3\]", "pure_c"),
        (lambda x: np.copyto(np.zeros((2, 3)), x), r"numpy\.copyto: NumPy needs values", "pure_callback"),
        (lambda x: np.add.reduce(x), r"numpy\.add\.reduce: NumPy needs values", r"atled\.numpy\.sum"),
        (lambda x: np.hypot.accumulate(x), r"numpy\.hypot\.accumulate: NumPy needs", r"lax\.associative_scan"),
        (lambda x: np.sin(x, out=np.zeros((2, 3))), r"numpy\.sin: a NumPy array given as `out`", r"atled\.numpy\.sin"),
        (lambda x: np.mean(x, 0, out=np.zeros(3)), r"numpy\.mean: a NumPy array given as `out`", "without `out`"),
        (lambda x: np.add(room := np.ones((2, 3)), x, out=room), r"numpy\.add: a NumPy array given", "without"),
        (lambda x: np.frompyfunc(abs, 1, 1)(x), r"abs \(vectorized\): NumPy needs values", "pure_callback"),
    ],
)
def test_what_cannot_be_done_is_said(f, says, way_out):
    with pytest.raises(TypeError, match=rf"(?s)^{says}.*test_protocols\.py.*try: .*{way_out}"):
        atled.jit(f)(X)


def test_other_kinds_of_arrays_are_left_to_decide():
    class Other:
        def __array_function__(self, function, types, args, kwargs):
            return "mine"

    seen = []
    atled.jit(lambda x: seen.append(np.concatenate([x, Other()])) or x)(X)
    assert seen == ["mine"]
