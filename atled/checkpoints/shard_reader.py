"""Loading: reads the pieces that this process needs, and verifies their checksums."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from atled import random
from atled.checkpoints.format import (
    ALIGNMENT,
    KEY,
    MANIFEST,
    CheckpointError,
    Damaged,
    Entry,
    Manifest,
    Piece,
    crc32,
    meet,
)
from atled.checkpoints.shard_writer import at_once, bytes_of, named_leaves
from atled.checkpoints.storage import place
from atled.checkpoints.tree_matching import matched
from atled.core import dtypes, errors, tree
from atled.core.array import Array, type_of
from atled.core.former_names import formerly
from atled.core.sharding import Placed, SingleDeviceSharding, asked_sharding
from atled.core.types import ArrayType, ShapeDtypeStruct
from atled.engine.array import assemble, wrap
from atled.engine.client import default_device
from atled.staging.device_put import device_put


def manifest(path: Any) -> Manifest:
    """The manifest of a checkpoint: arrays by path, files, settings, and metadata.

    >>> import tempfile
    >>> from atled import checkpoints
    >>> with tempfile.TemporaryDirectory() as path:
    ...     checkpoints.save(path, {"w": np.arange(3.0), "b": np.ones(2)}, metadata={"epoch": 7})
    ...     print(sorted(checkpoints.manifest(path).arrays), checkpoints.manifest(path).metadata)
    ['b', 'w'] {'epoch': 7}
    """
    where = place(path)
    data = where.read(MANIFEST)
    if data is None:
        raise CheckpointError(
            errors.explained(f"checkpoints: {where} has no checkpoint: it contains no manifest.", "another path.")
        )
    return Manifest.from_bytes(data, str(where))


@formerly(like="template")
def load(
    path: Any,
    template: Any = None,
    *,
    partial: bool | Sequence[str] = False,
    rename: Mapping[str, str] | Callable[[str], str] | None = None,
    cast: bool = False,
) -> Any:
    """The tree of a checkpoint, with verified checksums.

    Args:
        path: a directory, a URL, or a dict, as for `save`.
        template: a tree like the saved tree: the result has the saved arrays with the shardings of `template`, which
            may be a new model, or a tree of shapes (`eval_shape`), which needs no extra memory. Without `template`, the
            result is a dict of NumPy arrays by path, such as `"model/blocks/0/weight"`.
        partial: True to allow arrays that only the checkpoint has, which are ignored, or only `template` has, which
            keep their values; or patterns of paths for which this is allowed.
        rename: new names of paths in the checkpoint: a dict of path prefixes, or a function of a path.
        cast: whether to convert arrays that have another dtype in `template`. Floating and complex numbers may lose
            digits; values that the dtype cannot represent raise.

    Raises:
        CheckpointError: if the checkpoint is damaged, naming the array, or if it does not match `template`: the message
            lists missing and unexpected arrays, and arrays with another shape or dtype.

    >>> import tempfile
    >>> from atled import checkpoints
    >>> import atled.numpy as jnp
    >>> with tempfile.TemporaryDirectory() as path:
    ...     checkpoints.save(path, {"w": jnp.arange(3), "step": 7})
    ...     print(checkpoints.load(path, template={"w": jnp.zeros(3, "int32"), "step": 0}))
    {'step': 7, 'w': Array([0, 1, 2], dtype=int32)}
    """
    where = place(path)
    while True:
        saved_manifest = manifest(where)
        try:
            return _loaded(where, saved_manifest, template, partial, rename, cast)
        except Damaged:
            if manifest(where) == saved_manifest:
                raise  # otherwise, a save has replaced the checkpoint: read the new one


def _loaded(where: Any, found: Manifest, template: Any, partial: Any, rename: Any, cast: bool) -> Any:
    check_files(where, found)
    if template is None:
        paths = list(found.arrays)
        return dict(zip(paths, _read(where, found, paths, [None] * len(paths)), strict=True))
    leaves, structure = tree.flatten(template)
    names = [name for name, _ in named_leaves(template)]
    plan = matched(where, found, template, dict(zip(names, leaves, strict=True)), partial, rename, cast)
    sources = [(i, plan.sources[n]) for i, n in enumerate(names) if n in plan.sources]
    read = _read(where, found, [source for _, source in sources], [leaves[i] for i, _ in sources])
    for (i, _), x in zip(sources, read, strict=True):
        leaves[i] = x
    return structure.unflatten(leaves)


def check_files(where: Any, found: Manifest) -> None:
    """Raise if files are missing or have another size; called before memory is allocated for their arrays."""
    sizes = where.sizes()
    for name, size in found.files.items():
        if name not in sizes or sizes[name] not in (None, size):
            used = [p for p, e in found.arrays.items() if any([x.file == name for x in e.pieces])]
            raise Damaged(
                f"{where}: {(used or ['nothing'])[0]} is damaged: its file {name} is missing or has a different size."
            )


def verify(path: Any, report: Callable[[str, str], None] | None = None) -> int:
    """Read every piece of a checkpoint and verify its checksum; returns the number of bytes.

    Raises:
        CheckpointError: at the first damaged array, which it names; with `report`, after all arrays have been read and
            `report(path, reason)` was called for each damaged one.

    >>> import tempfile
    >>> from atled import checkpoints
    >>> with tempfile.TemporaryDirectory() as path:
    ...     checkpoints.save(path, {"w": np.ones(3, "float32")})
    ...     print(checkpoints.verify(path))
    12
    """
    saved, where = manifest(path), place(path)
    pieces = [(name, e.stored[0].itemsize, p) for name, e in saved.arrays.items() for p in e.pieces]

    def look(name: str, itemsize: int, piece: Piece) -> str:
        try:
            _read_piece(where, name, piece, memoryview(bytearray(itemsize * math.prod(piece.shape))))
        except Damaged as error:
            if report is None:
                raise
            return str(error)
        return ""

    bad = {}
    for (name, *_), why in zip(pieces, at_once(look, *zip(*pieces, strict=True)) if pieces else [], strict=True):
        if why and name not in bad:
            bad[name] = why
    for name, why in bad.items():
        assert report is not None
        report(name, why)
    if bad:
        raise Damaged(f"{where}: {len(bad)} of {len(saved.arrays)} arrays are damaged: {', '.join(list(bad)[:8])}.")
    return sum([e.nbytes for e in saved.arrays.values()])


# -- from pieces to arrays -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class _Box:
    """A part of an array to read, with memory for it."""

    start: tuple[int, ...]
    values: np.ndarray


@dataclasses.dataclass
class _Target:
    """A requested array: the boxes to read, and the function that builds the array from them."""

    path: str
    entry: Entry
    template: Any
    boxes: dict[Any, _Box]
    finish: Callable[[dict[Any, _Box]], Any]


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Aligned memory for an array, which devices can use without a copy."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    offset = -raw.ctypes.data % ALIGNMENT
    return raw[offset : offset + size].view(dtype).reshape(shape)


def _target(path: str, entry: Entry, template: Any) -> _Target:
    """The boxes to read for a leaf, and the function that builds the leaf from them."""
    dtype, dims = entry.stored
    whole = (0,) * len(dims)
    if entry.dtype == KEY:
        is_placed = getattr(template, "committed", asked_sharding(template) is not None)
        where = asked_sharding(template) if is_placed else None

        def keys(boxes: dict[Any, _Box]) -> Any:
            wrapped = random.wrap_key_data(boxes[None].values)
            return wrapped if where is None else device_put(wrapped, where)

        return _Target(
            path, entry, template, {None: _Box(whole, empty(dims, dtype))}, keys if template is not None else _host
        )
    if not isinstance(template, (Array, ShapeDtypeStruct)):
        is_number = isinstance(template, (bool, int, float, complex)) and not isinstance(template, np.generic)
        finish = _host
        if is_number:
            is_exact = type(template) is int and dtypes.is_integer(dtype)  # Python integers have any size
            kind = dtype if is_exact else np.asarray(template).dtype
            finish = lambda boxes: exactly(path, boxes[None].values, kind).item()  # noqa: E731
        elif isinstance(template, np.ndarray):
            finish = lambda boxes: exactly(path, boxes[None].values, template.dtype)  # noqa: E731
        elif isinstance(template, np.generic):
            finish = lambda boxes: exactly(path, boxes[None].values, template.dtype)[()]  # noqa: E731
        return _Target(path, entry, template, {None: _Box(whole, empty(dims, dtype))}, finish)
    sharding = asked_sharding(template) or SingleDeviceSharding(default_device())
    is_committed = getattr(template, "committed", asked_sharding(template) is not None)
    indices = sharding.addressable_devices_indices_map(dims)
    boxes: dict[Any, _Box] = {}
    for index in indices.values():
        if str(index) not in boxes:
            ends = [s.indices(n) for s, n in zip(index, dims)]
            boxes[str(index)] = _Box(tuple([a for a, _, _ in ends]), empty(tuple([b - a for a, b, _ in ends]), dtype))

    def on_devices(boxes: dict[Any, _Box]) -> Any:
        wanted_dtype = type_of(template).dtype if isinstance(template, Array) else np.dtype(template.dtype)
        weak = type_of(template).weak if isinstance(template, Array) else False
        values = {k: exactly(path, b.values, wanted_dtype) for k, b in boxes.items()}
        placed = Placed(ArrayType(dims, wanted_dtype, weak), sharding, is_committed)
        return wrap(assemble(placed, [(d, values[str(i)]) for d, i in indices.items()], compares=False))

    return _Target(path, entry, template, boxes, on_devices)


def exactly(path: str, values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values converted to another dtype. Floating and complex numbers may lose digits; raises if an integer would lose
    a fraction or be out of range, a real number would lose an imaginary part, or a finite number would become inf.
    """
    if values.dtype == dtype:
        return values
    before, after = dtypes.kind(values.dtype), dtypes.kind(np.dtype(dtype))
    wide = {"b": np.uint8, "i": np.int64, "u": np.uint64, "f": np.float64, "c": values.dtype}
    given = values if before == after == "f" else values.astype(wide[before])
    is_real = after == "c" or not np.imag(given).any()
    given = given if after == "c" else np.real(given)
    with np.errstate(all="ignore"):
        converted = given.astype(dtype)
        if after in "iub":
            low, high = (0, 1) if after == "b" else (int(dtypes.iinfo(dtype).min), int(dtypes.iinfo(dtype).max))
            # `high + 1` is a power of two, which floats represent exactly; `high` may not be
            fits = bool(((given >= low) & (given < high + 1) & (given == np.trunc(given))).all())
        else:
            fits = bool((np.isfinite(converted) | ~np.isfinite(given)).all())
    if not (is_real and fits):
        raise CheckpointError(
            errors.explained(
                f"checkpoints.load: {path} has values that {np.dtype(dtype)} cannot represent.", "another dtype."
            )
        )
    return converted


def _host(boxes: dict[Any, _Box]) -> np.ndarray:
    return boxes[None].values


def _read(where: Any, found: Manifest, paths: Sequence[str], likes: Sequence[Any]) -> list[Any]:
    """The arrays at `paths`, each built like its entry in `likes`; None there gives a NumPy array."""
    targets = [_target(p, found.arrays[p], template) for p, template in zip(paths, likes, strict=True)]
    todo = [
        (where, t, piece, fits)
        for t in targets
        for piece in t.entry.pieces
        if (fits := [b for b in t.boxes.values() if meet(piece, b.start, b.values.shape) is not None])
    ]
    if todo:
        at_once(_fill, *zip(*todo, strict=True))
    return [t.finish(t.boxes) for t in targets]


def _fill(where: Any, target: _Target, piece: Piece, boxes: Sequence[_Box]) -> None:
    """Read a piece into the boxes that it overlaps, without a copy if it is a contiguous part of a single box."""
    dtype = target.entry.stored[0]
    first = boxes[0]
    inside = tuple([slice(a - b, a - b + n) for a, b, n in zip(piece.start, first.start, piece.shape)])
    is_within = meet(piece, first.start, first.values.shape) == (piece.start, piece.shape)
    into = first.values[(*inside, ...)] if len(boxes) == 1 and is_within else None
    is_direct = into is not None and into.flags.c_contiguous
    values = into if is_direct and into is not None else empty(piece.shape, dtype)
    _read_piece(where, target.path, piece, bytes_of(values))
    if is_direct:
        return
    for box in boxes:
        common = meet(piece, box.start, box.values.shape)
        assert common is not None
        start, shape = common
        to = tuple([slice(a - b, a - b + n) for a, b, n in zip(start, box.start, shape)])
        of = tuple([slice(a - b, a - b + n) for a, b, n in zip(start, piece.start, shape)])
        box.values[to] = values[of]


def _read_piece(where: Any, path: str, piece: Piece, into: memoryview) -> None:
    """Read the bytes of a piece, and compare its checksum."""
    count = crc = 0
    for part in where.parts(piece.file, piece.offset, into):
        crc = crc32(part, crc)
        count += len(part)
    if count != len(into) or crc != piece.crc32:
        why = "its file is missing or too short" if count != len(into) else "its checksum does not match"
        raise Damaged(f"{where}: {path} is damaged: {why} ({piece.file}, {len(into)} bytes at {piece.offset}).")
