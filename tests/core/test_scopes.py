"""Settings and meshes hold for a context: no other thread or task sees them, and launches know theirs."""

from __future__ import annotations

import ast
import asyncio
import gc
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import settings
from atled.core.sharding import current_mesh, set_mesh


def mesh(*names):
    return atled.make_mesh((1,) * len(names), names, devices=atled.devices()[:1])


def in_threads(*functions):
    """Run functions in threads; raises what they raise."""
    errors = []

    def guarded(f):
        try:
            f()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    [t.start() for t in threads]
    [t.join() for t in threads]
    if errors:
        raise errors[0]


def test_meshes_of_threads():
    barrier, seen = threading.Barrier(3), {}

    def one(name):
        with set_mesh(mesh(name)):
            barrier.wait()
            seen[name] = current_mesh().axis_names
            barrier.wait()

    def other():
        barrier.wait()
        seen["none"] = current_mesh()
        barrier.wait()

    in_threads(lambda: one("a"), lambda: one("b"), other)
    assert seen == {"a": ("a",), "b": ("b",), "none": None}


def test_settings_and_meshes_of_tasks():
    async def one(name, is_wide):
        with set_mesh(mesh(name)), atled.enable_x64(is_wide):
            await asyncio.sleep(0.01)
            found = current_mesh().axis_names, jnp.asarray(1.0).dtype.name
            await asyncio.sleep(0.01)
        return found, current_mesh()

    async def both():
        return await asyncio.gather(one("a", True), one("b", False))

    assert asyncio.run(both()) == [((("a",), "float64"), None), ((("b",), "float32"), None)]


def test_statements_hold_for_the_process():
    seen = []
    try:
        set_mesh(mesh("p"))
        settings.update("x64", True)
        in_threads(lambda: seen.append((current_mesh().axis_names, jnp.asarray(1.0).dtype.name)))
        with set_mesh(mesh("q")):
            assert current_mesh().axis_names == ("q",)
        assert current_mesh().axis_names == ("p",)
    finally:
        settings.change("mesh", None)
        settings.update("x64", False)
    assert seen == [(("p",), "float64")] and current_mesh() is None


def test_a_block_that_does_not_look_like_one():
    import contextlib

    make = lambda: set_mesh(mesh("r"))
    with contextlib.ExitStack() as stack:
        stack.enter_context(make())
        seen = []
        in_threads(lambda: seen.append(current_mesh()))
        assert current_mesh().axis_names == ("r",) and seen == [None]
    assert current_mesh() is None


def test_leaving_a_nested_mesh_restores_the_outer_one():
    with set_mesh(mesh("a")), mesh("b"):
        assert current_mesh().axis_names == ("b",)
        with set_mesh(mesh("a")), mesh("b"), mesh("c"):
            assert current_mesh().axis_names == ("c",)
        assert current_mesh().axis_names == ("b",)
    with mesh("a") as outer:
        with mesh("b"):
            pass
        assert current_mesh() is outer
    assert current_mesh() is None


def test_launches_know_their_settings():
    f = atled.jit(lambda x: x * 2.0)
    for _ in range(3):
        assert f(1.5).dtype == jnp.float32
        with atled.enable_x64():
            assert f(1.5).dtype == jnp.float64 and float(f(1 / 3)) == 2 / 3
            with atled.enable_x64(False):
                assert f(1.5).dtype == jnp.float32
        assert f(1.5).dtype == jnp.float32


def test_calls_in_a_block_are_launched_from_memory(monkeypatch):
    from atled.staging import jit_calls

    f, x = atled.jit(lambda x: x * 2.0), jnp.ones(3)
    with set_mesh(mesh("a")), atled.enable_x64():
        f(x)
        f(x)
        monkeypatch.setattr(jit_calls, "_slow", None)
        for _ in range(3):
            f(x)
    with set_mesh(mesh("a")), atled.enable_x64():  # another block of the same settings
        f(x)


def test_numbers_are_of_the_settings_they_are_used_under():
    f = atled.jit(lambda x, y: x + y)
    weak = jnp.asarray(np.float32(0.0)) * 0 + f(0.5, 0.25) * 0  # a weak single-precision array
    with atled.enable_x64():
        f(weak, weak)
    assert f(0.1, 0.2).dtype == jnp.float32
    with atled.enable_x64():
        assert f(0.1, 0.2).dtype == jnp.float64 and float(f(0.1, 0.2)) == 0.1 + 0.2


def test_settings_are_restored_after_ctrl_c():
    """Interrupts that come at any time inside blocks leave the settings as they were outside."""
    code = """
        import os, signal, threading, time
        import atled, atled.numpy as jnp
        from atled.core.settings import scope
        f, x = atled.jit(lambda x: x + 1.0), jnp.ones(3)
        with atled.enable_x64(), atled.debug_nans(False): f(x)
        f(x)
        hits, end, armed = 0, time.time() + 4, False
        def interrupted(*_):
            global armed
            if armed:  # once in each round
                armed = False
                raise KeyboardInterrupt
        signal.signal(signal.SIGINT, interrupted)
        def shoot():
            while time.time() < end:
                time.sleep(0.003)
                os.kill(os.getpid(), signal.SIGINT)
        thread = threading.Thread(target=shoot, daemon=True)
        thread.start()
        while time.time() < end:
            try:
                armed = True
                for _ in range(200):
                    with atled.enable_x64():
                        with atled.debug_nans(False):
                            f(x)
                            sum(range(2000))
                        assert scope().x64
                armed = False
            except KeyboardInterrupt:
                hits += 1
            assert not scope().overrides, scope().overrides
        thread.join()
        assert hits > 50 and not scope().x64, hits
        print("ok")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "ok" in done.stdout, done.stderr[-2000:]


def test_clearing_while_others_call():
    f, x, end = atled.jit(lambda x, k: {"out": x * k + 1}), jnp.ones(3), time.time() + 1.5

    def call():
        while time.time() < end:
            assert float(f(x, 2.0)["out"][0]) == 3.0 and float((x + 1)[0]) == 2.0

    def clear():
        while time.time() < end:
            f.clear_cache()
            atled.clear_caches()
            settings.update("explain_compiles", False)

    try:
        in_threads(call, call, clear)
    finally:
        settings.update("explain_compiles", True)


def test_threads_that_meet_a_new_function_compile_it_once(monkeypatch):
    from atled.engine import compilation

    compiled, barrier = [], threading.Barrier(8)
    original = compilation.compile_module
    monkeypatch.setattr(compilation, "compile_module", lambda *a: (compiled.append(a[1].name), original(*a))[1])

    @atled.jit
    def meeting(x):
        for i in range(30):
            x = jnp.sin(x) * (i + 0.123)
        return x

    def call():
        x = jnp.ones(7)
        barrier.wait()
        meeting(x)

    with settings.override(cache=False):
        meeting.lower(jnp.ones(7))  # the ops that the trace itself needs
    settings.update("cache", False)
    try:
        in_threads(*[call] * 8)
    finally:
        settings.update("cache", True)
    assert compiled.count("meeting") == 1 and len(meeting.compiles) == 1


def test_the_collector_and_modules_are_left_alone():
    before = set(sys.modules)
    seen = []

    def f(x):
        seen.append(gc.isenabled())
        return x + 1

    atled.jit(f)(1.0)
    gc.disable()
    try:
        atled.jit(lambda x: f(x) * 2)(1.0)
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen == [True, False] and "jax" not in set(sys.modules) - before


def test_errors_of_others_are_printed_as_ever():
    code = """
        import atled, atled.numpy as jnp
        try:
            jnp.ones(3) + jnp.ones(4)
        except Exception:
            pass
        def mine():
            raise KeyError("mine")
        atled.vmap  # the library is loaded, and its hook is there
        mine()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.stderr.count("File") == 2 and "KeyError: 'mine'" in done.stderr


def test_the_guide_lists_all_settings_with_their_defaults():
    page = pathlib.Path(atled.__file__).parents[1] / "docs" / "guide" / "settings.md"
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", page.read_text(), re.M)
    code = "from atled.core.settings import NAMES, read; print([(n, repr(read(n))) for n in NAMES])"
    plain = {k: v for k, v in os.environ.items() if "ATLED_" not in k}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    assert sorted(rows) == sorted([(n, v.replace("'", '"')) for n, v in ast.literal_eval(done.stdout)])


BAD = [
    ("matmul_precision", "hghest"), ("default_device", 3), ("cache_dir", 3), ("cache_bytes", "abc"),
    ("cache_bytes", -5),    ("x64", 1), ("promotion", None), ("watches", True), ("mesh", None),
]  # fmt: skip


@pytest.mark.parametrize("name, value", BAD)
def test_values_that_a_setting_cannot_have(name, value):
    with pytest.raises((TypeError, ValueError, AttributeError), match=f"settings: .*{name}"):
        atled.settings.update(name, value)


def test_precisions_are_those_of_products():
    from atled.core import settings
    from atled.ops import contraction

    known = (*contraction.PRECISIONS, *contraction.ALGORITHMS, *contraction._OF_EIGHT_BITS)
    assert set(settings.CHOICES["matmul_precision"]) == {None, "DEFAULT", *known}


def test_compiled_functions_know_every_setting():
    """A program that was compiled under other settings is not used, whichever of them changes programs."""
    from atled.core import settings

    def make():
        return atled.jit(lambda x: jnp.asarray(np.linspace(0, 1, 3)) + 0)

    x = jnp.ones(3)
    for first in (True, False):
        f, g = make(), make()
        with atled.settings.override(narrow=first):
            f(x), g(x)
        with atled.settings.override(narrow=not first):
            want = "float64" if first else "float32"
            assert f(x).dtype == want == g(x + 0).dtype
    untraced = set(settings.NAMES) - set(settings.TRACED)
    assert {"narrow", "x64", "divergent_collectives"}.isdisjoint(untraced)


def test_an_outer_block_that_is_closed_late():
    def values():
        with atled.settings.override(x64=True):
            yield

    late = values()
    next(late)
    with atled.debug_nans():
        assert next(late, None) is None
        assert atled.settings.read("debug_nans") and not atled.settings.read("x64")
        with pytest.raises(FloatingPointError):
            float(jnp.log(-1.0))
    assert not atled.settings.read("debug_nans") and not atled.settings.read("x64")


def test_empty_variables_say_nothing():
    names = [f"ATLED_{n.upper()}" for n in ("jit", "cache", "cache_dir", "hide_frames", "matmul_precision", "x64")]
    code = "from atled import settings as s; print(s.read('jit'), s.read('cache'), s.read('cache_dir'), s.read('x64'))"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **dict.fromkeys(names, "")}
    )
    assert said.stdout.split() == ["True", "True", "None", "False"], said.stderr
