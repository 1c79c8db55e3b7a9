"""Errors of computations that failed on a device, reported with the user's line that launched them."""

from __future__ import annotations

import sys
from typing import Any

from atled.core import errors, source
from atled.engine import launch_control


class ExecutionError(RuntimeError):
    """A computation failed on the device, asynchronously; the message names the line that launched it.

    >>> import atled.numpy as jnp
    >>> try:
    ...     jnp.zeros(2**45).block_until_ready()
    ... except ExecutionError as error:
    ...     print(str(error).splitlines()[0])
    execution failed: RESOURCE_EXHAUSTED: Out of memory allocating 140737488355328 bytes.
    """


def failed(buffer: Any, error: Exception) -> RuntimeError:
    """The exception to raise for a failed computation: a callback's own, or an error with the line that launched it."""
    text = " ".join(str(error).split())
    launch_control.flush()
    processes = sys.modules.get("atled.engine.multiprocess.processes")
    blamed = None if processes is None else processes.explain(error)
    if blamed is not None:
        return errors.for_user(blamed)  # type: ignore[return-value]
    own = errors.kept(text)
    if own is not None:
        return errors.for_user(own)  # type: ignore[return-value]
    if buffer is None:
        return ExecutionError(f"execution failed: {text[:2000]}")
    if "deleted" in text or "donated" in text or buffer.is_deleted():
        return RuntimeError(
            f"deleted array: {buffer.aval.type} was deleted or donated, and its memory is gone."
            "\n  try: use the result of the call that took it, or leave it out of donate_argnums."
        )
    place = ""
    for frame in buffer.traceback.frames if buffer.traceback is not None else ():
        if not source.is_library_file(frame.file_name):
            place = f"\n  launched in {frame.function_name}, {frame.file_name}:{frame.line_num}"
            break
    return ExecutionError(f"execution failed: {text[:2000]}{place}")


def check_there(buffer: Any) -> None:
    """Raise an error for a donated or deleted buffer."""
    if buffer.is_deleted():
        raise failed(buffer, RuntimeError("deleted"))
