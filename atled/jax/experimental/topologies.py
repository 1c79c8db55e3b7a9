"""Topologies to compile for, with the API of `jax.experimental.topologies`. See `atled.topologies`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled import topologies
from atled.core.sharding import Mesh
from atled.engine import client
from atled.engine.client import Device
from atled.jax.experimental.mesh_utils import create_device_mesh

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]
__dir__ = __all__.copy


class TopologyDescription:
    """The devices of a topology, in `devices`.

    >>> get_attached_topology().devices[0].platform
    'cpu'
    """

    def __init__(self, devices: list[Any]) -> None:
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The topology of the devices attached to this machine.

    >>> import atled
    >>> get_attached_topology().devices == atled.devices()
    True
    """
    return TopologyDescription(client.devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """A topology by its name: `v5p:4x4x4` of the platform `tpu`, `h100 1x4x8` of `cuda`.

    Raises:
        ValueError: if there is no topology of that name.

    >>> try:
    ...     get_topology_desc("v5p:3x", platform="tpu")
    ... except ValueError as error:
    ...     print(error)
    topologies.get: expected a name such as 'tpu v5p:8x8x16' or 'cuda h100 1x32x8'; got 'tpu v5p:3x'.
    """
    return TopologyDescription(list(topologies.get(f"{platform or 'tpu'} {topology_name}", **kwargs).devices))


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of the devices of a topology.

    >>> import atled
    >>> make_mesh(TopologyDescription(atled.devices()[:1]), (1,), ("x",)).shape["x"]
    1
    """
    devices = create_device_mesh(mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes)
    return Mesh(devices, axis_names)
