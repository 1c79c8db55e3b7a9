"""`pad` in all modes against NumPy, with its derivatives against central differences."""

from __future__ import annotations

import doctest
import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.numpy import padding
from atled.numpy.padding import pad

R = np.random.RandomState(0)
REPEATING = [
    ("edge", {}),
    ("wrap", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}),
]
STATISTICS = [
    (mode, options)
    for mode in ("maximum", "minimum", "mean", "median")
    for options in ({}, {"stat_length": 2}, {"stat_length": (1, 3)}, {"stat_length": 99})
]
VALUED = [
    ("constant", {}),
    ("constant", {"constant_values": 3}),
    ("constant", {"constant_values": (1, 2)}),
    ("linear_ramp", {}),
    ("linear_ramp", {"end_values": 4}),
    ("linear_ramp", {"end_values": (-2, 7)}),
]
MODES = REPEATING + STATISTICS + VALUED
SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((4,), 1),
    ((4,), (0, 3)),
    ((5,), ((2, 0),)),
    ((3,), (7, 11)),
    ((1,), (2, 3)),
    ((2,), (5, 4)),
    ((3, 4), ((1, 2), (0, 1))),
    ((2, 3), (3,)),
    ((2, 3), [[4], [1]]),
    ((2, 1, 3), ((0, 0), (1, 1), (3, 2))),
    ((2, 3), {1: (1, 2)}),
    ((2, 3), {-2: 1}),
    ((), 2),
]


def label(case: Any) -> str:
    return "-".join([case[0], *[f"{k}={v}" for k, v in case[1].items()]])


def same(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def check_gradient(f: Any, x: np.ndarray) -> None:
    """The gradient of a weighted sum of f equals central differences, forwards and backwards."""
    with atled.enable_x64():
        weights = np.random.RandomState(1).randn(*f(jnp.asarray(x)).shape)
        loss = lambda x: jnp.sum(f(x) * weights)
        found = np.asarray(atled.grad(loss)(jnp.asarray(x)))
        h, want = 1e-6, np.zeros_like(x)
        for i in np.ndindex(*x.shape):
            step = np.zeros_like(x)
            step[i] = h
            want[i] = (float(loss(jnp.asarray(x + step))) - float(loss(jnp.asarray(x - step)))) / (2 * h)
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-7)
        v = np.random.RandomState(2).randn(*x.shape)
        _, tangent = atled.jvp(loss, (jnp.asarray(x),), (jnp.asarray(v),))
        np.testing.assert_allclose(float(tangent), np.sum(want * v), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dims, width", SHAPES, ids=str)
@pytest.mark.parametrize("case", MODES, ids=label)
def test_values(case, dims, width):
    mode, options = case
    x = np.asarray(R.randn(*dims))
    same(pad(x, width, mode, **options), np.pad(x, width, mode, **options))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float16", "complex64", "bool"])
@pytest.mark.parametrize("case", MODES, ids=label)
def test_dtypes(case, dtype):
    mode, options = case
    x = R.randint(0, 9, (3, 4)).astype(dtype)
    if dtype == "complex64":
        x = x + 1j * R.randint(0, 9, (3, 4)).astype("float32")
    if dtype == "bool" and (options.get("reflect_type") == "odd" or mode == "linear_ramp"):
        return
    if dtype == "uint8" and options.get("end_values") == (-2, 7):
        return  # a negative number has no place in an unsigned array
    same(
        pad(x, ((2, 1), (5, 3)), mode, **options),
        np.pad(x, ((2, 1), (5, 3)), mode, **options),
        2e-3 if dtype == "float16" else 1e-6,
    )


def test_integer_ramps_are_exact():
    """A ramp that hits an integer gives it, also where 1 / width is not exact."""
    for edge, end, width in itertools.product((0, 7, -9, 48, 2**31 - 1), (0, 49, -5), (1, 3, 7, 49)):
        got = np.asarray(pad(np.asarray([edge], "int64"), (width, 0), "linear_ramp", end_values=end))
        want = [(end * (width - i) + edge * i) // width for i in range(width)]
        assert got.tolist() == [*want, edge]


def test_special_values():
    x = np.asarray([1.0, np.nan, 3.0, np.inf])
    for mode in ("maximum", "minimum", "median", "mean", "reflect", "edge", "wrap"):
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            np.testing.assert_array_equal(np.asarray(pad(x, 2, mode)), np.pad(x, 2, mode))
    for dims in ((0,), (0, 2), (2, 0)):
        same(pad(np.zeros(dims), 1), np.pad(np.zeros(dims), 1))
    same(pad(np.zeros((0, 2)), ((0, 0), (1, 1)), "edge"), np.pad(np.zeros((0, 2)), ((0, 0), (1, 1)), "edge"))


def test_values_for_each_side():
    x = R.randn(2, 3)
    values = np.asarray([[1.0, 2.0], [3.0, 4.0]])
    for mode, name in (("constant", "constant_values"), ("linear_ramp", "end_values")):
        same(pad(x, 2, mode, **{name: values}), np.pad(x, 2, mode, **{name: values}))
        same(pad(x, 2, mode, **{name: ((1.0, 2.0), (3.0, 4.0))}), np.pad(x, 2, mode, **{name: values}))
    assert pad(np.zeros(2, "int64"), 1, constant_values=2**40).tolist() == [2**40, 0, 0, 2**40]


def test_empty_mode_has_the_shape():
    out = pad(np.ones((2, 3), "float32"), ((1, 0), (2, 2)), "empty")
    assert out.shape == (3, 7) and out.dtype == "float32" and np.all(np.asarray(out)[1:, 2:5] == 1)


def test_function_as_mode():
    def frame(row: Any, width: tuple[int, int], axis: int, options: dict[str, Any]) -> Any:
        value = options.get("value", 10) + axis
        row = row.at[: width[0]].set(value)
        return row.at[row.shape[0] - width[1] :].set(value)

    def frame_in_place(row: Any, width: tuple[int, int], axis: int, options: dict[str, Any]) -> None:
        value = options.get("value", 10) + axis
        row[: width[0]] = value
        row[len(row) - width[1] :] = value

    x = R.randn(2, 3)
    for options in ({}, {"value": -1}):
        same(pad(x, ((1, 2), (2, 1)), frame, **options), np.pad(x, ((1, 2), (2, 1)), frame_in_place, **options))


@pytest.mark.parametrize("case", MODES, ids=label)
def test_derivatives(case):
    mode, options = case
    check_gradient(lambda x: pad(x, ((1, 2), (5, 3)), mode, **options), R.randn(2, 3))


def test_derivatives_of_values():
    x = R.randn(2, 3)
    check_gradient(lambda v: pad(jnp.asarray(x), 2, constant_values=v), R.randn(2, 2))
    check_gradient(lambda v: pad(jnp.asarray(x), 2, constant_values=v), np.asarray(R.randn()))
    check_gradient(lambda v: pad(jnp.asarray(x), 2, "linear_ramp", end_values=v), R.randn(2, 2))


@pytest.mark.parametrize("case", MODES, ids=label)
def test_vmap_and_jit(case):
    mode, options = case
    f = lambda x: pad(x, ((1, 2), (5, 3)), mode, **options)
    x = R.randn(4, 2, 3)
    want = np.stack([np.asarray(f(v)) for v in x])
    same(atled.vmap(f)(x), want)
    same(atled.jit(atled.vmap(f))(x), want)
    same(atled.jit(f)(x[0]), want[0])
    g = atled.grad(lambda x: jnp.sum(jnp.sin(f(x))))
    same(atled.vmap(g)(x), np.stack([np.asarray(g(v)) for v in x]), 1e-9)


def test_values_under_vmap():
    x, v = R.randn(3), R.randn(4)
    got = atled.vmap(lambda v: pad(x, 1, constant_values=v))(v)
    same(got, np.stack([np.pad(x, 1, constant_values=u) for u in v]))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: pad(x, 1, "mirror"), ValueError, "pad: the mode is a function or one of"),
        (lambda x: pad(x, 1, "edge", constant_values=1), ValueError, "pad: mode 'edge' has no option constant_values"),
        (lambda x: pad(x, -1), ValueError, "pad: pad_width must not be negative; got -1"),
        (lambda x: pad(x, 1.5), TypeError, "pad: pad_width is an integer, a pair"),
        (lambda x: pad(x, (1, 2, 3)), ValueError, r"pad: pad_width must broadcast to shape \(1, 2\)"),
        (lambda x: pad(x, {0: 1, -1: 1}), ValueError, "pad: pad_width names axis 0 twice"),
        (lambda x: pad(x, {1: 1}), ValueError, "pad: axis 1 is out of bounds"),
        (lambda x: pad(x, 1, "mean", stat_length=0), ValueError, "pad: stat_length must be positive"),
        (lambda x: pad(x, 1, "reflect", reflect_type="both"), ValueError, "pad: reflect_type is 'even' or 'odd'"),
        (
            lambda x: pad(x, 1, constant_values=(1, 2, 3)),
            ValueError,
            r"pad: constant_values must broadcast to shape \(1, 2\)",
        ),
        (lambda x: pad(x > 0, 1, "reflect", reflect_type="odd"), TypeError, "pad: reflect_type='odd' subtracts"),
        (lambda x: pad(x[:0], 1, "edge"), ValueError, r"pad: axis 0 of f64\[0\] is empty"),
        (
            lambda x: atled.jit(lambda n: pad(x, n))(1),
            atled.errors.ConcretizationTypeError,
            "pad: pad_width must be known",
        ),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(np.arange(3.0))


def test_examples(monkeypatch):
    for name in padding.__all__:
        monkeypatch.setattr(jnp, name, getattr(padding, name), raising=False)
    for name in padding.__all__:
        for example in doctest.DocTestFinder().find(
            getattr(padding, name), name, module=False, globs=dict(vars(padding))
        ):
            assert doctest.DocTestRunner().run(example).failed == 0
