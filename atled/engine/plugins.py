"""Finds and loads PJRT plugins (CUDA, ROCm, TPU) without importing jax.

The wheels put their shared library under the `jax_plugins` namespace, or in `libtpu`. The wheels' Python modules import
jax, so atled locates the libraries without importing the modules.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import importlib.util
import itertools
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import jaxlib._jax as _jax


class Plugin(NamedTuple):
    """An installed plugin: its platform name and its shared library."""

    platform: str
    library: str


def installed() -> list[Plugin]:
    """The installed plugins, in order of preference."""
    plugins = []
    tpu = importlib.util.find_spec("libtpu")
    if tpu is not None and tpu.submodule_search_locations:
        library = os.path.join(tpu.submodule_search_locations[0], "libtpu.so")
        if os.path.exists(library):
            plugins.append(Plugin("tpu", library))
    spec = importlib.util.find_spec("jax_plugins")
    for base in spec.submodule_search_locations or () if spec is not None else ():
        for library in sorted(glob.glob(os.path.join(base, "*", "*plugin*.so"))):
            folder = os.path.basename(os.path.dirname(library))
            platform = next((p for p in ("cuda", "rocm") if p in folder), folder)
            plugins.append(Plugin(platform, library))
    return plugins


def start(plugin: Plugin) -> None:
    """Load and initialize a plugin's library, unless this was done before; works without a device."""
    with environment(plugin.platform):
        if not _jax.pjrt_plugin_loaded(plugin.platform):
            _jax.load_pjrt_plugin(plugin.platform, plugin.library, None)
        if not _jax.pjrt_plugin_initialized(plugin.platform):
            _jax.initialize_pjrt_plugin(plugin.platform)


@contextlib.contextmanager
def environment(platform: str) -> Iterator[None]:
    """A context manager that sets the environment variables that a plugin needs.

    Without a TPU, libtpu needs the variables of a slice's worker, and sets more itself. All of these changes are undone
    at the end; otherwise child processes and `multiprocess/cluster_detection.py` would take this machine for a worker
    of a real TPU slice.
    """
    if platform != "tpu":
        yield
        return
    if glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"):
        for name, value in _TPU.items():
            os.environ.setdefault(name, value)
        yield
        return
    before, seen = _variables(), dict(os.environ)
    for name, value in _NO_TPU.items():
        os.environ.setdefault(name, value)
    try:
        yield
    finally:
        for name in [n for n in _NO_TPU if n not in seen]:
            os.environ.pop(name, None)
        for name, value in _variables().items():
            if name not in before:
                os.unsetenv(name)
            elif before[name] != value:
                os.putenv(name, before[name])


def _variables() -> dict[bytes, bytes]:
    """The environment variables of the process, including those that a library has set, which `os.environ` lacks."""
    variables = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    pairs = itertools.takewhile(lambda v: v is not None, (variables[i] for i in itertools.count()))
    return {name: value for name, _, value in [pair.partition(b"=") for pair in pairs if pair is not None]}


_TPU = {"TPU_LOG_DIR": "disabled"}
# Without a TPU and these variables, libtpu queries the metadata server for minutes, and only one process can load it.
_NO_TPU = {
    **_TPU, "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3", "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}  # fmt: skip


def load(plugin: Plugin, world: Any = None) -> Any:
    """A client of a plugin; raises RuntimeError with the plugin's own message if it finds no device.

    `world` is the `client.World` that this process is in.
    """
    if plugin.platform == "cuda":
        _preload_vendor_libraries()
    start(plugin)
    options: dict[str, Any] = {}
    if plugin.platform in ("cuda", "rocm"):
        # No preallocation of device memory, so several processes can share the device.
        options = {"platform_name": plugin.platform, "allocator": "default", "preallocate": False}
        if world is not None:
            options.update(node_id=world.rank, num_nodes=world.size)
            if world.visible is not None:
                options["visible_devices"] = list(world.visible)
    with environment(plugin.platform):
        return _jax.get_c_api_client(plugin.platform, options, world.coordination if world is not None else None)


def _preload_vendor_libraries() -> None:
    """Load the CUDA libraries of the nvidia wheels, so that the plugin finds them by name."""
    spec = importlib.util.find_spec("nvidia")
    for base in spec.submodule_search_locations or () if spec is not None else ():
        for library in sorted(glob.glob(os.path.join(base, "*", "lib", "lib*.so.*"))):
            try:
                ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue  # the plugin itself reports missing libraries
