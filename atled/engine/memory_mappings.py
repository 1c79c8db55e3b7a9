"""Limits the memory mappings of loaded programs: drops cached programs before the process has too many."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

# Each loaded program takes ten or twenty memory mappings, of which Linux allows a process some 65,000; the compiler
# crashes when none are left. Before that, the functions in `on_pressure` drop cached programs.
on_pressure: list[Callable[[], None]] = []
MAPPINGS = 24_000
_NEEDED = 512  # free mappings required to compile a program
_EACH = 64  # more mappings than most programs use
_SPARED = 50  # a check takes a microsecond per mapping; checks take at most 1/50 of the run time
_unlooked = [0, 0.0]  # mappings that may be added before the next check, and its time


def make_room() -> None:
    """Check the number of memory mappings before compiling another program; raise if too few are left."""
    _unlooked[0] -= _EACH
    if _unlooked[0] > 0 and time.monotonic() < _unlooked[1]:  # the time limit is for mappings made by other code
        return
    start, most = time.monotonic(), _mappings_allowed()
    taken = relieve(min(MAPPINGS, most // 2))
    if most - taken < _NEEDED:
        raise MemoryError(
            f"compile: this process uses {taken:,} of the {most:,} memory mappings that Linux allows, too many for a "
            "new program.\n  try: sysctl vm.max_map_count=1000000, fewer memory-mapped files, or atled.clear_caches()."
        )
    now = time.monotonic()
    _unlooked[:] = min((most - taken) // 4, 128 * _EACH), now + min(max(0.2, _SPARED * (now - start)), 2.0)


def relieve(limit: int) -> int:
    """Drop cached executables if the process has more than `limit` mappings; returns the number of mappings."""
    taken = _mappings()
    if taken > limit:
        for drop in on_pressure:
            drop()
        gc.collect()
        taken = _mappings()
    return taken


def _mappings_allowed() -> int:
    try:
        with open("/proc/sys/vm/max_map_count", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 1 << 40  # another system


def _mappings() -> int:
    try:
        with open("/proc/self/maps", "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0
