"""Finds the op that produced a NaN or an infinity.

`Watch` replaces the base interpreter: programs run op by op, and every result is checked. A NaN is traced back through
the ops that propagated it to the first op whose operands have no NaN; an infinity likewise. If a NaN came from an
infinite operand, the origin of that infinity is reported, too. A bad value (NaN or infinity) that reaches no result,
because a `where` discards it, is not reported. The report has the op, the user's line, the step of each loop, the batch
index in each vmap, whether the op is in the backward pass, and the operands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from atled.core import source
from atled.core.settings import override, scope
from atled.core.trace import Interpreter, Place, bottom, state
from atled.core.types import ArrayType
from atled.engine.array import DeviceArray, as_array, suspect, suspects, to_numpy


class Finding:
    """The origin of a bad value: the message is `str(finding)`, its parts are attributes."""

    def __init__(
        self, what: str, op: str, place: Any, lanes: Sequence[tuple[int, int]], steps: Sequence[Any], is_backward: bool,
        operands: Sequence[str],
    ) -> None:  # fmt: skip
        self.what = what  # either "nan" or "inf"
        self.op = op
        self.source = place  # the user's code: function, file, line, text
        self.lanes = tuple(lanes)  # (batch index, batch size) for each vmap, the outermost first
        self.steps = tuple(steps)  # (loop, step, number of steps) for each loop, the outermost first
        self.is_backward = is_backward
        self.operands = tuple(operands)  # the type and range of each operand
        self.because: Finding | None = None  # for a NaN: the origin of an infinite operand

    @property
    def line(self) -> int:
        """The line number in the user's file; 0 if it is not known."""
        return self.source.line if self.source is not None else 0

    def __str__(self) -> str:
        what = "an inf" if self.what == "inf" else "a nan"
        text = f"{self.op}: the result has {what} that its operands do not have.{source.describe(self.source)}"
        if self.is_backward:
            text += "\n  in the backward pass: in the derivative of that line"
        for loop, index, count in self.steps:
            text += f"\n  in step {index}" + ("" if count is None else f" of {count}") + f" of {loop}"
        for index, size in self.lanes:
            text += f"\n  at batch index {index} of {size} of vmap"
        text += f"\n  operands: {', '.join(self.operands)}" if self.operands else ""
        if self.because is not None:
            at = self.because
            text += f"\n  The inf is from {at.op}" + (" in the backward pass" if at.is_backward else "")
            text += f", {at.source}: {at.source.text}" if at.source is not None else ""
        return text

    __repr__ = __str__


class _Birth:
    """A finding, its sequence number, and the batch indices at which the bad value occurs."""

    __slots__ = ("finding", "lanes", "number")

    def __init__(self, finding: Finding, lanes: set[tuple[int, ...]], number: int) -> None:
        self.finding, self.lanes, self.number = finding, lanes, number


class Watch(Interpreter):
    """Runs ops one by one and tracks bad results and their origins."""

    __slots__ = ("count", "infs", "marks", "nans", "outer")
    is_watching = True

    def __init__(self, nans: bool = True, infs: bool = False) -> None:
        super().__init__(0)
        self.nans, self.infs = nans, infs
        # "nan" or "inf" -> id of an array -> the array, and the origins of its bad values
        self.marks: dict[str, dict[int, tuple[Any, tuple[_Birth, ...]]]] = {"nan": {}, "inf": {}}
        self.outer: Any = None  # the location of the op whose program is running, in a backward pass
        self.count = 0

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.splits:
            before = self.outer
            if type(state.source) is Place:
                self.outer = state.source
            try:
                return op.stepwise(*operands)
            finally:
                self.outer = before
        arrays = tuple([x if type(x) is DeviceArray else as_array(x) for x in operands])
        out = bottom().process(op, arrays)
        for x in out if type(out) is tuple else (out,):
            for what in ("nan", "inf"):
                self.look(what, op, arrays, x)
        return out

    def look(self, what: str, op: Any, operands: Sequence[DeviceArray], x: DeviceArray) -> None:
        """Record a bad result and its origin: the origin of a bad operand, or this op."""
        bad = is_bad(x, what == "nan", what == "inf")
        if bad is None:
            return
        lanes, _ = around(self.outer)
        known = lanes if bad.shape[: len(lanes)] == lanes else ()
        where = {tuple(int(i) for i in row) for row in np.argwhere(bad.any(axis=tuple(range(len(known), bad.ndim))))}
        since = self.births(what, operands)
        new = where - {lane for b in since for lane in b.lanes}
        if not since or (new and all([len(next(iter(b.lanes))) == len(known) for b in since])):
            origin = finding(op, operands, x, bad, self.outer, min(new or where))
            infinite = self.births("inf", operands) if what == "nan" else []
            origin.because = infinite[0].finding if infinite else None
            since = [*since, _Birth(origin, where, self.count)]
            self.count += 1
        self.marks[what][id(x)] = (x, tuple(since))

    def births(self, what: str, arrays: Sequence[Any]) -> list[_Birth]:
        """The origins of the arrays' bad values, earliest first."""
        by_number = {b.number: b for a in arrays for b in self.marks[what].get(id(a), (None, ()))[1]}
        return [by_number[n] for n in sorted(by_number)]

    def mark_argument(self, name: str, x: DeviceArray) -> None:
        """Record a bad value in an argument."""
        for what in ("nan", "inf"):
            if is_bad(x, what == "nan", what == "inf") is not None:
                origin = Finding(what, f"argument {name}", None, (), (), False, ())
                self.marks[what][id(x)] = (x, (_Birth(origin, {()}, -1),))

    def origin(self, results: Sequence[Any]) -> Finding | None:
        """The origin of the first bad value in the results."""
        births = self.births("nan", results) if self.nans else []
        births += self.births("inf", results) if self.infs else []
        return min(births, key=lambda b: b.number).finding if births else None


def around(outer: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The sizes of the vmaps and the steps of the loops that the current op is in."""
    place = state.source if type(state.source) is Place else outer
    if place is None:
        return state.lanes, state.steps
    return (*state.lanes, *place.lanes), (*place.steps, *[s for s in state.steps if s not in place.steps])


def finding(
    op: Any, operands: Sequence[Any], x: Any, bad: np.ndarray, outer: Any = None, at: tuple[int, ...] | None = None
) -> Finding:
    """The `Finding` for a bad result."""
    lanes, steps = around(outer)
    if bad.shape[: len(lanes)] != lanes:
        lanes = ()
    if at is None:
        at = tuple(int(i) for i in np.argwhere(bad)[0][: len(lanes)])
    where = state.source or source.here()
    is_backward = type(where) is Place or outer is not None
    place = where.source if type(where) is Place else where
    shown = [_range(a, at if np.shape(a)[: len(at)] == lanes else ()) for a in operands]
    return Finding(
        _what(to_numpy(x._buffer)), op.name, place, list(zip(at, lanes, strict=False)), steps, is_backward, shown
    )


def is_bad(x: Any, nans: bool, infs: bool) -> np.ndarray | None:
    """A mask of the elements that are NaN or infinite, or None if there are none."""
    if x.type.kind not in "fc":
        return None
    host = to_numpy(x._buffer)
    host = host.astype(np.float32) if host.dtype.kind == "V" else host
    mask = np.isnan(host) if nans else np.zeros(host.shape, bool)
    mask = mask | np.isinf(host) if infs else mask
    return mask if mask.any() else None


def _what(host: np.ndarray) -> str:
    host = host.astype(np.float32) if host.dtype.kind == "V" else host
    return "nan" if np.isnan(host).any() else "inf"


def _range(x: Any, lane: tuple[int, ...]) -> str:
    """The type of an operand and the range of its values, at one batch index."""
    t = ArrayType(x.type.shape[len(lane) :], x.type.dtype)
    if t.kind not in "biufc" or t.size == 0:
        return str(t)
    host = to_numpy(x._buffer)[lane]
    host = host.astype(np.float32) if host.dtype.kind == "V" else host
    if host.ndim == 0:
        return f"{t} = {host}"
    if host.dtype.kind == "c":
        return str(t)
    return f"{t} from {host.min()} to {host.max()}"


@contextlib.contextmanager
def watched(nans: bool = True, infs: bool = False) -> Iterator[Watch]:
    """A context manager under which every op runs separately and its result is checked."""
    watch, before = Watch(nans, infs), state.base
    with override(jit=False, debug_nans=False, debug_infs=False, watches=True):
        state.base = watch
        try:
            yield watch
        finally:
            state.base = before


def check(op: Any, operands: Sequence[Any], out: Any) -> None:
    """Under `debug_nans` or `debug_infs`, record each bad result of an op; the first read of that result raises.

    A NaN that a selection discards is never read, so it is not reported.
    """
    for x in out if type(out) is tuple else (out,):
        bad = is_bad(x, scope().debug_nans, scope().debug_infs)
        if bad is not None:
            suspect(x, known_origin(operands) or _origin_in(op, operands) or finding(op, operands, x, bad))


def known_origin(operands: Sequence[Any]) -> Finding | None:
    """The recorded origin of the first operand with a bad value, or None."""
    return next((suspects[id(a)][1] for a in operands if id(a) in suspects), None)


def _origin_in(op: Any, operands: Sequence[Any]) -> Finding | None:
    if not op.splits:
        return None
    with watched(scope().debug_nans, scope().debug_infs) as seen:
        return seen.origin(seen.process(op, tuple(operands)))
