"""Where traced code comes from, under the names of `jax.extend.source_info_util`."""

from __future__ import annotations

from typing import Any

from atled.core import source
from atled.core.source import Source as SourceInfo

__all__ = ["SourceInfo", "current", "register_exclusion", "summarize"]


def current() -> Any:
    """The line of the user's code that is running.

    >>> current() is None or current().line > 0
    True
    """
    return source.here()


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """A place in the user's code in one line.

    >>> summarize(None)
    'unknown'
    """
    return "unknown" if source_info is None else f"{source_info.file}:{source_info.line} ({source_info.function})"


def register_exclusion(path: str) -> None:
    """Take the files under a path for library code, which messages do not name.

    >>> register_exclusion("/nowhere/my_library")
    """
    source.exclude(path)
