"""Logs of a run: `Logger`, the protocol; `JSONL` files; `records`, which reads them.

A run that resumes, or goes back to a checkpoint, calls `rewind(step)` of loggers that have it, so that each step is
logged once.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import time
import weakref
from typing import Any, Protocol

from atled.core import errors

PAUSE = 0.2  # seconds that lines may be buffered


class Logger(Protocol):
    """The protocol of loggers: a custom tracker is a class with a method `log(step, values)`.

    An optional `rewind(step)` is called when later steps are discarded, and `flush()` before a checkpoint is written
    and at the end of the run.

    >>> from atled import train
    >>> class Printed:
    ...     def log(self, step, values):
    ...         print(step, sorted(values))
    >>> Printed().log(3, {"loss": 0.5})
    3 ['loss']
    """

    def log(self, step: int, values: dict[str, float]) -> None:
        """Log the values of a step."""
        ...


_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)  # the same line endings on all systems


class Appended:
    """An append-only file. Writes are buffered for up to `PAUSE` seconds; `flush` writes them to disk."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path.expanduser().absolute()  # the working directory may change
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, _APPEND, 0o666)
        self._waiting: list[bytes] = []
        self._last = 0.0
        weakref.finalize(self, _close, self._file, self._waiting)

    def write(self, data: bytes) -> None:
        """Append bytes, buffered."""
        self._waiting.append(data)
        if time.monotonic() - self._last > PAUSE:
            self.pass_on()

    def pass_on(self) -> None:
        """Pass all buffered bytes to the operating system."""
        self._last = time.monotonic()
        _write(self._file, self._waiting)

    def content(self) -> bytes:
        """The contents of the file."""
        self.pass_on()
        return self.path.read_bytes()

    def cut(self, size: int) -> None:
        """Truncate the file to its first `size` bytes."""
        self.pass_on()
        os.ftruncate(self._file, size)

    def flush(self) -> None:
        """Flush to disk."""
        self.pass_on()
        os.fsync(self._file)


def _write(file: int, waiting: list[bytes]) -> None:
    data = b"".join(waiting)
    waiting.clear()
    while data:
        data = data[os.write(file, data) :]


def _close(file: int, waiting: list[bytes]) -> None:
    _write(file, waiting)
    os.close(file)


class JSONL:
    """A file with a line of JSON for each step, `{"step": 1, "loss": 0.5, …}`. An existing file is appended to.

    Numbers are written in full precision. NaN and infinities, which JSON lacks, are the strings "NaN", "Infinity" and
    "-Infinity".

    >>> import tempfile
    >>> from atled import train
    >>> with tempfile.TemporaryDirectory() as path:
    ...     log = train.JSONL(f"{path}/log.jsonl")
    ...     log.log(1, {"loss": 0.5})
    ...     log.log(2, {"loss": float("nan")})
    ...     log.rewind(1)  # and the file has what is left
    ...     train.records(f"{path}/log.jsonl")
    [{'step': 1, 'loss': 0.5}]
    """

    def __init__(self, path: Any) -> None:
        self._file = Appended(pathlib.Path(path))

    def log(self, step: int, values: dict[str, float]) -> None:
        """Append the line of a step."""
        line = {"step": step, **{k: plain(v) for k, v in values.items()}, "step": step}  # noqa: F601
        self._file.write(json.dumps(line).encode() + b"\n")

    def rewind(self, step: int) -> None:
        """Remove the lines of later steps, and an incomplete line."""
        valid_bytes = 0
        for line in self._file.content().splitlines(keepends=True):
            record = _parsed(line)
            if record is None or record["step"] > step:
                break
            valid_bytes += len(line)
        self._file.cut(valid_bytes)

    def flush(self) -> None:
        """Flush the lines to disk."""
        self._file.flush()


def records(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a `JSONL` file, or of the log in a run's directory, as dicts.

    >>> import tempfile
    >>> from atled import train
    >>> with tempfile.TemporaryDirectory() as path:
    ...     log = train.JSONL(f"{path}/log.jsonl")
    ...     log.log(1, {"loss": 0.5})
    ...     log.flush()
    ...     train.records(path)
    [{'step': 1, 'loss': 0.5}]
    """
    file = pathlib.Path(path)
    file = file / "log.jsonl" if file.is_dir() else file
    if not file.exists():
        raise FileNotFoundError(errors.explained(f"train.records: there is no log at {path}."))
    parsed = [_parsed(line) for line in file.read_bytes().splitlines(keepends=True)]
    return [{k: from_plain(v) for k, v in one.items()} for one in parsed if one is not None]


def plain(x: float) -> Any:
    """A JSON number, or a string for NaN and infinities."""
    if math.isfinite(x):
        return x
    return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


def from_plain(x: Any) -> Any:
    """The inverse of `plain`."""
    return float(x) if x in ("NaN", "Infinity", "-Infinity") else x


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None if the line is incomplete."""
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None
