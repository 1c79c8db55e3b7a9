"""Compiles programs and runs them.

`compiled` looks in memory, then on disk, then lowers and compiles. An `Executable` takes buffers and gives buffers; the
launch paths of eager ops and of `jit` hold its bound methods and call nothing else.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import gc
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jaxlib._hlo as _hlo
import jaxlib._jax as _jax
import numpy as np

from atled.compiler.digest import NotPortable, digest
from atled.core import errors
from atled.core.program import Program
from atled.core.sharding import Placed, SingleDeviceSharding
from atled.engine import cache

EngineError = _jax.JaxRuntimeError


@functools.cache
def layout(sharding: SingleDeviceSharding) -> Any:
    """The engine's own object for a sharding."""
    devices = device_list(sharding.device)
    return _jax.GSPMDSharding(devices, _hlo.HloSharding.replicate().to_proto())


@functools.cache
def device_list(device: Any) -> Any:
    """The engine's own list of one device."""
    return _jax.DeviceList((device,))


@functools.cache
def on_device(device: Any) -> SingleDeviceSharding:
    """The sharding of arrays that are on one device; one object a device."""
    return SingleDeviceSharding(device)


def handler(placed: Placed) -> Any:
    """The engine's maker of results of one kind."""
    if placed.handler is None:
        placed.handler = _jax.array_result_handler(
            placed, layout(placed.sharding), committed=placed.committed, _skip_checks=True
        )
    return placed.handler


class Executable:
    """A compiled program on a device."""

    __slots__ = ("device", "donated", "execute", "handlers", "placed", "program", "raw")

    def __init__(
        self, raw: Any, program: Program, device: Any, committed: bool, donated: tuple[int | None, ...]
    ) -> None:
        self.raw = raw
        self.program = program
        self.device = device
        self.donated = donated
        sharding = on_device(device)
        self.placed = [Placed(t, sharding, committed) for t in program.output_types]
        self.handlers = [handler(p) for p in self.placed]
        self.execute = raw.execute_sharded
        if any([e.op.has_effect for e in program.equations]):
            self.execute = functools.partial(_with_effects, raw.execute_sharded)

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        return self.execute(buffers).consume_with_handlers(self.handlers)


_running: collections.deque[Any] = collections.deque()  # tokens of programs with effects


def _with_effects(execute: Callable[..., Any], buffers: Sequence[Any]) -> Any:
    """Run a program that calls back: after the one before it, so that effects keep their order."""
    while _running:
        with contextlib.suppress(EngineError):  # said where its results are read
            _running.popleft().block_until_ready()
    out = execute(buffers, with_tokens=True)
    _running.append(out.consume_token())
    return out


def effects_barrier() -> None:
    """Wait until the effects of all programs that were launched have happened: prints, callbacks."""
    while _running:
        try:
            _running.popleft().block_until_ready()
        except EngineError as error:
            own = errors.kept(str(error))
            raise (RuntimeError(f"execution failed: {error}") if own is None else own) from None


def flush() -> None:
    """Let what was printed be seen, before an error is."""
    while _running:
        with contextlib.suppress(EngineError):
            _running.popleft().block_until_ready()
    sys.stdout.flush()


atexit.register(flush)


def executable(
    program: Program, device: Any, committed: bool = False, donated: tuple[int | None, ...] = (), module: Any = None
) -> Executable:
    """A program ready to run on a device; `module` is what it was lowered to, if that has happened."""
    make = lambda: Executable(compiled(program, device, donated, module), program, device, committed, donated)  # noqa: E731
    return program.memo(("executable", device, committed, donated), make)


_loaded: dict[Any, Any] = {}  # (digest, device, donated) -> loaded executable; the newest last
_LOADED_LIMIT = 4096


def compiled(program: Program, device: Any, donated: tuple[int | None, ...] = (), module: Any = None) -> Any:
    """The loaded executable of a program, from memory, from disk, or new."""
    try:
        name = digest(program)
    except NotPortable:
        return _compile(program, device, donated, module)[0]
    memory_key = (name, device, donated)
    raw = _loaded.pop(memory_key, None)
    if raw is None:
        _relieve()
        raw = _from_disk_or_new(program, name, device, donated, module)
        while len(_loaded) >= _LOADED_LIMIT:
            _loaded.pop(next(iter(_loaded)), None)
    _loaded[memory_key] = raw
    return raw


# Each loaded program takes ten or twenty memory mappings, of which Linux allows a process some 65,000; the compiler
# crashes when there are no more. Before that, everything that can be made again from disk is dropped.
on_pressure: list[Callable[[], None]] = []
MAPPINGS = 24_000
_EVERY = 128  # programs, between looks at the mappings
_loads = itertools.count(1)


def _relieve() -> None:
    if next(_loads) % _EVERY == 0 and _mappings() > MAPPINGS:
        for drop in on_pressure:
            drop()
        _loaded.clear()
        gc.collect()


def _mappings() -> int:
    try:
        with open("/proc/self/maps", "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


def _from_disk_or_new(program: Program, name: str, device: Any, donated: tuple[int | None, ...], module: Any) -> Any:
    options = _option_values(program)
    key = cache.key(name, f"{options}{donated}{device.id}", device.platform, device)
    found = cache.load(key)
    if found is not None:
        header, blob = found
        try:
            for kind in header["uses"]:
                register(kind)
            return device.client.deserialize_executable(blob, device_list(device), None)
        except (RuntimeError, ValueError):
            cache.discard(key)
    raw, uses = _compile(program, device, donated, module)
    if cache.directory() is not None:
        cache.store(key, {"uses": sorted(uses), "name": program.name}, raw.serialize())
    return raw


def _option_values(program: Program) -> dict[str, Any]:
    found: dict[str, Any] = {"xla_disable_hlo_passes": "cse_barrier_expander"}  # it removes barriers before fusion
    # The fusion emitters are slow to compile, and fail, on long chains of elementwise ops; without them one-op programs
    # compile in half the time. Large programs run faster with them (measured in benchmarks/).
    if len(program.equations) <= SMALL:
        found["xla_cpu_use_fusion_emitters"] = False
    else:
        found["xla_cpu_parallel_codegen_split_count"] = PARTS
    return found


SMALL = 24  # equations
PARTS = min(32, 2 * (os.cpu_count() or 1))  # compiled in parallel; more than the cores can take gain nothing


def options(program: Program, device: Any) -> Any:
    """Compile options for a program on one device."""
    made = _jax.CompileOptions()
    if device.platform == "cpu":
        made.env_option_overrides = list(_option_values(program).items())
    assignment = _jax.DeviceAssignment.create(np.array([[device.id]], np.int32))
    for part in (made, made.executable_build_options):
        part.num_replicas, part.num_partitions, part.device_assignment = 1, 1, assignment
    return made


def _compile(
    program: Program, device: Any, donated: tuple[int | None, ...], module: Any = None
) -> tuple[Any, set[str]]:
    from atled.engine import stablehlo  # MLIR loads only when something is compiled

    module = module or stablehlo.build(program, device.platform, donated)
    return compile_module(module, program, device), module.uses


def compile_module(module: Any, program: Program, device: Any) -> Any:
    """Hand a built module to the compiler."""
    for kind in module.uses:
        register(kind)
    devices = device_list(device)
    made = options(program, device)
    more = (module.callbacks,) if module.callbacks else ()
    try:
        return device.client.compile_and_load(module.module, devices, made, *more)
    except EngineError as error:
        if device.platform == "cpu" and "MLIR failure" in str(error):  # the emitters, on long chains
            made.env_option_overrides = [*made.env_option_overrides, ("xla_cpu_use_fusion_emitters", False)]
        elif device.platform == "cpu" and "opt-barrier" in str(error):  # in a loop that became one function
            made.env_option_overrides = [o for o in made.env_option_overrides if o[0] != "xla_disable_hlo_passes"]
        else:
            raise
        return device.client.compile_and_load(module.module, devices, made, *more)


@functools.cache
def register(kind: str) -> None:
    """Make a family of custom calls known to the engine."""
    assert kind == "lapack"
    from jaxlib.cpu import _lapack  # takes its pointers from SciPy: half a second, so only when needed

    _lapack.initialize()
    for name, target in _lapack.registrations().items():
        _jax.register_custom_call_target(name, target, "Host", 1)


def forget() -> None:
    """Drop the loaded executables that are kept for reuse."""
    _loaded.clear()
