"""Saving: writes this process's shards of a tree to files; the manifest is written last."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from atled import random
from atled.checkpoints.coordination import World
from atled.checkpoints.format import (
    ALIGNMENT,
    KEY,
    MANIFEST,
    PIECE_BYTES,
    SPAN,
    CheckpointError,
    Entry,
    Manifest,
    Piece,
    crc32,
    cut,
    stored,
)
from atled.checkpoints.storage import place
from atled.checkpoints.tree_matching import settings_of
from atled.core import errors, tree
from atled.core.array import Array, is_masked, shown, type_of
from atled.core.trace import Tracer
from atled.engine import client
from atled.engine.array import shards

THREADS = 4


@dataclasses.dataclass(frozen=True)
class Part:
    """A box of an array, which this process writes."""

    path: str
    start: tuple[int, ...]
    values: np.ndarray  # in C order


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A snapshot of a tree: dtypes and shapes by path, and the values of this process's shards."""

    types: dict[str, tuple[str, tuple[int, ...]]]
    parts: list[Part]
    statics: dict[str, Any]

    @property
    def nbytes(self) -> int:
        """The bytes of this process's parts."""
        return sum([p.values.nbytes for p in self.parts])


def snapshot(x: Any) -> Snapshot:
    """A snapshot of a tree. Shards on the CPU are not copied."""
    types: dict[str, tuple[str, tuple[int, ...]]] = {}
    parts: list[Part] = []
    for path, leaf in named_leaves(x):
        if isinstance(leaf, Tracer):
            raise TypeError(
                errors.explained(
                    f"checkpoints.save: {path} is a tracer, {type_of(leaf)}, which has no values while the function is "
                    "traced.",
                    "save the result of the function.",
                )
            )
        name, dims, boxes = _boxes(path, leaf)
        types[path] = name, dims
        parts += [Part(path, start, values) for start, values in boxes]
    return Snapshot(types, parts, settings_of(x))


def named_leaves(x: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree with their paths, such as `model/blocks/0/weight`."""
    leaves = [("/".join([_step(k) for k in path]), leaf) for path, leaf in tree.leaves_with_path(x)]
    paths = [path for path, _ in leaves]
    if len(set(paths)) < len(paths):
        twice = next(p for p in paths if paths.count(p) > 1)
        raise ValueError(errors.explained(f"checkpoints: paths must be unique; two leaves are at {twice!r}."))
    return leaves


def _step(key: Any) -> str:
    """A component of a path, with slashes escaped."""
    return str(key[0]).replace("%", "%25").replace("/", "%2F")


def _boxes(path: str, leaf: Any) -> tuple[str, tuple[int, ...], list[tuple[tuple[int, ...], Any]]]:
    """The dtype and the shape of a leaf, and the boxes that this process writes, as (start, values)."""
    is_first = client.process_index() == 0
    if is_masked(leaf):
        raise TypeError(errors.explained(f"checkpoints.save: {path} is a masked array.", "x.filled(0), and its mask."))
    try:
        t = type_of(leaf)
    except TypeError:
        raise TypeError(
            errors.explained(
                f"checkpoints.save: the leaves must be arrays or numbers; {path} is {shown(leaf)}.",
                "metadata=… for JSON-serializable metadata.",
            )
        ) from None
    if t.kind == "k":
        _, dims, boxes = _boxes(path, random.key_data(leaf))
        return KEY, dims[:-1], boxes
    if not isinstance(leaf, Array):
        values = np.asarray(leaf)  # Python numbers keep all digits
        if values.dtype == object:
            raise TypeError(errors.explained(f"checkpoints.save: {path}, {leaf!r}, does not fit into any dtype."))
        dtype, _ = stored(values.dtype.name, ())
        values = np.asarray(values, dtype, order="C")
        return dtype.name, values.shape, [((0,) * values.ndim, values)] if is_first else []
    shard_boxes = []
    for s in shards(leaf):  # pyright: ignore[reportArgumentType]
        if s.replica_id == 0 and (is_first or not leaf.sharding.is_fully_addressable):
            start = tuple([i.start or 0 for i in s.index])
            shard_boxes.append((start, np.ascontiguousarray(np.asarray(s.data)).reshape(np.shape(s.data))))
    return t.dtype.name, t.shape, shard_boxes


# -- files ------------------------------------------------------------------------------------------------------------


def pieces_of(parts: Sequence[Part]) -> list[Part]:
    """Split parts into pieces of at most `PIECE_BYTES`."""
    pieces = []
    for part in parts:
        dtype, dims = part.values.dtype, part.values.shape
        for start, shape in cut((0,) * len(dims), dims, dtype.itemsize):
            values = part.values[(*[slice(a, a + n) for a, n in zip(start, shape)], ...)]
            pieces.append(Part(part.path, tuple([a + b for a, b in zip(part.start, start)]), values))
    return pieces


def _groups(parts: Sequence[Part]) -> list[list[Part]]:
    """Pieces grouped by the file to which they are written."""
    groups: list[list[Part]] = []
    room = 0
    for piece in pieces_of(parts):
        size = -(-piece.values.nbytes // ALIGNMENT) * ALIGNMENT
        if size > room or not groups:
            groups.append([])
            room = PIECE_BYTES
        groups[-1].append(piece)
        room -= size
    return groups


def _write_file(where: Any, name: str, group: Sequence[Part]) -> tuple[int, list[tuple[str, Piece]]]:
    """Write the pieces of a file; returns its size, and the path and location of each piece."""
    located: list[tuple[str, Piece]] = []
    end = 0

    def chunks() -> Iterator[Any]:
        nonlocal end
        for part in group:
            offset = -(-end // ALIGNMENT) * ALIGNMENT
            if offset > end:
                yield bytes(offset - end)
            raw = bytes_of(part.values)
            crc = 0
            for i in range(0, len(raw), SPAN):
                crc = crc32(raw[i : i + SPAN], crc)
                yield raw[i : i + SPAN]
            end = offset + len(raw)
            located.append((part.path, Piece(name, offset, part.start, part.values.shape, crc)))

    where.write(name, chunks())
    return end, located


def bytes_of(values: np.ndarray) -> memoryview:
    """The memory of an array, which must be in C order and little-endian."""
    return memoryview(values.reshape(-1).view(np.uint8))  # pyright: ignore[reportArgumentType]


def plain(metadata: Any) -> Any:
    """A copy of metadata through JSON; raises if it is not serializable."""
    try:
        return json.loads(json.dumps(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(errors.explained(f"checkpoints.save: metadata must be JSON-serializable: {error}.")) from None


def write(path: Any, taken: Snapshot, metadata: Any, who: str) -> None:
    """Write a snapshot to a directory or URL; all processes call this together, each with its own shards. On return,
    the checkpoint is complete.

    Args:
        who: the name of the saver, the same in all processes; saves with one name must be in the same order in all.
    """
    where = place(path)
    world = World(who)
    name = ""
    try:
        where.prepare()
        types = json.dumps(list(taken.types.items())).encode()
        name = world.agreed(f"{where}, {len(taken.types)} arrays ({crc32(types):08x})")
        files, pieces = _write_all(where, name, taken)
        everything = world.collected({"files": files, "pieces": pieces})
        if everything is not None:  # on the first process
            before = _files_before(where)
            where.replace(MANIFEST, _manifest(taken, everything, metadata).to_bytes())
            where.delete([n for n in before if not n.startswith(f"{name}-")])
        world.finished()
    except BaseException as error:
        world.failed(error)
        if name and world.is_void and not _may_be_there(where, name):
            where.delete([n for n in where.sizes() if n.startswith(f"{name}-{client.process_index()}-")])
        where.leave()
        raise


def _may_be_there(where: Any, name: str) -> bool:
    """Whether a manifest may list the files of a failed save, which can fail after it has written the manifest."""
    try:
        return name.encode() in (where.read(MANIFEST) or b"")
    except CheckpointError:
        return True


def _files_before(where: Any) -> list[str]:
    """The files of the checkpoint to be replaced, and files of interrupted saves that are over an hour old."""
    try:
        known = list(Manifest.from_bytes(where.read(MANIFEST) or b"", str(where)).files)
    except CheckpointError:
        known = []
    return [*known, *[n for n in where.old_files(3600) if _OWN_FILE.fullmatch(n)]]


def own_files(where: Any) -> list[str]:
    """The files of a checkpoint, the manifest first, and of interrupted saves, but no files that a user added."""
    return [MANIFEST, *[n for n in where.sizes() if _OWN_FILE.fullmatch(n)]]


_OWN_FILE = re.compile(r"[0-9a-f]{8}-\d+-\d+\.data|\.manifest\.[0-9a-f]{8}")


def at_once(f: Callable[..., Any], *items: Iterable[Any], threads: int = THREADS) -> list[Any]:
    """Apply a function to each item, in several threads. After an error, calls not yet started are canceled."""
    with ThreadPoolExecutor(threads, "atled-checkpoint") as pool:
        try:
            waiting = [pool.submit(f, *args) for args in zip(*items, strict=True)]
        except RuntimeError:  # the interpreter is shutting down, and starts no more threads
            return [f(*args) for args in zip(*items, strict=True)]
        try:
            return [w.result() for w in waiting]
        except BaseException:
            for w in waiting:
                w.cancel()
            raise


def _write_all(where: Any, name: str, taken: Snapshot) -> tuple[dict[str, int], list[Any]]:
    """Write this process's files, several concurrently."""
    groups = _groups(taken.parts)
    names = [f"{name}-{client.process_index()}-{i}.data" for i in range(len(groups))]
    written = at_once(lambda n, group: _write_file(where, n, group), names, groups)
    files = {n: size for n, (size, _) in zip(names, written, strict=True)}
    return files, [[path, dataclasses.astuple(piece)] for _, pieces in written for path, piece in pieces]


def _manifest(taken: Snapshot, everything: Sequence[Any], metadata: Any) -> Manifest:
    pieces: dict[str, list[Piece]] = {path: [] for path in taken.types}
    files: dict[str, int] = {}
    for one in everything:
        files.update(one["files"])
        for path, (file, offset, start, shape, crc) in one["pieces"]:
            pieces[path].append(Piece(file, offset, tuple(start), tuple(shape), crc))
    arrays = {path: Entry(*taken.types[path], tuple(leaf_pieces)) for path, leaf_pieces in pieces.items()}
    for path, entry in arrays.items():
        _, dims = entry.stored
        if sum([math.prod(p.shape) for p in entry.pieces]) != math.prod(dims):
            raise CheckpointError(f"checkpoints.save: the shards of {path} in all processes do not make up {entry}.")
    return Manifest(arrays, files, taken.statics, metadata)
