"""Limits the memory mappings of loaded programs: some programs are dropped before there are too many."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

# Each loaded program takes ten or twenty memory mappings, of which Linux allows a process some 65,000; the compiler
# crashes when there are none left. Before that, everything that can be reloaded from disk is dropped.
on_pressure: list[Callable[[], None]] = []
MAPPINGS = 24_000
_NEEDED = 512  # free mappings required to compile a program
_EACH = 64  # more mappings than most programs use
_SPARED = 50  # a check takes a microsecond for each mapping; capped at 1/50 of the run time
_unlooked = [0, 0.0]  # mappings that may be used, and the time, until the next check


def make_room() -> None:
    """Check the number of memory mappings before compiling another program; raise if too few are left."""
    _unlooked[0] -= _EACH
    if _unlooked[0] > 0 and time.monotonic() < _unlooked[1]:  # other parts of the process use mappings, too
        return
    start, most = time.monotonic(), _mappings_allowed()
    taken = relieve(min(MAPPINGS, most // 2))
    if most - taken < _NEEDED:
        raise MemoryError(
            f"compile: this process has {taken:,} memory mappings of {most:,} that Linux allows, too few for another "
            "program.\n  try: sysctl vm.max_map_count=1000000, fewer memory-mapped files, or atled.clear_caches()."
        )
    now = time.monotonic()
    _unlooked[:] = min((most - taken) // 4, 128 * _EACH), now + min(max(0.2, _SPARED * (now - start)), 2.0)


def relieve(limit: int) -> int:
    """Drop executables that can be reloaded from disk, if there are more mappings than `limit`; how many there are."""
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
