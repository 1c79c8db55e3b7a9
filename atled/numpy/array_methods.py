"""Operators and methods of arrays, installed once for all kinds of arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import array as core_array
from atled.core import dtypes, errors
from atled.core.array import Array, describe, unwrapped
from atled.core.program import Literal
from atled.core.trace import Tracer, bind
from atled.numpy import (
    arithmetic,
    at_updates,
    bitwise,
    contractions,
    creation,
    cumulative,
    elementwise,
    index_reads,
    logic,
    numpy_protocols,
    reductions,
    repetition,
    rounding,
    searching,
    selection,
    shapes,
    sorting,
    splitting,
    take_along,
)
from atled.numpy.promotion import made_array
from atled.ops import conversion
from atled.ops.indexing import DynamicSlice
from atled.ops.placement import placed

_OPERANDS = (Array, np.ndarray, np.generic, int, float, complex, Literal)


def _operator(f: Callable[[Any, Any], Any], is_reflected: bool = False, is_equality: bool = False) -> Any:
    """A binary operator method that applies f, or returns NotImplemented for operands of other classes."""
    refused = (list, tuple) if is_equality else (list, tuple, str, type(None))
    if is_reflected:

        def reflected(self: Any, other: Any) -> Any:
            return f(other, self) if isinstance(other, _OPERANDS) else _deferred(f, other, self, refused)

        return reflected

    def direct(self: Any, other: Any) -> Any:
        return f(self, other) if isinstance(other, _OPERANDS) else _deferred(f, self, other, refused)

    return direct


def _deferred(f: Callable[[Any, Any], Any], x: Any, y: Any, refused: tuple[Any, ...]) -> Any:
    """Return NotImplemented, so that Python tries the reflected operator; raise if the operand's class has none."""
    number = int(isinstance(x, Array))
    if hasattr((x, y)[number], "__jax_array__"):
        return f(unwrapped(x), unwrapped(y))
    if type((x, y)[number]) not in refused:
        return NotImplemented
    raise TypeError(
        errors.explained(
            f"{f.__name__}: operands must be arrays or numbers; got {describe(x)} and {describe(y)}.",
            made_array((x, y)[number]),
        )
    )


_BINARY = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.divide,
    "floordiv": arithmetic.floor_divide, "mod": arithmetic.remainder, "pow": arithmetic.power,
    "matmul": contractions.matmul, "and": bitwise.bitwise_and, "or": bitwise.bitwise_or,
    "xor": bitwise.bitwise_xor, "lshift": bitwise.left_shift, "rshift": bitwise.right_shift,
    "divmod": arithmetic.divmod,
}  # fmt: skip
_COMPARE = {
    "lt": logic.less, "le": logic.less_equal, "gt": logic.greater, "ge": logic.greater_equal,
    "eq": logic.equal, "ne": logic.not_equal,
}  # fmt: skip
_UNARY = {
    "neg": elementwise.negative,
    "pos": elementwise.positive,
    "abs": elementwise.absolute,
    "invert": bitwise.invert,
}


def _reshape(self: Any, *shape: Any, order: str = "C", copy: bool | None = None, out_sharding: Any = None) -> Any:
    dims = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    reshaped = shapes.reshape(self, tuple(dims) if isinstance(dims, (list, tuple)) else dims, order)
    return placed(reshaped, out_sharding, "reshape")


def _transpose(self: Any, *axes: Any) -> Any:
    if not axes or axes == (None,):
        return shapes.transpose(self)
    return shapes.transpose(self, tuple(axes[0]) if isinstance(axes[0], (tuple, list)) else axes)


def _iter(self: Any) -> Any:
    if self.ndim == 0:
        raise TypeError(
            errors.explained(
                f"iteration: a 0-d array has no elements to iterate over; got {self.type}.",
                "range(n) or lax.fori_loop to count up to a number; x.reshape(1) for an array of one element.",
            )
        )
    if self.type.kind != "k" and self.shape[0] <= _ROWS:
        return iter(splitting.unstack(self))
    return _rows(self)


_ROWS = 64  # the number of elements that one program extracts at a time


def _rows(x: Any) -> Any:
    """Iterate over the elements of a long array, extracting `_ROWS` at a time."""
    count, is_cut = x.shape[0], x.type.kind != "k" and not isinstance(x, Tracer)
    for start in range(0, count, _ROWS):
        if is_cut and start and start + _ROWS <= count:  # a program for full chunks after the first one
            starts = [np.int32(start), *[np.int32(0)] * (x.ndim - 1)]
            yield from splitting.unstack(bind(DynamicSlice((_ROWS, *x.shape[1:])), x, *starts))
        else:
            yield from (x[i] for i in range(start, min(start + _ROWS, count)))


def _round(self: Any, decimals: int = 0, out: None = None) -> Any:
    return rounding.round(self, decimals)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """The data reinterpreted as another dtype, along the last axis."""
    target_dtype = dtypes.canonical(float if dtype is None else dtype)
    old, new = dtypes.bits(self.dtype), dtypes.bits(target_dtype)
    if old == new:
        return conversion.bitcast_convert(self, target_dtype)
    if old > new:
        out = conversion.bitcast_convert(self, target_dtype)
        return shapes.reshape(out, (*self.shape[:-1], -1)) if self.ndim else out
    split = shapes.reshape(self, (*self.shape[:-1], self.shape[-1] * old // new, new // old))
    return conversion.bitcast_convert(split, target_dtype)


def _flatten(self: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    return placed(shapes.ravel(self, order), out_sharding, "flatten")


def _compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    return selection.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _byteswap(self: Any) -> Any:
    """The bytes of each element in reverse order."""
    size = dtypes.bits(self.dtype) // 8
    if size < 2:
        return self
    words = _view(self, "uint8").reshape((*self.shape, size))
    return _view(shapes.flip(words, -1), self.dtype).reshape(self.shape)


def _contains(self: Any, x: Any) -> bool:
    return bool((self == x).any())


def _tobytes(self: Any, order: str = "C") -> bytes:
    return np.asarray(self).tobytes(order)  # pyright: ignore[reportArgumentType]


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    return creation.astype(self, dtype, device=device)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    return elementwise.clip(self, min, max)


def _dot(self: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    return contractions.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    numpy: Any = sys.modules["atled.numpy"]  # not imported at the top: it imports this file
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", numpy.__array_api_version__):
        raise ValueError(
            f"__array_namespace__: the array API standard is followed up to {numpy.__array_api_version__}; "
            f"got {api_version!r}."
        )
    return numpy


def _property(f: Callable[[Any], Any], doc: str) -> property:
    return property(f, doc=doc)


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    return creation.located(self, device)


def install() -> None:
    """Install the operators and methods of arrays."""
    members: dict[str, Any] = {}
    for name, f in _BINARY.items():
        members[f"__{name}__"] = _operator(f)
        members[f"__r{name}__"] = _operator(f, True)
    for name, f in _COMPARE.items():
        members[f"__{name}__"] = _operator(f, is_equality=name in ("eq", "ne"))
    for name, f in _UNARY.items():
        members[f"__{name}__"] = f
    members |= {
        "__getitem__": index_reads.getitem,
        "__setitem__": index_reads.setitem,
        "__delitem__": index_reads.delitem,
        "__iter__": _iter,
        "__round__": lambda self, n=0: rounding.round(self, n),
        "__array_namespace__": _namespace,
        "at": _property(at_updates.at, "Functional updates: `x.at[i].set(v)` is x with x[i] replaced."),
        "T": _property(shapes.transpose, "The array with its axes in reverse order."),
        "mT": _property(shapes.matrix_transpose, "The array with its last two axes exchanged."),
        "real": _property(elementwise.real, "The real part."),
        "imag": _property(elementwise.imag, "The imaginary part."),
        "flat": _property(lambda self: iter(shapes.ravel(self)), "An iterator over the elements in row-major order."),
        "reshape": _reshape,
        "transpose": _transpose,
        "ravel": _flatten,
        "flatten": _flatten,
        "astype": _astype,
        "view": _view,
        "copy": creation.copy,
        "round": _round,
        "clip": _clip,
        "dot": _dot,
        "conj": elementwise.conjugate,
        "conjugate": elementwise.conjugate,
        "to_device": _to_device,
        "byteswap": _byteswap,
        "compress": _compress,
        "tobytes": _tobytes,
        "__contains__": _contains,
    }
    for module, names in (
        (shapes, "squeeze swapaxes"),
        (reductions, "sum prod max min all any mean var std ptp argmax argmin"),
        (cumulative, "cumsum cumprod"),
        (contractions, "trace diagonal"),
        (sorting, "sort argsort argpartition"),
        (searching, "searchsorted nonzero"),
        (selection, "choose"),
    ):
        members |= {name: getattr(module, name) for name in names.split()}
    members["repeat"] = repetition.repeat
    members["take"] = take_along.take
    core_array.fill(members)
    Tracer.__array_ufunc__ = numpy_protocols.array_ufunc  # type: ignore[attr-defined]  # those on a device become NumPy's
    Tracer.__array_function__ = numpy_protocols.array_function  # type: ignore[attr-defined]
