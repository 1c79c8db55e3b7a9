"""Communication between processes: broadcast, all-gather, and consistency checks."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from atled.core import errors, tree
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec
from atled.engine import client
from atled.engine.array import shards
from atled.engine.global_arrays import make_array_from_process_local_data
from atled.staging.jit import jit

__all__ = [
    "assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array", "host_local_array_to_global_array",
    "process_allgather", "reached_preemption_sync_point", "sync_global_devices",
]  # fmt: skip
__dir__ = __all__.copy


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The arrays of all processes, all-gathered as NumPy arrays: stacked along a new axis, or concatenated (`tiled`).

    An array that is sharded over processes is returned as one array with its global shape.

    >>> process_allgather(np.arange(2))
    array([[0, 1]])
    >>> process_allgather(np.arange(2), tiled=True)
    array([0, 1])
    """
    return tree.map(lambda x: _gathered(x, tiled), in_tree)


def _gathered(x: Any, tiled: bool) -> np.ndarray:
    if not getattr(x, "is_fully_addressable", True):
        whole = jit(lambda x: x, out_shardings=NamedSharding(x.sharding.mesh, PartitionSpec()))(x)
        return np.asarray(shards(whole)[0].data)
    own = np.asarray(x)
    if client.process_count() > 1:
        firsts = {d.process_index: d for d in reversed(client.devices())}
        mesh = Mesh(np.array([firsts[i] for i in sorted(firsts)], dtype=object), ("processes",))
        parts = make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("processes")), own[None])
        whole = jit(lambda x: x, out_shardings=NamedSharding(mesh, PartitionSpec()))(parts)
        stacked = np.asarray(shards(whole)[0].data)
    else:
        stacked = own[None]
    if not tiled:
        return stacked
    if not own.ndim:
        raise ValueError(errors.explained("process_allgather: scalars cannot be concatenated.", "tiled=False."))
    return np.concatenate(list(stacked))


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """A pytree with the values of one process, by default the first, in all processes.

    >>> int(broadcast_one_to_all(3))
    3
    """
    source = client.process_index() == 0 if is_source is None else bool(is_source)
    sources = np.flatnonzero(_gathered(np.asarray(source), False))
    if len(sources) != 1:
        raise ValueError(errors.explained(f"broadcast_one_to_all: one process must be the source; got {len(sources)}."))
    return tree.map(lambda x: x[sources[0]], process_allgather(in_tree))


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise if a pytree does not have the same values in all processes.

    >>> assert_equal({"steps": 3})
    """
    for path, stacked in tree.leaves_with_path(process_allgather(in_tree)):
        if not all([np.array_equal(stacked[0], one, equal_nan=stacked.dtype.kind in "fc") for one in stacked[1:]]):
            values = ", ".join([str(one) for one in stacked])[:300]
            text = f"{fail_message}: " if fail_message else ""
            raise AssertionError(f"{text}processes differ at {tree.keystr(path) or 'the value'}: {values}.")


def sync_global_devices(name: str) -> None:
    """Wait for all processes; raises if they pass different names.

    >>> sync_global_devices("start")
    """
    assert_equal(np.uint32(zlib.crc32(name.encode())), f"sync_global_devices({name!r})")


_stopping: list[Any] = []  # the active handler of SIGTERM, if any


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes should save after this step, because one of them received SIGTERM (preemption).

    All processes must call it in each step with the same `step_id`; all get True for the same step. From the first call
    until it returns True, the process handles SIGTERM instead of ending.

    >>> import os, signal
    >>> before = reached_preemption_sync_point(1)
    >>> os.kill(os.getpid(), signal.SIGTERM)
    >>> before, reached_preemption_sync_point(2)
    (False, True)
    """
    from atled.train.stop_signals import Stopping

    if not _stopping:
        _stopping.append(Stopping(catches_ctrl_c=False).__enter__())
    if not _stopping[0].decided(int(step_id)):
        return False
    _stopping.pop().__exit__()
    return True


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Global arrays from process-local parts, sharded over the mesh according to `pspecs`.

    >>> import atled
    >>> mesh = atled.make_mesh((1,), ("x",), devices=atled.devices()[:1])
    >>> host_local_array_to_global_array(np.arange(2, dtype="int32"), mesh, PartitionSpec("x"))
    Array([0, 1], dtype=int32)
    """
    return _mapped(
        local_inputs,
        pspecs,
        lambda x, spec: make_array_from_process_local_data(NamedSharding(global_mesh, spec), np.asarray(x)),
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The process-local parts of global arrays, as NumPy arrays.

    >>> import atled
    >>> mesh = atled.make_mesh((1,), ("x",), devices=atled.devices()[:1])
    >>> global_array_to_host_local_array(atled.numpy.arange(2), mesh, PartitionSpec("x"))
    array([0, 1], dtype=int32)
    """

    def local(x: Any, spec: PartitionSpec) -> np.ndarray:
        if isinstance(x, np.ndarray):
            return x
        parts = [(part.index, part.data) for part in shards(x)]
        low = [min([(s[d].start or 0) for s, _ in parts]) for d in range(x.ndim)]
        high = [max([x.shape[d] if s[d].stop is None else s[d].stop for s, _ in parts]) for d in range(x.ndim)]
        out = np.empty([b - a for a, b in zip(low, high, strict=True)], x.dtype)
        for index, part in parts:
            at = tuple([
                slice((s.start or 0) - a, (n if s.stop is None else s.stop) - a)
                for s, a, n in zip(index, low, x.shape, strict=True)
            ])  # fmt: skip
            out[at] = np.asarray(part)
        return out

    return _mapped(global_inputs, pspecs, local)


def _mapped(values: Any, specs: Any, f: Any) -> Any:
    """Apply a function to each leaf and its spec; `specs` is a prefix of the pytree."""
    is_spec = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    flat, prefix = tree.flatten(specs, is_leaf=is_spec)
    leaves, structure = tree.flatten(values)
    leaf_specs = [
        s or PartitionSpec()
        for s, part in zip(flat, prefix.flatten_up_to(values), strict=True)
        for _ in tree.leaves(part)
    ]
    return structure.unflatten([f(x, s) for x, s in zip(leaves, leaf_specs, strict=True)])
