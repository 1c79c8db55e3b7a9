"""`Evaluate`: the base interpreter (level 0), which runs each op as a separate compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core.program import Equation, Program, Var, mesh_of
from atled.core.settings import on_global_change, scope
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.trace import Interpreter
from atled.engine import client, compile_options, executable, jaxlib_versions, memory_mappings
from atled.engine.array import DeviceArray, as_array, device_put, to_device, wrap
from atled.engine.execution_errors import failed
from atled.engine.placement import MeshPlacement, Where


class Evaluate(Interpreter):
    """Runs ops on arrays. Compiled programs are cached by op and operand placement."""

    __slots__ = ("launches",)

    def __init__(self) -> None:
        super().__init__(0)
        self.launches: dict[Any, tuple[Any, Any, bool]] = {}
        on_global_change.append(self.launches.clear)
        client.on_fork.append(self.launches.clear)
        memory_mappings.on_pressure.append(self.launches.clear)

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        arrays = [x if type(x) is DeviceArray else as_array(x) for x in operands]
        here = scope()
        key = (op, here.default_device, *[a._placed for a in arrays])
        launch = self.launches.get(key)
        if launch is None:
            if op.runs_on_host:
                types, out = op.result_type(*[a.type for a in arrays]), op.on_host(*map(np.asarray, arrays))
                if type(types) is not tuple:
                    return to_device(out, types)
                return tuple([to_device(y, t) for y, t in zip(out, types, strict=True)])
            moved, launch = self._prepare(op, arrays)
            if len(self.launches) >= 16384:
                self.launches.clear()
            if all([m is a for m, a in zip(moved, arrays, strict=True)]):
                self.launches[key] = launch
            arrays = moved
        run, handlers, is_tuple = launch
        try:
            out = run([a._buffer for a in arrays]).consume_with_handlers(handlers)
        except jaxlib_versions.EngineError as error:
            gone = [a._buffer for a in arrays if a._buffer.is_deleted()] or [a._buffer for a in arrays] or [None]
            raise failed(gone[0], error) from None
        results = tuple([wrap(b) for b in out]) if is_tuple else wrap(out[0])
        if here.is_watched and (here.debug_nans or here.debug_infs):
            from atled.engine.nan_watch import check  # imported only under debug_nans

            check(op, arrays, results)
        return results

    def _prepare(self, op: Any, arrays: list[DeviceArray]) -> Any:
        inputs = [Var(a.type) for a in arrays]
        types = op.result_type(*[v.type for v in inputs])
        is_tuple = type(types) is tuple
        results = tuple([Var(t) for t in (types if is_tuple else (types,))])
        program = Program(inputs, [Equation(op, tuple(inputs), results, None)], results, op.name)
        if op.compiler_options:
            program = compile_options.tuned(op.program, op.compiler_options)
        where, committed = placement(program, arrays)
        arrays = moved(arrays, where)
        ready = executable.executable(program, where, committed)
        return arrays, (ready.execute, ready.handlers, is_tuple)


def placement(
    program: Program, arrays: Sequence[Any], ins: Sequence[Any] = (), outs: Sequence[Any] = ()
) -> tuple[Where, bool]:
    """The placement of a program that takes these arrays, and whether the user chose it (committed).

    The program runs over a mesh if an array, an op of the program, or a requested sharding in `ins` or `outs` (None for
    no request) refers to a mesh.
    """
    asked = [s for s in (*ins, *outs) if s is not None]
    chosen: dict[Any, Any] = {s.devices: s for s in asked}
    own = mesh_of(program)
    if own is not None:
        chosen.setdefault(own.flat, NamedSharding(own, PartitionSpec()))
    for a in arrays:
        if a.committed:
            chosen.setdefault(a.sharding.devices, a.sharding)
    if not chosen:
        return client.default_device(), False
    if len(chosen) > 1:
        raise _apart(program, arrays, asked, own)
    named = [s for s in (*asked, *[a.sharding for a in arrays], *chosen.values()) if isinstance(s, NamedSharding)]
    if not named:
        return next(iter(chosen))[0], True
    mesh = own or named[0].mesh
    whole = NamedSharding(mesh, PartitionSpec())
    ins = ins or [None] * len(arrays)
    in_shardings = []
    for a, s in zip(arrays, ins, strict=True):
        in_shardings.append(
            s or (a.sharding.with_memory_kind(None) if isinstance(a.sharding, NamedSharding) else whole)
        )
    return MeshPlacement(mesh, tuple(in_shardings), tuple(outs) or (None,) * len(program.outputs)), True


def _apart(program: Program, arrays: Sequence[Any], asked: Sequence[Any], own: Any) -> ValueError:
    places = [f"{a.type} on {_devices(a.sharding)}" for a in arrays if a.committed]
    places += [f"a sharding over {_devices(s)}" for s in asked]
    places += [f"{program.name}, which is over {_devices(NamedSharding(own, PartitionSpec()))}"] if own else []
    return ValueError(
        f"devices: operands are committed to different devices: {', '.join(dict.fromkeys(places))}."
        "\n  try: device_put(x, device) or device_put(x, sharding) to bring them together."
    )


def _devices(sharding: Any) -> str:
    names = [str(d) for d in sharding.devices]
    return names[0] if len(names) == 1 else f"{len(names)} devices ({names[0]}, …, {names[-1]})"


def moved(arrays: Sequence[DeviceArray], where: Where) -> list[DeviceArray]:
    """The arrays, moved to the devices and shardings of a placement; arrays already there are returned unchanged."""
    if not isinstance(where, MeshPlacement):
        return [a if a.device == where else device_put(a, where, False) for a in arrays]
    return [a if a.sharding == s else device_put(a, s) for a, s in zip(arrays, where.ins, strict=True)]
