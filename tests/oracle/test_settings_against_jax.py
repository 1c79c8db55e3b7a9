"""Settings, contexts and small names of `jax` itself: as JAX has them, and what they change here."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import config

jax = pytest.importorskip("jax")

LIBRARIES = pytest.mark.parametrize("library", [atled, jax], ids=["atled", "jax"])
# Settings that change nothing here, and a value that JAX takes.
INERT = {
    "allow_f16_reductions": True, "array_garbage_collection_guard": "log", "auto_pcast": False,
    "enable_custom_prng": True, "jax2tf_associative_scan_reductions": True, "legacy_prng_key": "warn",
    "log_compiles": False, "remove_size_one_mesh_axis_from_type": True, "softmax_custom_jvp": False,
    "thread_guard": False, "transfer_guard": "log", "transfer_guard_device_to_device": "log",
    "transfer_guard_device_to_host": "log", "transfer_guard_host_to_device": "log",
}  # fmt: skip
SINGLE = {
    "default_prng_impl": ("threefry2x32", "rbg"), "no_execution": (False, True), "no_tracing": (False, True),
    "threefry_partitionable": (True, False),
}  # fmt: skip


@LIBRARIES
@pytest.mark.parametrize("name", INERT)
def test_settings_that_are_taken(library, name):
    with getattr(library, name)(INERT[name]):
        assert float(library.jit(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.parametrize("name", SINGLE)
def test_settings_with_one_value(name):
    only, other = SINGLE[name]
    with getattr(jax, name)(only), getattr(atled, name)(only):
        assert float(atled.jit(lambda x: x * 3)(1.0)) == 3.0
    with pytest.raises(NotImplementedError, match=f"jax_{name} is always {only!r} here; got {other!r}"):
        getattr(atled, name)(other)


def test_blocks_hold_in_their_context_only():
    before, seen = config.read("jax_transfer_guard"), []
    with atled.transfer_guard("log"):
        thread = threading.Thread(target=lambda: seen.append(config.read("jax_transfer_guard")))
        thread.start()
        thread.join()
        assert config.jax_transfer_guard == "log" and seen == [before]
    assert config.read("jax_transfer_guard") == before


@LIBRARIES
def test_ranks_that_differ(library):
    np_ = library.numpy
    x, y = np_.ones((2, 3)), np_.ones(3)
    with library.numpy_rank_promotion("allow"):
        assert (x + y).shape == (2, 3)
    with library.numpy_rank_promotion("raise"):
        assert (x + 1.0).shape == (x + x).shape == (2, 3)
        for f in (lambda a, b: a + b, library.jit(lambda a, b: a + b), np_.maximum):
            with pytest.raises(ValueError, match="numpy_rank_promotion"):
                f(x, y)
    with library.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        np_.minimum(x, y)
    assert (x + y).shape == (2, 3)


def test_the_mode_of_ranks_is_checked():
    with pytest.raises(ValueError, match="numpy_rank_promotion: the mode is 'allow', 'warn' or 'raise'; got 'no'"):
        atled.numpy_rank_promotion("no")


@LIBRARIES
def test_user_contexts(library):
    context, traced = library.make_user_context(1), []

    @library.jit
    def f(x):
        traced.append(context.value)
        return x * context.value

    values = [float(f(2.0))]
    for value in (5, 7, 5):
        with context(value):
            values.append(float(f(2.0)))
    values.append(float(f(2.0)))
    assert values == [2.0, 10.0, 14.0, 10.0, 2.0] and traced == [1, 5, 7]


@LIBRARIES
def test_keys_that_are_used_again(library):
    key = library.random.key(0)
    with library.debug_key_reuse(True), pytest.raises(library.errors.KeyReuseError):
        library.random.uniform(key)
        library.random.uniform(key)
    assert issubclass(library.errors.KeyReuseError, library.errors.JAXTypeError)


@LIBRARIES
def test_checks_and_explanations(library, capsys):
    with library.enable_checks(True), library.explain_cache_misses(False):
        f = library.jit(lambda x: x * 2)
        assert (float(f(1.0)), f(jnp_ones(library)).shape) == (2.0, (3,))
    assert "again" not in capsys.readouterr().err


def jnp_ones(library):
    return library.numpy.ones(3)


@LIBRARIES
def test_leaks(library):
    kept = []
    with library.check_tracer_leaks(False):
        library.jit(lambda x: (kept.append(x), x)[1])(1.0)
    kept.clear()
    with pytest.raises(Exception, match=r"[Ll]eaked"), library.check_tracer_leaks(True):
        library.jit(lambda x: (kept.append(x), x)[1])(2.0)


X = np.arange(24, dtype="float32").reshape(6, 4)


@pytest.mark.parametrize("index", [
    lambda ds, i: ds(i, 2), lambda ds, i: (ds(i, 3), 1), lambda ds, i: (slice(None), ds(i, 2)), lambda ds, i: ds(2),
    lambda ds, i: ds(None), lambda ds, i: (ds(1, 2, 2), ds(i, 1)), lambda ds, i: (None, ds(0, 2), ..., ds(i, 2)),
], ids=range(7))  # fmt: skip
@pytest.mark.parametrize("start", [0, 2, 5, 9, -1, -3, -9])
def test_ds(index, start):
    if start < 0 and index(lambda *given: len(given), 0) == (3, 2):
        pytest.skip("JAX counts from the end only where there is no stride")
    theirs, ours = [np.asarray(m.jit(lambda i, m=m: m.numpy.asarray(X)[index(m.ds, i)])(start)) for m in (jax, atled)]
    np.testing.assert_array_equal(ours, theirs)
    if start in (0, 2):
        np.testing.assert_array_equal(jnp.asarray(X)[index(atled.ds, start)], theirs)


@pytest.mark.parametrize("start", [0, 3])
def test_ds_in_updates(start):
    for m in (jax, atled):
        got = m.jit(lambda i, m=m: m.numpy.asarray(X).at[m.ds(i, 2)].set(0))(start)
        want = X.copy()
        want[start : start + 2] = 0
        np.testing.assert_array_equal(got, want)


def test_what_ds_refuses():
    with pytest.raises(IndexError, match="ds: an axis of length 6 has no 7 elements"):
        jnp.asarray(X)[atled.ds(0, 7)]
    with pytest.raises(NotImplementedError, match="ds: with a stride"):
        atled.jit(lambda i: jnp.asarray(X)[atled.ds(i, 2, 2)])(1)


@LIBRARIES
def test_smap(library):
    kinds = (library.sharding.AxisType.Auto,)
    mesh = library.make_mesh((1,), ("i",), kinds, devices=library.devices()[:1])
    x = library.numpy.arange(6.0).reshape(2, 3)
    with library.set_mesh(mesh):
        f = lambda a, b: (a * 2 + b, library.lax.psum(a.sum(), "i"))
        out, total = library.jit(library.smap(f, in_axes=(0, None), out_axes=(0, None), axis_name="i"))(x, x)
        np.testing.assert_array_equal(out, np.asarray(x) * 3)
        assert float(total) == 15.0
        with pytest.raises(TypeError):
            library.smap(f, in_axes=0, out_axes=0, axis_name=("i",))(x, x)


@LIBRARIES
def test_devices(library):
    assert library.default_backend() == "cpu" and library.device_count() == len(library.devices())
    assert library.local_device_count() == len(library.local_devices()) and library.process_count() == 1
    assert isinstance(library.devices()[0], library.Device)
    x = library.numpy.arange(3.0)
    assert all([isinstance(s, library.Shard) for s in x.addressable_shards])
    one = library.sharding.SingleDeviceSharding(library.devices()[0])
    made = library.make_array_from_single_device_arrays((3,), one, [x], dtype="float32")
    np.testing.assert_array_equal(made, [0, 1, 2])
