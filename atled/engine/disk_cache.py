"""The disk cache of compiled programs: on by default, bounded in size, private, and verified before use.

A file is named by its key, a hash of the program's fingerprint, the compile options, the versions of jaxlib and of the
lowering code, and the fingerprint of the machine. A file starts with a checksum over that key and the rest of the file,
so an entry that was altered, truncated, or stored under another key is recompiled instead of run. Writers rename a
finished file into place, so readers never see a partial file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import struct
import sys
import threading
import warnings
from typing import Any

import jaxlib._jax as _jax
import jaxlib.version

from atled.core import source
from atled.core.settings import scope
from atled.engine import client

_MAGIC = b"atled.executable.1\n"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.cache
def _machine(platform: str, device: Any) -> str:
    """The part of a cache key besides program and options: versions, lowering code, flags and the hardware."""
    parts = [os.environ.get("XLA_FLAGS", ""), *runtime(device)]
    for folder in ("compiler", "engine", "ops", "higher_order", "numpy", "lax", "scipy"):
        for entry in sorted(os.scandir(os.path.join(_PACKAGE, folder)), key=lambda e: e.name):
            if entry.name.endswith(".py"):
                status = entry.stat()
                parts.append(f"{folder}/{entry.name}:{status.st_size}:{status.st_mtime_ns}")
    return "\n".join(parts)


def runtime(device: Any) -> list[str]:
    """The requirements of compiled code at run time: the engine's version, the platform and the hardware."""
    client = device.client
    if device.platform == "cpu" and client.device_count() > client.local_device_count():
        # Each process of a multi-process run has its own fingerprint; a single-process client has the same one in all.
        device = _jax.get_tfrt_cpu_client(asynchronous=False, num_devices=1).local_devices()[0]
    fingerprint = _jax.get_topology_for_devices([device]).fingerprint()
    return [jaxlib.version.__version__, device.platform, str(fingerprint)]


def key(program_digest: str, options: str, platform: str, device: Any) -> str:
    """The cache key of a compiled program."""
    text = "\n".join([program_digest, options, _machine(platform, device)])
    return hashlib.sha256(text.encode()).hexdigest()


def directory() -> str | None:
    """The cache directory, created on first use, or None if the cache is off or the directory is not private."""
    return _prepared(place()) if scope().cache else None


def place() -> str:
    """The path of the cache directory; it is not created."""
    chosen = scope().cache_dir
    if chosen is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        chosen = os.path.join(base, "atled")
    return os.path.join(chosen, "executables")


@functools.cache
def _prepared(path: str) -> str | None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError as error:
        _warn(f"{path} cannot be used ({error.strerror}); the cache is off.")
        return None
    if not is_private(status):
        _warn(f"others may write to {path}, so it is not used. Run: chmod 700 {path}")
        return None
    return path


def _warn(text: str) -> None:
    """A warning about the cache, attributed to the user's line that compiles."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and source.is_library_file(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"compile cache: {text}", stacklevel=level)


def is_private(found: os.stat_result) -> bool:
    """Whether only this user may write to a file or directory; always True on Windows, which has no mode bits."""
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def load(key: str) -> tuple[dict[str, Any], bytes] | None:
    """The header and serialized executable stored under a key, if they exist and the checksum matches."""
    path = directory()
    if path is None:
        return None
    name = os.path.join(path, key)
    try:
        with open(name, "rb") as file:
            data = file.read()
    except OSError:
        return None
    if not is_unharmed(key, data):
        discard(key)
        return None
    with contextlib.suppress(OSError):
        os.utime(name)  # `evict` removes the least recently used entries
    start = len(_MAGIC) + 32
    (length,) = struct.unpack_from("<I", data, start)
    header = json.loads(data[start + 4 : start + 4 + length])
    return header, data[start + 4 + length :]


def is_unharmed(key: str, data: bytes) -> bool:
    """Whether a file's checksum matches its name and contents."""
    start = len(_MAGIC) + 32
    return data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) : start] == _checksum(key, data[start:])


def _checksum(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + payload).digest()


def discard(key: str) -> None:
    """Remove the entry stored under a key."""
    path = directory()
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(path, key))


def store(key: str, header: dict[str, Any], blob: bytes) -> None:
    """Store a serialized executable; only warn if the cache cannot be written to."""
    path = directory()
    if path is None:
        return
    text = json.dumps(header).encode()
    payload = struct.pack("<I", len(text)) + text + blob
    temporary = os.path.join(path, f".tmp-{os.getpid()}-{threading.get_ident()}-{key[:16]}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _checksum(key, payload) + payload)
        os.replace(temporary, os.path.join(path, key))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if (path, error.errno) not in _failed:  # warn once, not for each compilation
            _failed.add((path, error.errno))
            _warn(f"{path} cannot be written to ({error.strerror}); programs compiled now are not cached.")
        return
    _written[path] = _written.get(path, scope().cache_bytes) + len(payload)
    if _written[path] > scope().cache_bytes // 8:  # true for the first write of a process, too
        _written[path] = 0
        evict(path, scope().cache_bytes)


_failed: set[tuple[str, int | None]] = set()
_written: dict[str, int] = {}  # bytes written since the last scan of the directory


def evict(path: str, limit: int) -> None:
    """If the files exceed `limit` bytes, remove the least recently used until they take at most 80 % of it."""
    entries = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(path):
            with contextlib.suppress(OSError):
                status = entry.stat()
                entries.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, name in sorted(entries):
        if total <= limit * 0.8:
            break
        with contextlib.suppress(OSError):
            os.unlink(name)
        total -= size


client.on_reset.append(_machine.cache_clear)
