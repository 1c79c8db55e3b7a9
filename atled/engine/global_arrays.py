"""Global arrays made of shards: from a callback, from process-local data, or from single-device arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import check_unmasked, type_of
from atled.core.sharding import Placed, tiles
from atled.core.types import ArrayType
from atled.engine.array import DeviceArray, assemble, wrap


def make_array_from_callback(shape: Sequence[int], sharding: Any, data_callback: Any, dtype: Any = None) -> DeviceArray:
    """A global array whose shards are `data_callback(index)`; each process makes only its own shards.

    >>> import numpy as np, atled
    >>> from atled.sharding import NamedSharding, PartitionSpec
    >>> sharding = NamedSharding(atled.make_mesh((1,), ("x",), devices=atled.devices()[:1]), PartitionSpec("x"))
    >>> make_array_from_callback((4,), sharding, lambda index: np.arange(4.0, dtype="float32")[index])
    Array([0., 1., 2., 3.], dtype=float32)
    """
    dims = tuple(shape)
    part = sharding.shard_shape(dims)
    data_of: dict[str, np.ndarray] = {}
    parts = []
    for device, index in sharding.addressable_devices_indices_map(dims).items():
        if str(index) not in data_of:
            given = data_callback(index)
            check_unmasked(given)
            data = np.array(given, dtype)  # a copy that the caller cannot write to
            if data.shape != part:
                raise ValueError(
                    f"make_array_from_callback: shard {_show(index)} of an array of shape {list(dims)} must have shape "
                    f"{list(part)}; the callback returned {list(data.shape)}."
                )
            data_of[str(index)] = data
        parts.append((device, data_of[str(index)]))
    kinds = {d.dtype for d in data_of.values()}
    if len(kinds) != 1:
        raise TypeError(f"make_array_from_callback: shards must have the same dtype; got {sorted(map(str, kinds))}.")
    type = ArrayType(dims, type_of(next(iter(data_of.values()))).dtype)
    return wrap(assemble(Placed(type, sharding, True), parts))


def _show(index: tuple[slice, ...]) -> str:
    return f"[{', '.join([':' if s.start is None else f'{s.start}:{s.stop}' for s in index])}]"


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> DeviceArray:
    """A global array made of one NumPy array from each process, which holds that process's shards.

    If the global shape is not given, it is inferred from the sharding and assumes blocks of equal size in all
    processes.

    >>> import atled
    >>> whole = atled.sharding.SingleDeviceSharding(atled.devices()[0])
    >>> make_array_from_process_local_data(whole, np.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    check_unmasked(local_data)
    local = np.asarray(local_data)
    counts, places = tiles(sharding, local.ndim)
    mine = [i for i, d in enumerate(sharding.devices) if d in sharding.addressable_devices]
    dims, starts = [], []
    for axis, (size, count) in enumerate(zip(local.shape, counts)):
        tiled = sorted(set(places[mine, axis].tolist()))
        if tiled != list(range(tiled[0], tiled[0] + len(tiled))):
            raise ValueError(
                f"make_array_from_process_local_data: the shards of this process along dimension {axis} are "
                f"not contiguous in {sharding.spec}.\n  try: make_array_from_callback, which takes one "
                f"shard at a time."
            )
        whole = size * count // len(tiled) if global_shape is None else tuple(global_shape)[axis]
        expected = whole * len(tiled) // count
        if size not in (whole, expected):
            raise ValueError(
                f"make_array_from_process_local_data: dimension {axis} of this process must have {expected} elements "
                f"for the global shape {list(global_shape or ())}; got {size}."
            )
        dims.append(whole)
        starts.append(0 if size == whole else tiled[0] * whole // count)

    def part(index: tuple[slice, ...]) -> Any:
        return local[tuple([s if s.start is None else slice(s.start - b, s.stop - b) for s, b in zip(index, starts)])]

    return make_array_from_callback(dims, sharding, part)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> DeviceArray:
    """A global array assembled from one array per device, without a copy. `dtype` is the dtype of these arrays.

    >>> import atled, atled.numpy as jnp
    >>> mesh = atled.make_mesh((1,), ("x",), devices=atled.devices()[:1])
    >>> split = atled.sharding.NamedSharding(mesh, atled.sharding.PartitionSpec("x"))
    >>> make_array_from_single_device_arrays((3,), split, [jnp.array([1, 2, 3])])
    Array([1, 2, 3], dtype=int32)
    """
    dims, by_device = tuple(shape), {a.device: a for a in arrays}
    part, here = sharding.shard_shape(dims), [d for d in sharding.devices if d in sharding.addressable_devices]
    if set(by_device) != set(here) or len(arrays) != len(here):
        raise ValueError(
            "make_array_from_single_device_arrays: one array is needed for each device of this process, "
            f"{', '.join(map(str, here))}; got arrays on {', '.join([str(a.device) for a in arrays])}."
        )
    want = ArrayType(part, arrays[0].dtype if dtype is None else dtypes.canonical(dtype))
    for a in arrays:
        if (a.shape, a.dtype) != (want.shape, want.dtype):
            raise ValueError(
                f"make_array_from_single_device_arrays: each shard must be {want}; got {a.type} on {a.device}."
            )
    placed = Placed(ArrayType(dims, want.dtype), sharding, True)
    return wrap(assemble(placed, [(d, by_device[d]._buffer) for d in here]))
