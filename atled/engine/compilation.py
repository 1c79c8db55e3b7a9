"""Compiles a program for a placement: lowers it, runs XLA, and reads the shardings that XLA chose for the outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jaxlib._jax as _jax

from atled.core.program import Program
from atled.core.sharding import NamedSharding, PartitionSpec, physical
from atled.engine import jaxlib_versions
from atled.engine.compile_options import BARRIERS, LEFT_OUT, options, tuning
from atled.engine.memory_mappings import make_room
from atled.engine.placement import MeshPlacement, Where, device_list, devices_of, sharding_of_tiling


def compile_program(
    program: Program, where: Where, donated: tuple[int | None, ...], module: Any = None
) -> tuple[Any, set[str]]:
    """The executable of a program, or of its lowered module, and the families of custom calls in it."""
    module = module or lowered(program, where, donated)
    return compile_module(module, program, where), module.uses


def lowered(program: Program, where: Where, donated: tuple[int | None, ...]) -> Any:
    """The module of a program for a placement."""
    from atled.engine import stablehlo  # MLIR is imported only when something is compiled

    spread = where if isinstance(where, MeshPlacement) else None
    return stablehlo.build(program, devices_of(where)[0].platform, donated, spread=spread)


def compile_module(module: Any, program: Program, where: Where) -> Any:
    """Compile the lowered module of a program for a placement."""
    make_room()
    for kind in module.uses:
        register(kind)
    devices = devices_of(where)
    client, platform = devices[0].client, devices[0].platform
    settings = options(program, where)
    more = (module.callbacks,) if module.callbacks else ()
    try:
        return jaxlib_versions.compile_and_load(client, module.module, device_list(devices), settings, *more)
    except jaxlib_versions.EngineError as error:
        if tuning(program) and ("No such compile option" in str(error) or "While setting option" in str(error)):
            raise ValueError(f"compiler_options: {str(error).partition(': ')[2]}") from None
        emitters = "xla_cpu_use_fusion_emitters"
        if (
            platform == "cpu" and "MLIR failure" in str(error) and emitters not in jaxlib_versions.missing
        ):  # the emitters fail on long chains of ops
            settings.env_option_overrides = [*settings.env_option_overrides, (emitters, False)]
        elif platform == "cpu" and "opt-barrier" in str(error):  # in a loop that XLA outlined
            settings.env_option_overrides = [
                (name, value.replace(BARRIERS, "") if name == LEFT_OUT else value)
                for name, value in settings.env_option_overrides
            ]
        else:
            raise
        return jaxlib_versions.compile_and_load(client, module.module, device_list(devices), settings, *more)


@functools.cache
def register(kind: str) -> None:
    """Register the targets of a family of custom calls with the engine."""
    assert kind == "lapack"
    from jaxlib.cpu import _lapack  # imports SciPy for its function pointers, which takes half a second

    _lapack.initialize()
    for name, target in _lapack.registrations().items():
        _jax.register_custom_call_target(name, target, "Host", 1)


def settle(
    compile: Callable[..., Any], program: Program, where: Where, donated: tuple[int | None, ...], module: Any
) -> tuple[Any, Where]:
    """The compiled program, and the placements of its inputs and outputs."""
    raw = compile(program, where, donated, module)
    if not isinstance(where, MeshPlacement):
        return raw, where
    settled = _settled(raw, program, where)
    if None in settled.outs:  # no PartitionSpec expresses the compiler's sharding of an output: replicate it
        whole = NamedSharding(where.mesh, PartitionSpec())
        settled = where._replace(outs=tuple([s or whole for s in settled.outs]))
        raw = compile(program, settled, donated, None)
    return raw, settled


def _settled(raw: Any, program: Program, where: MeshPlacement) -> MeshPlacement:
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
