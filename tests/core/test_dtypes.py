"""Dtypes: names, promotion by the lattice, limits, strict mode, and the warning about widths."""

from __future__ import annotations

import itertools
import warnings

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import dtypes
from atled.core.types import ArrayType
from atled.numpy.promotion import MixedWidthWarning

STRONG = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def dtype(name):
    return dtypes.canonical(name)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(STRONG, repeat=2)))
def test_promotion_laws(a, b):
    """Commutative, idempotent, an upper bound, and NumPy's answer wherever NumPy has none wider than needed."""
    x, y = (dtype(a), False), (dtype(b), False)
    found = dtypes.promote(x, y)
    assert found == dtypes.promote(y, x)
    assert dtypes.promote(x, x)[0] == x[0]
    assert dtypes.promote(found, x)[0] == found[0] or found[1]
    if "bfloat16" in (a, b):
        return
    numpy = np.promote_types(a, b)
    kinds = {dtypes.kind(v) for v in (dtype(a), dtype(b))}
    if (kinds <= set("biu") and not ({a, b} >= {"uint64"} and kinds & set("i"))) or len(kinds) == 1:
        assert found[0] == numpy


@pytest.mark.parametrize(
    ("a", "b", "c"),
    list(
        itertools.product(["bool", "uint8", "int32", "uint32", "bfloat16", "float16", "float32", "complex64"], repeat=3)
    ),
)
def test_promotion_is_associative(a, b, c):
    x, y, z = ((dtype(v), False) for v in (a, b, c))
    assert dtypes.promote(dtypes.promote(x, y), z)[0] == dtypes.promote(x, dtypes.promote(y, z))[0]


@pytest.mark.parametrize("name", STRONG)
def test_python_numbers_give_way(name):
    x = jnp.ones(2, name)
    kind = dtypes.kind(dtype(name))
    assert (x + 1).dtype == (dtype(name) if kind != "b" else np.int32)
    assert (x * 1.5).dtype == (dtype(name) if kind in "fc" else np.float32)
    assert (x * 1j).dtype == (dtype(name) if kind == "c" else np.complex128 if name == "float64" else np.complex64)
    assert (x + np.float64(1)).dtype == (x + 1.0).dtype and (x + np.int64(1)).dtype == (x + 1).dtype


def test_weakness_is_kept_and_lost():
    assert jnp.asarray(1.0).weak_type and (jnp.asarray(1.0) * 2).weak_type and jnp.sin(1.0).weak_type
    assert not jnp.ones(()).weak_type and not (jnp.asarray(1.0) + jnp.ones(())).weak_type
    assert not jnp.asarray(1.0, "float32").weak_type and not jnp.asarray(np.float32(1)).weak_type
    assert atled.jit(lambda x: x * 2)(3).weak_type
    assert (jnp.asarray(1.0) + jnp.bfloat16(1)).dtype == jnp.bfloat16


def test_narrow_dtypes_do_not_mix_silently():
    for name in ("float8_e4m3fn", "int4"):
        x = jnp.ones(2, "float32").astype(name)
        assert (x.astype("float32")).tolist() == [1, 1]
        with pytest.raises(TypeError, match="no common dtype"):
            x + jnp.ones(2, "float16" if "float" in name else "int8")


def test_defaults_follow_the_switch():
    assert (
        jnp.asarray(1.0).dtype == np.float32
        and jnp.arange(3).dtype == np.int32
        and jnp.asarray(1j).dtype == np.complex64
    )
    with atled.enable_x64():
        assert (
            jnp.asarray(1.0).dtype == np.float64
            and jnp.arange(3).dtype == np.int64
            and jnp.zeros(2).dtype == np.float64
        )
        assert (jnp.ones(2, "float32") * 2.0).dtype == np.float32
        with atled.enable_x64(False):
            assert jnp.zeros(2).dtype == np.float32
    assert jnp.zeros(2).dtype == np.float32


def test_asked_for_is_honoured():
    assert jnp.zeros(2, "float64").dtype == np.float64 and jnp.asarray(2**40, "int64").item() == 2**40
    assert jnp.asarray(np.arange(3.0)).dtype == np.float64 and jnp.asarray(np.arange(3)).dtype == np.int64
    for bad in (
        lambda: jnp.asarray(2**40),
        lambda: jnp.arange(3) + 2**40,
        lambda: jnp.asarray([2**40]),
        lambda: jnp.asarray(300, "uint8"),
    ):
        with pytest.raises(OverflowError):
            bad()


def test_widths_that_mix_are_said_once_a_line():
    a, b = jnp.ones(2, "float32"), jnp.ones(2, "float64")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            assert (a + b).dtype == np.float64
        a * b
    found = [w for w in seen if w.category is MixedWidthWarning]
    assert len(found) == 2 and all("test_dtypes.py" in w.filename for w in found)
    assert "f32[2] and f64[2]" in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        b + 1.0, b * np.float32(2), jnp.ones(2, "int32") + b
        with atled.enable_x64():
            a - b


def test_strict_mode():
    with atled.numpy_dtype_promotion("strict"):
        with pytest.raises(TypeError, match=r"(?i)promotion.*strict"):
            jnp.ones(2, "float32") + jnp.ones(2, "int32")
        assert (jnp.ones(2, "float32") + 1.0).dtype == np.float32
        with pytest.raises(TypeError):
            jnp.ones(2, "int32") + 1.5
    with pytest.raises(ValueError):
        atled.numpy_dtype_promotion("loose")


def test_names_and_limits():
    assert str(ArrayType((2, 3), np.float32)) == "f32[2,3]" and str(ArrayType((), np.int8, True)) == "~i8[]"
    assert ArrayType((2,), np.float32) is ArrayType((2,), np.dtype("float32"))
    assert float(jnp.finfo("bfloat16").eps) == 2**-7 and jnp.iinfo("int4").max == 7
    assert (
        jnp.issubdtype(jnp.bfloat16, jnp.floating)
        and jnp.issubdtype("int4", np.integer)
        and not jnp.issubdtype("int4", np.floating)
    )
    assert jnp.issubdtype(atled.random.key(0).dtype, atled.jax.dtypes.prng_key)
    assert (
        jnp.float32 == np.dtype("float32")
        and np.dtype(jnp.bfloat16) == ml_dtypes.bfloat16
        and jnp.float32(2).dtype == np.float32
    )
    with pytest.raises(TypeError, match="not a dtype"):
        jnp.zeros(2, "nonsense")
    with pytest.raises(TypeError, match="not supported"):
        jnp.zeros(2, "datetime64[s]")


def test_types_of_huge_arrays():
    t = ArrayType((2**20, 2**20), np.float32)
    assert t.size == 2**40
    out = atled.eval_shape(lambda x: jnp.sum(x[:, 1:], 0), atled.ShapeDtypeStruct((2**33, 4), "float32"))
    assert out.shape == (3,)
