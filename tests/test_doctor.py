"""`atled doctor` in processes of its own, in good health and with settings that are broken."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

PREPARE = "import atled, atled.numpy as jnp; atled.jit(lambda x: jnp.cos(x) * 2.5)(jnp.ones(3))"


def doctor(tmp_path, code=None, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ATLED_", "XLA_", "XDG_"))}
    env = {**env, "HOME": str(tmp_path), "ATLED_PLATFORMS": "cpu", **variables}
    command = ["-m", "atled", "doctor"] if code is None else ["-c", code]
    run = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=env, timeout=300)
    assert "Traceback" not in run.stdout + run.stderr, run.stderr[-3000:]
    return run.returncode, run.stdout


def test_all_is_well(tmp_path):
    assert doctor(tmp_path, PREPARE)[0] == 0
    status, out = doctor(tmp_path)
    assert status == 0 and out.endswith("all is well\n"), out
    for name in ("versions", "jaxlib", "processor", "memory", "plugins", "jit", "grad", "vmap", "disk cache"):
        assert f"{name} " in out or f"{name}\n" in out, name
    assert f"{tmp_path}/.cache/atled/executables" in out and "0 of them damaged" in out and "notes" not in out
    assert "FAILED" not in out and "collective             ok" in out


def test_a_flag_that_xla_does_not_know(tmp_path):
    status, out = doctor(tmp_path, XLA_FLAGS="--xla_no_such_flag=1")
    assert status == 1 and "xla_no_such_flag" in out.partition("broken")[2] and "try: unset XLA_FLAGS" in out, out


def test_values_that_cannot_be_read(tmp_path):
    status, out = doctor(
        tmp_path, ATLED_CACHE_BYTES="lots", ATLED_X64="maybe", ATLED_NUM_PROCESSES="two", ATLED_CHACHE_DIR="/tmp"
    )
    assert status == 1, out
    assert "ATLED_CACHE_BYTES must be a whole number; got 'lots'." in out
    assert "ATLED_X64 must be 0 or 1; got 'maybe'." in out and "ATLED_NUM_PROCESSES must be a number" in out
    assert "atled has no setting ATLED_CHACHE_DIR" in out and "is it ATLED_CACHE_DIR?" in out


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ATLED_PLATFORMS", "tpu", "ATLED_PLATFORMS asks for tpu, but no plugin"),
        ("ATLED_NUM_CPU_DEVICES", "none", "ATLED_NUM_CPU_DEVICES must be a positive number; got 'none'"),
    ],
)
def test_an_engine_that_does_not_start(tmp_path, name, value, said):
    from atled.engine import plugins

    if value in [p.platform for p in plugins.installed()]:
        pytest.skip("the plugin is installed")
    status, out = doctor(tmp_path, **{name: value})
    assert status == 1 and said in out and f"try: unset {name}" in out, out


def test_a_cache_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    status, out = doctor(tmp_path, HOME="", ATLED_CACHE_DIR=str(tmp_path / "file"))
    assert status == 0 and "cannot be created" in out and "try: ATLED_CACHE_DIR=" in out, out


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_cache_that_can_only_be_read(tmp_path):
    assert doctor(tmp_path, PREPARE)[0] == 0
    (tmp_path / ".cache/atled/executables").chmod(0o500)
    status, out = doctor(tmp_path)
    assert status == 0 and "cannot be written" in out, out


def test_a_damaged_entry(tmp_path):
    assert doctor(tmp_path, PREPARE)[0] == 0
    folder = tmp_path / ".cache/atled/executables"
    harmed = min(folder.iterdir())
    data = bytearray(harmed.read_bytes())
    data[-1] ^= 1
    harmed.write_bytes(data)
    folder.chmod(0o777)
    status, out = doctor(tmp_path)
    assert status == 0 and f"rm {harmed}" in out and "1 of them damaged" in out and "chmod 700" in out, out


def test_a_plugin_that_is_no_library(tmp_path):
    place = tmp_path / "packages/jax_plugins/xla_cuda12"
    place.mkdir(parents=True)
    (place / "xla_cuda_plugin.so").write_text("nothing")
    path = os.pathsep.join([str(tmp_path / "packages"), os.environ.get("PYTHONPATH", "")])
    status, out = doctor(tmp_path, PYTHONPATH=path)
    assert status == 0 and "not used: ATLED_PLATFORMS is cpu" in out, out
    status, out = doctor(tmp_path, PYTHONPATH=path, ATLED_PLATFORMS="cuda")
    assert status == 1 and "xla_cuda_plugin.so" in out and "not used: " in out, out


def test_it_knows_the_variables():
    from atled.inspect import doctor

    sources = [f.read_text() for f in pathlib.Path(doctor.__file__).parents[1].rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"""["'](ATLED_[A-Z0-9_]*[A-Z0-9])["']""", text)}
    assert read <= doctor.known_variables()


def test_it_is_not_loaded_by_import(tmp_path):
    assert doctor(tmp_path, "import sys, atled; assert 'atled.inspect.doctor' not in sys.modules")[0] == 0


def test_settings_that_cannot_be_read_stop_the_engine(tmp_path):
    code = """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import atled
assert "ATLED_CACHE_BYTES must be a whole number" in str(seen[0].message)
try:
    atled.numpy.ones(3)
except ValueError as error:
    assert "devices: ATLED_CACHE_BYTES must be a whole number; got '1e9'." in str(error)
else:
    raise SystemExit("it ran")
"""
    assert doctor(tmp_path, code, ATLED_CACHE_BYTES="1e9")[0] == 0
