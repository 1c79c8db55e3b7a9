"""The type of an array, the symbolic zero, and the placeholder of a linear operand.

`ArrayType` is interned: equal types are one object, so comparing and hashing them costs nothing. The
`repr` of a type, as in programs and error messages, is `f32[2,3]`, with a leading `~` if it is weak.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from atled.core import dtypes


class ArrayType:
    """Shape and dtype of an array; `weak` if promotion prefers the other operand's dtype, as with Python numbers.

    >>> ArrayType((2, 3), dtypes.float32)
    f32[2,3]
    """

    __slots__ = ("dtype", "shape", "weak")
    dtype: Any
    shape: tuple[int, ...]
    weak: bool
    _interned: ClassVar[dict[tuple[Any, ...], ArrayType]] = {}

    def __new__(
        cls, shape: tuple[int, ...], dtype: Any, weak: bool = False, *, weak_type: bool = False, sharding: Any = None
    ) -> ArrayType:
        weak = weak or weak_type  # the name in `ShapeDtypeStruct`; `sharding` is ignored
        key = (shape, dtype, weak)
        interned = cls._interned.get(key)
        if interned is None:
            known = dtypes._SINGLE.get(dtype)  # the one object for this dtype, also for an equal one
            dtype = dtypes.canonical(dtype) if known is None else known
            interned = object.__new__(cls)
            interned.shape, interned.dtype, interned.weak = tuple(int(n) for n in shape), dtype, weak
            interned = cls._interned.setdefault((interned.shape, dtype, weak), interned)
        return interned

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def kind(self) -> str:
        """The kind of the dtype: `b`, `i`, `u`, `f`, `c`, `k` or `0`, as `dtypes.kind` returns."""
        return dtypes._INFO[self.dtype][0]

    def strong(self) -> ArrayType:
        return ArrayType(self.shape, self.dtype) if self.weak else self

    def with_shape(self, shape: tuple[int, ...]) -> ArrayType:
        return ArrayType(shape, self.dtype, self.weak)

    def with_dtype(self, dtype: Any) -> ArrayType:
        return ArrayType(self.shape, dtype)

    def tangent(self) -> ArrayType:
        """The type of tangents and cotangents of values of this type."""
        inexact = dtypes._INFO[self.dtype][0] in "fc"
        return ArrayType(self.shape, self.dtype if inexact else dtypes.float0)

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.shape))
        return f"{'~' if self.weak else ''}{dtypes.short_name(self.dtype)}[{dims}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayType, (self.shape, self.dtype, self.weak)


class Zero:
    """A tangent or cotangent that is zero everywhere, kept symbolic to save computation.

    >>> Zero(ArrayType((2, 3), dtypes.float32))
    Zero(f32[2,3])
    """

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    def __repr__(self) -> str:
        return f"Zero({self.type})"


class Linear:
    """A placeholder for a linear operand in a `transpose` rule.

    >>> Linear(ArrayType((2, 3), dtypes.float32)).shape
    (2, 3)
    """

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"Linear({self.type})"


class ShapeDtypeStruct:
    """Shape and dtype of an array without data: what `eval_shape` returns and `lower` accepts.

    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: Any, *, sharding: Any = None, weak_type: bool = False) -> None:
        try:
            self.shape = tuple(int(n) for n in shape)
        except ValueError:
            raise TypeError(f"ShapeDtypeStruct: a shape must be a tuple of integers; got {shape!r}.") from None
        self.dtype = dtypes.canonical(dtype)
        self.sharding = sharding
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def type(self) -> ArrayType:
        return ArrayType(self.shape, self.dtype, self.weak_type)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape, dtype and sharding of an array.

        >>> import numpy as np
        >>> ShapeDtypeStruct.like(np.zeros((2, 3), "float32"))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        weak = getattr(x, "weak_type", getattr(x, "weak", False))
        return cls(x.shape, x.dtype, sharding=getattr(x, "sharding", None), weak_type=bool(weak))

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with another `shape`, `dtype`, `sharding` or `weak_type`.

        >>> ShapeDtypeStruct((2,), "float32").update(shape=(3,))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        now = {name: getattr(self, name) for name in ("shape", "dtype", "sharding", "weak_type")}
        return type(self)(**{**now, **changes})

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a 0-d array has no length.")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self.type is other.type and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash((self.type, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{where})"
