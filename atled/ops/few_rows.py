"""Products of a few rows with a large matrix on one CPU, such as the products of a decoding step.

They are bound by the bytes of the matrix, so whatever the compiler adds to reading it once counts:

- It duplicates the ops that produce a single row into the kernel, which computes them again for each column. A barrier
  materializes the row.
- It converts all narrow matrices of a program to float32 before the first product, into as many temporary buffers. A
  barrier with the rows makes each conversion wait for its product, and all share a buffer that stays in the cache.
- It has no kernel that multiplies a row by a row-major matrix of 16-bit floats, and converts the matrix; as a sum of
  products, this becomes one kernel.

A product of one row and 768×3,072 bfloat16 numbers took 3.4 ms, and takes 0.4; one of eight rows 4.1, and takes 1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.types import ArrayType
from atled.ops import conversion, elementwise, reduction, shape

MOST = 16  # rows
LEAST = 1 << 16  # elements of the matrix


def count(x: ArrayType, y: ArrayType, contracting: tuple[Sequence[int], Sequence[int]], out: ArrayType) -> int:
    """The rows of the smaller operand, if it has few and the larger one is a large matrix; otherwise 0."""
    matrix = max((x, y), key=lambda t: t.size)
    are_numbers = out.kind == "f" and {x.kind, y.kind} <= set("fi")
    if not are_numbers or matrix.ndim != 2 or matrix.size < LEAST or len(contracting[0]) != 1:
        return 0
    rows = min(x.size, y.size) // x.shape[contracting[0][0]]
    return rows if 0 < rows <= MOST else 0


def prepared(
    build: Any, x: Any, y: Any, contracting: tuple[Sequence[int], Sequence[int]], out: ArrayType
) -> tuple[Any, Any, Any, tuple[Sequence[int], Sequence[int]]]:
    """The product, if this module computes it, or None; and otherwise its operands and their contracting axes."""
    rows = count(x.type, y.type, contracting, out)
    is_left = x.type.size >= y.type.size
    few, matrix = (y, x) if is_left else (x, y)
    is_narrow = dtypes.bits(matrix.type.dtype) < 32 and dtypes.bits(out.dtype) <= 32
    if rows == 1:
        axes = contracting[0 if is_left else 1]
        if axes[0] == 0 and is_narrow:
            return build.apply(lambda v, m: _summed(v, m, out), few, matrix), x, y, contracting
        few = build.apply(lambda v: shape.optimization_barrier(v)[0], few)
        if axes[0] == 1:
            matrix = build.apply(lambda m: shape.transpose(_widened(m, is_narrow), (1, 0)), matrix)
            contracting = ((0,), contracting[1]) if is_left else (contracting[0], (0,))
    elif rows and is_narrow:
        few, matrix = build.apply(shape.optimization_barrier, few, matrix)
    return None, *((matrix, few) if is_left else (few, matrix)), contracting


def _widened(x: Any, is_narrow: bool) -> Any:
    return conversion.convert(x, dtypes.float32) if is_narrow else x


def _summed(row: Any, matrix: Any, out: ArrayType) -> Any:
    """The product of a row with a matrix, as a sum over the first axis of the matrix."""
    row, matrix = shape.optimization_barrier(row, matrix)  # otherwise, several products share a broadcast in memory
    row, matrix = [conversion.convert(v, dtypes.float32) for v in (row, matrix)]
    dims = type_of(matrix).shape
    row = shape.broadcast(shape.reshape(row, dims[:1]), dims, (0,))
    total = reduction.reduce_sum(elementwise.mul(row, matrix), (0,))
    return conversion.convert(shape.reshape(total, out.shape), out.dtype)
