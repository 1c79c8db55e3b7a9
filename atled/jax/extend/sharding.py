"""XLA's representations of shardings, with the API of `jax.extend.sharding`."""

from __future__ import annotations

from typing import Any

from atled.engine.mlir import hlo

__all__ = [
    "get_hlo_sharding_from_serialized_proto", "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]  # fmt: skip
__dir__ = __all__.copy


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """A sharding as XLA's protocol buffer, from its bytes.

    >>> get_op_sharding_from_serialized_proto(b"").tile_assignment_dimensions
    []
    """
    proto = hlo.OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """A sharding as XLA's `HloSharding`, from its bytes.

    >>> get_hlo_sharding_from_serialized_proto(b"")
    {replicated}
    """
    return hlo.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of an `HloSharding`.

    >>> get_serialized_proto_from_hlo_sharding(get_hlo_sharding_from_serialized_proto(b""))
    b''
    """
    return sharding.to_proto().SerializeToString()
