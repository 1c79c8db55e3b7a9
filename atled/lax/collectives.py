"""Collectives over named axes: `psum`, `all_gather`, `ppermute`, `all_to_all`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import tree
from atled.core.array import Array, type_of
from atled.core.axes import check_axis
from atled.lax.arithmetic import div
from atled.lax.shape_ops import iota, reshape  # noqa: F401, for the examples
from atled.numpy.promotion import promote_inexact
from atled.ops import collectives, shape


def _no_groups(groups: Any) -> None:
    if groups is not None:
        raise NotImplementedError(
            f"axis_index_groups: collectives over part of an axis are not supported; got {groups}."
            "\n  try: a mesh, or two vmaps, with one more axis, and the collective over that axis."
        )


def _over_tree(f: Callable[..., Any], x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    _no_groups(axis_index_groups)
    return tree.map(lambda v: f(v, axis_name), x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over named axes, replicated. Booleans are counted, as int32.

    >>> import atled
    >>> atled.vmap(lambda x: psum(x, "i"), axis_name="i")(iota("int32", 3))
    Array([3, 3, 3], dtype=int32)
    """
    return _over_tree(collectives.psum, x, axis_name, axis_index_groups)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The largest value over named axes.

    >>> import atled
    >>> atled.vmap(lambda x: pmax(x, "i"), axis_name="i")(iota("int32", 3))
    Array([2, 2, 2], dtype=int32)
    """
    return _over_tree(collectives.pmax, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The smallest value over named axes.

    >>> import atled
    >>> atled.vmap(lambda x: pmin(x, "i"), axis_name="i")(iota("int32", 3))
    Array([0, 0, 0], dtype=int32)
    """
    return _over_tree(collectives.pmin, x, axis_name, axis_index_groups)


def pvary(x: Any, axis_name: Any) -> Any:
    """x, marked as varying along named axes, which changes no value.

    >>> import atled, atled.numpy as jnp
    >>> atled.vmap(lambda x: x + pvary(1, "i"), axis_name="i")(jnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """
    return _over_tree(collectives.pvary, x, axis_name, None)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """x, marked as varying along named axes: the identity, because types do not track along which axes values vary.

    `to="unreduced"` is not supported.

    >>> import atled, atled.numpy as jnp
    >>> atled.vmap(lambda x: x + pcast(1, "i", to="varying"), axis_name="i")(jnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise ValueError(f"pcast: `to` is 'varying', 'reduced' or 'unreduced'; got {to!r}.")
    if to == "unreduced":
        raise NotImplementedError("pcast: unreduced values are not supported; got to='unreduced'.")
    return pvary(x, axis_name)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Broadcast the value at one index of a named axis to all indices.

    >>> import atled
    >>> atled.vmap(lambda x: pbroadcast(x, "i", 2), axis_name="i")(iota("int32", 3))
    Array([2, 2, 2], dtype=int32)
    """
    return tree.map(lambda v: collectives.pbroadcast(v, axis_name, source), x)


def axis_index(axis_name: Any) -> Array:
    """The index along a named axis at which the function runs.

    >>> import atled
    >>> atled.vmap(lambda x: 10 * axis_index("i") + x, axis_name="i")(iota("int32", 3))
    Array([ 0, 11, 22], dtype=int32)
    """
    return collectives.axis_index(axis_name)


def axis_size(axis_name: Any) -> int:
    """The size of named axes.

    >>> import atled
    >>> atled.vmap(lambda x: x * axis_size("i"), axis_name="i")(iota("int32", 3))
    Array([0, 3, 6], dtype=int32)
    """
    return collectives.axis_size(axis_name)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over named axes; integers and booleans have floating-point means.

    >>> import atled
    >>> atled.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(iota("float32", 3))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    _no_groups(axis_index_groups)
    count = axis_size(axis_name)
    return tree.map(lambda v: div(collectives.psum(promote_inexact("pmean", v)[0], axis_name), count), x)


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """All-gather: the values along a named axis, stacked on a new axis, or concatenated if `tiled`.

    The result is treated as replicated, whether `to` is "varying" or "reduced".

    >>> import atled
    >>> atled.vmap(lambda x: all_gather(x, "i"), axis_name="i")(iota("int32", 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if to not in ("varying", "reduced"):
        raise ValueError(f"all_gather: `to` is 'varying' or 'reduced'; got {to!r}.")
    _no_groups(axis_index_groups)
    return tree.map(lambda v: collectives.all_gather(v, axis_name, axis, tiled), x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Reduce-scatter: the sum over a named axis, of which each index gets one slice along `scatter_dimension`.

    >>> import atled
    >>> atled.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(reshape(iota("int32", 4), (2, 2)))
    Array([2, 4], dtype=int32)
    """
    _no_groups(axis_index_groups)
    return tree.map(lambda v: collectives.psum_scatter(v, axis_name, scatter_dimension, tiled), x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along a named axis, by pairs of (source, target); indices that receive nothing get zeros.

    >>> import atled
    >>> atled.vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(iota("int32", 3) + 5)
    Array([0, 5, 6], dtype=int32)
    """
    return tree.map(lambda v: collectives.ppermute(v, axis_name, perm), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Permute values along a named axis: index i gets the value of index perm[i].

    >>> import atled
    >>> atled.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(iota("int32", 3))
    Array([2, 0, 1], dtype=int32)
    """
    return ppermute(x, axis_name, [(s, t) for t, s in enumerate(perm)])


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """All-to-all: send slices along one axis to the devices of a named axis, and concatenate those received.

    >>> import atled
    >>> atled.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(reshape(iota("int32", 4), (2, 2)))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    _no_groups(axis_index_groups)

    def one(v: Any) -> Any:
        if tiled:
            return collectives.all_to_all(v, axis_name, split_axis, concat_axis)
        # split_axis, whose length is the size of the named axis, moves to concat_axis
        n = type_of(v).ndim
        moved = shape.move_axis(v, check_axis("all_to_all", split_axis, n), 0)
        dealt = collectives.all_to_all(moved, axis_name, 0, 0)
        return shape.move_axis(dealt, 0, check_axis("all_to_all", concat_axis, n))

    return tree.map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange an array axis with a named axis of the same length.

    >>> import atled, atled.numpy as jnp
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> atled.vmap(lambda row: pswapaxes(row, "i", 0), axis_name="i")(x)  # the transpose
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)
