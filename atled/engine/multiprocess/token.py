"""The shared secret that authenticates processes to the hub; connections without it get no answer.

The secret is in `ATLED_TOKEN`, in the file that `ATLED_TOKEN_FILE` names, or in a private file in the user's cache
directory, created on first use. Processes on one machine, or with a shared home directory, need no setting.
"""

from __future__ import annotations

import contextlib
import os
import secrets

_ADVICE = (
    "\n  try: ATLED_TOKEN, the same long random text in all processes; or ATLED_TOKEN_FILE, a file with this text."
)


def origin() -> str:
    """The source of this process's secret as text, for messages."""
    if os.environ.get("ATLED_TOKEN"):
        return "the environment variable ATLED_TOKEN"
    path = os.environ.get("ATLED_TOKEN_FILE")
    return f"ATLED_TOKEN_FILE={path}" if path else f"the file {_own_path()}"


def _own_path() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "atled", "token")


def token() -> bytes:
    """The secret of this process."""
    given = os.environ.get("ATLED_TOKEN")
    if given:
        return given.strip().encode()
    path = os.environ.get("ATLED_TOKEN_FILE")
    if path:
        try:
            return _read(path)
        except OSError as error:
            raise ValueError(
                f"distributed: ATLED_TOKEN_FILE={path!r} cannot be used: {error.strerror}.{_ADVICE}"
            ) from None
    path = _own_path()
    try:
        if not os.path.exists(path):
            _make(path)
        return _read(path)
    except OSError as error:
        raise RuntimeError(
            f"distributed: the shared secret in {path} cannot be created or used: {error.strerror}.{_ADVICE}"
        ) from None


def _make(path: str) -> None:
    """Create the file with a new secret, unless another process creates it first."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
            raise PermissionError(1, "its permissions give other users access; run chmod 600 on it")
        secret = file.read(4096).strip()
    if not secret:
        raise OSError(1, "it is empty")
    return secret
