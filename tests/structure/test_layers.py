"""The folder listing is the architecture: imports point down, and only `engine/` knows jaxlib."""

from __future__ import annotations

import ast
import pathlib
import runpy
import subprocess
import sys

import pytest

import atled

README = pathlib.Path(__file__).parents[2] / "README.md"
PACKAGE = pathlib.Path(atled.__file__).parent
BASE = {"core"}
NUMERIC = {"core", "compiler", "engine", "ops", "transforms", "higher_order", "staging"}
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "compiler": {"core"},
    "engine": {"core", "compiler"},
    "ops": {"core", "compiler"},
    "transforms": {"core", "ops"},
    "higher_order": {"core", "compiler", "engine", "ops", "transforms"},
    "staging": {"core", "compiler", "engine", "ops", "transforms", "higher_order"},
    "numpy": NUMERIC,
    "random": NUMERIC | {"numpy", "lax"},
    "lax": NUMERIC | {"numpy"},
    "nn": NUMERIC | {"numpy", "random", "lax"},
    "scipy": NUMERIC | {"numpy", "lax", "nn", "random"},
    "optim": NUMERIC | {"numpy", "random", "lax", "nn", "scipy"},
    "train": NUMERIC | {"numpy", "random", "lax", "nn", "optim", "metrics", "data", "checkpoints", "distributed"},
    "metrics": NUMERIC | {"numpy", "random", "lax", "nn", "optim", "distributed"},
    "data": {"core", "engine", "staging", "distributed"},
    "checkpoints": NUMERIC | {"numpy", "random", "lax", "nn", "distributed"},
    "text": {"core", "checkpoints"},
    "models": {"core", "staging", "numpy", "random", "nn", "checkpoints", "sharding", "text"},
    "generate": NUMERIC | {"numpy", "random", "lax", "nn"},
    "inspect": NUMERIC | {"numpy", "random", "lax", "nn", "scipy"},
    "jax": NUMERIC
    | {"numpy", "random", "lax", "nn", "scipy", "debug", "errors", "ffi", "sharding", "topologies", "train", "tree"},
    # single files
    "__init__": NUMERIC | {"numpy"},
    "__main__": {"checkpoints", "data", "inspect", "jax"},
    "debug": NUMERIC,
    "distributed": NUMERIC,
    "errors": NUMERIC | {"numpy", "random"},
    "export": NUMERIC,
    "ffi": NUMERIC,
    "image": NUMERIC | {"numpy", "lax"},
    "profiler": NUMERIC,
    "settings": {"core"},
    "sharding": NUMERIC,
    "test_util": NUMERIC | {"numpy", "random"},
    "topologies": NUMERIC,
    "tree": {"core"},
    "typing": {"core"},
}
# What may be imported inside a function, because loading it takes long and few need it.
LAZY = {
    "checkpoints/orbax.py": {"tensorstore"},
    "checkpoints/storage.py": {"tensorstore"},
    "core/tree_registry.py": {"dataclasses"},
    "debug.py": {"atled"},
    "engine/array.py": {"atled.engine", "atled.engine.multiprocess"},
    "engine/compilation.py": {"atled.engine", "jaxlib.cpu"},
    "engine/launch_control.py": {"atled.engine.multiprocess"},
    "numpy/arithmetic.py": {"atled.higher_order.while_loop"},
    "engine/program_cache.py": {"atled.engine.multiprocess"},
    "engine/eager.py": {"atled.engine.nan_watch"},
    "staging/aot.py": {"atled.engine"},
    "staging/recompilation.py": {"logging"},
    "staging/jit_calls.py": {"atled.staging.find_nans"},
    "jax/experimental/multihost_utils.py": {"atled.train.stop_signals"},
    "export.py": {"atled.engine"},
    "nn/module.py": {"atled.nn.module_repr"},
    "nn/module_summary.py": {"rich.table"},
    "numpy/__init__.py": {"atled.numpy.array_api"},
    "numpy/contractions.py": {"opt_einsum"},
    "text/chat_template.py": {"jinja2.ext", "jinja2.sandbox"},
    "text/package_tokenizer.py": {"tokenizers"},
    "train/learning_curves.py": {"matplotlib.figure"},
    "staging/device_put.py": {"atled.core.layout"},
    "random/gamma_distributions.py": {"atled.lax.incomplete_functions"},
    "numpy/ufuncs.py": {"atled.higher_order.scan", "atled.numpy.vectorization"},
    "numpy/scalar_types.py": {"atled.numpy.creation"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


def imports(file: pathlib.Path) -> list[tuple[str, bool, list[str]]]:
    """Every import of a file: module, whether it is inside a function, and the names taken from it."""
    found = []

    def visit(node: ast.AST, is_inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inside = is_inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            if isinstance(child, ast.Import):
                found.extend([(alias.name, is_inside, []) for alias in child.names])
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{file}: imports are absolute"
                found.append((child.module or "", is_inside, [alias.name for alias in child.names]))
            else:
                visit(child, inside)

    visit(ast.parse(file.read_text()), False)
    return found


def room(file: pathlib.Path) -> str:
    """The folder at the top of the package that a file is in, or the file's own name if it is in none."""
    parts = file.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else file.stem


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(PACKAGE)) for f in FILES])
def test_imports_point_down(file: pathlib.Path):
    name, home = str(file.relative_to(PACKAGE)), room(file)
    for module, is_inside, names in imports(file):
        top = module.split(".")[0]
        assert top != "jax", f"{file} imports jax"
        if top == "jaxlib":
            assert home == "engine", f"{file} imports jaxlib; only engine/ may"
        is_lazy = is_inside and module in LAZY.get(name, set())
        assert not is_inside or is_lazy, f"{file} imports {module} inside a function"
        if top != "atled" or is_lazy:
            continue
        for target in [module.split(".")[1]] if "." in module else names:
            if target != home and (PACKAGE / target).exists() | (PACKAGE / f"{target}.py").exists():
                assert target in MAY_IMPORT[home], f"{name} ({home}) imports atled.{target}"


def test_nobody_below_knows_the_second_face():
    """Its name stands in no import below it, and in no string from which one is made."""
    for file in FILES:
        if room(file) == "jax":
            continue
        text = file.read_text()
        has_table = (
            "lazy_imports.public(" in text and file != PACKAGE / "__init__.py"
        )  # which lists it among the modules
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_docstring(node.value):
                assert "atled.jax" not in node.value, f"{file}: {node.value!r}"
                assert not has_table or "jax" not in node.value.split(), f"{file}: {node.value!r}"
    assert [room(f) for f in FILES if "jax" in MAY_IMPORT[room(f)]] == ["__main__"]  # the command `port`


def _is_docstring(text: str) -> bool:
    return text.rstrip().endswith(".") or ">>>" in text


TRICKS = {"import_module", "modules", "__import__", "find_spec", "meta_path"}
TRICKY = {  # who imports by a string, or asks what is loaded, and why
    "core/lazy_imports.py": "public names are imported when they are first used",
    "data/file_sources.py": "libraries that are extras",
    "data/sets.py": "a library that has data sets, if it is installed",
    "engine/execution_errors.py": "the world of processes of this folder, if there is one",
    "engine/placement.py": "the engine imports jax where that is installed; it gets nothing",
    "engine/plugins.py": "libraries of accelerators, if they are installed",
    "models/pretrained.py": "the file of an architecture, which only its models need",
    "numpy/array_methods.py": "the package itself",
    "numpy/numpy_protocols.py": "NumPy's functions by their names",
    "optim/optimizer.py": "nn.stack, if it is loaded",
    "text/extras.py": "libraries that are extras",
    "scipy/stats/__init__.py": "its distributions are modules without files",
    "engine/progress.py": "IPython, if it is loaded",
}


def test_tricks():
    found: dict[str, set[str]] = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            is_sys = name != "modules" or ast.unparse(node) == "sys.modules"
            if name in TRICKS and is_sys and room(file) != "jax":
                found.setdefault(str(file.relative_to(PACKAGE)), set()).add(name)
    assert set(found) == set(TRICKY), found


def test_few_files_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 15


def _module(file: pathlib.Path) -> str:
    parts = ["atled", *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _needs(file: pathlib.Path, modules: set[str]) -> set[str]:
    """The files that a file imports, at its top or inside a function, but not for type checkers alone."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                found.update([alias.name for alias in child.names])
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    whole = f"{child.module}.{alias.name}"
                    found.add(whole if whole in modules else child.module or "")
            visit(child)

    visit(ast.parse(file.read_text()))
    return found & modules - {_module(file)}


def cycle(needs: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, if there are any."""
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for other in sorted(needs[module]):
            found = walk(other, [*path, module])
            if found:
                return found
        done.add(module)
        return []

    return next((found for m in sorted(needs) if (found := walk(m, []))), [])


def test_imports_form_no_cycle():
    modules = {_module(f) for f in FILES}
    found = cycle({_module(f): _needs(f, modules) for f in FILES})
    assert not found, " imports ".join(found)


def test_a_cycle_would_be_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_everything_is_in_the_table():
    assert {room(f) for f in FILES} == set(MAY_IMPORT)


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(PACKAGE)) for f in FILES])
def test_files_fit_in_the_head(file: pathlib.Path):
    lines = file.read_text().count("\n")
    assert lines <= 800, f"{file} has {lines} lines; 800 is the limit"


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(PACKAGE)) for f in FILES])
def test_every_file_says_what_it_owns(file: pathlib.Path):
    assert ast.get_docstring(ast.parse(file.read_text())), f"{file} has no docstring"


def test_names_of_files():
    for file in FILES:
        assert file.stem not in ("utils", "misc", "common", "helpers"), file


def test_seeded_bugs_are_up_to_date():
    """Every text that `scripts/seeded-bugs` changes stands where it says."""
    script = runpy.run_path(str(PACKAGE.parent / "scripts" / "seeded-bugs"))
    for file, old, *_ in script["cases"](None):
        assert old in (PACKAGE / file).read_text(), f"{file} no longer says {old!r}"


def test_what_the_start_imports():
    """`import atled.numpy` and a first result load no loops, no data sets, no files of other rooms."""
    code = "import sys, atled.numpy as jnp; jnp.ones(3) + 1; print(*[m for m in sys.modules if m.startswith('atled')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {m for m in loaded if m.startswith("atled.higher_order.")} == {"atled.higher_order.call"}
    assert {room(PACKAGE / "/".join(m.split(".")[1:]) / "x") for m in loaded if m.count(".")} <= NUMERIC | {"numpy"}
    assert len(loaded) < 130


def test_the_core_can_be_read_in_a_weekend():
    """The README says how many lines that means."""
    rooms = ("core", "compiler", "transforms", "higher_order", "staging")
    lines = sum([f.read_text().count("\n") for room in rooms for f in (PACKAGE / room).rglob("*.py")])
    assert lines <= 14_500 and "**The core can be read in a weekend**: 14,500 lines" in README.read_text()
