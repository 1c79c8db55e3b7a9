"""The shared secret that authenticates processes to the hub; connections without it get no answer.

The secret is in `ATLED_TOKEN`, or in the file that `ATLED_TOKEN_FILE` names. Otherwise the secret is in a private file
of the user, created on first use; processes on one machine, or with a shared home directory, need no setting.
"""

from __future__ import annotations

import contextlib
import os
import secrets

_ADVICE = (
    "\n  try: ATLED_TOKEN, the same long random text for all processes; or a file with it, named by ATLED_TOKEN_FILE."
)


def origin() -> str:
    """Where the secret of this process comes from, in words."""
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
                f"distributed: ATLED_TOKEN_FILE={path!r} cannot be read ({error.strerror}).{_ADVICE}"
            ) from None
    path = _own_path()
    try:
        if not os.path.exists(path):
            _make(path)
        return _read(path)
    except OSError as error:
        raise RuntimeError(
            f"distributed: the secret that processes share cannot be stored in {path} ({error.strerror}).{_ADVICE}"
        ) from None


def _make(path: str) -> None:
    """Create a new secret, unless another process does so first."""
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
            raise PermissionError(1, "others can read it; chmod 600")
        secret = file.read(4096).strip()
    if not secret:
        raise OSError(1, "it is empty")
    return secret
