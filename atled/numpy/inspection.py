"""Queries about arrays and dtypes: promotion, kinds, shapes; and arrays as text and as files."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, describe, type_of
from atled.core.axes import check_axes
from atled.core.trace import Tracer
from atled.core.types import ArrayType
from atled.engine import array_printing
from atled.engine.array import as_array
from atled.numpy.creation import asarray
from atled.numpy.promotion import operand_type
from atled.numpy.scalar_types import ScalarType
from atled.ops import conversion
from atled.ops import elementwise as ew
from atled.staging.jit import library_function

__all__ = [
    "array_repr", "array_str", "can_cast", "get_printoptions", "iscomplex", "iscomplexobj", "isdtype", "isreal",
    "isrealobj", "isscalar", "iterable", "load", "ndim", "printoptions", "promote_types", "result_type", "save",
    "savez", "set_printoptions", "shape", "size",
]  # fmt: skip

_PYTHON_TYPES = {int: "i", float: "f", complex: "c"}


# -- dtypes -----------------------------------------------------------------------------------------------------------


def dtype_and_weakness(x: Any) -> tuple[Any, bool]:
    """The dtype with which an argument promotes, and whether it is weak: Python types are weak, dtypes are not."""
    if isinstance(x, type) and x in _PYTHON_TYPES:
        return dtypes.default(_PYTHON_TYPES[x]), True
    if isinstance(x, (str, np.dtype, type, ScalarType)) or x is dtypes.key_dtype:
        return dtypes.canonical(x), False
    if isinstance(x, (list, tuple)):
        x = asarray(x)
    try:
        t = type_of(x)
    except TypeError:
        raise TypeError(f"result_type: arrays, numbers and dtypes have a dtype; got {describe(x)}.") from None
    return t.dtype, t.weak


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype that two dtypes are promoted to; Python's int, float and complex are weakly typed.

    >>> promote_types("int8", "uint8"), promote_types("bfloat16", float)
    (dtype('int16'), dtype(bfloat16))
    """
    return dtypes.promote(dtype_and_weakness(a), dtype_and_weakness(b))[0]


def result_type(*args: ArrayLike | DTypeLike) -> np.dtype:
    """The dtype that arrays, numbers and dtypes are promoted to.

    >>> result_type(np.ones(2, "int8"), 1), result_type(np.ones(2, "int8"), 1.0)
    (dtype('int8'), dtype('float32'))
    """
    if not args:
        raise ValueError("result_type: at least one array or dtype is needed.")
    return dtypes.promote(*[dtype_and_weakness(x) for x in args])[0]


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a dtype, or that of an array, can be cast to another under one of NumPy's casting rules.

    >>> can_cast("int16", "float32"), can_cast("float32", "int16")
    (True, False)
    """
    if isinstance(from_, (int, float, complex)) and not isinstance(from_, np.generic):
        raise TypeError(f"can_cast: a Python number has no dtype of its own; got {type(from_).__name__}.")
    return bool(np.can_cast(dtype_and_weakness(from_)[0], dtypes.canonical(to), casting))  # type: ignore[arg-type]


KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype equals `kind`, belongs to the array API's kind of that name, or does so for any item of a tuple.

    >>> isdtype("bfloat16", "real floating"), isdtype("int8", ("bool", "int8"))
    (True, True)
    """
    canonical = dtypes.canonical(dtype)
    for k in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(k, str) and k in KINDS:
            if dtypes.kind(canonical) in KINDS[k]:
                return True
            continue
        try:
            same = dtypes.canonical(k) is canonical
        except TypeError:
            names = ", ".join(map(repr, KINDS))
            error = ValueError if isinstance(k, str) else TypeError
            raise error(f"isdtype: a kind is a dtype or one of {names}; got {k!r}.") from None
        if same:
            return True
    return False


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of x is complex, whatever its values.

    >>> iscomplexobj(asarray([1 + 0j])), iscomplexobj(1.0)
    (True, False)
    """
    if isinstance(x, (list, tuple)):
        x = asarray(x)
    try:
        return type_of(x).kind == "c"
    except TypeError:
        return False


def isrealobj(x: Any) -> bool:
    """Whether the dtype of x is not complex.

    >>> isrealobj(asarray([1 + 0j])), isrealobj(1.0)
    (False, True)
    """
    return not iscomplexobj(x)


@library_function
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part of each element is not zero.

    >>> iscomplex(np.asarray([1 + 0j, 1j], "complex64"))
    Array([False,  True], dtype=bool)
    """
    t = operand_type("iscomplex", x)
    if t.kind != "c":
        return ew.logical_and(ew.eq(x, x), False) if t.kind != "b" else ew.logical_and(x, False)
    part = conversion.imag(x)
    return ew.ne(part, np.zeros((), type_of(part).dtype))


@library_function
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part of each element is zero.

    >>> isreal(asarray([1 + 0j, 1j]))
    Array([ True, False], dtype=bool)
    """
    return ew.logical_not(iscomplex(x))


# -- shapes -----------------------------------------------------------------------------------------------------------


def isscalar(element: Any) -> bool:
    """Whether something is a number, a string, or an array without axes.

    >>> isscalar(3.0), isscalar(asarray(3.0)), isscalar(asarray([3.0]))
    (True, True, False)
    """
    if isinstance(element, (Array, np.ndarray)):
        return len(element.shape) == 0
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Whether something can be iterated over; an array without axes cannot.

    >>> iterable(asarray([1, 2])), iterable(asarray(1))
    (True, False)
    """
    if isinstance(y, Array):
        return y.ndim > 0
    return np.iterable(y)


def _array_type(name: str, a: Any) -> ArrayType:
    """The type of an array, a number, nested lists, or anything with shape and dtype."""
    return asarray(a).type if isinstance(a, (list, tuple)) else operand_type(name, a)


def ndim(a: Any) -> int:
    """The number of axes.

    >>> ndim(np.ones((2, 3))), ndim(1.0)
    (2, 0)
    """
    return _array_type("ndim", a).ndim


def shape(a: Any) -> tuple[int, ...]:
    """The lengths of all axes.

    >>> shape(np.ones((2, 3))), shape(1.0)
    ((2, 3), ())
    """
    return _array_type("shape", a).shape


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, in total or along axes.

    >>> size(np.ones((2, 3))), size(np.ones((2, 3)), 1)
    (6, 3)
    """
    t = _array_type("size", a)
    return t.size if axis is None else prod([t.shape[i] for i in check_axes("size", axis, t.ndim)])


# -- text and files ---------------------------------------------------------------------------------------------------


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """An array as text that shows its dtype.

    >>> array_repr(np.asarray([1.25, 2.0], "float32"), precision=1)
    'Array([1.2, 2. ], dtype=float32)'
    """
    if isinstance(arr, Tracer):
        return repr(arr)
    return array_printing.as_repr(
        as_array(asarray(arr)), max_line_width=max_line_width, precision=precision, suppress_small=suppress_small
    )


def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The elements of an array as text.

    >>> array_str(asarray([1.25, 2.0]), precision=1)
    '[1.2 2. ]'
    """
    if isinstance(a, Tracer):
        return repr(a)
    return array_printing.as_str(
        as_array(asarray(a)), max_line_width=max_line_width, precision=precision, suppress_small=suppress_small
    )


def get_printoptions() -> dict[str, Any]:
    """The settings for printing arrays, shared with NumPy.

    >>> with printoptions(precision=3):
    ...     print(get_printoptions()["precision"])
    3
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Change how arrays are printed, here and in NumPy.

    >>> with printoptions():
    ...     set_printoptions(precision=2)
    ...     print(asarray([1 / 3, 0.5]))
    [0.33 0.5 ]
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> Any:
    """Change how arrays are printed inside a `with` block.

    >>> with printoptions(precision=2):
    ...     print(asarray(np.asarray([1 / 3, 0.5])))
    [0.33 0.5 ]
    """
    return np.printoptions(*args, **kwargs)


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's format, which `load` reads.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, asarray([1, 2]))
    >>> load(io.BytesIO(file.getvalue()))
    Array([1, 2], dtype=int32)
    """
    np.save(file, np.asarray(arr), allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to one file, under their keywords or as `arr_0`, `arr_1`, ...

    >>> import io
    >>> file = io.BytesIO()
    >>> savez(file, a=asarray([1, 2]), b=asarray(3))
    >>> sorted(load(io.BytesIO(file.getvalue())))
    ['a', 'b']
    """
    arrays = {k: np.asarray(v) for k, v in kwds.items()}
    np.savez(file, *[np.asarray(x) for x in args], allow_pickle=allow_pickle, **arrays)


def load(file: Any, *args: Any, **kwargs: Any) -> Array:
    """Read an array that `save` or NumPy wrote; a file of several arrays is returned as NumPy's mapping of host arrays.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, asarray([1, 2]))
    >>> load(io.BytesIO(file.getvalue()))
    Array([1, 2], dtype=int32)
    """
    loaded = np.load(file, *args, **kwargs)
    if not isinstance(loaded, np.ndarray):
        return loaded
    if loaded.dtype == np.dtype("V2"):  # NumPy's format has no name for bfloat16, and keeps the two bytes
        loaded = loaded.view(dtypes.bfloat16)
    return asarray(loaded)
