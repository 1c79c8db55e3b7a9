"""Stacks examples into batches: trees of arrays of equal shapes become one tree with an extra leading axis.

Numbers become arrays; strings and bytes become object arrays, which keep them unchanged. `Stack` knows the shapes
before it copies, so that a worker can copy directly into shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import errors, tree

Layout = list[tuple[tuple[int, ...], np.dtype]]


class Columns(Sequence):
    """Some rows of a tree of arrays: a sequence of examples, which are views."""

    def __init__(self, arrays: list[np.ndarray], structure: Any, rows: np.ndarray) -> None:
        self.arrays, self.structure, self.rows = arrays, structure, rows
        self._keys = _plain_keys(structure)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: Any) -> Any:
        row = int(self.rows[i])
        if self._keys is not None:
            return {k: a[row] for k, a in zip(self._keys, self.arrays)}
        return self.structure.unflatten([a[row] for a in self.arrays])


def _plain_keys(structure: Any) -> tuple[Any, ...] | None:
    """The keys of a flat dict, for a fast path; None for other trees."""
    is_plain = structure.kind is dict and structure.num_leaves == len(structure.children)
    return structure.meta if is_plain and all([c.kind is None for c in structure.children]) else None


class Stack:
    """Examples to be copied into one batch: `layout` has the shapes and dtypes, `fill` copies."""

    def __init__(self, examples: Sequence[Any], who: Callable[[int], str]) -> None:
        if isinstance(examples, Columns):
            self.structure, self.layout = examples.structure, _layout_of_columns(examples)
            self._fill = lambda outs: _take(examples, outs)
        else:
            self.structure, leaves, self.layout = _checked(examples, who)
            self._fill = lambda outs: _copy(leaves, outs)

    def fill(self, outs: Sequence[np.ndarray]) -> Any:
        """The batch, in arrays of this layout."""
        self._fill(outs)
        return self.structure.unflatten(outs)

    def made(self) -> Any:
        """A copy of the batch in new arrays."""
        return self.fill([np.empty(shape, dtype) for shape, dtype in self.layout])


def _layout_of_columns(x: Columns) -> Layout:
    text = np.dtype(object)  # strings become objects, as in `_kind`
    return [((len(x.rows), *a.shape[1:]), text if a.dtype.kind in "SU" else a.dtype) for a in x.arrays]


def _take(x: Columns, outs: Sequence[np.ndarray]) -> None:
    for array, out in zip(x.arrays, outs, strict=True):
        if out.dtype == array.dtype and array.dtype.isnative and array.flags.c_contiguous and array.flags.aligned:
            np.take(array, x.rows, axis=0, out=out, mode="clip")  # rows are in range; "raise" would copy twice
        else:  # `np.take` would first copy the whole array
            out[...] = array[x.rows]


def _copy(leaves: list[list[Any]], outs: Sequence[np.ndarray]) -> None:
    for column, out in zip(leaves, outs, strict=True):
        if out.dtype == object:
            for i, x in enumerate(column):
                out[i] = x
        elif out.ndim == 1:
            out[...] = column
        else:
            for i, x in enumerate(column):
                out[i] = x


def _checked(examples: Sequence[Any], who: Callable[[int], str]) -> tuple[Any, list[list[Any]], Layout]:
    """The structure, one list of values for each leaf, and the layout; raises unless all examples agree."""
    first, structure = tree.flatten(examples[0])
    columns = [[x] for x in first]
    keys = _plain_keys(structure) or ()
    for i, example in enumerate(examples[1:], 1):
        if keys and type(example) is dict and example.keys() == examples[0].keys():
            leaves, actual = [example[k] for k in keys], structure  # non-leaves are detected below
        else:
            leaves, actual = tree.flatten(example)
        if actual != structure:
            raise ValueError(
                errors.explained(
                    f"batch: examples must have the same structure; {who(0)} is {structure}, {who(i)} is {actual}.",
                    "a map before the batch that gives all of them the same fields.",
                )
            )
        for column, x in zip(columns, leaves):
            column.append(x)
    kinds = []
    for j, column in enumerate(columns):
        field = lambda j=j: _path(examples[0], j)  # noqa: E731
        kind = _kind(column[0], field)
        kinds.append(kind)
        for i in range(1, len(column)):
            x = column[i]
            actual = (x.shape, x.dtype) if type(x) is np.ndarray else _kind(x, field)
            if actual != kind:
                raise _difference(field(), kind, actual, who, i)
    return structure, columns, [((len(examples), *shape), dtype) for shape, dtype in kinds]


def _kind(x: Any, field: Callable[[], str]) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and dtype of a leaf of an example."""
    if isinstance(x, (str, bytes)):
        return (), np.dtype(object)
    if isinstance(x, (bool, int, float, complex, np.ndarray, np.generic)) or hasattr(x, "__array__"):
        array = np.asarray(x)
        return array.shape, array.dtype
    raise TypeError(
        errors.explained(
            f"batch: the leaves of examples must be arrays, numbers or strings; the field {field()} is "
            f"a {type(x).__name__}.",
            "a map before the batch that converts it to an array.",
        )
    )


def _path(example: Any, leaf: int) -> str:
    return "".join([str(k) for k in tree.leaves_with_path(example)[leaf][0]]) or "the example"


def _difference(field: str, one: Any, other: Any, who: Callable[[int], str], i: int) -> Exception:
    show = lambda kind: f"{kind[1]}{list(kind[0])}"  # noqa: E731
    if one[0] != other[0]:
        return ValueError(
            errors.explained(
                f"batch: the field {field} must have the same shape in all examples of a batch; it is {show(one)} in "
                f"{who(0)} and {show(other)} in {who(i)}.",
                ".pad(length) before the batch, .bucket(…) instead of it, or a map that cuts or resizes.",
            )
        )
    return TypeError(
        errors.explained(
            f"batch: the field {field} must have the same dtype in all examples of a batch; it is {show(one)} in "
            f"{who(0)} and {show(other)} in {who(i)}.",
            "a map before the batch that gives it one dtype.",
        )
    )
