"""A program's fingerprint: equal for programs that compile to the same code, in any process.

Names and source lines are ignored. The fingerprint is part of the disk cache's key, so a program found in the cache is
not lowered, and MLIR is not imported.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from atled.core.dtypes import KeyDtype
from atled.core.program import Program, Var
from atled.core.sharding import Mesh, NamedSharding
from atled.core.types import ArrayType


class NotPortable(Exception):  # noqa: N818
    """A program without a fingerprint: it refers to an object of this process, such as a Python function."""


def digest(program: Program) -> str:
    """The fingerprint of a program, as hexadecimal text."""
    return program.memo("digest", lambda: hashlib.sha256(_describe(program).encode()).hexdigest())


def _describe(program: Program) -> str:
    number: dict[Any, int] = {v: i for i, v in enumerate(program.inputs)}
    parts = [repr(program.input_types)]

    def operand(v: Any) -> str:
        if type(v) is Var:
            return str(number[v])
        return f"{np.asarray(v.value, v.type.dtype).tobytes().hex()}:{v.type}"

    for e in program.equations:
        parts.append(f"{_signature(e.op)} {' '.join([operand(v) for v in e.operands])}")
        for v in e.results:
            number[v] = len(number)
    parts.append(" ".join([operand(v) for v in program.outputs]))
    return "\n".join(parts)


def _signature(op: Any) -> str:
    known = op.__dict__.get("_signature")
    if known is None:
        if not type(op).__module__.startswith("atled."):  # the lowering of a user's op may change between runs
            raise NotPortable(type(op).__name__)
        values = [_canonical(getattr(op, n)) for n in op.fields if n not in op.unlowered]
        known = op.__dict__["_signature"] = f"{type(op).__name__}({','.join(values)})"
    return known


def _canonical(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return repr(value)
    if isinstance(value, (float, complex)):
        return repr(value) if value == value else np.asarray(value).tobytes().hex()  # NaNs have many bit patterns
    if isinstance(value, (np.dtype, KeyDtype)):
        return value.name
    if isinstance(value, tuple):
        return f"({','.join(map(_canonical, value))})"
    if isinstance(value, Program):
        return digest(value)
    if isinstance(value, ArrayType):
        return repr(value)
    if isinstance(value, Mesh):
        return f"{value}{[(d.platform, d.id) for d in value.flat]}"
    if isinstance(value, NamedSharding):
        return f"{_canonical(value.mesh)}{value.spec}{value.memory_kind}"
    if isinstance(value, np.generic):
        return f"{value.dtype.name}:{value.tobytes().hex()}"
    raise NotPortable(type(value).__name__)
