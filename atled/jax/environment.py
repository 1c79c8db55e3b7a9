"""Information about live arrays, processes and versions."""

from __future__ import annotations

import gc
import platform as machine
import sys
from typing import Any

import numpy as np

import atled
from atled.core import tree
from atled.engine import client
from atled.engine.array import DeviceArray


def live_arrays(platform: str | None = None) -> list[Any]:
    """All live arrays of a platform. Slow: scans all objects that the garbage collector tracks.

    >>> import atled.numpy as jnp
    >>> x = jnp.ones(3)
    >>> any(y is x for y in live_arrays())
    True
    """
    backend = platform or client.default_backend()
    arrays = [x for x in gc.get_objects() if type(x) is DeviceArray and not x.is_deleted()]
    return [x for x in arrays if next(iter(x.devices())).platform == backend]


def copy_to_host_async(x: Any) -> Any:
    """Start copying the arrays of a pytree to the host; returns the pytree.

    >>> import atled.numpy as jnp
    >>> copy_to_host_async([jnp.float32(1)])
    [Array(1., dtype=float32)]
    """
    for leaf in tree.leaves(x):
        if hasattr(leaf, "copy_to_host_async"):
            leaf.copy_to_host_async()
    return x


def process_indices(backend: str | None = None) -> list[int]:
    """The indices of all processes.

    >>> process_indices()
    [0]
    """
    return sorted({d.process_index for d in client.devices(backend)})


def print_environment_info(return_string: bool = False) -> str | None:
    """Print, or return as a string, versions and devices for a bug report.

    >>> "atled" in print_environment_info(return_string=True)
    True
    """
    devices = client.devices()
    rows = {
        "atled": atled.__version__, "jaxlib": client.engine_version(), "numpy": np.__version__, "python": sys.version,
        "devices": f"{len(devices)} of {devices[0].device_kind}", "processes": client.process_count(),
        "platform": machine.platform(),
    }  # fmt: skip
    text = "\n".join([f"{name}: {value}" for name, value in rows.items()])
    if return_string:
        return text
    print(text)
    return None
