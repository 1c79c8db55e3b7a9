"""Settings, contexts and small names of `jax` itself: as JAX has them, and what they change here."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import atled.jax as atled
import atled.numpy as jnp
from atled.jax import config

jax = pytest.importorskip("jax")

LIBRARIES = pytest.mark.parametrize("library", [atled, jax], ids=["atled", "jax"])
# Settings with a value that both libraries take; what the others do here is in tests/porting/test_settings_of_jax.py.
BOTH = {
    "allow_f16_reductions": False, "array_garbage_collection_guard": "allow", "auto_pcast": True,
    "default_prng_impl": "threefry2x32", "enable_custom_prng": False, "jax2tf_associative_scan_reductions": False,
    "legacy_prng_key": "allow", "log_compiles": False, "no_execution": False, "no_tracing": False,
    "remove_size_one_mesh_axis_from_type": False, "softmax_custom_jvp": True, "thread_guard": False,
    "threefry_partitionable": True, "transfer_guard": "allow", "transfer_guard_device_to_device": "allow",
    "transfer_guard_device_to_host": "allow", "transfer_guard_host_to_device": "allow",
}  # fmt: skip


@LIBRARIES
@pytest.mark.parametrize("name", BOTH)
def test_settings_that_are_taken(library, name):
    with getattr(library, name)(BOTH[name]):
        assert float(library.jit(lambda x: x + 1)(1.0)) == 2.0


def test_blocks_hold_in_their_context_only():
    seen = []
    with atled.debug_key_reuse(True), atled.numpy_rank_promotion("raise"):
        thread = threading.Thread(target=lambda: seen.append(config.read("jax_debug_key_reuse")))
        thread.start()
        thread.join()
        assert config.jax_debug_key_reuse is True and config.jax_numpy_rank_promotion == "raise" and seen == [False]
    assert config.read("jax_debug_key_reuse") is False and config.read("jax_numpy_rank_promotion") == "allow"


@LIBRARIES
def test_ranks_that_differ(library):
    np_ = library.numpy
    x, y = np_.ones((2, 3)), np_.ones(3)
    with library.numpy_rank_promotion("allow"):
        assert (x + y).shape == (2, 3)
    with library.numpy_rank_promotion("raise"):
        assert (x + 1.0).shape == (x + x).shape == (2, 3)
        for f in (lambda a, b: a + b, library.jit(lambda a, b: a + b), np_.maximum):
            with pytest.raises(ValueError, match="rank_promotion"):
                f(x, y)
    with library.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        np_.minimum(x, y)
    assert (x + y).shape == (2, 3)


def test_the_mode_of_ranks_is_checked():
    with pytest.raises(ValueError, match="rank_promotion must be 'allow' or 'warn' or 'raise'; got 'no'"):
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
