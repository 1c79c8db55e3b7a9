"""Tab completion: `dir()` of a public module lists its public names and nothing else, also before they are used."""

import importlib
import inspect
import pathlib
import runpy
import subprocess
import sys

import pytest

import atled
from atled.jax import config

SCRIPT = pathlib.Path(atled.__file__).parents[1] / "scripts" / "stubs"
MODULES = runpy.run_path(str(pathlib.Path(__file__).with_name("test_public_names.py")))["NAMESPACES"]


@pytest.mark.parametrize("name", MODULES)
def test_dir_is_what_is_public(name):
    module = importlib.import_module(name)
    listed = [n for n in dir(module) if module is not config or n in config.__all__]  # without JAX's settings
    assert sorted(listed) == sorted(module.__all__), set(listed) ^ set(module.__all__)
    for each in dir(module):
        value = getattr(module, each)
        assert not inspect.ismodule(value) or value.__name__.startswith(("atled", "jaxlib.mlir")), f"{name}.{each}"


def test_dir_of_a_fresh_process():
    code = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    assert name == "atled.jax.config" or sorted(dir(module)) == sorted(module.__all__), name
    assert "importlib" not in dir(module) and "annotations" not in dir(module)
"""
    done = subprocess.run([sys.executable, "-c", code, *MODULES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("start", "ends"),
    [
        ("nn.Lin", ["Linear"]),
        (
            "optim.Ad",
            ["AdaMax", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "AdaptiveGradClip", "AddDecayedWeights",
             "AddNoise"],
        ),
        ("train.fi", ["fit"]), ("data.tok", ["tokens"]), ("numpy.linalg.nor", ["norm"]), ("jax.make_j", ["make_jaxpr"]),
        ("sharding.Na", ["NamedSharding"]), ("settings.", ["override", "read", "update"]),
    ],
)  # fmt: skip
def test_a_shell_completes(start, ends):
    """Python's own completer, which IPython and Jupyter share, asks `dir`."""
    code = f"""
import rlcompleter, atled
complete, found = rlcompleter.Completer({{"atled": atled}}).complete, []
while (one := complete("atled.{start}", len(found))) is not None:
    found.append(one.removeprefix("atled.").partition("(")[0].rpartition(".")[2])
print(*sorted(name for name in found if not name.startswith("_")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(ends)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match=r"module 'atled\.nn' has no attribute 'Linea'") as caught:
        atled.nn.Linea
    assert caught.value.name == "Linea" and caught.value.obj is atled.nn


def test_lazy_names_have_signatures_and_docstrings():
    assert "in_features" in str(inspect.signature(atled.nn.Linear)) and atled.train.fit.__doc__
    assert inspect.getsourcefile(atled.nn.Linear).endswith("linear_layers.py")


def test_stubs_are_up_to_date():
    stubs = runpy.run_path(str(SCRIPT))["stubs"]()
    assert [str(path) for path, text in stubs.items() if path.read_text() != text] == [], "run scripts/stubs"
    assert {str(p) for p in pathlib.Path(atled.__file__).parent.rglob("*.pyi")} == {str(path) for path in stubs}
