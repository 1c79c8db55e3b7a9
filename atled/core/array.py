"""`Array`: the common base class of device arrays and tracers.

Operators and methods are NumPy's and live in `atled.numpy`, which adds them at import (`fill`). This file has the
attributes that depend only on the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from atled.core import dtypes, errors
from atled.core.types import ArrayType


class Array:
    """An immutable n-dimensional array: values on a device, or a tracer in a function being transformed.

    Arrays come from functions such as `atled.numpy.zeros` and `atled.numpy.asarray`, not from this class.

    >>> import atled.numpy as jnp
    >>> x = jnp.asarray([1.0, 2.0])
    >>> isinstance(x, Array), x.at[0].set(5.0)
    (True, Array([5., 2.], dtype=float32))
    """

    __slots__ = ()
    __array_priority__ = 100

    if TYPE_CHECKING:  # what `fill` adds, for readers and type checkers
        type: ArrayType
        T: Array
        mT: Array  # noqa: N815
        real: Array
        imag: Array
        at: Updates
        flat: Array

        def __getitem__(self, index: Any) -> Array: ...
        def __add__(self, other: ArrayLike) -> Array: ...
        def __radd__(self, other: ArrayLike) -> Array: ...
        def __sub__(self, other: ArrayLike) -> Array: ...
        def __rsub__(self, other: ArrayLike) -> Array: ...
        def __mul__(self, other: ArrayLike) -> Array: ...
        def __rmul__(self, other: ArrayLike) -> Array: ...
        def __truediv__(self, other: ArrayLike) -> Array: ...
        def __rtruediv__(self, other: ArrayLike) -> Array: ...
        def __floordiv__(self, other: ArrayLike) -> Array: ...
        def __rfloordiv__(self, other: ArrayLike) -> Array: ...
        def __mod__(self, other: ArrayLike) -> Array: ...
        def __rmod__(self, other: ArrayLike) -> Array: ...
        def __pow__(self, other: ArrayLike) -> Array: ...
        def __rpow__(self, other: ArrayLike) -> Array: ...
        def __matmul__(self, other: ArrayLike) -> Array: ...
        def __rmatmul__(self, other: ArrayLike) -> Array: ...
        def __and__(self, other: ArrayLike) -> Array: ...
        def __rand__(self, other: ArrayLike) -> Array: ...
        def __or__(self, other: ArrayLike) -> Array: ...
        def __ror__(self, other: ArrayLike) -> Array: ...
        def __xor__(self, other: ArrayLike) -> Array: ...
        def __rxor__(self, other: ArrayLike) -> Array: ...
        def __lshift__(self, other: ArrayLike) -> Array: ...
        def __rlshift__(self, other: ArrayLike) -> Array: ...
        def __rshift__(self, other: ArrayLike) -> Array: ...
        def __rrshift__(self, other: ArrayLike) -> Array: ...
        def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __lt__(self, other: ArrayLike) -> Array: ...
        def __le__(self, other: ArrayLike) -> Array: ...
        def __gt__(self, other: ArrayLike) -> Array: ...
        def __ge__(self, other: ArrayLike) -> Array: ...
        def __eq__(self, other: Any) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Array: ...  # type: ignore[override]
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __iter__(self) -> Iterator[Array]: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
        def all(self, axis: _Axis = None, out: None = None, keepdims: bool = False) -> Array: ...
        def any(self, axis: _Axis = None, out: None = None, keepdims: bool = False) -> Array: ...
        def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array: ...
        def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array: ...
        def astype(self, dtype: Any, copy: bool = False, device: Any = None) -> Array: ...
        def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array: ...
        def conj(self) -> Array: ...
        def copy(self) -> Array: ...
        def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array: ...
        def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Array: ...
        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
        def dot(self, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Array: ...
        def flatten(self, order: str = "C") -> Array: ...
        def item(self, *index: int) -> Any: ...
        def max(self, axis: _Axis = None, out: None = None, keepdims: bool = False, **options: Any) -> Array: ...
        def mean(
            self, axis: _Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, **options: Any
        ) -> Array: ...
        def min(self, axis: _Axis = None, out: None = None, keepdims: bool = False, **options: Any) -> Array: ...
        def prod(
            self, axis: _Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, **options: Any
        ) -> Array: ...
        def ravel(self, order: str = "C") -> Array: ...
        def repeat(self, repeats: ArrayLike, axis: int | None = None, **options: Any) -> Array: ...
        def reshape(self, *shape: Any, **options: Any) -> Array: ...
        def round(self, decimals: int = 0, out: None = None) -> Array: ...
        def squeeze(self, axis: _Axis = None) -> Array: ...
        def std(self, axis: _Axis = None, dtype: Any = None, out: None = None, **options: Any) -> Array: ...
        def sum(
            self, axis: _Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False, **options: Any
        ) -> Array: ...
        def swapaxes(self, axis1: int, axis2: int) -> Array: ...
        def take(self, indices: ArrayLike, axis: int | None = None, **options: Any) -> Array: ...
        def tolist(self) -> Any: ...
        def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, **options: Any) -> Array: ...
        def transpose(self, *axes: Any) -> Array: ...
        def var(self, axis: _Axis = None, dtype: Any = None, out: None = None, **options: Any) -> Array: ...
        def block_until_ready(self) -> Array: ...
        def __getattr__(self, name: str) -> Any: ...

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
                "x.item() as the key; under jit, index an array instead of a dict.",
            )
        )

    def __len__(self) -> int:
        shape = self.type.shape
        if not shape:
            raise TypeError(
                errors.explained(f"len: a 0-d array has no length; got {self.type}.", "x.size, which is 1, or x.ndim.")
            )
        return shape[0]


_Axis: TypeAlias = int | Sequence[int] | None
ArrayLike: TypeAlias = Array | np.ndarray | np.generic | bool | int | float | complex

if TYPE_CHECKING:  # `x.at`, which `atled.numpy.at_updates` implements

    class Write(Protocol):
        """The type of `x.at[index].add`, `x.at[index].set` and so on."""

        def __call__(
            self,
            values: ArrayLike | Sequence[Any],
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: str | None = None,
            out_sharding: Any = None,
            wrap_negative_indices: bool = True,
        ) -> Array: ...

    class Update(Protocol):
        """`x.at[index]`."""

        set: Write
        add: Write
        subtract: Write
        multiply: Write
        mul: Write
        divide: Write
        power: Write
        min: Write
        max: Write

        def apply(self, func: Callable[[Any], Any], **options: Any) -> Array: ...
        def get(self, **options: Any) -> Array: ...

    class Updates(Protocol):
        """`x.at`."""

        def __getitem__(self, index: Any) -> Update: ...


"""The type of array arguments: an array, a NumPy array or scalar, or a Python number."""


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype, such as an array or one of the scalar types of `numpy`."""

    @property
    def dtype(self) -> np.dtype: ...


DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
"""The type of dtype arguments: a dtype or its name, a Python or NumPy scalar type, or an object with a dtype."""


def fill(members: dict[str, Callable[..., Any] | property]) -> None:
    """Add operators, methods and properties to the class `Array`."""
    for name, member in members.items():
        setattr(Array, name, member)


def unwrapped(x: Any) -> Any:
    """The array that another library's object converts to (`__jax_array__`); other values unchanged."""
    return x.__jax_array__() if hasattr(x, "__jax_array__") else x


def type_of(x: Any) -> ArrayType:
    """The type of an array, NumPy array, Python number, or any object with a `type` attribute.

    >>> type_of(np.ones((2, 3), "float32"))
    f32[2,3]
    """
    if isinstance(x, Array):
        return x.type
    kind = x.__class__
    if kind in _PYTHON:
        if kind is int and not -0x80000000 <= x <= 0x7FFFFFFF:
            return ArrayType((), _integer_dtype(x), True)
        return ArrayType((), dtypes.default(_PYTHON[kind]), kind is not bool)
    dtype = getattr(x, "dtype", None)
    if dtype is not None and hasattr(x, "shape"):
        name = WEAK_SCALARS.get(kind)
        if name is not None:
            return ArrayType((), dtypes.default(name), True)
        if kind is not np.ndarray:
            check_unmasked(x)
        declared = getattr(x, "type", None)  # if this is an `ArrayType`, it says whether x is weak
        return declared if isinstance(declared, ArrayType) else ArrayType(tuple(x.shape), dtypes.canonical(dtype))
    declared = getattr(x, "type", None)
    if isinstance(declared, ArrayType):
        return declared
    for python, name in _PYTHON.items():
        if isinstance(x, python):
            return ArrayType((), dtypes.default(name), python is not bool)
    way_out = getattr(kind, "not_an_argument", None)  # a hint that the class of x defines
    hint = "" if way_out is None else f"\n  try: {way_out}"
    raise TypeError(f"expected an array or a number; got {describe(x)}.{hint}")


def is_masked(x: Any) -> bool:
    """Whether x is one of NumPy's masked arrays, without importing them."""
    return isinstance(x, np.ndarray) and hasattr(x, "filled")


def check_unmasked(x: Any) -> None:
    """Raise for NumPy's masked arrays: arrays have no mask, so masked elements would be used as data."""
    if is_masked(x):
        raise TypeError(
            f"expected an array or a number; got a masked array of {x.dtype}."
            "\n  try: x.filled(value), and x.mask as a separate array."
        )


def _integer_dtype(n: int) -> Any:
    """The dtype of a Python integer: the default one, or a wider one if it does not fit."""
    default = dtypes.default("i")
    for dtype in (default, dtypes.uint32, dtypes.int64, dtypes.uint64):
        if int(dtypes.iinfo(dtype).min) <= n <= int(dtypes.iinfo(dtype).max):
            return dtype
    return default


_PYTHON: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}
# NumPy's default scalars result from ordinary arithmetic (np.sqrt(2)), so they are weakly typed, as Python numbers are.
WEAK_SCALARS: dict[Any, str] = {np.float64: "f", np.int64: "i", np.complex128: "c"}


def types_of(values: Sequence[Any], is_wide: bool = False) -> list[ArrayType]:
    """The types of one op's operands. Next to 64-bit arrays, or if `is_wide`, Python numbers are 64 bits wide."""
    types = [type_of(x) for x in values]
    if is_wide or any([t.dtype.name in _WIDE and not t.weak for t in types]):
        return [t if isinstance(x, Array) else wide(t) for x, t in zip(values, types)]
    return types


def wide(t: ArrayType) -> ArrayType:
    """The 64-bit type of a Python number; other types unchanged."""
    return ArrayType((), np.dtype(_WIDER[t.kind]), True) if t.weak and t.kind in _WIDER else t


_WIDE = ("float64", "complex128")
_WIDER = {"f": "float64", "c": "complex128"}


def describe(x: Any) -> str:
    """How error messages show a value: its type if it is an array, else its class."""
    if isinstance(x, Array):
        return repr(x.type)
    if x is None:
        return "None"
    if isinstance(x, np.ndarray):
        return f"{type(x).__name__} of {x.dtype}" + (", not x.filled(value) and x.mask" if is_masked(x) else "")
    return f"{type(x).__name__}" + (f" {x!r}" if isinstance(x, str) and len(x) < 30 else "")


def shown(x: Any) -> str:
    """How error messages show an array argument: its type if it converts to an array, else its class."""
    return str(type_of(x)) if is_array_like(x) else describe(x)


def is_array_like(x: Any) -> bool:
    """Whether a value is an array or converts to one."""
    try:
        type_of(x)
    except TypeError:
        return False
    return True
