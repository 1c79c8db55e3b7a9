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
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.linear_layers import check_features, computing, kept, needed
from atled.nn.module import Module
from atled.nn.variable_kinds import Buffer, Param


@formerly(inputs="in_features", outputs="out_features", init="weight_init")
class FourierFeatures(Module):
    """`[cos(2π x @ frequencies), sin(2π x @ frequencies)]`: random Fourier features; the frequencies are not trained.

    Frequencies are drawn from a normal distribution with standard deviation `scale`: a larger scale resolves finer
    detail. The first half of the `out_features` are cosines, the second half sines. Angles are computed in float32 or
    wider.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.FourierFeatures(2, 8, scale=10.0, key=random.key(0))(jnp.ones((5, 2))).shape
    (5, 8)
    """

    frequencies: Array

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        scale: float = 1.0,
        weight_init: Any = None,
        dtype: Any = None,
        key: Any = None,
    ) -> None:
        if out_features < 2 or out_features % 2:
            raise ValueError(
                errors.explained(
                    f"FourierFeatures: out_features must be even, half cosines and half sines; got {out_features}."
                )
            )
        self.in_features, self.out_features = int(in_features), int(out_features)
        draw = weight_init or initializers.normal(float(scale))
        self.frequencies = Buffer(draw(needed(self, key), (in_features, out_features // 2), "float32"))
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The features, with `out_features` numbers along the last axis."""
        check_features(self, x, self.in_features)
        dtype = jnp.result_type(x, "float32") if type_of(x).kind != "f" else type_of(x).dtype
        wide = jnp.asarray(x, jnp.promote_types(dtype, "float32"))
        angles = 2 * math.pi * jnp.dot(wide, self.frequencies.astype(wide.dtype))
        waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], -1)
        return waves.astype(dtype) if self.dtype is None else computing(self.dtype, waves)


@formerly(inputs="in_features", outputs="out_features", size="patch_size", bias="use_bias", init="weight_init")
class PatchEmbedding(Module):
    """Embeds images (batch, *spatial, in_features) as (batch, patches, out_features): multiplies each patch of
    `patch_size` by a matrix.

    `y[p] = sum(patch[p] * weight) + bias`, over non-overlapping patches in row-major order. A `Conv` without padding
    whose strides are its kernel size computes the same, with weights of the same shape.

    Args:
        patch_size: the lengths of a patch; one number for square patches.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.PatchEmbedding(3, 16, 8, key=random.key(0))(jnp.ones((1, 32, 24, 3))).shape
    (1, 12, 16)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        patch_size: int | Sequence[int],
        *,
        use_bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.in_features, self.out_features = int(in_features), int(out_features)
        self.patch_size = (
            (int(patch_size),) * 2 if isinstance(patch_size, (int, np.integer)) else tuple([int(n) for n in patch_size])
        )
        if not self.patch_size or min(self.patch_size) < 1:
            raise ValueError(
                errors.explained(f"PatchEmbedding: the lengths of a patch must be 1 or more; got {patch_size}.")
            )
        draw, key = weight_init or initializers.lecun_normal(), needed(self, key)
        self.weight = Param(draw(key, (*self.patch_size, in_features, out_features), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (out_features,), param_dtype)) if use_bias else None
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The patch embeddings; without a batch axis if the input has none."""
        check_features(self, x, self.in_features)
        batch, places = _image(x, self.patch_size)
        x, weight, bias = computing(self.dtype, x, self.weight, self.bias)
        counts = [a // b for a, b in zip(places, self.patch_size, strict=True)]
        cut = [m for pair in zip(counts, self.patch_size, strict=True) for m in pair]
        first, n = len(batch), len(self.patch_size)
        order = [*range(first), *range(first, first + 2 * n, 2), *range(first + 1, first + 2 * n, 2), first + 2 * n]
        pieces = jnp.asarray(x).reshape(*batch, *cut, self.in_features).transpose(order)
        pieces = pieces.reshape(*batch, math.prod(counts), math.prod(self.patch_size) * self.in_features)
        y = jnp.dot(pieces, weight.reshape(-1, self.out_features))
        return y if bias is None else y + bias


def _image(x: Any, size: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The batch and spatial lengths of an image; raises if patches do not divide it evenly."""
    t, n = type_of(x), len(size)
    if t.ndim not in (n + 1, n + 2):
        raise ValueError(
            errors.explained(
                f"PatchEmbedding: the input must have {n + 2} axes, or {n + 1} without a batch; got {describe(x)}.",
                "patch_size=(…,) with a length for each spatial axis.",
            )
        )
    batch, places = t.shape[: t.ndim - n - 1], t.shape[t.ndim - n - 1 : -1]
    if any([a % b for a, b in zip(places, size, strict=True)]):
        raise ValueError(
            errors.explained(
                f"PatchEmbedding: patches of {size} must divide the image evenly; got {places}.",
                "jnp.pad or a crop of the image, or another patch_size.",
            )
        )
    return batch, places
