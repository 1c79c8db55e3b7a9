"""Optimization barriers ("walls") that keep the CPU compiler from recomputing values, and from kernels without end.

The compiler's fusion duplicates cheap ops into every consumer. In a chain of steps, such as an unrolled Python loop or
its gradient, each step then recomputes all steps before it: compile time and run time grow quadratically with the
length. With a wall, a value that has several uses and depends on a long chain of ops is computed once.

A chain whose values have one use each becomes one kernel. Above some fifty ops it is no longer vectorized, and compile
time grows faster than the chain: a thousand turns of `tanh(w * h + i)` on 100,000 elements ran ten times as long as
they do with walls, and a thousand of `(w * h + i) * 0.5` could take the compiler 20 GB.

There are no walls inside loops, whose bodies the compiler may turn into plain functions that ignore barriers.
"""

from __future__ import annotations

from typing import Any

from atled.core.program import Program, Var

SHORT = 64  # in equations; programs up to this length have no walls
MUCH = 32  # the number of ops that may be duplicated into each use of a value
LONG = 48, 500  # the number of ops in one kernel, of short programs and of those with tens of thousands of ops
KERNELS = 64  # how many kernels a chain becomes before they may be longer: each takes the compiler some milliseconds


def walls(program: Program) -> set[Any]:
    """The variables of a program that get a wall."""
    walled: set[Any] = set()
    if len(program.equations) <= SHORT:
        return walled
    least, most = LONG
    long = min(max(least, len(program.equations) // KERNELS), most)
    uses: dict[Any, int] = {}
    for e in program.equations:
        for v in e.operands:
            uses[v] = uses.get(v, 0) + 1
    behind: dict[Any, int] = {}  # the number of ops that a use of a variable would duplicate; zero for values in memory
    for e in program.equations:
        if not e.op.is_fusible:
            continue
        count = 1 + sum([behind.get(v, 0) for v in e.operands if type(v) is Var])
        # a broadcast is not worth materializing
        can_stop = count > MUCH and not e.op.only_spreads
        for v in e.results:
            if can_stop and (count > long or uses.get(v, 0) > 1):
                walled.add(v)
            else:
                behind[v] = count
    return walled
