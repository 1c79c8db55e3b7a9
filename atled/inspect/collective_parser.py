"""Finds the collectives in the text of a compiled program: `read` returns a `Collective` for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from atled.core.sharding import Mesh
from atled.inspect import collective_reasons, hlo_parser, replica_groups

KINDS = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast",
    "ragged-all-to-all",
)  # fmt: skip


@dataclass(frozen=True)
class Collective:
    """One collective of a compiled program.

    >>> import atled
    >>> n = atled.device_count()
    >>> split = atled.sharding.NamedSharding(atled.make_mesh((n,), ("data",)), atled.sharding.P("data"))
    >>> found = atled.inspect.collectives(lambda x: x.sum())(atled.device_put(atled.numpy.ones(8 * n), split))
    >>> {row.kind for row in found.rows} == ({"all-reduce"} if n > 1 else set())
    True
    """

    kind: str  # "all-reduce", …
    axes: tuple[Any, ...]  # mesh axes that the collective runs over
    is_whole: bool  # whether each group spans these axes completely
    devices: int  # devices per group
    bytes: int  # bytes per device and execution: the larger of input and output
    times: int | None  # number of executions, more than 1 in a loop; None if unknown at compile time
    loop: str  # the enclosing loops and branches
    lines: tuple[hlo_parser.Line, ...]  # source lines of the ops that need the collective
    ops: tuple[str, ...]  # ops on these lines that need the collective
    argument: str  # the program argument that the collective reshards, or ""
    is_written: bool  # whether the user wrote the collective
    why: str

    @property
    def over(self) -> str:
        """The mesh axes as text."""
        return str(replica_groups.Span(self.axes, self.is_whole, self.devices))

    @property
    def file(self) -> str | None:
        """The file of the first line."""
        return self.lines[0].file if self.lines else None

    @property
    def line(self) -> int | None:
        """The number of the first line."""
        return self.lines[0].number if self.lines else None

    @property
    def text(self) -> str:
        """The text of the first line."""
        return self.lines[0].text if self.lines else ""


def read(text: str, mesh: Mesh | None) -> Iterator[Collective]:
    """The collectives in the text of a program that was compiled for a mesh; none if `mesh` is None."""
    if mesh is None:
        return
    module = hlo_parser.Module(text)
    for i, around in module.visits():
        kind = i.opcode.removesuffix("-start")
        if kind not in KINDS:
            continue
        span = replica_groups.span(i.attributes, mesh)
        instructions = [i, *_results(module, i)]
        lines = _lines(module, instructions) or _lines(module, [*module.makers(i), *module.users(instructions[-1])])[:1]
        ops = i.ops
        yield Collective(
            kind, span.axes, span.is_whole, span.devices, _size(i, kind, span.devices), _times(around),
            ", ".join([_loop(module, w) for w in around]), lines, tuple(dict.fromkeys([op.name for op in ops])),
            module.argument(i), collective_reasons.is_written(ops),
            collective_reasons.reason(kind, ops, _quoted(span), _combiner(module, i)),
        )  # fmt: skip


def _lines(module: hlo_parser.Module, instructions: Sequence[hlo_parser.Instruction]) -> tuple[hlo_parser.Line, ...]:
    return tuple(dict.fromkeys([line for r in instructions if (line := module.line(r)) is not None]))


def _results(module: hlo_parser.Module, i: hlo_parser.Instruction) -> list[hlo_parser.Instruction]:
    """The instructions that extract the results of a combined collective; each has the source lines of one result."""
    if not i.shape.startswith("("):
        return []
    users = module.users(i)
    users += [u for done in users if done.opcode.endswith("-done") for u in module.users(done)]
    return [u for u in users if u.opcode == "get-tuple-element"]


def _size(i: hlo_parser.Instruction, kind: str, devices: int) -> int:
    shape = i.shape
    if i.opcode.endswith("-start") and kind != "all-reduce":  # the shape is (operands, results, ...)
        shape = hlo_parser.parts(shape)[1]
    return hlo_parser.size(shape) * (devices if kind == "reduce-scatter" else 1)


def _combiner(module: hlo_parser.Module, i: hlo_parser.Instruction) -> str:
    region = module.computations.get(i.attribute(r"\bto_apply=%?([\w.-]+)") or "", [])
    return next((r.opcode for r in reversed(region) if r.opcode != "parameter"), "")


def _times(around: Sequence[hlo_parser.Instruction]) -> int | None:
    times = 1
    for i in around:
        if i.opcode == "while":
            if i.turns is None:
                return None
            times *= i.turns
    return times


def _loop(module: hlo_parser.Module, i: hlo_parser.Instruction) -> str:
    line = module.line(i)
    name = i.ops[-1].name if i.ops else i.opcode
    if i.opcode == "while":
        name = ("the backward " if i.ops and i.ops[-1].is_backward else "the ") + name
        turns = f", {i.turns} turns" if i.turns is not None else ""
    else:
        name, turns = f"a branch of the {name}", ""
    return f"{name}{f' at {line}' if line else ''}{turns}"


def _quoted(span: replica_groups.Span) -> str:
    return " and ".join([repr(a) for a in span.axes]) or "the devices"
