"""The engine's clients: one per platform, created on first use, valid only in the process that created them.

`ATLED_PLATFORMS` selects the platforms, the default one first (`cpu`, `cuda`, `rocm`, `tpu`); without it, an
accelerator whose plugin finds a device comes first. After a fork the child must not use the engine: its threads do not
exist there.
"""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jaxlib._jax as _jax
import jaxlib.version

from atled.core import settings
from atled.core.settings import scope
from atled.core.sharding import all_devices
from atled.engine import plugins

Device = _jax.Device

_lock = threading.RLock()
_clients: dict[str, Any] = {}  # platform -> client, the default first; empty until first use
_is_child = False
on_fork: list[Callable[[], None]] = []  # called in a forked child: drop objects that must not be used there
on_reset: list[Callable[[], None]] = []  # called by `reset`, after those in `on_fork`: drop references to clients


class World(NamedTuple):
    """Settings of clients in a multi-process run; created by `multiprocess/processes.py`."""

    coordination: Any  # the engine's coordination client
    rank: int
    size: int
    host: str  # the address of this process for incoming collective connections
    visible: Any  # ids of the accelerators that this process may use; None for all


world: World | None = None  # set before the clients are created


class ForkError(RuntimeError):
    """The engine was used in a child made by fork, where its threads do not exist and computations would hang.

    Start processes with `multiprocessing.get_context("spawn")`, or fork before the first array is made.

    >>> import multiprocessing
    >>> from atled import errors
    >>> issubclass(errors.ForkError, RuntimeError), multiprocessing.get_context("spawn").get_start_method()
    (True, 'spawn')
    """


def clients() -> dict[str, Any]:
    """The clients by platform, the default one first."""
    if _clients and not _is_child:
        return _clients
    with _lock:
        if _is_child:
            raise ForkError(
                "fork: atled was used before this process was forked, and its threads do not exist in the child "
                "process."
                "\n  try: multiprocessing.get_context('spawn'), or fork before the first array is made."
            )
        if not _clients:
            _clients.update(_make_clients())
    return _clients


def _make_clients() -> dict[str, Any]:
    for message in settings.malformed.values():
        raise ValueError(f"devices: {message}")
    asked = [p.strip() for p in os.environ.get("ATLED_PLATFORMS", "").split(",") if p.strip()]
    by_platform: dict[str, Any] = {}
    names = {"gpu": ("cuda", "rocm")}
    platforms = [q for p in asked for q in names.get(p, (p,))]
    for plugin in plugins.installed() if not asked or set(platforms) != {"cpu"} else ():
        if asked and plugin.platform not in platforms:
            continue
        try:
            by_platform[plugin.platform] = plugins.load(plugin, world)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:300]
            if asked:
                raise RuntimeError(
                    f"devices: ATLED_PLATFORMS asks for {plugin.platform}, whose plugin is installed "
                    f"({plugin.library}) but finds no device: {reason}"
                ) from None
            warnings.warn(
                f"The {plugin.platform} plugin is installed but finds no device, so the CPU is used: {reason}"
                "\n  Set ATLED_PLATFORMS=cpu to silence this warning.",
                RuntimeWarning,
                stacklevel=2,
            )
    if not asked or "cpu" in platforms:
        by_platform["cpu"] = _cpu_client()
    for platform in platforms:
        if platform not in by_platform and platform not in names.get("gpu", ()):
            raise RuntimeError(f"devices: ATLED_PLATFORMS asks for {platform}, but no plugin for it is installed.")
    if not by_platform:
        raise RuntimeError(f"devices: no plugin is installed for ATLED_PLATFORMS={','.join(asked)}.")
    order = [p for p in platforms if p in by_platform] if asked else list(by_platform)
    return {p: by_platform[p] for p in order}


def _cpu_client() -> Any:
    count = os.environ.get("ATLED_NUM_CPU_DEVICES")
    if count and not (count.isdecimal() and int(count)):
        raise ValueError(f"devices: ATLED_NUM_CPU_DEVICES must be a positive number; got {count!r}.")
    devices = {"num_devices": int(count)} if count else {}  # otherwise XLA_FLAGS sets the number
    if world is None or world.size == 1:
        return _jax.get_tfrt_cpu_client(asynchronous=True, **devices)
    gloo = _jax.make_gloo_tcp_collectives(distributed_client=world.coordination, hostname=world.host)
    return _jax.get_tfrt_cpu_client(
        asynchronous=True, distributed_client=world.coordination, node_id=world.rank, num_nodes=world.size,
        collectives=gloo, **devices,
    )  # fmt: skip


def is_used() -> bool:
    """Whether the clients have been created."""
    return bool(_clients)


def reset() -> None:
    """Drop the clients and everything created with them; existing arrays can only be read."""
    with _lock:
        for forget in (*on_fork, *on_reset):
            forget()
        _clients.clear()
    gc.collect()


def _after_fork() -> None:
    global _is_child
    if _clients:
        _is_child = True
        for forget in on_fork:
            forget()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)


def devices(backend: str | None = None) -> list[Any]:
    """All devices of the given platform, or of the default platform.

    >>> devices("cpu")[0].platform
    'cpu'
    """
    return list(_client(backend).devices())


all_devices[0] = devices


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Any]:
    """The devices of this process, or of the process `process_index`.

    >>> all(d.process_index == process_index() for d in local_devices())
    True
    """
    if process_index is None:
        return list(_client(backend).local_devices())
    return [d for d in devices(backend) if d.process_index == process_index]


def _client(platform: str | None) -> Any:
    known = clients()
    if platform is None:
        return next(iter(known.values()))
    for name in {"gpu": ("cuda", "rocm")}.get(platform, (platform,)):
        if name in known:
            return known[name]
    raise RuntimeError(f"devices: Unknown backend {platform!r}; the platforms here are {', '.join(known)}.")


def device_count(backend: str | None = None) -> int:
    """The number of devices of all processes.

    >>> device_count() == len(devices())
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    >>> local_device_count() == len(local_devices())
    True
    """
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The rank of this process.

    >>> process_index()
    0
    """
    return _client(backend).process_index()


def process_count(backend: str | None = None) -> int:
    """The number of processes in this run.

    >>> process_count()
    1
    """
    return len({d.process_index for d in devices(backend)})


def default_backend() -> str:
    """The default platform of arrays: `cpu`, `cuda`, `rocm` or `tpu`.

    >>> default_backend() in ("cpu", "cuda", "rocm", "tpu")
    True
    """
    return next(iter(clients()))


def engine_version() -> str:
    """The version of jaxlib."""
    return jaxlib.version.__version__


def default_device() -> Any:
    """The device of new arrays.

    >>> import atled, atled.numpy as jnp
    >>> with atled.default_device(atled.devices()[-1]):
    ...     default_device() == jnp.ones(3).device == atled.devices()[-1]
    True
    """
    chosen = scope().default_device
    if chosen is not None:
        return devices(chosen)[0] if isinstance(chosen, str) else chosen
    return _client(None).local_devices()[0]
