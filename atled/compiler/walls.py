"""Optimization barriers ("walls") that keep the CPU compiler from recomputing a value for each of its uses.

The compiler's fusion duplicates cheap ops into every consumer. In a chain of steps, such as an unrolled Python loop or
its gradient, each step then recomputes all steps before it: compile time and run time grow quadratically with the
length. With a wall, a value that has several uses and depends on a long chain of ops is computed once. There are no
walls inside loops, whose bodies the compiler may turn into plain functions that ignore barriers.
"""

from __future__ import annotations

from typing import Any

from atled.core.program import Program, Var

SHORT = 64  # in equations; programs up to this length have no walls
MUCH = 32  # the number of ops that may be duplicated into each use of a value


def walls(program: Program) -> set[Any]:
    """The variables of a program that get a wall."""
    walled: set[Any] = set()
    if len(program.equations) <= SHORT:
        return walled
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
            if can_stop and uses.get(v, 0) > 1:
                walled.add(v)
            else:
                behind[v] = count
    return walled
