"""The options that a program is compiled with: the user's, and atled's own for the CPU."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

import jaxlib._jax as _jax
import numpy as np

from atled.core import dtypes
from atled.core.program import Program, subprograms
from atled.engine.placement import MeshPlacement, Where, devices_of

CompilerOptions: TypeAlias = tuple[tuple[str, str, Any], ...]  # name, type and value, since 1 == True


def tuned(program: Program, chosen: CompilerOptions) -> Program:
    """The same program, to be compiled with the XLA options `chosen`."""

    def make() -> Program:
        copy = Program(program.inputs, program.equations, program.outputs, program.name, program.input_names)
        copy.derived["compiler_options"] = chosen
        return copy

    return program.memo(("tuned", chosen), make) if chosen else program


def tuning(program: Program) -> CompilerOptions:
    """The options that the user chose for this program."""
    return program.derived.get("compiler_options", ())


def option_values(program: Program, where: Where) -> dict[str, Any]:
    """All compile options by name; the user's override atled's own."""
    chosen = {name: value for name, _, value in tuning(program)}
    devices = devices_of(where)
    if devices[0].platform != "cpu":
        return chosen
    values: dict[str, Any] = {LEFT_OUT: BARRIERS}
    if len({d.process_index for d in devices}) > 1:
        values[LEFT_OUT] += f",{_COMBINER}"
    # XLA's fusion emitters compile long chains of elementwise ops slowly, or fail; without them, one-op programs
    # compile in half the time. With them, some ops on large arrays run up to three times as fast, and so do large
    # programs (measured in benchmarks/) and ops over a mesh that do not compile to one loop.
    is_spread = isinstance(where, MeshPlacement) and where.mesh.size > 1
    if len(program.equations) <= SMALL and not is_spread and not _gains_by_emitters(program):
        values["xla_cpu_use_fusion_emitters"] = False
    else:
        values["xla_cpu_parallel_codegen_split_count"] = PARTS
    if _is_few_integers(program):
        values["xla_backend_optimization_level"] = 0
    if LEFT_OUT in chosen:
        chosen[LEFT_OUT] = f"{values[LEFT_OUT]},{chosen[LEFT_OUT]}"
    return {**values, **chosen}


LEFT_OUT = "xla_disable_hlo_passes"
BARRIERS = "cse_barrier_expander"  # removes barriers before fusion
# This pass combines several all-reduces, which Gloo runs one array at a time anyway. If one fails because a process is
# lost, the engine continues with the next; messages of the lost process then match the wrong array, and this process
# aborts or hangs.
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
PARTS = min(32, 2 * (os.cpu_count() or 1))  # parts that are compiled in parallel: two per core, at most 32


def options(program: Program, where: Where) -> Any:
    """Compile options for a program."""
    devices = devices_of(where)
    build = _jax.CompileOptions()
    build.env_option_overrides = list(option_values(program, where).items())
    assignment = _jax.DeviceAssignment.create(np.array([[d.id for d in devices]], np.int32))
    for part in (build, build.executable_build_options):
        part.num_replicas, part.num_partitions, part.device_assignment = 1, len(devices), assignment
    if isinstance(where, MeshPlacement):
        build.executable_build_options.use_spmd_partitioning = True
        build.executable_build_options.use_shardy_partitioner = True
    return build
