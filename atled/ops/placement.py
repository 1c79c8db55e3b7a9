"""Identity ops that set the sharding or the memory of a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core import tree
from atled.core.array import type_of
from atled.core.op import LinearOp
from atled.core.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding, mesh_or_current
from atled.core.trace import bind
from atled.core.types import ArrayType


class ShardingConstraint(LinearOp):
    """The operand, constrained to the sharding `sharding`."""

    takes_keys = True
    sharding: NamedSharding

    @property
    def mesh(self) -> Any:
        """The mesh of the sharding."""
        return self.sharding.mesh

    def result_type(self, x: ArrayType) -> ArrayType:
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return build.constrain(x, self.sharding)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (bind(self, cotangent),)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *values), masks[0]

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        free = PartitionSpec.UNCONSTRAINED  # the partitioner may split the batch axis
        return bind(ShardingConstraint(self.sharding.with_spec(PartitionSpec(free, *self.sharding.spec))), x)


class ToMemory(LinearOp):
    """The operand in another memory of the device, such as `pinned_host`; on the CPU, which has only one, unchanged."""

    takes_keys = True
    memory: str

    def result_type(self, x: ArrayType) -> ArrayType:
        return x

    def lower(self, build: Any, x: Any) -> Any:
        if build.platform == "cpu":
            return x
        attributes = {
            "call_target_name": "annotate_device_placement",
            "has_side_effect": True,
            "backend_config": "",
            "mhlo.frontend_attributes": {"_xla_buffer_placement": self.memory},
        }
        return build.emit("stablehlo.custom_call", (x,), (x.type,), attributes)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (cotangent,)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *values), masks[0]

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


def resolved(sharding: NamedSharding | PartitionSpec, name: str) -> NamedSharding:
    """The sharding, or a PartitionSpec as a sharding over the current mesh."""
    if isinstance(sharding, PartitionSpec):
        return NamedSharding(mesh_or_current(None, name), sharding)
    return sharding


def placed(x: Any, out_sharding: NamedSharding | PartitionSpec | None, name: str) -> Any:
    """A value, constrained to `out_sharding` unless that is None or over an empty mesh."""
    if out_sharding is None or (isinstance(out_sharding, NamedSharding) and out_sharding.mesh.empty):
        return x
    if not isinstance(out_sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"{name}: out_sharding must be a NamedSharding or a PartitionSpec; got {out_sharding!r}.")
    sharding = resolved(out_sharding, name)
    sharding.check(type_of(x).shape, name)
    return bind(ShardingConstraint(sharding), x)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The pytree x with its arrays constrained to `shardings`: one sharding for all arrays, or a pytree of shardings.

    >>> import atled, atled.numpy as jnp
    >>> from atled.sharding import NamedSharding, PartitionSpec
    >>> s = NamedSharding(atled.make_mesh((1,), ("x",), devices=atled.devices()[:1]), PartitionSpec("x"))
    >>> atled.jit(lambda x: with_sharding_constraint(2 * x, s))(jnp.ones(2)).sharding.is_equivalent_to(s, 1)
    True
    """
    kinds = (NamedSharding, PartitionSpec, SingleDeviceSharding)
    way_out = "one sharding for a whole dict or list."
    is_one = lambda s: s is None or isinstance(s, kinds)  # noqa: E731
    given = tree.spread(shardings, x, is_one, "with_sharding_constraint: shardings", way_out)
    out = []
    leaves, structure = tree.flatten(x)
    for leaf, s in zip(leaves, given, strict=True):
        if isinstance(s, PartitionSpec):
            s = resolved(s, "with_sharding_constraint")
        if isinstance(s, SingleDeviceSharding) and getattr(leaf, "sharding", None) == s:
            s = None  # x is already there
        if not isinstance(s, (NamedSharding, type(None))):
            raise TypeError(
                f"with_sharding_constraint: expected a NamedSharding or a PartitionSpec; got {s!r}."
                "\n  try: device_put(x, device) outside of compiled functions."
            )
        if s is not None:
            s.check(type_of(leaf).shape, "with_sharding_constraint")
        out.append(leaf if s is None else bind(ShardingConstraint(s), leaf))
    return structure.unflatten(out)
