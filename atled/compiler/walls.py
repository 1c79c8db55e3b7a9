"""Where the CPU compiler is kept from computing a value again for each of its uses.

Its fusion copies cheap ops into every consumer. Along a chain of steps, such as a loop written out in Python or its
gradient, each step then recomputes all steps before it: compile time and run time grow with the square of the length.
A wall, which is an optimization barrier, makes a value that has several uses and much behind it be computed once. There
are none inside loops, whose bodies the compiler may turn into plain functions that know no barriers.
"""

from __future__ import annotations

from typing import Any

from atled.core.program import Program, Var

SHORT = 64  # equations; programs up to this length have no walls
MUCH = 32  # ops that may be copied into each use of a value


def walls(program: Program) -> set[Any]:
    """The variables of a program that get a wall."""
    found: set[Any] = set()
    if len(program.equations) <= SHORT:
        return found
    uses: dict[Any, int] = {}
    for e in program.equations:
        for v in e.operands:
            uses[v] = uses.get(v, 0) + 1
    behind: dict[Any, int] = {}  # how many ops a use of a variable may pull in; nothing for those in memory
    for e in program.equations:
        if not e.op.is_fusible:
            continue
        count = 1 + sum([behind.get(v, 0) for v in e.operands if type(v) is Var])
        # a value that only spreads another is not worth memory of its own
        can_stop = count > MUCH and not e.op.only_spreads
        for v in e.results:
            if can_stop and uses.get(v, 0) > 1:
                found.add(v)
            else:
                behind[v] = count
    return found
