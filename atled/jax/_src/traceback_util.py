"""Names of `jax._src.traceback_util`. These functions do not change tracebacks: error messages name the user's line."""

from collections.abc import Callable
from typing import Any

from atled.core.source import exclude as register_exclusion
from atled.core.source import is_library_file

__all__ = ["api_boundary", "include_frame", "register_exclusion"]
_exclude_paths: list[str] = []


def api_boundary(fun: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """Return the function unchanged."""
    return fun


def include_frame(f: Any) -> bool:
    """Whether a frame belongs to user code."""
    return not is_library_file(f.f_code.co_filename)
