"""Helpers of matrix functions: promotion to the dtype of the computation, checks, and broadcasting of leading axes."""

from __future__ import annotations

from typing import Any

from atled.core import dtypes
from atled.core.array import type_of
from atled.numpy.promotion import broadcast_shapes, broadcast_to, cast, promote_inexact
from atled.ops import conversion
from atled.ops import elementwise as ew
from atled.ops.matrix_ops import adjoint


def work_dtype(dtype: Any) -> Any:
    """The dtype in which functions of matrices compute: float32 for 16-bit floats, else the matrices' own."""
    return dtypes.float32 if dtypes.kind(dtype) == "f" and dtypes.bits(dtype) < 32 else dtype


_INSTEAD = {
    "solve": "numpy.linalg.lstsq(a, b), the solution with the least squared error.",
    "inv": "numpy.linalg.pinv(a), the pseudoinverse.",
    "cholesky": "a @ a.T, which is square and positive, or numpy.linalg.qr, which takes any matrix.",
    "eigh": "numpy.linalg.svd, which takes any matrix.",
    "eig": "numpy.linalg.svd, which takes any matrix.",
}


def matrices(name: str, *operands: Any, square: bool = False) -> tuple[list[Any], Any]:
    """Operands in a common dtype that decompositions support, and the dtype of results; checks the first operand."""
    promoted = promote_inexact(name, *operands)
    result_dtype = type_of(promoted[0]).dtype
    promoted = [cast(x, work_dtype(result_dtype)) for x in promoted]
    t = type_of(promoted[0])
    if t.ndim < 2 or (square and t.shape[-1] != t.shape[-2]):
        way_out = "a matrix with as many rows as columns." if square else "x[:, None] for a column."
        raise ValueError(
            f"{name}: expected {'square ' if square else ''}matrices on the last two axes; got {type_of(operands[0])}."
            f"\n  try: {_INSTEAD.get(name, way_out)}"
        )
    return promoted, result_dtype


def in_dtype(x: Any, dtype: Any) -> Any:
    """A result converted to the dtype of the operands; only half precision needs it."""
    return conversion.convert(x, dtype) if dtypes.bits(dtype) < 32 and type_of(x).kind == "f" else x


def hermitian_part(a: Any) -> Any:
    """The mean of a and its adjoint."""
    return ew.mul(ew.add(a, adjoint(a)), 0.5)


def broadcast_leading(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Matrices with their leading axes broadcast against each other."""
    s, t = type_of(a), type_of(b)
    try:
        lead = broadcast_shapes(s.shape[:-2], t.shape[:-2])
    except ValueError:
        raise ValueError(f"{name}: leading axes must broadcast together; got {s} and {t}.") from None
    return broadcast_to(a, (*lead, *s.shape[-2:])), broadcast_to(b, (*lead, *t.shape[-2:]))
