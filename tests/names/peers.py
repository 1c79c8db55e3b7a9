"""The public names of the peers, kept in `peers.txt`: NumPy's, JAX's, and those of the array API standard.

Run this file to write the list anew, with numpy and jax installed; the standard's names are kept as they are, or read
from the folder of its stubs if that is given: `python tests/names/peers.py .../array_api_stubs/_2025_12`.
"""

from __future__ import annotations

import ast
import importlib
import pathlib
import re
import sys
import textwrap
import warnings

LIST = pathlib.Path(__file__).with_name("peers.txt")
STANDARD = "array_api"
NUMPY = ("numpy", "numpy.linalg", "numpy.fft")
JAX = (
    "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.random", "jax.nn", "jax.nn.initializers", "jax.lax",
    "jax.lax.linalg", "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.stats", "jax.scipy.ndimage",
    "jax.scipy.signal", "jax.scipy.fft", "jax.scipy.optimize", "jax.scipy.sparse.linalg", "jax.scipy.interpolate",
    "jax.scipy.cluster.vq", "jax.scipy.integrate", "jax.scipy.spatial.transform",
)  # fmt: skip
# The standard's stubs name its dtypes only in their text.
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


def kept() -> dict[str, list[str]]:
    """The names of each namespace, from the list."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^\[", LIST.read_text(), flags=re.M)[1:]:
        heading, _, names = part.partition("]")
        found[heading] = names.split()
    return found


def installed(namespace: str) -> list[str]:
    """The public names of an installed namespace: no modules, but what modules of distributions hold; no primitives."""
    module = importlib.import_module(namespace)
    names = module.__all__ if namespace.split(".")[0] == "numpy" else dir(module)
    found: list[str] = []
    for name in names:
        if name.startswith("_") or name.endswith("_p"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            value = getattr(module, name)
        if type(value).__name__ != "module":
            found.append(name)
        elif namespace == "jax.scipy.stats":
            found.extend([f"{name}.{n}" for n in dir(value) if not n.startswith("_")])
    return sorted(found)


def of_standard(folder: pathlib.Path) -> list[str]:
    """The names in the standard's stubs: functions, constants and dtypes, those of extensions, and the array's."""
    found: list[str] = []
    for file in sorted(folder.glob("*.py")):
        tree = ast.parse(file.read_text())
        if file.stem == "array_object":
            (array,) = [n for n in tree.body if isinstance(n, ast.ClassDef)]
            found.extend([f"array.{n.name}" for n in array.body if isinstance(n, ast.FunctionDef)])
        elif not file.stem.startswith("_"):
            prefix = f"{file.stem}." if file.stem in ("fft", "linalg", "info") else ""
            found.extend([prefix + name for name in _all_of(tree)])
    left_out = {"array.__init__", "info.__array_namespace_info__", "__eq__"}  # the last is that of dtypes
    return sorted({*found, *DTYPES, "__array_namespace_info__"} - left_out)


def _all_of(tree: ast.Module) -> list[str]:
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            return ast.literal_eval(node.value)  # type: ignore[attr-defined]
    return []


def write(names: dict[str, list[str]]) -> None:
    """Write the list."""
    parts = [f"[{n}]\n{textwrap.fill(' '.join(v), 118, break_on_hyphens=False)}\n" for n, v in names.items()]
    LIST.write_text("\n".join(parts))


if __name__ == "__main__":
    found = {n: installed(n) for n in (*NUMPY, *JAX)}
    found[STANDARD] = of_standard(pathlib.Path(sys.argv[1])) if len(sys.argv) > 1 else kept()[STANDARD]
    write(found)
