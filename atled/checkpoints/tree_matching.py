"""Matches arrays of a checkpoint with leaves of a tree, and reports all mismatches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from atled.checkpoints.format import KEY, CheckpointError, Entry, Manifest
from atled.checkpoints.former_paths import former_paths
from atled.core import dtypes, errors
from atled.core.array import Array, type_of
from atled.core.types import ShapeDtypeStruct
from atled.nn.module import Module, settled, walk
from atled.nn.module_filters import matches


@dataclasses.dataclass
class Plan:
    """The source of each array of a tree in a checkpoint, and all mismatches."""

    sources: dict[str, str]  # paths in the checkpoint by path in the tree
    missing: list[str] = dataclasses.field(default_factory=list)
    extra: list[str] = dataclasses.field(default_factory=list)
    reshaped: list[str] = dataclasses.field(default_factory=list)
    cast: list[str] = dataclasses.field(default_factory=list)
    settings: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        titles = {
            "missing": "missing in the checkpoint",
            "extra": "only in the checkpoint",
            "reshaped": "of another shape",
            "cast": "of another dtype",
            "settings": "settings that differ",
        }
        lines = []
        for field, title in titles.items():
            entries = getattr(self, field)
            if entries:
                lines.append(f"  {title}: {len(entries)}")
                lines += [f"    {line}" for line in entries[:12]]
                lines += [f"    … and {len(entries) - 12} more"] if len(entries) > 12 else []
        return "\n".join(lines)


def matched(
    where: Any,
    found: Manifest,
    template: Any,
    leaves: Mapping[str, Any],
    partial: bool | Sequence[str],
    rename: Mapping[str, str] | Callable[[str], str] | None,
    cast: bool,
) -> Plan:
    """The plan for a tree; raises with a list of all mismatches."""
    partial = [partial] if isinstance(partial, str) else partial
    plan = compared(found, template, leaves, rename)
    excused = (
        (lambda path: bool(partial)) if isinstance(partial, bool) else lambda p: any([matches(x, p) for x in partial])
    )
    missing = [p for p in plan.missing if not excused(p)]
    extra = [p for p in plan.extra if not excused(p)]
    if missing or extra or plan.reshaped or (plan.cast and not cast):
        shown = dataclasses.replace(plan, missing=missing, extra=extra, cast=[] if cast else plan.cast)
        ways = []
        if missing or extra:
            ways.append("partial=True or patterns, to ignore them; rename={'old': 'new'}")
        if plan.cast and not cast:
            ways.append("cast=True")
        raise CheckpointError(
            errors.explained(
                f"checkpoints.load: the checkpoint {where} does not match the template.\n{shown}",
                "; ".join(ways) or "a tree of the same shapes.",
            )
        )
    return plan


def compared(found: Manifest, template: Any, leaves: Mapping[str, Any], rename: Any = None) -> Plan:
    """The plan that results from comparing a checkpoint with a tree."""
    plan, used = Plan({}), set[str]()
    renamed = _renamed(found.arrays, rename)
    for path, leaf in leaves.items():
        source = renamed.get(path)
        if source is None and found.version == 1:
            were = [p for p in former_paths(path) if p in renamed and p not in leaves]
            source = renamed[were[0]] if len(were) == 1 and renamed[were[0]] not in used else None
        if source is None:
            plan.missing.append(path)
            continue
        plan.sources[path] = source
        used.add(source)
        entry = found.arrays[source]
        dtype, shape = described(leaf)
        if shape != entry.shape or (dtype == KEY) != (entry.dtype == KEY):
            plan.reshaped.append(f"{path}: {entry} is {_type(leaf)} here")
        elif dtype != entry.dtype and not _is_number(leaf, entry):
            plan.cast.append(f"{path}: {entry} is {_type(leaf)} here")
    plan.extra = [s for s in renamed.values() if s not in used]
    now = settings_of(template)
    for path, value in found.statics.items():
        if path in now and now[path] != value:
            plan.settings.append(f"{path} was {value!r} and is {now[path]!r}")
    return plan


def _renamed(arrays: Mapping[str, Entry], rename: Any) -> dict[str, str]:
    """The paths in the checkpoint, by path after `rename`."""
    if rename is not None and not callable(rename) and not isinstance(rename, Mapping):
        raise TypeError(
            errors.explained(f"checkpoints.load: rename must be a dict or a function; got {type(rename).__name__}.")
        )
    if rename is None:
        return {p: p for p in arrays}
    renamed: dict[str, str] = {}
    used = set()
    for path in arrays:
        new = path
        if callable(rename):
            new = str(rename(path))
        else:
            for old, name in sorted(rename.items(), key=lambda r: -len(r[0])):  # the longest prefix first
                steps = old.strip("/")
                if not steps or path == steps or path.startswith(f"{steps}/"):
                    new = "/".join([x for x in (name.strip("/"), path[len(steps) :].strip("/")) if x])
                    used.add(old)
                    break
        if new in renamed:
            raise CheckpointError(
                errors.explained(f"checkpoints.load: rename maps both {renamed[new]} and {path} to {new}.")
            )
        renamed[new] = path
    unused = [] if callable(rename) else [old for old in rename if old not in used]
    if unused:
        some = ", ".join(list(arrays)[:6])
        raise CheckpointError(
            errors.explained(f"checkpoints.load: rename names {unused[0]!r}, which the checkpoint does not have.", some)
        )
    return renamed


def described(leaf: Any) -> tuple[str, tuple[int, ...]]:
    """The dtype name and the shape that a leaf would have in a checkpoint."""
    if isinstance(leaf, ShapeDtypeStruct):
        dtype = leaf.dtype
        return KEY if dtype is dtypes.key_dtype else dtype.name, tuple(leaf.shape)
    if not isinstance(leaf, Array):
        return np.asarray(leaf).dtype.name, np.shape(leaf)
    t = type_of(leaf)
    return KEY if t.kind == "k" else t.dtype.name, t.shape


def _type(leaf: Any) -> str:
    dtype, shape = described(leaf)
    return f"{dtype}[{','.join(map(str, shape))}]"


def _is_number(leaf: Any, entry: Entry) -> bool:
    """Whether a leaf is a Python number of the saved kind, which may have a wider dtype in the checkpoint."""
    kinds = {bool: "b", int: "iu", float: "f", complex: "c"}
    return type(leaf) in kinds and entry.dtype != KEY and entry.stored[0].kind in kinds[type(leaf)]


def settings_of(x: Any) -> dict[str, Any]:
    """The JSON-serializable settings of modules, by path, for messages such as "heads was 8 and is 4"."""
    settings = {}
    for path, node in walk(x) if isinstance(x, Module) else ():
        if isinstance(node, Module):
            for name, value in settled(node).statics.items():
                if isinstance(value, (bool, int, float, str)):
                    settings[f"{path}/{name}" if path else name] = value
    return settings
