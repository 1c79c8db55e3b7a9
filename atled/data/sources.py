"""Sources in memory and in plain files: arrays, token files, lines of text, and objects with a length and indexing."""

from __future__ import annotations

import codecs
import dataclasses
import functools
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import errors, tree
from atled.core.array import is_masked
from atled.data.collate import Columns
from atled.data.copies import owned
from atled.data.pipeline import Pipeline
from atled.data.random_access_nodes import Source, count_checked


@dataclasses.dataclass(frozen=True, eq=False)
class Mapped:
    """The location of a memory-mapped array in its file, from which other processes map it instead of copying it."""

    path: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

    def open(self) -> np.ndarray:
        """The array, mapped read-only."""
        return np.ndarray(self.shape, self.dtype, bytes_of(self.path), self.offset, self.strides)


@functools.lru_cache(maxsize=64)
def _bytes_of(path: str, size: int, changed: int) -> np.ndarray:
    return np.asarray(np.memmap(path, np.uint8, "r")) if size else np.empty(0, np.uint8)


def bytes_of(path: str) -> np.ndarray:
    """The bytes of a file, memory-mapped."""
    return _bytes_of(path, *stamp_of(path))


def stamp_of(path: str) -> tuple[int, int]:
    """The size and modification time of a file, to detect changes."""
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


def check_unchanged(name: str, path: str, stamp: tuple[int, int]) -> None:
    """Raise if a file was modified after its source was created."""
    if stamp_of(path) != stamp:
        raise ValueError(
            errors.explained(f"data.{name}: {path} has changed since the source was created.", f"data.{name}(…) again.")
        )


def _place(x: np.ndarray) -> Any:
    """The location of a memory-mapped array in its file, as a `Mapped`; other arrays are returned unchanged."""
    mapping = getattr(x, "_mmap", None)
    if not isinstance(x, np.memmap) or mapping is None or x.filename is None or x.mode == "c":
        return np.asarray(x)
    start = x.offset - x.offset % mmap.ALLOCATIONGRANULARITY  # of the mapping; `x.offset` is for the whole array
    address = np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]
    offset = start + x.__array_interface__["data"][0] - address
    return Mapped(os.fspath(x.filename), offset, x.shape, x.strides, x.dtype)


class Arrays(Source):
    """The rows of a tree of arrays, as examples of the same structure."""

    def __init__(self, arrays: list[np.ndarray], structure: Any) -> None:
        self.arrays, self.structure = arrays, structure
        self._views = [_read_only(a) for a in arrays]

    @property
    def size(self) -> int:
        """See `Node`."""
        return len(self.arrays[0])

    def read(self, indices: np.ndarray) -> Sequence[Any]:
        """See `Source`."""
        return Columns(self._views, self.structure, indices)

    def __getstate__(self) -> Any:
        return [_place(a) for a in self.arrays], self.structure

    def __setstate__(self, state: Any) -> None:
        self.__init__([a.open() if isinstance(a, Mapped) else a for a in state[0]], state[1])

    def __str__(self) -> str:
        kinds = [f"{a.dtype}{list(a.shape)}".replace(" ", "") for a in self.arrays]
        paths = [p for p, _ in tree.leaves_with_path(self.structure.unflatten(self.arrays))]
        names = ["/".join([str(getattr(k, "key", getattr(k, "idx", k))) for k in p]) for p in paths]
        return f"arrays({', '.join([f'{n}={k}' if n else k for n, k in zip(names, kinds)])})"


def _read_only(x: np.ndarray) -> np.ndarray:
    view = np.asarray(x).view()
    view.flags.writeable = False
    return view


def arrays(examples: Any = None, /, **fields: Any) -> Pipeline:
    """The rows of a tree of arrays of the same length along the first axis; arrays given by name become a dict.

    Accepts NumPy arrays, memory maps, which worker processes map again, and arrays of atled. Examples are read-only
    views; batches are copies.

    >>> from atled import data
    >>> rows = data.arrays(x=np.arange(6).reshape(3, 2), y=np.array([0, 1, 0]))
    >>> [int(e["x"].sum()) for e in rows]
    [1, 5, 9]
    """
    if (examples is None) == (not fields):
        raise TypeError(errors.explained("data.arrays: give a tree of arrays or arrays by name.", "arrays(x=x, y=y)."))
    paths = tree.leaves_with_path(fields or examples)
    leaves = [a if isinstance(a, np.ndarray) else np.asarray(a) for _, a in paths]
    if any([is_masked(x) for x in leaves]):
        raise TypeError(
            errors.explained(
                "data.arrays: masked arrays are not supported; got one.", "arrays(x=x.filled(0), mask=~x.mask)."
            )
        )
    lengths = {"".join([str(k) for k in path]): x.shape[:1] for (path, _), x in zip(paths, leaves)}
    if not leaves or () in lengths.values() or len(set(lengths.values())) > 1:
        shown = ", ".join([f"{p or 'array'}: {n[0] if n else 'a number'}" for p, n in lengths.items()])
        raise ValueError(
            errors.explained(
                f"data.arrays: all arrays must have the same length along the first axis; got {shown or 'no array'}."
            )
        )
    return Pipeline(Arrays(leaves, tree.structure(fields or examples)))


@dataclasses.dataclass(frozen=True, eq=False)
class Tokens(Source):
    """Windows of tokens in a memory-mapped file."""

    path: str
    dtype: np.dtype
    length: int
    stride: int
    total: int

    @property
    def size(self) -> int:
        """See `Node`."""
        return max((self.total - self.length - 1) // self.stride + 1, 0)

    def read(self, indices: np.ndarray) -> Sequence[Any]:
        """See `Source`."""
        return Columns([self._windows()], tree.structure(0), indices)

    def _windows(self) -> np.ndarray:
        data = bytes_of(self.path)
        item = self.dtype.itemsize
        if len(data) // item != self.total:
            raise ValueError(f"data.tokens: {self.path} has changed: it had {self.total} tokens.")
        return np.ndarray((self.size, self.length + 1), self.dtype, data, 0, (self.stride * item, item))

    def record(self, index: int) -> str:
        """See `Source`."""
        return f"{self.path}, tokens {index * self.stride} to {index * self.stride + self.length}"

    def __str__(self) -> str:
        return f"tokens({os.path.basename(self.path)}, {self.total}, {self.length}, {self.stride})"


def tokens(path: str | os.PathLike[str], dtype: Any, length: int, *, stride: int | None = None) -> Pipeline:
    """Windows of `length + 1` tokens, for inputs and targets, from a memory-mapped binary file of tokens.

    A window begins every `stride` tokens, by default every `length`, so that each token but the first is a target once.
    Tokens at the end that do not fill a window are dropped.

    >>> import tempfile
    >>> from atled import data
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     np.arange(10, dtype="uint16").tofile(file.name)
    ...     [e.tolist() for e in data.tokens(file.name, "uint16", 3)]
    [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    """
    dtype, path = np.dtype(dtype), os.path.abspath(path)
    count_checked("tokens", "length", length)
    count_checked("tokens", "stride", length if stride is None else stride)
    size = os.stat(path).st_size
    if size % dtype.itemsize:
        raise ValueError(
            errors.explained(f"data.tokens: {path} must be a file of {dtype}; it has {size} bytes.", "another dtype.")
        )
    return Pipeline(Tokens(path, dtype, length, stride or length, size // dtype.itemsize))


@dataclasses.dataclass(frozen=True, eq=False)
class Lines(Source):
    """The lines of text files."""

    paths: tuple[str, ...]
    first: np.ndarray  # the index of the first line of each file
    starts: np.ndarray  # where lines begin, in bytes
    ends: np.ndarray
    encodings: tuple[str, ...]  # one for each file
    stamps: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """See `Node`."""
        return len(self.starts)

    def read(self, indices: np.ndarray) -> Sequence[Any]:
        """See `Source`."""
        files = np.searchsorted(self.first, indices, "right") - 1
        file_numbers = np.unique(files).tolist()
        for f in file_numbers:
            check_unchanged("lines", self.paths[f], self.stamps[f])
        data = {f: bytes_of(self.paths[f]) for f in file_numbers}
        texts = []
        for file, i in zip(files.tolist(), indices.tolist()):
            line = data[file][self.starts[i] : self.ends[i]].tobytes()
            texts.append(line.decode(self.encodings[file]).removesuffix("\r"))
        return texts

    def record(self, index: int) -> str:
        """See `Source`."""
        file = int(np.searchsorted(self.first, index, "right")) - 1
        return f"{self.paths[file]}, line {index - int(self.first[file]) + 1}, byte {self.starts[index]}"

    def __str__(self) -> str:
        return f"lines({', '.join([os.path.basename(p) for p in self.paths[:3]])}{', …' * (len(self.paths) > 3)}, " + (
            f"{self.size})"
        )


def lines(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, encoding: str = "utf-8") -> Pipeline:
    r"""The lines of text files as strings, without line endings (`\n`, `\r\n`). This call scans the files for lines.

    >>> import tempfile
    >>> from atled import data
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"one\ntwo\n"), file.flush()
    ...     list(data.lines(file.name))
    ['one', 'two']
    """
    checked_paths = paths_checked("lines", paths)
    starts, ends, counts, encodings = [], [], [0], []
    stamps = tuple([stamp_of(path) for path in checked_paths])
    for path in checked_paths:
        of_file, width, order, begin = _encoding_of(encoding, bytes_of(path)[:4].tobytes())
        encodings.append(of_file)
        begins, stops = _line_ends(bytes_of(path), width, order, begin)
        starts.append(begins)
        ends.append(stops)
        counts.append(len(begins))
    first = np.cumsum(counts)[:-1]
    found = np.concatenate(starts), np.concatenate(ends)
    return Pipeline(Lines(checked_paths, first, *found, tuple(encodings), stamps))


def _encoding_of(encoding: str, start: bytes) -> tuple[str, int, str, int]:
    """Encoding, bytes per code unit, byte order and start of the text of a file that begins with the bytes `start`.

    In UTF-16 and UTF-32, a byte order mark at the beginning sets the byte order, and is not part of the first line.
    """
    name = codecs.lookup(encoding).name
    for width, root in ((2, "utf-16"), (4, "utf-32")):
        if name.startswith(root):
            marks = {"le": (codecs.BOM_UTF16_LE, codecs.BOM_UTF32_LE), "be": (codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)}
            own = {order: pair[width // 4] for order, pair in marks.items()}
            order = name[-2:] if name != root else next((o for o, m in own.items() if start.startswith(m)), "le")
            return f"{root}-{order}", width, "<" if order == "le" else ">", width * start.startswith(own[order])
    if name == "utf-8-sig":
        return "utf-8", 1, "<", 3 * start.startswith(codecs.BOM_UTF8)
    if "a\n".encode(encoding) != "a".encode(encoding) + b"\n":
        raise ValueError(
            errors.explained(f"data.lines: cannot find lines in text in {encoding}.", "the files in UTF-8.")
        )
    return encoding, 1, "<", 0


def _line_ends(
    data: np.ndarray, width: int, order: str, begin: int, chunk: int = 1 << 24
) -> tuple[np.ndarray, np.ndarray]:
    """The offsets in bytes at which the lines of a file begin and end."""
    if len(data) % width:
        raise ValueError(errors.explained(f"data.lines: text must have a multiple of {width} bytes; got {len(data)}."))
    units = data[begin:].view(f"{order}u{width}") if width > 1 else data[begin:]
    ends = [np.flatnonzero(units[i : i + chunk] == 10) + i for i in range(0, len(units), chunk)]
    ends = np.concatenate([*ends, np.zeros(0, np.int64)]).astype(np.int64)
    if len(units) and units[-1] != 10:
        ends = np.append(ends, len(units))
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)].astype(np.int64)
    return begin + width * starts, begin + width * ends


def paths_checked(name: str, paths: Any) -> tuple[str, ...]:
    """One path or several, as a tuple of absolute paths; raises unless all are files."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    absolute = tuple([os.path.abspath(p) for p in several])
    missing = [p for p in absolute if not os.path.isfile(p)]
    if missing or not absolute:
        raise FileNotFoundError(
            errors.explained(f"data.{name}: every path must be a file; got {', '.join(missing) or 'no path'}.")
        )
    return absolute


def _guarded(x: Any) -> Any:
    """An example in new containers, with read-only views of its arrays, so that changing it leaves the source alone."""
    if type(x) is dict:
        return {k: _guarded(v) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)([_guarded(v) for v in x])
    return _read_only(x) if type(x) is np.ndarray else x


@dataclasses.dataclass(frozen=True, eq=False)
class Items(Source):
    """The examples of any object with a length and indexing."""

    items: Any
    name: str

    @property
    def size(self) -> int:
        """See `Node`."""
        return len(self.items)

    def read(self, indices: np.ndarray) -> Sequence[Any]:
        """See `Source`."""
        if hasattr(self.items, "__getitems__"):
            return [_guarded(x) for x in self.items.__getitems__(indices.tolist())]
        if type(self.items) in (list, tuple):
            return [_guarded(self.items[i]) for i in indices.tolist()]
        return [owned([self.items[i]]) for i in indices.tolist()]

    def __str__(self) -> str:
        return f"source({self.name}, {self.size})"


def source(items: Any) -> Pipeline:
    """Examples from any object with `len(items)` and `items[i]`: lists, grain sources, Hugging Face or PyTorch data
    sets.

    >>> from atled import data
    >>> list(data.source(["a", "b"]).repeat(2))
    ['a', 'b', 'a', 'b']
    """
    if isinstance(items, Pipeline):
        return items
    if not hasattr(items, "__len__") or not hasattr(items, "__getitem__"):
        raise TypeError(
            errors.explained(
                f"data.source: a source must have a length and support indexing; got a {type(items).__name__}.",
                "data.iterable(make), for objects that can only be iterated over.",
            )
        )
    if isinstance(items, dict):
        raise TypeError(
            errors.explained("data.source: got a dict, which cannot be indexed by position.", "data.arrays(dict).")
        )
    return Pipeline(Items(items, type(items).__name__))
