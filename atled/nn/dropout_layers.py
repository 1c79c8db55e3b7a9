"""Dropout layers: while training, they drop elements, features or examples."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import random
from atled.core import errors
from atled.core.array import type_of
from atled.core.former_names import formerly
from atled.nn.module import Module


class _Dropping(Module):
    """Base of dropout layers: the rate, and calls that take a `key` while training."""

    def __init__(self, rate: float) -> None:
        if not 0 <= rate <= 1:
            name = type(self).__name__
            raise ValueError(errors.explained(f"{name}: the rate must be between 0 and 1; got {rate}."))
        self.rate = float(rate)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """The input; while training, with dropout."""
        if not self.training or self.rate == 0.0:
            return x
        if type_of(x).kind not in "fc":
            raise TypeError(
                errors.explained(
                    f"{type(self).__name__}: the input must be floating; got {type_of(x)}.", "x.astype('float32')."
                )
            )
        drawn = self._drawn(type_of(x).shape)
        if self.rate == 1.0:
            return jnp.zeros_like(x)
        if key is None:
            raise TypeError(
                errors.explained(
                    f"{type(self).__name__}: a key must be given while training.",
                    "…(x, key=key), or model.eval() if it is not training.",
                )
            )
        return self._kept(x, random.bernoulli(key, 1 - self.rate, drawn))

    def _drawn(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the random mask for an input shape: 1 along axes that are dropped or kept as a whole."""
        return dims

    def _kept(self, x: Any, keep: Any) -> Any:
        return jnp.where(keep, x / (1 - self.rate), 0)

    def _check_axes(self, dims: tuple[int, ...], axes: str, least: int) -> None:
        if len(dims) < least:
            raise ValueError(
                errors.explained(
                    f"{type(self).__name__}: the input must have the axes {axes}; got the shape {dims}.",
                    "x[None] if there is no batch, or Dropout for single elements.",
                )
            )


@formerly(axes="broadcast_dims")
class Dropout(_Dropping):
    """While training, sets random elements to zero and scales the others by 1 / (1 - rate).

    Args:
        broadcast_dims: axes along which elements are dropped or kept together; one number for one axis.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Dropout(0.5)(jnp.ones(4), key=random.key(3)), nn.Dropout(0.5).eval()(jnp.ones(4))
    (Array([2., 0., 0., 0.], dtype=float32), Array([1., 1., 1., 1.], dtype=float32))
    """

    def __init__(self, rate: float, *, broadcast_dims: int | Sequence[int] = ()) -> None:
        super().__init__(rate)
        try:
            given = (broadcast_dims,) if isinstance(broadcast_dims, (int, np.integer)) else broadcast_dims
            self.broadcast_dims = tuple([operator.index(i) for i in given])
        except TypeError:
            raise TypeError(
                errors.explained(
                    f"Dropout: broadcast_dims must be integers; got {broadcast_dims!r}.", "broadcast_dims=(1,)."
                )
            ) from None

    def _drawn(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        n = len(dims)
        if not all([-n <= i < n for i in self.broadcast_dims]):
            raise ValueError(
                errors.explained(
                    f"Dropout: broadcast_dims {self.broadcast_dims} must be axes of the input; got one of shape {dims}."
                )
            )
        return tuple(
            [1 if i - n in self.broadcast_dims or i in self.broadcast_dims else size for i, size in enumerate(dims)]
        )


class SpatialDropout(_Dropping):
    """While training, sets random features of (batch, *spatial, features) to zero at all positions, and scales the
    others by 1 / (1 - rate).

    Neighbouring positions are correlated, so dropping single elements would have little effect.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.SpatialDropout(0.5)(jnp.ones((1, 2, 4)), key=random.key(3))
    Array([[[2., 0., 0., 0.],
            [2., 0., 0., 0.]]], dtype=float32)
    """

    def _drawn(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        self._check_axes(dims, "(batch, *spatial, features)", 3)
        return (dims[0], *[1] * (len(dims) - 2), dims[-1])


class StochasticDepth(_Dropping):
    """While training, sets random examples to zero and scales the others by 1 / (1 - rate). On a residual branch, this
    skips a block for some examples (DropPath, stochastic depth). The first axis is the batch.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> x, branch = jnp.ones((4, 2)), jnp.ones((4, 2))
    >>> (x + nn.StochasticDepth(0.5)(branch, key=random.key(3)))[:, 0]
    Array([3., 1., 1., 1.], dtype=float32)
    """

    def _drawn(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        self._check_axes(dims, "(batch, …, features)", 2)
        return (dims[0], *[1] * (len(dims) - 1))


_LOWEST = -1.0507009873554805 * 1.6732632423543772  # the limit of SELU at minus infinity


class AlphaDropout(_Dropping):
    """Alpha dropout: random elements become SELU's lowest value while training; then all are scaled and shifted to
    preserve mean 0 and variance 1.

    With p = rate and m = -1.7581, the limit of SELU at minus infinity, elements that are kept become `a * x + b` and
    dropped ones `a * m + b`, where `a = 1 / sqrt((1 - p) * (1 + p * m²))` and `b = -a * p * m`.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.AlphaDropout(0.5)(jnp.zeros(4), key=random.key(3)).round(1)
    Array([ 0.8, -0.8, -0.8, -0.8], dtype=float32)
    """

    def _kept(self, x: Any, keep: Any) -> Any:
        factor = 1 / math.sqrt((1 - self.rate) * (1 + self.rate * _LOWEST**2))
        return factor * jnp.where(keep, x, _LOWEST) - factor * self.rate * _LOWEST
