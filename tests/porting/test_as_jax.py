"""`import jax` gives atled, for processes that ask for it."""

import importlib.util
import os
import subprocess
import sys

import pytest


def run(*command, path=None, **variables):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=300, cwd=path,
        env={**os.environ, **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


PROGRAM = """
import importlib.metadata, sys
import numpy as np
import jax, jax.numpy as jnp, jax.tree_util as jtu
from jax import lax, random
from jax.sharding import PartitionSpec as P
from jax.experimental import mesh_utils

assert jax.__version__ == importlib.metadata.version("jax") == "0.10.2", jax.__version__
assert "atled" in jax.jit.__module__ and jnp is jax.numpy and jax.experimental.mesh_utils is mesh_utils
x = np.linspace(0, 1, 3)
for y in (jnp.asarray(x), x + jnp.ones(3), jax.jit(lambda x: x * 2)(x), jnp.zeros(2, jnp.float64), jnp.sin(x)):
    assert y.dtype == "float32", y.dtype
assert jax.device_put(np.arange(3)).dtype == "int32"
carry, _ = lax.scan(lambda c, v: (c + v, None), jnp.float32(0), x)
assert carry.dtype == "float32"
jax.config.update("jax_enable_x64", True)
assert jnp.asarray(x).dtype == "float64" and jax.config.jax_enable_x64
assert isinstance(jax.make_jaxpr(jnp.sin)(1.0), jax.core.ClosedJaxpr)
print("done", sys.argv[1:])
"""


def test_a_script_runs_under_the_command(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    code, out, errors = run("-m", "atled.jax.as_jax", "program.py", "a", "b", path=tmp_path)
    assert code == 0 and out == "done ['a', 'b']\n", errors


def test_an_import_does_it_too(tmp_path):
    (tmp_path / "program.py").write_text("import atled.jax.as_jax\n" + PROGRAM)
    code, out, errors = run("program.py", path=tmp_path)
    assert code == 0 and out.startswith("done"), errors


def test_child_processes_have_it_too(tmp_path):
    (tmp_path / "program.py").write_text(
        """
import multiprocessing, subprocess, sys
import jax

def ask(_):
    import jax
    return jax.jit.__module__

if __name__ == "__main__":
    for how in ("spawn", "forkserver"):
        with multiprocessing.get_context(how).Pool(1) as pool:
            assert "atled" in pool.map(ask, [0])[0]
    command = [sys.executable, "-c", "import jax; print(jax.jit.__module__)"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "atled" in done.stdout, done.stderr
    print("done")
"""
    )
    code, out, errors = run("-m", "atled.jax.as_jax", "program.py", path=tmp_path)
    assert code == 0 and out == "done\n", errors


def test_modules_and_pytest_run_under_the_command(tmp_path):
    (tmp_path / "test_one.py").write_text("import jax\n\ndef test_it():\n    assert 'atled' in jax.jit.__module__\n")
    code, out, errors = run(
        "-m", "atled.jax.as_jax", "-m", "pytest", "-q", "-p", "no:cacheprovider", ".", path=tmp_path
    )
    assert code == 0 and "1 passed" in out, out + errors


def test_a_text_runs_under_the_command(tmp_path):
    text = "import sys, jax; print('atled' in jax.jit.__module__, sys.argv)"
    code, out, errors = run("-m", "atled.jax.as_jax", "-c", text, "a", path=tmp_path)
    assert code == 0 and out.strip() == "True ['-c', 'a']", errors


def test_the_real_one_is_refused():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("there is no real one")
    code, _, errors = run("-c", "import jax, atled.jax.as_jax")
    assert code == 1 and "the real jax is already imported" in errors


def test_what_is_missing_is_reported():
    program = "import atled.jax.as_jax, jax\ntry: jax.nonsense\nexcept AttributeError: pass\n"
    code, _, errors = run("-c", program, ATLED_AS_JAX_REPORT="1")
    assert code == 0 and "jax.nonsense (1)" in errors
    code, _, errors = run("-c", program)
    assert code == 0 and not errors


def test_our_own_users_keep_their_widths():
    import numpy as np

    import atled.numpy as jnp

    assert jnp.asarray(np.ones(2)).dtype == "float64" and "jax" not in jnp.__name__


def test_names_that_are_computed_are_not_kept():
    """`jax._src.xla_bridge._backends` is empty until a client is made."""
    text = "import jax, jax._src.xla_bridge as b; n = len(b._backends); jax.devices(); print(n, len(b._backends))"
    assert run("-m", "atled.jax.as_jax", "-c", text, JAX_PLATFORMS="cpu")[:2] == (0, "0 1\n")


ORBAX = """
import tempfile
import jax, numpy as np, jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh, other = [Mesh(np.array(jax.devices()).reshape(shape), ("a", "b")) for shape in ((4, 2), (2, 4))]
w = jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, P("a", "b")))
tree = {"w": w, "b": jax.device_put(jnp.ones(6, jnp.bfloat16), NamedSharding(mesh, P())), "n": 3}
with tempfile.TemporaryDirectory() as folder:
    with ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
        for step in range(3):
            manager.save(step, args=ocp.args.StandardSave(tree))
        manager.wait_until_finished()
        assert manager.all_steps() == [1, 2]
        like = {**tree, "w": jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(other, P("b", "a")))}
        back = manager.restore(2, args=ocp.args.StandardRestore(like))
assert back["w"].sharding.spec == P("b", "a") and back["w"].addressable_shards[0].data.shape == (2, 4)
for name in tree:
    np.testing.assert_array_equal(np.asarray(back[name], "f4"), np.asarray(tree[name], "f4"))
assert back["n"] == 3 and back["b"].dtype == jnp.bfloat16
print("done", jax.jit.__module__)
"""


@pytest.mark.skipif(importlib.util.find_spec("orbax") is None, reason="needs Orbax")
def test_orbax_saves_and_restores_arrays_over_a_mesh(tmp_path):
    (tmp_path / "program.py").write_text(ORBAX)
    devices = "--xla_force_host_platform_device_count=8"
    done = run("-m", "atled.jax.as_jax", "program.py", path=tmp_path, XLA_FLAGS=devices, JAX_PLATFORMS="cpu")
    assert done[:2] == (0, "done atled.staging.jit\n"), done[2]
