"""Python numbers, traced and not, next to NumPy arrays of every dtype and shape; and dtypes that are mixed."""

import operator

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NAMES += ["float16", "float32", "float64", "complex64", "complex128"]
NUMBERS = {"bool": True, "int": 3, "float": 2.5, "complex": 1.5 + 0.5j}
RANK = "biufc"
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, jnp.maximum]
REAL = [operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.ge, operator.eq, operator.ne]


def chosen(x, y):
    return jnp.where(y == 1, x, y)


def operands(name):
    """NumPy arrays of ones and twos in a dtype: of all shapes, 0-d, and the scalar."""
    arrays = [(np.arange(np.prod(s, dtype=int)) % 2 + 1).reshape(s).astype(name) for s in ((), (1,), (4,), (2, 1))]
    return [*arrays, np.dtype(name).type(2)]


def functions(number, name):
    kinds = {type(number).__name__[0], np.dtype(name).kind}
    out = [*ARITHMETIC, *COMPARISONS, chosen]
    if kinds <= {"b"}:
        out.remove(operator.sub)
    return out if "c" in kinds else [*out, *REAL]


def expected_dtype(f, number, x):
    """The rule in the guide: the array's dtype, unless the number is of a higher kind; then that kind's default."""
    if f in COMPARISONS:
        return np.dtype(bool)
    kind = "u" if np.dtype(x.dtype).kind == "u" else x.dtype.kind
    own = {"b": "b", "i": "i", "f": "f", "c": "c"}[type(number).__name__[0]]
    is_weak = type(x) in (np.int64, np.float64, np.complex128)
    default = {"b": np.bool_, "i": np.int32, "f": np.float32, "c": np.complex64}
    if RANK.index(own) > RANK.index("i" if kind == "u" else kind):
        dtype = np.complex128 if own == "c" and x.dtype == np.float64 and not is_weak else default[own]
    else:
        dtype = default[kind] if is_weak else x.dtype
    dtype = np.dtype(dtype)
    if f is operator.truediv and dtype.kind in "biu":
        return np.dtype(np.float32)
    return np.dtype(np.int32) if f in (*REAL, operator.pow) and dtype.kind == "b" else dtype


def in_numpy(f, x, y):
    if f is chosen:
        return np.where(y == 1, x, y)
    if f is jnp.maximum:
        a, b = np.broadcast_arrays(x, y)
        return np.where((a.real > b.real) | ((a.real == b.real) & (a.imag >= b.imag)), a, b)
    if f in (operator.lt, operator.ge) and np.result_type(x, y).kind == "c":
        key = lambda v: np.real(v) * 8 + np.imag(v)
        return f(key(x), key(y))
    return f(x, y)


def wide(x):
    return np.asarray(x).astype({"f": "float64", "c": "complex128"}.get(x.dtype.kind, "int64"))


def check(f, number, x, out, is_reversed):
    dtype = expected_dtype(f, number, x)
    assert out.shape == np.shape(x)
    assert out.dtype == dtype
    a, b = wide(np.asarray(number)), wide(x)
    want = in_numpy(f, *((b, a) if is_reversed else (a, b)))
    tolerance = 2e-3 if dtype == np.float16 or x.dtype == np.float16 else 2e-6
    np.testing.assert_allclose(np.asarray(out), want.astype(dtype), rtol=tolerance, atol=tolerance)


def every(number, name):
    rows = [(f, x, r) for f in functions(number, name) for x in operands(name) for r in (False, True)]
    return [row for row in rows if row[0] is not operator.pow or np.shape(row[1]) == (4,)]  # powers are long programs


def applied(rows, number):
    return [f(x, number) if r else f(number, x) for f, x, r in rows]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.filterwarnings("ignore:.*meet, and the result is")
def test_a_traced_number_meets_numpy(kind, name):
    number = NUMBERS[kind]
    rows = every(number, name)
    for (f, x, r), out in zip(rows, atled.jit(lambda v: applied(rows, v))(number), strict=True):
        check(f, number, x, out, r)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.filterwarnings("ignore:.*meet, and the result is")
def test_types_are_the_same_under_every_transform(kind, name):
    number = NUMBERS[kind]
    rows = every(number, name)
    eager = [(o.shape, o.dtype, o.weak_type) for o in atled.eval_shape(lambda v: applied(rows, v), number)]

    def types(f):
        return [(o.shape, o.dtype, o.weak_type) for o in atled.eval_shape(f, number)]

    assert types(lambda v: atled.vmap(lambda w, _: applied(rows, w), (None, 0), None)(v, jnp.zeros(1))) == eager
    stacked = types(lambda v: atled.vmap(lambda w: applied(rows, w))(jnp.stack([v, v])))
    assert [(s[1:], *rest) for s, *rest in stacked] == eager
    assert types(lambda v: lax.scan(lambda c, _: (c, applied(rows, c)), v, None, length=1)[1]) == [
        ((1, *s), *rest) for s, *rest in eager
    ]
    if isinstance(number, (float, complex)):
        assert types(lambda v: atled.jvp(lambda w: applied(rows, w), (v,), (v,))[0]) == eager


@pytest.mark.parametrize("kind", ["int", "float"])
def test_one_operation_at_a_time_gives_the_same(kind):
    number = NUMBERS[kind]
    for name in ("bool", "int64", "float16"):
        for f, x, r in every(number, name):
            if np.shape(x) == (4,):
                check(f, number, x, f(x, jnp.asarray(number)) if r else f(jnp.asarray(number), x), r)


def test_traced_numbers_have_derivatives_next_to_integers():
    for x in (np.arange(4), np.ones((2, 1), bool), np.array([2], "uint8")):
        f = lambda v, x=x: jnp.sum(v * x + x / v)
        want = (x - x / 4.0).sum()
        for made in (atled.grad(f), atled.jit(atled.grad(f)), atled.grad(atled.jit(f)), atled.jacfwd(f)):
            np.testing.assert_allclose(made(2.0), want, rtol=1e-6)


# -- integers that no integer dtype holds ------------------------------------------------------------------------------


@pytest.mark.parametrize("signed", ["int8", "int16", "int32", "int64"])
def test_signed_integers_and_uint64_give_float64(signed):
    x, y = jnp.asarray(np.array([3], signed)), jnp.asarray(np.array([2**63], "uint64"))
    for f in (operator.add, operator.mul, operator.truediv, jnp.maximum):
        for made in (f, atled.jit(f)):
            for a, b in ((x, y), (y, x)):
                out = made(a, b)
                assert out.dtype == np.float64 and not out.weak_type
                want = np.maximum if f is jnp.maximum else f
                np.testing.assert_array_equal(out, want(*[np.asarray(v, "float64") for v in (a, b)]))
    assert jnp.result_type(signed, "uint64") == np.float64
    assert jnp.concatenate([x, y]).dtype == jnp.where(True, x, y).dtype == np.float64
    assert (x + y + 1.5).dtype == jnp.result_type(x, y, 1.5) == np.float64
    assert jnp.result_type(x, y, 1j) == np.complex128
    assert jnp.result_type(x, y, "bfloat16") == ml_dtypes.bfloat16


def test_dtypes_of_mixed_integers_hold_both():
    integers = [n for n in NAMES if "int" in n]
    for a in integers:
        for b in integers:
            assert jnp.result_type(a, b) == np.result_type(a, b), (a, b)


# -- narrow integers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4"])
def test_narrow_integers_and_python_numbers(name):
    values = np.array([1, 0, 1, 1])
    x = jnp.asarray(values).astype(name)
    for made in (lambda f: f, atled.jit):
        for f in (*ARITHMETIC[:3], *REAL, operator.pow, operator.lshift):
            out, want = made(lambda v, f=f: f(v, 1))(x), f(values, 1).astype(np.dtype(jnp.dtype(name)))
            assert out.dtype == x.dtype
            np.testing.assert_array_equal(np.asarray(out), want)
        for number in (1, 2.0, np.float64(4)):
            for f, want in ((operator.truediv, values / number), (jnp.arctan2, np.arctan2(values, number))):
                out = made(lambda v, f=f, n=number: f(v, n))(x)
                assert out.dtype == np.float32
                np.testing.assert_allclose(out, want, rtol=1e-6)
        for f in (np.mean, np.var, np.std, np.median):
            out = made(getattr(jnp, f.__name__))(x)
            assert out.dtype == np.float32
            np.testing.assert_allclose(out, f(values), rtol=1e-6)
        np.testing.assert_array_equal(np.asarray(made(jnp.sort)(x)).astype(int), np.sort(values))
    assert (x / jnp.ones(4, "bfloat16")).dtype == ml_dtypes.bfloat16
    with pytest.raises(TypeError, match="no common dtype"):
        x * 1.5
