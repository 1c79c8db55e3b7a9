"""Meshes, PartitionSpecs and shardings: plain data, without the engine.

`Placed` is an array's type and sharding in one interned object, the key of launch caches. `committed` means that the
user chose the placement; uncommitted arrays move to the devices that need them.
"""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from math import prod
from typing import Any, ClassVar

import numpy as np

from atled.core import settings, source
from atled.core.settings import Scope, scope
from atled.core.types import ArrayType

_MESSAGE_AXES = "every mesh axis splits one dimension at most"


class AxisType(enum.Enum):
    """Who decides how arrays are split along a mesh axis. In atled, the compiler always decides (`Auto`).

    A mesh with axes of other types raises: array types contain no shardings, so `Explicit` could not be checked.

    >>> import atled
    >>> atled.make_mesh((1,), ("x",), devices=atled.devices()[:1], axis_types=(AxisType.Auto,)).shape
    {'x': 1}
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


def only_auto(name: str, axis_types: Any) -> None:
    """Raise if an axis type other than `Auto` is given."""
    given = axis_types if isinstance(axis_types, (tuple, list)) else () if axis_types is None else (axis_types,)
    for kind in given:
        if kind is not AxisType.Auto:
            raise NotImplementedError(
                f"{name}: axes of type {getattr(kind, 'name', kind)} are not supported; array types contain no "
                "shardings.\n  try: leave axis_types out, and with_sharding_constraint where a sharding must hold."
            )


class Space(enum.Enum):
    """A memory: the device's, or the host memory next to it. `Any` means either, and is not accepted by `device_put`.

    Ops compute in device memory, even if their operands are in host memory.

    >>> import atled, atled.numpy as jnp
    >>> x = atled.device_put(jnp.ones(3), Space.Host)
    >>> x.sharding.memory_kind, (2 * x).sharding.memory_kind
    ('pinned_host', None)
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()


class Mesh:
    """Devices in a grid whose axes have names. Two meshes of the same devices, shape and names are one object.

    >>> import atled
    >>> mesh = Mesh(np.array(atled.devices()[:1]), ("data",))
    >>> mesh.shape["data"], mesh.size
    (1, 1)
    """

    __slots__ = ("__weakref__", "_hash", "axis_names", "devices", "flat", "shape")
    axis_names: tuple[Any, ...]
    devices: np.ndarray
    flat: tuple[Any, ...]  # the devices, in row-major order
    shape: dict[Any, int]  # the size of each axis
    _interned: ClassVar[dict[Any, Mesh]] = {}

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        only_auto("Mesh", axis_types)
        grid = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if not names and not any(grid.ravel()):  # no devices at all
            grid = np.empty((0,), dtype=object)
        elif grid.ndim != len(names):
            raise ValueError(
                f"Mesh: each axis of the grid must have a name; got a grid of shape {grid.shape} and the names {names}."
                "\n  try: np.array(devices).reshape(4, 2) with ('data', 'model')."
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh: axis names must differ; got {names}.")
        flat = tuple(grid.ravel())
        key = (flat, grid.shape, names)
        mesh = cls._interned.get(key)
        if mesh is None:
            if len(set(flat)) != len(flat):
                raise ValueError("Mesh: each device must appear once; got a device twice.")
            mesh = object.__new__(cls)
            grid.flags.writeable = False
            mesh.devices, mesh.axis_names, mesh.flat = grid, names, flat
            mesh.shape = dict(zip(names, grid.shape if names else ()))
            mesh._hash = hash(key)
            mesh = cls._interned.setdefault(key, mesh)
        return mesh

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        raise TypeError("pickle: a mesh holds devices, which exist in one process only; pickle its shape and names.")

    @property
    def size(self) -> int:
        """The number of devices."""
        return len(self.flat)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        return tuple(self.shape.values())

    @property
    def axis_types(self) -> tuple[AxisType, ...]:
        return (AxisType.Auto,) * len(self.axis_names)

    @property
    def are_all_axes_auto(self) -> bool:
        return True

    @property
    def are_all_axes_explicit(self) -> bool:
        return False

    @property
    def are_all_axes_manual(self) -> bool:
        return False

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of axis name and size."""
        return tuple(self.shape.items())

    @property
    def empty(self) -> bool:
        return not self.flat

    @property
    def device_ids(self) -> np.ndarray:
        """The device ids, in the grid's shape."""
        return np.array([d.id for d in self.flat], np.int32).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        """The devices that belong to this process."""
        return [d for d in self.flat if d.process_index == d.client.process_index()]

    def __enter__(self) -> Mesh:
        block = settings.override(mesh=self)
        block.__enter__()
        _blocks.set((*_blocks.get(), block))
        return self

    def __exit__(self, *_: Any) -> None:
        *outer, block = _blocks.get()
        _blocks.set(tuple(outer))
        block.__exit__()

    def __repr__(self) -> str:
        return f"Mesh({', '.join([f'{n!r}: {k}' for n, k in self.shape.items()])})"


_blocks: ContextVar[tuple[settings.override, ...]] = ContextVar("meshes", default=())  # of `with mesh:`, innermost last


def with_devices(mesh: Any) -> Mesh:
    """The mesh itself; for an `AbstractMesh`, a mesh of numbers instead of devices, for programs that are not run."""
    if isinstance(mesh, Mesh):
        return mesh
    return Mesh(np.arange(mesh.size).reshape(mesh.axis_sizes), mesh.axis_names)


class set_mesh:  # noqa: N801
    """Set the default mesh for `PartitionSpec`s and `shard_map`.

    Called as a statement, `set_mesh` applies to the whole process, in a `with` block to the current thread or task.

    >>> import atled
    >>> with set_mesh(make_mesh((1,), ("data",), devices=atled.devices()[:1])):
    ...     current_mesh().axis_names
    ('data',)
    """

    def __init__(self, mesh: Mesh) -> None:
        if not isinstance(mesh, Mesh):
            raise TypeError(f"set_mesh: expected a Mesh; got {type(mesh).__name__}.")
        self.mesh = mesh
        self._block = settings.override(mesh=mesh)
        self._is_said = not source.opens_block(sys._getframe(1))
        if self._is_said:  # not the context manager of a `with` statement
            self._before = Scope.mesh
            settings.change("mesh", mesh)

    def __enter__(self) -> Mesh:
        if self._is_said:  # entered later by a `with` statement: undo the process-wide change
            self._is_said = False
            settings.change("mesh", self._before)
        self._block.__enter__()
        return self.mesh

    def __exit__(self, *_: Any) -> None:
        self._block.__exit__()


def current_mesh() -> Mesh | None:
    """The current mesh, or None.

    >>> import atled
    >>> with set_mesh(atled.make_mesh((1,), ("x",), devices=atled.devices()[:1])):
    ...     print(current_mesh().shape)
    {'x': 1}
    """
    return scope().mesh


def mesh_or_current(mesh: Mesh | None, who: str) -> Mesh:
    """The given mesh, or the current one; raises if there is none."""
    chosen = mesh or current_mesh()
    if chosen is None:
        raise ValueError(f"{who}: a mesh is needed, but none is set.\n  try: mesh=mesh, or `with set_mesh(mesh):`.")
    return chosen


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec(tuple):
    """Which mesh axes split which dimensions of an array: a name, a tuple of names or None for each dimension.

    >>> PartitionSpec("data", None)
    P('data', None)
    """

    __slots__ = ()
    UNCONSTRAINED: ClassVar[Any] = _Unconstrained()  # the compiler chooses the axes of this dimension

    def __new__(cls, *parts: Any) -> PartitionSpec:
        for part in parts:
            names = part if isinstance(part, (tuple, list)) else (part,)
            if part is not None and any([isinstance(n, (int, float, np.ndarray)) for n in names]):
                raise TypeError(f"PartitionSpec: entries must be axis names, tuples of names or None; got {part!r}.")
        return super().__new__(cls, [tuple(p) if isinstance(p, list) else p for p in parts])

    def axes(self, dimension: int) -> tuple[Any, ...]:
        """The mesh axes that split a dimension, from major to minor."""
        part = self[dimension] if dimension < len(self) else None
        if part is None or part is PartitionSpec.UNCONSTRAINED:
            return ()
        return part if isinstance(part, tuple) else (part,)

    @property
    def names(self) -> tuple[Any, ...]:
        """All mesh axes that the spec names."""
        return tuple([n for d in range(len(self)) for n in self.axes(d)])

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"

    def __reduce__(self) -> Any:
        return PartitionSpec, tuple(self)


class Sharding:
    """How an array is distributed over devices.

    >>> import atled.numpy as jnp
    >>> isinstance(jnp.zeros(3).sharding, Sharding)
    True
    """

    __slots__ = ()
    memory_kind: Any = None

    @property
    def devices(self) -> tuple[Any, ...]:
        """The devices, in program order."""
        raise NotImplementedError

    @property
    def device_set(self) -> set[Any]:
        return set(self.devices)

    @property
    def num_devices(self) -> int:
        return len(self.devices)

    @property
    def is_fully_replicated(self) -> bool:
        raise NotImplementedError

    @property
    def is_fully_addressable(self) -> bool:
        return all([_is_here(d) for d in self.devices])

    @property
    def addressable_devices(self) -> set[Any]:
        return {d for d in self.devices if _is_here(d)}

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:  # read by other libraries
        return tuple([d for d in self.devices if _is_here(d)])

    def indices(self, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
        """The index of the shard that each device holds, as a tuple of slices."""
        return [tuple([slice(None)] * len(shape))] * len(self.devices)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one device's shard."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        """A dict from each device to the index of its shard."""
        return dict(zip(self.devices, self.indices(tuple(global_shape))))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
        """A dict from each device of this process to the index of its shard."""
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if _is_here(d)}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both shardings place the same shards of an `ndim`-dimensional array on the same devices."""
        if self.devices != other.devices or self.memory_kind != other.memory_kind:
            return False
        return bool(np.array_equal(tiles(self, ndim)[1], tiles(other, ndim)[1]))


def _is_here(device: Any) -> bool:
    return device.process_index == device.client.process_index()


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    >>> import atled
    >>> SingleDeviceSharding(atled.devices()[0]).shard_shape((4, 2))
    (4, 2)
    """

    __slots__ = ("device", "memory_kind")

    def __init__(self, device: Any, memory_kind: Any = None) -> None:
        self.device = device
        self.memory_kind = memory_kind

    @property
    def devices(self) -> tuple[Any, ...]:
        return (self.device,)

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def with_memory_kind(self, kind: Any) -> SingleDeviceSharding:
        """The same sharding, in another memory of the device."""
        return SingleDeviceSharding(self.device, kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SingleDeviceSharding):
            return False
        return self.device == other.device and self.memory_kind == other.memory_kind

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self.device, self.memory_kind))

    def __repr__(self) -> str:
        memory = f", memory_kind={self.memory_kind!r}" if self.memory_kind else ""
        return f"SingleDeviceSharding({self.device}{memory})"


class NamedSharding(Sharding):
    """A sharding that splits an array over a mesh by a `PartitionSpec`.

    >>> import atled
    >>> mesh = make_mesh((1,), ("data",), devices=atled.devices()[:1])
    >>> NamedSharding(mesh, PartitionSpec("data")).shard_shape((8, 4))
    (8, 4)
    """

    __slots__ = ("_hash", "_key", "memory_kind", "mesh", "spec")

    def __init__(self, mesh: Mesh, spec: PartitionSpec, *, memory_kind: Any = None) -> None:
        if not isinstance(mesh, Mesh):
            raise TypeError(f"NamedSharding: expected a Mesh first; got {type(mesh).__name__}.")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding: expected a PartitionSpec second; got {type(spec).__name__}.")
        names = spec.names
        for name in names:
            if name not in mesh.shape:
                raise ValueError(
                    f"NamedSharding: the mesh has no axis {name!r}; its axes are {', '.join(map(repr, mesh.shape))}."
                )
        if len(set(names)) != len(names):
            raise ValueError(f"NamedSharding: {_MESSAGE_AXES}; got {spec}.")
        self.mesh, self.spec, self.memory_kind = mesh, spec, memory_kind
        # P("a") and P("a", None) are equivalent, and a mesh axis of size one splits nothing
        parts = [tuple([n for n in spec.axes(d) if mesh.shape[n] > 1]) for d in range(len(spec))]
        while parts and not parts[-1]:
            parts.pop()
        self._key = (mesh, tuple(parts), memory_kind)
        self._hash = hash(self._key)

    @property
    def devices(self) -> tuple[Any, ...]:
        return self.mesh.flat

    @property
    def is_fully_replicated(self) -> bool:
        return prod([self.mesh.shape[n] for n in self.spec.names]) == 1

    def with_memory_kind(self, kind: Any) -> NamedSharding:
        """The same sharding, in another memory of the devices."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(self, **changes: Any) -> NamedSharding:
        """The same sharding with another `mesh`, `spec` or `memory_kind`."""
        given = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind, **changes}
        return NamedSharding(given.pop("mesh"), PartitionSpec(*given.pop("spec")), **given)

    def with_spec(self, spec: PartitionSpec) -> NamedSharding:
        """A sharding over the same mesh with another spec."""
        return NamedSharding(self.mesh, spec, memory_kind=self.memory_kind)

    def counts(self, ndim: int) -> list[int]:
        """The number of parts that each dimension is split into."""
        return [prod([self.mesh.shape[n] for n in self.spec.axes(d)]) for d in range(ndim)]

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        shape = tuple(global_shape)
        self.check(shape)
        return tuple([n // k for n, k in zip(shape, self.counts(len(shape)))])

    def check(self, shape: tuple[int, ...], what: str = "sharding") -> None:
        """Raise if an array of this shape cannot be split by this sharding."""
        used = len(self._key[1])
        if used > len(shape):
            raise ValueError(
                f"{what}: {self.spec} splits {used} dimensions, but an array of shape {list(shape)} has {len(shape)}."
            )
        for d, (n, k) in enumerate(zip(shape, self.counts(len(shape)))):
            if n % k:
                axes = " x ".join([f"{a!r}={self.mesh.shape[a]}" for a in self.spec.axes(d)])
                raise ValueError(
                    f"{what}: dimension {d} of shape {list(shape)} must be a multiple of {k} ({axes}); got {n}."
                    f"\n  try: pad it to {-(-n // k) * k}, or leave the dimension whole: None in {self.spec}."
                )

    def indices(self, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
        self.check(shape)
        counts, places = tiles(self, len(shape))
        sizes = [n // k for n, k in zip(shape, counts)]
        whole = [k == 1 for k in counts]
        return [
            tuple([slice(None) if w else slice(p * n, (p + 1) * n) for p, n, w in zip(row, sizes, whole)])
            for row in places.tolist()
        ]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, NamedSharding) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        memory = f", memory_kind={self.memory_kind!r}" if self.memory_kind else ""
        return f"NamedSharding({self.mesh}, {self.spec}{memory})"


@functools.lru_cache(maxsize=4096)
def tiles(sharding: Sharding, ndim: int) -> tuple[list[int], np.ndarray]:
    """The number of parts of each dimension, and the part that each device holds, as an array [device, dimension]."""
    if not isinstance(sharding, NamedSharding):
        return [1] * ndim, np.zeros((sharding.num_devices, ndim), np.int64)
    mesh, spec = sharding.mesh, sharding.spec
    where = dict(zip(mesh.axis_names, np.indices(mesh.devices.shape).reshape(len(mesh.axis_names), -1)))
    out = np.zeros((mesh.size, ndim), np.int64)
    for d in range(ndim):
        for name in spec.axes(d):
            out[:, d] = out[:, d] * mesh.shape[name] + where[name]
    return sharding.counts(ndim), out


def spec_of_tiles(mesh: Mesh, places: np.ndarray) -> PartitionSpec | None:
    """The inverse of `tiles`: the PartitionSpec that gives each device its part in `places`, or None."""
    grid = places.reshape(*mesh.devices.shape, places.shape[1])
    parts: list[Any] = []
    for d in range(places.shape[1]):
        steps = []
        for axis, name in enumerate(mesh.axis_names):
            if mesh.devices.shape[axis] > 1:
                step = int(np.take(grid[..., d], 1, axis).flat[0] - np.take(grid[..., d], 0, axis).flat[0])
                if step:
                    steps.append((step, name))
        axes = tuple([name for _, name in sorted(steps, key=lambda s: -s[0])])
        parts.append(axes if len(axes) > 1 else axes[0] if axes else None)
    try:
        sharding = NamedSharding(mesh, PartitionSpec(*parts))
    except ValueError:
        return None
    return sharding.spec if np.array_equal(tiles(sharding, places.shape[1])[1], places) else None


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None, *,
    devices: Sequence[Any] | None = None,
) -> Mesh:  # fmt: skip
    """A mesh of the first `prod(axis_shapes)` of all devices, or of the given ones, in order.

    >>> import atled
    >>> make_mesh((1, 1), ("data", "model"), devices=atled.devices()[:1])
    Mesh('data': 1, 'model': 1)
    """
    only_auto("make_mesh", axis_types)
    shape, names = tuple(axis_shapes), (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if len(shape) != len(names):
        raise ValueError(f"make_mesh: each axis needs a size and a name; got {shape} and {names}.")
    available = list(all_devices[0]()) if devices is None else list(devices)
    count = prod(shape)
    if count > len(available):
        raise ValueError(
            f"make_mesh: {' x '.join(map(str, shape))} = {count} devices are needed; there are {len(available)}."
            f"\n  try: ATLED_NUM_CPU_DEVICES={count} in the environment, for {count} virtual CPU devices."
        )
    grid = np.empty(count, dtype=object)
    grid[:] = available[:count]
    return Mesh(grid.reshape(shape), names)


all_devices: list[Any] = [lambda: ()]  # set by the engine


class Placed:
    """An array's type and placement, interned: every buffer has one, and launch caches use it as their key."""

    __slots__ = ("__weakref__", "committed", "dtype", "handler", "reach", "shape", "sharding", "type", "weak_type")
    type: ArrayType
    sharding: Any
    committed: bool
    handler: Any  # makes result arrays with this type and placement; set by the engine
    reach: int  # for a Python integer: its range class (`reach` in `engine/array.py`); otherwise 0
    _interned: ClassVar[dict[Any, Placed]] = {}

    def __new__(cls, type: ArrayType, sharding: Any, committed: bool, reach: int = 0) -> Placed:
        key = (type, sharding, committed, reach)
        placed = cls._interned.get(key)
        if placed is None:
            placed = object.__new__(cls)
            placed.type, placed.sharding, placed.committed = type, sharding, committed
            placed.shape, placed.dtype = physical(type)
            placed.weak_type = type.weak
            placed.handler, placed.reach = None, reach
            placed = cls._interned.setdefault(key, placed)
        return placed

    def __repr__(self) -> str:
        return f"Placed({self.type}, {self.sharding})"


def physical(type: ArrayType) -> tuple[tuple[int, ...], Any]:
    """The shape and dtype in memory. Random keys are stored as two words on a leading axis, float0 as boolean zeros."""
    if type.kind == "k":
        return (2, *type.shape), _WORD
    return type.shape, _BOOL if type.kind == "0" else type.dtype


def physical_sharding(sharding: Any, type: ArrayType) -> Any:
    """The sharding in memory, where arrays of random keys have one more leading axis."""
    if type.kind == "k" and isinstance(sharding, NamedSharding):
        return sharding.with_spec(PartitionSpec(None, *sharding.spec))
    return sharding


_WORD, _BOOL = np.dtype(np.uint32), np.dtype(np.bool_)


def forget() -> None:
    """Drop all cached meshes and placements, because they refer to devices."""
    for placed in Placed._interned.values():
        placed.handler = None  # breaks a reference cycle that the garbage collector cannot find
    Mesh._interned.clear()
    Placed._interned.clear()
    tiles.cache_clear()


NO_MESH = Mesh((), ())


def asked_sharding(x: Any) -> Any:
    """The sharding of an array or `ShapeDtypeStruct`, or None if it has none or one over a mesh without axes."""
    sharding = getattr(x, "sharding", None)
    return sharding if getattr(getattr(sharding, "mesh", None), "axis_names", True) else None
