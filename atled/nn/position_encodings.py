"""Position encodings: `RoPE`, `RelativePositions`, `ALiBi` for attention, `SinusoidalPositions` for inputs.

`RoPE` rotates queries and keys; `RelativePositions` and `ALiBi` give a bias for the logits of attention.
`MultiHeadAttention` takes any of these three as `positions`. Angles and distances are in float32 or wider.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes, errors
from atled.core.array import Array, describe, type_of
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.linear_layers import kept, needed
from atled.nn.module import Module
from atled.nn.variable_kinds import Param


@dataclasses.dataclass(frozen=True)
class RoPEScaling:
    """Lowers the frequencies of `RoPE`, for longer sequences than a model was trained on.

    All frequencies are divided by `factor`. With `original_length`, as in Llama 3.1, only wavelengths above
    `original_length / low_frequency` change; wavelengths below `original_length / high_frequency` do not, and between
    them, frequencies are interpolated.

    >>> from atled import nn
    >>> nn.RoPEScaling(4.0)(np.array([1.0, 0.1]))
    array([0.25 , 0.025])
    """

    factor: float
    original_length: int | None = None
    low_frequency: float = 1.0
    high_frequency: float = 4.0

    def __call__(self, frequencies: np.ndarray) -> np.ndarray:
        """The lower frequencies."""
        if self.original_length is None:
            return frequencies / self.factor
        turns = self.original_length * frequencies / (2 * math.pi)
        kept_part = np.clip((turns - self.low_frequency) / (self.high_frequency - self.low_frequency), 0, 1)
        return frequencies * (kept_part + (1 - kept_part) / self.factor)


@formerly(features_per_head="head_dim", part="rotary_dim")
class RoPE(Module):
    """Rotary positions: pairs of features rotated by angles proportional to the position (Su et al., 2021).

    Pair i of n is rotated by `angle = position * base ** (-i / n)`: (a, b) becomes
    `(a cos(angle) - b sin(angle), b cos(angle) + a sin(angle))`. The dot product of a rotated query and key depends on
    their positions only through the distance.

    Args:
        head_dim: the length of the last axis.
        base: the wavelength of the slowest pair is about 2 pi times `base`.
        rotary_dim: how many leading features are rotated; by default all.
        interleaved: whether pairs are neighbours, as in GPT-J; otherwise feature i is paired with i + n, as in Llama
            and GPT-NeoX.
        scaling: a function that changes the frequencies, such as a `RoPEScaling`.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> x = jnp.ones((1, 3, 2, 4))  # batch, time, heads, length
    >>> nn.RoPE(4)(x).shape
    (1, 3, 2, 4)
    >>> nn.RoPE(2)(jnp.array([[[1.0, 0.0]]]), jnp.array([jnp.pi / 2])).round(3)
    Array([[[-0.,  1.]]], dtype=float32)
    """

    def __init__(
        self, head_dim: int, base: float = 10000.0, *, rotary_dim: int | None = None, interleaved: bool = False,
        scaling: Any = None,
    ) -> None:  # fmt: skip
        self.scaling = scaling
        self.head_dim, self.base = int(head_dim), _base("RoPE", base)
        self.rotary_dim, self.interleaved = self.head_dim if rotary_dim is None else int(rotary_dim), bool(interleaved)
        if self.rotary_dim < 2 or self.rotary_dim % 2 or self.rotary_dim > self.head_dim:
            raise ValueError(
                errors.explained(
                    f"RoPE: the number of rotated features must be even, and at most "
                    f"{self.head_dim}; got {self.rotary_dim}.",
                    f"RoPE({self.head_dim}, rotary_dim={max(2, min(self.rotary_dim, self.head_dim) // 2 * 2)}).",
                )
            )

    def __call__(self, x: Any, positions: Any = None) -> Any:
        """Rotated queries or keys (…, time, heads, length).

        Args:
            positions: a number for each time step, (time,) or (…, time); 0, 1, 2, … by default.
        """
        t, positions = _placed(self, x, positions)
        wide = dtypes.promote((t.dtype, False), (dtypes.float32, False))[0]
        angle = _angles(positions, self.rotary_dim // 2, self.base, wide, self.scaling)[..., None, :]
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        turned = jnp.asarray(x)[..., : self.rotary_dim].astype(wide)
        if self.interleaved:
            a, b = turned[..., ::2], turned[..., 1::2]
            out = jnp.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(turned.shape)
        else:
            a, b = jnp.split(turned, 2, -1)
            out = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
        out = out.astype(t.dtype)
        return out if self.rotary_dim == t.shape[-1] else jnp.concatenate([out, x[..., self.rotary_dim :]], -1)


@formerly(heads="num_heads", buckets="num_buckets", distance="max_distance", init="weight_init")
class RelativePositions(Module):
    """A learned bias for the logits of attention, by the distance between key and query (T5, Raffel et al., 2020).

    Distances are grouped into `num_buckets` buckets. With n buckets per direction, distances below n // 2 have a bucket
    each; a longer distance d is in bucket `n // 2 + floor(log(d / (n // 2)) / log(max_distance / (n // 2)) * (n - n //
    2))`, and all distances from `max_distance` on are in the last bucket. With `bidirectional`, half of the buckets are
    for later keys; otherwise, later keys are in the bucket of distance 0.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> bias = nn.RelativePositions(8, key=random.key(0))
    >>> bias(jnp.arange(3), jnp.arange(5)).shape  # heads, queries, keys
    (8, 3, 5)
    """

    weight: Array

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        *,
        weight_init: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.num_heads, self.num_buckets, self.max_distance = (
            _heads(self, num_heads),
            int(num_buckets),
            int(max_distance),
        )
        self.bidirectional = bool(bidirectional)
        _check_buckets(self.num_buckets, self.max_distance, self.bidirectional)
        draw = weight_init or initializers.normal(0.02)
        self.weight = Param(draw(needed(self, key), (num_buckets, num_heads), param_dtype))

    def __call__(self, queries: Any, keys: Any, dtype: Any = None) -> Any:
        """The bias (…, heads, queries, keys) for integer positions (…, queries) and (…, keys)."""
        far = _distances(self, queries, keys)
        side = self.num_buckets // (1 + self.bidirectional)
        table = jnp.asarray(_numbers(side, self.max_distance))
        back = abs(far) if self.bidirectional else jnp.maximum(-far, 0)
        number = table[jnp.minimum(back, self.max_distance)]
        if self.bidirectional:
            number = number + jnp.where(far > 0, side, 0)
        bias = jnp.moveaxis(self.weight[number], -1, -3)
        return bias if dtype is None else bias.astype(dtype)


@functools.lru_cache(64)
def _numbers(count: int, distance: int) -> np.ndarray:
    """The buckets of distances 0 to `distance`, in integer arithmetic: logarithms would be wrong at the boundaries."""
    exact = count // 2
    rest, number, buckets = count - exact, 0, list(range(exact))
    for d in range(exact, distance + 1):
        while number < rest - 1 and d**rest * exact ** (number + 1) >= distance ** (number + 1) * exact**rest:
            number += 1
        buckets.append(exact + number)
    return np.asarray(buckets, "int32")


@formerly(heads="num_heads")
class ALiBi(Module):
    """A bias for the logits of attention that decreases with the distance: `-slope * |query - key|` (Press et al.,
    2022).

    If the number of heads n is a power of two, head i = 1, 2, … has the slope `2 ** (-8 i / n)`. Other numbers of heads
    have the slopes of the next smaller power of two m, and then every second slope of 2 m heads.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.ALiBi(2)(jnp.array([2]), jnp.arange(3))[:, 0]
    Array([[-0.125     , -0.0625    ,  0.        ],
           [-0.0078125 , -0.00390625,  0.        ]], dtype=float32)
    """

    def __init__(self, num_heads: int) -> None:
        self.num_heads = _heads(self, num_heads)

    @property
    def slopes(self) -> np.ndarray:
        """A slope for each head."""
        low = 2 ** int(math.log2(self.num_heads))
        regular, finer = [[2 ** (-8 * (i + 1) / n) for i in range(n)] for n in (low, 2 * low)]
        return np.asarray([*regular, *finer[::2]][: self.num_heads])

    def __call__(self, queries: Any, keys: Any, dtype: Any = "float32") -> Any:
        """The bias (…, heads, queries, keys) for integer positions (…, queries) and (…, keys)."""
        far = -abs(_distances(self, queries, keys))[..., None, :, :]
        wide = dtypes.promote((dtypes.canonical(dtype), False), (dtypes.float32, False))[0]
        return (jnp.asarray(self.slopes[:, None, None], wide) * far.astype(wide)).astype(dtype)


class SinusoidalPositions(Module):
    """Sines and cosines of positions, to be added to inputs (Vaswani et al., 2017).

    Pair i of n is `sin(angle), cos(angle)`, where `angle = position * base ** (-i / n)`.

    Args:
        interleaved: whether sine and cosine of a pair are neighbours, as in the paper; otherwise all sines come before
            all cosines.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.SinusoidalPositions(4)(jnp.arange(2)).round(3)
    Array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]], dtype=float32)
    """

    def __init__(self, features: int, base: float = 10000.0, *, interleaved: bool = True, dtype: Any = None) -> None:
        self.features, self.base = int(features), _base("SinusoidalPositions", base)
        if features < 2 or features % 2:
            raise ValueError(
                errors.explained(f"SinusoidalPositions: the number of features must be even; got {features}.")
            )
        self.interleaved, self.dtype = bool(interleaved), kept(dtype)

    def __call__(self, positions: Any) -> Any:
        """Vectors (…, features) for positions (…), which are integers or floats."""
        t = type_of(positions)
        if t.kind not in "iuf":
            raise TypeError(
                errors.explained(f"SinusoidalPositions: positions must be numbers; got {describe(positions)}.")
            )
        wide = dtypes.promote((t.dtype if t.kind == "f" else dtypes.float32, False), (dtypes.float32, False))[0]
        angle = _angles(jnp.asarray(positions), self.features // 2, self.base, wide)
        parts = [jnp.sin(angle), jnp.cos(angle)]
        out = jnp.stack(parts, -1).reshape(*t.shape, -1) if self.interleaved else jnp.concatenate(parts, -1)
        return out if self.dtype is None else out.astype(self.dtype)


def _check_buckets(buckets: int, distance: int, bidirectional: bool) -> None:
    """Raise an error for invalid buckets and distances."""
    if buckets < 2 * (1 + bidirectional) or (bidirectional and buckets % 2):
        requirement = "an even number of 4 or more" if bidirectional else "2 or more"
        raise ValueError(errors.explained(f"RelativePositions: num_buckets must be {requirement}; got {buckets}."))
    exact = buckets // (1 + bidirectional) // 2
    if distance <= exact:
        raise ValueError(
            errors.explained(
                f"RelativePositions: max_distance must be more than {exact}, the number of distances with their "
                f"own bucket; got {distance}.",
                f"max_distance={4 * exact}, or fewer buckets.",
            )
        )


def _placed(layer: RoPE, x: Any, positions: Any) -> tuple[Any, Any]:
    """The type of the input, and its positions; raises if they do not match."""
    t = type_of(x)
    if t.ndim < 3 or t.shape[-1] != layer.head_dim or t.kind != "f":
        raise ValueError(
            errors.explained(
                f"RoPE: the input must be floats (…, time, heads, {layer.head_dim}); got {t}.",
                "x.reshape(batch, time, heads, -1), and RoPE for the length of a head.",
            )
        )
    positions = jnp.arange(t.shape[-3]) if positions is None else jnp.asarray(positions)
    if not positions.ndim or positions.shape[-1] != t.shape[-3] or positions.ndim > t.ndim - 2:
        raise ValueError(
            errors.explained(f"RoPE: there must be one position for each time step of {t}; got {positions.type}.")
        )
    return t, positions


def _base(name: str, base: float) -> float:
    """The base, which must be positive."""
    if not base > 0:
        raise ValueError(errors.explained(f"{name}: base must be positive; got {base}.", "base=10000.0."))
    return float(base)


def _heads(layer: Module, heads: int) -> int:
    """The number of heads, which must be 1 or more."""
    if heads < 1:
        raise ValueError(errors.explained(f"{type(layer).__name__}: num_heads must be 1 or more; got {heads}."))
    return int(heads)


def _angles(positions: Any, count: int, base: float, dtype: Any, scaling: Any = None) -> Any:
    """The angles (…, count) of positions (…), with decreasing frequencies."""
    frequencies = base ** (-np.arange(count) / count)
    frequencies = frequencies if scaling is None else scaling(frequencies)
    return positions.astype(dtype)[..., None] * jnp.asarray(frequencies, dtype)


def _distances(layer: Module, queries: Any, keys: Any) -> Any:
    """Key position minus query position, (…, queries, keys): positive for later keys."""
    for what, x in (("queries", queries), ("keys", keys)):
        if type_of(x).kind not in "iu" or not type_of(x).ndim:
            raise TypeError(
                errors.explained(
                    f"{type(layer).__name__}: positions of {what} must be integers (…, {what}); got {describe(x)}.",
                    f"{type(layer).__name__.lower()}(jnp.arange(queries), jnp.arange(keys)).",
                )
            )
    queries, keys = [jnp.asarray(x, "int32") for x in (queries, keys)]  # unsigned differences would wrap around
    return keys[..., None, :] - queries[..., None]
