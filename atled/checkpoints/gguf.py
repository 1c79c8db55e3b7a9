"""Files in the GGUF format of llama.cpp: metadata by key and tensors by name, most of them quantized.

A file has a header with typed metadata and an entry for each tensor (name, shape, format, offset), then the bytes of
the tensors, aligned. Every length and offset in the header is checked against the file size before it is used; an
invalid file raises `CheckpointError`. `gguf_formats.py` decodes and encodes the blocks of quantized tensors.
"""

from __future__ import annotations

import math
import mmap
import os
import pathlib
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from atled.checkpoints.format import CheckpointError
from atled.checkpoints.gguf_formats import FLOATS, FORMATS, WRITTEN, Format, decode, encode
from atled.checkpoints.safetensors_header import HEADER_LIMIT, is_text, short
from atled.checkpoints.storage import Local
from atled.core import errors
from atled.core.array import Array, describe

__all__ = ["File", "Tensor", "load", "open", "save"]
__dir__ = __all__.copy

_MAGIC, _ALIGNMENT = b"GGUF", "general.alignment"
_AXES, _DEPTH, _NAME = 4, 8, 65535  # limits: axes of a tensor, nesting of arrays in metadata, bytes of a name
_UINT32, _STRING, _ARRAY = 4, 8, 9  # types of metadata values; the others are numbers
_NUMBERS = {
    0: np.dtype("u1"), 1: np.dtype("i1"), 2: np.dtype("<u2"), 3: np.dtype("<i2"), _UINT32: np.dtype("<u4"),
    5: np.dtype("<i4"), 6: np.dtype("<f4"), 7: np.dtype("?"), 10: np.dtype("<u8"), 11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}  # fmt: skip
_KINDS = {dtype: kind for kind, dtype in _NUMBERS.items()}
_INTEGERS = ("I8", "I16", "I32", "I64")
_BY_DTYPE = {f.dtype.name: f for f in FORMATS.values() if f.dtype is not None}


class Tensor:
    """A tensor in a file; `read` returns its numbers.

    Attributes:
        name: the name.
        shape: the shape in NumPy's order, the reverse of the order in the file.
        format: the name of the format, such as `"F32"` or `"Q4_K"`.
        nbytes: the number of bytes in the file, or up to the next tensor if the format's block size is not known.
    """

    __slots__ = ("_file", "_form", "_start", "format", "name", "nbytes", "shape")

    def __init__(self, file: File, name: str, shape: tuple[int, ...], form: Format, start: int) -> None:
        self._file, self._form, self._start = file, form, start
        self.name, self.shape, self.format = name, shape, form.name
        self.nbytes = form.size(shape)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self._described})"

    @property
    def _described(self) -> str:
        return f"{self.format}[{','.join(map(str, self.shape))}]"

    def read(self, rows: slice | None = None, dtype: Any = "float32") -> np.ndarray:
        """The numbers as a new array, dequantized.

        Args:
            rows: a slice of the first axis; only these rows are read.
            dtype: float16, bfloat16, float32 or float64. None is the dtype of the format: float16 for F16, int8 for I8,
                and float32 for quantized formats.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as there:
        ...     save(f"{there}/x.gguf", {}, {"x": np.arange(6, dtype="int32").reshape(3, 2)})
        ...     with open(f"{there}/x.gguf") as file:
        ...         file.tensors["x"].read(slice(1, 3), dtype=None)
        array([[2, 3],
               [4, 5]], dtype=int32)
        """
        form = self._form
        if not form.is_readable:
            readable = ", ".join([f.name for f in FORMATS.values() if f.is_readable])
            what = f"{short(self.name)} has the format {self.format}, which cannot be read"
            raise _bad(self._file.path, what, f"one of {readable}.")
        own = np.dtype(np.float32) if form.dtype is None else form.dtype
        wanted = own if dtype is None else np.dtype(dtype)
        if wanted not in (own, *FLOATS):
            says = "gguf.Tensor.read: dtype must be float16, bfloat16, float32, float64, the tensor's own dtype or None"
            raise ValueError(errors.explained(f"{says}; got {wanted} for {self.name}, {self._described}."))
        start, stop = self._bounds(rows)
        row = math.prod(self.shape[1:])
        first, last = start * row // form.numbers, -(-stop * row // form.numbers)  # blocks
        numbers = decode(form, self.raw()[first * form.nbytes : last * form.nbytes], wanted)
        skipped = first * form.numbers  # a row of a 1-d tensor may begin inside a block
        numbers = numbers[start * row - skipped : stop * row - skipped]
        return numbers.reshape((stop - start, *self.shape[1:]) if self.shape else ())

    def _bounds(self, rows: slice | None) -> tuple[int, int]:
        """The first row, and the row after the last."""
        if rows is None:
            return 0, self.shape[0] if self.shape else 1
        if not self.shape or not isinstance(rows, slice) or rows.step not in (None, 1):
            says = f"gguf.Tensor.read: rows must be a slice of the first axis with step 1; got {rows!r} for {self.name}"
            raise ValueError(errors.explained(f"{says}, {self._described}.", "slice(0, 10)."))
        start, stop, _ = rows.indices(self.shape[0])
        return start, max(start, stop)

    def raw(self) -> np.ndarray:
        """The bytes as a read-only view of the memory-mapped file.

        >>> import tempfile, numpy as np
        >>> with tempfile.TemporaryDirectory() as there:
        ...     save(f"{there}/x.gguf", {}, {"x": np.array([1, 2], "int8")})
        ...     with open(f"{there}/x.gguf") as file:
        ...         file.tensors["x"].raw()
        array([1, 2], dtype=uint8)
        """
        return np.ndarray((self.nbytes,), np.uint8, self._file._mapped(), self._start)


class File:
    """A memory-mapped GGUF file with a validated header; a `with` block closes it.

    Attributes:
        path: the path of the file.
        version: the version of the format: 2 or 3.
        metadata: by key, a number, a string, a NumPy array of numbers, or a list of strings or of arrays.
        tensors: the tensors by name, in the order of the header.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as there:
    ...     save(f"{there}/x.gguf", {"general.name": "small"}, {"x": np.ones((2, 64))}, formats={"x": "Q8_0"})
    ...     with File(f"{there}/x.gguf") as file:
    ...         file.metadata, file.tensors
    ({'general.name': 'small'}, {'x': Tensor(x: Q8_0[2,64])})
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        self._map: mmap.mmap | None = None
        if not self.path.is_file():
            raise FileNotFoundError(errors.explained(f"gguf.open: there is no file {self.path}."))
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < 24:
                    raise _bad(self.path, f"a file must begin with a header of 24 bytes; it has {size} bytes")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise _bad(self.path, f"the file could not be read: {error.strerror or error}") from None
        self.tensors: dict[str, Tensor] = {}
        try:
            header = _Header(self.path, self._map)
            self.version, tensors, entries = header.begin()
            self.metadata: dict[str, Any] = header.metadata(entries)
            self._add(header, tensors)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"File({str(self.path)!r}: {len(self.tensors)} tensors, {len(self.metadata)} metadata entries)"

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Its tensors can no longer be read; arrays that `read` and `raw` returned remain valid."""
        self._map = None  # not `mmap.close`: it would unmap memory that NumPy views still use

    def _mapped(self) -> mmap.mmap:
        if self._map is None:
            raise ValueError(
                errors.explained(f"gguf.Tensor.read: the file {self.path} is closed.", "reading in the `with` block.")
            )
        return self._map

    def _add(self, header: _Header, count: int) -> None:
        """Read the entries of tensors, which follow the metadata."""
        alignment = header.alignment(self.metadata)
        header.require(24 * count, f"a header with {count} tensors")
        for _ in range(count):
            name, shape, form, offset = header.tensor()
            if name in self.tensors:
                raise _bad(self.path, f"the tensor {short(name)} appears twice")
            if offset % alignment:
                raise _bad(self.path, f"{short(name)} begins at {offset}, which is not a multiple of {alignment}")
            self.tensors[name] = Tensor(self, name, shape, form, offset)
        start = -(-header.at // alignment) * alignment
        for tensor in self.tensors.values():
            tensor._start += start
        self._check_places()

    def _check_places(self) -> None:
        """Raise unless the tensors are inside the file and do not overlap; set `nbytes` if it is unknown."""
        size, ordered = len(self._mapped()), []
        for tensor in self.tensors.values():
            if not tensor._form.nbytes:
                tensor.nbytes = int(0 not in tensor.shape)  # at least one byte, unless it is empty
            ordered.append((tensor._start, tensor._start + tensor.nbytes, tensor))
        ordered.sort(key=lambda item: item[:2])
        for i, (start, end, tensor) in enumerate(ordered):
            if end > size:
                raise _bad(self.path, f"the file is truncated: {end - size} bytes of {short(tensor.name)} are missing")
            limit = size if i + 1 == len(ordered) else ordered[i + 1][0]
            if end > limit:
                raise _bad(self.path, f"{short(tensor.name)} and {short(ordered[i + 1][2].name)} overlap")
            if not tensor._form.nbytes:
                tensor.nbytes = limit - start


class _Header:
    """Reads the values of a header in order, never beyond the end of the file or `HEADER_LIMIT`."""

    def __init__(self, path: pathlib.Path, data: mmap.mmap) -> None:
        self.path, self.data, self.at = path, data, 0
        self.end = min(len(data), HEADER_LIMIT)
        self.types: dict[str, int] = {}  # types of the metadata values, by key

    def require(self, count: int, what: str) -> None:
        """Raise unless `count` more bytes follow."""
        left = self.end - self.at
        if count > left and self.end < len(self.data):
            raise _bad(self.path, f"{what} needs {count} bytes, but a header has at most {HEADER_LIMIT}")
        if count > left:
            raise _bad(self.path, f"the file is truncated: {what} needs {count} bytes, but only {left} follow")

    def take(self, count: int, what: str) -> bytes:
        self.require(count, what)
        self.at += count
        return self.data[self.at - count : self.at]

    def natural(self, size: int, what: str) -> int:
        return int.from_bytes(self.take(size, what), "little")

    def text(self, what: str, limit: int = HEADER_LIMIT) -> str:
        start = self.at + 8
        length = int.from_bytes(self.data[self.at : start], "little")
        if start > self.end or length > limit or length > self.end - start:
            self.take(8, what)
            if length > limit:
                raise _bad(self.path, f"{what} has {length} bytes; {limit} is the limit")
            self.require(length, what)
        self.at = start + length
        try:
            return self.data[start : self.at].decode()
        except UnicodeDecodeError as error:
            raise _bad(self.path, f"{what} is not valid UTF-8: {error.reason} at byte {error.start}") from None

    def begin(self) -> tuple[int, int, int]:
        """The version, the number of tensors and the number of metadata entries."""
        magic, version = self.take(4, "the magic number"), self.natural(4, "the version")
        if magic == _MAGIC[::-1] or (magic == _MAGIC and version and version % 2**16 == 0):
            raise _bad(
                self.path, "the file is big-endian; only little-endian files can be read", "gguf-convert-endian."
            )
        if magic != _MAGIC:
            raise _bad(self.path, f"a file must begin with {_MAGIC!r}; it begins with {magic!r}")
        if version not in (2, 3):
            raise _bad(self.path, f"the file has version {version} of the format; only versions 2 and 3 can be read")
        return version, self.natural(8, "the number of tensors"), self.natural(8, "the number of metadata entries")

    def metadata(self, count: int) -> dict[str, Any]:
        self.require(13 * count, f"a header with {count} metadata entries")
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self.text("a metadata key", _NAME)
            if key in found:
                raise _bad(self.path, f"the metadata key {short(key)} appears twice")
            what = short(key)
            kind = self.types[key] = self.natural(4, what)
            if kind == _STRING:
                found[key] = self.text(what)
            else:
                found[key] = self.array(what, 1) if kind == _ARRAY else self.numbers(kind, 1, what)[0].item()
        return found

    def array(self, what: str, depth: int) -> np.ndarray | list[Any]:
        """An array of numbers, or a list of strings or arrays."""
        kind, count = self.natural(4, what), self.natural(8, what)
        if kind == _STRING:
            self.require(8 * count, what)
            return [self.text(what) for _ in range(count)]
        if kind == _ARRAY:
            if depth == _DEPTH:
                raise _bad(self.path, f"{what} has arrays nested deeper than {_DEPTH}")
            self.require(12 * count, what)
            return [self.array(what, depth + 1) for _ in range(count)]
        return self.numbers(kind, count, what)

    def numbers(self, kind: int, count: int, what: str) -> np.ndarray:
        dtype = _NUMBERS.get(kind)
        if dtype is None:
            raise _bad(self.path, f"{what} has the type {kind}, which the format does not have")
        data = np.frombuffer(self.take(count * dtype.itemsize, what), np.uint8)
        if dtype.kind == "b" and (data > 1).any():
            raise _bad(self.path, f"{what} is boolean, but its bytes are not all 0 or 1")
        return data.view(dtype)

    def alignment(self, metadata: Mapping[str, Any]) -> int:
        found = metadata.get(_ALIGNMENT, 32)
        if self.types.get(_ALIGNMENT, _UINT32) != _UINT32 or found.bit_count() != 1:
            raise _bad(self.path, f"{_ALIGNMENT} must be a power of two, as uint32; got {short(found)}")
        return found

    def tensor(self) -> tuple[str, tuple[int, ...], Format, int]:
        """The name, shape, format and offset of a tensor."""
        name = self.text("the name of a tensor", _NAME)
        what = short(name)
        axes = self.natural(4, what)
        if axes > _AXES:
            raise _bad(self.path, f"{what} has {axes} axes; {_AXES} is the limit")
        shape = tuple([self.natural(8, what) for _ in range(axes)])[::-1]
        number, offset = self.natural(4, what), self.natural(8, what)
        form = FORMATS.get(number, Format(number, f"number {number}"))
        if math.prod([n or 1 for n in shape]) * 8 >= 2**63:
            raise _bad(self.path, f"{what} has a shape too large for any memory: {list(shape)}")
        if (shape[-1] if shape else 1) % form.numbers:
            says = f"the last axis of {what} must be a multiple of {form.numbers}"
            raise _bad(self.path, f"{says} in the format {form.name}; its shape is {list(shape)}")
        return name, shape, form, offset


def _bad(path: pathlib.Path, what: str, instead: str = "") -> CheckpointError:
    """The error for an invalid file."""
    return CheckpointError(errors.explained(f"gguf.open: {path}: {what}.", instead))


def open(path: str | os.PathLike[str]) -> File:
    """Memory-map a file and validate its header. Tensors are read from the disk when they are used.

    If a model is split into several files (`-00001-of-00003.gguf`), the first file has the metadata, and each file has
    some of the tensors.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as there:
    ...     save(f"{there}/x.gguf", {"general.architecture": "llama"}, {"x": np.ones((4, 32), "float16")})
    ...     with open(f"{there}/x.gguf") as file:
    ...         x = file.tensors["x"]
    ...         x.shape, x.format, x.nbytes, x.read(slice(0, 2)).shape
    ((4, 32), 'F16', 256, (2, 32))
    """
    return File(path)


def load(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The tensors of a file by name: integers in their dtype, all others in float32.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as there:
    ...     save(f"{there}/x.gguf", {}, {"x": np.arange(32.0)}, formats={"x": "Q4_1"})
    ...     load(f"{there}/x.gguf")["x"][:4]
    array([0.       , 0.       , 2.0664062, 2.0664062], dtype=float32)
    """
    with open(path) as file:
        return {name: t.read(dtype=None if t.format in _INTEGERS else "float32") for name, t in file.tensors.items()}


def save(
    path: str | os.PathLike[str],
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Any],
    *,
    formats: Mapping[str, str] | None = None,
) -> None:
    """Write a GGUF file, in version 3 of the format.

    Args:
        path: the path of the file, which ends in `.gguf`.
        metadata: by key, a value as in `File.metadata`. NumPy scalars and arrays keep their dtype. Python numbers are
            written in the first exact type: an integer as uint32, int32, uint64 or int64; a list of integers as int32,
            uint32, uint64 or int64; floats as float32 or float64.
        tensors: by name, an array, or a `Tensor` of another file, whose bytes are copied.
        formats: by name, the format of an array of floats: F32, F16, BF16, Q8_0, Q4_0 or Q4_1. All other arrays are
            written in the format of their dtype.

    The file is written under a temporary name and renamed when it is on disk.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as there:
    ...     save(f"{there}/x.gguf", {"general.name": "x"}, {"x": np.ones((2, 64))}, formats={"x": "Q4_1"})
    ...     with open(f"{there}/x.gguf") as file:
    ...         file.tensors["x"]
    Tensor(x: Q4_1[2,64])
    """
    file, formats = pathlib.Path(path), formats or {}
    if not file.name.endswith(".gguf") or file.is_dir():
        raise ValueError(errors.explained(f"gguf.save: the path must end in .gguf; got {str(path)!r}."))
    if not all([isinstance(given, Mapping) for given in (metadata, tensors, formats)]):
        raise TypeError(errors.explained("gguf.save: metadata, tensors and formats must be dicts."))
    for name in formats:
        if name not in tensors:
            raise ValueError(errors.explained(f"gguf.save: formats has {name!r}, but tensors does not."))
    leaves = [_Leaf(name, x, _format(name, x, formats.get(name))) for name, x in tensors.items()]
    alignment = metadata.get(_ALIGNMENT, 32)
    if not isinstance(alignment, (int, np.integer)) or not 0 < alignment < 2**32 or alignment & (alignment - 1):
        raise ValueError(errors.explained(f"gguf.save: {_ALIGNMENT} must be a power of two; got {alignment!r}."))
    if _ALIGNMENT in metadata:
        metadata = {**metadata, _ALIGNMENT: np.uint32(alignment)}
    place, beside = Local(file.parent), f".{file.name}.{uuid.uuid4().hex[:8]}"
    try:
        place.write(beside, _chunks(metadata, leaves, int(alignment)))
        os.replace(place.path / beside, place.path / file.name)
        place.sync()
    finally:
        place.delete([beside])


class _Leaf(NamedTuple):
    """A tensor to write, with its name and format."""

    name: str
    array: Any
    form: Format

    @property
    def nbytes(self) -> int:
        return self.array.nbytes if isinstance(self.array, Tensor) else self.form.size(self.array.shape)


def _format(name: str, x: Any, wanted: str | None) -> Format:
    """The format in which a tensor is written; raises if it cannot be written."""
    if isinstance(x, Tensor) and wanted is None:
        return x._form
    if not isinstance(x, (Array, np.ndarray, np.generic)) or isinstance(x, np.ma.MaskedArray):
        says = f"gguf.save: tensors must be arrays; {name} is {describe(x)}."
        raise TypeError(errors.explained(says, "numpy.asarray(x, dtype), or tensor.read()."))
    dtype = getattr(x.dtype, "name", str(x.dtype))
    form = _BY_DTYPE.get(dtype) if wanted is None else WRITTEN.get(wanted)
    if form is None or (wanted is not None and dtype not in [d.name for d in FLOATS]):
        says = f"gguf.save: {name} is {dtype}, which cannot be written{f' as {wanted}' if wanted else ''}."
        raise TypeError(errors.explained(says, f"an array of floats, in one of {', '.join(WRITTEN)}."))
    if len(x.shape) > _AXES or (x.shape[-1] if x.shape else 1) % form.numbers:
        says = f"gguf.save: {form.name} needs at most {_AXES} axes, the last one a multiple of {form.numbers}"
        raise ValueError(errors.explained(f"{says}; {name} has the shape {list(x.shape)}."))
    return form


def _chunks(metadata: Mapping[str, Any], leaves: list[_Leaf], alignment: int) -> Iterator[Any]:
    """The bytes of a file, part by part."""
    header = [_MAGIC, _little(4, 3), _little(8, len(leaves), len(metadata))]
    for key, value in metadata.items():
        kind, data = _value(key, value, 1)
        header += [_text(key, _NAME), _little(4, kind), data]
    offset = 0
    for leaf in leaves:
        shape = leaf.array.shape
        header += [_text(leaf.name, _NAME), _little(4, len(shape)), _little(8, *shape[::-1])]
        header += [_little(4, leaf.form.number), _little(8, offset)]
        offset += leaf.nbytes + -leaf.nbytes % alignment
    size = sum([len(part) for part in header])
    if size > HEADER_LIMIT:
        raise ValueError(errors.explained(f"gguf.save: the header has {size} bytes; {HEADER_LIMIT} is the limit."))
    yield b"".join(header) + bytes(-size % alignment)
    for leaf in leaves:
        try:
            yield from [leaf.array.raw()] if isinstance(leaf.array, Tensor) else encode(leaf.form, leaf.array)
        except OverflowError:
            says = f"gguf.save: {leaf.name} has numbers that are too large for {leaf.form.name}, or not finite."
            raise ValueError(errors.explained(says)) from None
        yield bytes(-leaf.nbytes % alignment)


def _little(size: int, *numbers: int) -> bytes:
    return b"".join([int(n).to_bytes(size, "little") for n in numbers])


def _text(text: Any, limit: int = HEADER_LIMIT) -> bytes:
    if not isinstance(text, str) or not is_text(text) or len(text.encode()) > limit:
        says = f"gguf.save: names and text must be strings without lone surrogates, names of at most {_NAME} bytes"
        raise ValueError(errors.explained(f"{says}; got {short(text)}."))
    return _little(8, len(text.encode())) + text.encode()


def _value(key: str, x: Any, depth: int) -> tuple[int, bytes]:
    """The type of a metadata value, and its bytes."""
    if isinstance(x, str):
        return _STRING, _text(x)
    is_list = isinstance(x, (list, tuple))
    if is_list and all([isinstance(y, str) for y in x]):
        return _ARRAY, _little(4, _STRING) + _little(8, len(x)) + b"".join([_text(y) for y in x])
    if is_list and depth < _DEPTH and all([isinstance(y, (list, tuple, np.ndarray)) for y in x]):
        inner = [_value(key, y, depth + 1)[1] for y in x]
        return _ARRAY, _little(4, _ARRAY) + _little(8, len(x)) + b"".join(inner)
    numbers = x if isinstance(x, (np.ndarray, np.generic)) else _narrow(x)
    kind = _KINDS.get(numbers.dtype.newbyteorder("<"))
    if kind is None or numbers.ndim != (is_list or isinstance(x, np.ndarray)):
        says = "gguf.save: metadata must be numbers, strings, 1-d arrays and lists of one type"
        raise TypeError(errors.explained(f"{says}; {key} is {describe(x)}."))
    data = numbers.astype(_NUMBERS[kind]).tobytes()
    return (_ARRAY, _little(4, kind) + _little(8, numbers.size) + data) if numbers.ndim else (kind, data)


def _narrow(x: Any) -> np.ndarray:
    """Python numbers as an array of the first type that holds them exactly, in llama.cpp's order of preference."""
    given = x if isinstance(x, (list, tuple)) else [x]
    if all([isinstance(y, (bool, np.bool_)) for y in given]):
        return np.array(x)
    if all([isinstance(y, (int, np.integer)) for y in given]):
        low, high = min(given), max(given)
        for kind in ("i4", "u4", "u8", "i8") if given is x else ("u4", "i4", "u8", "i8"):
            if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
                return np.array(x, kind)
    if all([isinstance(y, (float, np.floating)) for y in given]):
        with np.errstate(over="ignore"):
            wide, narrow = np.array(x, "f8"), np.array(x, "f8").astype("f4")
        return narrow if np.array_equal(narrow, wide, equal_nan=True) else wide
    return np.array(None)  # its dtype has no GGUF type, so `_value` raises
