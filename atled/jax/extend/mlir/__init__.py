"""MLIR's bindings, with the API of `jax.extend.mlir`."""

from atled.engine.mlir import ir, xla_client
from atled.jax.extend.mlir import dialects

__all__ = [
    "deserialize_portable_artifact", "dialects", "hlo_to_stablehlo", "ir", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]  # fmt: skip
__dir__ = __all__.copy

deserialize_portable_artifact = xla_client.mlir.deserialize_portable_artifact
hlo_to_stablehlo = xla_client.mlir.hlo_to_stablehlo
refine_polymorphic_shapes = xla_client.mlir.refine_polymorphic_shapes
serialize_portable_artifact = xla_client.mlir.serialize_portable_artifact
