"""Placement of parts of a program on host or device, with the API of `jax.experimental.compute_on`.

On a CPU, host and device are the same, so these functions only add an attribute for the compiler. On other platforms,
which would have to move arrays, they raise.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from atled.core import errors
from atled.engine import client
from atled.higher_order.frontend_attributes import Marks, marked_call

__all__ = ["compute_on", "compute_on2"]
__dir__ = __all__.copy
_KINDS = {"device_host": "host", "device": "device", "tpu_sparsecore": "sparse"}


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A `with` block whose ops run on the device's host ("device_host") or on the device itself ("device").

    >>> import atled.numpy as jnp
    >>> with compute_on("device_host"):
    ...     jnp.arange(3) * 2
    Array([0, 2, 4], dtype=int32)
    """
    _marks("compute_on", compute_type, None)
    yield


def compute_on2(
    f: Callable[..., Any] | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None
) -> Any:
    """A version of `f` that runs on host or device as one annotated call. Results are in device memory.

    >>> import atled.numpy as jnp
    >>> doubled = compute_on2(lambda x: x * 2, compute_type="device_host", out_memory_spaces=None)
    >>> doubled(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    marks = _marks("compute_on2", compute_type, compiler_options)
    return (lambda g: marked_call(g, marks)) if f is None else marked_call(f, marks)


def _marks(name: str, kind: Any, options: Any) -> Marks:
    if not isinstance(kind, str):
        raise TypeError(errors.explained(f"{name}: compute_type is a string; got {kind!r}.", "'device_host'."))
    if kind not in _KINDS and not kind.startswith("gpu_stream:"):
        known = ", ".join(map(repr, _KINDS))
        raise ValueError(errors.explained(f"{name}: compute_type is {known} or 'gpu_stream:#'; got {kind!r}."))
    if client.default_backend() != "cpu":
        raise NotImplementedError(f"{name}: only supported on cpu, where host and device are the same.")
    if kind.startswith("gpu_stream:"):
        return (("_xla_stream_annotation", kind.partition(":")[2]), ("inlineable", "false"))
    told = [("_xla_compute_type", _KINDS[kind])]
    return (*told, *([("backend_config", json.dumps(options))] if options is not None else []))
