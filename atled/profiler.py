"""Profiles of programs, in the formats of TensorBoard, XProf and Perfetto.

>>> import tempfile, atled, atled.numpy as jnp
>>> with tempfile.TemporaryDirectory() as place, trace(place):
...     with TraceAnnotation("a step"):
...         _ = atled.jit(jnp.sin)(1.0).block_until_ready()
"""

from __future__ import annotations

import contextlib
import functools
import glob
import gzip
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from atled.engine import client, profiler
from atled.engine.profiler import ProfileData, ProfileEvent, ProfileOptions, ProfilePlane, register_subprocess

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "StepTraceAnnotation", "TraceAnnotation",
    "annotate_function", "device_memory_profile", "register_subprocess", "save_device_memory_profile", "start_server",
    "start_trace", "stop_server", "stop_trace", "trace",
]  # fmt: skip
__dir__ = __all__.copy

_lock = threading.Lock()
_session: list[Any] = []  # the running session, its output directory, and whether to write for Perfetto
_server: list[Any] = []


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Start a profile, which `stop_trace` writes to the directory `log_dir`, for `tensorboard --logdir`.

    Args:
        create_perfetto_link: must be False; serving the file to a web page is not supported.
        create_perfetto_trace: whether to write `perfetto_trace.json.gz`, too, for ui.perfetto.dev.
        profiler_options: a `ProfileOptions` with the trace levels of Python, host and devices.

    >>> import os, tempfile, atled.numpy as jnp
    >>> place = tempfile.TemporaryDirectory()
    >>> start_trace(place.name, create_perfetto_trace=True)
    >>> _ = jnp.ones(3).block_until_ready()
    >>> stop_trace()
    >>> "perfetto_trace.json.gz" in [name for _, _, names in os.walk(place.name) for name in names]
    True
    >>> place.cleanup()
    """
    if create_perfetto_link:
        raise NotImplementedError(
            "profiler.start_trace: create_perfetto_link must be False."
            "\n  try: create_perfetto_trace=True, and open the file on ui.perfetto.dev."
        )
    with _lock:
        if _session:
            raise RuntimeError(
                f"profiler.start_trace: a profile is being written to {_session[1]}; stop_trace ends it."
            )
        client.clients()  # devices must be initialized before profiling
        session = profiler.ProfilerSession(profiler_options) if profiler_options else profiler.ProfilerSession()
        _session.extend([session, os.fspath(log_dir), create_perfetto_trace])


def stop_trace() -> None:
    """Stop the profile of `start_trace`, and write it to its directory.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     start_trace(place)
    ...     stop_trace()
    ...     os.listdir(place)
    ['plugins']
    """
    with _lock:
        if not _session:
            raise RuntimeError("profiler.stop_trace: no profile was started.\n  try: profiler.start_trace(directory).")
        (session, place, is_for_perfetto), _session[:] = tuple(_session), []
        session.stop_and_export(place)
    if is_for_perfetto:
        _for_perfetto(place)


def _for_perfetto(place: str) -> None:
    """Write the newest profile in a directory as `perfetto_trace.json.gz`, next to its other files."""
    traces = sorted(glob.glob(os.path.join(glob.escape(place), "plugins", "profile", "*", "*.trace.json.gz")))
    if traces:
        with gzip.open(traces[-1], "rb") as events:
            text = events.read()
        with gzip.open(os.path.join(os.path.dirname(traces[-1]), "perfetto_trace.json.gz"), "wb") as out:
            out.write(text)


@contextlib.contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """A `with` block that calls `start_trace` and `stop_trace` around its body.

    >>> import os, tempfile, atled.numpy as jnp
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with trace(place):
    ...         _ = jnp.ones(3).block_until_ready()
    ...     os.listdir(f"{place}/plugins")
    ['profile']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation(profiler.TraceMe):
    """A `with` block that appears under a name in profiles.

    >>> with TraceAnnotation("reading", file="a.txt"):
    ...     pass
    """


class StepTraceAnnotation(TraceAnnotation):
    """A `with` block that appears as a training step in profiles, for viewers that compare steps.

    >>> for i in range(2):
    ...     with StepTraceAnnotation("train", step_num=i):
    ...         pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any) -> Callable[..., Any]:
    """A decorator that makes calls of a function appear in profiles, under the function's name or `name`.

    >>> annotate_function(abs, name="size")(-1)
    1
    """
    shown = name or getattr(func, "__qualname__", getattr(func, "__name__", "function"))

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(shown, **decorator_kwargs):
            return func(*args, **kwargs)

    return call


def device_memory_profile(backend: str | None = None) -> bytes:
    """A memory profile in `pprof` format: which lines allocated the live arrays on devices.

    >>> len(device_memory_profile()) > 0
    True
    """
    return gzip.compress(client.devices(backend)[0].client.heap_profile())


def save_device_memory_profile(filename: str | os.PathLike[str], backend: str | None = None) -> None:
    """Write the result of `device_memory_profile` to a file.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     save_device_memory_profile(f"{place}/memory.prof")  # for `pprof -web memory.prof`
    ...     os.path.getsize(f"{place}/memory.prof") > 0
    True
    """
    with open(filename, "wb") as out:
        out.write(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Start a server from which viewers such as TensorBoard capture profiles, at a port of this machine.

    >>> import socket
    >>> with socket.socket() as free:
    ...     free.bind(("127.0.0.1", 0))
    ...     port = free.getsockname()[1]
    >>> server = start_server(port)
    >>> try:
    ...     start_server(port)
    ... except RuntimeError as error:
    ...     print(error)
    profiler.start_server: there is a server already; stop_server ends it.
    >>> stop_server()
    """
    with _lock:
        if _server:
            raise RuntimeError("profiler.start_server: there is a server already; stop_server ends it.")
        if requires_backend:
            client.clients()
        _server.append(profiler.start_server(port))
        return _server[0]


def stop_server() -> None:
    """Stop the server started by `start_server`.

    >>> try:
    ...     stop_server()
    ... except RuntimeError as error:
    ...     print(error)
    profiler.stop_server: there is no server.
    """
    with _lock:
        if not _server:
            raise RuntimeError("profiler.stop_server: there is no server.")
        _server.clear()
