"""Checks the range of integers, such as labels, before the first run of a program that contains `Expect` ops.

Compiled code cannot raise, and checking labels would slow down every step. Therefore the part of the program that
computes these integers from its arguments is run separately, once, before the first run of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import errors
from atled.core.program import Program, Var, record_closed
from atled.core.trace import bind
from atled.higher_order.call import Call
from atled.ops import reduction
from atled.ops.range_check import Expect


def complain(op: Expect, least: int, most: int) -> None:
    """Raise if the least or the largest of some integers is outside the range of an `Expect`."""
    if least < op.low or most >= op.high:
        raise ValueError(
            errors.explained(f"{op.what} must be {op.low} to {op.high - 1}; got {least if least < op.low else most}.")
        )


def check_expectations(program: Program, operands: Sequence[Any]) -> None:
    """Raise if integers that a program would compute from these operands are outside the range of an `Expect`."""
    if _expects(program):
        ops, ends = program.memo("expectations", lambda: _watched(program))
        bounds = [int(np.asarray(x)) for x in bind(Call(ends), *operands)] if ops else []
        for op, least, most in zip(ops, bounds[::2], bounds[1::2], strict=True):
            complain(op, least, most)


def _expects(program: Program) -> bool:
    """Whether a program has range checks outside of loops and branches."""
    if "expects" not in program.derived:
        inner = [e.op.program for e in program.equations if type(e.op) is Call]
        has_checks = any([type(e.op) is Expect for e in program.equations]) or any([_expects(p) for p in inner])
        program.derived["expects"] = has_checks
    return program.derived["expects"]


def _watched(program: Program) -> tuple[list[Expect], Program]:
    """The range checks of a program, and a program that computes the minimum and maximum of each.

    Only integers that are computed from integers alone are checked, so that a model does not run twice.
    """
    ops: list[Expect] = []
    ends: list[Any] = []

    def walk(program: Program, operands: Sequence[Any]) -> list[Any]:
        env: dict[Any, Any] = dict(zip(program.inputs, operands, strict=True))  # None for values that are not computed
        for e in program.equations:
            given = [env[v] if type(v) is Var else v for v in e.operands]
            if type(e.op) is Call:
                out: Any = walk(e.op.program, given)
            elif (
                e.op.has_effect
                or any([x is None for x in given])
                or any([v.type.kind not in "iub" for v in e.operands])
            ):
                out = [None] * len(e.results)
            else:
                out = bind(e.op, *given)
                if type(e.op) is Expect and 0 not in e.operands[0].type.shape:
                    ops.append(e.op)
                    axes = range(len(e.operands[0].type.shape))
                    ends.extend([reduction.reduce_min(out, axes), reduction.reduce_max(out, axes)])
            env.update(zip(e.results, out if type(out) in (tuple, list) else [out], strict=True))
        return [env[v] if type(v) is Var else v for v in program.outputs]

    def run(*operands: Any) -> list[Any]:
        walk(program, operands)
        return ends

    return ops, record_closed(run, program.input_types, program.name)
