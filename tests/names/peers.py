"""The public names of the peers, kept in `peers.txt`: NumPy's, JAX's, and those of the array API standard.

What is public is a matter of rules, not of lists: see `installed` and `offered`.

Run this file to write the list anew, with numpy and jax installed; the standard's names are kept as they are, or read
from the folder of its stubs if that is given: `python tests/names/peers.py .../array_api_stubs/_2025_12`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pathlib
import pkgutil
import re
import sys
import textwrap
import types
import typing
import warnings
from collections.abc import Iterable, Iterator

LIST = pathlib.Path(__file__).with_name("peers.txt")
STANDARD = "array_api"
NUMPY = ("numpy", "numpy.linalg", "numpy.fft")
JAX = (
    "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.random", "jax.nn", "jax.nn.initializers", "jax.lax",
    "jax.lax.linalg", "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.stats", "jax.scipy.ndimage",
    "jax.scipy.signal", "jax.scipy.fft", "jax.scipy.optimize", "jax.scipy.sparse.linalg", "jax.scipy.interpolate",
    "jax.scipy.cluster.vq", "jax.scipy.integrate", "jax.scipy.spatial.transform",
)  # fmt: skip
# Those of which a rule says what is public: `offered`.
MODULES = (
    "jax", "jax.ad_checkpoint", "jax.core", "jax.custom_batching", "jax.custom_derivatives", "jax.debug",
    "jax.distributed", "jax.dlpack", "jax.dtypes", "jax.errors", "jax.export", "jax.ffi", "jax.flatten_util",
    "jax.image", "jax.monitoring", "jax.ops", "jax.profiler", "jax.ref", "jax.sharding", "jax.stages",
    "jax.test_util", "jax.tree", "jax.tree_util", "jax.typing",
    "jax.example_libraries.optimizers", "jax.example_libraries.stax",
    "jax.experimental", "jax.experimental.buffer_callback", "jax.experimental.checkify",
    "jax.experimental.colocated_python", "jax.experimental.compilation_cache.compilation_cache",
    "jax.experimental.compute_on", "jax.experimental.control_deps", "jax.experimental.custom_partitioning",
    "jax.experimental.jet", "jax.experimental.layout", "jax.experimental.mesh_utils",
    "jax.experimental.multihost_utils", "jax.experimental.ode", "jax.experimental.profiler",
    "jax.experimental.random", "jax.experimental.rnn", "jax.experimental.roofline",
    "jax.experimental.scheduling_groups", "jax.experimental.serialize_executable", "jax.experimental.shard_alike",
    "jax.experimental.source_mapper", "jax.experimental.sparse", "jax.experimental.sparse.linalg",
    "jax.experimental.topologies", "jax.experimental.xla_metadata",
    "jax.extend.backend", "jax.extend.core", "jax.extend.linear_util", "jax.extend.lowering", "jax.extend.mlir",
    "jax.extend.random", "jax.extend.sharding", "jax.extend.source_info_util", "jax.extend.xla",
    "jax.interpreters.ad", "jax.interpreters.batching", "jax.interpreters.mlir", "jax.interpreters.partial_eval",
    "jax.interpreters.pxla", "jax.interpreters.xla",
)  # fmt: skip
# Modules that are not gone through, with all that is in them, and why.
OUT_OF_SCOPE = {
    "jax._src": "private",
    "jax.api_util": "not documented: helpers for JAX's own transformations",
    "jax.cloud_tpu_init": "started by JAX itself",
    "jax.collect_profile": "a script",
    "jax.experimental.array_serialization": "needs TensorStore: `atled.checkpoints`",
    "jax.experimental.fused": "marks ops that should become one kernel, for compilers that support it",
    "jax.experimental.hijax": "user-defined types and primitives, JAX's newest extension API",
    "jax.experimental.jax2tf": "needs TensorFlow",
    "jax.experimental.mosaic": "kernels for GPUs and TPUs",
    "jax.experimental.pallas": "kernels for GPUs and TPUs",
    "jax.experimental.transfer": "a jaxlib server that transfers arrays between processes",
    "jax.extend.pallas": "kernels for GPUs and TPUs",
    "jax.tools": "scripts",
}
# Packages that hand on what their files hold.
PACKAGES = (
    "jax.experimental.colocated_python", "jax.experimental.roofline", "jax.experimental.source_mapper",
    "jax.experimental.sparse", "jax.scipy.stats",
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


def offered(namespace: str) -> list[str]:
    """The public names of a module of JAX: those of `__all__`, or what it hands on and what it defines.

    A file hands on what it imports as `from x import y as y`; one that only lists names also under another name. Of
    what it defines, that which has a docstring or which it does not use itself, and no other names for what is not its
    own. No modules, primitives and aliases of types; nothing that is deprecated, which is looked up instead of being
    there, or warns first when it is called.
    """
    module = importlib.import_module(namespace)
    if hasattr(module, "__all__"):
        names = set(module.__all__)
    else:
        tree = ast.parse(inspect.getsource(module))
        is_list = not [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        used = {n.id for top in tree.body for n in ast.walk(top) if _is_use(top, n)}
        own = [n for n in _defined(tree.body) if is_list or _is_own(module, n, n in used)]
        names = {*_handed_on(tree.body, is_list), *own}
    return sorted([n for n in names if n in vars(module) and _is_public(n, vars(module)[n])])


def _handed_on(body: list[ast.stmt], is_list: bool) -> Iterator[str]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from [a.asname for a in node.names if a.asname and (is_list or a.asname == a.name)]


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from [x.id for t in targets for x in ast.walk(t) if isinstance(x, ast.Name)]


def _is_use(top: ast.stmt, node: ast.AST) -> bool:
    """Whether a name is used at a place, not counting `f = f()`."""
    is_name = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    return is_name and node.id not in _defined([top])  # type: ignore[attr-defined]


def _is_own(module: types.ModuleType, name: str, is_used: bool) -> bool:
    value = vars(module).get(name)
    if hasattr(value, "__origin__") or value is typing.Any or isinstance(value, typing.TypeVar):
        return False
    if hasattr(value, "__name__"):  # code
        return getattr(value, "__module__", "") == module.__name__ and bool(value.__doc__ or not is_used)
    return not is_used


def _is_public(name: str, value: object) -> bool:
    is_special = name.startswith("_") or name.endswith("_p") or isinstance(value, types.ModuleType)
    return not is_special and not (inspect.isfunction(value) and _warns_first(value))


def _warns_first(f: types.FunctionType) -> bool:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(f))).body
    if not isinstance(node, ast.FunctionDef):
        return False
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return bool(body) and ast.unparse(body[0]).startswith("warnings.warn(")


def modules() -> list[str]:
    """The modules of the installed JAX, without those that are private or out of scope, or parts of a package."""
    found = [m.name for m in pkgutil.walk_packages(importlib.import_module("jax").__path__, "jax.", lambda _: None)]
    is_private = lambda name: any([part.startswith("_") for part in name.split(".")])
    return [m for m in found if not is_private(m) and not _is_in(m, OUT_OF_SCOPE) and not _is_part(m)]


def _is_in(name: str, folders: Iterable[str]) -> bool:
    return any([name == f or name.startswith(f"{f}.") for f in folders])


def _is_part(name: str) -> bool:
    return name not in (*JAX, *MODULES) and name.rpartition(".")[0] in PACKAGES


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
    found = {n: installed(n) for n in (*NUMPY, *JAX)} | {n: offered(n) for n in MODULES}
    found[STANDARD] = of_standard(pathlib.Path(sys.argv[1])) if len(sys.argv) > 1 else kept()[STANDARD]
    write(found)
