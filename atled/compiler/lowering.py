"""Walks a program and lets each op lower itself.

Random keys are stored as two words on a leading axis. An op on keys is therefore lowered as its batched form on the
words, so ops need no code for keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.compiler import unsupported_ops
from atled.compiler.builder import Builder, Value
from atled.compiler.fusion_barriers import walls
from atled.core.program import Program, Var, record
from atled.core.sharding import physical
from atled.core.trace import Axis, state
from atled.core.types import ArrayType


def lower(build: Builder, program: Program, operands: Sequence[Value]) -> list[Value]:
    """Emit the equations of a program; returns the values of its outputs."""
    env: dict[Any, Value] = dict(zip(program.inputs, operands, strict=True))
    is_cpu = build.platform == "cpu"
    if build.is_spread:
        unsupported_ops.check_over_devices(build.platform, program)
    walled = walls(program) if is_cpu and not build.is_nested else ()
    has_keys = any([v.type.kind == "k" for v in program.inputs]) or any([e.op.takes_keys for e in program.equations])
    for e in program.equations:
        op = e.op
        args = [env[v] if type(v) is Var else Value(None, v.type, v.value) for v in e.operands]  # pyright: ignore[reportAttributeAccessIssue]
        build.at(e.source, op.name)
        if not is_cpu:
            unsupported_ops.check(build.platform, e)
        if has_keys and not op.takes_keys and any([v.type.kind == "k" for v in (*args, *e.results)]):
            out = _lower_on_keys(build, op, args)
        else:
            out = op.lower(build, *args)
        for v, value in zip(e.results, (out,) if type(out) is Value else out):
            if v in walled:
                value = build.emit("stablehlo.optimization_barrier", (value,), (value.type,))
            env[v] = value
    return [env[v] if type(v) is Var else Value(None, v.type, v.value) for v in program.outputs]  # pyright: ignore[reportAttributeAccessIssue]


def _lower_on_keys(build: Builder, op: Any, args: list[Value]) -> Any:
    is_key = tuple([a.type.kind == "k" for a in args])
    words = [Value(a.handle, ArrayType(*physical(a.type)), a.literal) for a in args]
    promised = op.result_type(*[a.type for a in args])
    several = type(promised) is tuple
    promised = promised if several else (promised,)

    def batched(*xs: Any) -> Any:
        out = op.batch(is_key, *xs)
        return out if type(out) is tuple else (out,)

    before = state.axes
    if op.is_collective:
        state.axes = {**before, **{a: Axis(a, build.manual.shape[a], None) for a in op.axes if build.manual}}
    try:
        program, _ = record(batched, [w.type for w in words], op.name, with_sources=False)
    finally:
        state.axes = before
    lowered = lower(build, program, words)
    out = tuple([Value(v.handle, t, v.literal) for v, t in zip(lowered, promised, strict=True)])
    return out if several else out[0]
