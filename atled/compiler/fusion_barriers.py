"""Chooses values for optimization barriers, which keep the CPU compiler from recomputing them or making huge kernels.

The compiler's fusion duplicates cheap ops into every consumer. In a chain of steps, such as an unrolled Python loop or
its gradient, each step then recomputes all steps before it, so compile time and run time grow quadratically with the
length. With a barrier, a value that has several uses and depends on a long chain of ops is computed once.
A chain whose values have one use each becomes one kernel. Kernels of more than about 50 ops are not vectorized, and
their compile time grows faster than linearly. Without barriers, 1,000 steps of `tanh(w * h + i)` on 100,000 elements
ran 10 times as long, and 1,000 steps of `(w * h + i) * 0.5` took up to 20 GB to compile.

Loop bodies get no barriers, because the compiler may turn them into plain functions, in which it ignores barriers.
"""

from __future__ import annotations

from typing import Any

from atled.core.program import Program, Var

SHORT = 64  # programs of up to this many equations get no barriers
MUCH = 32  # this many ops may be duplicated into each use of a value
LONG = 48, 500  # the most ops in one kernel: in short programs, and in those with tens of thousands of ops
KERNELS = 64  # a program of n equations gets kernels of about n // KERNELS ops, within LONG, to save compile time


def walls(program: Program) -> set[Any]:
    """The variables of a program that get an optimization barrier."""
    walled: set[Any] = set()
    if len(program.equations) <= SHORT:
        return walled
    long = min(max(LONG[0], len(program.equations) // KERNELS), LONG[1])
    uses: dict[Any, int] = {}
    for e in program.equations:
        for v in e.operands:
            uses[v] = uses.get(v, 0) + 1
    behind: dict[Any, int] = {}  # ops that each use of a variable would duplicate; none if the value is in memory
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
