"""Promotion and broadcasting of operands of NumPy functions.

Mixing float32 and float64 arrays gives a warning, once for each line of user code.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, error_hints, errors, source
from atled.core.array import Array, describe, type_of
from atled.core.program import Literal
from atled.core.settings import scope
from atled.core.trace import state
from atled.core.types import ArrayType
from atled.ops import conversion, shape


def operand_type(name: str, x: Any) -> ArrayType:
    """The type of an operand; raises, with the function's name, if it is not an array or a number."""
    try:
        return type_of(x)
    except TypeError:
        way_out = made_array(x) or "an array or a number."
        raise TypeError(f"{name}: expected an array or a number; got {describe(x)}.\n  try: {way_out}") from None


def made_array(x: Any) -> str:
    """The hint for an operand that is not an array; for a list, the user's line with the list converted."""
    if isinstance(x, (list, tuple)):
        return error_hints.listed() or "numpy.asarray(x), which makes the conversion visible."
    if x is None:
        return "find where the None comes from: a function without `return` returns None."
    return "float(x) or int(x) to convert the text to a number." if isinstance(x, str) else ""


def cast(x: Any, dtype: Any, weak: bool = False) -> Any:
    """x in another dtype; numbers become literals of that dtype."""
    if isinstance(x, Array):
        if x.type.weak and x.type.kind in "iu":
            _check_width(x.type, dtype)
        warn_about_imaginary(x.type.kind, dtype)
        return x if x.dtype is dtype else conversion.convert(x, dtype, weak)
    if isinstance(x, Literal):
        x = x.value
    if weak and isinstance(x, np.ndarray) and x.ndim:
        return conversion.convert(x, dtype, True)
    if weak:
        _check_width(type_of(x), dtype)
        return Literal(np.asarray(x).astype(dtype).item(), ArrayType((), dtype, True))
    if np.ndim(x) or isinstance(x, np.ndarray):
        return np.asarray(x).astype(dtype)
    if type(x) is int and dtypes.kind(dtype) in "iu" and not dtypes.holds(dtype, x):
        raise _too_large(dtype, x)
    return np.asarray(x, dtype)


def _check_width(t: ArrayType, dtype: Any) -> None:
    """Raise an error for a Python integer that would overflow the default dtype."""
    if t.dtype is dtypes.default("i") or t.kind not in "iu" or dtypes.kind(dtype) not in "iu":
        return
    if t.weak and int(dtypes.iinfo(t.dtype).max) > int(dtypes.iinfo(dtype).max):
        raise _too_large(dtype, f"a {dtypes.bits(t.dtype)}-bit integer")


def _too_large(dtype: Any, x: Any) -> OverflowError:
    return OverflowError(
        errors.explained(
            f"promotion: the number must fit into {dtype.name}, the dtype of the array; got {x}.",
            "numpy.asarray(n, 'int64'), an array that is wide enough, or a float.",
        )
    )


def common_dtype(types: Sequence[ArrayType]) -> tuple[Any, bool]:
    """The promoted dtype of operands, and whether it is weak."""
    first = types[0]
    if all([t.dtype is first.dtype and t.weak == first.weak for t in types[1:]]):
        is_integer = (
            first.weak and first.kind in "iu"
        )  # Python integers alone get the default dtype, whatever their size
        return (dtypes.default("i") if is_integer else first.dtype), first.weak
    dtype, weak = dtypes.promote(*[(t.dtype, t.weak) for t in types])
    if dtype in _DOUBLE and not scope().x64:
        _warn_about_widths(types, dtype)
    return dtype, weak


_DOUBLE = {dtypes.float64: (dtypes.float32,), dtypes.complex128: (dtypes.complex64, dtypes.float32)}
_warned: set[Any] = set()


def converted(x: Any, dtype: Any) -> Any:
    """x in a dtype that the user chose; warns if imaginary parts are lost."""
    warn_about_imaginary(type_of(x).kind, dtype)
    return conversion.convert(x, dtype)


class MixedWidthWarning(UserWarning):
    """A 32-bit array was promoted because the other operand has 64 bits. Convert one of them, or ignore the warning.

    >>> import warnings, atled.numpy as jnp
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     _ = jnp.ones(2, "float32") + jnp.ones(2, "float64")
    >>> str(found[0].message).splitlines()[0]
    'f32[2] and f64[2] are mixed, and the result is float64; convert one of them with .astype to choose the width.'
    """


def warn_about_imaginary(kind: str, dtype: Any) -> None:
    """Warn, as NumPy does, if a conversion from a kind of dtype to `dtype` discards imaginary parts."""
    if kind != "c" or dtypes.kind(dtype) in "cb":
        return
    message = "Casting complex values to real discards the imaginary part; use numpy.real to do so explicitly."
    if state.notes is not None:
        state.notes.append(lambda: errors.warn(message, np.exceptions.ComplexWarning))
    else:
        errors.warn(message, np.exceptions.ComplexWarning)


def _warn_about_widths(types: Sequence[ArrayType], dtype: Any) -> None:
    narrow = [t for t in types if not t.weak and t.dtype in _DOUBLE[dtype]]
    if not [t for t in narrow if t.ndim or not any([u.ndim for u in types])]:
        return
    text = " and ".join(map(str, types))
    message = f"{text} are mixed, and the result is {dtype.name}; convert one of them with .astype to choose the width."
    if state.notes is not None:  # a library function is being traced: each of its calls warns
        state.notes.append(lambda: _warn_once(message))
    else:
        _warn_once(message)


def _warn_once(message: str) -> None:
    """Warn, once for each line of user code."""
    where = source.here()
    key = (where.file, where.line) if where is not None else None
    if key in _warned:
        return
    _warned.add(key)
    errors.warn(message, MixedWidthWarning)


def promote_dtypes(name: str, *operands: Any) -> list[Any]:
    """Operands converted to a common dtype."""
    types = [operand_type(name, x) for x in operands]
    first = types[0]
    if all([t is first for t in types]) and all([isinstance(x, Array) for x in operands]):
        return list(operands)
    dtype, weak = common_dtype(types)
    return [x if isinstance(x, Array) and x.dtype is dtype else cast(x, dtype, weak) for x in operands]


def promote_compared(name: str, x: Any, y: Any) -> list[Any]:
    """Operands in a dtype that holds the values of both: a Python integer may be out of range for the array's dtype."""
    s, t = (operand_type(name, v) for v in (x, y))
    if s.weak != t.weak and s.kind in "iu" and t.kind in "iu":
        number, other = (x, t) if s.weak else (y, s)
        bits = max([dtypes.bits(u.dtype) + (u.kind == "u") for u in (s, t)])
        if bits <= 64 and not (type(number) is int and dtypes.holds(other.dtype, number)):
            return [cast(v, dtypes.int32 if bits <= 32 else dtypes.int64) for v in (x, y)]
    return promote_dtypes(name, x, y)


def inexact_dtype(dtype: Any) -> Any:
    """The dtype of the results of functions with non-integer results, for operands of a dtype."""
    if dtypes.kind(dtype) in "fc":
        return dtype
    if dtypes.kind(dtype) in "biu":  # promote would raise under strict promotion
        return dtypes.default("f")
    return dtypes.promote((dtype, False), (dtypes.default("f"), False))[0]


def _is_narrow(dtype: Any) -> bool:
    """Whether a dtype is a sub-byte integer, which does not promote with other dtypes."""
    return dtypes.kind(dtype) in "iu" and dtypes.bits(dtype) < 8


def common_inexact(types: Sequence[ArrayType]) -> tuple[Any, bool]:
    """The promoted floating or complex dtype of operands, and whether it is weak."""
    # next to a floating operand, sub-byte integers, which do not promote otherwise, count as weak floats
    if any([t.kind in "fc" for t in types]):
        types = [ArrayType(t.shape, dtypes.default("f"), True) if _is_narrow(t.dtype) else t for t in types]
    dtype, weak = common_dtype(types)
    result_dtype = inexact_dtype(dtype)
    return result_dtype, weak or (result_dtype is not dtype and all([t.weak for t in types]))


def promote_inexact(name: str, *operands: Any) -> list[Any]:
    """Operands converted to a common floating or complex dtype."""
    types = [operand_type(name, x) for x in operands]
    for t in types:
        if t.kind == "k":
            raise TypeError(
                f"{name}: random keys are not numbers; got {t}."
                "\n  try: random.normal(key) or another sampler, which returns numbers."
            )
    result_dtype, weak = common_inexact(types)
    return [x if isinstance(x, Array) and x.dtype is result_dtype else cast(x, result_dtype, weak) for x in operands]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape to which shapes broadcast.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    first = shapes[0] if shapes else ()
    if all([s == first for s in shapes]):
        return tuple(first)
    ndim = max(len(s) for s in shapes)
    padded = [(1,) * (ndim - len(s)) + tuple(s) for s in shapes]
    out = []
    for dims in zip(*padded, strict=True):
        sizes = {n for n in dims if n != 1}
        if len(sizes) > 1:
            text = " and ".join(str(tuple(s)) for s in shapes)
            raise ValueError(f"broadcast: shapes {text} are not compatible; lengths must be equal, or 1.")
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def broadcast_to(x: Any, dims: tuple[int, ...]) -> Any:
    """x broadcast to a shape by NumPy's rules."""
    t = type_of(x)
    if t.shape == dims:
        return x
    try:
        fits = broadcast_shapes(t.shape, dims) == tuple(dims)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"broadcast_to: lengths must be equal, or 1; got {t} (shape {t.shape}) for shape {tuple(dims)}."
            + f"\n  try: {_fitting((t.shape, dims))}"
        )
    return shape.broadcast(x, dims, tuple(range(len(dims) - t.ndim, len(dims))))


def broadcast(name: str, operands: Sequence[Any]) -> list[Any]:
    """Operands broadcast to a common shape; scalars stay scalars, because elementwise ops broadcast them."""
    shapes = [type_of(x).shape for x in operands]
    first = shapes[0]
    if all([s == first or s == () for s in shapes]) or (first == () and len({s for s in shapes if s != ()}) == 1):
        return list(operands)
    how = scope().rank_promotion
    if how != "allow" and len({len(s) for s in shapes if s}) > 1:
        _mind_ranks(name, shapes, how)
    try:
        dims = broadcast_shapes(*shapes)
    except ValueError:
        types = " and ".join(str(type_of(x)) for x in operands)
        text = " and ".join(map(str, shapes))
        says = f"{name}: shapes {text} do not broadcast together; got {types}."
        raise ValueError(errors.explained(says, _fitting(shapes))) from None
    return [x if s == () else broadcast_to(x, dims) for x, s in zip(operands, shapes, strict=True)]


def _mind_ranks(name: str, shapes: Sequence[tuple[int, ...]], how: str) -> None:
    message = errors.explained(
        f"{name}: ranks differ, and rank_promotion is {how!r}; got shapes {' and '.join(map(str, shapes))}.",
        "x[None, :] or reshape, to align the axes explicitly.",
    )
    if how == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=2)


def _fitting(shapes: Sequence[tuple[int, ...]]) -> str:
    """The hint for two shapes that do not broadcast."""
    if len(shapes) == 2:
        for i, (few, many) in enumerate([shapes, shapes[::-1]]):
            missing = len(many) - len(few)
            if missing > 0 and few == many[: len(few)]:
                index = ", ".join([":"] * len(few) + ["None"] * missing)
                line = error_hints.with_operand(i, f"{{}}[{index}]")
                return f"{line or f'x[{index}] for the operand of shape {few}'}"
            if len(few) == 2 and few[::-1] == many and few != many:
                line = error_hints.with_operand(1, "{}.T")
                return f"{line or 'x.T for one operand'}"
    return "reshape, or x[:, None] to align the axes; lengths must be equal, or 1."
