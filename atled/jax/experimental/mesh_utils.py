"""Grids of devices for meshes, in the order of device ids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import errors
from atled.engine import client

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]
__dir__ = __all__.copy


# By kind of device: user functions that make the grid, or return None for the default.
device_kind_handler_dict: dict[str, Any] = {}


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """All devices, or those given, as a grid. Devices along the last axis are neighbours.

    >>> import atled
    >>> create_device_mesh((1, 1), atled.devices()[:1]).shape
    (1, 1)
    """
    device_list = list(client.devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(device_list):
        raise ValueError(
            errors.explained(
                f"create_device_mesh: a grid of {' x '.join(map(str, mesh_shape))} needs {math.prod(mesh_shape)} "
                f"devices; there are {len(device_list)}."
            )
        )
    own = device_kind_handler_dict.get(device_list[-1].device_kind)
    mesh = None if own is None else own(tuple(mesh_shape), device_list, contiguous_submeshes=contiguous_submeshes)
    if mesh is not None:
        return mesh
    grid = np.empty(len(device_list), dtype=object)
    grid[:] = device_list
    return grid.reshape(tuple(mesh_shape))


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """A grid of device groups connected by a network, `dcn_mesh_shape`, each a grid of neighbours, `mesh_shape`.

    Groups are slices, where the hardware has them, or processes. Both grids have the same number of axes; the lengths
    of the result are the products of the lengths of the two grids.

    >>> import atled
    >>> create_hybrid_device_mesh((1, 1), (1, 1), atled.devices()[:1], process_is_granule=True).shape
    (1, 1)
    """
    device_list = list(client.devices() if devices is None else devices)
    by = "process_index" if process_is_granule or not hasattr(device_list[0], "slice_index") else "slice_index"
    groups: dict[int, list[Any]] = {}
    for d in device_list:
        groups.setdefault(getattr(d, by), []).append(d)
    if len(mesh_shape) != len(dcn_mesh_shape) or math.prod(dcn_mesh_shape) != len(groups):
        raise ValueError(
            errors.explained(
                f"create_hybrid_device_mesh: {tuple(dcn_mesh_shape)} must have as many axes as {tuple(mesh_shape)}, "
                f"and {len(groups)} positions, one for each group."
            )
        )
    whole = np.empty((*dcn_mesh_shape, *mesh_shape), dtype=object)
    for at, key in zip(np.ndindex(*dcn_mesh_shape), sorted(groups), strict=True):
        whole[at] = create_device_mesh(mesh_shape, groups[key])
    axes = len(mesh_shape)
    order = [i + part * axes for i in range(axes) for part in (0, 1)]
    return whole.transpose(order).reshape([a * b for a, b in zip(dcn_mesh_shape, mesh_shape, strict=True)])
