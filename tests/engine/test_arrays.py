"""Data in and out of devices: every dtype, no aliasing, readable errors."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import dtypes
from atled.engine import program_cache
from atled.engine.array import to_device

STORED = [d for d in dtypes.all_dtypes if d not in (dtypes.key_dtype, dtypes.float0)]


@pytest.mark.parametrize("dtype", STORED, ids=[d.name for d in STORED])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_values_survive_the_round_trip(dtype, shape):
    size = int(np.prod(shape))
    host = np.asarray(np.arange(size).reshape(shape) % 2).astype(dtype)
    back = np.asarray(to_device(host))
    assert back.dtype == dtype and back.shape == shape
    wide = np.complex128 if dtype.kind == "c" else np.float64
    np.testing.assert_array_equal(back.astype(wide), host.astype(wide))
    assert not back.flags.writeable


def test_memory_of_the_caller_is_never_shared():
    for n in (1, 16, 64, 1000, 100_000):
        for offset in range(0, 128, 4):
            raw = np.zeros(n * 4 + 256, np.uint8)
            host = raw[offset : offset + n * 4].view("f4")
            x = jnp.asarray(host)
            y = atled.jit(lambda v: v)(host)
            host[:] = 1
            assert float(x.max()) == 0 and float(y.max()) == 0


def test_strides_and_byte_order():
    base = np.arange(24.0, dtype="f4").reshape(4, 6)
    for view in (
        base.T,
        base[::-1, ::2],
        np.broadcast_to(base[0], (3, 6)),
        base.astype(">f4"),
        np.asfortranarray(base),
    ):
        np.testing.assert_array_equal(np.asarray(jnp.asarray(view)), view)


def test_dlpack_both_ways():
    x = jnp.arange(6.0).reshape(2, 3)
    view = np.from_dlpack(x)
    np.testing.assert_array_equal(view, np.asarray(x))
    y = jnp.from_dlpack(np.arange(3, dtype="i4"))
    assert y.dtype == np.int32 and y.tolist() == [0, 1, 2]
    assert x.__dlpack_device__() == (1, 0)


def test_pickle_and_copy():
    x = jnp.arange(4.0).astype("bfloat16")
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.dtype == x.dtype and y.tolist() == x.tolist()
    weak = jnp.asarray(1.0)
    assert pickle.loads(pickle.dumps(weak)).weak_type
    for keys in (atled.random.key(3), atled.random.split(atled.random.key(3), (2, 3))):
        again = pickle.loads(pickle.dumps(keys))
        assert again.type == keys.type and atled.random.key_data(again).tolist() == atled.random.key_data(keys).tolist()


def test_reading_outlives_the_array():
    x = jnp.arange(1000.0)
    host = np.asarray(x)
    x.delete()
    assert host[999] == 999


def test_deleted_arrays_say_so():
    x = jnp.ones(3)
    x.delete()
    assert x.is_deleted() and "deleted" in repr(x)
    for use in (lambda: np.asarray(x), lambda: x + 1, lambda: x.block_until_ready(), lambda: float(x[0])):
        with pytest.raises(RuntimeError, match="deleted or donated"):
            use()


def test_donation_reuses_memory():
    f = atled.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(1024), jnp.ones(1024)
    address = np.asarray(x).ctypes.data
    z = f(x, y)
    assert x.is_deleted() and not y.is_deleted() and float(z[0]) == 2.0
    del z
    x = jnp.ones(1024)
    address = x.__array__().ctypes.data
    z = f(x, y)
    assert np.asarray(z).ctypes.data == address or not x.is_deleted()


def test_donating_one_buffer_twice_raises():
    v = jnp.ones(4)
    with pytest.raises((RuntimeError, ValueError)):
        atled.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))(v, v)


def test_errors_of_a_computation_name_the_line_that_launched_it():
    f = atled.jit(lambda x: jnp.broadcast_to(x, (2**46,)))
    with pytest.raises(RuntimeError) as error:
        f(jnp.ones(())).block_until_ready()  # LAUNCH
    assert "test_arrays.py" in str(error.value) or "LAUNCH" in str(error.traceback[-1].statement)


def test_python_numbers_from_arrays():
    assert float(jnp.float32(1.5)) == 1.5 and int(jnp.int8(-3)) == -3 and complex(jnp.complex64(1j)) == 1j
    assert bool(jnp.bool_(True)) and [1, 2, 3][jnp.int32(1)] == 2
    with pytest.raises(TypeError, match="only 0-d arrays"):
        float(jnp.ones(2))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(jnp.ones(2))
    with pytest.raises(TypeError, match="integer arrays"):
        [1, 2][jnp.float32(1)]
    assert f"{jnp.float32(1.5):.2f}" == "1.50"


def test_repr():
    assert repr(jnp.arange(3.0)) == "Array([0., 1., 2.], dtype=float32)"
    assert repr(jnp.asarray(1)) == "Array(1, dtype=int32, weak_type=True)"
    assert "shape=(0, 2)" in repr(jnp.zeros((0, 2)))
    assert len(repr(jnp.zeros(10**6))) < 300
    assert repr(atled.random.key(0)) == "Array((), dtype=key<fry>)"


def _in_child(queue):
    try:
        jnp.ones(3) + 1
        queue.put("ran")
    except Exception as error:
        queue.put(f"{type(error).__name__}: {error}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_told():
    jnp.ones(3) + 1
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    message = queue.get(timeout=60)
    child.join()
    assert message.startswith("ForkError") and "spawn" in message


def test_fork_before_first_use_is_fine():
    code = """
import os, atled, atled.numpy as jnp
pid = os.fork()
x = float((jnp.ones(3) + 1).sum())
assert x == 6.0
if pid == 0: os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-1000:]


def test_unknown_platforms_are_named():
    code = "import atled; atled.devices()"
    for platforms, message in (("nonsense", "nonsense"), ("cuda", "cuda")):
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={"ATLED_PLATFORMS": platforms, "PATH": "/usr/bin"},
        )
        assert run.returncode != 0 and message in run.stderr and "RuntimeError" in run.stderr


def test_two_cpu_devices():
    code = """
import atled, atled.numpy as jnp
a, b = atled.devices()
x = atled.device_put(jnp.arange(3.0), b)
assert x.devices() == {b} and (x + 1).devices() == {b} and x.committed
assert (x + jnp.ones(3)).devices() == {b}
assert atled.jit(lambda v: v * 2)(x).devices() == {b}
try:
    x + atled.device_put(jnp.arange(3.0), a)
except ValueError as error:
    assert "different devices" in str(error)
else:
    raise SystemExit("no error")
with atled.default_device(b):
    assert jnp.ones(3).devices() == {b}
assert jnp.ones(3).devices() == {a}
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"ATLED_NUM_CPU_DEVICES": "2", "PATH": "/usr/bin", "HOME": "/tmp"},
    )
    assert run.returncode == 0, run.stderr[-1500:]


def test_a_copy_outlives_the_donation_of_the_other():
    take = atled.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.ones(3)
    for y in (jnp.copy(x), x.copy()):
        take(y)
        assert y.is_deleted() and not x.is_deleted() and x.tolist() == [1.0] * 3
        assert not y.committed


# -- going through, copying, reading ----------------------------------------------------------------------------------


def test_iteration_takes_out_what_is_asked_for():
    x = jnp.arange(200_000)
    begin = time.process_time()
    rows = iter(x)
    assert [int(next(rows)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="too many values to unpack"):
        _first, _second = x
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize("count", [0, 1, 64, 65, 128, 131, 300])
def test_iteration_gives_every_row_in_order(count):
    host = np.arange(count * 2.0, dtype=np.float32).reshape(count, 2)
    for rows in (list(jnp.asarray(host)), atled.jit(lambda x: list(x))(host)):
        assert [r.shape for r in rows] == [(2,)] * count
        np.testing.assert_array_equal(np.array(rows).reshape(count, 2), host)
    total = atled.vmap(lambda x: sum(x, jnp.zeros(2)), in_axes=1, axis_size=3)(np.stack([host] * 3, 1))
    np.testing.assert_allclose(total, np.stack([host.sum(0)] * 3), rtol=1e-6)


def test_iteration_over_keys_and_under_grad():
    keys = atled.random.split(atled.random.key(0), 70)
    assert [atled.random.key_data(k).tolist() for k in keys] == atled.random.key_data(keys).tolist()
    np.testing.assert_array_equal(atled.grad(lambda x: sum(v * v for v in x))(jnp.ones(70)), np.full(70, 2.0))


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "float4_e2m1fn"])
def test_narrow_arrays_are_read_without_compiling_again(name, monkeypatch):
    x = jnp.ones((2, 3), name)

    def read():
        np.asarray(x)
        assert x.tolist() == np.ones((2, 3)).tolist()
        assert x[0, 0].item() == 1
        repr(x)

    read()
    monkeypatch.setattr(program_cache, "compile_program", lambda *_: pytest.fail("compiled again"))
    monkeypatch.setattr(program_cache, "_from_disk_or_new", lambda *_: pytest.fail("loaded again"))
    for _ in range(10):
        read()


def test_array_copies_and_asarray_does_not():
    for made in (jnp.array, jnp.copy, lambda v: jnp.array(v, copy=True), lambda v: jnp.asarray(v, copy=True)):
        x = jnp.arange(4.0) + 0
        copy = made(x)
        assert (copy.dtype, copy.weak_type, copy.sharding) == (x.dtype, x.weak_type, x.sharding)
        x.delete()
        np.testing.assert_array_equal(copy, np.arange(4.0))
    x = jnp.arange(4.0) + 0
    assert jnp.asarray(x) is x and jnp.array(x, copy=False) is x and jnp.asarray(x, copy=False) is x
    kept = jnp.array(x, ndmin=1)
    atled.jit(lambda v: v + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(kept, np.arange(4.0))
    keys = atled.random.split(atled.random.key(0))
    assert (atled.random.key_data(jnp.array(keys)) == atled.random.key_data(keys)).all()


def test_a_copy_is_nothing_to_compute_under_a_trace():
    assert atled.make_program(lambda x: jnp.array(x) + jnp.copy(x))(1.0).equations[0].op.name == "add"


# -- other libraries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float16", "int32", "bool"]
)
def test_dlpack_of_every_dtype(name):
    x = jnp.asarray(np.array([[1, 0.5, 2], [4, 8, 16]])).astype(name)
    for given in (x, x[:1], x[0, 0], x.T, jnp.zeros((2, 0), name)):
        out = jnp.from_dlpack(given)
        assert out.dtype == given.dtype and out.shape == given.shape
        np.testing.assert_array_equal(np.asarray(out), np.asarray(given))
    assert not np.shares_memory(np.asarray(jnp.from_dlpack(x)), np.asarray(x))


def test_dlpack_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    for given in (x, x.T, x[1:, ::2], x[0, 0], x[:0]):
        out = jnp.from_dlpack(given)
        assert out.dtype == jnp.bfloat16
        np.testing.assert_array_equal(np.asarray(out).astype("float32"), given.float().numpy())
    x[0, 0] = 100
    assert float(out.sum()) == 0


def test_memory_can_be_looked_at():
    x = jnp.arange(6, dtype="int16").reshape(2, 3)
    look = memoryview if sys.version_info >= (3, 12) else lambda v: v.__buffer__(0)
    view = look(x)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]] and view.format == "h" and view.readonly
    assert bytes(view) == np.asarray(x).tobytes()
    with pytest.raises(BufferError, match="Python's buffer protocol does not support bfloat16"):
        jnp.ones(2, "bfloat16").__buffer__(0)
    if sys.version_info < (3, 12):
        with pytest.raises(TypeError, match="bytes-like object is required"):
            memoryview(x)
        assert memoryview(np.asarray(x)).tolist() == view.tolist()


def test_jit_with_formats():
    from atled.jax.experimental.layout import Format, Layout

    sharding = atled.sharding.SingleDeviceSharding(atled.devices()[0])
    x = np.ones((2, 3), "f4")
    double = lambda x: {"a": x + x}
    for place in (Format(Layout((0, 1)), sharding), Format(Layout.AUTO, sharding), Format(None, sharding), Format()):
        for f in (atled.jit(double, in_shardings=place), atled.jit(double, out_shardings={"a": place})):
            np.testing.assert_array_equal(f(x)["a"], x + x)
    assert atled.jit(double, out_shardings=Format(None, sharding)).trace(x).out_info["a"].sharding is not None
    with pytest.raises(NotImplementedError, match="in_shardings of <lambda>, argument x: only row-major"):
        atled.jit(double, in_shardings=Format(Layout((1, 0)), sharding))(x)
    with pytest.raises(ValueError, match="out_shardings of <lambda>: a layout must have as many axes as the array"):
        atled.jit(double, out_shardings=Format(Layout((0,)), sharding))(x)
    with pytest.raises(TypeError, match=r"in_shardings must be a tree of shardings, .* got str"):
        atled.jit(double, in_shardings="cpu")(x)


def test_device_put_with_a_format():
    from atled.jax.experimental.layout import Format, Layout

    sharding = atled.sharding.SingleDeviceSharding(atled.devices()[0])
    x = np.ones((2, 3), "f4")
    for place in (Format(Layout((0, 1)), sharding), Format(Layout.AUTO, sharding), Format(None, sharding), Format()):
        np.testing.assert_array_equal(atled.device_put({"a": x}, place)["a"], x)
    with pytest.raises(NotImplementedError, match="only row-major arrays"):
        atled.device_put(x, Format(Layout((1, 0)), sharding))
    with pytest.raises(ValueError, match=r"\(0, 1, 2\) has 3, and an array of shape \[2, 3\] has 2"):
        atled.device_put(x, Format(Layout((0, 1, 2)), sharding))
    with pytest.raises(TypeError, match=r"device must be a device, .* or a Format; got object"):
        atled.device_put(x, object())


def test_the_engine_is_silent():
    """Its log level is set before it is loaded, whichever module is imported first."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    for name in ("atled", "atled.numpy", "atled.engine.array", "atled.engine.stablehlo"):
        code = f"import {name}, atled.numpy as jnp; jnp.ones(3).block_until_ready()"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
        assert not run.stderr
