"""`ffi`: one registration, called by programs here and by JAX's."""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import atled
from atled import ffi

jax = pytest.importorskip("jax")
COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a compiler of C++")
SOURCE = pathlib.Path(__file__).parents[1] / "porting" / "ffi_handlers.cc"
NAMES = ("Scale", "Sums", "Add", "InPlace", "Memory", "Attributes")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ROWS, Y = np.arange(12, dtype=np.float32).reshape(4, 3), np.asarray([10, 20, 30], np.float32)
GIVEN = {"numbers": np.asarray([1, 2], np.int64), "text": "four", "flag": True, "small": np.int32(7), "wide": 0.5}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("ffi") / "handlers.so")
    given = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-DFACTOR=1", f"-I{ffi.include_dir()}"]
    subprocess.run([COMPILER, *given, "-o", out, str(SOURCE)], check=True)
    found = ctypes.CDLL(out)
    for name in NAMES:
        ffi.register_ffi_target(f"jax_{name}", ffi.pycapsule(getattr(found, name)))
    return found


def call(m, name, *shapes, **options):
    types = [m.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    return m.ffi.ffi_call(f"jax_{name}", types[0] if len(types) == 1 else tuple(types), **options)


def same(f):
    ours, theirs = (m.tree.leaves(f(m)) for m in (atled.jax, jax))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


FLAT = ((3,), "f4"), ((), "i4")
CALLS = {
    "scale": lambda m: call(m, "Scale", ((2, 3), "f4"))(X, factor=np.float32(3)),
    "attributes": lambda m: call(m, "Attributes", ((1,), "f4"))(**GIVEN),
    "input layout": lambda m: call(m, "Memory", ((2, 3), "f4"), input_layouts=[(1, 0)])(X),
    "output layout": lambda m: call(m, "Memory", ((2, 3), "f4"), output_layouts=(1, 0))(X),
    "aliases": lambda m: m.jit(
        lambda x: call(m, "InPlace", ((2, 3), "f4"), ((1,), "i4"), input_output_aliases={0: 0})(x * 2)
    )(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(library, name):
    same(CALLS[name])


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_batches(library, method):
    add = lambda m: call(m, "Add", *FLAT, vmap_method=method)
    same(lambda m: m.vmap(lambda x: add(m)(x, Y))(ROWS))
    same(lambda m: m.vmap(lambda y: add(m)(ROWS[0], y))(ROWS))
    same(lambda m: m.vmap(lambda x: add(m)(x, Y), in_axes=1)(np.ascontiguousarray(ROWS.T)))
    if method != "expand_dims":
        same(lambda m: m.jit(m.vmap(lambda x: m.vmap(lambda y: add(m)(x, y))(ROWS)))(ROWS))
    turned = {"input_layouts": [(1, 0)], "output_layouts": (1, 0), "vmap_method": method}
    same(lambda m: m.vmap(call(m, "Memory", ((2, 3), "f4"), **turned))(np.stack([X, X + 1])))


def test_errors(library):
    for m in (atled.jax, jax):
        with pytest.raises(ValueError):
            m.grad(lambda x, m=m: call(m, "Scale", ((2, 3), "f4"))(x, factor=np.float32(3)).sum())(X)
        with pytest.raises(NotImplementedError):
            m.vmap(lambda x, m=m: call(m, "Scale", ((3,), "f4"))(x, factor=np.float32(3)))(X)
        with pytest.raises(ValueError):
            m.ffi.register_ffi_type_id("jax_type", None)


def test_include_dir():
    assert ffi.include_dir() == jax.ffi.include_dir()
