"""The array API standard, version 2025.12: inspection, special values of real functions, and corners it asks for."""

from __future__ import annotations

import inspect
import math

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp

INF, NAN, PI = math.inf, math.nan, math.pi


# -- inspection -------------------------------------------------------------------------------------------------------

KINDS = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


def test_the_namespace():
    x = jnp.zeros(2)
    assert jnp.__array_api_version__ == "2025.12"
    assert x.__array_namespace__() is jnp and x.__array_namespace__(api_version="2022.12") is jnp
    assert atled.jit(lambda v: v.__array_namespace__().sum(v))(x) == 0
    with pytest.raises(
        ValueError, match=r"__array_namespace__: the array API standard is followed up to 2025.12; got '2"
    ):
        x.__array_namespace__(api_version="2031.12")


@pytest.mark.parametrize("kind", [None, *KINDS, ("bool", "real floating")])
def test_dtypes(kind):
    info = jnp.__array_namespace_info__()
    found = info.dtypes(kind=kind, device=info.default_device())
    names = KINDS["bool"] + KINDS["numeric"] if kind is None else KINDS.get(kind) or ["bool", *KINDS["real floating"]]
    assert list(found) == names
    assert all(getattr(jnp, name) == dtype == jnp.empty(1, dtype=dtype).dtype for name, dtype in found.items())


def test_defaults_are_true():
    info = jnp.__array_namespace_info__()
    assert isinstance(info.devices(), tuple) and info.default_device() in info.devices()
    assert jnp.zeros(1, device=info.devices()[0]).device == info.devices()[0]

    def check():
        default = info.default_dtypes()
        assert default["real floating"] == jnp.ones(1).dtype == jnp.linspace(0, 1, 3).dtype
        assert default["complex floating"] == jnp.asarray(1j).dtype == jnp.fft.fft(jnp.ones(2)).dtype
        assert default["integral"] == jnp.arange(3).dtype == jnp.asarray(1).dtype
        assert default["indexing"] == jnp.argmax(jnp.ones(2)).dtype == jnp.nonzero(jnp.ones(2))[0].dtype
        assert default["indexing"] == jnp.searchsorted(jnp.ones(2), 1.0).dtype

    check()
    assert info.default_dtypes()["real floating"] == "float32"
    with atled.enable_x64():
        assert info.default_dtypes()["real floating"] == "float64"


def test_capabilities():
    able = jnp.__array_namespace_info__().capabilities()
    assert able["boolean indexing"] and jnp.arange(3)[jnp.arange(3) > 1].tolist() == [2]
    assert able["data-dependent shapes"] and jnp.unique_values(jnp.asarray([1, 1])).shape == (1,)
    most = able["max dimensions"]
    assert np.asarray(jnp.ones((1,) * most) + 1).ndim == most
    with pytest.raises(ValueError):
        np.asarray(jnp.ones((1,) * (most + 1)))


def test_kinds_that_are_none():
    with pytest.raises(ValueError, match=r"dtypes: a kind is one of 'bool', .*; got 'float'"):
        jnp.__array_namespace_info__().dtypes(kind="float")


def test_texts_are_no_dtypes():
    """Comparisons with any text say no; NumPy reads one with a comma as a list of fields, and raises."""
    text = "If x is NaN, then y"
    assert jnp.float32 != text and text not in (jnp.float32, jnp.int8) and jnp.float32 == "float32"
    assert jnp.float64 != None and None not in (jnp.float64, jnp.float32)  # noqa: E711
    with pytest.raises(TypeError, match="is not a dtype"):
        jnp.zeros(2, text)


def test_limits_are_python_numbers():
    for dtype in ("float32", "float64", "complex64", "bfloat16"):
        for given in (dtype, jnp.dtype(dtype), jnp.ones(2, dtype)):
            info, real = jnp.finfo(given), "float32" if dtype == "complex64" else dtype
            want = ml_dtypes.finfo(real)
            assert all(type(v) is float for v in (info.eps, info.max, info.min, info.smallest_normal))
            assert type(info.bits) is int and info.dtype == real
            assert (info.eps, info.max, info.tiny) == (float(want.eps), float(want.max), float(want.tiny))
    assert jnp.iinfo(jnp.asarray([1], "int16")).max == 32767 and type(jnp.iinfo("uint8").max) is int


# -- special values of real functions ---------------------------------------------------------------------------------

# function, operands, value; from the text of the standard
REAL = [
    ("floor_divide", (1, INF), 0.0), ("floor_divide", (1, -INF), -0.0), ("floor_divide", (-1, INF), -0.0),
    ("floor_divide", (-1, -INF), 0.0), ("floor_divide", (INF, 2), INF), ("floor_divide", (-INF, 2), -INF),
    ("floor_divide", (INF, INF), NAN), ("floor_divide", (0, 0), NAN), ("floor_divide", (-0.0, 2), -0.0),
    ("floor_divide", (3, -0.0), -INF), ("floor_divide", (-7, 2), -4.0),
    ("remainder", (1, INF), 1.0), ("remainder", (1, -INF), -INF), ("remainder", (-1, INF), INF),
    ("remainder", (INF, 2), NAN),
    ("remainder", (0.0, -2), -0.0), ("remainder", (5, -3), -1.0),
    ("sign", (-0.0,), 0.0), ("sign", (0.0,), 0.0), ("sign", (NAN,), NAN), ("sign", (-INF,), -1.0),
    ("atan2", (0.0, -0.0), PI), ("atan2", (-0.0, -0.0), -PI), ("atan2", (INF, -INF), 3 * PI / 4),
    ("atan2", (0.0, 1), 0.0),
    ("pow", (NAN, 0), 1.0), ("pow", (1, NAN), 1.0), ("pow", (-0.0, 3), -0.0), ("pow", (-0.0, -3), -INF),
    ("pow", (0.5, INF), 0.0),
    ("pow", (-1, INF), 1.0), ("pow", (-INF, 3), -INF), ("pow", (-8, 1 / 3), NAN),
    ("hypot", (INF, NAN), INF), ("hypot", (NAN, 1), NAN), ("hypot", (3e30, 4e30), 5e30),
    ("maximum", (NAN, 1), NAN), ("minimum", (1, NAN), NAN), ("copysign", (3, -0.0), -3.0),
    ("copysign", (-NAN, 1), NAN),
    ("logaddexp", (-INF, -INF), -INF), ("logaddexp", (INF, -INF), INF), ("logaddexp", (NAN, 0), NAN),
    ("nextafter", (0.0, -1), -1.401298464324817e-45), ("log1p", (-1,), -INF), ("log1p", (-0.0,), -0.0),
    ("log", (-1,), NAN),
    ("expm1", (-INF,), -1.0), ("expm1", (-0.0,), -0.0), ("tanh", (-0.0,), -0.0), ("atanh", (1,), INF),
    ("acosh", (0.5,), NAN),
    ("round", (-0.5,), -0.0), ("round", (2.5,), 2.0), ("ceil", (-0.3,), -0.0), ("trunc", (-0.3,), -0.0),
    ("sqrt", (-0.0,), -0.0),
    ("reciprocal", (-0.0,), -INF), ("divide", (1, -0.0), -INF), ("multiply", (INF, 0), NAN),
    ("subtract", (INF, INF), NAN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "want"), REAL, ids=[f"{n}{x}".replace(" ", "") for n, x, _ in REAL])
def test_special_values(name, operands, want):
    got = float(getattr(jnp, name)(*[np.asarray(x, "float32") for x in operands]))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert want != 0 or math.copysign(1, got) == math.copysign(1, want)


# -- corners ----------------------------------------------------------------------------------------------------------

MASKS = [
    ((0,), np.zeros(0, bool)), ((0, 2), np.zeros(0, bool)), ((2, 0), np.ones(2, bool)),
    ((2, 0), np.ones((2, 0), bool)),
    ((), np.ones((), bool)), ((), np.zeros((), bool)), ((3, 2), np.ones((), bool)), ((3,), np.zeros((), bool)),
    ((3, 2), (slice(None), np.ones((), bool))), ((3, 2), (..., np.ones((), bool))), ((2, 3),
    (..., np.array([True, False, True]))),
    ((3, 2), (np.array([2, 0]), np.ones((), bool))),
]  # fmt: skip


@pytest.mark.parametrize(("dims", "mask"), MASKS)
def test_masks(dims, mask):
    x = np.arange(math.prod(dims), dtype="float32").reshape(dims)
    ours = tuple(
        jnp.asarray(m) if isinstance(m, np.ndarray) else m for m in (mask if isinstance(mask, tuple) else (mask,))
    )
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x)[ours]), x[mask])
    assert jnp.asarray(x)[ours].shape == x[mask].shape


def test_masks_of_no_length():
    """A length of zero fits any axis, and selects nothing."""
    assert jnp.ones(3)[jnp.zeros(0, bool)].shape == (0,)
    assert jnp.ones((3, 2, 4))[jnp.zeros((3, 0), bool)].shape == (0, 4)


def test_masks_that_do_not_fit():
    with pytest.raises(
        IndexError, match=r"index: a mask must have the lengths of the axes .*; got bool\[2\] at axis 1 of an array"
    ):
        jnp.ones((2, 3))[:, jnp.ones(2, bool)]
    with pytest.raises(atled.errors.NonConcreteBooleanIndexError):
        atled.jit(lambda x, m: x[m])(jnp.ones(3), jnp.asarray(True))


def test_reading_from_nothing():
    nothing = jnp.zeros((0, 2))
    assert nothing[jnp.zeros((3, 0), "int32")].shape == (3, 0, 2)
    assert jnp.take(nothing, jnp.asarray([1]), axis=0, mode="fill").tolist() == [[pytest.approx(NAN, nan_ok=True)] * 2]
    assert jnp.take_along_axis(nothing, jnp.zeros((0, 1), "int32"), axis=1).shape == (0, 1)
    with pytest.raises(IndexError, match=r"index: an axis of length 0 has no elements to read; got f32\[0,2\]"):
        nothing[jnp.asarray([0])]


@pytest.mark.parametrize(
    ("dims", "counts", "axis"),
    [((0,), [], None), ((0, 2), [], 0), ((2, 0), [1, 2], 0), ((0,), 3, 0), ((2, 3), [0, 0], 0)],
)
def test_repeat_of_nothing(dims, counts, axis):
    got = jnp.repeat(jnp.zeros(dims), jnp.asarray(counts, dtype="int32"), axis=axis)
    assert got.shape == np.repeat(np.zeros(dims), np.asarray(counts, int), axis=axis).shape
    with pytest.raises(ValueError, match="repeat: an axis of length 0 has nothing to repeat"):
        jnp.repeat(jnp.zeros(0), jnp.asarray([], dtype="int32"), total_repeat_length=2)


@pytest.mark.parametrize("offset", [-5, -1, 0, 1, 2, 7])
@pytest.mark.parametrize("dims", [(1, 1), (0, 3), (2, 4), (3, 0, 2)])
def test_diagonals_outside(dims, offset):
    x = np.arange(math.prod(dims), dtype="float32").reshape(dims)
    np.testing.assert_array_equal(np.asarray(jnp.diagonal(jnp.asarray(x), offset)), np.diagonal(x, offset))
    np.testing.assert_array_equal(np.asarray(jnp.eye(3, 2, k=offset * 2**40)), np.eye(3, 2, k=offset * 2**40))


WIDE = [
    lambda x: x + 2**40, lambda x: 2**40 - x, lambda x: x * -(2**40),
    lambda x: jnp.where(x > 1, x, 2**40),
    lambda x: jnp.maximum(x, 2**40), lambda x: jnp.clip(x, 0, 2**40), lambda x: jnp.full_like(x, 2**40),
]  # fmt: skip


@pytest.mark.parametrize("f", WIDE)
def test_wide_integers(f):
    x = np.asarray([1, 2**40, -3], "int64")
    want = type(f)(f.__code__, {"jnp": np})(x)  # the same function, with NumPy's functions
    for got in (f(jnp.asarray(x)), atled.jit(f)(jnp.asarray(x))):
        np.testing.assert_array_equal(np.asarray(got), want)
    with pytest.raises(OverflowError, match=r"must fit into int32|out of bounds for int32"):
        f(jnp.asarray([1, 2, 3]))


def test_wide_integers_of_other_kinds():
    assert (jnp.asarray([1], "uint64") + 2**63).tolist() == [2**63 + 1]
    assert (jnp.asarray([1], "uint32") + 2**31).tolist() == [2**31 + 1] == (jnp.asarray([1], "int64") + 2**31).tolist()
    assert float((jnp.ones(1, "float32") * 2**40)[0]) == 2.0**40
    assert jnp.zeros(2, "int64").at[0].set(2**40).tolist() == [2**40, 0]
    for bad in (
        lambda: jnp.asarray([1], "int64") + 2**63,
        lambda: jnp.asarray([1], "int64") * 2**70,
        lambda: jnp.add(2**40, 1),
    ):
        with pytest.raises(OverflowError, match="must fit into"):
            bad()
    for bad in (lambda: jnp.asarray(2**40), lambda: jnp.full(2, 2**40), lambda: jnp.asarray([2**40])):
        with pytest.raises(OverflowError):  # what is made of numbers alone has the default dtype
            bad()


def test_linspace_has_the_width_that_is_asked_for():
    a, b = 4.5860098989617354e-11, 0.1
    got = jnp.linspace(a, b, 3, dtype="float64")
    np.testing.assert_allclose(np.asarray(got), np.linspace(a, b, 3), rtol=1e-15)
    assert jnp.linspace(0, 1j, 3, dtype="complex128").dtype == "complex128"
    assert jnp.linspace(jnp.zeros(2), 1.0, 3, dtype="float64").shape == (3, 2)


def test_copies():
    x = jnp.arange(3)
    y = jnp.asarray(x, copy=True)
    assert y is not x
    x.delete()
    assert y.tolist() == [0, 1, 2]
    assert jnp.asarray(y, copy=False) is y and jnp.asarray(y, "int32", copy=False) is y
    for bad in (lambda: jnp.asarray(y, "float32", copy=False), lambda: jnp.asarray(np.ones(2), copy=False)):
        with pytest.raises(ValueError, match="asarray: with copy=False, an array of the requested dtype is needed"):
            bad()


def test_axes_out_of_bounds_are_index_errors():
    for error in (IndexError, ValueError, np.exceptions.AxisError):
        with pytest.raises(error, match="expand_dims: axis 3 is out of bounds"):
            jnp.expand_dims(jnp.ones(2), axis=3)


def test_results_that_are_tuples():
    assert type(jnp.meshgrid(jnp.ones(2), jnp.ones(3))) is tuple
    assert type(jnp.broadcast_arrays(jnp.ones(2), jnp.ones((3, 1)))) is tuple


def test_operators_in_place_bind_the_name_anew():
    x = y = jnp.arange(3)
    x += 1
    x *= 2
    x //= 2
    assert x.tolist() == [1, 2, 3] and y.tolist() == [0, 1, 2]


def test_signatures_of_inspection():
    info = jnp.__array_namespace_info__()
    for name, want in {
        "capabilities": [],
        "devices": [],
        "default_dtypes": ["device"],
        "dtypes": ["device", "kind"],
    }.items():
        parameters = inspect.signature(getattr(info, name)).parameters
        assert list(parameters) == want and all(p.kind is p.KEYWORD_ONLY for p in parameters.values())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log1p_keeps_its_digits(dtype):
    """XLA's series for float64 is off by a hundred units in the last place near -0.41."""
    x = np.linspace(-0.9, 3, 500).astype(dtype)
    want = np.log1p(x.astype("longdouble"))
    np.testing.assert_allclose(np.asarray(jnp.log1p(x)), want.astype(dtype), rtol=3 * np.finfo(dtype).eps)


NARROW = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int4", "uint4"]


@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_at_the_ends_of_a_dtype(dtype):
    """In a single call as under jit: a number that fits is exact, and one that does not is an error."""
    info = jnp.iinfo(dtype)
    ends = [int(info.min), int(info.max)]
    x = jnp.asarray(np.array([1, 0], np.int8)).astype(dtype)
    for number in (0, 1, *ends):
        assert (x * 0 + number).tolist() == [number, number]
    for number in (ends[0] - 1, ends[1] + 1):
        for f in (lambda v, n=number: v + n, lambda v, n=number: jnp.where(v > 0, v, n), lambda v, n=number: n - v):
            with pytest.raises(OverflowError, match="must fit into"):
                f(x)
            with pytest.raises(OverflowError, match="must fit into"):
                atled.jit(f)(x)
    with pytest.raises(OverflowError, match="must fit into"):
        jnp.add(np.asarray(x), ends[1] + 1)
    assert jnp.roll(x, 300).tolist() == [1, 0]  # a number that does not meet the elements


@pytest.mark.parametrize("dtype", NARROW)
def test_comparisons_with_numbers_are_exact(dtype):
    info = jnp.iinfo(dtype)
    ends = [int(info.min), int(info.max)]
    x = jnp.asarray(np.array(ends)).astype(dtype)
    for number in (ends[0] - 1, *ends, ends[1] + 1, 300, -1, 2**40):
        for name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
            wanted = [getattr(v, name)(number) for v in ends]
            assert getattr(x, name)(number).tolist() == wanted
            assert atled.jit(lambda v, c=name, n=number: getattr(v, c)(n))(x).tolist() == wanted
