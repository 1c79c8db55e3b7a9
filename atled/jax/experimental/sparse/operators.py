"""Defines the array operators and methods of `BCOO` with `sparsify` when it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled import numpy as jnp
from atled.core import errors
from atled.core.array import is_array_like
from atled.jax.experimental.sparse import layout, shaping
from atled.jax.experimental.sparse.bcoo import BCOO, METHODS
from atled.jax.experimental.sparse.transform import sparsify

METHODS.update(
    sum_duplicates=layout.sum_duplicates,
    sort_indices=layout.bcoo_sort_indices,
    update_layout=layout.bcoo_update_layout,
    transpose=shaping.bcoo_transpose,
)


def _operator(name: str, f: Callable[..., Any], is_reflected: bool = False) -> None:
    run = sparsify((lambda x, y: f(y, x)) if is_reflected else f)

    def method(self: Any, *others: Any) -> Any:
        for other in others:
            if not isinstance(other, BCOO) and not is_array_like(other):
                return NotImplemented
        return run(self, *others)

    method.__name__ = method.__qualname__ = name
    setattr(BCOO, name, method)


def _power(self: BCOO, other: Any) -> Any:
    return sparsify(lambda x: x**other)(self)


for _name_, _function in {
    "__neg__": jnp.negative, "__pos__": jnp.positive, "__abs__": jnp.abs, "__add__": jnp.add, "__sub__": jnp.subtract,
    "__mul__": jnp.multiply, "__truediv__": jnp.true_divide, "__matmul__": jnp.matmul, "__eq__": jnp.equal,
    "__ne__": jnp.not_equal, "__lt__": jnp.less, "__le__": jnp.less_equal, "__gt__": jnp.greater,
    "__ge__": jnp.greater_equal,
}.items():  # fmt: skip
    _operator(_name_, _function)
for _name_, _function in {
    "__radd__": jnp.add, "__rsub__": jnp.subtract, "__rmul__": jnp.multiply, "__rtruediv__": jnp.true_divide,
    "__rmatmul__": jnp.matmul, "__rpow__": jnp.power,
}.items():  # fmt: skip
    _operator(_name_, _function, True)


def _item(self: BCOO, idx: Any) -> Any:
    return sparsify(lambda x: x[idx])(self)


def _rows(self: BCOO) -> Any:
    if not self.shape:
        raise TypeError(errors.explained(f"iter: the array must have an axis; got {self!r}."))
    return iter([self[i] for i in range(self.shape[0])])


def _sum(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The sum along axes, as `atled.numpy.sum`."""
    return sparsify(lambda x: x.sum(*args, **kwargs))(self)


def _reshape_method(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The array reshaped to another shape."""
    return sparsify(lambda x: x.reshape(*args, **kwargs))(self)


def _astype(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The array converted to another dtype."""
    return sparsify(lambda x: x.astype(*args, **kwargs))(self)


BCOO.__pow__ = _power  # type: ignore[attr-defined]
BCOO.__getitem__ = _item  # type: ignore[method-assign]
BCOO.__iter__ = _rows  # type: ignore[attr-defined]
BCOO.sum = _sum  # type: ignore[method-assign]
BCOO.reshape = _reshape_method  # type: ignore[attr-defined]
BCOO.astype = _astype  # type: ignore[attr-defined]
