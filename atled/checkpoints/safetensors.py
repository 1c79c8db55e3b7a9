"""Files in the safetensors format, which many libraries read and write: arrays and string metadata by name.

A file is the length of its header in 8 bytes, the header in JSON (names, dtypes, shapes, offsets) and the bytes of the
arrays, one after the other. Large models come in several files, with an index from names to files.
`safetensors_header.py` validates headers; an invalid file raises `CheckpointError`.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.checkpoints.format import CheckpointError
from atled.checkpoints.safetensors_header import DTYPES, HEADER_LIMIT, File, bad, is_text, require, short, weight_map
from atled.checkpoints.storage import Local
from atled.core import errors
from atled.core import tree as trees
from atled.core.array import Array, describe

__all__ = ["load", "metadata", "save"]
__dir__ = __all__.copy

_SUFFIX, _INDEX, _SHARD = ".safetensors", ".safetensors.index.json", re.compile(r"-\d{5}-of-\d{5}\.safetensors$")
_TAGS = {np.dtype(kind).name: tag for tag, (_, kind) in DTYPES.items() if kind is not None}
_ORDER = {tag: i for i, tag in enumerate(reversed(DTYPES))}


class _Leaf(NamedTuple):
    """An array to write, with its name and dtype tag."""

    name: str
    array: Any
    tag: str

    @property
    def nbytes(self) -> int:
        return math.prod(self.array.shape) * DTYPES[self.tag][0] // 8


def save(
    path: str | os.PathLike[str],
    tree: Any,
    *,
    metadata: Mapping[str, str] | None = None,
    shard_bytes: int | None = None,
) -> None:
    """Write the arrays of a tree, named by their paths joined with dots: `blocks.0.weight`.

    Args:
        path: the path of the file, which ends in `.safetensors`.
        tree: any pytree of arrays, such as a model or a dict of arrays by name.
        metadata: a dict of strings, which `metadata` returns.
        shard_bytes: the maximum bytes of arrays per file; a larger array has its own file. A larger tree is written to
            several files, `name-00001-of-00003.safetensors`, and an index.

    A file is written under a temporary name and renamed when it is on disk. With several files, the old index is
    removed first and the new one written last, to never mix old and new files. Arrays are fetched one at a time.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as there:
    ...     save(f"{there}/model.safetensors", {"fc": {"weight": np.ones((2, 3), "float32")}})
    ...     list(load(f"{there}/model.safetensors"))
    ['fc.weight']
    """
    file = _checked_path(path, shard_bytes)
    shards = _split(_leaves(tree), shard_bytes)
    headers = [_header(shard, _checked_words(metadata)) for shard in shards]
    stem, place = file.name.removesuffix(_SUFFIX), Local(file.parent)
    index = f"{stem}{_INDEX}"
    old = _shards_before(file.parent / index, stem)
    if len(shards) == 1:
        names = [file.name]
        _put(place, {file.name: _chunks(headers[0], shards[0])})
        place.delete([index])
    else:
        names = [f"{stem}-{i:05}-of-{len(shards):05}{_SUFFIX}" for i in range(1, len(shards) + 1)]
        content = {n: _chunks(header, shard) for n, header, shard in zip(names, headers, shards, strict=True)}
        _put(place, content, before=index)
        _put(place, {index: [_index(names, shards)]})
        place.delete([file.name])
    place.delete([n for n in old if n not in names])
    place.sync()


def _shards_before(index: pathlib.Path, stem: str) -> list[str]:
    """The files `stem-….safetensors` in an index that is about to be replaced."""
    try:
        listed = set(weight_map(index).values())
    except (CheckpointError, OSError):
        return []
    return [n for n in sorted(listed) if n.startswith(f"{stem}-") and _SHARD.fullmatch(n, len(stem))]


def _checked_path(path: str | os.PathLike[str], shard_bytes: int | None) -> pathlib.Path:
    """The path to write to; raises if it is invalid."""
    file = pathlib.Path(path)
    if not file.name.endswith(_SUFFIX) or file.is_dir():
        raise ValueError(
            errors.explained(
                f"safetensors.save: the path must end in {_SUFFIX}; got {str(path)!r}.",
                f'"model{_SUFFIX}".',
            )
        )
    if shard_bytes is not None and (not isinstance(shard_bytes, int) or shard_bytes < 1):
        raise ValueError(errors.explained(f"safetensors.save: shard_bytes must be at least 1; got {shard_bytes!r}."))
    return file


def _put(place: Local, content: Mapping[str, Iterable[Any]], before: str | None = None) -> None:
    """Write files under temporary names; when all are on disk, remove the file `before`, if any, and rename them."""
    beside = {f".{name}.{uuid.uuid4().hex[:8]}": name for name in content}
    try:
        for hidden, name in beside.items():
            place.write(hidden, content[name])
        if before is not None:
            place.delete([before])
            place.sync()
        for hidden, name in beside.items():
            os.replace(place.path / hidden, place.path / name)
        place.sync()
    finally:
        place.delete(beside)


def _leaves(tree: Any) -> list[_Leaf]:
    """The arrays of a tree with their names."""
    leaves: dict[str, _Leaf] = {}
    for path, x in trees.leaves_with_path(tree):
        name = ".".join([str(key[0]) for key in path])
        if not path:
            raise TypeError(
                errors.explained(f"safetensors.save: arrays must have names; got {describe(x)}.", "{'x': x}.")
            )
        if name in leaves or name == "__metadata__" or not is_text(name):
            what = "appears twice" if name in leaves else "cannot be written"
            raise ValueError(errors.explained(f"safetensors.save: names must be unique strings; {name!r} {what}."))
        leaves[name] = _Leaf(name, x, _tag(name, x))
    return list(leaves.values())


def _tag(name: str, x: Any) -> str:
    """The name of an array's dtype in the format."""
    if not isinstance(x, (Array, np.ndarray, np.generic)) or isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            errors.explained(
                f"safetensors.save: leaves must be arrays; {name} is {describe(x)}.",
                "numpy.asarray(x, dtype), or a tree without it; strings can go into metadata.",
            )
        )
    if not getattr(x, "is_fully_addressable", True):
        raise ValueError(
            errors.explained(
                f"safetensors.save: {name} is sharded over several processes.",
                "distributed.gather, or checkpoints.save.",
            )
        )
    tag = _TAGS.get(getattr(x.dtype, "name", str(x.dtype)))
    if tag is None:
        instead = "random.key_data(x)." if str(x.dtype).startswith("key") else "x.astype(another dtype)."
        raise TypeError(
            errors.explained(f"safetensors.save: the format has no {x.dtype}, the dtype of {name}.", instead)
        )
    return tag


def _checked_words(metadata: Any) -> dict[str, str]:
    words = {} if metadata is None else metadata
    if not isinstance(words, Mapping) or not all(
        [isinstance(s, str) and is_text(s) for pair in words.items() for s in pair]
    ):
        raise TypeError(
            errors.explained(
                "safetensors.save: metadata must be a dict of strings.", '{"step": str(step)}, or json.dumps.'
            )
        )
    return dict(words)


def _split(leaves: list[_Leaf], shard_bytes: int | None) -> list[list[_Leaf]]:
    """Split arrays into files, in order: a new file begins where the limit would be exceeded."""
    shards: list[list[_Leaf]] = [[]]
    size = 0
    for leaf in leaves:
        if shard_bytes is not None and shards[-1] and size + leaf.nbytes > shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(leaf)
        size += leaf.nbytes
    return [sorted(shard, key=lambda leaf: (_ORDER[leaf.tag], leaf.name)) for shard in shards]


def _header(shard: list[_Leaf], words: dict[str, str]) -> bytes:
    """The first bytes of a file: the length of the header, then the header, padded to a multiple of 8 bytes."""
    told: dict[str, Any] = {"__metadata__": words} if words else {}
    end = 0
    for leaf in shard:
        start, end = end, end + leaf.nbytes
        told[leaf.name] = {"dtype": leaf.tag, "shape": list(leaf.array.shape), "data_offsets": [start, end]}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise ValueError(
            errors.explained(f"safetensors.save: the header has {len(text)} bytes; {HEADER_LIMIT} is the limit.")
        )
    return len(text).to_bytes(8, "little") + text


def _chunks(header: bytes, shard: list[_Leaf]) -> Iterator[Any]:
    """The bytes of a file, array by array."""
    yield header
    for leaf in shard:
        if leaf.nbytes:
            x = np.asarray(leaf.array)
            yield np.asarray(x, x.dtype.newbyteorder("<"), order="C").reshape(-1).view(np.uint8)


def _index(names: list[str], shards: list[list[_Leaf]]) -> bytes:
    where = {leaf.name: name for name, shard in zip(names, shards, strict=True) for leaf in shard}
    told = {"metadata": {"total_size": sum([leaf.nbytes for s in shards for leaf in s])}, "weight_map": where}
    return (json.dumps(told, indent=2, sort_keys=True) + "\n").encode()


def load(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of one or several files as a dict by name: all arrays, or those in `names`.

    `path` is a file, an index, or a directory with one file or one index. Arrays are read-only views of the
    memory-mapped file, which are read from the disk when they are used; `numpy.array(x)` or `jnp.array(x)` copies an
    array. Replacing the file by renaming, as `save` does, does not affect loaded arrays; overwriting the file in place
    changes them.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as there:
    ...     save(f"{there}/model.safetensors", {"a": np.arange(3), "b": np.ones(2)})
    ...     load(there, ["a"])
    {'a': array([0, 1, 2])}
    """
    if isinstance(names, str):
        raise TypeError(
            errors.explained(f"safetensors.load: names must be a list of names; got {names!r}.", f"[{names!r}].")
        )
    where, is_index = _files(pathlib.Path(path))
    if not is_index:
        opened = File(where)
        return opened.arrays(list(opened.entries) if names is None else names)
    there = weight_map(where)
    tensor_names = list(there) if names is None else list(names)
    require(where, tensor_names, there)
    files: dict[str, list[str]] = {}
    for name in tensor_names:
        files.setdefault(there[name], []).append(name)
    arrays = {}
    for file, inside in files.items():
        if not (where.parent / file).is_file():
            raise bad(where, f"the index names {file!r} (for {short(inside[0])}), but there is no such file")
        arrays.update(File(where.parent / file).arrays(inside))
    return {name: arrays[name] for name in tensor_names}


def metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The string metadata of a file; for an index, that of its first file.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as there:
    ...     save(f"{there}/model.safetensors", {"x": np.ones(3)}, metadata={"step": "7"})
    ...     metadata(there)
    {'step': '7'}
    """
    where, is_index = _files(pathlib.Path(path))
    if not is_index:
        return File(where).words
    return File(where.parent / min(weight_map(where).values())).words


def _files(path: pathlib.Path) -> tuple[pathlib.Path, bool]:
    """The file or index at a path, and whether it is an index."""
    index = path.with_name(path.name + ".index.json") if path.name else path
    if path.is_dir():
        files = [f for f in sorted(path.iterdir()) if f.name.endswith((_SUFFIX, _INDEX)) and not f.name.startswith(".")]
        whole = [f for f in files if not _SHARD.search(f.name)]
        if len(whole) == 1:
            return whole[0], whole[0].name.endswith(_INDEX)
        seen = ", ".join([f.name for f in files[:4]]) or "none"
        raise bad(
            path, f"a directory must have one {_SUFFIX} file or one index; it has {seen}", "the path of the file."
        )
    if path.is_file():
        return path, path.name.endswith(".json")
    if index.is_file():
        return index, True
    raise FileNotFoundError(errors.explained(f"safetensors.load: there is no file {path}."))
