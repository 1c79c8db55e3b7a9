"""The memory mappings that loaded programs take, and what is dropped before there are too many."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

# Each loaded program takes ten or twenty memory mappings, of which Linux allows a process some 65,000; the compiler
# crashes when there are no more. Before that, everything that can be made again from disk is dropped.
on_pressure: list[Callable[[], None]] = []
MAPPINGS = 24_000
_NEEDED = 512  # mappings that must be left for a program to be compiled
_EACH = 64  # more than most programs take
_unlooked = [0, 0.0]  # mappings that may be taken before the next look, which takes a millisecond, and until when


def make_room() -> None:
    """Look at the memory mappings before another program takes some; complain if there are too few left."""
    _unlooked[0] -= _EACH
    if _unlooked[0] > 0 and time.monotonic() < _unlooked[1]:  # other parts of the program take mappings, too
        return
    most = _mappings_allowed()
    relieve(min(MAPPINGS, most // 2))
    taken = _mappings()
    if most - taken < _NEEDED:
        raise MemoryError(
            f"compile: this process has {taken:,} memory mappings of {most:,} that Linux allows, too few for another "
            "program.\n  try: sysctl vm.max_map_count=1000000, fewer files that are mapped at the same time, or "
            "atled.clear_caches()."
        )
    _unlooked[:] = min((most - taken) // 4, 128 * _EACH), time.monotonic() + 0.2


def relieve(limit: int) -> None:
    """Drop what can be made again from disk, if this process has more mappings than `limit`."""
    if _mappings() > limit:
        for drop in on_pressure:
            drop()
        gc.collect()


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
