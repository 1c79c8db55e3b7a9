"""Input features: random Fourier features of coordinates (`FourierFeatures`), image patches (`PatchEmbedding`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import random
from atled.core import errors
from atled.core.array import Array, describe, type_of
from atled.nn import initializers
from atled.nn.linear_layers import check_features, computing, kept, needed
from atled.nn.module import Module
from atled.nn.variable_kinds import Buffer, Param


class FourierFeatures(Module):
    """`[cos(2π x @ frequencies), sin(2π x @ frequencies)]`: random Fourier features; the frequencies are not trained.

    Frequencies are drawn from a normal distribution with standard deviation `scale`: a larger scale resolves finer
    detail. Half of the `outputs` are cosines. Angles are computed in float32 or wider.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.FourierFeatures(2, 8, scale=10.0, key=random.key(0))(jnp.ones((5, 2))).shape
    (5, 8)
    """

    frequencies: Array

    def __init__(
        self, inputs: int, outputs: int, *, scale: float = 1.0, init: Any = None, dtype: Any = None, key: Any = None
    ) -> None:
        if outputs < 2 or outputs % 2:
            raise ValueError(
                errors.explained(f"FourierFeatures: outputs must be even, half cosines and half sines; got {outputs}.")
            )
        self.inputs, self.outputs = int(inputs), int(outputs)
        draw = init or initializers.normal(float(scale))
        self.frequencies = Buffer(draw(needed(self, key), (inputs, outputs // 2), "float32"))
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The features, with `outputs` numbers along the last axis."""
        check_features(self, x, self.inputs)
        dtype = jnp.result_type(x, "float32") if type_of(x).kind != "f" else type_of(x).dtype
        wide = jnp.asarray(x, jnp.promote_types(dtype, "float32"))
        angles = 2 * math.pi * jnp.dot(wide, self.frequencies.astype(wide.dtype))
        waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)
        return waves.astype(dtype) if self.dtype is None else computing(self.dtype, waves)


class PatchEmbedding(Module):
    """Images (batch, *spatial, inputs) as (batch, patches, outputs): patches of `size`, each multiplied by a matrix.

    `y[p] = sum(patch[p] * weight) + bias`, over non-overlapping patches in row-major order: a `Conv` whose stride is
    its size, without padding, with weights of the same shape.

    Args:
        size: the lengths of a patch; one number for square patches.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.PatchEmbedding(3, 16, 8, key=random.key(0))(jnp.ones((1, 32, 24, 3))).shape
    (1, 12, 16)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int | Sequence[int],
        *,
        bias: bool = True,
        init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.inputs, self.outputs = int(inputs), int(outputs)
        self.size = (int(size),) * 2 if isinstance(size, (int, np.integer)) else tuple([int(n) for n in size])
        if not self.size or min(self.size) < 1:
            raise ValueError(errors.explained(f"PatchEmbedding: the lengths of a patch must be 1 or more; got {size}."))
        draw, key = init or initializers.lecun_normal(), needed(self, key)
        self.weight = Param(draw(key, (*self.size, inputs, outputs), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (outputs,), param_dtype)) if bias else None
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The patch embeddings; without a batch axis if the input has none."""
        check_features(self, x, self.inputs)
        batch, places = _image(x, self.size)
        x, weight, bias = computing(self.dtype, x, self.weight, self.bias)
        counts = [a // b for a, b in zip(places, self.size, strict=True)]
        cut = [m for pair in zip(counts, self.size, strict=True) for m in pair]
        first, n = len(batch), len(self.size)
        order = [*range(first), *range(first, first + 2 * n, 2), *range(first + 1, first + 2 * n, 2), first + 2 * n]
        pieces = jnp.asarray(x).reshape(*batch, *cut, self.inputs).transpose(order)
        pieces = pieces.reshape(*batch, math.prod(counts), math.prod(self.size) * self.inputs)
        y = jnp.dot(pieces, weight.reshape(-1, self.outputs))
        return y if bias is None else y + bias


def _image(x: Any, size: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The batch and spatial lengths of an image; raises if patches do not divide it evenly."""
    t, n = type_of(x), len(size)
    if t.ndim not in (n + 1, n + 2):
        raise ValueError(
            errors.explained(
                f"PatchEmbedding: the input must have {n + 2} axes, or {n + 1} without a batch; got {describe(x)}.",
                "size=(…,) with a length for each spatial axis.",
            )
        )
    batch, places = t.shape[: t.ndim - n - 1], t.shape[t.ndim - n - 1 : -1]
    if any([a % b for a, b in zip(places, size, strict=True)]):
        raise ValueError(
            errors.explained(
                f"PatchEmbedding: patches of {size} must divide the image evenly; got {places}.",
                "jnp.pad or a crop of the image, or another size.",
            )
        )
    return batch, places
