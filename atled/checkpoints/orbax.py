"""Reads Orbax checkpoints as trees of NumPy arrays, through tensorstore, without Orbax.

An Orbax checkpoint is a directory. `_METADATA` lists the values and their nesting as JSON; the arrays are in the zarr
format, each in its own directory or all in one database (OCDBT); `_strings.json` has the strings. Missing, incomplete
or unknown values raise `CheckpointError`.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.checkpoints.format import CheckpointError
from atled.core import errors

__all__ = ["load"]
__dir__ = __all__.copy

_METADATA, _STRINGS, _UNFINISHED = "_METADATA", "_strings.json", ".orbax-checkpoint-tmp"
_ARRAYS = ("jax.Array", "np.ndarray", "scalar")
_EMPTY: dict[str, Any] = {"None": type(None), "Dict": dict, "List": list, "Tuple": tuple}
_SEQUENCE, _DICT = 1, 2  # kinds of path components


class _Value(NamedTuple):
    """A value in the metadata: its path, a tuple of (kind, key) pairs, and its value type."""

    steps: tuple[tuple[int, str], ...]
    kind: str

    @property
    def name(self) -> str:
        return ".".join([key for _, key in self.steps])


def load(path: str | os.PathLike[str], *, names: Sequence[str] | None = None) -> Any:
    """The tree in an Orbax checkpoint, with NumPy arrays; with `names`, a dict of the values with these names.

    `path` is a directory that `StandardCheckpointer` or `PyTreeCheckpointer` wrote, or a step of a `CheckpointManager`;
    if a step has several trees, the directory of one. Names are keys joined by dots: `params.dense.kernel`.

    Orbax does not store classes: tuples become lists, named tuples and structs become dicts by field, dict keys become
    strings, numbers become 0-d arrays, and random keys become their data; see `random.wrap_key_data`.
    """
    if isinstance(names, str):
        raise TypeError(errors.explained(f"orbax.load: names must be a list of names; got {names!r}.", f"[{names!r}]."))
    place = _item(pathlib.Path(path).absolute())
    told = _json(place / _METADATA)
    values = _values(place, told)
    if names is not None:
        absent = [n for n in names if n not in values]
        if absent:
            some = ", ".join(list(values)[:6])
            raise _bad(place, f"there is no value {absent[0]!r}", f"one of {some}{', …' if len(values) > 6 else ''}")
        values = {n: values[n] for n in names}
    leaves = {**_strings(place, values), **_arrays(place, values, told)}
    for name, value in values.items():
        if value.kind in _EMPTY:
            leaves[name] = _EMPTY[value.kind]()
    if names is not None:
        return {name: leaves[name] for name in values}
    return _nested(place, [(value.steps, leaves[name]) for name, value in values.items()])


def _item(path: pathlib.Path) -> pathlib.Path:
    """The directory of a tree: the path itself, or its only subdirectory with a tree."""
    if _UNFINISHED in path.name:
        raise _bad(path, "the checkpoint is unfinished")
    if (path / _METADATA).is_file():
        return path
    if not path.is_dir():
        raise FileNotFoundError(errors.explained(f"orbax.load: there is no directory {path}."))
    inside = sorted([f.name for f in path.iterdir() if f.is_dir() and _UNFINISHED not in f.name])
    items = [name for name in inside if (path / name / _METADATA).is_file()]
    if len(items) == 1 and not items[0].isdecimal():
        return path / items[0]
    if items:
        raise _bad(path, f"there are several trees: {', '.join(items)}", f"the path of one: {path / items[0]}")
    steps = sorted([int(name) for name in inside if name.isdecimal()])
    if steps:
        raise _bad(path, f"a step must be chosen from {', '.join(map(str, steps[-6:]))}", f"{path / str(steps[-1])}")
    what = "the file `checkpoint` of old Orbax versions is not supported" if (path / "checkpoint").exists() else ""
    raise _bad(path, what or f"there is no {_METADATA}: Orbax did not write this directory, or did not finish")


def _values(place: pathlib.Path, told: Mapping[str, Any]) -> dict[str, _Value]:
    """The values in the metadata, by name."""
    by_name: dict[str, _Value] = {}
    entries = told.get("tree_metadata")
    if not isinstance(entries, dict):
        raise _bad(place, f"{_METADATA} must have tree_metadata")
    for label, entry in entries.items():
        try:
            steps = tuple([(step["key_type"], str(step["key"])) for step in entry["key_metadata"]])
            kind, is_skipped = entry["value_metadata"]["value_type"], entry["value_metadata"]["skip_deserialize"]
        except (KeyError, TypeError):
            raise _bad(place, f"{_METADATA} has no type for {label}") from None
        value = _Value(steps, kind)
        is_outside = value.name.startswith("/") or ".." in value.name.split("/")
        if is_outside or any([step not in (_SEQUENCE, _DICT) for step, _ in steps]):
            raise _bad(place, f"{_METADATA} has an unknown path: {label}")
        if kind not in (*_ARRAYS, *_EMPTY, "string") or (is_skipped and kind not in _EMPTY):
            raise _bad(place, f"{value.name}, of type {kind}, cannot be read")
        if value.name in by_name:
            raise _bad(place, f"two values have the name {value.name}, and Orbax stored one array for both")
        by_name[value.name] = value
    return by_name


def _strings(place: pathlib.Path, values: Mapping[str, _Value]) -> dict[str, str]:
    names = [name for name, value in values.items() if value.kind == "string"]
    there = _json(place / _STRINGS) if names else {}
    for name in names:
        if not isinstance(there.get(name), str):
            raise _bad(place, f"{_STRINGS} has no string {name}")
    return {name: there[name] for name in names}


def _arrays(place: pathlib.Path, values: Mapping[str, _Value], told: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """All arrays by name, read concurrently."""
    names = [name for name, value in values.items() if value.kind in _ARRAYS]
    if not names:
        return {}
    try:
        import tensorstore
    except ImportError:
        raise ImportError(
            errors.explained(
                "orbax.load: reading Orbax checkpoints needs tensorstore.", 'pip install "atled[checkpoints]".'
            )
        ) from None
    context = tensorstore.Context()
    opened = {n: tensorstore.open(_spec(place, n, told), context=context, open=True, read=True) for n in names}
    reading: dict[str, Any] = {}
    arrays = {}
    for name, future in opened.items():
        array = _result(place, name, future)
        if array.size * array.dtype.numpy_dtype.itemsize > _memory():
            raise _bad(place, f"{name} has the shape {list(array.shape)}, too large for memory")
        reading[name] = array.read()
    for name, future in reading.items():
        arrays[name] = np.asarray(_result(place, name, future))
    return arrays


def _memory() -> int:
    """The memory of this machine in bytes; tensorstore aborts the process if an array needs more."""
    if not hasattr(os, "sysconf"):  # Windows: no limit is known
        return sys.maxsize
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _spec(place: pathlib.Path, name: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The tensorstore spec of an array. A missing chunk is an error if Orbax stored even fill-value chunks."""
    if told.get("use_ocdbt", (place / "manifest.ocdbt").exists()):
        store = {"driver": "ocdbt", "base": {"driver": "file", "path": f"{place}/"}, "path": f"{name}/"}
    else:
        store = {"driver": "file", "path": f"{place / name}/"}
    return {
        "driver": "zarr3" if told.get("use_zarr3") else "zarr",
        "kvstore": store,
        "fill_missing_data_reads": not told.get("store_array_data_equal_to_fill_value"),
    }


def _result(place: pathlib.Path, name: str, future: Any) -> Any:
    try:
        return future.result()
    except Exception as error:
        raise _bad(
            place, f"{name or 'the array'} could not be read: {str(error).split(' [tensorstore_spec')[0][:500]}"
        ) from None


def _nested(place: pathlib.Path, parts: list[tuple[Any, Any]], name: str = "the tree") -> Any:
    """The tree built from (path, value) pairs."""
    if any([not steps for steps, _ in parts]):
        if len(parts) > 1:
            raise _bad(place, f"{name} is a value, but other values are nested below it")
        return parts[0][1]
    below: dict[tuple[int, str], list[tuple[Any, Any]]] = {}
    for steps, value in parts:
        below.setdefault(steps[0], []).append((steps[1:], value))
    children = {key: _nested(place, inside, key) for (_, key), inside in below.items()}
    if {kind for kind, _ in below} <= {_DICT}:
        return children
    places = [str(i) for i in range(len(below))]
    if {kind for kind, _ in below} != {_SEQUENCE} or set(children) != set(places):
        raise _bad(
            place, f"{name} must be a list with indices 0 to {len(below) - 1}; it has {', '.join(list(children)[:6])}"
        )
    return [children[i] for i in places]


def _json(path: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _bad(path, f"the file could not be read: {str(error)[:200]}") from None
    if not isinstance(content, dict):
        raise _bad(path, "the JSON must be an object")
    return content


def _bad(path: pathlib.Path, what: str, instead: str = "") -> CheckpointError:
    return CheckpointError(errors.explained(f"orbax.load: {path}: {what}.", instead))
