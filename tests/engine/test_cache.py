"""The compile cache on disk: found again, bounded, private, and never believed when altered."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import settings
from atled.engine import disk_cache, program_cache


@pytest.fixture
def folder(tmp_path):
    before = settings.scope().cache_dir
    settings.update("cache_dir", str(tmp_path))
    yield tmp_path / "executables"
    settings.update("cache_dir", before)


def entries(folder):
    return sorted(p for p in folder.iterdir() if not p.name.startswith(".")) if folder.exists() else []


def run_fresh(n: int) -> np.ndarray:
    """A program of its own for each n, compiled or loaded anew."""
    program_cache.forget()
    return np.asarray(atled.jit(lambda x: x * float(n) + 1.0)(np.arange(4.0, dtype="f4")))


def test_entries_are_written_and_found(folder, monkeypatch):
    want = run_fresh(3)
    assert entries(folder)
    compiled = []
    monkeypatch.setattr(
        program_cache, "compile_program", lambda *a: compiled.append(a) or pytest.fail("compiled again")
    )
    np.testing.assert_array_equal(run_fresh(3), want)
    assert not compiled


def test_compiler_options_are_part_of_the_key(folder):
    f = lambda x: x * 7.5 + 1.0
    for options in (None, {"xla_cpu_enable_fast_math": True}, {"xla_cpu_enable_fast_math": False}):
        before = len(entries(folder))
        atled.jit(f, compiler_options=options)(np.arange(4.0, dtype="f4"))
        assert len(entries(folder)) == before + 1


def test_what_came_from_disk_can_be_written_again(folder):
    f = atled.jit(lambda x: jnp.tanh(x) @ x)
    x = jnp.ones((4, 4))
    want = np.asarray(f(x))
    program_cache.forget()
    found = atled.jit(lambda x: jnp.tanh(x) @ x).lower(x).compile()
    device = atled.devices()[0]
    again = program_cache.revived({"uses": []}, found.serialize(), device)
    (out,) = again.execute_sharded([x._buffer]).consume_with_handlers(found._executable.handlers)
    np.testing.assert_array_equal(np.asarray(memoryview(out)), want)


def test_the_directory_is_private(folder):
    run_fresh(5)
    assert os.stat(folder).st_mode & 0o077 == 0
    assert all(os.stat(p).st_mode & 0o077 == 0 for p in entries(folder))


def test_a_directory_that_others_may_write_to_is_not_used(tmp_path):
    path = tmp_path / "executables"
    path.mkdir()
    path.chmod(0o777)
    before = settings.scope().cache_dir
    settings.update("cache_dir", str(tmp_path))
    try:
        with pytest.warns(UserWarning, match="others may write"):
            run_fresh(6)
        assert not entries(path)
    finally:
        settings.update("cache_dir", before)


def test_altered_entries_are_recompiled(folder):
    """A thousand alterations: bits flipped, files cut, entries swapped. None runs, none crashes, all are recompiled."""
    rng = random.Random(0)
    programs = list(range(20, 28))
    for n in programs:
        run_fresh(n)
    names = entries(folder)
    original = {p: p.read_bytes() for p in names}
    keys = [p.name for p in names]
    loaded = 0
    for trial in range(1000):
        target = rng.choice(names)
        data = bytearray(original[target])
        kind = trial % 4
        if kind == 0:
            at = rng.randrange(len(data))
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data = data[: rng.randrange(len(data))]
        elif kind == 2:
            other = rng.choice([p for p in names if p != target])
            data = bytearray(original[other])
        else:
            at = rng.randrange(len(data))
            data[at : at + 64] = rng.randbytes(64)
        if bytes(data) == original[target]:
            continue
        target.write_bytes(data)
        if disk_cache.load(target.name) is not None:
            loaded += 1
        assert not target.exists(), "an altered entry was left in place"
        target.write_bytes(original[target])
    assert loaded == 0
    for n in programs:  # and through the front door: wrong bytes, right results
        for p in names:
            data = bytearray(original[p])
            data[rng.randrange(len(data))] ^= 0x10
            p.write_bytes(data)
        np.testing.assert_allclose(run_fresh(n), np.arange(4) * n + 1)
    assert set(keys) <= {p.name for p in entries(folder)}


def test_the_size_is_bounded(folder):
    before = settings.scope().cache_bytes
    settings.update("cache_bytes", 40_000)
    disk_cache._written.clear()
    try:
        for n in range(100, 130):
            run_fresh(n)
        assert sum(p.stat().st_size for p in entries(folder)) <= 60_000
    finally:
        settings.update("cache_bytes", before)


def test_least_recently_used_go_first(folder):
    os.makedirs(folder, mode=0o700)
    for i in range(10):
        (folder / f"k{i}").write_bytes(b"x" * 100)
        os.utime(folder / f"k{i}", (i, i))
    disk_cache.evict(str(folder), 500)
    assert [p.name for p in entries(folder)] == ["k6", "k7", "k8", "k9"]


def test_it_can_be_turned_off(folder):
    settings.update("cache", False)
    try:
        run_fresh(9)
        assert not entries(folder)
    finally:
        settings.update("cache", True)


def test_parallel_processes_share_it(folder, tmp_path):
    code = """
import atled, atled.numpy as jnp, numpy as np, sys
for n in range(8):
    got = np.asarray(atled.jit(lambda x: jnp.sin(x) * float(n))(np.arange(5.0, dtype="f4")))
    np.testing.assert_allclose(got, np.sin(np.arange(5.0)) * n, rtol=1e-5)
"""
    env = {**os.environ, "ATLED_CACHE_DIR": str(tmp_path)}
    procs = [
        subprocess.Popen([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for p in procs:
        _, err = p.communicate(timeout=300)
        assert p.returncode == 0, err[-1000:]
    assert not [p for p in folder.iterdir() if p.name.startswith(".tmp")]


def test_threads_share_it(folder):
    bad = []

    def work():
        try:
            for n in range(40, 50):
                np.testing.assert_allclose(run_fresh(n), np.arange(4) * n + 1)
        except Exception as error:
            bad.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not bad


def test_programs_that_differ_have_different_keys():
    from atled.compiler.fingerprint import digest

    makers = [
        lambda x: x + 1.0, lambda x: x + 2.0, lambda x: x - 1.0, lambda x: jnp.sum(x),
        lambda x: jnp.sum(x, 0, keepdims=True), lambda x: x.astype("float16"), lambda x: x.astype("bfloat16"),
        lambda x: x[1:], lambda x: x[:-1], lambda x: (x, x), lambda x: x,
    ]  # fmt: skip
    found = {digest(atled.make_program(f)(np.ones(4, "f4"))) for f in makers}
    assert len(found) == len(makers)
    again = digest(atled.make_program(lambda y: y + 1.0)(np.ones(4, "f4")))
    assert again in found  # names and lines do not count
    assert digest(atled.make_program(makers[0])(np.ones(5, "f4"))) not in found


def test_lapack_is_registered_before_a_load(folder):
    code = "import atled, atled.numpy as jnp; print(float(atled.lax.linalg.cholesky(jnp.eye(2) * 4)[0, 0]))"
    env = {**os.environ, "ATLED_CACHE_DIR": str(folder.parent)}
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert run.stdout.strip() == "2.0", run.stderr[-500:]


def test_programs_are_dropped_before_mappings_run_out(monkeypatch):
    """The engine crashes when a process has no more memory mappings; what can be made again goes before that."""
    from atled.engine import memory_mappings, program_cache

    monkeypatch.setattr(memory_mappings, "MAPPINGS", 0)
    monkeypatch.setattr(memory_mappings, "_EACH", 1_000_000)  # look at each program
    monkeypatch.setattr(
        memory_mappings.gc, "collect", lambda: 0
    )  # which takes a second with all that tests have loaded
    f = atled.jit(lambda x, n: x * n + 1.0, static_argnums=1)
    x = atled.numpy.ones(3)
    for n in range(8):
        assert float(f(x, n)[0]) == n + 1.0
        assert float(atled.grad(lambda x: (x * x).sum())(x)[0]) == 2.0
    assert len(program_cache._loaded) < 8 and len(f.compiles) == 8


def test_looking_at_many_mappings_takes_little_of_the_time(monkeypatch):
    """It took a quarter of the time of a process that had compiled a thousand programs."""
    from atled.engine import memory_mappings

    looks = []
    monkeypatch.setattr(memory_mappings, "_unlooked", [0, 0.0])
    monkeypatch.setattr(memory_mappings, "_mappings", lambda: looks.append(time.sleep(0.02)) or 20_000)
    end = time.monotonic() + 0.9
    while time.monotonic() < end:
        memory_mappings.make_room()
        time.sleep(0.01)
    assert len(looks) == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="Linux only")
def test_a_process_without_mappings_is_told_so(tmp_path):
    """All but a few mappings are taken by the program itself: compiling raises, and does not end the process."""
    code = """
import ctypes
import atled, atled.numpy as jnp
print(float(jnp.sum(jnp.ones(3))))
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
most = int(open("/proc/sys/vm/max_map_count").read())
for i in range(most - 30 - sum(1 for _ in open("/proc/self/maps"))):
    libc.mmap(None, 4096, 1 + 2 * (i % 2), 0x22, -1, 0)  # neighbours that are alike would be one
import time; time.sleep(0.3)
try:
    atled.jit(lambda x: jnp.sin(x) @ x.T)(jnp.ones((8, 8)))
except MemoryError as error:
    print("MemoryError", "max_map_count" in str(error))
"""
    if int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()) > 300_000:
        pytest.skip("too many mappings to take all")
    env = {**os.environ, "ATLED_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["3.0", "MemoryError", "True"], done.stderr[-500:]


USER_OP = """
from atled.core.trace import bind
from atled.ops import elementwise
from atled.ops.elementwise_family import Elementwise

class Scaled(Elementwise):
    takes = "f"
    def lower(self, build, x):
        return build.apply(lambda v: elementwise.mul(v, FACTOR), x)

def scaled(x):
    return bind(Scaled(), x)
"""


def test_an_op_of_a_user_that_was_edited_runs_as_it_is_now(tmp_path):
    """Its code is not part of the program's fingerprint, so it is not kept on disk."""
    seen = []
    for factor in ("2.0", "3.0"):
        (tmp_path / "user_op.py").write_text(USER_OP.replace("FACTOR", factor))
        code = "import atled, user_op; print(float(atled.jit(user_op.scaled)(1.0)), float(user_op.scaled(1.0)))"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            "ATLED_CACHE_DIR": str(tmp_path),
        }
        seen.append(
            subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, env=environment).stdout
        )
    assert seen == ["2.0 2.0\n", "3.0 3.0\n"]


def test_ops_of_users_that_have_the_same_name_in_one_process():
    from atled.core.trace import bind
    from atled.ops import elementwise
    from atled.ops.elementwise_family import Elementwise

    def make(factor):
        class Scaled(Elementwise):
            takes = "f"

            def lower(self, build, x):
                return build.apply(lambda v: elementwise.mul(v, factor), x)

        return lambda x: bind(Scaled(), x)

    assert [float(atled.jit(make(k))(1.0)) for k in (2.0, 3.0)] == [2.0, 3.0]
    assert [float(make(k)(1.0)) for k in (2.0, 3.0)] == [2.0, 3.0]


def test_a_directory_that_takes_nothing_more_is_said_once(tmp_path):
    """Files may not grow beyond 100 bytes, as on a full disk: programs run, and one warning names the user's line."""
    script = tmp_path / "script.py"
    script.write_text(
        "import resource\n"
        "import atled, atled.numpy as jnp\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "print([float(atled.jit(lambda x, n=n: x + n)(jnp.float32(1))) for n in range(3)])\n"
    )
    settings = {**os.environ, "ATLED_CACHE_DIR": str(tmp_path / "cache"), "ATLED_CACHE": "1"}
    # -B: a Python that may not write would leave truncated bytecode for others
    done = subprocess.run(
        [sys.executable, "-B", str(script)], capture_output=True, text=True, env=settings, cwd=os.getcwd(), check=False
    )
    assert done.stdout.split() == ["[1.0,", "2.0,", "3.0]"], done.stderr
    assert done.stderr.count("cannot be written to (File too large); programs compiled now are not cached") == 1
    assert "script.py:4: UserWarning" in done.stderr
    assert list((tmp_path / "cache" / "executables").iterdir()) == []
