"""Decides which residuals a loop stores for the backward pass, and which it recomputes.

A value is recomputed in the backward loop if cheap arithmetic computes it from stored residuals, or from values whose
total size is not larger, because this costs less than writing and reading the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from atled.core import dtypes
from atled.core.program import Equation, Program, Var
from atled.core.trace import bind, state
from atled.core.types import ArrayType
from atled.ops import conversion, elementwise, shape

CHEAP = (
    elementwise.Neg, elementwise.Add, elementwise.Sub, elementwise.Mul, elementwise.Slope, elementwise.Max,
    elementwise.Min, elementwise.Relu, elementwise.Clamp, elementwise.Compare, elementwise.And, elementwise.Or,
    elementwise.Not, elementwise.Select, *elementwise.GATES, elementwise.StopGradient, shape.Broadcast, shape.Reshape,
    shape.Iota, conversion.Convert,
)  # fmt: skip


def lean(program: Program, wanted: Iterable[Var], at_hand: set[Var]) -> tuple[list[Var], list[Equation]]:
    """The variables to store, and the equations that recompute the other wanted variables from them.

    Variables in `at_hand` are available without being stored.
    """
    stored = dict.fromkeys([v for v in wanted if v not in at_hand])
    again: list[Equation] = []
    for e in reversed(program.equations):
        if type(e.op) in CHEAP and (v := e.results[0]) in stored:
            new = {x for x in e.operands if type(x) is Var and x not in at_hand and x not in stored}
            if sum([_bytes(x.type) for x in new]) <= _bytes(v.type):
                del stored[v]
                stored.update(dict.fromkeys(new))
                again.append(e)
    order = {v: i for i, v in enumerate([*program.inputs, *[v for e in program.equations for v in e.results]])}
    return sorted(stored, key=order.__getitem__), again[::-1]


def _bytes(t: ArrayType) -> int:
    return t.size * max(dtypes.bits(t.dtype) // 8, 1) if t.kind != "k" else t.size * 8


def run_again(equations: Sequence[Equation], env: dict[Any, Any]) -> None:
    """Evaluate equations with the values in `env`, and add their results to it."""
    before = state.source
    try:
        for e in equations:
            state.source = e.source or before
            env[e.results[0]] = bind(e.op, *[env[v] if type(v) is Var else v for v in e.operands])
    finally:
        state.source = before
