"""`atled.jax` is JAX's API made of the same objects; nobody else sees it, and `as_jax` installs exactly it."""

import copy
import importlib
import os
import pathlib
import pickle
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import atled
import atled.jax as jax
from atled.jax import finder

ROOT = pathlib.Path(atled.__file__).parents[1]


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


THREADS = """
import threading, time, sys
import atled.jax
errors = []
def get(i):
    time.sleep(i * 0.001)
    try:
        from atled.jax.scipy.special import gammaln
        assert gammaln is sys.modules["atled.scipy.special"].gammaln
    except BaseException as error:
        errors.append(repr(error))
threads = [threading.Thread(target=get, args=(i,)) for i in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
sys.exit(errors[0] if errors else 0)
"""


def test_threads_import_at_the_same_time():
    for _ in range(3):
        said = run(THREADS)
        assert said.returncode == 0, said.stderr


def test_types_made_of_scalar_types():
    """A dtype as JAX's programs spell it is the dtype: types are one object, and keep it."""
    import atled.numpy as jnp

    assert jax.core.ShapedArray((7, 11, 13), jnp.float32) is jnp.ones((7, 11, 13)).type
    assert jax.core.ShapedArray((7, 11, 17), jnp.bfloat16).dtype.itemsize == 2
    assert jnp.ones((7, 11, 17), jnp.bfloat16).sum() == 7 * 11 * 17
    out = jax.pure_callback(lambda x: x, jax.core.ShapedArray((19,), jnp.float32), jnp.ones(19))
    assert out.sum() == 19


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_scalar_types(again):
    import atled.numpy as jnp

    for name in ("float32", "bfloat16", "bool_", "int_", "float_", "float8_e4m3fn", "half", "complex64"):
        assert again(getattr(jnp, name)) is getattr(jnp, name)
    assert jnp.float32 != jnp.float64 and jnp.float32 == "float32" and hash(jnp.float32) == hash(again(jnp.float32))


def test_lowering_for_types_of_programs():
    """A type has a sharding over no mesh in JAX; that asks for nothing."""
    import atled.numpy as jnp
    from atled import optim

    f, x = jax.jit(lambda x: x * 2), jnp.ones((2, 3))
    closed = jax.make_jaxpr(f)(x)
    for given in (x.aval, *closed.in_avals, jax.ShapeDtypeStruct((2, 3), "float32", sharding=x.aval.sharding)):
        assert f.lower(given).compile()(x).sum() == 12
    state = optim.Adam(1e-3).init({"w": x.aval})
    assert all([x["w"].shape == (2, 3) for x in state.slots.values()])


def test_parameters_of_a_primitive():
    equation = jax.make_jaxpr(lambda x: x.reshape(3, 2))(np.ones((2, 3), "f4")).eqns[0]
    out = equation.primitive.bind(np.ones((2, 3), "f4"), **equation.primitive.get_bind_params(equation.params))
    assert out.shape == (3, 2)


def test_exceptions_are_those_that_programs_catch():
    assert issubclass(jax.errors.UnexpectedTracerError, jax.errors.JAXTypeError)
    assert issubclass(jax.errors.JaxprTypeError, TypeError)
    with pytest.raises(ValueError, match="strict"), jax.numpy_dtype_promotion("strict"):
        jax.numpy.ones(2) + jax.numpy.ones(2, int)


def test_as_jax_and_pickle(tmp_path):
    """What `-c` defines is in `__main__`, and another `sitecustomize` still runs, also in children."""
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['SEEN'] = os.environ.get('SEEN', '') + 'x'\n")
    code = """
import pickle, subprocess, sys, jax
def f(x): return x
print(pickle.loads(pickle.dumps(f)) is f, jax.__version__)
child = "import os, jax; print(os.environ['SEEN'], jax.__name__)"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-m", "atled.jax.as_jax"]
    said = subprocess.run([*command, "-c", code], capture_output=True, text=True, env=env, timeout=300)
    assert said.stdout.split() == ["True", jax.__version__, "xx", "atled.jax"], said.stderr
    said = subprocess.run([*command, "-"], input=code, capture_output=True, text=True, env=env, timeout=300)
    assert said.stdout.split()[0] == "True", said.stderr
