"""`Array`: the face that device arrays and tracers share.

Operators and methods are NumPy's and live in `atled.numpy`, which fills them in once (`fill`); here is what follows
from the type alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from atled.core import dtypes, errors
from atled.core.types import ArrayType


class Array:
    """An immutable n-dimensional array: on a device, or standing for one in a function being transformed.

    Arrays come from functions such as `atled.numpy.zeros` and `atled.numpy.asarray`, not from this class.
    """

    __slots__ = ()
    __array_priority__ = 100

    if TYPE_CHECKING:  # what `fill` adds, for readers and type checkers
        type: ArrayType
        T: Array
        mT: Array  # noqa: N815
        real: Array
        imag: Array
        at: Any

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Array: ...
        def __add__(self, other: Any) -> Array: ...
        def __radd__(self, other: Any) -> Array: ...
        def __sub__(self, other: Any) -> Array: ...
        def __rsub__(self, other: Any) -> Array: ...
        def __mul__(self, other: Any) -> Array: ...
        def __rmul__(self, other: Any) -> Array: ...
        def __truediv__(self, other: Any) -> Array: ...
        def __rtruediv__(self, other: Any) -> Array: ...
        def __floordiv__(self, other: Any) -> Array: ...
        def __rfloordiv__(self, other: Any) -> Array: ...
        def __mod__(self, other: Any) -> Array: ...
        def __rmod__(self, other: Any) -> Array: ...
        def __pow__(self, other: Any) -> Array: ...
        def __rpow__(self, other: Any) -> Array: ...
        def __matmul__(self, other: Any) -> Array: ...
        def __rmatmul__(self, other: Any) -> Array: ...
        def __and__(self, other: Any) -> Array: ...
        def __rand__(self, other: Any) -> Array: ...
        def __or__(self, other: Any) -> Array: ...
        def __ror__(self, other: Any) -> Array: ...
        def __xor__(self, other: Any) -> Array: ...
        def __rxor__(self, other: Any) -> Array: ...
        def __lshift__(self, other: Any) -> Array: ...
        def __rshift__(self, other: Any) -> Array: ...
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __lt__(self, other: Any) -> Array: ...
        def __le__(self, other: Any) -> Array: ...
        def __gt__(self, other: Any) -> Array: ...
        def __ge__(self, other: Any) -> Array: ...
        def __eq__(self, other: Any) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Array: ...  # type: ignore[override]
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __iter__(self) -> Any: ...
        def astype(self, dtype: Any) -> Array: ...
        def reshape(self, *shape: Any) -> Array: ...
        def sum(self, axis: Any = None, **kwargs: Any) -> Array: ...
        def mean(self, axis: Any = None, **kwargs: Any) -> Array: ...
        def max(self, axis: Any = None, **kwargs: Any) -> Array: ...
        def min(self, axis: Any = None, **kwargs: Any) -> Array: ...
        def transpose(self, *axes: Any) -> Array: ...
        def item(self, *index: int) -> Any: ...
        def block_until_ready(self) -> Array: ...

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    @property
    def weak_type(self) -> bool:
        return self.type.weak

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def itemsize(self) -> int:
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.type.size * self.type.dtype.itemsize

    def __hash__(self) -> int:
        raise TypeError(  # arrays compare elementwise, so they cannot be keys
            errors.explained(
                f"hash: arrays cannot be keys of a dict or members of a set; got {self.type}.",
                "x.item() as the key; under jit, an array that is indexed instead of a dict.",
            )
        )

    def __len__(self) -> int:
        shape = self.type.shape
        if not shape:
            raise TypeError(
                errors.explained(f"len: a 0-d array has no length; got {self.type}.", "x.size, which is 1, or x.ndim.")
            )
        return shape[0]


ArrayLike: TypeAlias = Array | np.ndarray | np.generic | bool | int | float | complex
"""What functions of arrays take: an array, a NumPy array or scalar, a Python number."""


def fill(members: dict[str, Callable[..., Any] | property]) -> None:
    """Add operators, methods and properties to all arrays."""
    for name, member in members.items():
        setattr(Array, name, member)


def type_of(x: Any) -> ArrayType:
    """The type of an array, NumPy array, Python number, or anything that says its `type`."""
    if isinstance(x, Array):
        return x.type
    kind = x.__class__
    if kind in _PYTHON:
        return ArrayType((), dtypes.default(_PYTHON[kind]), kind is not bool)
    dtype = getattr(x, "dtype", None)
    if dtype is not None and hasattr(x, "shape"):
        name = _WEAK_SCALARS.get(kind)
        if name is not None:
            return ArrayType((), dtypes.default(name), True)
        return ArrayType(tuple(x.shape), dtypes.canonical(dtype))
    found = getattr(x, "type", None)
    if isinstance(found, ArrayType):
        return found
    for python, name in _PYTHON.items():
        if isinstance(x, python):
            return ArrayType((), dtypes.default(name), python is not bool)
    raise TypeError(f"expected an array or a number; got {describe(x)}.")


_PYTHON: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}
# NumPy's default scalars come out of ordinary arithmetic (np.sqrt(2)), so they give way as Python numbers do.
_WEAK_SCALARS: dict[Any, str] = {np.float64: "f", np.int64: "i", np.complex128: "c"}


def types_of(values: Sequence[Any]) -> list[ArrayType]:
    """The types of values that are used together. Next to 64-bit arrays, a Python number keeps its 64 bits."""
    types = [type_of(x) for x in values]
    if any([t.dtype.name in _WIDE and not t.weak for t in types]):
        return [t if isinstance(x, Array) else wide(t) for x, t in zip(values, types)]
    return types


def wide(t: ArrayType) -> ArrayType:
    """The type that a number of this type has next to 64-bit arrays."""
    return ArrayType((), np.dtype(_WIDER[t.kind]), True) if t.weak and t.kind in _WIDER else t


_WIDE = ("float64", "complex128")
_WIDER = {"f": "float64", "c": "complex128"}


def describe(x: Any) -> str:
    """A value for an error message: its type if it is an array, else its class."""
    if isinstance(x, Array):
        return repr(x.type)
    if x is None:
        return "None"
    return f"{type(x).__name__}" + (f" {x!r}" if isinstance(x, str) and len(x) < 30 else "")


def is_array_like(x: Any) -> bool:
    """Whether a value is an array, or a number that can be one."""
    try:
        type_of(x)
    except TypeError:
        return False
    return True
