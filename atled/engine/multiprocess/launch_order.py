"""Checks that all processes launch the same programs in the same order; otherwise, collectives deadlock or give wrong
results. The hub has a `LaunchOrder` for each group of processes. A process numbers programs in the order of their first
launch, and reports each launch as the program's number. This module uses neither sockets nor the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Launched(NamedTuple):
    """A program as reported by one process."""

    digest: str
    name: str
    place: str  # the user's file and line

    def __str__(self) -> str:
        return f"{self.name} ({self.place})" if self.place else self.name


class Copy(NamedTuple):
    """The checksum of a replicated shard, as one process placed it on its devices."""

    digest: int
    type: str
    place: str  # the user's file and line


class LaunchOrder:
    """The launches of a group of processes. `agree`, `report` and `finish` return an error message, or ""."""

    def __init__(self, ranks: Iterable[int]) -> None:
        self.ranks = tuple(sorted(ranks))
        self.programs: list[dict[int, Launched]] = []  # by number: the program as reported by each rank
        self.counts = dict.fromkeys(self.ranks, 0)  # launches that each rank has reported
        self.waiting: dict[
            int, tuple[int, int]
        ] = {}  # rank -> its launch count and the new program that it wants to launch
        self.finished: set[int] = set()  # ranks that launch no more programs
        self._reference: list[tuple[int, int]] = []  # (program, rank that reported it first), from launch `_start` on
        self._start = 0
        self._copies: dict[int, dict[int, dict[str, Copy]]] = {}  # launch -> rank -> checksums of its replicated inputs

    def agree(self, rank: int, number: int, program: Launched) -> str:
        """Record that a rank is about to launch a program for the first time."""
        while len(self.programs) <= number:
            self.programs.append({})
        known = self.programs[number]
        known[rank] = program
        other = next((r for r in known if known[r].digest != program.digest), None)
        if other is not None:
            return self._differ({other: known[other], rank: program})
        if self.finished:
            return self._beyond(rank, program)
        self.waiting[rank] = (self.counts[rank], number)
        at = self.counts[rank] - self._start
        if at < len(self._reference):
            return self._compare(*self._reference[at], number, rank)
        return ""

    def is_agreed(self, number: int) -> bool:
        """Whether every rank has called `agree` for a program; if so, also record that no rank waits for it."""
        done = len(self.programs[number]) == len(self.ranks)
        if done:
            self.waiting = {r: w for r, w in self.waiting.items() if w[1] != number}
        return done

    def missing(self, number: int) -> list[int]:
        """The ranks that have not called `agree` for a program."""
        return [r for r in self.ranks if r not in self.programs[number]]

    def report(self, rank: int, numbers: Sequence[int], copies: Mapping[int, dict[str, Copy]] | None = None) -> str:
        """Record the programs that a rank has launched; `copies` has the checksums of replicated inputs."""
        for i, number in enumerate(numbers):
            at = self.counts[rank] - self._start
            wrong = self._compare_copies(self.counts[rank], number, rank, copies[i]) if copies and i in copies else ""
            if wrong:
                return wrong
            if at < len(self._reference):
                wrong = self._compare(*self._reference[at], number, rank)
            else:
                self._reference.append((number, rank))
                wrong = self._against_waiting(self.counts[rank], number, rank)
            self.counts[rank] += 1
            if not wrong and any(self.counts[r] < self.counts[rank] for r in self.finished):
                wrong = self._beyond(rank, self.programs[number][rank])
            if wrong:
                return wrong
        done = min(self.counts.values()) - self._start
        if done:
            del self._reference[:done]
            self._start += done
            for launch in [n for n in self._copies if n < self._start]:
                del self._copies[launch]
        return ""

    def finish(self, rank: int) -> str:
        """Record that a rank shuts down."""
        self.finished.add(rank)
        for other, (_, number) in self.waiting.items():
            return self._beyond(other, self.programs[number][other])
        ahead = next((r for r in self.ranks if self.counts[r] > self.counts[rank]), None)
        if ahead is None:
            return ""
        number = self._reference[self.counts[rank] - self._start][0]
        return self._beyond(ahead, self.programs[number][ahead])

    def behind(self, count: int) -> list[int]:
        """The ranks that have reported fewer than `count` launches."""
        return [r for r in self.ranks if self.counts[r] < count]

    def _against_waiting(self, launch: int, number: int, rank: int) -> str:
        for other, (at, awaited) in self.waiting.items():
            if at == launch and awaited != number:
                return self._compare(awaited, other, number, rank)
        return ""

    def _compare(self, number: int, rank: int, other_number: int, other: int) -> str:
        if number == other_number:
            return ""
        return self._differ({rank: self.programs[number][rank], other: self.programs[other_number][other]})

    def _compare_copies(self, launch: int, number: int, rank: int, copies: dict[str, Copy]) -> str:
        """An error message if replicated inputs have different checksums in another process, else ""."""
        known = self._copies.setdefault(launch, {})
        for other, theirs in known.items():
            for name, copy in copies.items():
                if name in theirs and theirs[name].digest != copy.digest:
                    both = {rank: copy, other: theirs[name]}
                    puts = ", ".join([f"rank {r} put {both[r].type} at {both[r].place}" for r in sorted(both)])
                    return (
                        "replicated data must be equal in all processes that hold it, but differs: "
                        f"{puts}; {self.programs[number][rank]} takes it.\n  try: the same seeds and files in every "
                        "process, multihost_utils.broadcast_one_to_all, or a PartitionSpec that splits it."
                    )
        known[rank] = copies
        return ""

    def _beyond(self, rank: int, program: Launched) -> str:
        done = min((r for r in self.finished if self.counts[r] <= self.counts[rank] and r != rank), default=None)
        return "" if done is None else self._advised(f"rank {rank} launches {program}, rank {done} shuts down")

    def _differ(self, programs: dict[int, Launched]) -> str:
        launches = ", ".join(f"rank {r} launches {programs[r]}" for r in sorted(programs))
        return self._advised(launches)

    def _advised(self, said: str) -> str:
        return (
            f"the processes launch different programs, or the same ones in a different order: {said}."
            "\n  try: let every process call the same compiled functions in the same order, with arguments of the "
            "same types; do not call them under `if process_index() == 0`."
        )
