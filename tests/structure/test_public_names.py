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
    "atled.compiler", "atled.core", "atled.engine", "atled.higher_order", "atled.ops", "atled.staging",
    "atled.transforms",
}  # fmt: skip
NAMESPACES = (
    "atled", "atled.checkpoints", "atled.data", "atled.debug", "atled.distributed", "atled.errors", "atled.export",
    "atled.ffi", "atled.generate", "atled.image", "atled.inspect", "atled.jax", "atled.jax.ad_checkpoint",
    "atled.jax.config",
    "atled.jax.custom_batching", "atled.jax.custom_derivatives", "atled.jax.dlpack", "atled.jax.dtypes",
    "atled.jax.example_libraries.optimizers", "atled.jax.example_libraries.stax", "atled.jax.experimental",
    "atled.jax.experimental.buffer_callback", "atled.jax.experimental.checkify",
    "atled.jax.experimental.compilation_cache.compilation_cache", "atled.jax.experimental.compute_on",
    "atled.jax.experimental.control_deps", "atled.jax.experimental.jet", "atled.jax.experimental.layout",
    "atled.jax.experimental.mesh_utils", "atled.jax.experimental.multihost_utils", "atled.jax.experimental.ode",
    "atled.jax.experimental.pjit", "atled.jax.experimental.profiler", "atled.jax.experimental.random",
    "atled.jax.experimental.rnn", "atled.jax.experimental.roofline", "atled.jax.experimental.scheduling_groups",
    "atled.jax.experimental.serialize_executable", "atled.jax.experimental.shard_alike",
    "atled.jax.experimental.shard_map", "atled.jax.experimental.source_mapper", "atled.jax.experimental.sparse",
    "atled.jax.experimental.sparse.linalg", "atled.jax.experimental.topologies",
    "atled.jax.experimental.xla_metadata", "atled.jax.extend.backend", "atled.jax.extend.core",
    "atled.jax.extend.linear_util", "atled.jax.extend.lowering", "atled.jax.extend.mlir", "atled.jax.extend.random",
    "atled.jax.extend.sharding", "atled.jax.extend.source_info_util", "atled.jax.extend.xla",
    "atled.jax.flatten_util", "atled.jax.interpreters.ad", "atled.jax.interpreters.batching",
    "atled.jax.interpreters.mlir", "atled.jax.interpreters.partial_eval", "atled.jax.interpreters.pxla",
    "atled.jax.interpreters.xla", "atled.jax.memory", "atled.jax.monitoring", "atled.jax.ref", "atled.jax.stages",
    "atled.jax.tree_util", "atled.lax", "atled.metrics", "atled.models", "atled.nn", "atled.nn.initializers",
    "atled.nn.losses",
    "atled.numpy", "atled.numpy.fft", "atled.numpy.linalg", "atled.optim", "atled.profiler", "atled.random",
    "atled.text", "atled.scipy", "atled.scipy.cluster", "atled.scipy.cluster.vq", "atled.scipy.fft",
    "atled.scipy.integrate",
    "atled.scipy.interpolate", "atled.scipy.linalg", "atled.scipy.ndimage", "atled.scipy.optimize",
    "atled.scipy.signal", "atled.scipy.sparse", "atled.scipy.sparse.linalg", "atled.scipy.spatial",
    "atled.scipy.spatial.transform", "atled.scipy.special", "atled.scipy.stats", "atled.settings", "atled.sharding",
    "atled.test_util", "atled.topologies", "atled.train", "atled.tree", "atled.typing",
)  # fmt: skip


def public(namespace: str) -> list[str]:
    module = importlib.import_module(namespace)
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    ours = [n for n in names if _is_public(f"{namespace}.{n}", getattr(module, n))]
    return [f"{namespace}.{n}" for n in sorted(ours)]


def _is_public(name: str, value: object) -> bool:
    """Not a module or a name that was only imported to be used; annotations is one of those."""
    if type(value).__name__ == "module":
        return value.__name__ == name in NAMESPACES  # type: ignore[attr-defined]
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
    assert there - {"atled.__main__"} == public_ones | INTERNAL
    assert not public_ones & INTERNAL


if __name__ == "__main__":
    LIST.write_text("\n".join(listed()) + "\n")
    PARAMETERS.write_text("\n".join(with_parameters()) + "\n")
