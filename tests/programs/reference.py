"""What a random program means: NumPy in float64, Python loops, nothing of atled.

A `Run` also writes down every decision that a value made: the branch taken, where a maximum was, how often a loop ran.
Between two points with the same decisions a program is smooth, so differences of values tell its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from language import Equation, Program

Values = list[np.ndarray]


class Run:
    """One evaluation: its decisions, and how close the closest of them was."""

    def __init__(self) -> None:
        self.decisions: list[Any] = []
        self.margin = float("inf")

    def above(self, value: Any, threshold: Any) -> Any:
        """Whether a value is above a threshold, element by element."""
        out = np.asarray(value) > threshold
        self.margin = min(self.margin, float(np.min(np.abs(np.asarray(value) - threshold))))
        self.decisions.append(out.tobytes())
        return out

    def program(self, program: Program, inputs: Sequence[Any], around: dict[int, Any] | None = None) -> Values:
        """The outputs of a program; `around` are the values of the variables that it sees besides its inputs."""
        values = dict(around or {})
        values.update({v.number: np.asarray(x, np.float64) for v, x in zip(program.inputs, inputs, strict=True)})
        for e in program.equations:
            operands = [values[v.number] for v in e.operands]
            if e.bodies:
                out = NESTED[e.kind](self, e, operands, values)
            else:
                out = [FIRST_ORDER[e.kind](self, e, *operands)]
            for v, x in zip(e.results, out, strict=True):
                x = np.asarray(x)
                assert x.shape == v.shape and x.dtype == np.float64, (e, x.shape, x.dtype)
                values[v.number] = x
        return [values[v.number] for v in program.outputs]


def _constant(run: Run, e: Equation) -> Any:
    shape = e.results[0].shape
    return np.cos(np.arange(np.prod(shape, dtype=int)) + e.options["phase"]).reshape(shape)


def _maximum(run: Run, e: Equation, x: Any, y: Any) -> Any:
    is_first = run.above(x - y, 0.375)
    return np.where(is_first, x, y + 0.375)


def _max(run: Run, e: Equation, x: Any) -> Any:
    axis = e.options["axis"]
    lifted = np.moveaxis(x, axis, -1) + 0.31 * np.arange(x.shape[axis])
    ordered = np.sort(lifted, axis=-1)
    if x.shape[axis] > 1:
        run.margin = min(run.margin, float(np.min(ordered[..., -1] - ordered[..., -2])))
    run.decisions.append(lifted.argmax(-1).tobytes())
    return ordered[..., -1]


def _reduce(run: Run, e: Equation, x: Any) -> Any:
    return (np.sum if e.kind == "sum" else np.mean)(x, axis=e.options["axis"])


def _index(run: Run, e: Equation, x: Any) -> Any:
    return np.take(x, e.options["at"], axis=e.options["axis"])


def _pick(run: Run, e: Equation, x: Any, p: Any) -> Any:
    return x[int(run.above(p.mean(), e.options["threshold"]))]


FIRST_ORDER: dict[str, Callable[..., Any]] = {
    "sin": lambda run, e, x: np.sin(x),
    "cos": lambda run, e, x: np.cos(x),
    "tanh": lambda run, e, x: np.tanh(x),
    "exp_tanh": lambda run, e, x: np.exp(np.tanh(x)),
    "inverse": lambda run, e, x: 1 / (2 + x * x),
    "scale": lambda run, e, x: x / 2 + 0.25,
    "constant": _constant,
    "add": lambda run, e, x, y: x + y,
    "sub": lambda run, e, x, y: x - y,
    "mul": lambda run, e, x, y: x * y,
    "div": lambda run, e, x, y: x / (2 + y * y),
    "maximum": _maximum,
    "where": lambda run, e, p, x, y: np.where(run.above(p, e.options["threshold"]), x, y),
    "sum": _reduce,
    "mean": _reduce,
    "max": _max,
    "cumsum": lambda run, e, x: np.cumsum(x, axis=e.options["axis"]),
    "matmul": lambda run, e, x, y: x @ y,
    "broadcast": lambda run, e, x: np.broadcast_to(x, e.results[0].shape),
    "reshape": lambda run, e, x: x.reshape(e.results[0].shape),
    "transpose": lambda run, e, x: x.T,
    "slice": lambda run, e, x: x[slice(*e.options["cut"])],
    "concatenate": lambda run, e, x, y: np.concatenate([x, y], axis=0),
    "index": _index,
    "pick": _pick,
}


def _call(run: Run, e: Equation, operands: Values, values: dict[int, Any]) -> Values:
    return run.program(e.bodies[0], operands, values)


def _choose(run: Run, e: Equation, operands: Values, values: dict[int, Any]) -> Values:
    p, *args = operands
    number = sum([int(run.above(p.mean(), t)) for t in e.options["thresholds"]])
    return run.program(e.bodies[number], args, values)


def _vmap(run: Run, e: Equation, operands: Values, values: dict[int, Any]) -> Values:
    rows = []
    for lane in range(e.options["size"]):
        args = [x if a is None else np.take(x, lane, axis=a) for x, a in zip(operands, e.options["in_axes"])]
        rows.append(run.program(e.bodies[0], args, values))
    return [np.stack(column, axis=a) for column, a in zip(zip(*rows), e.options["out_axes"])]


def _scan(run: Run, e: Equation, operands: Values, values: dict[int, Any]) -> Values:
    o, count = e.options, e.options["carried"]
    carry, slices = operands[:count], operands[count:]
    rows: list[Values] = [[] for _ in range(o["length"])]
    order = range(o["length"])
    for step, i in enumerate(reversed(order) if o["reverse"] else order):
        number = [np.float64(step * 0.25)] if o["counted"] else []
        out = run.program(e.bodies[0], [*number, *carry, *[x[i] for x in slices]], values)
        carry, rows[i] = out[:count], out[count:]
    return [*carry, *[np.stack(column) for column in zip(*rows)]]


def _fori_loop(run: Run, e: Equation, operands: Values, values: dict[int, Any]) -> Values:
    for i in range(e.options["low"], e.options["high"]):
        operands = run.program(e.bodies[0], [np.float64(i * 0.25), *operands], values)
    return operands


def _while(run: Run, e: Equation, operands: Values, values: dict[int, Any]) -> Values:
    o, i = e.options, 0
    steps = o["steps"]
    if o["more"] is not None:
        steps += 2 * int(run.above(values[o["more"].number].mean(), o["threshold"]))
    while i < steps and not (o["stops"] and run.above(operands[0].mean(), o["threshold"])):
        if i == o.get("most"):
            break
        operands = run.program(e.bodies[0], [np.float64(i * 0.25), *operands], values)
        i += 1
    return operands


NESTED: dict[str, Callable[..., Values]] = {
    "jit": _call, "remat": _call, "custom_jvp": _call, "custom_vjp": _call, "vmap": _vmap, "cond": _choose,
    "switch": _choose, "scan": _scan, "fori_loop": _fori_loop, "bounded_while": _while, "while_loop": _while,
}  # fmt: skip
