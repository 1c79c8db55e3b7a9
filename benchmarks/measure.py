"""Interleaved timing: candidates take turns in short bursts, and the best time of each counts.

The machine is shared and noisy, so only ratios of interleaved measurements are meaningful.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


def interleaved(candidates: dict[str, Callable[[], Any]], calls: int = 200, rounds: int = 60) -> dict[str, float]:
    """The best seconds per call of each candidate."""
    for f in candidates.values():
        for _ in range(3):
            f()
    best = dict.fromkeys(candidates, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for i in range(rounds):
            # alternating order, so that caches and spinning threads of a library favor no candidate
            for name, f in list(candidates.items())[:: -1 if i % 2 else 1]:
                start = time.perf_counter()
                for _ in range(calls):
                    f()
                best[name] = min(best[name], (time.perf_counter() - start) / calls)
    finally:
        gc.enable()
    return best


def once_each(candidates: dict[str, Callable[[], float]], rounds: int, limit: float = 60.0) -> dict[str, float]:
    """The best of the values that each candidate returns; no new round begins after `limit` seconds."""
    best = dict.fromkeys(candidates, float("inf"))
    began = time.perf_counter()
    for _ in range(rounds):
        if time.perf_counter() - began > limit:
            break
        for name, f in candidates.items():
            best[name] = min(best[name], f())
            gc.collect()
    return best


def timed(f: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a call takes, and its result."""
    start = time.perf_counter()
    out = f()
    return time.perf_counter() - start, out


def fresh_process(code: str) -> float:
    """Seconds that a new Python process takes to run some code."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
