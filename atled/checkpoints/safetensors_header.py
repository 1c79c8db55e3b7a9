"""Reads and validates the headers of safetensors files, and indices. `safetensors.py` has the public functions.

The header is checked against the file size before any memory is allocated. Files that other readers reject are
rejected, and so are some files that they accept: with duplicate names, booleans other than 0 and 1, or unknown fields.
"""

from __future__ import annotations

import collections
import json
import math
import mmap
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from atled.checkpoints.format import CheckpointError
from atled.core import errors

HEADER_LIMIT = 100_000_000  # bytes: other readers reject longer headers, too
# By name in the format: bits per number, NumPy's type. In files, arrays are ordered by dtype, the last of these first.
DTYPES: dict[str, tuple[int, Any]] = {
    "BOOL": (8, np.bool_), "F4": (4, None), "F6_E2M3": (6, None), "F6_E3M2": (6, None),
    "U8": (8, np.uint8), "I8": (8, np.int8), "F8_E5M2": (8, ml_dtypes.float8_e5m2),
    "F8_E4M3": (8, ml_dtypes.float8_e4m3fn), "F8_E8M0": (8, ml_dtypes.float8_e8m0fnu),
    "F8_E4M3FNUZ": (8, ml_dtypes.float8_e4m3fnuz), "F8_E5M2FNUZ": (8, ml_dtypes.float8_e5m2fnuz),
    "I16": (16, np.int16), "U16": (16, np.uint16), "F16": (16, np.float16), "BF16": (16, ml_dtypes.bfloat16),
    "I32": (32, np.int32), "U32": (32, np.uint32), "F32": (32, np.float32), "C64": (64, np.complex64),
    "F64": (64, np.float64), "I64": (64, np.int64), "U64": (64, np.uint64),
}  # fmt: skip


class Entry(NamedTuple):
    """An array in a file: its dtype tag, shape and byte range after the header."""

    tag: str
    shape: tuple[int, ...]
    start: int
    end: int


class File:
    """A memory-mapped file whose header has been validated."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < 8:
                    raise bad(path, f"a file must begin with 8 bytes for the header's length; it has {size} bytes")
                self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise bad(path, f"the file could not be read: {error.strerror or error}") from None
        length = int.from_bytes(self.bytes[:8], "little")
        if length > HEADER_LIMIT:
            raise bad(path, f"the header claims {length} bytes; {HEADER_LIMIT} is the limit")
        self.start = 8 + length
        if self.start > len(self.bytes):
            raise bad(
                path, f"the file is truncated: the header claims {length} bytes, but {len(self.bytes) - 8} follow"
            )
        told = _parsed(path, self.bytes[8 : self.start], is_header=True)
        self.words = _words(path, told.pop("__metadata__", {}))
        self.entries = {name: _entry(path, name, e) for name, e in told.items()}
        _cover(path, self.entries, len(self.bytes) - self.start)

    def arrays(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """The arrays with these names, as views of the mapped bytes."""
        require(self.path, names, self.entries)
        return {name: self.array(name) for name in names}

    def array(self, name: str) -> np.ndarray:
        """The array with this name, as a view of the mapped bytes."""
        entry = self.entries[name]
        kind = DTYPES[entry.tag][1]
        if kind is None:
            raise bad(self.path, f"{short(name)} is {entry.tag}, which NumPy cannot represent", "names without it.")
        place = {"buffer": self.bytes, "offset": self.start + entry.start}
        if kind is np.bool_ and (np.ndarray(entry.shape, np.uint8, **place) > 1).any():
            raise bad(self.path, f"{short(name)} is BOOL, but its bytes are not all 0 or 1")
        try:
            return np.ndarray(entry.shape, kind, **place)
        except ValueError as error:  # more axes than NumPy has
            raise bad(self.path, f"{short(name)} has a shape that NumPy does not support: {error}") from None


def _words(path: pathlib.Path, told: Any) -> dict[str, str]:
    if not isinstance(told, dict) or not all([isinstance(word, str) for word in told.values()]):
        raise bad(path, "__metadata__ must be an object of strings")
    return told


def _entry(path: pathlib.Path, name: str, told: Any) -> Entry:
    """The entry of an array in a header, validated."""
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "data_offsets"}:
        raise bad(path, f"{short(name)} must have dtype, shape and data_offsets, and no other fields")
    tag, shape, place = told["dtype"], told["shape"], told["data_offsets"]
    if not isinstance(tag, str) or tag not in DTYPES:
        raise bad(path, f"{short(name)} has the dtype {short(tag)}, which the format does not have")
    if not isinstance(shape, list) or not all([type(n) is int for n in shape]):
        raise bad(path, f"{short(name)} must have a shape of whole numbers; got {short(shape)}")
    if not isinstance(place, list) or len(place) != 2 or not all([type(n) is int for n in place]):
        raise bad(path, f"{short(name)} must have two offsets; got {short(place)}")
    bits = math.prod(shape) * DTYPES[tag][0]
    if math.prod([n or 1 for n in shape]) * DTYPES[tag][0] >= 2**63:
        raise bad(path, f"{short(name)} has a shape too large for any memory: {short(shape)}")
    if bits % 8 or place[1] - place[0] != bits // 8:
        raise bad(
            path, f"{short(name)} is {tag}{short(shape)}, {bits / 8:g} bytes, but has {place[1] - place[0]} bytes"
        )
    return Entry(tag, tuple(shape), *place)


def _cover(path: pathlib.Path, entries: Mapping[str, Entry], size: int) -> None:
    """Raise unless the arrays cover all bytes after the header without gaps or overlaps."""
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != end:
            what = (
                "overlaps with another array"
                if entry.start < end
                else f"leaves out {entry.start - end} bytes before it"
            )
            raise bad(path, f"{short(name)} begins at {entry.start} and {what}")
        end = entry.end
    if end != size:
        missing = f"the file is truncated: {end - size} bytes are missing"
        what = missing if end > size else f"{size - end} bytes belong to no array"
        raise bad(path, what)


def weight_map(path: pathlib.Path) -> dict[str, str]:
    """The dict of an index from array names to file names, validated."""
    if path.stat().st_size > HEADER_LIMIT:
        raise bad(path, f"an index must have at most {HEADER_LIMIT} bytes")
    files = _parsed(path, path.read_bytes(), is_header=False).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise bad(path, "an index must have a weight_map from names to files")
    for name, file in files.items():
        if not isinstance(file, str) or file in ("", ".", "..") or re.search(r"[/\\\0]", file):
            raise bad(path, f"{short(name)} must be in a file of the same directory; got {short(file)}")
    return files


def _parsed(path: pathlib.Path, data: bytes, is_header: bool) -> dict[str, Any]:
    """A JSON object, parsed; must be UTF-8 without duplicate names, and headers may have only numbers ≥ 0 and whole."""
    hooks: dict[str, Any] = {"parse_int": _natural, "parse_float": _natural} if is_header else {}
    try:
        content = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_natural, **hooks)
    except RecursionError:
        raise bad(path, "the JSON is nested too deeply") from None
    except ValueError as error:
        raise bad(path, f"the JSON is not valid: {_cut(str(error))}") from None
    if not isinstance(content, dict):
        raise bad(path, f"the JSON must be an object; got {type(content).__name__}")
    return content


def _natural(text: str) -> int:
    if not text.isdecimal() or len(text) > 20:
        raise ValueError(f"numbers must be whole, not negative and less than 2**64; got {_cut(text)}")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        name, _ = collections.Counter([name for name, _ in pairs]).most_common(1)[0]
        raise ValueError(f"{short(name)} appears twice")
    for name, value in pairs:
        if not is_text(name) or (isinstance(value, str) and not is_text(value)):
            raise ValueError(f"{short(name)} contains a lone surrogate")
    return mapping


def require(path: pathlib.Path, names: Sequence[str], there: Mapping[str, Any]) -> None:
    """Raise if any of `names` is missing in a file or index."""
    absent = [name for name in names if name not in there]
    if absent:
        some = ", ".join([short(name) for name in list(there)[:6]])
        raise bad(path, f"there is no array {short(absent[0])}", f"one of {some}{', …' if len(there) > 6 else ''}")


def short(x: Any) -> str:
    """The `repr` of a value, cut to 200 characters for an error message."""
    return _cut(repr(x))


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def bad(path: pathlib.Path, what: str, instead: str = "") -> CheckpointError:
    """The error for an invalid file."""
    return CheckpointError(errors.explained(f"safetensors.load: {path}: {what}.", instead))


def is_text(name: str) -> bool:
    """Whether a string can be encoded as UTF-8: it has no lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
