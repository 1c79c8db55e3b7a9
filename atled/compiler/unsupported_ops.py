"""Rejects ops that would crash the compiler of an accelerator, and thereby the process.

`scripts/compile-elsewhere` finds these ops: it compiles each row of the op table for TPUs and GPUs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.program import Equation, Program, subprograms
from atled.core.source import describe

_CPU = "or a CPU device: device_put(x, devices('cpu')[0])"


def check(platform: str, equation: Equation) -> None:
    """Raise an error for an equation that would crash the compiler of a platform."""
    for v in (*equation.operands, *equation.results):
        if platform == "tpu" and v.type.dtype == np.complex128:
            raise _refused(equation, f"TPUs have no complex128; got {v.type}", f"complex64, {_CPU}")


def check_over_devices(platform: str, program: Program) -> None:
    """Raise an error for 2-bit values in programs over several CPU devices, whose collectives lose some elements."""
    if platform == "cpu":
        for v in (*program.inputs, *[v for e in program.equations for v in e.results]):
            if v.type.dtype in (dtypes.int2, dtypes.uint2):
                raise NotImplementedError(
                    f"{program.name}: 2-bit arrays are not supported in programs over several CPU devices; got "
                    f"{v.type}.\n  try: int4, or one device."
                )


def check_without_devices(platform: str, program: Program) -> None:
    """Raise an error for ops that XLA must autotune on an attached GPU, when compiling without one."""
    if platform != "cuda":
        return
    for e in program.equations:
        for inner in subprograms(e.op):
            check_without_devices(platform, inner)
        types = [v.type for v in (*e.operands, *e.results)]
        if e.op.name == "dot_general" and {t.dtype for t in types[:2]} == {np.dtype(np.int8)} != {types[-1].dtype}:
            says = f"products of int8 in {types[-1].dtype} cannot be compiled without a GPU; got {types[0]}"
            raise _refused(e, says, "int32 operands, or compile on a machine with a GPU")


def _refused(equation: Equation, says: str, instead: str) -> NotImplementedError:
    text: Any = f"{equation.op.name}: {says}.{describe(equation.source)}\n  try: {instead}."
    return NotImplementedError(text)
