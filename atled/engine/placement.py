"""Where a program runs: on a device, or over a mesh (`MeshPlacement`), in the engine's classes and in ours."""

from __future__ import annotations

import builtins
import functools
import types
from math import prod
from typing import Any, NamedTuple

import jaxlib._hlo as _hlo
import jaxlib._jax as _jax
import numpy as np

from atled.core import sharding
from atled.core.sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    Placed,
    SingleDeviceSharding,
    physical_sharding,
    spec_of_tiles,
    tiles,
)
from atled.engine import client


class MeshPlacement(NamedTuple):
    """The placement of a program over a mesh: the shardings of its inputs and outputs, None if the compiler chooses."""

    mesh: Mesh
    ins: tuple[NamedSharding, ...]
    outs: tuple[NamedSharding | None, ...]


Where = Any  # a device, or a `MeshPlacement`


def devices_of(where: Where) -> tuple[Any, ...]:
    """The devices that a program runs on."""
    return where.mesh.flat if isinstance(where, MeshPlacement) else (where,)


@functools.cache
def layout(sharding: Any, ndim: int) -> Any:
    """The engine's sharding object for `ndim`-dimensional arrays."""
    return _jax.GSPMDSharding(device_list(sharding.devices), tiling(sharding, ndim).to_proto(), sharding.memory_kind)


def tiling(sharding: Any, ndim: int) -> Any:
    """The compiler's `HloSharding` object."""
    counts, _ = tiles(sharding, ndim)
    if prod(counts) == 1:
        return _hlo.HloSharding.replicate()
    mesh, spec = sharding.mesh, sharding.spec
    order = [mesh.axis_names.index(n) for d in range(ndim) for n in spec.axes(d)]
    rest = [a for a in range(len(mesh.axis_names)) if a not in order]
    copies = mesh.size // prod(counts)
    dims = [*counts, copies] if copies > 1 else counts
    kinds = [_hlo.OpSharding_Type.REPLICATED] if copies > 1 else []
    return _hlo.HloSharding.iota_tile(dims, list(mesh.devices.shape), [*order, *rest], kinds)


def sharding_of_tiling(proto: Any, mesh: Mesh, shape: tuple[int, ...]) -> NamedSharding | None:
    """The sharding that the compiler chose for an array, as a PartitionSpec; None if no spec can express it."""
    hlo_sharding = _hlo.HloSharding.from_proto(proto)
    if hlo_sharding.is_replicated() or mesh.size == 1:
        return NamedSharding(mesh, PartitionSpec())
    if not hlo_sharding.is_tiled():
        return None
    dims = list(hlo_sharding.tile_assignment_dimensions())
    ids = np.array(list(hlo_sharding.tile_assignment_devices())).reshape(dims)
    places = np.zeros((mesh.size, len(dims)), np.int64)
    for place in np.ndindex(*dims):
        places[ids[place]] = place
    if any([n % k for n, k in zip(shape, dims)]):
        return None
    spec = spec_of_tiles(mesh, places[:, : len(shape)])
    return None if spec is None else NamedSharding(mesh, spec)


@functools.cache
def device_list(devices: tuple[Any, ...]) -> Any:
    """The engine's device list object."""
    return _jax.DeviceList(devices)


def _without_jax(name: str, *rest: Any) -> Any:
    """An `import` that hides jax from engine functions that optionally import it."""
    if name.partition(".")[0] == "jax":
        raise ImportError(name)
    return __import__(name, *rest)


# The engine uses `__import__` of its caller's builtins, so this function has its own builtins.
_builtins = {**vars(builtins), "__import__": _without_jax}
_parts_of = lambda buffer: buffer._arrays  # noqa: E731
parts_of: Any = types.FunctionType(_parts_of.__code__, {"__builtins__": _builtins})  # one buffer per device


@functools.cache
def on_device(device: Any) -> SingleDeviceSharding:
    """The sharding of arrays that are on one device; one object per device."""
    return SingleDeviceSharding(device)


def layout_of(placed: Placed) -> Any:
    """The engine's sharding object for the stored form of an array."""
    return layout(physical_sharding(placed.sharding, placed.type), len(placed.shape))


def description(where: Where) -> str:
    """A placement as text, equal in every process: a part of cache keys."""
    if not isinstance(where, MeshPlacement):
        return str(where.id)
    places = [(d.id, d.process_index) for d in where.mesh.flat]
    meshes = {s.mesh: None for s in (*where.ins, *where.outs) if s is not None}
    return f"{places}{where.mesh}{list(meshes)}{where.ins}{where.outs}"


def _reset() -> None:
    for memo in (layout, device_list, on_device):
        memo.cache_clear()
    sharding.forget()


client.on_reset.append(_reset)
