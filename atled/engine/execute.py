"""Compiles programs and runs them.

`compiled` looks in memory, then on disk, then lowers and compiles. An `Executable` maps buffers to buffers; the
launch paths of eager ops and of `jit` hold its bound methods and call nothing else.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import itertools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import jaxlib._jax as _jax
import numpy as np

from atled.compiler.digest import NotPortable, digest
from atled.core import dtypes, errors, sharding, source
from atled.core.program import Program, subprograms
from atled.core.sharding import NamedSharding, PartitionSpec, Placed, physical
from atled.engine import cache, versions
from atled.engine import client as clients
from atled.engine.mappings import make_room, on_pressure
from atled.engine.placement import (
    Spread,
    Where,
    device_list,
    devices_of,
    layout,
    layout_of,
    on_device,
    sharding_of_tiling,
)

EngineError = versions.EngineError


def handler(placed: Placed) -> Any:
    """The engine's function that creates results of one kind."""
    if placed.handler is None:
        placed.handler = versions.result_handler(placed, layout_of(placed), placed.committed)
    return placed.handler


class Executable:
    """A compiled program on a device, or over a mesh."""

    __slots__ = ("donated", "execute", "handlers", "placed", "program", "raw", "where")

    def __init__(
        self, raw: Any, program: Program, where: Where, committed: bool, donated: tuple[int | None, ...]
    ) -> None:
        self.raw = raw
        self.program = program
        self.where = where
        self.donated = donated
        if isinstance(where, Spread):
            self.placed = [Placed(t, s, True) for t, s in zip(program.output_types, where.outs, strict=True)]
        else:
            sharding = on_device(where)
            self.placed = [Placed(t, sharding, committed) for t in program.output_types]
        self.handlers = [handler(p) for p in self.placed]
        self.execute = raw.execute_sharded
        if any([e.op.has_effect for e in program.equations]):
            self.execute = functools.partial(_with_effects, raw.execute_sharded)
        elif isinstance(where, Spread) and where.mesh.size > 1 and where.mesh.flat[0].platform == "cpu":
            self.execute = functools.partial(_in_turn, raw.execute_sharded)
            if len(where.mesh.local_devices) > MOST and _COLLECTIVE.search(raw.get_hlo_text()):
                self.execute = functools.partial(_refuse, self)
        ranks = sorted({d.process_index for d in devices_of(where)})
        if len(ranks) > 1:
            self.execute = _Together(self.execute, program, where, ranks)
        if len(devices_of(where)) > 1:
            self.execute = functools.partial(_if_there, self.execute)

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        return self.execute(buffers).consume_with_handlers(self.handlers)


def _if_there(execute: Callable[..., Any], buffers: Sequence[Any]) -> Any:
    """Run a program over several devices; raises if an argument was deleted, which would crash the engine."""
    for b in buffers:
        if b.is_deleted():
            raise EngineError(f"{b.aval.type} was deleted or donated")
    return execute(buffers)


_running: collections.deque[Any] = collections.deque()  # tokens of programs with effects


def _with_effects(execute: Callable[..., Any], buffers: Sequence[Any]) -> Any:
    """Run a program with callbacks after the previous one has finished, so that effects keep their order."""
    while _running:
        with contextlib.suppress(EngineError):  # raised when its results are read
            _running.popleft().block_until_ready()
    out = execute(buffers, with_tokens=True)
    _running.append(out.consume_token())
    return out


# Programs over several CPU devices share one thread pool, and the threads of a collective wait for each other: with
# some forty programs in flight, they deadlock. So the number is limited: every eighth launch is noted, and at most two
# noted ones may be unfinished.
EVERY, NOTED = 8, 2
_in_flight: collections.deque[Any] = collections.deque()
_turns = itertools.count(1)


def _in_turn(execute: Callable[..., Any], buffers: Sequence[Any]) -> Any:
    """Run a program over several devices, after waiting for an older one if many are in flight."""
    if next(_turns) % EVERY:
        return execute(buffers)
    if len(_in_flight) >= NOTED:
        with contextlib.suppress(EngineError, IndexError):  # raised when its results are read
            _in_flight.popleft().block_until_ready()
    out = execute(buffers, with_tokens=True)
    _in_flight.append(out.consume_token())
    return out


# the maximum number of CPU devices per process for collectives: with more, the engine lacks threads and deadlocks
MOST = 256
_COLLECTIVE = re.compile(r" (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute)")


def _refuse(ready: Executable, buffers: Sequence[Any]) -> Any:
    raise RuntimeError(
        f"{ready.program.name}: a program with collectives runs on at most {MOST} CPU devices of one process; got "
        f"{ready.where.mesh.size}.\n  try: several processes, or compile only: jit(f).lower(...).compile()."
    )


class _Together:
    """Runs a multi-process program, after checking that all processes launch it."""

    __slots__ = ("calls_back", "execute", "number", "program", "ranks", "where")

    def __init__(self, execute: Any, program: Program, where: Any, ranks: list[int]) -> None:
        self.execute, self.program, self.where, self.ranks = execute, program, where, ranks
        self.calls_back = False
        self.number: int | None = None

    def __call__(self, buffers: Sequence[Any]) -> Any:
        from atled.engine.world import processes  # imported only with several processes

        if self.number is None:
            try:
                name = digest(self.program)
            except NotPortable:  # it holds Python functions, as callbacks do
                name, self.calls_back = f"{self.program.name}, {len(self.program.equations)} equations", True
            place = source.here()
            location = str(place) if place is not None else ""
            name = f"{name} {_description(self.where)}"
            self.number = processes.agree(name, self.program.name, location, self.ranks)
        mark = processes.launched(self.number, buffers)
        if self.calls_back:  # callbacks see values before the results are confirmed
            processes.confirm(mark)
        mark.world.is_launching = True
        try:
            return _Marked(self.execute(buffers), mark)
        finally:
            mark.world.is_launching = False


class _Marked:
    """The results of a launch, tagged with its mark."""

    __slots__ = ("mark", "results")

    def __init__(self, results: Any, mark: Any) -> None:
        self.results, self.mark = results, mark

    def consume_with_handlers(self, handlers: Sequence[Any]) -> list[Any]:
        arrays = self.results.consume_with_handlers(handlers)
        for buffer in arrays:
            buffer.mark = self.mark
        return arrays


def effects_barrier() -> None:
    """Wait until the effects (prints, callbacks) of all launched programs have happened.

    >>> import atled
    >>> def run():
    ...     atled.jit(lambda x: atled.debug.print("x is {}", x))(3)
    ...     effects_barrier()
    >>> run()
    x is 3
    """
    while _running:
        try:
            _running.popleft().block_until_ready()
        except EngineError as error:
            own = errors.kept(str(error))
            raise (RuntimeError(f"execution failed: {error}") if own is None else own) from None


def flush() -> None:
    """Flush printed output before an error is raised."""
    while _running:
        with contextlib.suppress(EngineError):
            _running.popleft().block_until_ready()
    sys.stdout.flush()


atexit.register(flush)


def executable(
    program: Program, where: Where, committed: bool = False, donated: tuple[int | None, ...] = (), module: Any = None
) -> Executable:
    """A program compiled for a placement; `module` is its lowered module, if it exists already."""

    key = ("executable", where, committed, donated)
    cached = program.derived.get(key)
    if cached is None:
        with _one_at_a_time((id(program), key)):
            cached = program.derived.get(key)
            if cached is None:
                raw, settled = settle(compiled, program, where, donated, module)
                cached = program.derived[key] = Executable(raw, program, settled, committed, donated)
    return cached


_compiling: dict[Any, list[Any]] = {}  # a lock, and the number of threads that use it
_compiling_lock = threading.Lock()


@contextlib.contextmanager
def _one_at_a_time(key: Any) -> Iterator[None]:
    """A block that serializes threads: several threads with the same new program compile it once."""
    with _compiling_lock:
        entry = _compiling.setdefault(key, [threading.RLock(), 0])
        entry[1] += 1
    try:
        with entry[0]:
            yield
    finally:
        with _compiling_lock:
            entry[1] -= 1
            if not entry[1]:
                del _compiling[key]


def compiled_anew(
    program: Program, where: Where, committed: bool, donated: tuple[int | None, ...], module: Any
) -> Executable:
    """Like `executable`, without caches: cache keys ignore source lines, so a cached program may have other ones."""
    raw, settled = settle(lambda *a: _compile(*a)[0], program, where, donated, module)
    return Executable(raw, program, settled, committed, donated)


def settle(
    compile: Callable[..., Any], program: Program, where: Where, donated: tuple[int | None, ...], module: Any
) -> tuple[Any, Where]:
    """The compiled program, and the placements of its inputs and outputs."""
    raw = compile(program, where, donated, module)
    if not isinstance(where, Spread):
        return raw, where
    settled = _settled(raw, program, where)
    if None in settled.outs:  # no PartitionSpec expresses the compiler's sharding of an output: replicate it
        whole = NamedSharding(where.mesh, PartitionSpec())
        settled = where._replace(outs=tuple([s or whole for s in settled.outs]))
        raw = compile(program, settled, donated, None)
    return raw, settled


def _settled(raw: Any, program: Program, where: Spread) -> Spread:
    """The placements of a compiled program's outputs."""
    tilings = raw.get_output_shardings()
    outs: list[Any] = []
    for i, (t, s) in enumerate(zip(program.output_types, where.outs, strict=True)):
        if s is None and tilings is None:
            s = NamedSharding(where.mesh, PartitionSpec())
        elif s is None and tilings is not None:
            s = sharding_of_tiling(tilings[i], where.mesh, physical(t)[0])
            if s is not None and t.kind == "k":  # the words of keys are never split
                s = s.with_spec(PartitionSpec(*s.spec[1:])) if not s.spec.axes(0) else None
        outs.append(s)
    return where._replace(outs=tuple(outs))


_loaded: dict[Any, Any] = {}  # (digest, compiler options, device, donated) -> loaded executable; the newest last
_LOADED_LIMIT = 4096


transforms: list[Any] = []  # names of user functions that transform modules; their results are not cached


def compiled(program: Program, where: Where, donated: tuple[int | None, ...] = (), module: Any = None) -> Any:
    """The loaded executable of a program, from memory, from disk, or new."""
    if transforms:
        return _compile(program, where, donated, module)[0]
    try:
        name = digest(program)
    except NotPortable:
        return _compile(program, where, donated, module)[0]
    memory_key = (name, _tuning(program), where, donated)
    with _one_at_a_time(memory_key):
        raw = _loaded.pop(memory_key, None)
        if raw is None:
            raw = _from_disk_or_new(program, name, where, donated, module)
            while len(_loaded) >= _LOADED_LIMIT:
                with contextlib.suppress(StopIteration, RuntimeError):  # other threads remove entries, too
                    _loaded.pop(next(iter(_loaded)), None)
        _loaded[memory_key] = raw
    return raw


def _from_disk_or_new(program: Program, name: str, where: Where, donated: tuple[int | None, ...], module: Any) -> Any:
    options = _option_values(program, where)
    device = devices_of(where)[0]
    key = cache.key(name, f"{options}{donated}{_description(where)}", device.platform, device)
    entry = cache.load(key)
    if entry is None and device.platform == "cpu" and len({d.process_index for d in devices_of(where)}) > 1:
        return _compiled_by_one(program, key, where, donated, module)
    if entry is not None:
        try:
            return revived(*entry, where)
        except (RuntimeError, ValueError):
            cache.discard(key)
    raw, uses = _compile(program, where, donated, module)
    if cache.directory() is not None:
        cache.store(key, {"uses": sorted(uses), "name": program.name}, raw.serialize())
    return raw


def revived(header: dict[str, Any], blob: bytes, where: Where, options: Any = None) -> Any:
    """Load a serialized executable; with options, for other devices."""
    for kind in header["uses"]:
        register(kind)
    make_room()
    devices = devices_of(where)
    return devices[0].client.deserialize_executable(blob, device_list(devices), options)


def _compiled_by_one(program: Program, key: str, where: Where, donated: tuple[int | None, ...], module: Any) -> Any:
    """A multi-process program, compiled by the first process that requests it, for all."""
    from atled.engine.world import processes  # imported only with several processes

    fresh: list[Any] = []

    def make() -> tuple[dict[str, Any], bytes]:
        raw, uses = _compile(program, where, donated, module)
        fresh.append(raw)
        return {"uses": sorted(uses), "name": program.name}, raw.serialize()

    entry = processes.once(key, make)
    cache.store(key, *entry)
    return fresh[0] if fresh else revived(*entry, where)


def _description(where: Where) -> str:
    """The compile options, as part of the cache key."""
    if not isinstance(where, Spread):
        return str(where.id)
    places = [(d.id, d.process_index) for d in where.mesh.flat]
    meshes = {s.mesh: None for s in (*where.ins, *where.outs) if s is not None}
    return f"{places}{where.mesh}{list(meshes)}{where.ins}{where.outs}"


CompilerOptions: TypeAlias = tuple[tuple[str, str, Any], ...]  # name, type and value, since 1 == True


def tuned(program: Program, chosen: CompilerOptions) -> Program:
    """The same program, to be compiled with further options of XLA."""

    def make() -> Program:
        copy = Program(program.inputs, program.equations, program.outputs, program.name, program.input_names)
        copy.derived["compiler_options"] = chosen
        return copy

    return program.memo(("tuned", chosen), make) if chosen else program


def _tuning(program: Program) -> CompilerOptions:
    """The options that the user chose for this program."""
    return program.derived.get("compiler_options", ())


def _option_values(program: Program, where: Where) -> dict[str, Any]:
    chosen = {name: value for name, _, value in _tuning(program)}
    devices = devices_of(where)
    if devices[0].platform != "cpu":
        return chosen
    values: dict[str, Any] = {_LEFT_OUT: _BARRIERS}
    if len({d.process_index for d in devices}) > 1:
        values[_LEFT_OUT] += f",{_COMBINER}"
    # The fusion emitters are slow to compile, and fail, on long chains of elementwise ops; without them one-op programs
    # compile in half the time. Some ops on large arrays run up to three times as fast with them, large programs run
    # faster, too (measured in benchmarks/), and so do long ops over a mesh, where they are not one loop each.
    is_spread = isinstance(where, Spread) and where.mesh.size > 1
    if len(program.equations) <= SMALL and not is_spread and not _gains_by_emitters(program):
        values["xla_cpu_use_fusion_emitters"] = False
    else:
        values["xla_cpu_parallel_codegen_split_count"] = PARTS
    if _is_few_integers(program):
        values["xla_backend_optimization_level"] = 0
    if _LEFT_OUT in chosen:
        chosen[_LEFT_OUT] = f"{values[_LEFT_OUT]},{chosen[_LEFT_OUT]}"
    return {**values, **chosen}


_LEFT_OUT = "xla_disable_hlo_passes"
_BARRIERS = "cse_barrier_expander"  # removes barriers before fusion
# Makes one all-reduce of several. Gloo reduces one array after the other all the same. If one of them fails because a
# process is lost, the engine goes on to the next; the messages of the lost process then match the wrong array, and the
# process aborts, or waits forever.
_COMBINER = "cpu-all-reduce-combiner"


def _gains_by_emitters(program: Program) -> bool:
    """Whether the program has an op on arrays above its `emitted_from` size, or many conversions to 16 bits."""

    def make() -> bool:
        return any(
            any(
                v.type.size >= (min(e.op.emitted_from, NARROW) if is_narrow(v.type) else e.op.emitted_from)
                for v in (*e.operands, *e.results)
            )
            or any(_gains_by_emitters(inner) for inner in subprograms(e.op))
            for e in program.equations
        )

    def is_narrow(t: Any) -> bool:
        return t.kind == "f" and dtypes.bits(t.dtype) < 32

    return program.memo("emitters", make)


def _is_few_integers(program: Program) -> bool:
    """Whether all values are small arrays of integers, such as keys that are split, and there are no loops.

    Optimizing such a program takes longer than all of its runs, and cannot change its results.
    """

    def make() -> bool:
        return all(
            not e.op.repeats
            and all(v.type.kind in "iubk" and v.type.size <= FEW for v in (*e.operands, *e.results))
            and all(_is_few_integers(inner) for inner in subprograms(e.op))
            for e in program.equations
        )

    return program.memo("few integers", make)


SMALL = 24  # equations
FEW = 64  # elements
NARROW = 2**16  # elements
PARTS = min(32, 2 * (os.cpu_count() or 1))  # parts compiled in parallel; more than the number of cores does not help


def options(program: Program, where: Where) -> Any:
    """Compile options for a program."""
    devices = devices_of(where)
    build = _jax.CompileOptions()
    build.env_option_overrides = list(_option_values(program, where).items())
    assignment = _jax.DeviceAssignment.create(np.array([[d.id for d in devices]], np.int32))
    for part in (build, build.executable_build_options):
        part.num_replicas, part.num_partitions, part.device_assignment = 1, len(devices), assignment
    if isinstance(where, Spread):
        build.executable_build_options.use_spmd_partitioning = True
        build.executable_build_options.use_shardy_partitioner = True
    return build


def _compile(
    program: Program, where: Where, donated: tuple[int | None, ...], module: Any = None
) -> tuple[Any, set[str]]:
    module = module or lowered(program, where, donated)
    return compile_module(module, program, where), module.uses


def lowered(program: Program, where: Where, donated: tuple[int | None, ...]) -> Any:
    """The module of a program for a placement."""
    from atled.engine import stablehlo  # MLIR is imported only when something is compiled

    spread = where if isinstance(where, Spread) else None
    return stablehlo.build(program, devices_of(where)[0].platform, donated, spread=spread)


def compile_module(module: Any, program: Program, where: Where) -> Any:
    """Compile a built module."""
    make_room()
    for kind in module.uses:
        register(kind)
    devices = devices_of(where)
    client, platform = devices[0].client, devices[0].platform
    settings = options(program, where)
    more = (module.callbacks,) if module.callbacks else ()
    try:
        return versions.compile_and_load(client, module.module, device_list(devices), settings, *more)
    except EngineError as error:
        if _tuning(program) and ("No such compile option" in str(error) or "While setting option" in str(error)):
            raise ValueError(f"compiler_options: {str(error).partition(': ')[2]}") from None
        emitters = "xla_cpu_use_fusion_emitters"
        if platform == "cpu" and "MLIR failure" in str(error) and emitters not in versions.missing:  # on long chains
            settings.env_option_overrides = [*settings.env_option_overrides, (emitters, False)]
        elif platform == "cpu" and "opt-barrier" in str(error):  # inside a loop that became one function
            settings.env_option_overrides = [
                (name, value.replace(_BARRIERS, "") if name == _LEFT_OUT else value)
                for name, value in settings.env_option_overrides
            ]
        else:
            raise
        return versions.compile_and_load(client, module.module, device_list(devices), settings, *more)


@functools.cache
def register(kind: str) -> None:
    """Register a family of custom calls with the engine."""
    assert kind == "lapack"
    from jaxlib.cpu import _lapack  # imports SciPy for the function pointers: half a second, so only when needed

    _lapack.initialize()
    for name, target in _lapack.registrations().items():
        _jax.register_custom_call_target(name, target, "Host", 1)


def forget() -> None:
    """Drop the cached executables."""
    _loaded.clear()


def _reset() -> None:
    """Drop everything that keeps a client alive."""
    flush()
    forget()
    _in_flight.clear()
    for memo in (layout, device_list, on_device, cache._machine):
        memo.cache_clear()
    sharding.forget()


clients.on_reset.append(_reset)
on_pressure.append(forget)
