"""`DeviceArray`, an array in a buffer on a device, and transfers between host and devices.

An array holds its buffer and its `Placed`: type, sharding, and whether the user chose the device. Writable host memory
is always copied. Reading waits for the computation; if it failed, the error names the line that launched it.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import weakref
from collections.abc import Iterable
from typing import Any

import jaxlib._jax as _jax
import numpy as np

from atled.core import dtypes, errors, settings
from atled.core.array import Array, type_of
from atled.core.cache_keys import exact
from atled.core.program import Program, Var
from atled.core.settings import on_global_change, scope
from atled.core.sharding import NamedSharding, PartitionSpec, Placed, Sharding, SingleDeviceSharding, tiles
from atled.core.types import ArrayType
from atled.engine import client, executable, jaxlib_versions, placement
from atled.engine.execution_errors import check_there, failed
from atled.engine.subbyte_dtypes import unpacked, unpackers


class DeviceArray(Array):
    """An array on a device."""

    __slots__ = ("__weakref__", "_buffer", "_placed", "_used")
    _buffer: Any
    _used: str  # where a random key was first used
    _placed: Placed  # equal to `_buffer.aval`, which takes five times as long to read

    @property
    def type(self) -> ArrayType:  # type: ignore[override]
        return self._placed.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self._placed.type.shape

    @property
    def dtype(self) -> Any:
        return self._placed.type.dtype

    @property
    def sharding(self) -> Any:
        """The sharding: which device holds which shard."""
        return self._placed.sharding

    @property
    def device(self) -> Any:
        """The device that holds the array, or its sharding if there are several."""
        sharding = self.sharding
        return sharding.device if isinstance(sharding, SingleDeviceSharding) else sharding

    @property
    def committed(self) -> bool:
        """Whether the user chose the device; an uncommitted array moves to the device of the program that takes it."""
        return self._placed.committed

    def devices(self) -> set[Any]:
        """The devices that hold a shard of the array."""
        return self.sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        return self.sharding.is_fully_replicated

    def block_until_ready(self) -> DeviceArray:
        """Wait until the value is computed; raises if its computation failed."""
        if suspects:
            accuse(self)
        try:
            if hasattr(self._buffer, "mark"):
                shards(self)
            self._buffer.block_until_ready()
        except jaxlib_versions.EngineError as error:
            raise failed(self._buffer, error) from None
        return self

    def _with_weakness(self, weak: bool) -> DeviceArray:
        """The same buffer with or without a weak type."""
        t, copy = self.type, DeviceArray()
        copy._buffer = self._buffer
        copy._placed = Placed(ArrayType(t.shape, t.dtype, weak), self.sharding, self.committed)
        if id(self) in suspects:
            suspect(copy, suspects[id(self)][1])
        return copy

    def is_ready(self) -> bool:
        """Whether the value is already computed."""
        if self._buffer.is_deleted():  # the engine's `is_ready` would abort the process
            raise RuntimeError(errors.explained(f"is_ready: {self.type} was deleted or donated."))
        return self._buffer.is_ready()

    def is_deleted(self) -> bool:
        """Whether the buffer was donated or deleted."""
        return self._buffer.is_deleted()

    def unsafe_buffer_pointer(self) -> int:
        """The address of the array in host memory. Avoids the engine's method of this name, which imports jax."""
        return to_numpy(self._buffer).ctypes.data

    def delete(self) -> None:
        """Free the memory now."""
        self._buffer.delete()

    @property
    def addressable_shards(self) -> list[Shard]:
        """The shards of the array on devices of this process."""
        return shards(self)

    @property
    def global_shards(self) -> list[Shard]:
        """All shards of the array; shards of other processes have no data."""
        here = {s.device: s for s in shards(self)}
        sharding = self.sharding
        pieces = [here.get(d) or Shard(d, i, 0, None) for d, i in sharding.devices_indices_map(self.shape).items()]
        return pieces

    def addressable_data(self, index: int) -> DeviceArray:
        """The data of one of this process's shards, by index."""
        return shards(self)[index].data

    def copy_to_host_async(self) -> None:
        """Do nothing: reading the array copies its values. Exists for compatibility with JAX."""

    def _on_host(self) -> np.ndarray:
        return to_numpy(self._buffer)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if suspects:
            accuse(self)
        host = to_numpy(self._buffer)
        if dtype is not None and np.dtype(dtype) != host.dtype:
            if copy is False:
                raise ValueError(f"numpy.asarray: {self.type} cannot be converted to {dtype} without a copy.")
            return host.astype(dtype)
        return host.copy() if copy else host

    def __buffer__(self, flags: int) -> memoryview:  # called by `memoryview` from Python 3.12 on
        host = self.__array__()
        try:
            return memoryview(host)  # pyright: ignore[reportArgumentType]
        except ValueError:
            raise BufferError(
                f"memoryview: Python's buffer protocol does not support {self.dtype.name}; got {self.type}."
                "\n  try: memoryview(numpy.asarray(x).view('uint8')) for the bytes."
            ) from None

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        self.block_until_ready()
        buffer = self._buffer
        if copy:
            buffer = put(self.__array__(copy=True), self._placed)
        return _jax.buffer_to_dlpack_managed_tensor(buffer)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = next(iter(self.devices()))
        return {"cpu": 1, "cuda": 2, "gpu": 2, "rocm": 10}.get(device.platform, 1), device.local_hardware_id or 0

    def __reduce__(self) -> Any:
        if self.type.kind == "k":
            return _restore_keys, (_words(device_put(self, client.default_device())._buffer).copy(),)
        return _restore, (self.__array__(copy=True), self.type.weak)

    def __copy__(self) -> DeviceArray:
        return self

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return self

    def item(self, *index: int) -> Any:
        """The value of one element as a Python number."""
        return self.__array__().item(*index)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.__array__().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"bool: the truth value of {self.type} is ambiguous; use .any() or .all(), or numpy.where to choose."
            )
        return bool(self.item())

    def _scalar(self, what: str) -> Any:
        if self.ndim:
            raise TypeError(f"{what}: only 0-d arrays can be converted to Python numbers; got {self.type}.")
        return self.__array__().item()

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.type.kind not in "iu":
            raise TypeError(f"index: only integer arrays can be used as an index; got {self.type}.")
        return self._scalar("index")

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.ndim == 0 else self.__array__(), spec) if spec else str(self)

    def __str__(self) -> str:
        from atled.engine import array_printing

        return array_printing.as_str(self)

    def __repr__(self) -> str:
        from atled.engine import array_printing

        return array_printing.as_repr(self)

    def _repr_html_(self) -> str:
        from atled.engine import array_printing

        return array_printing.as_html(self)


# Under debug_nans: arrays with a NaN or infinity that were not read yet, by id, and the `Finding` for each.
suspects: dict[int, tuple[Any, Any]] = {}


def suspect(x: DeviceArray, finding: Any) -> None:
    """Record that an array has a NaN or infinity; the first read of the array raises an error."""
    number = id(x)
    suspects[number] = (weakref.ref(x, lambda _: suspects.pop(number, None)), finding)


def accuse(x: DeviceArray) -> None:
    """Raise an error, once per array, that names the origin of the NaN or infinity in it."""
    if id(x) in suspects:
        raise FloatingPointError(str(suspects.pop(id(x))[1]))


def wrap(buffer: Any) -> DeviceArray:
    """Create an array from a buffer. The class takes no arguments, which makes launches faster."""
    array = DeviceArray()
    array._buffer, array._placed = buffer, buffer.aval
    return array


def _restore(host: np.ndarray, weak: bool) -> DeviceArray:
    return to_device(host, ArrayType(host.shape, host.dtype, weak))


def _restore_keys(words: np.ndarray) -> DeviceArray:
    on_device = placement.on_device(client.default_device())
    return wrap(put(words, Placed(ArrayType(words.shape[1:], dtypes.key_dtype), on_device, False)))


def put(host: np.ndarray, placed: Placed) -> Any:
    """A buffer with a copy of host data."""
    sharding = placed.sharding
    if not isinstance(sharding, SingleDeviceSharding):
        host = host.copy()  # private, so the shards may be views of it
        return assemble(placed, [(d, host[i]) for d, i in zip(sharding.devices, sharding.indices(host.shape))])
    return _jax.batched_device_put(
        placed,
        placement.layout(sharding, len(placed.shape)),
        [host],
        [sharding.device],
        committed=placed.committed,
        force_copy=True,
        enable_x64=True,
    )


def assemble(placed: Placed, parts: Iterable[tuple[Any, Any]], compares: bool = True) -> Any:
    """A buffer made of this process's shards: buffers, or NumPy arrays that nothing else writes to.

    If `compares`, shards that other processes also hold are compared between processes at the first launch.
    """
    mine = [(d, x) for d, x in parts if d.process_index == d.client.process_index()]
    layout, committed = placement.layout_of(placed), placed.committed
    buffer = _jax.batched_device_put(
        placed, layout, [x for _, x in mine], [d for d, _ in mine], committed=committed, enable_x64=True
    )
    if compares and not placed.sharding.is_fully_addressable:
        from atled.engine.multiprocess import processes

        shared = _shared(placed.sharding, placed.shape)
        processes.was_put(
            buffer, {shared[d]: x if isinstance(x, np.ndarray) else _words(x) for d, x in mine if d in shared}
        )
    return buffer


@functools.lru_cache(maxsize=256)
def _shared(sharding: Any, shape: tuple[int, ...]) -> dict[Any, str]:
    """One device of this process for each shard that other processes also hold, and the index of that shard."""
    parts: dict[str, list[Any]] = {}
    for device, index in zip(sharding.devices, sharding.indices(shape)):
        parts.setdefault(str(index), []).append(device)
    shared = {name: devices for name, devices in parts.items() if len({d.process_index for d in devices}) > 1}
    mine = {name: [d for d in ds if d.process_index == d.client.process_index()] for name, ds in shared.items()}
    return {devices[0]: name for name, devices in mine.items() if devices}


def to_device(x: Any, type: ArrayType | None = None, device: Any = None) -> DeviceArray:
    """A NumPy array or Python number as a `DeviceArray` of a type, on a device or with a sharding."""
    if type is None:
        type = type_of(x)
    host = np.zeros(type.shape, np.bool_) if type.kind == "0" else np.asarray(x, type.dtype)
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    sharding = device if isinstance(device, Sharding) else placement.on_device(device or client.default_device())
    return wrap(put(host, Placed(type, sharding, device is not None)))


# The arguments with which `from_host` calls the engine, by dtype, shape and settings: all batches have one type.
_host_plans: dict[Any, tuple[Any, ...]] = {}


def from_host(x: np.ndarray) -> DeviceArray:
    """A copy of a NumPy array on the default device; like `to_device(x)`, but its type and placement are cached."""
    here = scope()
    key = (x.dtype, x.shape, here.default_device, here.narrow, here.x64)
    plan = _host_plans.get(key)
    if plan is None:
        array = to_device(x)
        placed = array._placed
        if placed.type.kind == "0":
            return array
        if len(_host_plans) >= 4096:
            _host_plans.clear()
        layout = placement.layout(placed.sharding, len(placed.shape))
        _host_plans[key] = (placed.type.dtype, placed, layout, [placed.sharding.device])
        return array
    dtype, placed, layout, devices = plan
    host = x if x.dtype is dtype else np.asarray(x, dtype)
    buffer = _jax.batched_device_put(placed, layout, [host], devices, committed=False, force_copy=True, enable_x64=True)
    return wrap(buffer)


def device_put(x: DeviceArray, where: Any, committed: bool = True) -> DeviceArray:
    """The array x, moved to another device or resharded."""
    check_there(x._buffer)
    placed, source = x._placed, x.sharding
    target: Any = where if isinstance(where, Sharding) else placement.on_device(where)
    destination = Placed(placed.type, target, committed)
    if destination is placed:
        return x
    client.clients()  # raises ForkError in a forked child
    if isinstance(target, NamedSharding):
        target.check(placed.type.shape, "device_put")
    is_spread = isinstance(source, NamedSharding)
    if not is_spread and target.is_fully_replicated and target.memory_kind is None:
        return wrap(assemble(destination, [(d, x._buffer) for d in target.devices]))
    ndim = len(placed.type.shape)
    is_alike = np.array_equal(tiles(source, ndim)[1], tiles(target, ndim)[1])
    if is_alike and source.is_fully_addressable and target.is_fully_addressable:
        return wrap(_copied_to(x._buffer, destination))
    if is_spread and source.devices == target.devices:
        inside = device_put(x, source.with_memory_kind(None))  # programs run only in device memory
        return device_put(_resharded(inside, target.with_memory_kind(None)), target)
    if placed.type.kind != "k":
        return wrap(put(to_numpy(x._buffer), destination))
    if is_spread:  # keys cannot be copied to the host, so they are moved through one device
        return device_put(shards(device_put(x, source.with_spec(PartitionSpec())))[0].data, target)
    return _resharded(device_put(x, target.with_spec(PartitionSpec())), target)


def bring(execute: Any, waiting: list[tuple[int, Placed]], buffers: list[Any]) -> Any:
    """Run a program after moving the arguments in `waiting` to its devices."""
    for i, placed in waiting:
        buffers[i] = device_put(wrap(buffers[i]), placed.sharding)._buffer
    return execute(buffers)


def _copied_to(buffer: Any, placed: Placed) -> Any:
    """The shards of a buffer, each moved to another device or memory."""
    check_there(buffer)
    layout, devices = placement.layout_of(placed), placement.device_list(placed.sharding.devices)
    copy = _jax.ArrayCopySemantics.ALWAYS_COPY
    (moved,) = _jax.batched_copy_array_to_devices_with_sharding([buffer], [devices], [layout], [copy])
    moved = _jax.ArrayImpl(placed, layout, placement.parts_of(moved), committed=placed.committed, _skip_checks=True)
    if hasattr(buffer, "mark"):
        moved.mark = buffer.mark
    return moved


def copied(x: DeviceArray) -> DeviceArray:
    """A copy of the array, so that one of the two may be donated."""
    return wrap(_copied_to(x._buffer, x._placed))


def _resharded(x: DeviceArray, target: NamedSharding) -> DeviceArray:
    """An array resharded over the same devices, by a program that only moves data."""
    if dtypes.bits(x.dtype) < 4 and x.is_fully_addressable:  # CPU collectives give wrong results below 4 bits
        return wrap(put(to_numpy(x._buffer), Placed(x.type, target, True)))
    inputs = [Var(x.type)]
    program = _movers.setdefault(x.type, Program(inputs, [], inputs, "reshard"))
    ready = executable.executable(program, placement.MeshPlacement(target.mesh, (x.sharding,), (target,)))
    return wrap(ready([x._buffer])[0])


_movers: dict[ArrayType, Program] = {}


class Shard:
    """One device's shard of an array: its index and its data.

    >>> import atled.numpy as jnp
    >>> jnp.array([1, 2]).addressable_shards[0].data
    Array([1, 2], dtype=int32)
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Any, index: tuple[slice, ...], replica_id: int, data: Any) -> None:
        self.device, self.index, self.replica_id, self.data = device, index, replica_id, data

    def __repr__(self) -> str:
        return f"Shard({self.device}, {self.index}, {self.data!r})"


def shards(x: DeviceArray) -> list[Shard]:
    """The shards of an array on devices of this process."""
    sharding, t = x.sharding, x.type
    mark = getattr(x._buffer, "mark", None)
    if mark is not None:  # x is a result of a multi-process launch
        from atled.engine.multiprocess import processes

        processes.confirm(mark)
        processes.await_result(x._buffer)
    parts = iter(_parts(x._buffer))
    type = ArrayType(sharding.shard_shape(t.shape), t.dtype, t.weak)
    pieces, seen = [], {}
    for device, index in zip(sharding.devices, sharding.indices(t.shape)):
        key = str(index)
        copy = seen[key] = seen.get(key, -1) + 1
        if device.process_index == device.client.process_index():
            placed = Placed(type, SingleDeviceSharding(device, sharding.memory_kind), True)
            part = _jax.ArrayImpl(placed, placement.layout_of(placed), [next(parts)], committed=True, _skip_checks=True)
            pieces.append(Shard(device, index, copy, wrap(part)))
    return pieces


def _parts(buffer: Any) -> list[Any]:
    """The per-device buffers of a buffer, one for each device of this process."""
    check_there(buffer)
    return placement.parts_of(buffer)


# Arrays of Python numbers that were operands, on the default device: here by type and exact value, and in
# `scope().scalars` by class and value, for launches. Floating zeros are keyed by their repr, as 0.0 == -0.0.
_typed_scalars: dict[Any, DeviceArray] = {}


def scalar(value: Any, type: ArrayType) -> DeviceArray:
    """A number as a 0-d array of the given type; cached."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.item()
    here = scope()
    scalars = here.scalars
    key = (exact(value), type, here.default_device)
    array = _typed_scalars.get(key)
    if array is None:
        array = to_device(value, type)
        if type.weak and type.kind == "i":
            placed = array._placed
            array._placed = Placed(type, placed.sharding, placed.committed, reach(value))
        if len(_typed_scalars) >= 4096:
            forget()
        _typed_scalars[key] = array
        if value.__class__ in (int, float) and value == value and type is type_of(value):
            scalars[value.__class__, value if value or value.__class__ is int else repr(value)] = array
    return array


_WIDTHS = (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64)  # bits of integer dtypes, with and without a sign bit


def reach(number: int) -> int:
    """A range class of Python integers: integers of one class fit into the same dtypes, and share cached programs."""
    bits = _WIDTHS[bisect.bisect_left(_WIDTHS, (number if number >= 0 else ~number).bit_length())]
    return bits if number >= 0 else -bits


def forget() -> None:
    """Drop the cached scalars, and programs that move or read arrays."""
    _movers.clear()
    _shared.cache_clear()
    unpackers.clear()
    _typed_scalars.clear()
    _host_plans.clear()
    settings.forget_scalars()


on_global_change.append(forget)
client.on_fork.append(forget)


def as_array(x: Any, type: ArrayType | None = None) -> DeviceArray:
    """A concrete operand as an array on a device; a number or NumPy array gets `type`, which is inferred if None."""
    if isinstance(x, DeviceArray):
        return x
    if x.__class__ is np.ndarray and type is None and x.shape:
        return from_host(x)
    type = type or type_of(x)
    return to_device(x, type) if type.shape else scalar(getattr(x, "value", x), type)


# -- reading -------------------------------------------------------------------------------------------------------


def to_numpy(buffer: Any) -> np.ndarray:
    """The values of a buffer: a read-only view where the memory can be shared, else a copy."""
    placed = buffer.aval
    if placed.type.kind == "0":
        return np.zeros(placed.type.shape, placed.type.dtype)
    if placed.type.kind == "k":
        raise TypeError("numpy.asarray: random keys are opaque; random.key_data(key) gives their bits.")
    if isinstance(placed.sharding, NamedSharding):
        return _gathered(buffer)
    try:
        if placed.dtype.isbuiltin == 1:
            return np.asarray(memoryview(buffer))
        buffer.block_until_ready()
        if buffer.is_deleted():
            raise jaxlib_versions.EngineError("deleted")
        if dtypes.bits(placed.dtype) < 8:
            return unpacked(buffer)
        return _view(buffer)
    except (jaxlib_versions.EngineError, BufferError) as error:
        raise failed(buffer, error) from None


def _gathered(buffer: Any) -> np.ndarray:
    """The values of a buffer with several shards."""
    placed = buffer.aval
    sharding = placed.sharding
    parts = shards(wrap(buffer))
    if sharding.is_fully_replicated and parts:
        return to_numpy(parts[0].data._buffer)
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            f"numpy.asarray: {placed.type} has shards in other processes, which cannot be read here."
            "\n  try: x.addressable_shards, the shards of this process, or device_put(x, NamedSharding(mesh, "
            "P())) first."
        )
    out = np.empty(placed.shape, placed.dtype)
    for part in parts:
        if part.replica_id == 0:
            out[part.index] = to_numpy(part.data._buffer)
    out.flags.writeable = False
    return out


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _words(buffer: Any) -> np.ndarray:
    """The contents of a buffer on one device; for keys, their words."""
    return np.asarray(memoryview(buffer)) if buffer.aval.type.kind == "k" else to_numpy(buffer)


def _view(buffer: Any) -> np.ndarray:
    """A view of a buffer whose dtype the buffer protocol does not support, by the address in its DLPack capsule."""
    placed = buffer.aval
    size = placed.type.size * placed.dtype.itemsize
    if size == 0:
        out = np.zeros(placed.shape, placed.dtype)
        out.flags.writeable = False
        return out
    if placed.sharding.device.platform != "cpu":
        return _copied(buffer)
    capsule = _jax.buffer_to_dlpack_managed_tensor(buffer)
    address = ctypes.c_uint64.from_address(_pointer(capsule, b"dltensor")).value  # the first field is the data pointer
    raw = (ctypes.c_char * size).from_address(address)
    raw._keep = capsule  # type: ignore[attr-defined]  # the capsule keeps the buffer alive
    out = np.frombuffer(raw, placed.dtype).reshape(placed.shape)
    out.flags.writeable = False
    return out


def _copied(buffer: Any) -> np.ndarray:
    """A view of a buffer on an accelerator, after moving it to the CPU."""
    cpu = client.devices("cpu")[0]
    moved = device_put(wrap(buffer), cpu)._buffer
    moved.block_until_ready()
    return _view(moved)
