"""`ffi`: functions of C++ in compiled programs."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import ffi, lax
from atled.jax.experimental.layout import Layout
from atled.jax.extend.core import Primitive
from atled.jax.interpreters import mlir

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a compiler of C++")
SOURCE = pathlib.Path(__file__).with_name("ffi_handlers.cc")
NAMES = ("Scale", "Sums", "Add", "InPlace", "Memory", "Attributes", "Fail", "Note")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
INT = atled.ShapeDtypeStruct((), np.int32)


def compiled(folder: pathlib.Path, factor: int) -> str:
    out = str(folder / f"handlers{factor}.so")
    given = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", f"-DFACTOR={factor}", f"-I{ffi.include_dir()}"]
    subprocess.run([COMPILER, *given, "-o", out, str(SOURCE)], check=True)
    return out


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    found = ctypes.CDLL(compiled(tmp_path_factory.mktemp("ffi"), 1))
    for name in NAMES:
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(found, name)))
    return found


def like(x):
    return atled.ShapeDtypeStruct(x.shape, x.dtype)


def scale(x, factor=2.0, **options):
    return ffi.ffi_call("test_Scale", like(x), **options)(x, factor=np.float32(factor))


def test_include_dir():
    assert os.path.exists(os.path.join(ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))


def test_a_call(library):
    np.testing.assert_array_equal(scale(jnp.asarray(X)), 2 * X)
    np.testing.assert_array_equal(scale(X, 3.0), 3 * X)
    f = atled.jit(lambda x: scale(jnp.sin(x)) + 1)
    np.testing.assert_allclose(f(X), 2 * np.sin(X) + 1, rtol=1e-6)
    assert "custom_call @test_Scale" in f.lower(X).as_text() and "factor = 2.0" in f.lower(X).as_text()
    assert str(atled.jax.make_jaxpr(scale)(X)).count("ffi_call") == 1


def test_several_results(library):
    types = (atled.ShapeDtypeStruct((2,), np.float32), INT)
    out = ffi.ffi_call("test_Sums", types)(X)
    assert type(out) is tuple and type(ffi.ffi_call("test_Sums", list(types))(X)) is list
    np.testing.assert_array_equal(out[0], X.sum(1))
    assert out[1].dtype == np.int32


def test_attributes(library):
    call = ffi.ffi_call("test_Attributes", atled.ShapeDtypeStruct((1,), np.float32))
    given = {"numbers": np.asarray([1, 2], np.int64), "text": "four", "flag": True, "small": np.int32(7), "wide": 0.5}
    assert float(call(**given)[0]) == 1 + 2 + 4 + 100 + 7 + 0.5
    assert float(call(**{**given, "numbers": np.asarray([1, 3], np.int64)})[0]) == 115.5
    assert float(atled.jit(lambda: call(**given))()[0]) == 114.5
    with pytest.raises(TypeError, match=r"attribute numbers must be a number, a string, an array"):
        call(**{**given, "numbers": [1, 2]})


def test_results_over_arguments(library):
    types = (like(X), atled.ShapeDtypeStruct((1,), np.int32))
    call = ffi.ffi_call("test_InPlace", types, input_output_aliases={0: 0})
    given = jnp.asarray(X)
    y, _ = call(given)
    np.testing.assert_array_equal(y, X + 1)
    np.testing.assert_array_equal(given, X)  # a copy was handed over
    y, same = atled.jit(lambda x: call(x * 2))(X)
    np.testing.assert_array_equal(y, 2 * X + 1)
    assert int(same[0]) == 1
    assert int(ffi.ffi_call("test_InPlace", types)(X)[1][0]) == 0
    for aliases, what in (({1: 0}, "names argument 1 and output 0"), ({0: 1}, "needs equal types and layouts")):
        with pytest.raises(ValueError, match=what):
            ffi.ffi_call("test_InPlace", types, input_output_aliases=aliases)(X)


def test_layouts(library):
    call = lambda **layouts: ffi.ffi_call("test_Memory", like(X), **layouts)
    np.testing.assert_array_equal(call()(X), X)
    np.testing.assert_array_equal(call(input_layouts=[(1, 0)])(X).reshape(-1), X.T.reshape(-1))
    np.testing.assert_array_equal(call(input_layouts=[Layout((1, 0))], output_layouts=Layout((1, 0)))(X), X)
    xs = np.stack([X, X + 10])
    batched = atled.vmap(call(input_layouts=[(1, 0)], vmap_method="broadcast_all"))(xs)
    np.testing.assert_array_equal(batched.reshape(2, -1), [X.T.reshape(-1), (X + 10).T.reshape(-1)])
    with pytest.raises(ValueError, match=r"must name each axis once"):
        call(input_layouts=[(0, 0)])(X)
    with pytest.raises(ValueError, match="one layout for each of 1 arguments; got 2"):
        call(input_layouts=[None, None])(X)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_batches(library, method):
    xs, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.asarray([10, 20, 30], np.float32)

    def add(m):
        types = (m.ShapeDtypeStruct((3,), np.float32), m.ShapeDtypeStruct((), np.int32))
        return m.ffi.ffi_call("test_Add", types, vmap_method=method)

    out, given = atled.vmap(lambda x: add(atled)(x, y))(xs)
    np.testing.assert_array_equal(out, xs + y)
    np.testing.assert_array_equal(given, [12 if method == "broadcast_all" else 3] * 4)


def test_a_batch_must_be_allowed(library):
    with pytest.raises(NotImplementedError, match="vmap must be told how 'test_Scale' takes a batch"):
        atled.vmap(scale)(X)
    with pytest.raises(ValueError, match=r"vmap_method is one of sequential, .*; got 'all'"):
        scale(X, vmap_method="all")


def test_derivatives(library):
    with pytest.raises(ValueError, match=r"the derivative of 'test_Scale', a registered function, is not known"):
        atled.grad(lambda x: scale(x).sum())(X)

    @atled.custom_vjp
    def doubled(x):
        return scale(x, vmap_method="broadcast_all")

    doubled.defvjp(lambda x: (doubled(x), None), lambda _, ct: (scale(ct, vmap_method="broadcast_all"),))
    f = atled.jit(atled.grad(lambda x: (doubled(x) ** 2).sum()))
    np.testing.assert_array_equal(f(X), 8 * X)
    np.testing.assert_array_equal(atled.vmap(f)(X), 8 * X)

    @atled.custom_jvp
    def tripled(x):
        return scale(x, 3.0)

    tripled.defjvp(lambda primals, tangents: (tripled(*primals), 3 * tangents[0]))
    np.testing.assert_array_equal(atled.grad(lambda x: tripled(x).sum())(X), np.full_like(X, 3))


def test_in_loops_and_branches(library):
    out = lax.fori_loop(0, 3, lambda _, x: scale(x), jnp.asarray(X))
    np.testing.assert_array_equal(out, 8 * X)
    f = atled.jit(lambda p, x: lax.cond(p, scale, lambda x: x, x))
    np.testing.assert_array_equal(f(True, X), 2 * X)
    np.testing.assert_array_equal(f(False, X), X)


def test_side_effects(library):
    one = np.ones(1, np.float32)
    note = ffi.ffi_call("test_Note", (), has_side_effect=True)
    before = library.Calls()
    atled.jit(lambda x: (note(x), x)[1])(one).block_until_ready()
    atled.effects_barrier()
    assert library.Calls() == before + 1
    atled.jit(lambda x: lax.fori_loop(0, 5, lambda _, c: (note(x), c)[1], 0))(one).block_until_ready()
    atled.effects_barrier()
    assert library.Calls() == before + 6
    seen = ffi.ffi_call("test_Sums", (atled.ShapeDtypeStruct((), np.float32), INT))
    atled.jit(lambda x: (seen(x), x)[1])(one).block_until_ready()
    assert library.Calls() == before + 6  # nobody needs the results


def test_errors(library):
    with pytest.raises(RuntimeError, match="nothing will do"):
        ffi.ffi_call("test_Fail", like(X))(X).block_until_ready()
    with pytest.raises(Exception, match="test_nowhere"):
        ffi.ffi_call("test_nowhere", like(X))(X).block_until_ready()
    with pytest.raises(ValueError, match="result 0 needs a shape and a dtype"):
        ffi.ffi_call("test_Scale", 3)
    with pytest.raises(ValueError, match="legacy_backend_config needs custom_call_api_version < 4; got 4"):
        ffi.ffi_call("test_Scale", like(X), legacy_backend_config="a")
    with pytest.raises(TypeError, match="random keys are not supported"):
        ffi.ffi_call("test_Scale", like(X))(atled.random.key(0))
    with pytest.raises(NotImplementedError, match="run on cpu; got 'CUDA'"):
        ffi.register_ffi_target("test_Scale", ffi.pycapsule(library.Scale), platform="CUDA")
    with pytest.raises(Exception, match="test_Scale"):
        ffi.register_ffi_target("test_Scale", ffi.pycapsule(library.Fail))


def test_objects_between_calls(library):
    for name in ("CounterId", "CounterInfo"):
        getattr(library, name).restype = ctypes.c_void_p
    capsule = lambda name: ffi.pycapsule(getattr(library, name)())
    ffi.register_ffi_type("test_Counter", {"type_id": capsule("CounterId"), "type_info": capsule("CounterInfo")})
    stages = {"instantiate": ffi.pycapsule(library.Start), "execute": ffi.pycapsule(library.Count)}
    ffi.register_ffi_target("test_Count", stages)
    call = ffi.ffi_call("test_Count", INT, has_side_effect=True)
    f = atled.jit(lambda: call(start=np.int32(10)))
    assert [int(f()), int(f()), int(f())] == [10, 11, 12]
    assert int(atled.jit(lambda: call(start=np.int32(20)))()) == 20
    with pytest.raises(ValueError, match="register_ffi_type_id"):
        ffi.register_ffi_type_id("test_other", capsule("CounterId"))


def test_rules_of_primitives(library):
    primitive = Primitive("test_ffi_scale")
    primitive.def_abstract_eval(lambda x, factor: x)
    mlir.register_lowering(primitive, atled.jax.ffi.ffi_lowering("test_Scale"))
    f = atled.jit(lambda x: primitive.bind(x, factor=np.float32(4)))
    np.testing.assert_array_equal(f(X), 4 * X)

    turned = Primitive("test_ffi_turned")
    turned.def_abstract_eval(lambda x: x)
    write = atled.jax.ffi.build_ffi_lowering_function("test_Memory", operand_layouts=[(0, 1)], result_layouts=[None])
    mlir.register_lowering(turned, lambda ctx, x: write(ctx, x).results)
    np.testing.assert_array_equal(atled.jit(turned.bind)(X).reshape(-1), X.T.reshape(-1))
    with pytest.raises(ValueError, match="attributes need at least api_version 4"):
        atled.jax.ffi.ffi_lowering("test_Scale", api_version=2)(None, a=1)
    with pytest.raises(ValueError, match="backend_config must be a dict"):
        atled.jax.ffi.ffi_lowering("test_Scale", backend_config="a")(None)


PROGRAM = """
import ctypes, sys
import numpy as np, atled
from atled import ffi
library = ctypes.CDLL(sys.argv[1])
ffi.register_ffi_target("scale", ffi.pycapsule(library.Scale))
x = np.ones((8, 4), np.float32)
call = ffi.ffi_call("scale", atled.ShapeDtypeStruct(x.shape, x.dtype))
f = atled.jit(lambda x: call(x, factor=np.float32(2)) + 1)
print(float(f(x)[0, 0]), float(call(x, factor=np.float32(2))[0, 0]))
"""


def test_programs_are_not_kept_on_disk(library, tmp_path):
    """Another process has another function of the same name."""
    seen = []
    for factor in (1, 5):
        code = [sys.executable, "-c", PROGRAM, compiled(tmp_path, factor)]
        env = {**os.environ, "ATLED_CACHE_DIR": str(tmp_path / "cache")}
        seen.append(subprocess.run(code, capture_output=True, text=True, env=env, check=True).stdout.split())
    assert seen == [["3.0", "2.0"], ["11.0", "10.0"]]


SPLIT = """
import ctypes, sys
import numpy as np, atled
from atled import ffi
from atled.sharding import NamedSharding, PartitionSpec as P
library = ctypes.CDLL(sys.argv[1])
mesh = atled.make_mesh((2, 2), ("i", "j"))
x = atled.device_put(np.arange(64, dtype=np.float32).reshape(4, 4, 4), NamedSharding(mesh, P("i", "j")))
y = np.ones((4, 4), np.float32)
for name in ("whole", "split"):
    ffi.register_ffi_target(name, ffi.pycapsule(library.Add))
    if name == "split":
        ffi.register_ffi_target_as_batch_partitionable(name)
    row, one = atled.ShapeDtypeStruct((4,), np.float32), atled.ShapeDtypeStruct((), np.int32)
    call = ffi.ffi_call(name, (row, one), vmap_method="broadcast_all")
    f = atled.jit(atled.vmap(atled.vmap(call), in_axes=(0, None)))
    z, given = f(x, y)
    np.testing.assert_array_equal(z, np.asarray(x) + 1)
    print(name, "all-gather" in f.lower(x, y).compile().as_text(), z.sharding.spec, int(given[0, 0]))
"""


def test_parts_of_a_batch_on_several_devices(library, tmp_path):
    code = [sys.executable, "-c", SPLIT, compiled(tmp_path, 1)]
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    out = subprocess.run(code, capture_output=True, text=True, env=env)
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines() == ["whole True P() 64", "split False P('i', 'j') 16"]
