"""Storage of checkpoint files: `Local`, a directory, or `Remote`, an object store accessed through tensorstore.

`Local` and `Remote` have the same methods: write a file durably, read parts of a file, list files, delete files.
`replace` is atomic: a reader sees either the old content or the new content.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat
import time
import uuid
from collections.abc import Iterable
from typing import Any

from atled.checkpoints.format import SPAN, CheckpointError, Damaged
from atled.core import errors


class Local:
    """A directory. When `sync` returns, new and deleted files are on disk."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path).absolute()

    def __str__(self) -> str:
        return str(self.path)

    def inside(self, name: str) -> Local:
        """The storage of a subdirectory."""
        return Local(self.path / name)

    def prepare(self) -> None:
        """Create the directory and its parents."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed("created", error) from None

    def write(self, name: str, chunks: Iterable[Any]) -> None:
        """Write a new file; its bytes are on disk when this returns."""
        try:
            with self._opened(name) as file:
                for chunk in chunks:
                    view = memoryview(chunk).cast("B")
                    done = 0
                    while done < len(view):
                        done += file.write(view[done : done + SPAN])
                os.fsync(file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(self.path / name)  # a partial file would use disk space
            raise self._failed(f"written ({name})", error) from None

    def _opened(self, name: str) -> Any:
        """A new file; creates the directory again if another process, whose save failed, removed it while empty."""
        try:
            return open(self.path / name, "wb", buffering=0)
        except FileNotFoundError:
            self.path.mkdir(parents=True, exist_ok=True)
            return open(self.path / name, "wb", buffering=0)

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file atomically: after a crash it has either the old content or the new content."""
        beside = f".{name}.{uuid.uuid4().hex[:8]}"
        self.sync()  # the files that a manifest lists must exist
        self.write(beside, [data])
        try:
            os.replace(self.path / beside, self.path / name)
        except OSError as error:
            raise self._failed(f"written ({name})", error) from None
        self.sync()
        with contextlib.suppress(OSError):
            _sync(self.path.parent)

    def sync(self) -> None:
        """Sync the entries of the directory to disk."""
        with contextlib.suppress(OSError):  # not supported by some file systems
            _sync(self.path)

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if it does not exist."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(f"read ({name})", error, Damaged) from None

    def parts(self, name: str, offset: int, into: memoryview) -> Iterable[memoryview]:
        """Read bytes of a file into memory, yielding each part when it is filled; ends early if the file is short."""
        try:
            with open(self.path / name, "rb", buffering=0) as file:
                file.seek(offset)
                done = 0
                while done < len(into):
                    part = into[done : done + SPAN]
                    count = file.readinto(part)
                    if not count:
                        return
                    yield part[:count]
                    done += count
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed(f"read ({name})", error, Damaged) from None

    def sizes(self) -> dict[str, int]:
        """The sizes of the files, by name."""
        try:
            names = os.listdir(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise self._failed("listed", error) from None
        file_sizes = {}
        for name in names:
            with contextlib.suppress(OSError):  # removed since `listdir`
                status = os.stat(self.path / name)
                if stat.S_ISREG(status.st_mode):
                    file_sizes[name] = status.st_size
        return file_sizes

    def folders(self) -> list[str]:
        """The names of the subdirectories."""
        try:
            with os.scandir(self.path) as entries:
                return sorted([e.name for e in entries if e.is_dir()])
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._failed("listed", error) from None

    def delete(self, names: Iterable[str]) -> None:
        """Remove files, if they exist."""
        for name in names:
            with contextlib.suppress(OSError):  # a file that remains is harmless
                os.unlink(self.path / name)

    def remove(self, files: Iterable[str]) -> None:
        """Remove files in this order, then the directory if it is empty; of a symbolic link, only the link."""
        with contextlib.suppress(OSError):
            if self.path.is_symlink():
                return self.path.unlink()
        self.delete(files)
        self.leave()

    def leave(self) -> None:
        """Remove the directory if it is empty."""
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def old_files(self, seconds: float) -> list[str]:
        """The files that have not been modified in the last `seconds` seconds."""
        before, old = time.time() - seconds, []
        for name in self.sizes():
            with contextlib.suppress(OSError):
                if os.stat(self.path / name).st_mtime < before:
                    old.append(name)
        return old

    def _failed(self, what: str, error: OSError, kind: type[CheckpointError] = CheckpointError) -> CheckpointError:
        return kind(errors.explained(f"checkpoints: {self.path} could not be {what}: {error.strerror}."))


def _sync(path: pathlib.Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Remote:
    """A prefix in an object store, such as `s3://bucket/run` or `gs://bucket/run`, reached through tensorstore.

    A dict instead of a URL is the tensorstore spec of a key-value store, with more options, such as an endpoint.
    """

    def __init__(self, where: str | dict[str, Any], store: Any = None) -> None:
        if isinstance(where, dict):
            path = where.get("path", "")
            where = {**where, "path": path if path.endswith("/") or not path else f"{path}/"}
        elif not where.endswith("/"):
            where = f"{where}/"
        self.store = _opened(where) if store is None else store
        self.url = where if isinstance(where, str) else _shown(where)

    def __str__(self) -> str:
        return self.url.rstrip("/")

    def inside(self, name: str) -> Remote:
        """The storage at the prefix extended by `name` and a slash."""
        store = self.store.copy()
        store.path += f"{name}/"
        return Remote(f"{self.url}{name}/", store)

    def prepare(self) -> None:
        """Does nothing: object stores have no directories."""

    def write(self, name: str, chunks: Iterable[Any]) -> None:
        """Write a new object; it is durable when this returns."""
        data = b"".join([memoryview(c).cast("B") for c in chunks])
        self._do("written", name, lambda: self.store.write(name, data).result())

    def replace(self, name: str, data: bytes) -> None:
        """Replace an object atomically."""
        self.write(name, [data])

    def sync(self) -> None:
        """Does nothing: object stores are durable."""

    def read(self, name: str) -> bytes | None:
        """The bytes of an object; None if it does not exist."""
        result = self._do("read", name, lambda: self.store.read(name).result())
        return bytes(result.value) if result.state == "value" else None

    def parts(self, name: str, offset: int, into: memoryview) -> Iterable[memoryview]:
        """Read bytes of an object into memory, then yield them in parts."""
        window = slice(offset, offset + len(into))
        result = self._do("read", name, lambda: self.store.read(name, byte_range=window).result())
        data = result.value if result.state == "value" else b""
        into[: len(data)] = data
        for i in range(0, len(data), SPAN):
            yield into[i : min(i + SPAN, len(data))]

    def sizes(self) -> dict[str, int | None]:
        """None for the size of each object, by name: sizes are unknown."""
        names = self._do("listed", "", lambda: self.store.list().result())
        return {n.decode(): None for n in names if b"/" not in n}

    def folders(self) -> list[str]:
        """The first components of names that contain a slash."""
        names = self._do("listed", "", lambda: self.store.list().result())
        return sorted({n.decode().split("/")[0] for n in names if b"/" in n})

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects, if they exist."""
        for name in names:
            self._do("deleted", name, lambda name=name: self.store.write(name, None).result())

    def remove(self, files: Iterable[str]) -> None:
        """Remove objects in this order."""
        self.delete(files)

    def leave(self) -> None:
        """Does nothing: object stores have no directories."""

    def old_files(self, seconds: float) -> list[str]:
        """An empty list: the age of objects is unknown."""
        return []

    def _do(self, what: str, name: str, act: Any) -> Any:
        try:
            return act()
        except Exception as error:
            raise CheckpointError(
                errors.explained(f"checkpoints: {self.url}{name} could not be {what}: {str(error)[:500]}")
            ) from None


def _shown(spec: dict[str, Any]) -> str:
    """A store given as a dict, as text for messages."""
    return "/".join([f"{spec.get('driver')}:/", *[spec[k] for k in ("endpoint", "bucket") if k in spec], spec["path"]])


def _opened(url: Any) -> Any:
    try:
        import tensorstore
    except ImportError:
        raise ImportError(
            errors.explained(f"checkpoints: {url} needs tensorstore.", 'pip install "atled[checkpoints]".')
        ) from None
    try:
        return tensorstore.KvStore.open(url).result()
    except Exception as error:
        raise CheckpointError(errors.explained(f"checkpoints: {url} could not be opened: {str(error)[:500]}")) from None


def place(path: Any) -> Local | Remote:
    """The storage at a path, a URL, or a tensorstore spec."""
    if isinstance(path, (Local, Remote)):
        return path
    if isinstance(path, dict):
        return Remote(path)
    if isinstance(path, str) and "://" in path and not path.startswith("file://"):
        return Remote(path)
    text = path.removeprefix("file://") if isinstance(path, str) else path
    if not isinstance(text, (str, os.PathLike)) or not os.fspath(text):
        raise TypeError(errors.explained(f"checkpoints: the path must be a directory, a URL or a dict; got {path!r}."))
    return Local(os.path.expanduser(text))
