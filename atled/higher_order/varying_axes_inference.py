"""Determines which values of a per-device program vary between devices, and along which mesh axes.

An input varies along the mesh axes of its spec. A computed value varies along all axes that its operands vary along; a
reduction over an axis is replicated along it. `varying` computes these axes. `typed` prepares a program for
transposition. Where a replicated value is combined with a varying one, it inserts `Pvary`, whose transpose sums the
cotangents of all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

from atled.core import source
from atled.core.program import Equation, Program, Var, subprograms
from atled.higher_order.call import Call
from atled.ops import collectives

Axes = frozenset[Any]
_NONE: Axes = frozenset()
# No communication.
_SILENT = (collectives.AxisIndex, collectives.Pvary)


def varying(
    program: Program, inputs: Sequence[Axes], diverges: Callable[[Equation, Axes], None] | None = None
) -> list[Axes]:
    """The axes along which each output varies, given the axes of the inputs.

    `diverges(equation, axes)` is called for each branch or loop with collectives that only some devices along `axes`
    may run.
    """
    env: dict[Any, Axes] = dict(zip(program.inputs, inputs, strict=True))
    for e in program.equations:
        given = [env[v] if type(v) is Var else _NONE for v in e.operands]
        for v, axes in zip(e.results, _results(e, given, diverges), strict=True):
            env[v] = axes
    return [env[v] if type(v) is Var else _NONE for v in program.outputs]


def _results(e: Equation, given: list[Axes], diverges: Any) -> Sequence[Axes]:
    op, union = e.op, frozenset().union(*given)
    if diverges is not None:
        apart = op.chosen_by(varying, given) & frozenset().union(*[communicates(p) for p in subprograms(op)])
        if apart:
            diverges(e, apart)
    found = op.varies(partial(varying, diverges=diverges), given)
    return [union.union(*[_used(p) for p in subprograms(op)])] * len(e.results) if found is None else found


def communicates(program: Program) -> Axes:
    """The axes of a program's collectives."""

    def make() -> Axes:
        axes = _NONE
        for e in program.equations:
            inner = subprograms(e.op)
            if inner:
                axes = axes.union(*[communicates(p) for p in inner])
            elif e.op.is_collective and not isinstance(e.op, _SILENT):
                axes |= frozenset(e.op.axes)
        return axes

    return program.memo("communicates", make)


def _used(program: Program) -> Axes:
    """All mesh axes that a program refers to."""
    axes = _NONE
    for e in program.equations:
        if e.op.is_collective:
            axes |= frozenset(e.op.axes)
    return axes


def explain(program: Program, output: Any) -> str:
    """For error messages: the line of the user's code that computes an output; empty if unknown."""
    for e in program.equations:
        if any([v is output for v in e.results]):
            return source.describe(e.source)
    return ""


def typed(program: Program, inputs: Sequence[Axes], outputs: Sequence[Axes], mesh: Any) -> Program:
    """The program with explicit conversions between replicated and varying values, so that it can be transposed."""
    env: dict[Any, Any] = {v: v for v in program.inputs}
    axes: dict[Any, Axes] = dict(zip(program.inputs, inputs, strict=True))
    equations: list[Equation] = []
    varied: dict[Any, Var] = {}

    def emit(op: Any, x: Any, found: Axes, at: Any) -> Var:
        out = Var(x.type)
        equations.append(Equation(op, (x,), (out,), at))
        axes[out] = found
        return out

    def spread(x: Any, wanted: Axes, at: Any) -> Any:
        missing = wanted - axes[x] if type(x) is Var else _NONE
        if not missing:
            return x
        key = (x, missing)
        if key not in varied:
            order = tuple([a for a in mesh.axis_names if a in missing])
            varied[key] = emit(collectives.Pvary(order), x, axes[x] | missing, at)
        return varied[key]

    def walk(inner: Program, names: dict[Any, Any]) -> None:
        for e in inner.equations:
            operands = [names[v] if type(v) is Var else v for v in e.operands]
            op = e.op
            if type(op) is Call:
                called = dict(zip(op.program.inputs, operands))
                walk(op.program, called)
                for v, x in zip(e.results, op.program.outputs):
                    names[v] = called[x] if type(x) is Var else x
                continue
            union = frozenset().union(*[axes[x] for x in operands if type(x) is Var])
            if type(op) is collectives.Pvary:
                names[e.results[0]] = spread(operands[0], union | frozenset(op.axes), e.source)
                continue
            if op.is_collective:
                union |= frozenset(op.axes) & frozenset(mesh.axis_names)
            operands = [spread(x, union, e.source) for x in operands]
            results = tuple([Var(v.type) for v in e.results])
            varied_along = union
            if type(op) is collectives.Psum and set(op.axes) <= set(mesh.axis_names):
                op, varied_along = collectives.PsumInvariant(op.axes), union - frozenset(op.axes)
            elif isinstance(op, (collectives.PsumInvariant, collectives.AssumeReplicated)):
                varied_along = union - frozenset(op.axes)
            equations.append(Equation(op, tuple(operands), results, e.source))
            for v, r in zip(e.results, results):
                names[v], axes[r] = r, varied_along

    walk(program, env)
    out = []
    for v, wanted in zip(program.outputs, outputs, strict=True):
        x = env[v] if type(v) is Var else v
        if type(x) is Var:
            x = spread(x, wanted, None)
            extra = tuple([a for a in mesh.axis_names if a in axes[x] - wanted])
            if extra:
                x = emit(collectives.AssumeReplicated(extra, prod([mesh.shape[a] for a in extra])), x, wanted, None)
        out.append(x)
    return Program(program.inputs, equations, out, program.name)
