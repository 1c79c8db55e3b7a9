"""Meshes of devices, and how arrays are split over them."""

from atled.core.sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    current_mesh,
    make_mesh,
    set_mesh,
)
from atled.ops.placing import with_sharding_constraint

P = PartitionSpec

__all__ = [
    "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding", "current_mesh", "make_mesh",
    "set_mesh", "with_sharding_constraint",
]  # fmt: skip
