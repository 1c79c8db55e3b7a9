"""What each of JAX's settings does here: works, raises, or warns once and says what happens instead."""

import asyncio
import importlib.metadata
import os
import subprocess
import sys
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
    "jax_explain_cache_misses": False, "jax_default_device": "cpu", "jax_enable_checks": False,
    "jax_disable_jit": True,
    "jax_traceback_filtering": "off", "jax_compilation_cache_max_size": 1 << 20,
}  # fmt: skip
REFUSED = {
    "jax_array_garbage_collection_guard": "fatal", "jax_auto_pcast": False, "jax_check_tracer_leaks": True,
    "jax_cpu_collectives_implementation": "mpi", "jax_default_prng_impl": "rbg", "jax_enable_custom_prng": True,
    "check_vma": True, "jax_backend_target": "grpc://", "jax_check_static_indices": True,
    "jax_compilation_cache_check_contents": True, "jax_compilation_cache_include_metadata_in_key": True,
    "jax_cuda_visible_devices": "0", "jax_enable_recoverability": True, "jax_error_checking_behavior_divide": "raise",
    "jax_error_checking_behavior_nan": "raise", "jax_error_checking_behavior_oob": "raise",
    "jax_explicit_x64_dtypes": "error", "jax_high_dynamic_range_gumbel": True, "jax_oneapi_visible_devices": "1",
    "jax_pjrt_client_create_options": "a:1", "jax_random_seed_offset": 3, "jax_rocm_visible_devices": "0,1",
    "jax_xla_backend": "x", "mock_num_gpu_processes": 2, "jax_legacy_prng_key": "error",
    "jax_mock_gpu_topology": "1x8", "jax_no_execution": True, "jax_no_tracing": True,
    "jax_thread_guard": True, "jax_threefry_partitionable": False, "jax_transfer_guard": "disallow",
    "jax_transfer_guard_device_to_device": "disallow", "jax_transfer_guard_device_to_host": "log",
    "jax_transfer_guard_host_to_device": "disallow_explicit",
}  # fmt: skip


def test_the_table_is_whole():
    assert set(OTHERS) == set(config.OURS) and set(REFUSED) == set(config.REFUSED)
    names = [*config.OURS, *config.AT_START, *config.REFUSED, *config.IGNORED]
    assert len(names) == len(set(names)) and sorted(names) == sorted(
        [n for n in dir(config) if n not in config.__all__]
    )
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
    with pytest.raises(TypeError, match="debug_nans must be True or False; got 'false'"):
        atled.settings.update("debug_nans", "false")
    with pytest.raises(ValueError, match="rank_promotion must be 'allow' or 'warn' or 'raise'; got 'no'"):
        atled.settings.override(rank_promotion="no")
    with atled.settings.override(rank_promotion="raise"), pytest.raises(ValueError, match="ranks differ"):
        jnp.ones((2, 3)) + np.ones(3, "float32")


def test_every_setting_of_jax_is_known():
    """The names of JAX's own table, where it is installed."""
    code = "from jax._src.config import config; print(*sorted(config._value_holders))"
    theirs = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if theirs.returncode:
        pytest.skip("jax is not installed")
    known = {*config.OURS, *config.AT_START, *config.REFUSED, *config.IGNORED}
    if jax.__version__ in version_of_jax():
        assert known == set(theirs.stdout.split())


def version_of_jax():
    try:
        return [importlib.metadata.version("jax")]
    except importlib.metadata.PackageNotFoundError:
        return []


def test_a_setting_is_not_assigned():
    with pytest.raises(AttributeError, match="jax_enable_x64 cannot be assigned"):
        config.jax_enable_x64 = True
    assert config.jax_enable_x64 is False and jnp.zeros(2).dtype == "float32"


def test_blocks_are_entered_twice_and_closed_elsewhere():
    block = jax.log_compiles(False)
    with block, block:
        assert config.jax_log_compiles is False

    async def main():
        async def steps():
            with jax.transfer_guard("allow"):
                yield

        opened = steps()
        await asyncio.create_task(anext(opened))
        await asyncio.create_task(opened.aclose())

    asyncio.run(main())
    assert config.jax_transfer_guard == "allow"


def test_the_platform_in_use_may_be_named():
    jnp.ones(2)
    before = os.environ.get("ATLED_PLATFORMS")
    config.update("jax_platform_name", "cpu")
    with pytest.raises(RuntimeError, match="before the first use of a device"):
        config.update("jax_platforms", "tpu")
    assert config.read("jax_platform_name") == "cpu" == os.environ["ATLED_PLATFORMS"]
    if before is None:
        del os.environ["ATLED_PLATFORMS"]


VARIABLES = {
    "JAX_ENABLE_X64": "1", "JAX_DEBUG_NANS": "true", "JAX_DISABLE_JIT": "yes", "JAX_NUM_CPU_DEVICES": "3",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
}  # fmt: skip


@pytest.mark.parametrize("first", ["import atled.jax as jax", "import atled.jax.as_jax, jax"])
def test_variables_of_jax(first):
    code = f"""{first}
c = jax.config
print(jax.numpy.zeros(2).dtype, c.jax_debug_nans, c.jax_disable_jit, len(jax.devices()), c.jax_numpy_rank_promotion)"""
    env = {**os.environ, **VARIABLES}
    env.pop("ATLED_NUM_CPU_DEVICES", None)
    env.pop("XLA_FLAGS", None)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert said.stdout.split() == ["float64", "True", "True", "3", "raise"], said.stderr
    bad = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**env, "JAX_ENABLE_X64": "x"}
    )
    assert "JAX_ENABLE_X64 must be true or false; got 'x'" in bad.stderr
