"""Arrays of devices for meshes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import errors
from atled.engine import client

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]
__dir__ = __all__.copy


# By device kind: user functions that return the array of devices, or None for the default.
device_kind_handler_dict: dict[str, Any] = {}


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """The given devices, or all, as an array of shape `mesh_shape`, in row-major order.

    >>> import atled
    >>> create_device_mesh((1, 1), atled.devices()[:1]).shape
    (1, 1)
    """
    device_list = list(client.devices() if devices is None else devices)
    if math.prod(mesh_shape) != len(device_list):
        raise ValueError(
            errors.explained(
                f"create_device_mesh: a mesh of {' x '.join(map(str, mesh_shape))} needs {math.prod(mesh_shape)} "
                f"devices; got {len(device_list)}."
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
    """An array of devices from `dcn_mesh_shape` groups, connected by a network, of `mesh_shape` devices each.

    A group is a slice, if the hardware has slices, or a process. Both shapes have the same number of axes; the result's
    shape is their elementwise product.

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
                f"and {len(groups)} elements, one for each group of devices."
            )
        )
    whole = np.empty((*dcn_mesh_shape, *mesh_shape), dtype=object)
    for at, key in zip(np.ndindex(*dcn_mesh_shape), sorted(groups), strict=True):
        whole[at] = create_device_mesh(mesh_shape, groups[key])
    axes = len(mesh_shape)
    order = [i + part * axes for i in range(axes) for part in (0, 1)]
    return whole.transpose(order).reshape([a * b for a, b in zip(dcn_mesh_shape, mesh_shape, strict=True)])
