"""Device meshes, and the shardings of arrays over them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

from atled.core import tree
from atled.core.sharding import (
    NO_MESH,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    current_mesh,
    make_mesh,
    only_auto,
    set_mesh,
)
from atled.higher_order.shard_map import shard_map
from atled.ops.placement import with_sharding_constraint
from atled.staging.device_put import device_put

P = PartitionSpec


def get_mesh() -> Mesh:
    """The current mesh, or an `empty` mesh without devices if none is set. Works while tracing.

    >>> import atled
    >>> with set_mesh(make_mesh((1,), ("data",), devices=atled.devices()[:1])):
    ...     get_mesh().size
    1
    """
    return current_mesh() or NO_MESH


@dataclasses.dataclass(frozen=True)
class AbstractDevice:
    """The kind of device of an abstract mesh.

    >>> AbstractMesh((2,), ("i",), abstract_device=AbstractDevice("TPU v5e", 1, "tpu")).abstract_device.platform
    'tpu'
    """

    device_kind: str
    num_cores: int | None
    platform: str


class AbstractMesh:
    """The names and sizes of a mesh's axes, without devices.

    >>> mesh = AbstractMesh((4, 2), ("data", "model"))
    >>> mesh.shape["model"], mesh.size
    (2, 8)
    """

    def __init__(
        self, axis_sizes: Any, axis_names: Any, axis_types: Any = None, *, abstract_device: AbstractDevice | None = None
    ) -> None:
        self.abstract_device = abstract_device
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(f"AbstractMesh: each axis must have a name; got {axis_sizes} and {axis_names}.")
        only_auto("AbstractMesh", axis_types)
        self.axis_types = (AxisType.Auto,) * len(self.axis_names)

    @property
    def shape(self) -> dict[Any, int]:
        """The size of each axis."""
        return dict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """The names and sizes of the axes, as pairs."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """The number of devices of a mesh with these axes."""
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether the mesh has no axes."""
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key == other._key

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.shape_tuple, self.axis_types, self.abstract_device

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        axes = ", ".join([f"{name!r}: {size}" for name, size in self.shape_tuple])
        return f"AbstractMesh({axes})"


get_abstract_mesh = get_mesh  # an alias: the current mesh also serves as the abstract mesh


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """A sharding on a single device.

    >>> import atled
    >>> make_single_device_sharding(atled.devices()[0]).num_devices
    1
    """
    if memory_kind is not None:
        raise NotImplementedError(f"make_single_device_sharding: memory_kind must be None; got {memory_kind!r}.")
    return SingleDeviceSharding(device)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Reshard a pytree of arrays, eagerly or in a compiled program.

    >>> import atled, atled.numpy as jnp
    >>> with set_mesh(make_mesh((1,), ("data",), devices=atled.devices()[:1])):
    ...     reshard(jnp.arange(4), P("data")).sharding.spec
    P('data')
    """
    return device_put(xs, out_shardings)


def auto_axes(f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """A function that calls `f` and reshards its result. Inside, the compiler chooses shardings, as everywhere in
    atled.

    >>> import atled, atled.numpy as jnp
    >>> with set_mesh(make_mesh((1,), ("data",), devices=atled.devices()[:1])):
    ...     auto_axes(lambda x: x * 2, out_sharding=P("data"))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @functools.wraps(f)
    def call(*args: Any, out_sharding: Any = out_sharding, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        if out_sharding is None or not tree.leaves(out):
            return out
        return device_put(out, out_sharding)

    return call


def explicit_axes(f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """A function that reshards its arguments and calls `f`. Inside, the compiler chooses shardings, as everywhere in
    atled.

    >>> import atled, atled.numpy as jnp
    >>> with set_mesh(make_mesh((1,), ("data",), devices=atled.devices()[:1])):
    ...     explicit_axes(lambda x: x * 2, in_sharding=P("data"))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        where = kwargs.pop("in_sharding", None) if in_sharding is None else in_sharding
        if where is None:
            raise TypeError("explicit_axes: in_sharding, the sharding of the arguments, is required.")
        return f(*device_put(args, where), **kwargs)

    return call


def smap(f: Callable[..., Any] | None = None, /, *, in_axes: Any = ..., out_axes: Any, axis_name: Any) -> Any:
    """`shard_map` over one axis of the current mesh; `in_axes` and `out_axes` are the array axes to split, or None.

    >>> import atled, atled.numpy as jnp
    >>> with set_mesh(make_mesh((1,), ("x",), devices=atled.devices()[:1])):
    ...     smap(lambda v: v * 2, in_axes=0, out_axes=0, axis_name="x")(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (list, tuple)):
        raise TypeError(f"smap: axis_name must be one mesh axis; got {axis_name}.")
    if in_axes is ...:
        raise TypeError(
            "smap: in_axes, the axes of the arguments to split, is required, because types have no shardings."
        )

    def spec(axis: Any) -> PartitionSpec:
        if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool) or axis < 0):
            raise TypeError(f"smap: an axis must be None or a non-negative number; got {axis!r}.")
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    ins, outs = (tree.map(spec, axes, is_leaf=lambda x: x is None) for axes in (in_axes, out_axes))
    return shard_map(f, in_specs=ins, out_specs=outs, axis_names={axis_name})


__all__ = [
    "AbstractMesh", "AxisType", "Mesh", "NamedSharding", "P", "PartitionSpec", "Sharding", "SingleDeviceSharding",
    "auto_axes", "current_mesh", "explicit_axes", "get_abstract_mesh", "get_mesh", "make_mesh",
    "make_single_device_sharding", "reshard", "set_mesh", "smap", "with_sharding_constraint",
]  # fmt: skip
__dir__ = __all__.copy
