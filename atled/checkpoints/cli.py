"""`atled checkpoint ls|verify|diff|export`: list, verify, compare and export checkpoints."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from atled.checkpoints import safetensors, shard_reader
from atled.checkpoints.format import MANIFEST, CheckpointError, Entry, Manifest
from atled.checkpoints.saver import Saver
from atled.checkpoints.storage import place


def add(parsers: Any) -> None:
    """Add the command to a parser."""
    checkpoint = parsers.add_parser("checkpoint", help="inspect checkpoints", description=__doc__)
    actions = checkpoint.add_subparsers(required=True, metavar="ls|verify|diff|export")
    for name, run, what in (
        ("ls", ls, "list the steps of a run, or the arrays of a checkpoint"),
        ("verify", verify, "read all arrays and verify their checksums"),
        ("diff", diff, "show the differences between two checkpoints"),
        ("export", export, "write a checkpoint as a safetensors file"),
    ):
        parser = actions.add_parser(name, help=what, description=what)
        parser.add_argument("path", help="a checkpoint, or the directory of a run")
        if name in ("diff", "export"):
            parser.add_argument("other", help="another checkpoint" if name == "diff" else "the file to write")
        parser.set_defaults(run=run)


def ls(options: argparse.Namespace) -> int:
    """List the steps of a run, or the arrays of a checkpoint."""
    saver = Saver(options.path)
    steps = saver._all_steps()
    if steps:
        for step in steps:
            try:
                manifest = saver._manifest(step, is_strict=True)
            except CheckpointError as error:
                print(f"step {step:>10}  {error}")
                continue
            if manifest is None:
                print(f"step {step:>10}  unfinished, or not written by a Saver")
                continue
            metrics = ", ".join([f"{k} {v:.6g}" for k, v in manifest.metadata["metrics"].items()])
            print(f"step {step:>10}  {len(manifest.arrays):>5} arrays  {size(_total(manifest)):>9}  {metrics}".rstrip())
        return 0
    manifest = shard_reader.manifest(options.path)
    width = max([len(p) for p in manifest.arrays], default=0)
    for path, entry in manifest.arrays.items():
        print(f"{path:<{width}}  {entry!s:<24}  {size(entry.nbytes):>9}  {_count(entry)}")
    print(f"{len(manifest.arrays)} arrays, {size(_total(manifest))}, {len(manifest.files)} files")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Read a checkpoint, or all of a run, and verify checksums; the exit status is 1 if any is damaged."""
    step_places = [place(options.path).inside(f"step-{s:08d}") for s in Saver(options.path)._all_steps()]
    code = 0
    for where in step_places or [place(options.path)]:
        if step_places and where.read(MANIFEST) is None:
            continue  # an interrupted save
        try:
            count = shard_reader.verify(where, lambda name, why: print(f"damaged: {why}"))
            print(f"{where}: intact: {size(count)}, all checksums match")
        except CheckpointError as error:
            print(error)
            code = 1
    return code


def diff(options: argparse.Namespace) -> int:
    """Compare two checkpoints; the exit status is 1 if they differ."""
    one, other = [shard_reader.manifest(newest(p)) for p in (options.path, options.other)]
    lines = [f"- {p}: {e}" for p, e in one.arrays.items() if p not in other.arrays]
    lines += [f"+ {p}: {e}" for p, e in other.arrays.items() if p not in one.arrays]
    same = [p for p in one.arrays if p in other.arrays]
    for p in same:
        if str(one.arrays[p]) != str(other.arrays[p]):
            lines.append(f"~ {p}: {one.arrays[p]} → {other.arrays[p]}")
        elif _sums(one.arrays[p]) != _sums(other.arrays[p]):
            lines.append(f"≠ {p}: different values, or different pieces")
    for name in sorted({*one.statics, *other.statics}):
        a, b = one.statics.get(name), other.statics.get(name)
        if a != b:
            lines.append(f"~ setting {name}: {a!r} → {b!r}")
    print("\n".join(lines) if lines else f"no differences in {len(same)} arrays")
    return int(bool(lines))


def export(options: argparse.Namespace) -> int:
    """Write a safetensors file; path components are joined by dots."""
    arrays = shard_reader.load(newest(options.path))
    named = {}
    for path, x in arrays.items():
        name = ".".join([step.replace("%2F", "/").replace("%25", "%") for step in path.split("/")])
        if name in named:
            raise CheckpointError(f"checkpoint export: two arrays would have the name {name}, one of them {path}.")
        named[name] = x
    safetensors.save(pathlib.Path(options.other), named)
    print(f"{len(named)} arrays in {options.other}")
    return 0


def newest(path: str) -> Any:
    """The path of a checkpoint; for the directory of a run, that of its newest checkpoint."""
    step = Saver(path).latest()
    return place(path) if step is None else place(path).inside(f"step-{step:08d}")


def size(count: float) -> str:
    """A human-readable number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _total(found: Manifest) -> int:
    return sum([e.nbytes for e in found.arrays.values()])


def _count(entry: Entry) -> str:
    return f"{len(entry.pieces)} pieces" if len(entry.pieces) > 1 else ""


def _sums(entry: Entry) -> list[Any]:
    return sorted([(p.start, p.shape, p.crc32) for p in entry.pieces])
