"""`ufunc`: elementwise functions with methods that reduce, accumulate and update: `add.reduce`, `maximum.at`, ...

The functions of `atled.numpy` are plain functions, which are faster to call, with the methods as attributes; still,
`isinstance(add, ufunc)` is true. `frompyfunc` makes a ufunc from any function of scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core.array import type_of
from atled.core.axes import check_axes, check_axis
from atled.numpy import bitwise, elementwise, logic, reductions
from atled.numpy.concatenation import concatenate
from atled.numpy.creation import asarray
from atled.numpy.elementwise import where_both
from atled.numpy.promotion import broadcast_to
from atled.numpy.shapes import moveaxis
from atled.ops import cumulative
from atled.staging.jit import library_function

_METHODS = ("reduce", "accumulate", "outer", "at", "reduceat", "nin", "nout", "nargs", "identity")
_WRITES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}
_SUMS = {"add": reductions.sum, "multiply": reductions.prod}
_WHOLE = {"maximum": reductions.max, "minimum": reductions.min}
_TRUTH = {"logical_and": reductions.all, "logical_or": reductions.any}
_PREFIXES = {
    "add": cumulative.cumsum,
    "multiply": cumulative.cumprod,
    "maximum": cumulative.cummax,
    "minimum": cumulative.cummin,
}
# For JAX's ufuncs: whether they are associative, and their identity element.
_OWN: dict[str, tuple[bool, Any]] = {
    "add": (True, 0), "multiply": (True, 1), "subtract": (False, None), "maximum": (True, None),
    "minimum": (True, None), "bitwise_and": (True, -1), "bitwise_or": (True, 0), "bitwise_xor": (True, 0),
    "logical_and": (True, True), "logical_or": (True, False), "logical_xor": (True, False),
    "logaddexp": (True, -np.inf), "logaddexp2": (True, -np.inf),
}  # fmt: skip
_FUNCTIONS: dict[str, Any] = {
    "add": elementwise.add, "multiply": elementwise.multiply, "subtract": elementwise.subtract,
    "maximum": elementwise.maximum, "minimum": elementwise.minimum, "negative": elementwise.negative,
    "bitwise_and": bitwise.bitwise_and, "bitwise_or": bitwise.bitwise_or, "bitwise_xor": bitwise.bitwise_xor,
    "logical_and": logic.logical_and, "logical_or": logic.logical_or, "logical_xor": logic.logical_xor,
    "logaddexp": elementwise.logaddexp, "logaddexp2": elementwise.logaddexp2,
}  # fmt: skip


class _Kind(type):
    """A metaclass whose `isinstance` accepts functions that have the methods of a ufunc."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is cls or (hasattr(x, "reduceat") and isinstance(x.reduceat.__self__, cls))


class ufunc(metaclass=_Kind):  # noqa: N801
    """A function of scalars applied elementwise, with methods that reduce arrays with it. Made by `frompyfunc`.

    >>> plus = ufunc(lambda a, b: a + b, 2, 1)
    >>> plus.reduce(asarray([1, 2, 3])), plus.outer(asarray([1, 2]), asarray([10, 20]))
    (Array(6, dtype=int32), Array([[11, 21],
           [12, 22]], dtype=int32))
    """

    def __init__(
        self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None, identity: Any = None
    ) -> None:
        self._func = func
        self._is_own = _FUNCTIONS.get(name or "") is func
        self._is_associative = self._is_own and _OWN.get(name or "", (False, None))[0]
        self.nin = self.nargs = nin
        self.nout = nout
        self.identity = identity
        self.__name__ = name or getattr(func, "__name__", "f")
        self.__doc__ = getattr(func, "__doc__", None)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__}>"

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        """Apply the function elementwise to arrays, which broadcast."""
        if out is not None or where is not None:
            raise NotImplementedError(f"{self.__name__}: `out` and `where` are not supported; use numpy.where.")
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}: {self.nin} operands are needed; got {len(args)}.")
        if self._is_own:
            return self._func(*args)
        from atled.numpy.vectorization import vectorize

        return vectorize(self._func)(*args)

    def _check(self, method: str, out: None = None) -> None:
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(
                f"{self.__name__}.{method}: the function must have two operands and one result; "
                f"got {self.nin} and {self.nout}."
            )
        if out is not None:
            raise NotImplementedError(f"{self.__name__}.{method}: arrays are immutable, so `out` must be None.")

    def reduce(
        self,
        a: Any,
        axis: int | Sequence[int] | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """Reduce the elements along axes with the function, from first to last."""
        self._check("reduce", out)
        x = asarray(a)
        name = self.__name__ if self._is_own else ""
        axes = check_axes(f"{self.__name__}.reduce", axis, x.ndim) if x.ndim else ()
        if name in _SUMS:
            return _SUMS[name](x, axes, dtype, None, keepdims, initial, where)
        x = x if dtype is None else x.astype(dtype)
        if name in _WHOLE:
            return _WHOLE[name](x, axes, None, keepdims, initial, where)
        if name in _TRUTH:
            reduced = _TRUTH[name](x, axes, None, keepdims, where=where)
            return reduced if initial is None else self._func(initial, reduced)
        start = self.identity if initial is None else initial
        if start is None and (where is not None or 0 in [x.shape[i] for i in axes]):
            raise ValueError(
                f"{self.__name__}.reduce: without an identity element, at least one element is needed; got {x.type}"
                + (" and `where`." if where is not None else ".")
            )
        use_start = initial is not None or (start is not None and (where is not None or x.size == 0))
        return _reduced(self, x, start if use_start else None, where, axes, keepdims)

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Cumulative reduction along an axis."""
        self._check("accumulate", out)
        x = asarray(a)
        axis = check_axis(f"{self.__name__}.accumulate", axis, x.ndim)
        return _accumulated(self, self._widened(x, dtype), axis)

    def outer(self, A: Any, B: Any, /) -> Any:  # noqa: N803
        """The function of every pair of an element of A and an element of B, in the shape A.shape + B.shape."""
        self._check("outer")
        x, y = asarray(A), asarray(B)
        return self(x.reshape(x.shape + (1,) * y.ndim), y)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """The array with the function applied to the elements at indices, once for each occurrence of an index."""
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at: arrays are immutable; got inplace=True."
                f"\n  try: x = {self.__name__}.at(x, indices, ..., inplace=False)"
            )
        if self.nin > 2 or self.nout != 1 or (b is None) != (self.nin == 1):
            raise ValueError(f"{self.__name__}.at: {self.nin} operands are needed; b is the second one.")
        x = asarray(a)
        if self._is_own and self.__name__ in _WRITES:
            return getattr(x.at[indices], _WRITES[self.__name__])(b)
        places = asarray(np.arange(x.size, dtype=np.int32).reshape(x.shape))
        places = places.at[indices].get(mode="fill", fill_value=x.size)
        return _applied(self, x, places, b)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Reduce the elements from each index up to the next one; a single element if the next index is not larger."""
        self._check("reduceat", out)
        x, starts = asarray(a), asarray(indices)
        if starts.ndim != 1 or type_of(starts).kind not in "iu":
            raise TypeError(f"{self.__name__}.reduceat: indices are a vector of integers; got {starts.type}.")
        axis = check_axis(f"{self.__name__}.reduceat", axis, x.ndim)
        return _reduced_at(self, self._widened(x, dtype), starts, axis)

    def _widened(self, x: Any, dtype: Any) -> Any:
        """An array in the dtype of the reduction: small integers are added and multiplied in the default width."""
        if dtype is None and self._is_own and self.__name__ in _SUMS:
            dtype = _SUMS[self.__name__](np.zeros(0, x.dtype)).dtype
        return x if dtype is None else x.astype(dtype)


def _folded(u: ufunc, rows: Any) -> Any:
    """Rows in the dtype of the reduction, which a loop can carry."""
    first = rows[:1]
    return rows.astype(u(first, first).dtype)


@library_function(static=("u", "axes", "keepdims"))
def _reduced(u: Any, x: Any, start: Any, where: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    dims = x.shape
    result_dims = [n for i, n in enumerate(dims) if i not in axes]

    def in_rows(v: Any) -> Any:
        return moveaxis(v, axes, tuple(range(len(axes)))).reshape((-1 if v.size else 0, *result_dims))

    rows = in_rows(x)
    if rows.shape[0]:
        rows = _folded(u, rows)
    if start is not None:
        first = broadcast_to(asarray(start, rows.dtype), (1, *result_dims))
        if where is not None and u._is_associative:
            rows = where_both(in_rows(broadcast_to(asarray(where), dims)), rows, asarray(u.identity, rows.dtype))
            where = None
        rows = concatenate([first, rows], 0)
    if where is None and u._is_associative:
        while rows.shape[0] > 1:
            half = rows.shape[0] // 2
            rows = concatenate([u(rows[:half], rows[half : 2 * half]), rows[2 * half :]], 0)
        out = rows[0]
    else:
        out = _loop(u, rows, None if where is None else in_rows(broadcast_to(asarray(where), dims)))[0]
    return out.reshape([1 if i in axes else n for i, n in enumerate(dims)]) if keepdims else out


def _loop(u: Any, rows: Any, keeps: Any = None) -> tuple[Any, Any]:
    """The last result and all results of reducing rows in order; rows where `keeps` is false are skipped."""
    from atled.higher_order.scan import scan

    def step(carry: Any, given: Any) -> tuple[Any, Any]:
        row, keep = given
        new = u(carry, row)
        new = new if keep is None else where_both(keep, new, carry)
        return new, new

    return scan(step, rows[0], (rows[1:], keeps))


@library_function(static=("u", "axis"))
def _accumulated(u: Any, x: Any, axis: int) -> Any:
    if u._is_own and u.__name__ in _PREFIXES and type_of(x).kind != "b":
        return _PREFIXES[u.__name__](x, axis)
    rows = moveaxis(x, axis, 0)
    if rows.shape[0] == 0:
        return x
    rows = _folded(u, rows)
    if u._is_associative:
        (out,) = cumulative.scan(lambda p, q: (u(p[0], q[0]),), (rows,), 0, False)
    else:
        out = concatenate([rows[:1], _loop(u, rows)[1]], 0)
    return moveaxis(out, 0, axis)


@library_function(static=("u",))
def _applied(u: Any, x: Any, places: Any, b: Any) -> Any:
    from atled.higher_order.scan import scan

    values = None if b is None else broadcast_to(asarray(b), places.shape).reshape(-1)

    def step(flat: Any, given: Any) -> tuple[Any, None]:
        i, value = given
        old = flat.at[i].get(mode="clip")
        new = u(old) if value is None else u(old, value)
        return flat.at[i].set(new.astype(flat.dtype), mode="drop"), None

    return scan(step, x.reshape(-1), (places.reshape(-1), values))[0].reshape(x.shape)


@library_function(static=("u", "axis"))
def _reduced_at(u: Any, x: Any, starts: Any, axis: int) -> Any:
    from atled.higher_order.scan import scan

    rows = moveaxis(x, axis, 0)
    n, column = rows.shape[0], (-1,) + (1,) * (rows.ndim - 1)
    rows = _folded(u, rows)
    ends = concatenate([starts[1:], asarray([n], starts.dtype)], 0)
    starts, ends = starts.reshape(column), ends.reshape(column)

    def step(carry: Any, given: Any) -> tuple[Any, None]:
        i, row = given
        row = row[None]
        inside = where_both((starts < i) & (i < ends), u(carry, row), carry)
        return where_both(starts == i, row, inside), None

    first = broadcast_to(rows[:1], (starts.shape[0], *rows.shape[1:]))
    counts = asarray(np.arange(n), starts.dtype)
    return moveaxis(scan(step, first, (counts, rows))[0], 0, axis)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A `ufunc` from a function of scalars.

    >>> import atled.numpy as jnp
    >>> longer = frompyfunc(lambda x, y: jnp.sqrt(x * x + y * y), 2, 1, identity=0)
    >>> longer.reduce(jnp.array([2.0, 3.0, 6.0]))
    Array(7., dtype=float32)
    """
    if not callable(func) or nin < 1 or nout < 1:
        raise TypeError(
            f"frompyfunc: a function and its numbers of operands and results are needed; got {func!r}, {nin}, {nout}."
        )
    return ufunc(func, nin, nout, identity=identity)


def install() -> None:
    """Set the methods of a ufunc as attributes of the functions in `_OWN` and `negative`."""
    for name, (_, identity) in {**_OWN, "negative": (False, None)}.items():
        f = _FUNCTIONS[name]
        wrapper = ufunc(f, 1 if name == "negative" else 2, 1, name=name, identity=identity)
        for method in _METHODS:
            setattr(f, method, getattr(wrapper, method))
