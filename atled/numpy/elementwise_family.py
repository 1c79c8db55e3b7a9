"""The common form of NumPy's elementwise functions: promote and broadcast the operands, then apply an op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.promotion import broadcast, cast, operand_type, promote_dtypes, promote_inexact
from atled.ops import conversion
from atled.ops import elementwise as ew
from atled.staging.jit import LibraryFunction, library_function

_P = ParamSpec("_P")
Unary = LibraryFunction[[ArrayLike], Array]
Binary = LibraryFunction[[ArrayLike, ArrayLike], Array]


def finish(f: Callable[_P, Any], name: str, doc: str) -> LibraryFunction[_P, Array]:
    """A function of the public namespace, with its name and docstring."""
    f.__name__ = f.__qualname__ = name  # type: ignore[attr-defined]
    f.__module__ = "atled.numpy"
    f.__doc__ = doc
    return library_function(f, is_thin=True)


def float_function(name: str, op: Callable[[Any], Any], doc: str) -> Unary:
    """A function of one operand with floating or complex results."""

    def f(x: ArrayLike, /) -> Array:
        return op(promote_inexact(name, x)[0])

    return finish(f, name, doc)


def binary(
    name: str,
    op: Callable[[Any, Any], Any],
    doc: str,
    promote: Callable[..., Any] = promote_dtypes,
    on_bools: Any = None,
    on_mask: Any = None,
) -> Binary:
    """A function of two operands, which it promotes and broadcasts; `on_mask` handles a boolean and an inexact one."""

    def f(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        if isinstance(x1, Array) and isinstance(x2, Array) and x1.type is x2.type and x1.type.kind == "f":
            return op(x1, x2)  # fast path
        if on_mask is not None:
            for mask, x in ((x1, x2), (x2, x1)):
                if isinstance(x, Array) and x.type.kind in "fc" and getattr(mask, "dtype", None) == np.bool_:
                    return on_mask(*broadcast(name, [mask, x]))
        x, y = broadcast(name, promote(name, x1, x2))
        if on_bools is not None and type_of(x).kind == "b":
            return on_bools(x, y)
        return op(x, y)

    return finish(f, name, doc)


def numbers(name: str, x1: Any, x2: Any) -> list[Any]:
    """Operands converted to the same dtype and shape; bools count as integers."""
    x, y = broadcast(name, promote_dtypes(name, x1, x2))
    return [conversion.convert(v, dtypes.default("i")) for v in (x, y)] if type_of(x).kind == "b" else [x, y]


def check_real(name: str, *operands: Any) -> None:
    """Raise for complex operands where NumPy does."""
    for t in [operand_type(name, x) for x in operands]:
        if t.kind == "c":
            raise TypeError(f"{name}: operands must be real; got {t}.")


def to_bool(name: str, x: Any) -> Any:
    """x as truth values."""
    t = operand_type(name, x)
    return (
        x
        if t.kind == "b" and isinstance(x, Array)
        else ew.ne(x, np.zeros((), t.dtype))
        if t.kind != "b"
        else cast(x, dtypes.bool_)
    )
