"""Controls launches: their order, the number of programs in flight, and the agreement with other processes.

`discipline` wraps the engine's function that runs a program. A program on one device without effects is not wrapped.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from atled.compiler.fingerprint import NotPortable, digest
from atled.core import errors, source
from atled.core.program import Program
from atled.engine import client
from atled.engine.jaxlib_versions import EngineError
from atled.engine.placement import MeshPlacement, Where, description, devices_of


def discipline(raw: Any, program: Program, where: Where) -> Callable[..., Any]:
    """The function that runs a compiled program, wrapped according to its effects, devices and processes."""
    execute = raw.execute_sharded
    devices = devices_of(where)
    if any([e.op.has_effect for e in program.equations]):
        execute = functools.partial(_with_effects, execute)
    elif isinstance(where, MeshPlacement) and where.mesh.size > 1 and where.mesh.flat[0].platform == "cpu":
        execute = functools.partial(_in_turn, execute)
        if len(where.mesh.local_devices) > MOST and _COLLECTIVE.search(raw.get_hlo_text()):
            execute = functools.partial(_refuse, program, where)
    ranks = sorted({d.process_index for d in devices})
    if len(ranks) > 1:
        execute = _Together(execute, program, where, ranks)
    return functools.partial(_if_there, execute) if len(devices) > 1 else execute


def _if_there(execute: Callable[..., Any], buffers: Sequence[Any]) -> Any:
    """Run a program over several devices; raises if an argument was deleted, which would crash the engine."""
    for b in buffers:
        if b.is_deleted():
            raise EngineError(f"{b.aval.type} was deleted or donated")
    return execute(buffers)


_running: collections.deque[Any] = collections.deque()  # tokens of programs with effects


def _with_effects(execute: Callable[..., Any], buffers: Sequence[Any]) -> Any:
    """Run a program with callbacks after the previous one has finished, so that effects keep their order."""
    while _running:
        with contextlib.suppress(EngineError):  # the error is raised when its results are read
            _running.popleft().block_until_ready()
    out = execute(buffers, with_tokens=True)
    _running.append(out.consume_token())
    return out


# Programs over several CPU devices share one thread pool, and the threads of a collective wait for each other: with
# some forty programs in flight, they deadlock. Therefore the token of every eighth launch is kept, and a launch waits
# for the oldest token when two are unfinished.
EVERY, NOTED = 8, 2
_in_flight: collections.deque[Any] = collections.deque()
_turns = itertools.count(1)


def _in_turn(execute: Callable[..., Any], buffers: Sequence[Any]) -> Any:
    """Run a program over several devices; every eighth launch waits until at most `EVERY * NOTED` are in flight."""
    if next(_turns) % EVERY:
        return execute(buffers)
    if len(_in_flight) >= NOTED:
        with contextlib.suppress(EngineError, IndexError):  # the error is raised when its results are read
            _in_flight.popleft().block_until_ready()
    out = execute(buffers, with_tokens=True)
    _in_flight.append(out.consume_token())
    return out


# the maximum number of CPU devices per process for collectives: with more, the engine lacks threads and deadlocks
MOST = 256
_COLLECTIVE = re.compile(r" (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)")


def _refuse(program: Program, where: MeshPlacement, buffers: Sequence[Any]) -> Any:
    raise RuntimeError(
        f"{program.name}: a program with collectives runs on at most {MOST} CPU devices of one process; got "
        f"{where.mesh.size}.\n  try: several processes, or compile only: jit(f).lower(...).compile()."
    )


class _Together:
    """Runs a multi-process program; the first launch waits until all processes launch it."""

    __slots__ = ("calls_back", "execute", "number", "program", "ranks", "where")

    def __init__(self, execute: Any, program: Program, where: Any, ranks: list[int]) -> None:
        self.execute, self.program, self.where, self.ranks = execute, program, where, ranks
        self.calls_back = False
        self.number: int | None = None

    def __call__(self, buffers: Sequence[Any]) -> Any:
        from atled.engine.multiprocess import processes  # imported only in multi-process runs

        if self.number is None:
            try:
                name = digest(self.program)
            except NotPortable:  # the program contains Python functions, such as callbacks
                name, self.calls_back = f"{self.program.name}, {len(self.program.equations)} equations", True
            place = source.here()
            location = str(place) if place is not None else ""
            name = f"{name} {description(self.where)}"
            self.number = processes.agree(name, self.program.name, location, self.ranks)
        mark = processes.launched(self.number, buffers)
        if self.calls_back:  # a callback sees values before `shards` confirms the launch
            processes.confirm(mark)
        mark.world.is_launching = True
        try:
            return _Marked(self.execute(buffers), mark)
        finally:
            mark.world.is_launching = False


class _Marked:
    """The results of a launch, tagged with its mark."""

    __slots__ = ("mark", "results")

    def __init__(self, results: Any, mark: Any) -> None:
        self.results, self.mark = results, mark

    def consume_with_handlers(self, handlers: Sequence[Any]) -> list[Any]:
        arrays = self.results.consume_with_handlers(handlers)
        for buffer in arrays:
            buffer.mark = self.mark
        return arrays


def effects_barrier() -> None:
    """Wait until the effects (prints, callbacks) of all launched programs have happened.

    >>> import atled
    >>> def run():
    ...     atled.jit(lambda x: atled.debug.print("x is {}", x))(3)
    ...     effects_barrier()
    >>> run()
    x is 3
    """
    while _running:
        try:
            _running.popleft().block_until_ready()
        except EngineError as error:
            own = errors.kept(str(error))
            raise (RuntimeError(f"execution failed: {error}") if own is None else own) from None


def flush() -> None:
    """Wait for programs with effects, and flush stdout, before an error is raised."""
    while _running:
        with contextlib.suppress(EngineError):
            _running.popleft().block_until_ready()
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stdout is closed or None
        sys.stdout.flush()


atexit.register(flush)


def _reset() -> None:
    flush()
    _in_flight.clear()


client.on_reset.append(_reset)
