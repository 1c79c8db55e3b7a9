"""`Metric`: the base class of metrics, and shared checks."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Self

import numpy as np

import atled.numpy as jnp
from atled import distributed, lax
from atled.core import errors, tree
from atled.core.array import describe, is_array_like, shown, type_of
from atled.core.former_names import formerly


def counter() -> Any:
    """A counter field, initially 0; keyword-only, so that settings come first."""
    return dataclasses.field(kw_only=True, default_factory=lambda: jnp.zeros((), "int64"))


def summed() -> Any:
    """A field that is a sum of numbers, initially 0."""
    return dataclasses.field(kw_only=True, default_factory=lambda: jnp.zeros((), "float64"))


@formerly(result="compute", over="reduce", gathered="gather")
class Metric:
    """A quantity accumulated over batches. Subclasses are frozen structs whose arrays are sums, unless they override
    `merge`.

    A custom metric needs fields, `update` and `compute`:

    >>> from atled import metrics
    >>> from atled.tree import struct
    >>> from atled.metrics.metric import summed
    >>> import atled.numpy as jnp
    >>> @struct
    ... class Total(metrics.Metric):
    ...     total: Any = summed()
    ...     def update(self, values):
    ...         return self.replace(total=self.total + jnp.sum(values.astype("float64")))
    ...     def compute(self):
    ...         return self.total
    >>> seen = Total().update(jnp.ones(3))
    >>> float((seen | seen).compute())
    6.0
    """

    def update(self, *args: Any, **kwargs: Any) -> Any:
        """A metric that also includes a batch."""
        raise NotImplementedError

    def compute(self) -> Any:
        """The value of the metric."""
        raise NotImplementedError(f"{type(self).__name__}: a metric must define compute (result before 0.1).")

    def merge(self, other: Self) -> Self:
        """The combination of this metric and another one."""
        self._check(other)
        return tree.map(lambda x, y: x + y, self, other)

    def __or__(self, other: Self) -> Self:
        return self.merge(other)

    def reduce(self, axis_name: Any) -> Self:
        """The metric merged over a named axis of `shard_map`, `pmap` or `vmap`; all positions get the same one."""
        return tree.map(lambda x: lax.psum(x, axis_name), self)

    def gather(self) -> Self:
        """The metric merged over all processes, each with its own batches; all of them must call it.

        With one process, the result is the metric itself. A metric whose arrays are sharded over the devices of all
        processes already includes their batches; gathering it raises.
        """
        if any([not getattr(x, "is_fully_addressable", True) for x in tree.leaves(self)]):
            raise ValueError(
                errors.explained(
                    f"{type(self).__name__}: the arrays are already global, so there is nothing to gather.",
                    "metric.compute().",
                )
            )
        if not distributed.is_initialized():
            return self
        stacked = distributed.gather(self)
        parts = [tree.map(lambda x, i=i: jnp.asarray(x[i]), stacked) for i in range(len(tree.leaves(stacked)[0]))]
        return functools.reduce(lambda a, b: a.merge(b), parts)

    def _check(self, other: Any) -> None:
        """Raise an error for a metric of another class or with other settings."""
        name = type(self).__name__
        if type(other) is not type(self):
            raise TypeError(errors.explained(f"{name}: it can only be merged with a {name}; got {describe(other)}."))
        if tree.structure(self) != tree.structure(other):
            raise ValueError(
                errors.explained(f"{name}: two metrics must have the same settings to be merged; they differ.")
            )


def mask_of(name: str, where: Any, shape: tuple[int, ...]) -> Any:
    """The mask of selected elements, in a given shape; without `where`, all are selected."""
    if where is None:
        return jnp.ones(shape, bool)
    if not is_array_like(where) or type_of(where).kind != "b":
        raise TypeError(errors.explained(f"{name}: where must be booleans; got {shown(where)}.", "where=mask > 0."))
    return spread(name, "where", where, shape)


def spread(name: str, what: str, x: Any, shape: tuple[int, ...]) -> Any:
    """An array broadcast to another shape along axes of length 1."""
    dims = type_of(x).shape
    if len(dims) not in (0, len(shape)) or any([d not in (1, n) for d, n in zip(dims, shape)]):
        raise ValueError(
            errors.explained(
                f"{name}: {what} must have the shape of the examples, {shape}, or length 1 along some axes; got "
                f"{type_of(x)}.",
                f"{what}[:, None], or another shape.",
            )
        )
    return jnp.broadcast_to(jnp.asarray(x), shape)


def number(name: str, what: str, x: Any) -> Any:
    """An array of real numbers, as float64."""
    if not is_array_like(x) or type_of(x).kind not in "fiub":
        raise TypeError(errors.explained(f"{name}: the {what} must be real numbers; got {shown(x)}."))
    return jnp.asarray(x).astype("float64")


def integers(name: str, what: str, x: Any, shape: tuple[int, ...] | None = None) -> Any:
    """Integers or booleans as int64; raises for other dtypes, or another shape than a given one."""
    if not is_array_like(x) or type_of(x).kind not in "iub":
        raise TypeError(
            errors.explained(f"{name}: the {what} must be integers; got {shown(x)}.", f"{what}.astype('int32').")
        )
    if shape is not None and type_of(x).shape != shape:
        raise ValueError(errors.explained(f"{name}: the {what} must have the shape {shape}; got {type_of(x)}."))
    return jnp.asarray(x).astype("int64")


def ratio(over: Any, under: Any, otherwise: Any = np.nan) -> Any:
    """over / under in float64, and `otherwise` where `under` is 0."""
    under = jnp.asarray(under).astype("float64")
    safe = jnp.where(under == 0, 1, under)
    return jnp.where(under == 0, otherwise, jnp.asarray(over).astype("float64") / safe)
