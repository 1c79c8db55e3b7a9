"""The precision of matrix products: named precisions, and explicit algorithms."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Union

from atled.core import dtypes
from atled.ops import contraction
from atled.ops.contraction import DotAlgorithm


class Precision(enum.Enum):
    """The precision of matrix products and convolutions of floating-point numbers.

    >>> Precision("highest")
    Precision.HIGHEST
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        name = contraction.PRECISIONS.get(value) if isinstance(value, str) else None
        return None if name is None else cls[name]

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithmPreset(enum.Enum):
    """Algorithms for matrix products, named by the dtypes of both operands and of the sum; X3 adds three products.

    CPUs support DEFAULT, F16_F16_F16, BF16_BF16_F32 (also _X3 and _X6), F32_F32_F32 and F64_F64_F64.

    >>> import atled.numpy as jnp
    >>> from atled import lax
    >>> lax.dot(jnp.ones(3), jnp.ones(3), precision=DotAlgorithmPreset.F32_F32_F32)
    Array(3., dtype=float32)
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def accumulation_type(self) -> Any:
        """The dtype of the sum, or None if the algorithm does not determine it."""
        if self.name.startswith("ANY_F8_ANY_F8_F32"):
            return dtypes.float32
        known = contraction.ALGORITHMS.get(self.name)
        return None if known is None else dtypes.canonical(known[0].accumulation_type)

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The allowed dtypes of the left operand, or None if the algorithm does not restrict them."""
        known = contraction.ALGORITHMS.get(self.name)
        if known is None:
            return None
        return (known[1], dtypes.float32) if known[1] is dtypes.bfloat16 else (known[1],)

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The allowed dtypes of the right operand: those of the left operand."""
        return self.supported_lhs_types


PrecisionLike = Union[  # noqa: UP007
    None, str, Precision, tuple[str, str], tuple[Precision, Precision], DotAlgorithm, DotAlgorithmPreset
]
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
