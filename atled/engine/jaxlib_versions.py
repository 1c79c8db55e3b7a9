"""Differences between jaxlib releases, 0.10.2 to 0.12.

Each difference is detected by a feature test, never by a version number. The test `tests/engine/test_contract.py` lists
every binding that the engine uses, and runs on each release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jaxlib._jax as _jax

EngineError = _jax.JaxRuntimeError

# Compile options that affect only speed, of the program or of the compiler, and never results. An engine
# that does not know one of these runs without it; any other unknown option raises.
MAY_BE_MISSING = frozenset({"xla_cpu_use_fusion_emitters", "xla_cpu_parallel_codegen_split_count"})
missing: set[str] = set()  # the options that this engine has rejected
_REFUSAL = re.compile(r"No such compile option: '(\w+)'")


def compile_and_load(client: Any, module: Any, devices: Any, options: Any, *callbacks: Sequence[Any]) -> Any:
    """Compile a module for devices, without the options in `MAY_BE_MISSING` that this engine does not know."""
    while True:
        options.env_option_overrides = [o for o in options.env_option_overrides if o[0] not in missing]
        try:
            return client.compile_and_load(module, devices, options, *callbacks)
        except EngineError as error:
            refused = _REFUSAL.search(str(error))
            if refused is None or refused[1] not in MAY_BE_MISSING or refused[1] in missing:
                raise
            missing.add(refused[1])


# Before 0.11, the engine's result handlers check every array, unless `_skip_checks` is set.
_UNCHECKED = {"_skip_checks": True} if "_skip_checks" in (_jax.array_result_handler.__doc__ or "") else {}


def result_handler(placed: Any, layout: Any, committed: bool) -> Any:
    """The engine's function that wraps raw results as arrays of this type and layout."""
    return _jax.array_result_handler(placed, layout, committed=committed, **_UNCHECKED)


_LEVELS = {-1: 9, 0: 0, 1: 39}  # O0, the default, O3


def set_effort(build_options: Any, effort: float) -> None:
    """Set the effort of ahead-of-time compilation, from -1 to 1; from 0.11 on, jaxlib has levels instead."""
    if hasattr(build_options, "exec_time_optimization_effort"):
        build_options.exec_time_optimization_effort = effort
    else:
        build_options.optimization_level = _LEVELS[(effort > 0) - (effort < 0)]
