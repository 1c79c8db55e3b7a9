"""Moving trees of arrays between host and devices, and waiting for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import tree
from atled.core.array import Array, describe, type_of
from atled.core.sharding import NamedSharding, PartitionSpec, Sharding, Space, mesh_or_current
from atled.core.trace import Tracer, bind
from atled.engine import array as _engine
from atled.engine import client, placement
from atled.engine.array import DeviceArray
from atled.engine.execution_errors import check_there as _check_there
from atled.ops.placement import ToMemory, with_sharding_constraint


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Copy a tree of arrays to a device, or split it over a mesh; NumPy arrays and numbers become arrays.

    `device` may be a device, a platform's name, a sharding, a memory (`memory.Space`), a `Format`, or a tree of these
    that is a prefix of `x`. JAX's `src`, `donate` and `may_alias` have no effect: arrays are immutable and share memory
    where possible.

    >>> import numpy as np
    >>> device_put({"w": np.ones(2, "float32")})["w"]
    Array([1., 1.], dtype=float32)
    """
    leaves, structure = tree.flatten(x)
    if _is_place(device):
        return structure.unflatten([_put(leaf, device) for leaf in leaves])
    targets = tree.spread(device, x, _is_place, "device_put: device", "one device for a whole dict or list.")
    return structure.unflatten([_put(leaf, target) for leaf, target in zip(leaves, targets, strict=True)])


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, PartitionSpec, Space, str)) or hasattr(x, "client")


def _put(leaf: Any, target: Any) -> Any:
    target = client.devices(target)[0] if isinstance(target, str) else target
    if isinstance(target, PartitionSpec):
        target = NamedSharding(mesh_or_current(None, "device_put"), target)
    if isinstance(target, Space):
        return _put_into(leaf, target)
    if hasattr(target, "sharding_for"):  # a Format
        target = target.sharding_for(np.shape(leaf), "device_put")
    if target is not None and not isinstance(target, Sharding) and not hasattr(target, "client"):
        raise TypeError(
            "device_put: device must be a device, a platform's name, a sharding, a PartitionSpec, a memory or a Format;"
            f" got {describe(target)}."
        )
    if isinstance(leaf, Tracer):
        return with_sharding_constraint(leaf, target) if isinstance(target, NamedSharding) else leaf
    try:
        t = type_of(leaf)
    except TypeError:
        raise TypeError(f"device_put: the leaves must be arrays or numbers; got {describe(leaf)}.") from None
    if isinstance(target, NamedSharding):
        target.check(t.shape, "device_put")
    if isinstance(leaf, DeviceArray):
        _check_there(leaf._buffer)
        return leaf if target is None else _engine.device_put(leaf, target)
    return _engine.to_device(leaf, device=target)


def _put_into(leaf: Any, space: Space) -> Any:
    """An array in another memory of its devices."""
    if space is Space.Any:
        raise ValueError("device_put: the memory must be Space.Device or Space.Host; got Space.Any.")
    if isinstance(leaf, Tracer):
        return bind(ToMemory("device" if space is Space.Device else "pinned_host"), leaf)
    now = leaf.sharding if isinstance(leaf, DeviceArray) else placement.on_device(client.default_device())
    return _put(leaf, now.with_memory_kind(None if space is Space.Device else "pinned_host"))


def device_get(x: Any) -> Any:
    """Copy a tree of arrays to NumPy arrays. Random keys and tracers, which NumPy cannot represent, are unchanged.

    >>> import atled.numpy as jnp
    >>> device_get({"a": jnp.array([1, 2])})
    {'a': array([1, 2], dtype=int32)}
    """
    return tree.map(_on_host, x)


def _on_host(leaf: Any) -> Any:
    if not isinstance(leaf, Array) or isinstance(leaf, Tracer) or leaf.type.kind == "k":
        return leaf
    return np.asarray(leaf)


def block_until_ready(x: Any) -> Any:
    """Wait until every array of a tree is computed, and return the tree; raises if a computation failed.

    >>> import atled.numpy as jnp
    >>> block_until_ready({"a": jnp.array([1, 2]) + 1})
    {'a': Array([2, 3], dtype=int32)}
    """
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x
