"""`Linear`, `Embedding`, and helpers shared by all layers.

Layers take `weight_init`, the initializer of the weight; `param_dtype`, the dtype of parameters; `dtype`, the dtype of
the computation, where None promotes input and parameters; and `key`, a random key for initial values.
"""

from __future__ import annotations

from typing import Any

import atled.numpy as jnp
from atled import random
from atled.core import dtypes, errors
from atled.core.array import Array, describe, type_of
from atled.core.former_names import formerly
from atled.nn import initializers
from atled.nn.index_checks import expected
from atled.nn.module import Module
from atled.nn.variable_kinds import Param


def needed(layer: Module, key: Any) -> Any:
    """The key for initial values; raises if there is none."""
    if key is None:
        raise TypeError(
            errors.explained(
                f"{type(layer).__name__}: a key must be given, for its initial values.", "…, key=random.key(0))."
            )
        )
    return key


def computing(dtype: Any, *arrays: Any) -> Any:
    """The arrays converted to `dtype`, unless it is None; a single array is returned without a tuple."""
    converted = arrays if dtype is None else tuple([None if x is None else jnp.asarray(x, dtype) for x in arrays])
    return converted if len(arrays) > 1 else converted[0]  # pyright: ignore[reportGeneralTypeIssues]


def kept(dtype: Any) -> Any:
    """A normalized dtype, or None."""
    return None if dtype is None else dtypes.canonical(dtype)


def check_features(layer: Module, x: Any, count: int) -> None:
    """Raise unless the last axis of the input has the layer's number of inputs."""
    t = type_of(x)
    if not t.ndim or t.shape[-1] != count:
        raise ValueError(
            errors.explained(
                f"{type(layer).__name__}: the last axis of the input must have length {count}; got {t}.",
                f"{type(layer).__name__}({t.shape[-1] if t.ndim else '…'}, …), or move another axis last.",
            )
        )


@formerly(inputs="in_features", outputs="out_features", bias="use_bias", init="weight_init")
class Linear(Module):
    """`x @ weight + bias`, over the last axis.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> layer = nn.Linear(2, 3, key=random.key(0))
    >>> layer(jnp.ones((5, 2))).shape
    (5, 3)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        use_bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.in_features, self.out_features = int(in_features), int(out_features)
        draw, key = weight_init or initializers.lecun_normal(), needed(self, key)
        self.weight = Param(draw(key, (in_features, out_features), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (out_features,), param_dtype)) if use_bias else None
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The output, with `out_features` numbers along the last axis."""
        check_features(self, x, self.in_features)
        x, weight, bias = computing(self.dtype, x, self.weight, self.bias)
        y = jnp.dot(x, weight)
        return y if bias is None else y + bias


Dense = Linear


@formerly(count="num_embeddings", init="weight_init")
class Embedding(Module):
    """A row of `weight` for each integer; `attend` multiplies vectors with all rows.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> tokens = nn.Embedding(10, 4, key=random.key(0))
    >>> tokens(jnp.array([1, 2])).shape, tokens.attend(jnp.ones((2, 4))).shape
    ((2, 4), (2, 10))
    """

    weight: Array

    def __init__(
        self,
        num_embeddings: int,
        features: int,
        *,
        weight_init: Any = None,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.num_embeddings, self.features = int(num_embeddings), int(features)
        draw = weight_init or initializers.variance_scaling(1.0, "fan_in", "normal", out_axis=0)
        self.weight = Param(draw(needed(self, key), (num_embeddings, features), param_dtype))
        self.dtype = kept(dtype)

    def __call__(self, ids: Any) -> Any:
        """The rows at these indices. Indices out of range raise; in calls of compiled code after the first, they give
        NaN.
        """
        if type_of(ids).kind not in "iu":
            raise TypeError(
                errors.explained(f"Embedding: the input must be integers; got {describe(ids)}.", "ids.astype('int32').")
            )
        ids = expected(ids, 0, self.num_embeddings, "Embedding: ids")
        rows = self.weight.at[ids].get(mode="fill", wrap_negative_indices=False)
        return computing(self.dtype, rows)  # gradients of rows are summed in the parameters' dtype

    def attend(self, x: Any) -> Any:
        """The products of vectors with all rows: the logits of a model whose output is tied to its input."""
        check_features(self, x, self.features)
        x, weight = computing(self.dtype, x, self.weight)
        return jnp.tensordot(x, weight, (-1, 1))
