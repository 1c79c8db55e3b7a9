"""An `Executable` is a compiled program that maps buffers to buffers.

The launch paths of eager ops and of `jit` use only an executable's `execute` and `handlers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core.program import Program
from atled.core.sharding import Placed
from atled.engine import jaxlib_versions, launch_control
from atled.engine.compilation import compile_program, settle
from atled.engine.placement import MeshPlacement, Where, layout_of, on_device
from atled.engine.program_cache import compiled, one_at_a_time


def handler(placed: Placed) -> Any:
    """The engine's function that wraps raw results as arrays of this type and sharding; cached on `placed`."""
    if placed.handler is None:
        placed.handler = jaxlib_versions.result_handler(placed, layout_of(placed), placed.committed)
    return placed.handler


class Executable:
    """A compiled program on a device, or over a mesh."""

    __slots__ = ("donated", "execute", "handlers", "placed", "program", "raw", "where")

    def __init__(
        self, raw: Any, program: Program, where: Where, committed: bool, donated: tuple[int | None, ...]
    ) -> None:
        self.raw = raw
        self.program = program
        self.where = where
        self.donated = donated
        if isinstance(where, MeshPlacement):
            self.placed = [Placed(t, s, True) for t, s in zip(program.output_types, where.outs, strict=True)]
        else:
            sharding = on_device(where)
            self.placed = [Placed(t, sharding, committed) for t in program.output_types]
        self.handlers = [handler(p) for p in self.placed]
        self.execute = launch_control.discipline(raw, program, where)

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        return self.execute(buffers).consume_with_handlers(self.handlers)


def executable(
    program: Program, where: Where, committed: bool = False, donated: tuple[int | None, ...] = (), module: Any = None
) -> Executable:
    """The executable of a program for a placement, cached on the program; pass the lowered `module` if it exists."""

    key = ("executable", where, committed, donated)
    cached = program.derived.get(key)
    if cached is None:
        with one_at_a_time((id(program), key)):
            cached = program.derived.get(key)
            if cached is None:
                raw, settled = settle(compiled, program, where, donated, module)
                cached = program.derived[key] = Executable(raw, program, settled, committed, donated)
    return cached


def compiled_anew(
    program: Program, where: Where, committed: bool, donated: tuple[int | None, ...], module: Any
) -> Executable:
    """Like `executable`, without caches: their keys ignore source lines, so a cached program may name other lines."""
    raw, settled = settle(lambda *a: compile_program(*a)[0], program, where, donated, module)
    return Executable(raw, program, settled, committed, donated)
