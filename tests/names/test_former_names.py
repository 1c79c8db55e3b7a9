"""Every name from before 0.1 raises, and says a name that there is."""

import ast
import importlib
import inspect
import pathlib

import pytest

import atled
from atled import nn
from atled.core.former_names import FORMER

PACKAGE = pathlib.Path(atled.__file__).parent


def decorated():
    """Module, qualified name, and the names of each `@formerly(old="new")` in the package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text()
        if "@formerly(" not in text or file.name == "former_names.py":
            continue
        module = ".".join(["atled", *file.relative_to(PACKAGE).with_suffix("").parts])
        tree = ast.parse(text)
        found = [(n, "") for n in tree.body] + [
            (m, f"{n.name}.") for n in tree.body if isinstance(n, ast.ClassDef) for m in n.body
        ]
        for node, prefix in found:
            for d in getattr(node, "decorator_list", ()):
                if isinstance(d, ast.Call) and getattr(d.func, "id", "") == "formerly":
                    names = {k.arg: ast.literal_eval(k.value) for k in d.keywords}
                    yield pytest.param(module, prefix + node.name, names, id=f"{module[6:]}.{prefix}{node.name}")


@pytest.mark.parametrize(("module", "name", "names"), list(decorated()))
def test_old_names_say_new_ones(module, name, names):
    x = importlib.import_module(module)
    for part in name.split("."):
        x = getattr(x, part)
    parameters = inspect.signature(x).parameters
    methods = dir(x) if inspect.isclass(x) else []
    fields = getattr(x, "__annotations__", {})
    for old, new in names.items():
        if not new.isidentifier():
            with pytest.raises(TypeError, match="was replaced in 0"):
                x(**{old: None})
        elif new in parameters and old not in parameters:
            with pytest.raises(TypeError, match=f"{old!r} was renamed to {new!r} in"):
                x(**{old: None})
        else:  # of an attribute
            assert inspect.isclass(x) and (new in methods or new in fields or f"self.{new}" in inspect.getsource(x)), (
                new
            )


@pytest.mark.parametrize("package", FORMER)
def test_old_functions_say_new_ones(package):
    names, package = FORMER[package], importlib.import_module(package)
    for old, new in names.items():
        assert hasattr(package, new)
        with pytest.raises(AttributeError, match=f"it was renamed to '{new}' in"):
            getattr(package, old)


def test_a_subclass_may_have_an_old_name():
    class Mine(nn.Linear):
        def __init__(self, inputs, key):
            super().__init__(inputs, inputs, key=key)

    assert Mine(inputs=3, key=atled.random.key(0)).in_features == 3
    with pytest.raises(AttributeError, match=r"Mine\.outputs was renamed to out_features in"):
        _ = Mine(3, atled.random.key(0)).outputs


def test_assigning_a_former_name_is_not_ignored():
    state = atled.train.State(nn.Linear(2, 1, key=atled.random.key(0)), atled.optim.SGD(0.1))
    with pytest.raises(AttributeError, match=r"State\.memory was renamed to opt_state in"):
        state.memory = state.opt_state
