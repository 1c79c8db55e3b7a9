"""The public names are those listed in `public_names.txt`: one that appears or disappears does so on purpose.

Run this file to write the list anew.
"""

from __future__ import annotations

import importlib
import pathlib

LIST = pathlib.Path(__file__).with_name("public_names.txt")
NAMESPACES = (
    "atled", "atled.ad_checkpoint", "atled.checkpoints", "atled.custom_batching", "atled.custom_derivatives",
    "atled.data", "atled.debug", "atled.distributed", "atled.dlpack", "atled.dtypes", "atled.errors",
    "atled.example_libraries.optimizers", "atled.example_libraries.stax", "atled.experimental",
    "atled.experimental.buffer_callback", "atled.experimental.checkify",
    "atled.experimental.compilation_cache.compilation_cache", "atled.experimental.compute_on",
    "atled.experimental.jet", "atled.experimental.layout", "atled.experimental.mesh_utils",
    "atled.experimental.multihost_utils", "atled.experimental.ode", "atled.experimental.pjit",
    "atled.experimental.profiler", "atled.experimental.random", "atled.experimental.rnn",
    "atled.experimental.scheduling_groups", "atled.experimental.serialize_executable",
    "atled.experimental.shard_alike", "atled.experimental.shard_map", "atled.experimental.source_mapper",
    "atled.experimental.sparse", "atled.experimental.sparse.linalg", "atled.experimental.topologies",
    "atled.experimental.xla_metadata", "atled.export", "atled.extend.backend", "atled.extend.core",
    "atled.extend.linear_util", "atled.extend.lowering", "atled.extend.mlir", "atled.extend.random",
    "atled.extend.sharding", "atled.extend.source_info_util", "atled.extend.xla", "atled.ffi", "atled.flatten_util",
    "atled.image", "atled.inspect", "atled.interpreters.ad", "atled.interpreters.batching",
    "atled.interpreters.mlir", "atled.interpreters.partial_eval", "atled.interpreters.pxla",
    "atled.interpreters.xla", "atled.lax", "atled.metrics", "atled.monitoring", "atled.nn", "atled.nn.initializers",
    "atled.nn.losses", "atled.numpy", "atled.numpy.fft", "atled.numpy.linalg", "atled.optim", "atled.profiler",
    "atled.random", "atled.ref", "atled.scipy", "atled.scipy.cluster", "atled.scipy.cluster.vq", "atled.scipy.fft",
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


if __name__ == "__main__":
    LIST.write_text("\n".join(listed()) + "\n")
