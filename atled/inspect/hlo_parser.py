"""Reads the text of compiled programs: instructions by computation, the call graph, and the user's lines.

`Module` parses only the parts of the format that `collective_parser` needs.
"""

from __future__ import annotations

import functools
import linecache
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TABLE = re.compile(r"^(\d+) (.*)$", re.M)
_CALLED = re.compile(r"\b(?:condition|body|calls|to_apply|true_computation|false_computation)=%?([\w.-]+)")
_BRANCHES = re.compile(r"\b(?:branch_computations|called_computations)=\{([^}]*)\}")
_OPS = re.compile(r"(backward\()?([\w.<>-]+)")


class Line(NamedTuple):
    """A line of the user's code."""

    file: str
    number: int

    @property
    def text(self) -> str:
        """The text of the line."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.number}"


class OpName(NamedTuple):
    """The name of an op of the lowered program, and whether it is in the backward pass."""

    name: str
    is_backward: bool


@dataclass(frozen=True)
class Instruction:
    """One instruction: `name = shape opcode(operands), attributes`."""

    name: str
    shape: str
    opcode: str
    operands: str
    attributes: str

    def attribute(self, pattern: str) -> str | None:
        """The text that a pattern's only group matches in the attributes, or None."""
        match = re.search(pattern, self.attributes)
        return match and match[1]

    @property
    def ops(self) -> tuple[OpName, ...]:
        """The ops that the instruction was lowered from; several if the compiler combined them."""
        path = self.attribute(r'\bop_name="([^"]*)"') or ""
        last = path.rpartition("/")[2]
        return tuple([OpName(name, bool(back)) for back, name in _OPS.findall(last)])

    @property
    def inputs(self) -> list[str]:
        """The names of the operands."""
        return re.findall(r"%([\w.-]+)", self.operands)

    @property
    def called(self) -> list[str]:
        """The names of the computations that the instruction runs."""
        if self.opcode in ("async-update", "async-done"):  # only async-start counts as a call
            return []
        branches = [n for group in _BRANCHES.findall(self.attributes) for n in re.findall(r"[\w.-]+", group)]
        return [*_CALLED.findall(self.attributes), *branches]

    @property
    def turns(self) -> int | None:
        """The trip count of a loop, if the compiler knows it."""
        count = self.attribute(r'"known_trip_count":\{"n":"(\d+)"')
        return int(count) if count else None


class Visit(NamedTuple):
    """An instruction at one call site, with its enclosing loops and branches, outermost first."""

    instruction: Instruction
    around: tuple[Instruction, ...]


class Module:
    """A compiled program, parsed from its text."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, list[Instruction]] = {}
        self.home: dict[str, list[Instruction]] = {}  # name of an instruction -> its computation
        self.entry = ""
        self._text = text
        current: list[Instruction] | None = None
        for row in text.splitlines():
            if current is None and row.endswith("{") and not row.startswith((" ", "HloModule")):
                words = row.split()
                name = words[words[0] == "ENTRY"].lstrip("%")
                self.entry = name if words[0] == "ENTRY" else self.entry
                current = self.computations[name] = []
            elif row.startswith("}"):
                current = None
            elif current is not None and " = " in row:
                current.append(_instruction(row))
                self.home[current[-1].name] = current

    def visits(self) -> Iterator[Visit]:
        """All instructions that run, in program order, once for every call site."""
        return self._visits(self.entry, ())

    def _visits(self, name: str, around: tuple[Instruction, ...]) -> Iterator[Visit]:
        for i in self.computations.get(name, ()):
            yield Visit(i, around)
            inner = (*around, i) if i.opcode in ("while", "conditional") else around
            for called in i.called:
                yield from self._visits(called, inner)

    def argument(self, i: Instruction) -> str:
        """The name of the program argument that a compiler-inserted instruction moves, or ""."""
        around = {r.name: r for r in self.home[i.name]} if not i.ops else {}
        while i.opcode != "parameter":
            if i.ops or not i.inputs or i.inputs[0] not in around:
                return ""
            i = around[i.inputs[0]]
        return i.attribute(r'\bop_name="([^"]*)"') or ""

    def makers(self, i: Instruction) -> list[Instruction]:
        """The instructions that produce an instruction's operands."""
        input_names = set(i.inputs)
        return [r for r in self.home[i.name] if r.name in input_names]

    def users(self, i: Instruction) -> list[Instruction]:
        """The instructions that use an instruction's result."""
        return [r for r in self.home[i.name] if i.name in r.operands and i.name in r.inputs]

    def line(self, i: Instruction) -> Line | None:
        """The line of user code that an instruction was lowered from."""
        frame = i.attribute(r"\bstack_frame_id=(\d+)")
        if frame:
            return self._frames.get(int(frame))
        file, number = i.attribute(r'\bsource_file="([^"]*)"'), i.attribute(r"\bsource_line=(\d+)")
        return Line(file, int(number)) if file and number else None

    @functools.cached_property
    def _frames(self) -> dict[int, Line]:
        """The source line of each stack frame number, from the tables at the head of the text."""
        files = {n: row.strip('"') for n, row in self._table("FileNames").items()}
        places = {n: _numbers(row) for n, row in self._table("FileLocations").items()}
        lines = {n: Line(files[p["file_name_id"]], p["line"]) for n, p in places.items() if p["file_name_id"] in files}
        frames = {n: _numbers(row)["file_location_id"] for n, row in self._table("StackFrames").items()}
        return {n: lines[place] for n, place in frames.items() if place in lines}

    def _table(self, title: str) -> dict[int, str]:
        match = re.search(rf"^{title}\n((?:\d+ .*\n)*)", self._text, re.M)
        return {int(n): row for n, row in _TABLE.findall(match[1])} if match else {}


def _numbers(row: str) -> dict[str, int]:
    return {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", row)}


def _instruction(row: str) -> Instruction:
    name, _, rest = row.strip().removeprefix("ROOT ").partition(" = ")
    end = closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    start = rest.index("(")
    end = closing(rest, start)
    return Instruction(name.lstrip("%"), shape, rest[:start], rest[start + 1 : end], rest[end + 1 :])


def closing(text: str, start: int) -> int:
    """The index of the bracket that closes the bracket at index `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place
    return len(text) - 1


def parts(shape: str) -> list[str]:
    """The shapes of the elements of a tuple shape."""
    elements, start, inner = [], 0, shape[1:-1]
    depth = 0
    for place, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            elements.append(inner[start:place].strip())
            start = place + 1
    return [*elements, inner[start:].strip()]


def size(shape: str) -> int:
    """The size of an array or tuple shape in bytes."""
    bits = 0
    for dtype, dims in re.findall(r"\b([a-z]+\d*\w*)\[([\d,<=]*)\]", shape):
        width = 8 if dtype == "pred" else int((re.findall(r"\d+", dtype) or ["0"])[0])
        for n in re.findall(r"\d+", dims):
            width *= int(n)
        bits += width
    return -(-bits // 8)
