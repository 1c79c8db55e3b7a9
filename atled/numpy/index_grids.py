"""Grids, open or full, and NumPy's index tricks: `meshgrid`, `mgrid`, `ix_`, `r_`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, describe
from atled.core.errors import ConcretizationTypeError
from atled.core.types import ArrayType
from atled.numpy.concatenation import concatenate, stack
from atled.numpy.creation import asarray, static_shape
from atled.numpy.index_parsing import known_index
from atled.numpy.promotion import broadcast_to, cast, operand_type
from atled.numpy.ranges import arange, linspace
from atled.ops import shape
from atled.staging.jit import library_function
from atled.transforms.vmap import vmap

__all__ = ["c_", "fromfunction", "index_exp", "indices", "ix_", "meshgrid", "mgrid", "ogrid", "r_", "s_"]


@library_function(static=("copy", "sparse", "indexing"))
def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinates of a grid from vectors, one array for each; with indexing "xy" the first two axes are exchanged.

    >>> import atled.numpy as jnp
    >>> jnp.meshgrid(jnp.arange(2), jnp.arange(3), indexing="ij")[1]
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij'; got {indexing!r}.")
    types = [operand_type("meshgrid", x) for x in xi]
    if any(t.ndim > 1 for t in types):
        raise ValueError(f"meshgrid: vectors are needed; got {', '.join(map(str, types))}.")
    places = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        places[:2] = [1, 0]
    dims = [0] * len(xi)
    for t, at in zip(types, places, strict=True):
        dims[at] = t.size
    out = []
    for x, t, at in zip(xi, types, places, strict=True):
        thin = [t.size if k == at else 1 for k in range(len(xi))]
        x = shape.reshape(cast(x, t.dtype, t.weak), thin)
        out.append(x if sparse else broadcast_to(x, tuple(dims)))
    return tuple(out)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Index arrays that select the outer product of indices, one vector for each axis; masks become indices.

    >>> import atled.numpy as jnp
    >>> jnp.arange(9).reshape(3, 3)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
    Array([[1, 2],
           [7, 8]], dtype=int32)
    """
    out = []
    for k, a in enumerate(args):
        x = asarray(a)
        if x.ndim != 1:
            raise ValueError(f"ix_: vectors are needed; got {x.type}.")
        if x.size == 0:
            x = asarray(np.zeros(0, dtypes.default("i")))
        elif x.type.kind == "b":
            known = known_index(x)
            if known is None:
                raise ConcretizationTypeError(
                    x._explained(
                        f"ix_: a traced mask {x.type} selects an unknown number of rows.",
                        "numpy.nonzero(mask, size=n)[0] instead of the mask.",
                    )
                )
            x = asarray(np.flatnonzero(known), dtypes.default("i"))
        out.append(shape.reshape(x, [x.size if j == k else 1 for j in range(len(args))]))
    return tuple(out)


def _grid_vector(key: slice) -> Any:
    """The numbers of one slice of a grid; an imaginary step, such as 11j, is the number of points."""
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if key.stop is None:
        raise ValueError("grid: a slice needs an end, such as 0:5 or 0:1:11j.")
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


class _Grid:
    """`mgrid[0:2, 0:3]`: the coordinates of a grid, as full arrays (`mgrid`) or one vector for each axis (`ogrid`).

    >>> mgrid[0:2, 0:3].shape, [x.shape for x in ogrid[0:2, 0:3]]
    ((2, 2, 3), [(2, 1), (1, 3)])
    """

    def __init__(self, name: str, is_sparse: bool) -> None:
        self._name, self._is_sparse = name, is_sparse

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if any(not isinstance(k, slice) for k in keys):
            raise TypeError(f"{self._name}: slices are needed, such as {self._name}[0:2, 0:3]; got {describe(key)}.")
        vectors = [_grid_vector(k) for k in keys]
        if not isinstance(key, tuple):
            return vectors[0]
        if len({v.dtype for v in vectors}) > 1:
            vectors = [v.astype(dtypes.promote(*[(u.dtype, False) for u in vectors])[0]) for v in vectors]
        out = meshgrid(*vectors, sparse=self._is_sparse, indexing="ij")
        return out if self._is_sparse else stack(out) if out else asarray(np.zeros(0, dtypes.default("f")))

    def __repr__(self) -> str:
        return f"atled.numpy.{self._name}"


mgrid, ogrid = _Grid("mgrid", False), _Grid("ogrid", True)


class _Joined:
    """`r_[1:4, 0, x]`: slices, numbers and arrays joined along an axis; `c_` makes columns of vectors.

    A leading string "axis,ndim,place" gives the axis to join along, the minimum number of axes, and the position at
    which the axes of an item with fewer axes start. "r" and "c" give a row or a column.

    >>> r_[1:4, 0]
    Array([1, 2, 3, 0], dtype=int32)
    """

    def __init__(self, name: str, axis: int, ndim: int, place: int) -> None:
        self._name, self._settings = name, (axis, ndim, place)

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndim, place = self._settings
        form = ""
        if items and isinstance(items[0], str):
            text = items.pop(0)
            if text in ("r", "c"):
                form = text
            else:
                axis, ndim, place = self._parse(text)
        if any(isinstance(item, str) for item in items):
            raise ValueError(f"{self._name}: a string can only come first.")
        if not items:
            raise ValueError(f"{self._name}: at least one array, number or slice is needed.")
        out = concatenate([self._item(item, max(ndim, 1), place) for item in items], axis)
        if form and out.ndim == 1:
            return shape.reshape(out, (1, out.size) if form == "r" else (out.size, 1))
        return out

    def _parse(self, text: str) -> tuple[int, int, int]:
        try:
            given = [int(part) for part in text.split(",")]
        except ValueError:
            given = []
        if not 1 <= len(given) <= 3:
            raise ValueError(
                f"{self._name}: a string is 'r', 'c', or up to three integers, such as '0,2'; got {text!r}."
            )
        axis, ndim, place = (*given, *self._settings[len(given) :])
        return axis, ndim, place

    def _item(self, item: Any, ndim: int, place: int) -> Any:
        """An item with at least ndim axes; its original axes start at `place`, counted from the end if negative."""
        x = _grid_vector(item) if isinstance(item, slice) else asarray(item)
        new = ndim - x.ndim
        if new <= 0:
            return x
        before = new if x.ndim == 0 else min(max(place if place >= 0 else new + 1 + place, 0), new)
        return shape.reshape(x, (*(1,) * before, *x.shape, *(1,) * (new - before)))

    def __repr__(self) -> str:
        return f"atled.numpy.{self._name}"


r_, c_ = _Joined("r_", 0, 1, -1), _Joined("c_", -1, 2, 0)
s_, index_exp = np.s_, np.index_exp


def fromfunction(
    function: Callable[..., Any],
    shape: SupportsIndex | Sequence[SupportsIndex],
    *,
    dtype: DTypeLike = float,
    **kwargs: Any,
) -> Array:
    """An array computed by a function of its index arrays.

    >>> fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    dims = static_shape("fromfunction", shape)
    for i in range(len(dims)):
        axes: list[int | None] = [None] * len(dims)
        axes[len(dims) - 1 - i] = 0
        function = vmap(function, in_axes=tuple(axes))
    return function(*[arange(n, dtype=dtype) for n in dims], **kwargs)


@library_function(static=("dims", "dtype", "sparse"))
def _indices(dims: tuple[int, ...], dtype: Any, sparse: bool) -> Any:
    n = len(dims)
    if sparse:
        return tuple(
            [
                shape.reshape(shape.iota(dtype, (d,), 0), [d if j == i else 1 for j in range(n)])
                for i, d in enumerate(dims)
            ]
        )
    if not dims:
        return shape.zeros(ArrayType((0,), dtype))
    return shape.concatenate([shape.reshape(shape.iota(dtype, dims, i), (1, *dims)) for i in range(n)], 0)


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Array:
    """The indices of every position of a grid.

    >>> rows, columns = indices((2, 2))
    >>> rows, columns
    (Array([[0, 0],
           [1, 1]], dtype=int32), Array([[0, 1],
           [0, 1]], dtype=int32))
    """
    return _indices(tuple(dimensions), dtypes.canonical(int if dtype is None else dtype), sparse)
