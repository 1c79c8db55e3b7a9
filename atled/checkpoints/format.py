"""The format of a checkpoint, version 2: a directory with a manifest and data files.

The manifest lists the arrays, and file and offset of each piece. The first line of the manifest has the version, a
checksum and the length of the rest, which is JSON. A directory without a manifest is not a checkpoint: the manifest is
written last, atomically.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.former_names import formerly

try:  # three times as fast as zlib, with the same result
    from zlib_ng.zlib_ng import crc32  # type: ignore[import-not-found]
except ImportError:
    from zlib import crc32

MANIFEST = "manifest"
VERSION = 2  # the format of version 1, but with the names of 0.1 in paths: see `former_paths.py`
SPAN = 2**20  # bytes per read or write: fits in the CPU cache for the checksum
ALIGNMENT = 64  # bytes: offsets of pieces in files are multiples of it
PIECE_BYTES = 64 * 2**20  # maximum size of a piece in bytes
KEY = "key<fry>"  # the dtype of random keys, which are stored as two uint32 words along a last axis


class CheckpointError(ValueError):
    """Raised if a checkpoint cannot be saved or loaded.

    The checkpoint is damaged, missing or does not match the given tree, or processes disagree or fail while saving.

    >>> import tempfile
    >>> from atled import checkpoints
    >>> with tempfile.TemporaryDirectory() as path:
    ...     checkpoints.manifest(path)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    CheckpointError: checkpoints: /tmp/run has no checkpoint: there is no manifest in it.
    """


class Damaged(CheckpointError):  # noqa: N818
    """Raised for a damaged checkpoint: a checksum does not match, or a file is missing or has another size."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """A box of an array, stored in C order and little-endian at an offset in a file."""

    file: str
    offset: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    crc32: int

    @property
    def index(self) -> tuple[slice, ...]:
        """The box as an index of the array."""
        return tuple([slice(a, a + n) for a, n in zip(self.start, self.shape)])


@dataclasses.dataclass(frozen=True)
class Entry:
    """An array: its dtype, its shape, and pieces that cover it exactly."""

    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    @property
    def stored(self) -> tuple[np.dtype, tuple[int, ...]]:
        """Dtype and shape of the stored bytes; random keys are stored as uint32 with an extra axis."""
        return stored(self.dtype, self.shape)

    @property
    def nbytes(self) -> int:
        """The total number of bytes of the pieces."""
        dtype, shape = self.stored
        return dtype.itemsize * math.prod(shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@formerly(more="metadata")
@dataclasses.dataclass(frozen=True)
class Manifest:
    """The contents of a checkpoint: arrays by path, files with their sizes, and the writer's metadata.

    >>> import tempfile, numpy as np
    >>> from atled import checkpoints
    >>> with tempfile.TemporaryDirectory() as place:
    ...     checkpoints.save(f"{place}/step_1", {"w": np.zeros((2, 3))})
    ...     found = checkpoints.manifest(f"{place}/step_1")
    >>> {path: str(entry) for path, entry in found.arrays.items()}
    {'w': 'float64[2,3]'}
    """

    arrays: dict[str, Entry]
    files: dict[str, int]
    statics: dict[str, Any] = dataclasses.field(default_factory=dict)  # settings of modules by path, for messages
    metadata: Any = None  # the user's metadata
    version: int = VERSION  # the format version of the file

    def to_bytes(self) -> bytes:
        """The manifest as the bytes of its file."""
        arrays = {path: dataclasses.asdict(entry) for path, entry in self.arrays.items()}
        content = {"arrays": arrays, "files": self.files, "statics": self.statics, "more": self.metadata}
        text = json.dumps(content, separators=(",", ":"), allow_nan=True).encode()
        return f"atled checkpoint {VERSION} {crc32(text):08x} {len(text)}\n".encode() + text

    @staticmethod
    def from_bytes(data: bytes, where: str) -> Manifest:
        """Parse a manifest; raises `Damaged` if its checksum does not match."""
        head, _, text = data.partition(b"\n")
        words = head.split(b" ")
        if words[:2] != [b"atled", b"checkpoint"] or len(words) != 5:
            raise Damaged(f"{where}: the manifest is damaged, or does not belong to a checkpoint.")
        if words[2] not in (b"1", str(VERSION).encode()):
            got = words[2].decode("ascii", "replace")
            kind = CheckpointError if got.isdigit() and int(got) > VERSION else Damaged
            raise kind(f"{where}: this atled reads checkpoints of version {VERSION} and earlier; got {got}.")
        if words[3] != f"{crc32(text):08x}".encode() or words[4] != str(len(text)).encode():
            raise Damaged(f"{where}: the manifest is damaged: its checksum does not match its content.")
        try:  # the checksum matches, but the writer may have had a bug
            content = json.loads(text)
            arrays = {path: _entry(fields) for path, fields in content["arrays"].items()}
            manifest = Manifest(arrays, content["files"], content["statics"], content["more"], int(words[2]))
            for name, size in manifest.files.items():
                _require(type(size) is int and size >= 0 and "/" not in name and name not in ("", ".", ".."), name)
            for path, entry in arrays.items():
                _check(path, entry, manifest.files)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise Damaged(f"{where}: the manifest is invalid: {error}.") from None
        return manifest


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(what)


def _check(path: str, entry: Entry, files: Mapping[str, int]) -> None:
    """Raise if the pieces of an entry do not cover the array exactly."""
    dtype, shape = entry.stored
    _require(all([type(n) is int and n >= 0 for n in shape]), f"the shape of {path}")
    for p in entry.pieces:
        numbers = [p.offset, p.crc32, *p.start, *p.shape]
        size = dtype.itemsize * math.prod(p.shape)
        fits = len(p.start) == len(p.shape) == len(shape) and all([type(n) is int and n >= 0 for n in numbers])
        fits = fits and all([a + n <= m for a, n, m in zip(p.start, p.shape, shape)])
        _require(fits and p.file in files and p.offset + size <= files[p.file], f"a piece of {path} is out of bounds")
    is_whole = sum([math.prod(p.shape) for p in entry.pieces]) == math.prod(shape)
    _require(is_whole and not _overlap(entry.pieces), f"the pieces of {path} do not make up {entry}")


def _entry(found: Mapping[str, Any]) -> Entry:
    pieces = [Piece(p["file"], p["offset"], tuple(p["start"]), tuple(p["shape"]), p["crc32"]) for p in found["pieces"]]
    return Entry(found["dtype"], tuple(found["shape"]), tuple(pieces))


def _overlap(pieces: Iterable[Piece]) -> bool:
    """Whether any two boxes overlap."""
    boxes = [p for p in pieces if math.prod(p.shape)]
    if len(boxes) < 2:
        return False
    axis = max(range(len(boxes[0].start)), key=lambda a: len({b.start[a] for b in boxes}), default=None)
    if axis is None:
        return True  # two pieces of a scalar
    open_: list[Piece] = []
    for box in sorted(boxes, key=lambda p: p.start[axis]):  # few boxes overlap along that axis
        open_ = [o for o in open_ if o.start[axis] + o.shape[axis] > box.start[axis]]
        if any([meet(o, box.start, box.shape) is not None for o in open_]):
            return True
        open_.append(box)
    return False


def meet(piece: Any, start: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The intersection of a piece and a box, as start and shape; None if they do not overlap."""
    low = [max(a, b) for a, b in zip(piece.start, start)]
    high = [min(a + n, b + m) for a, n, b, m in zip(piece.start, piece.shape, start, shape)]
    if any([a >= b for a, b in zip(low, high)]):
        return None
    return tuple(low), tuple([b - a for a, b in zip(low, high)])


def stored(dtype: str, shape: tuple[int, ...]) -> tuple[np.dtype, tuple[int, ...]]:
    """The dtype and shape in which an array is stored: random keys as uint32 with an extra axis, others unchanged."""
    if dtype == KEY:
        return np.dtype(np.uint32), (*shape, 2)
    return np.dtype(dtypes.canonical(dtype)), shape


def cut(start: tuple[int, ...], shape: tuple[int, ...], itemsize: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """A box split into boxes of at most `PIECE_BYTES`, each contiguous in memory."""
    limit = max(1, PIECE_BYTES // itemsize)
    if math.prod(shape) <= limit:
        return [(start, shape)]
    row = math.prod(shape[1:])
    if row > limit:
        inside = cut(start[1:], shape[1:], itemsize)
        return [((start[0] + i, *s), (1, *n)) for i in range(shape[0]) for s, n in inside]
    step = limit // row
    return [((start[0] + i, *start[1:]), (min(step, shape[0] - i), *shape[1:])) for i in range(0, shape[0], step)]
