"""Promotion, kinds of dtypes, shapes, and arrays as text and files."""

from __future__ import annotations

import doctest
import io
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.numpy import inspection
from atled.numpy.inspection import (
    array_repr,
    array_str,
    can_cast,
    get_printoptions,
    iscomplex,
    iscomplexobj,
    isdtype,
    isreal,
    isrealobj,
    isscalar,
    iterable,
    load,
    ndim,
    printoptions,
    promote_types,
    result_type,
    save,
    savez,
    set_printoptions,
    shape,
    size,
)

NAMES = [
    *["bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"],
    *[f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)],
]
# what each name is promoted to directly; 'i*', 'f*' and 'c*' are Python's numbers
EDGES = {
    "bool": ["i*"],
    "i*": ["uint8", "int8"],
    "uint8": ["uint16", "int16"],
    "uint16": ["uint32", "int32"],
    "uint32": ["uint64", "int64"],
    "uint64": ["f*"],
    "int8": ["int16"],
    "int16": ["int32"],
    "int32": ["int64"],
    "int64": ["f*"],
    "f*": ["bfloat16", "float16", "c*"],
    "bfloat16": ["float32"],
    "float16": ["float32"],
    "float32": ["float64", "complex64"],
    "float64": ["complex128"],
    "c*": ["complex64"],
    "complex64": ["complex128"],
    "complex128": [],
}
WEAK = {"i*": ("int32", "int64"), "f*": ("float32", "float64"), "c*": ("complex64", "complex128")}


def above(name: str) -> set[str]:
    return {name}.union(*[above(up) for up in EDGES[name]])


def joined(a: str, b: str) -> str:
    common = above(a) & above(b)
    return next(c for c in common if common <= above(c))


def dtype_of(name: str, wide: bool) -> Any:
    return jnp.dtype(WEAK[name][wide] if name in WEAK else name)


@pytest.mark.parametrize("wide", [False, True])
def test_promotion(wide):
    with atled.enable_x64(wide):
        for a, b in itertools.product(NAMES, repeat=2):
            want = dtype_of(joined(a, b), wide)
            if "uint64" in (a, b) and (a.startswith("int") or b.startswith("int")):
                want = jnp.dtype("float64")  # no narrower dtype comes close to holding both
            assert promote_types(a, b) == want, (a, b)
            assert promote_types(jnp.dtype(a), getattr(jnp, "bool_" if b == "bool" else b)) == want
            assert result_type(jnp.zeros(1, a), jnp.zeros(1, b)) == want
            assert result_type(a, np.zeros(1, b)) == want
        for a, (number, kind) in itertools.product(NAMES, [(1, "i*"), (1.0, "f*"), (1j, "c*")]):
            want = dtype_of(joined(a, kind), wide)
            assert promote_types(a, type(number)) == promote_types(type(number), a) == want, (a, kind)
            assert result_type(jnp.ones(2, a), number) == want
            assert result_type(jnp.ones(2, a), jnp.asarray(number)) == want
            assert (jnp.ones(2, a) * number).dtype == want


def test_result_type_of_other_things():
    assert result_type(1) == "int32" and result_type(True) == "bool" and result_type(1.0) == "float32"
    assert result_type(int, float) == "float32" and result_type(bool) == "bool"
    assert (
        result_type(np.float64(1), np.float32) == "float32"
    )  # NumPy's default scalars are weakly typed, as Python's numbers are
    assert result_type([1, 2.0], "bfloat16") == "float32" and result_type("int8", "int8", "int16") == "int16"
    assert result_type(atled.ShapeDtypeStruct((2,), "int8"), 1) == "int8"
    assert atled.jit(lambda x: x.astype(result_type(x, "float64")))(jnp.ones(2)).dtype == "float64"
    assert result_type(atled.random.key(0)).name == "key<fry>"
    with pytest.raises(ValueError, match="result_type: at least one array or dtype is needed"):
        result_type()
    with pytest.raises(TypeError, match="result_type: arrays, numbers and dtypes have a dtype; got None"):
        result_type(None)
    with pytest.raises(TypeError, match=r"promotion: .* have no common dtype"):
        promote_types("float8_e5m2", "float16")
    with atled.numpy_dtype_promotion("strict"), pytest.raises(TypeError, match="strict"):
        result_type("int8", "int16")


def test_can_cast():
    names = [n for n in NAMES if n != "bfloat16"]
    for a, b, casting in itertools.product(names, names, ("no", "safe", "same_kind", "unsafe")):
        assert can_cast(a, b, casting) == np.can_cast(a, b, casting)
    assert can_cast("bfloat16", jnp.float32) and not can_cast(jnp.float32, "bfloat16")
    assert can_cast(jnp.zeros(1), "float64") and not can_cast(np.zeros(1), "float32")
    with pytest.raises(TypeError, match="can_cast: a Python number has no dtype of its own; got int"):
        can_cast(1, "int8")


def test_isdtype():
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
    for name, kind in itertools.product([n for n in NAMES if n != "bfloat16"], kinds):
        assert isdtype(name, kind) == np.isdtype(np.dtype(name), kind), (name, kind)
    assert (
        isdtype("bfloat16", "real floating")
        and isdtype("int4", "signed integer")
        and not isdtype("uint4", "signed integer")
    )
    assert (
        isdtype(jnp.float32, jnp.float32)
        and isdtype("float32", ("bool", "float32"))
        and not isdtype("float32", ("bool", "integral"))
    )
    assert isdtype(int, "int32") and not isdtype(jnp.float32, "float64")
    with pytest.raises(ValueError, match=r"isdtype: a kind is a dtype or one of 'bool', .*; got 'floating point'"):
        isdtype("float32", "floating point")
    with pytest.raises(TypeError, match="isdtype: a kind is a dtype"):
        isdtype("float32", 3.5)


def test_complex_or_real():
    z = np.asarray([1 + 0j, 1j, complex(np.nan, 0), complex(0, np.nan), complex(0, -0.0)])
    for x in (
        z,
        z.astype("complex64"),
        np.arange(3.0),
        np.arange(3),
        np.asarray([True, False]),
        np.asarray(2.0),
        np.zeros((0, 2)),
        np.asarray([np.nan]),
    ):
        np.testing.assert_array_equal(np.asarray(iscomplex(x)), np.iscomplex(x))
        np.testing.assert_array_equal(np.asarray(isreal(x)), np.isreal(x))
        assert iscomplex(x).dtype == isreal(x).dtype == bool
        assert iscomplexobj(x) == iscomplexobj(jnp.asarray(x)) == np.iscomplexobj(x) != isrealobj(x)
    np.testing.assert_array_equal(np.asarray(atled.jit(atled.vmap(isreal))(z)), np.isreal(z))
    assert bool(iscomplex(1j)) and not bool(iscomplex(1.0)) and bool(isreal(True))
    assert (
        iscomplexobj([1j])
        and isrealobj([1.0])
        and iscomplexobj(1j)
        and not iscomplexobj("text")
        and not iscomplexobj(None)
    )


def test_shapes():
    for x in (
        3,
        2.5,
        [1, 2],
        [[1, 2], [3, 4]],
        np.ones((2, 3)),
        jnp.ones((2, 0)),
        atled.ShapeDtypeStruct((4, 5), "int8"),
    ):
        dims = x.shape if hasattr(x, "shape") else np.shape(x)
        assert (ndim(x), shape(x), size(x)) == (len(dims), dims, int(np.prod(dims)))
    x = np.ones((2, 3, 4))
    assert size(x, 1) == 3 and size(x, (0, -1)) == 8 and size(x, ()) == 1
    assert atled.jit(lambda x: jnp.zeros(shape(x)) + ndim(x) + size(x))(x).shape == x.shape
    with pytest.raises(ValueError, match="size: axis 3 is out of bounds"):
        size(x, 3)
    with pytest.raises(TypeError, match="shape: expected an array or a number; got str"):
        shape("text")


def test_scalars_and_iterables():
    for x, want in (
        (1, True),
        (2.0, True),
        (1j, True),
        (True, True),
        ("a", True),
        ([1], False),
        (None, False),
        (np.float32(1), True),
    ):
        assert isscalar(x) is want
    assert (
        isscalar(jnp.asarray(1)) and isscalar(np.asarray(1)) and not isscalar(jnp.ones(1)) and not isscalar(np.ones(1))
    )
    assert (
        iterable(jnp.ones(2))
        and not iterable(jnp.asarray(1.0))
        and iterable([1])
        and not iterable(3)
        and iterable(np.ones(2))
    )


# -- text and files ---------------------------------------------------------------------------------------------------


def test_text():
    x = jnp.asarray([1 / 3, 2.0])
    assert array_repr(x) == repr(x) and array_str(x) == str(x)
    assert (
        array_repr(x, precision=2) == "Array([0.33, 2.  ], dtype=float32)"
        and array_str(x, precision=2) == "[0.33 2.  ]"
    )
    assert array_repr(jnp.asarray(1.0)) == repr(jnp.asarray(1.0)) and "weak_type=True" in array_repr(jnp.asarray(1.0))
    for y in (jnp.zeros((0, 2)), jnp.ones(2, "bfloat16"), jnp.arange(4).reshape(2, 2), atled.random.key(0)):
        assert array_repr(y) == repr(y)
    assert array_repr(jnp.arange(30), max_line_width=40).count("\n") > array_repr(jnp.arange(30)).count("\n")
    seen = []
    atled.jit(lambda x: seen.append((array_repr(x), array_str(x))) or x)(x)
    assert "f32[2]" in seen[0][0] and "f32[2]" in seen[0][1]


def test_print_options():
    before = get_printoptions()
    assert before == np.get_printoptions()
    with printoptions(precision=2):
        assert get_printoptions()["precision"] == 2
        assert array_str(jnp.asarray([1 / 3])) == "[0.33]"
    set_printoptions(precision=3)
    assert np.get_printoptions()["precision"] == 3
    set_printoptions(**before)
    assert get_printoptions() == before


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128", "bfloat16"])
def test_files(dtype, tmp_path):
    x = jnp.asarray(np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))
    for file in (tmp_path / "x.npy", str(tmp_path / "y.npy")):
        save(file, x)
        y = load(file)
        assert isinstance(y, atled.Array) and y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    stream = io.BytesIO()
    save(stream, x)
    stream.seek(0)
    np.testing.assert_array_equal(np.asarray(load(stream)), np.asarray(x))


def test_files_of_several_arrays(tmp_path):
    savez(tmp_path / "z.npz", jnp.ones(2), scale=jnp.arange(3))
    with load(tmp_path / "z.npz") as found:
        assert sorted(found) == ["arr_0", "scale"] and found["scale"].tolist() == [0, 1, 2]


def test_examples(monkeypatch):
    for name in inspection.__all__:
        monkeypatch.setattr(jnp, name, getattr(inspection, name), raising=False)
    for name in inspection.__all__:
        for example in doctest.DocTestFinder().find(
            getattr(inspection, name), name, module=False, globs=dict(vars(inspection))
        ):
            assert doctest.DocTestRunner().run(example).failed == 0
