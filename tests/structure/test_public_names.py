"""The public names are those listed in `public_names.txt`, their parameters those in `public_parameters.txt`: what
appears or disappears does so on purpose (docs/guide/stability.md).

Run this file to write the lists anew.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pathlib
import pkgutil

import atled

LIST = pathlib.Path(__file__).with_name("public_names.txt")
PARAMETERS = LIST.with_name("public_parameters.txt")
INTERNAL = {  # of the modules that are next to public ones; docs/guide/stability.md says so
    "atled.as_jax", "atled.compiler", "atled.core", "atled.doctor", "atled.engine", "atled.environment",
    "atled.higher_order", "atled.ops", "atled.port", "atled.staging", "atled.transfer", "atled.transforms",
}  # fmt: skip
NAMESPACES = (
    "atled", "atled.ad_checkpoint", "atled.checkpoints", "atled.custom_batching", "atled.custom_derivatives",
    "atled.data", "atled.debug", "atled.distributed", "atled.dlpack", "atled.dtypes", "atled.errors",
    "atled.example_libraries.optimizers", "atled.example_libraries.stax", "atled.experimental",
    "atled.experimental.buffer_callback", "atled.experimental.checkify",
    "atled.experimental.compilation_cache.compilation_cache", "atled.experimental.compute_on",
    "atled.experimental.control_deps", "atled.experimental.jet", "atled.experimental.layout",
    "atled.experimental.mesh_utils",
    "atled.experimental.multihost_utils", "atled.experimental.ode", "atled.experimental.pjit",
    "atled.experimental.profiler", "atled.experimental.random", "atled.experimental.rnn", "atled.experimental.roofline",
    "atled.experimental.scheduling_groups", "atled.experimental.serialize_executable",
    "atled.experimental.shard_alike", "atled.experimental.shard_map", "atled.experimental.source_mapper",
    "atled.experimental.sparse", "atled.experimental.sparse.linalg", "atled.experimental.topologies",
    "atled.experimental.xla_metadata", "atled.export", "atled.extend.backend", "atled.extend.core",
    "atled.extend.linear_util", "atled.extend.lowering", "atled.extend.mlir", "atled.extend.random",
    "atled.extend.sharding", "atled.extend.source_info_util", "atled.extend.xla", "atled.ffi", "atled.flatten_util",
    "atled.image", "atled.inspect", "atled.interpreters.ad", "atled.interpreters.batching",
    "atled.interpreters.mlir", "atled.interpreters.partial_eval", "atled.interpreters.pxla",
    "atled.interpreters.xla", "atled.lax", "atled.memory", "atled.metrics", "atled.monitoring", "atled.nn",
    "atled.nn.initializers", "atled.nn.losses", "atled.numpy", "atled.numpy.fft", "atled.numpy.linalg", "atled.optim",
    "atled.profiler", "atled.random", "atled.ref", "atled.scipy", "atled.scipy.cluster", "atled.scipy.cluster.vq",
    "atled.scipy.fft",
    "atled.scipy.integrate", "atled.scipy.interpolate", "atled.scipy.linalg", "atled.scipy.ndimage",
    "atled.scipy.optimize", "atled.scipy.signal", "atled.scipy.sparse", "atled.scipy.sparse.linalg",
    "atled.scipy.spatial", "atled.scipy.spatial.transform", "atled.scipy.special", "atled.scipy.stats",
    "atled.sharding", "atled.stages", "atled.test_util", "atled.topologies", "atled.train", "atled.tree",
    "atled.tree_util", "atled.typing",
)  # fmt: skip


def public(namespace: str) -> list[str]:
    module = importlib.import_module(namespace)
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    ours = [n for n in names if _is_public(namespace, getattr(module, n))]
    return [f"{namespace}.{n}" for n in sorted(ours)]


def _is_public(namespace: str, value: object) -> bool:
    """Not a module or a name that was only imported to be used; annotations is one of those."""
    if type(value).__name__ == "module":
        return value.__name__ in NAMESPACES  # type: ignore[attr-defined]
    home = getattr(value, "__module__", None)
    return home is None or home.split(".")[0] in ("atled", "numpy", "ml_dtypes", "jaxlib", "builtins")


def listed() -> list[str]:
    return [name for namespace in NAMESPACES for name in public(namespace)]


def test_public_names():
    want, got = LIST.read_text().split(), listed()
    assert sorted(set(got) - set(want)) == [] and sorted(set(want) - set(got)) == []


def test_all_of_them_say_what_they_do():
    for name in listed():
        module, _, last = name.rpartition(".")
        value = getattr(importlib.import_module(module), last)
        if callable(value) and (getattr(value, "__module__", "") or "").startswith("atled"):
            assert value.__doc__, f"{name} has no docstring"


def parameters(name: str) -> list[str]:
    """The parameters of a function or class of ours, as they may be given, or the members of an enumeration."""
    module, _, last = name.rpartition(".")
    value = getattr(importlib.import_module(module), last)
    if not callable(value) or not (getattr(value, "__module__", "") or "").startswith("atled"):
        return []
    if isinstance(value, type):
        if issubclass(value, enum.Enum):
            return list(value.__members__)
        maker = next((c for c in value.__mro__ if {"__init__", "__new__"} & set(vars(c))), value)
        if not maker.__module__.startswith("atled") or getattr(value, "_is_protocol", False):
            return []  # Python's own, whose parameters are not ours
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # such as classes of exceptions
        return []
    by_position = [p for p in found if p.kind == p.POSITIONAL_ONLY]
    star = next((i for i, p in enumerate(found) if p.kind == p.KEYWORD_ONLY), None)
    has_star = any([p.kind == p.VAR_POSITIONAL for p in found])
    words = []
    for i, p in enumerate(found):
        if i == star and not has_star:
            words.append("*")
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        may_be_left_out = p.default is not p.empty
        words.append(f"{mark}{p.name}{'=' if may_be_left_out else ''}")
        if by_position and p is by_position[-1]:
            words.append("/")
    return words


def with_parameters() -> list[str]:
    return [f"{name}({', '.join(found)})" for name in listed() if (found := parameters(name))]


def test_public_parameters():
    """A parameter that is renamed, moved or removed breaks calls as a name does."""
    want, got = PARAMETERS.read_text().splitlines(), with_parameters()
    assert sorted(set(got) - set(want)) == [] and sorted(set(want) - set(got)) == []


def test_every_module_is_public_or_internal():
    there = {f"atled.{m.name}" for m in pkgutil.iter_modules(atled.__path__) if not m.name.startswith("_")}
    public_ones = {".".join(name.split(".")[:2]) for name in NAMESPACES} - {"atled"}
    assert there - {"atled.version"} == public_ones | INTERNAL
    assert not public_ones & INTERNAL


if __name__ == "__main__":
    LIST.write_text("\n".join(listed()) + "\n")
    PARAMETERS.write_text("\n".join(with_parameters()) + "\n")
