"""`Evaluate`: the bottom interpreter, which runs each op as a compiled program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core.config import on_global_change, settings, watch
from atled.core.program import Equation, Program, Var
from atled.core.trace import Interpreter
from atled.engine import client, execute
from atled.engine.array import DeviceArray, as_array, device_put, to_device, wrap


class Evaluate(Interpreter):
    """Runs ops on arrays. The compiled program of an op is kept by op and operand placement."""

    __slots__ = ("launches",)

    def __init__(self) -> None:
        super().__init__(0)
        self.launches: dict[Any, tuple[Any, Any, bool]] = {}
        on_global_change.append(self.launches.clear)
        client.on_fork.append(self.launches.clear)
        execute.on_pressure.append(self.launches.clear)

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        arrays = [x if type(x) is DeviceArray else as_array(x) for x in operands]
        key = (op, *[a._placed for a in arrays])
        launch = self.launches.get(key)
        if launch is None:
            if op.runs_on_host:
                types = op.result_type(*[a.type for a in arrays])
                return tuple(
                    [to_device(y, t) for y, t in zip(op.on_host(*map(np.asarray, arrays)), types, strict=True)]
                )
            moved, launch = self._prepare(op, arrays)
            if len(self.launches) >= 16384:
                self.launches.clear()
            if all([m is a for m, a in zip(moved, arrays, strict=True)]):
                self.launches[key] = launch
            arrays = moved
        run, handlers, is_tuple = launch
        out = run([a._buffer for a in arrays]).consume_with_handlers(handlers)
        made = tuple([wrap(b) for b in out]) if is_tuple else wrap(out[0])
        if watch.on and (settings.debug_nans or settings.debug_infs):
            from atled.engine.watch import check  # builds on this file

            check(op, arrays, made)
        return made

    def _prepare(self, op: Any, arrays: list[DeviceArray]) -> Any:
        device, committed = common_device(arrays)
        arrays = [a if a.device == device else device_put(a, device, False) for a in arrays]
        inputs = [Var(a.type) for a in arrays]
        types = op.result_type(*[v.type for v in inputs])
        is_tuple = type(types) is tuple
        results = tuple([Var(t) for t in (types if is_tuple else (types,))])
        program = Program(inputs, [Equation(op, tuple(inputs), results, None)], results, op.name)
        ready = execute.executable(program, device, committed)
        return arrays, (ready.execute, ready.handlers, is_tuple)


def common_device(arrays: Sequence[DeviceArray]) -> tuple[Any, bool]:
    """The device that a computation on these arrays runs on, and whether the user chose it."""
    chosen = {a.device for a in arrays if a.committed}
    if len(chosen) > 1:
        names = ", ".join(f"{a.type} on {a.device}" for a in arrays if a.committed)
        raise ValueError(
            f"devices: operands are committed to different devices: {names}."
            "\n  try: device_put(x, device) to bring them together."
        )
    if chosen:
        return chosen.pop(), True
    return client.default_device(), False
