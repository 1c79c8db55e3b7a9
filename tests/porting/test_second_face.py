"""`atled.jax` is JAX's API made of the same objects; nobody else sees it, and `as_jax` installs exactly it."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import atled
import atled.jax as jax
from atled.jax import finder


def run(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, **options)


def test_names_are_those_of_atled():
    both = sorted(set(jax.__all__) & set(atled.__all__) - {"__version__"})
    mine = {"debug", "errors", "ffi", "lax"}  # packages of its own that have all names of ours
    assert len(both) > 60
    assert [name for name in both if name not in mine and getattr(jax, name) is not getattr(atled, name)] == []
    for name in mine:
        ours, theirs = getattr(atled, name), getattr(jax, name)
        assert [n for n in ours.__all__ if getattr(ours, n) is not getattr(theirs, n)] == []
    top = """
        debug_infs debug_nans default_backend device_count local_device_count local_devices process_count process_index
        make_array_from_callback make_array_from_process_local_data
    """
    assert all([getattr(jax, name) is getattr(atled, name) for name in top.split()])


@pytest.mark.parametrize("name", finder.SHARED)
def test_modules_are_those_of_atled(name):
    ours = importlib.import_module(f"atled.{name}")
    if f"atled.jax.{name}" not in ("atled.jax.debug", "atled.jax.lax"):
        assert importlib.import_module(f"atled.jax.{name}") is ours is getattr(jax, name)
    for inner in pkgutil.iter_modules(getattr(ours, "__path__", [])):
        again = importlib.import_module(f"atled.jax.{name}.{inner.name}")
        assert again is importlib.import_module(f"atled.{name}.{inner.name}")
        assert again.__name__ == again.__spec__.name == f"atled.{name}.{inner.name}"


def test_a_module_is_loaded_once():
    code = """
import sys, atled.jax.numpy.linalg, atled.jax.scipy.special as special, atled.jax.lax.linalg
from atled.jax.nn import initializers
from atled.jax.scipy.stats import norm
import atled.scipy.stats
assert norm is atled.scipy.stats.norm and special is atled.scipy.special
files = {}
for name, module in list(sys.modules.items()):
    if name.startswith("atled") and getattr(module, "__file__", None):
        files.setdefault(module.__file__, set()).add(id(module))
assert not [f for f, ids in files.items() if len(ids) > 1]
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_every_module_can_be_imported():
    code = """
import importlib, pkgutil, atled.jax as jax
for module in pkgutil.walk_packages(jax.__path__, "atled.jax."):
    if "as_jax" not in module.name:
        importlib.import_module(module.name)
    parent, _, name = module.name.rpartition(".")
    if "as_jax" not in parent:
        assert name in ("as_jax", "attributes", "effects", "environment", "finder", "linear_call", "port") or hasattr(
            importlib.import_module(parent), name), module.name
print("done")
"""
    done = run(code)
    assert done.stdout == "done\n", done.stderr


def test_atled_alone_does_not_load_it():
    code = """
import sys, atled, atled.nn, atled.optim, atled.train, atled.scipy, atled.inspect, atled.checkpoints, atled.metrics
import atled.debug, atled.export, atled.ffi, atled.distributed, atled.topologies, atled.test_util
for name in atled.__all__:
    name == "jax" or getattr(atled, name)
assert not [name for name in sys.modules if name.startswith("atled.jax")]
program = atled.make_program(lambda x: x * 2)(1.0)
assert not hasattr(program, "eqns") and not hasattr(program.inputs[0], "aval")
assert not hasattr(atled, "make_jaxpr") and not hasattr(atled, "tree_util")
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_as_jax_installs_this_package():
    code = """
import atled.jax.as_jax, jax, jax.numpy as jnp, jax.experimental.sparse, atled, sys
from jax._src import core
import jax.core
assert jax is atled.jax and jnp is atled.numpy and jax.experimental is atled.jax.experimental
assert jax.core is atled.jax.extend.core and sys.modules["jax.experimental.sparse"] is atled.jax.experimental.sparse
assert jax.__version__ == "0.10.2"
try:
    import jax.nonsense
except ModuleNotFoundError as error:
    assert error.name == "jax.nonsense"
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


def test_attributes_of_programs():
    closed = jax.make_jaxpr(lambda x: atled.numpy.sin(x) * 2)(1.0)
    assert [e.primitive.name for e in closed.jaxpr.eqns] == ["sin", "mul"] and closed.in_avals[0].weak_type
    assert closed.eqns[0].invars[0].aval is closed.in_avals[0] and not closed.effects and not closed.constvars
    assert closed.eqns[1].primitive is jax.lax.mul_p and closed.eqns[0].params == {}
    printed = jax.make_jaxpr(lambda x: atled.debug.print("{}", x))(1.0)
    assert [type(e).__name__ for e in printed.effects] == ["DebugEffect"]
