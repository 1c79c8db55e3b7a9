"""`TensorBoard`: event files, written without TensorFlow.

A file is a sequence of records: the length, its checksum, a message, its checksum. The checksums are CRC-32C, rotated
and shifted. The message is an `Event` protocol buffer with the fields `wall_time` (1), `step` (2), `file_version` (3)
and `summary` (5), whose values (1) have a `tag` (1) and a `simple_value` (2).
"""

from __future__ import annotations

import pathlib
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from atled.train.logs import Appended


class TensorBoard:
    """Event files of scalars in a directory, which TensorBoard shows. An existing file is appended to.

    >>> import tempfile
    >>> from atled import train
    >>> with tempfile.TemporaryDirectory() as path:
    ...     board = train.TensorBoard(path)
    ...     board.log(1, {"loss": 0.5})
    ...     [(step, values) for _, step, values in board.events()]
    [(0, {}), (1, {'loss': 0.5})]
    """

    def __init__(self, directory: Any) -> None:
        where = pathlib.Path(directory)
        there = sorted(where.glob("events.out.tfevents.*.atled"))
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.atled"
        self._file = Appended(there[-1] if there else where / name)
        self.path = self._file.path
        if not there:
            self._file.write(_record(_double(1, time.time()) + _text(3, b"brain.Event:2")))

    def log(self, step: int, values: dict[str, float]) -> None:
        """Append the record of a step."""
        summary = b"".join(
            [_text(1, _text(1, k.encode()) + b"\x15" + _float(v)) for k, v in values.items()]
        )  # 0x15: field 2, four bytes
        self._file.write(_record(_double(1, time.time()) + b"\x10" + _varint(step) + _text(5, summary)))

    def rewind(self, step: int) -> None:
        """Remove the records of later steps, and an incomplete record."""
        cut_at = 0
        for end, at, _ in self.events():
            if at > step:
                break
            cut_at = end
        self._file.cut(cut_at)

    def flush(self) -> None:
        """Flush the records to disk."""
        self._file.flush()

    def events(self) -> Iterator[tuple[int, int, dict[str, float]]]:
        """The end offset, the step and the values of each complete record."""
        data, at = self._file.content(), 0
        while at + 12 <= len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            end = at + 16 + size
            message = data[at + 12 : end - 4]
            if end > len(data) or _record(message) != data[at:end]:
                return
            fields = dict(_fields(message))
            yield end, fields.get(2, 0), dict(_values(fields.get(5, b"")))
            at = end


def _record(message: bytes) -> bytes:
    size = struct.pack("<Q", len(message))
    return size + _masked(size) + message + _masked(message)


def _masked(data: bytes) -> bytes:
    crc = _crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _table()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _float(x: float) -> bytes:
    with np.errstate(over="ignore"):
        return np.float32(x).tobytes()


def _varint(n: int) -> bytes:
    encoded = bytearray()
    while n > 0x7F:
        encoded.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*encoded, n])


def _double(field: int, x: float) -> bytes:
    return bytes([field << 3 | 1]) + struct.pack("<d", x)


def _text(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the content of each field of a protobuf message."""
    at = 0
    while at < len(message):
        field, kind = message[at] >> 3, message[at] & 7
        if kind in (1, 5):
            size = 8 if kind == 1 else 4
            yield field, message[at + 1 : at + 1 + size]
            at += 1 + size
            continue
        at, n = _number(message, at + 1)
        if kind == 2:
            yield field, message[at : at + n]
            at += n
        else:
            yield field, n


def _number(message: bytes, at: int) -> tuple[int, int]:
    n = shift = 0
    while message[at] > 0x7F:
        n |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return at + 1, n | message[at] << shift


def _values(summary: bytes) -> Iterator[tuple[str, float]]:
    for _, value in _fields(summary):
        parts = dict(_fields(value))
        yield parts[1].decode(), struct.unpack("<f", parts[2])[0]
