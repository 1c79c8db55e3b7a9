"""Moving trees of arrays between host and devices, and waiting for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import tree
from atled.core.array import Array, describe, type_of
from atled.core.sharding import SingleDeviceSharding
from atled.core.trace import Tracer
from atled.engine import array as _engine
from atled.engine import client
from atled.engine.array import DeviceArray


def device_put(x: Any, device: Any = None) -> Any:
    """A tree of arrays on a device; NumPy arrays and numbers become arrays.

    >>> import numpy as np
    >>> device_put({"w": np.ones(2, "float32")})["w"]
    Array([1., 1.], dtype=float32)
    """
    target = device.device if isinstance(device, SingleDeviceSharding) else device
    if isinstance(target, str):
        target = client.devices(target)[0]

    def one(leaf: Any) -> Any:
        if isinstance(leaf, Tracer):
            return leaf
        try:
            type_of(leaf)
        except TypeError:
            raise TypeError(f"device_put: the leaves must be arrays or numbers; got {describe(leaf)}.") from None
        if isinstance(leaf, DeviceArray):
            return leaf if target is None else _engine.device_put(leaf, target)
        return _engine.to_device(leaf, device=target)

    return tree.map(one, x)


def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy arrays."""
    return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Wait until every array of a tree is computed; raises if one of them failed."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x
