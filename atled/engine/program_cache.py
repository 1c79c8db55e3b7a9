"""The cache of compiled programs: lookups go to memory, then to disk; a program in neither is compiled once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from atled.compiler.fingerprint import NotPortable, digest
from atled.core.program import Program
from atled.engine import client, disk_cache
from atled.engine.compilation import compile_program, register
from atled.engine.compile_options import option_values, tuning
from atled.engine.memory_mappings import make_room, on_pressure
from atled.engine.placement import Where, description, device_list, devices_of

_loaded: dict[Any, Any] = {}  # (digest, compiler options, device, donated) -> loaded executable; the newest last
_LOADED_LIMIT = 4096


transforms: list[Any] = []  # names of user functions that transform modules; their results are not cached


def compiled(program: Program, where: Where, donated: tuple[int | None, ...] = (), module: Any = None) -> Any:
    """The loaded executable of a program: from memory, from disk, or newly compiled."""
    if transforms:
        return compile_program(program, where, donated, module)[0]
    try:
        name = digest(program)
    except NotPortable:
        return compile_program(program, where, donated, module)[0]
    memory_key = (name, tuning(program), where, donated)
    with one_at_a_time(memory_key):
        raw = _loaded.pop(memory_key, None)
        if raw is None:
            raw = _from_disk_or_new(program, name, where, donated, module)
            while len(_loaded) >= _LOADED_LIMIT:
                with contextlib.suppress(StopIteration, RuntimeError):  # other threads remove entries, too
                    _loaded.pop(next(iter(_loaded)), None)
        _loaded[memory_key] = raw
    return raw


def _from_disk_or_new(program: Program, name: str, where: Where, donated: tuple[int | None, ...], module: Any) -> Any:
    options = option_values(program, where)
    device = devices_of(where)[0]
    key = disk_cache.key(name, f"{options}{donated}{description(where)}", device.platform, device)
    entry = disk_cache.load(key)
    if entry is None and device.platform == "cpu" and len({d.process_index for d in devices_of(where)}) > 1:
        return _compiled_by_one(program, key, where, donated, module)
    if entry is not None:
        try:
            return revived(*entry, where)
        except (RuntimeError, ValueError):
            disk_cache.discard(key)
    raw, uses = compile_program(program, where, donated, module)
    if disk_cache.directory() is not None:
        disk_cache.store(key, {"uses": sorted(uses), "name": program.name}, raw.serialize())
    return raw


def revived(header: dict[str, Any], blob: bytes, where: Where, options: Any = None) -> Any:
    """Load a serialized executable for the devices of a placement, with the given compile options."""
    for kind in header["uses"]:
        register(kind)
    make_room()
    devices = devices_of(where)
    return devices[0].client.deserialize_executable(blob, device_list(devices), options)


def _compiled_by_one(program: Program, key: str, where: Where, donated: tuple[int | None, ...], module: Any) -> Any:
    """The executable of a multi-process program: the first process that requests it compiles it for all of them."""
    from atled.engine.multiprocess import processes  # imported only in multi-process runs

    fresh: list[Any] = []

    def make() -> tuple[dict[str, Any], bytes]:
        raw, uses = compile_program(program, where, donated, module)
        fresh.append(raw)
        return {"uses": sorted(uses), "name": program.name}, raw.serialize()

    entry = processes.once(key, make)
    disk_cache.store(key, *entry)
    return fresh[0] if fresh else revived(*entry, where)


_compiling: dict[Any, list[Any]] = {}  # a lock, and the number of threads that use it
_compiling_lock = threading.Lock()


@contextlib.contextmanager
def one_at_a_time(key: Any) -> Iterator[None]:
    """A `with` block that only one thread at a time runs for a key, so several threads compile a new program once."""
    with _compiling_lock:
        entry = _compiling.setdefault(key, [threading.RLock(), 0])
        entry[1] += 1
    try:
        with entry[0]:
            yield
    finally:
        with _compiling_lock:
            entry[1] -= 1
            if not entry[1]:
                del _compiling[key]


def forget() -> None:
    """Drop the cached executables."""
    _loaded.clear()


client.on_reset.append(forget)
on_pressure.append(forget)
