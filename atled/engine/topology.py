"""Topologies: descriptions of hardware that is not attached, to compile for ahead of time.

The plugins contain the accelerators' compilers, which need no device. A program compiled for a topology cannot run, but
shows its memory, its operations and its communication on each device.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import jaxlib._jax as _jax

from atled.compiler import unsupported_ops
from atled.core.program import Program
from atled.core.sharding import Placed
from atled.engine import chip_specs, client, jaxlib_versions, plugins
from atled.engine.compilation import lowered, settle
from atled.engine.compile_options import options
from atled.engine.jaxlib_versions import EngineError
from atled.engine.placement import MeshPlacement, Where, device_list, devices_of, on_device


class Topology:
    """A topology to compile for: its devices, and the memory of each.

    >>> Topology("tpu v5p:2x2x1", "tpu", (), 95 * 2**30)
    Topology('tpu v5p:2x2x1', 0 devices, 95.00 GiB each)
    """

    __slots__ = ("devices", "memory", "name", "platform")

    def __init__(self, name: str, platform: str, devices: tuple[Any, ...], memory: int | None) -> None:
        self.name = name
        self.platform = platform
        self.devices = devices
        self.memory = memory  # bytes per device; None if not known

    def __repr__(self) -> str:
        each = "" if self.memory is None else f", {size(self.memory)} each"
        return f"Topology({self.name!r}, {len(self.devices)} devices{each})"


_WHEELS = {"tpu": "libtpu", "cuda": "jax-cuda12-pjrt"}
_of_client: dict[Any, Topology] = {}


@functools.cache
def make(platform: str, chip: str, shape: tuple[int, ...], more: tuple[tuple[str, Any], ...]) -> Topology:
    """The topology of a platform with these chips; cached, so equal arguments return the same devices."""
    grid = "x".join(map(str, shape))
    name = f"tpu {chip}:{grid}" if platform == "tpu" else f"{platform} {chip} {grid}"
    plugin = next((p for p in plugins.installed() if p.platform == platform), None)
    if plugin is None:
        raise ImportError(
            f"topologies.get: {name} needs the {_WHEELS[platform]} wheel, which is not installed."
            f"\n  try: pip install 'atled[{platform}]'."
        )
    plugins.start(plugin)
    try:
        if platform == "tpu":
            with plugins.environment(platform):
                described = _jax.get_default_c_api_topology(platform, f"{chip}:{grid}", dict(more))
        else:
            asked = {"topology": grid, "target_config": chip_specs.GPUS[chip].description, **dict(more)}
            described = _jax.get_default_c_api_topology(platform, "", asked)
    except EngineError as error:
        raise ValueError(f"topologies.get: {name} is not an existing machine: {_reason(error)}") from None
    devices = tuple(sorted(described._make_compile_only_devices(), key=lambda d: d.id))
    memory = chip_specs.TPUS[chip] if platform == "tpu" else chip_specs.GPUS[chip].memory
    topology = _of_client[devices[0].client] = Topology(name, platform, devices, memory)
    return topology


def _reason(error: Exception) -> str:
    return str(error).partition(": ")[2] or str(error)


def of(where: Where) -> Topology | None:
    """The topology that a placement's devices belong to, or None for attached devices."""
    return _of_client.get(devices_of(where)[0].client) if _of_client else None


class Unloaded:
    """A program compiled for a topology: an `Executable` that cannot run."""

    __slots__ = ("placed", "program", "raw", "topology", "where")

    def __init__(self, raw: Any, program: Program, where: Where, topology: Topology) -> None:
        self.raw = _Raw(raw)
        self.program, self.where, self.topology = program, where, topology
        outs = where.outs if isinstance(where, MeshPlacement) else [on_device(where)] * len(program.outputs)
        self.placed = [Placed(t, s, True) for t, s in zip(program.output_types, outs, strict=True)]


class _Raw:
    """The compiler's output, with the methods of a loaded executable."""

    def __init__(self, made: Any) -> None:
        self._made = made
        self.serialize, self.get_compiled_memory_stats = made.serialize, made.get_compiled_memory_stats

    def get_hlo_text(self) -> str:
        return "\n".join([m.to_string() for m in self._made.hlo_modules()])

    def cost_analysis(self) -> dict[str, float]:
        try:
            return self._made.cost_analysis()
        except EngineError:  # the CUDA plugin has no cost analysis
            return _jax.hlo_module_cost_analysis(client.clients()["cpu"], self._made.hlo_modules()[0])


def unloaded(
    program: Program, where: Where, donated: tuple[int | None, ...], module: Any, effort: float | None
) -> Unloaded:
    """Compile a program for the topology of a placement; `effort` is between -1 (fast) and 1."""
    topology = of(where)
    assert topology is not None

    def compile(program: Program, where: Where, donated: tuple[int | None, ...], module: Any) -> Any:
        devices, asked = devices_of(where), options(program, where)
        if effort is not None:
            jaxlib_versions.set_effort(asked.executable_build_options, effort)
        unsupported_ops.check_without_devices(topology.platform, program)
        module = module or lowered(program, where, donated)
        return devices[0].client.compile(module.module, device_list(devices), asked)

    try:
        raw, settled = settle(compile, program, where, donated, module)
    except EngineError as error:
        raise _explained(error, program, topology) from None
    stats = raw.get_compiled_memory_stats()
    needed = stats.argument_size_in_bytes + stats.output_size_in_bytes
    needed += stats.temp_size_in_bytes - stats.alias_size_in_bytes
    if topology.platform != "tpu" and topology.memory is not None and needed > topology.memory:
        raise _too_large(program, topology, size(needed), size(topology.memory))
    return Unloaded(raw, program, settled, topology)


def _explained(error: Exception, program: Program, topology: Topology) -> Exception:
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text:
        match = re.search(r"([\d.]+[KMGT])\D* of ([\d.]+[KMGT]) hbm|\(([\d.]+[KMGT])\).*?\(([\d.]+[KMGT])\)", text)
        if match is not None:
            needed, there = [f"{g[:-1]} {g[-1]}iB" for g in match.groups() if g]
            return _too_large(program, topology, needed, there)
    return RuntimeError(f"{program.name}: the compiler for {topology.name} failed: {text}")


def _too_large(program: Program, topology: Topology, needed: str, there: str) -> MemoryError:
    return MemoryError(
        f"{program.name}: needs {needed} on each device of {topology.name}, which has {there}."
        "\n  try: shard more arguments, donate arguments that are replaced, use checkpoint, or use a smaller batch."
    )


def size(n: float) -> str:
    """A number of bytes as text, with a binary unit.

    >>> size(95 * 2**30)
    '95.00 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.2f} {unit}" if unit != "bytes" else f"{n} {unit}"
        n /= 1024
    return f"{n:.2f} TiB"
