"""The placement of a program, on a device or over a mesh (`MeshPlacement`), and its conversion to engine objects."""

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
    """The placement of a program over a mesh: the shardings of its inputs and outputs."""

    mesh: Mesh
    ins: tuple[NamedSharding, ...]
    outs: tuple[NamedSharding | None, ...]  # None: the compiler chooses the sharding


Where = Any  # a device, or a `MeshPlacement`


def devices_of(where: Where) -> tuple[Any, ...]:
    """The devices that a program runs on."""
    return where.mesh.flat if isinstance(where, MeshPlacement) else (where,)


@functools.cache
def layout(sharding: Any, ndim: int) -> Any:
    """A sharding of `ndim`-dimensional arrays as the engine's sharding object."""
    return _jax.GSPMDSharding(device_list(sharding.devices), tiling(sharding, ndim).to_proto(), sharding.memory_kind)


def tiling(sharding: Any, ndim: int) -> Any:
    """A sharding of `ndim`-dimensional arrays as the compiler's `HloSharding`."""
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
    """The sharding that the compiler chose for an array, or None if no PartitionSpec can express it."""
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
    """An `__import__` that hides jax from engine functions that would import it."""
    if name.partition(".")[0] == "jax":
        raise ImportError(name)
    return __import__(name, *rest)


# The engine imports with the `__import__` of its caller's builtins, so `parts_of` has its own builtins.
_builtins = {**vars(builtins), "__import__": _without_jax}
_parts_of = lambda buffer: buffer._arrays  # noqa: E731
parts_of: Any = types.FunctionType(_parts_of.__code__, {"__builtins__": _builtins})  # one buffer per device


@functools.cache
def on_device(device: Any) -> SingleDeviceSharding:
    """The sharding of arrays on one device; the same object for equal devices."""
    return SingleDeviceSharding(device)


def layout_of(placed: Placed) -> Any:
    """The engine's sharding object for an array as stored: a random key has uint32 words along an extra axis."""
    return layout(physical_sharding(placed.sharding, placed.type), len(placed.shape))


def description(where: Where) -> str:
    """A placement as text for cache keys, equal in every process."""
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
