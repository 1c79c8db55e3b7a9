"""`ravel_pytree`: pytrees of arrays as vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import Array, type_of
from atled.ops import conversion, shape


class _Unravel:
    """Converts a vector back to a pytree. Two are equal if their tree structures and array types are equal."""

    def __init__(self, structure: tree.TreeDef, types: tuple[Any, ...], dtype: Any) -> None:
        self.structure, self.types, self.dtype = structure, types, dtype
        self.is_mixed = any([t.dtype is not dtype for t in types])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and (self.structure, self.types) == (other.structure, other.types)

    def __hash__(self) -> int:
        return hash((self.structure, self.types))

    def __call__(self, vector: Any) -> Any:
        t, size = type_of(vector), sum([t.size for t in self.types])
        if t.shape != (size,):
            raise ValueError(errors.explained(f"unravel: a vector of {size} numbers is needed; got {t}."))
        if self.is_mixed and t.dtype is not self.dtype:
            raise TypeError(
                errors.explained(
                    f"unravel: a pytree with several dtypes needs a vector of {self.dtype.name}; got {t}.",
                    f"x.astype({self.dtype.name!r}).",
                )
            )
        if not self.types:
            return self.structure.unflatten([])
        parts = shape.split(jnp.asarray(vector), [t.size for t in self.types], 0)
        out = [shape.reshape(p, t.shape) for p, t in zip(parts, self.types, strict=True)]
        if self.is_mixed:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # complex to real: the imaginary parts were zero
                out = [conversion.convert(x, t.dtype) for x, t in zip(out, self.types, strict=True)]
        return self.structure.unflatten(out)


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """The arrays of a pytree concatenated into a vector of their promoted dtype, and the inverse function.

    >>> vector, unravel = ravel_pytree({"a": jnp.ones((2, 2)), "b": 3})
    >>> vector
    Array([1., 1., 1., 1., 3.], dtype=float32)
    >>> unravel(vector)["b"]
    Array(3, dtype=int32)
    """
    leaves, structure = tree.flatten(pytree)
    types = tuple([type_of(x) for x in leaves])
    if not leaves:
        return jnp.zeros((0,), np.float32), _Unravel(structure, (), np.dtype(np.float32))
    dtype = type_of(leaves[0]).dtype if len(leaves) == 1 else jnp.result_type(*leaves)
    flat = [jnp.ravel(x) for x in leaves]
    vector = flat[0] if len(flat) == 1 else jnp.concatenate([conversion.convert(x, dtype) for x in flat])
    strong = tuple([t.strong() for t in types])
    return vector, _Unravel(structure, strong, type_of(vector).dtype)


__all__ = ["ravel_pytree"]
__dir__ = __all__.copy
