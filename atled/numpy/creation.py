"""Array creation: from Python and NumPy values, filled, and like other arrays."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from atled.core import dtypes, error_hints, errors
from atled.core.array import Array, ArrayLike, DTypeLike, check_unmasked, describe, type_of, unwrapped
from atled.core.errors import ConcretizationTypeError
from atled.core.program import Recorder
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.trace import Tracer, bind, state
from atled.core.types import ArrayType, ShapeDtypeStruct
from atled.engine import dlpack
from atled.engine.array import DeviceArray, copied, device_put, to_device
from atled.numpy.promotion import broadcast_to as _broadcast_to
from atled.numpy.promotion import cast, common_dtype, converted, operand_type, warn_about_imaginary
from atled.ops import conversion, elementwise, placement, random, shape
from atled.staging.jit import jit, library_function


def static_shape(name: str, dims: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints."""
    if isinstance(dims, Tracer):
        raise ConcretizationTypeError(
            dims._explained(
                f"{name}: a shape must be known; got a traced {dims.type}.",
                "jit(f, static_argnames=...) for the argument that the shape comes from, or x.shape of an array.",
            )
        )
    if isinstance(dims, (int, np.integer)) or (isinstance(dims, Array) and dims.ndim == 0):
        dims = (dims,)
    try:
        out = tuple([d.__index__() for d in dims])
    except (TypeError, AttributeError):
        if isinstance(dims, Iterable) and any(isinstance(d, Tracer) for d in dims):
            raise
        raise TypeError(
            errors.explained(
                f"{name}: a shape is an int or a sequence of ints; got {dims!r}.",
                "n // 2 instead of n / 2, or int(n)." if isinstance(dims, float) else f"{name}((2, 3)).",
            )
        ) from None
    if any(n < 0 for n in out):
        raise ValueError(errors.explained(f"{name}: a shape has no negative lengths; got {out}."))
    return out


def _dtype(name: str, dtype: Any) -> Any:
    """The dtype of a new array; raises for a number, which was probably meant as a length."""
    if isinstance(dtype, int):
        raise TypeError(
            errors.explained(
                f"{name}: the shape must be one tuple, followed by the dtype; got {dtype} as the dtype.",
                error_hints.called_with("({0}, {1})", function=name) or f"{name}((2, 3)).",
            )
        )
    return dtypes.canonical(float if dtype is None else dtype)


@library_function(static=("dims", "dtype", "value", "weak"))
def _filled(dims: tuple[int, ...], dtype: Any, value: Any, weak: bool = False) -> Any:
    if dtype is dtypes.key_dtype:
        return _filled_keys(dims, value)
    return shape.full(ArrayType(dims, dtype), value) if not weak else shape.broadcast(value, dims, ())


def _filled_keys(dims: tuple[int, ...], word: int) -> Any:
    """An array of equal random keys, whose two 32-bit words are both `word`."""
    return bind(random.WrapKey(), shape.full(ArrayType((*dims, 2), dtypes.uint32), word))


def located(x: Any, device: Any, out_sharding: Any = None, name: str = "asarray") -> Any:
    """A new array on the requested device or with the requested sharding."""
    if device is not None and out_sharding is not None:
        raise ValueError(f"{name}: only one of device and out_sharding can be given; got {device} and {out_sharding}.")
    if out_sharding is not None or isinstance(device, (NamedSharding, PartitionSpec)):
        sharding = device if out_sharding is None else out_sharding
        if isinstance(x, Tracer) or not isinstance(sharding, (NamedSharding, PartitionSpec)):
            return placement.placed(x, sharding, name)
        return device_put(x, placement.resolved(sharding, name))
    if device is None or isinstance(x, Tracer):
        return x
    return device_put(x, getattr(device, "device", device))


def _new(name: str, dims: tuple[int, ...], value: int, dtype: Any, device: Any, out_sharding: Any) -> Any:
    """A filled array with the requested placement; over a mesh, each device makes its shard."""
    if (where := _asked(name, dims, device, out_sharding)) is not None:
        return _filled_at(where, dims, value, dtype)
    return located(_filled(dims, dtype, value), device, out_sharding, name)


def _asked(name: str, dims: tuple[int, ...], device: Any, out_sharding: Any) -> NamedSharding | None:
    """The requested sharding of a new array, if it is created eagerly."""
    sharding = device if out_sharding is None else out_sharding
    is_one = device is None or out_sharding is None
    if not is_one or not isinstance(sharding, (NamedSharding, PartitionSpec)) or type(state.base) is Recorder:
        return None
    where = placement.resolved(sharding, name)
    where.check(dims, name)
    return where


def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of zeros.

    >>> zeros((2, 2), "int8")
    Array([[0, 0],
           [0, 0]], dtype=int8)
    """
    return _new("zeros", static_shape("zeros", shape), 0, _dtype("zeros", dtype), device, out_sharding)


def ones(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of ones.

    >>> ones(3)
    Array([1., 1., 1.], dtype=float32)
    """
    return _new("ones", static_shape("ones", shape), 1, _dtype("ones", dtype), device, out_sharding)


def empty(
    shape: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array whose values are unspecified; here they are zeros.

    >>> empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


@library_function(static=("dims", "dtype"))
def _full(dims: tuple[int, ...], value: Any, dtype: Any) -> Any:
    if dtype is dtypes.key_dtype and type_of(value).kind != "k":
        return _filled_keys(dims, value)
    value = cast(value, dtype, type_of(value).weak) if dtype is not None else value
    return _broadcast_to(value, dims)


def full(
    shape: SupportsIndex | Sequence[SupportsIndex],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array filled with one value; the value may be an array that broadcasts.

    >>> full((2,), 7)
    Array([7, 7], dtype=int32)
    """
    t = operand_type("full", fill_value)
    dtype = dtypes.canonical(common_dtype([t])[0] if dtype is None else dtype)
    value = fill_value if isinstance(fill_value, Array) else np.asarray(fill_value, dtype)
    dims = static_shape("full", shape)
    if not isinstance(value, Array) and (where := _asked("full", dims, device, out_sharding)) is not None:
        return _filled_at(where, dims, value, dtype)
    return located(_full(dims, value, dtype), device, out_sharding, "full")


def _like(name: str, a: Any, dtype: Any, dims: Any) -> tuple[tuple[int, ...], Any, bool]:
    t = a.type if isinstance(a, ShapeDtypeStruct) else operand_type(name, a)
    return (
        t.shape if dims is None else static_shape(name, dims),
        t.dtype if dtype is None else dtypes.canonical(dtype),
        t.weak and dtype is None,
    )


def _place_of(a: Any, dims: tuple[int, ...], device: Any, out_sharding: Any) -> Any:
    """The default placement of an array like `a`: that of `a`, if committed."""
    if type(a) is not DeviceArray or not a._placed.committed or type(state.base) is Recorder:
        return None
    return a.sharding if device is None and out_sharding is None and a.shape == dims else None


def _filled_at(where: Any, dims: tuple[int, ...], value: Any, dtype: Any) -> Any:
    """A filled array created with its sharding: no device ever holds more than its shard."""
    if isinstance(where, NamedSharding):
        return _filler(dims, dtype, where)(value)
    return located(_full(dims, value, dtype), where)


@functools.lru_cache(maxsize=1024)
def _filler(dims: tuple[int, ...], dtype: Any, where: NamedSharding) -> Any:
    return jit(lambda value: _full(dims, value, dtype), out_shardings=where)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Zeros with the shape and dtype of another array, and its sharding.

    >>> zeros_like(array([3.0, 4.0]))
    Array([0., 0.], dtype=float32)
    """
    dims, dtype, _ = _like("zeros_like", a, dtype, shape)
    if (where := _place_of(a, dims, device, out_sharding)) is not None:
        return _filled_at(where, dims, 0, dtype)
    return located(_filled(dims, dtype, 0), device, out_sharding, "zeros_like")


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Ones with the shape and dtype of another array, and its sharding.

    >>> ones_like(array([3, 4]))
    Array([1, 1], dtype=int32)
    """
    dims, dtype, _ = _like("ones_like", a, dtype, shape)
    if (where := _place_of(a, dims, device, out_sharding)) is not None:
        return _filled_at(where, dims, 1, dtype)
    return located(_filled(dims, dtype, 1), device, out_sharding, "ones_like")


def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Any = None,
) -> Array:
    """An array like another, whose values are unspecified; here they are zeros.

    >>> empty_like(array([1, 2])).dtype
    dtype('int32')
    """
    return zeros_like(prototype, dtype, shape, device=device)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array filled with one value, with the shape and dtype of another array, and its sharding.

    >>> full_like(array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    dims, dtype, _ = _like("full_like", a, dtype, shape)
    if (where := _place_of(a, dims, device, out_sharding)) is not None:
        return _filled_at(where, dims, fill_value, dtype)
    return full(dims, fill_value, dtype, device=device, out_sharding=out_sharding)


# -- from values ------------------------------------------------------------------------------------------------------


def _checked_number(x: Any, dtype: Any) -> Any:
    """A Python number as a 0-d NumPy array of a dtype; raises if it does not fit."""
    if isinstance(x, int) and dtypes.kind(dtype) in "iu":
        info = dtypes.iinfo(dtype)
        if not int(info.min) <= x <= int(info.max):
            raise OverflowError(
                errors.explained(
                    f"asarray: the number must fit into {dtype.name}; got {x}.",
                    error_hints.called_with("{0}", "dtype={numpy}.int64", function="array")
                    or "dtype='int64', or a float.",
                )
            )
    return np.asarray(x, dtype)


def asarray(
    a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None, device: Any = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:  # fmt: skip
    """An array from an array, NumPy array, number, or nested lists of those.

    NumPy arrays keep their dtype; Python numbers become 32 bits wide. Data is copied to the device.

    >>> asarray([[1, 2], [3, 4]]).dtype, asarray(np.arange(3.0)).dtype
    (dtype('int32'), dtype('float64'))
    """
    if isinstance(a, Array) and dtype is order is copy is device is out_sharding is None:
        return a
    a = unwrapped(a)
    if order not in (None, "K", "C", "A"):
        raise NotImplementedError(f"asarray: arrays are stored in row-major order; order={order!r} is not supported.")
    target_dtype = None if dtype is None else dtypes.canonical(dtype)
    if copy is False and not (isinstance(a, Array) and target_dtype in (None, a.dtype)):
        raise ValueError(
            f"asarray: with copy=False, an array of the requested dtype is needed; got {describe(a)}."
            "\n  try: copy=None, which copies where it must."
        )
    out = located(_from_values(a, target_dtype), device, out_sharding)
    return copied(out) if copy and out is a and type(a) is DeviceArray else out


def _from_values(a: Any, wanted: Any) -> Any:
    if isinstance(a, Array):
        return a if wanted is None else converted(a, wanted)
    if isinstance(a, (list, tuple)):
        return _from_sequence(a, wanted)
    if isinstance(a, np.ndarray) or (
        isinstance(a, np.generic) and not isinstance(a, (np.float64, np.int64, np.complex128))  # pyright: ignore[reportArgumentType]
    ):
        check_unmasked(a)
        host = np.asarray(a)
        return to_device(
            host if wanted is None else _cast_host(host, wanted), None if host.ndim else _strong(host, wanted)
        )
    if isinstance(a, (bool, int, float, complex, np.generic)):
        t = type_of(a)
        default = dtypes.default(t.kind) if t.weak else t.dtype
        value = _checked_number(a, wanted or default)
        return to_device(value, ArrayType((), default, t.weak) if wanted is None else ArrayType((), wanted))
    if hasattr(a, "__atled_array__"):
        return _from_values(a.__atled_array__(), wanted)
    if hasattr(a, "__array__") or hasattr(a, "__array_interface__"):
        return _from_values(np.asarray(a), wanted)
    if hasattr(a, "__dlpack__"):
        return _from_values(np.from_dlpack(a), wanted)
    try:
        view = memoryview(a)
    except TypeError:
        raise TypeError(_no_array(a)) from None
    return _from_values(np.asarray(view), wanted)


def _strong(host: np.ndarray, wanted: Any) -> ArrayType:
    return ArrayType((), wanted or dtypes.canonical(host.dtype))


def _cast_host(host: np.ndarray, dtype: Any) -> np.ndarray:
    warn_about_imaginary(host.dtype.kind, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.real(host) if dtypes.kind(dtype) in "biuf" else host).astype(dtype)


def _leaf_types(a: Any, found: list[Any]) -> None:
    for x in a:
        if isinstance(x, (list, tuple)):
            _leaf_types(x, found)
        else:
            found.append(x)


def _item_type(x: Any) -> ArrayType:
    try:
        return type_of(x)
    except TypeError:
        raise TypeError(_no_array(x)) from None


def _no_array(x: Any) -> str:
    what = {
        str: "a number for each word, such as its position in a list",
        type(None): "numpy.nan where there is no number",
    }
    return errors.explained(
        f"asarray: the elements must be numbers; got {describe(x)}.",
        what.get(type(x), "numbers, or lists of numbers") + ".",
    )


def _lengths(a: Any) -> str:
    """The shape of nested lists, as deep as they are regular."""
    lengths = [str(len(x)) if isinstance(x, (list, tuple)) else "a number" for x in a]
    return "lengths " + " and ".join(dict.fromkeys(lengths)) if len(set(lengths)) > 1 else "inner lists that differ"


def _from_sequence(a: Any, wanted: Any) -> Any:
    items: list[Any] = []
    _leaf_types(a, items)
    if any(isinstance(x, Array) for x in items):
        return _stacked(a, wanted, items)
    if not items:
        host = np.asarray(a, wanted or dtypes.default("f"))
        return to_device(host)
    if wanted is None:
        types = (
            [_item_type(x) for x in items]
            if len(items) < 10_000
            else [_item_type(x) for x in {type(i): i for i in items}.values()]
        )
        wanted, _ = common_dtype(types)
    try:
        host = np.array(a)
    except ValueError:
        raise ValueError(
            errors.explained(
                f"asarray: nested lists must have the same lengths at each level; got {_lengths(a)}.",
                "pad the shorter ones, or keep a list of arrays.",
            )
        ) from None
    if host.dtype == object:
        bad = next(
            x
            for x in items
            if not isinstance(x, (bool, int, float, complex, np.generic, np.ndarray)) or isinstance(x, int)
        )
        if isinstance(bad, int):
            raise OverflowError(f"asarray: {bad} does not fit into {wanted.name}.")
        raise TypeError(_no_array(bad))
    if host.dtype.kind in "iu" and dtypes.kind(wanted) in "iu" and host.size:
        info = dtypes.iinfo(wanted)
        if host.min() < int(info.min) or host.max() > int(info.max):
            worst = host.max() if host.max() > int(info.max) else host.min()
            raise OverflowError(
                f"asarray: {worst} does not fit into {wanted.name}; ask for a wider dtype, such as int64."
            )
    return to_device(_cast_host(host, wanted))


def _stacked(a: Any, wanted: Any, items: list[Any]) -> Any:
    """An array from nested lists that hold arrays."""
    if wanted is None:
        wanted, _ = common_dtype([type_of(x) for x in items])

    def build(x: Any) -> Any:
        if not isinstance(x, (list, tuple)):
            return x if isinstance(x, Array) and x.dtype is wanted else asarray(x, wanted)
        rows = [build(v) for v in x]
        dims = {r.shape for r in rows}
        if len(dims) > 1:
            raise ValueError(f"asarray: arrays in a list must have the same shape; got {sorted(dims)}.")
        return _stack(rows)

    return build(a)


@library_function
def _stack(rows: list[Any]) -> Any:
    return shape.concatenate([shape.reshape(r, (1, *type_of(r).shape)) for r in rows], 0)


def array(
    object: Any, dtype: DTypeLike | None = None, copy: bool = True, order: str | None = "K", ndmin: int = 0, *,
    device: Any = None, out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:  # fmt: skip
    """An array from values; the data is copied unless `copy` is False, so the original may be donated.

    >>> array([1.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    object = unwrapped(object)
    out = asarray(object, dtype, order, device=device if ndmin == 0 else None)
    if out.ndim < ndmin:
        out = shape.reshape(out, (1,) * (ndmin - out.ndim) + out.shape)
    if ndmin or out_sharding is not None:
        out = located(out, device, out_sharding, "array")
    return copied(out) if copy and out is object and type(out) is DeviceArray else out


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy with its own buffer: the array or the copy may be donated without affecting the other.

    >>> copy(array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    a = unwrapped(a)
    converted = asarray(a)
    return copied(converted) if converted is a and isinstance(converted, DeviceArray) else converted


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array from another library, through DLPack; every dtype of the protocol is supported.

    The data is copied, because its owner may write to it.

    >>> from_dlpack(np.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    return asarray(dlpack.to_host(x), device=device)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """An array from bytes.

    >>> frombuffer(b"ab", "uint8")
    Array([97, 98], dtype=uint8)
    """
    return asarray(np.frombuffer(buffer, dtypes.canonical(dtype), count, offset))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """An array from a file of raw or text numbers, as `numpy.fromfile` reads it.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(3, dtype="int32").tofile(file.name)
    ...     print(fromfile(file.name, "int32"))
    [0 1 2]
    """
    return asarray(np.fromfile(*args, **kwargs))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """An array from text: numbers with a separator between them.

    >>> fromstring("1 2 3", dtype=int, sep=" ")
    Array([1, 2, 3], dtype=int32)
    """
    return asarray(np.fromstring(string, dtypes.canonical(dtype), count, sep=sep))


def fromiter(iterable: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """An array from an iterable of numbers.

    >>> fromiter((n * n for n in range(4)), int)
    Array([0, 1, 4, 9], dtype=int32)
    """
    return asarray(np.fromiter(iterable, dtypes.canonical(dtype), count))


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """x in another dtype. Floats are truncated to integers; values out of range saturate.

    >>> astype(array([-1.7, 300.0]), "uint8")
    Array([  0, 255], dtype=uint8)
    """
    t = operand_type("astype", x)
    target_dtype = dtypes.canonical(float if dtype is None else dtype)
    if t.kind == "k" or target_dtype is dtypes.key_dtype:
        if t.dtype is target_dtype and isinstance(x, Array):
            return x
        raise TypeError("astype: random keys cannot be converted; random.key_data(key) returns their bits.")
    if t.dtype is target_dtype and not t.weak and isinstance(x, Array):
        return located(x, device)
    return located(_convert(x, target_dtype), device)


@library_function(static=("dtype",), is_thin=True)
def _convert(x: Any, dtype: Any) -> Any:
    return converted(x, dtype)


# -- diagonals --------------------------------------------------------------------------------------------------------


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:  # noqa: N803
    """Ones on a diagonal, zeros elsewhere.

    >>> eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    target_dtype = dtypes.canonical(float if dtype is None else dtype)
    n, m = int(N), int(N if M is None else M)
    return located(_eye(n, m, min(max(int(k), -n), m), target_dtype), device)


@library_function(static=("n", "m", "k", "dtype"))
def _eye(n: int, m: int, k: int, dtype: Any) -> Any:
    rows, columns = (shape.iota(np.int32, (n, m), i) for i in (0, 1))
    return conversion.convert(elementwise.eq(elementwise.add(rows, k), columns), dtype)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The square matrix with ones on the diagonal.

    >>> identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)
