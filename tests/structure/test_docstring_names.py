"""Names in backticks in docstrings are names that there are: parameters that are gone are found here."""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
import pathlib
import re

import numpy as np

import atled

PACKAGE = pathlib.Path(atled.__file__).parent
NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(\(\))?`(?!`)")
ELSEWHERE = frozenset([  # of other libraries and programs, of files and of formats
    "ATLED_CACHE_BYTES", "ATLED_DEBUG_NANS", "ATLED_X64", "CheckpointManager", "DLTensor", "HloModuleProto",
    "JAX_ENABLE_X64", "PyTreeCheckpointer", "StandardCheckpointer", "add_p", "arr_0", "arr_1", "color_map",
    "contextvars", "file_version", "min_width", "mpirun", "pprof", "pyi", "rich", "simple_value", "sin_p",
    "spectral_norm", "srun", "type_id", "type_info", "unfused_", "wall_time", "weight_norm",
])  # fmt: skip


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The source of the package, parsed, by file."""
    return {str(f.relative_to(PACKAGE)): ast.parse(f.read_text()) for f in sorted(PACKAGE.rglob("*.py"))}


def identifiers(tree: ast.AST) -> set[str]:
    """All names that code uses or defines; also those in strings that are single words."""
    found: set[str] = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Name):
            found.add(n.id)
        elif isinstance(n, ast.Attribute):
            found.add(n.attr)
        elif isinstance(n, ast.arg) or (isinstance(n, ast.keyword) and n.arg):
            found.add(n.arg)
        elif isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.add(n.name)
        elif isinstance(n, ast.alias):
            found.update((n.asname or n.name).split("."), n.name.split("."))
        elif isinstance(n, ast.Constant) and isinstance(n.value, str) and re.fullmatch(r"[\w. \n=]+", n.value):
            found.update(re.findall(r"\w+", n.value))
    return found


@functools.cache
def known() -> set[str]:
    """Names of the package, of Python and of NumPy."""
    found = set(dir(builtins)) | set(keyword.kwlist) | set(dir(np)) | set(dir(np.ndarray)) | set(dir(dict))
    for file, tree in trees().items():
        found |= identifiers(tree) | set(pathlib.Path(file).with_suffix("").parts)
    return found | ELSEWHERE


def docstrings():
    """File, line, node and text of every docstring."""
    for file, tree in trees().items():
        for n in ast.walk(tree):
            if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(n, clean=False)
                if text:
                    yield file, getattr(n, "lineno", 1), n, text


def test_names_in_backticks_exist():
    odd = []
    for file, line, _, text in docstrings():
        prose = re.sub(r"^\s*(>>>|\.\.\.).*$", "", text, flags=re.M)
        odd += [f"{file}:{line}: {m[1]}" for m in NAME.finditer(prose) if m[1].rpartition(".")[2] not in known()]
    assert not odd, "\n".join(odd)


def parameters(node: ast.AST) -> set[str] | None:
    """The parameters of a function, or of a class: of its constructor, and its fields."""
    if isinstance(node, ast.ClassDef):
        found = {s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
        init = [s for s in node.body if isinstance(s, ast.FunctionDef) and s.name in ("__init__", "__new__")]
        if not init and node.bases:
            return None  # those of a base
        return found | {a for s in init for a in parameters(s) or ()}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        a = node.args
        names = [*a.posonlyargs, *a.args, *a.kwonlyargs, *[x for x in (a.vararg, a.kwarg) if x]]
        return {x.arg for x in names}
    return set()


def test_arguments_that_are_explained_exist():
    odd = []
    for file, line, node, text in docstrings():
        there = parameters(node)
        if there is None or ("\n    Args:" not in text and "\nArgs:" not in text and "Args:\n" not in text):
            continue
        block = text.partition("Args:\n")[2]
        indent = len(block) - len(block.lstrip(" "))
        for entry in block.splitlines():
            if entry.strip() and len(entry) - len(entry.lstrip()) < indent:
                break
            found = re.match(rf" {{{indent}}}(\*{{0,2}}\w+(?:, \*{{0,2}}\w+)*): ", entry)
            for name in found[1].split(", ") if found else ():
                if name.strip("*") not in there:
                    odd.append(f"{file}:{line}: {name} is no parameter of {getattr(node, 'name', '')}")
    assert not odd, "\n".join(odd)


def file_of(parts: list[str]) -> bool:
    """Whether a dotted name is a file of the package, or a folder."""
    return PACKAGE.joinpath(*parts).is_dir() or PACKAGE.joinpath(*parts).with_suffix(".py").exists()


def test_attributes_in_backticks_exist():
    """Dotted names that begin with a package of ours."""
    odd = []
    for file, line, _, text in docstrings():
        for m in NAME.finditer(re.sub(r"^\s*(>>>|\.\.\.).*$", "", text, flags=re.M)):
            first, *rest = m[1].split(".")
            if not rest or rest[-1] in ("py", "pyi", "md", "txt") or (first != "atled" and first not in atled.__all__):
                continue
            parts, x = rest if first == "atled" else [first, *rest], atled
            for part in parts:
                if not hasattr(x, part):  # perhaps a file; `as_jax` must not be imported
                    is_file = file_of(parts)
                    odd += [] if is_file else [f"{file}:{line}: {m[1]}"]
                    break
                x = getattr(x, part)
    assert not odd, "\n".join(odd)
