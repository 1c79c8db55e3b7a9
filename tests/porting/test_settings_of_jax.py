"""What each of JAX's settings does here: works, raises, or warns once and says what happens instead."""

import warnings

import numpy as np
import pytest

import atled
import atled.jax as jax
import atled.numpy as jnp
from atled.core import settings
from atled.jax import config

OTHERS = {  # another value than the one that is in use
    "jax_enable_x64": True, "jax_numpy_dtype_promotion": "strict", "jax_numpy_rank_promotion": "raise",
    "jax_default_matmul_precision": "highest", "jax_compilation_cache_dir": "/tmp/atled-of-another",
    "jax_debug_nans": True,
    "jax_enable_compilation_cache": False, "jax_debug_infs": True, "jax_debug_key_reuse": True,
    "jax_explain_cache_misses": False, "jax_default_device": "a device", "jax_enable_checks": False,
    "jax_disable_jit": True, "jax_traceback_filtering": "off",
}  # fmt: skip
REFUSED = {
    "jax_array_garbage_collection_guard": "fatal", "jax_auto_pcast": False, "jax_check_tracer_leaks": True,
    "jax_cpu_collectives_implementation": "mpi", "jax_default_prng_impl": "rbg", "jax_enable_custom_prng": True,
    "jax_legacy_prng_key": "error", "jax_mock_gpu_topology": "1x8", "jax_no_execution": True, "jax_no_tracing": True,
    "jax_thread_guard": True, "jax_threefry_partitionable": False, "jax_transfer_guard": "disallow",
    "jax_transfer_guard_device_to_device": "disallow", "jax_transfer_guard_device_to_host": "log",
    "jax_transfer_guard_host_to_device": "disallow_explicit",
}  # fmt: skip


def test_the_table_is_whole():
    assert set(OTHERS) == set(config.OURS) and set(REFUSED) == set(config.REFUSED)
    names = [*config.OURS, *config.AT_START, *config.REFUSED, *config.IGNORED]
    assert len(names) == len(set(names)) and sorted(names) == sorted([n for n in dir(config) if n.startswith("jax")])
    assert {ours for ours, *_ in config.OURS.values()} <= set(settings.NAMES)


@pytest.mark.parametrize("name", OTHERS)
def test_those_of_atled(name):
    """They change atled's setting, and give back JAX's value."""
    ours, before = config.OURS[name][0], config.read(name)
    was = settings.read(ours)
    try:
        config.update(name, OTHERS[name])
        assert config.read(name) == OTHERS[name] == getattr(config, name) != before and settings.read(ours) != was
    finally:
        config.update(name, before)
    assert settings.read(ours) == was


@pytest.mark.parametrize("name", REFUSED)
def test_those_that_promise_something_else_raise(name):
    config.update(name, config.read(name))
    says = f"{name} cannot be {REFUSED[name]!r} here, only "
    with pytest.raises(NotImplementedError, match=says):
        config.update(name, REFUSED[name])
    block = vars(config).get(name.removeprefix("jax_"))
    if block is not None:
        with pytest.raises(NotImplementedError, match=says):
            block(REFUSED[name])
        with block(config.read(name)):
            assert float(atled.jit(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.parametrize("name", config.IGNORED)
def test_those_that_change_nothing_warn_once(name):
    before, other = config.IGNORED[name][0], "another"
    config._warned.discard(name)
    try:
        with pytest.warns(config.IgnoredSettingWarning, match=f"{name} changes nothing here: ") as seen:
            config.update(name, other)
        assert seen[0].filename == __file__ and config.read(name) == other
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            config.update(name, "a third")
            config.update(name, before)
    finally:
        config._values[name] = before


def test_a_block_warns_at_its_line_and_holds_in_its_context():
    config._warned.discard("jax_log_compiles")
    with pytest.warns(config.IgnoredSettingWarning) as seen, jax.log_compiles(True):
        assert config.jax_log_compiles is True
    assert config.jax_log_compiles is False and seen[0].filename == __file__


def test_a_device_is_in_use():
    jnp.ones(1)
    for name in config.AT_START:
        config.update(name, config.read(name))
        with pytest.raises(RuntimeError, match="before the first use of a device"):
            config.update(name, 77)


def test_names_that_no_setting_has():
    for do in (config.read, lambda name: config.update(name, 1), lambda name: getattr(config, name)):
        with pytest.raises(AttributeError, match="there is no setting 'jax_nonsense'"):
            do("jax_nonsense")


def test_key_reuse_works():
    key = atled.random.key(0)
    with jax.debug_key_reuse(True):
        atled.random.uniform(key)
        with pytest.raises(atled.errors.KeyReuseError):
            atled.random.uniform(key)
    with jax.debug_key_reuse(False), pytest.warns(atled.errors.KeyReuseWarning):
        atled.random.uniform(key)


def test_ours_take_only_what_they_know():
    with pytest.raises(AttributeError, match="there is no setting 'debug_nan'"):
        atled.settings.update("debug_nan", True)
    with pytest.raises(TypeError, match="debug_nans is True or False; got 'false'"):
        atled.settings.update("debug_nans", "false")
    with pytest.raises(ValueError, match="rank_promotion is 'allow' or 'warn' or 'raise'; got 'no'"):
        atled.settings.override(rank_promotion="no")
    with atled.settings.override(rank_promotion="raise"), pytest.raises(ValueError, match="ranks differ"):
        jnp.ones((2, 3)) + np.ones(3, "float32")
