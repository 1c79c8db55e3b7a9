"""`Conv`: a layer that slides over one, two, three or more axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors
from atled.core.array import Array, type_of
from atled.nn import initializers
from atled.nn.layers import check_features, computing, kept, needed
from atled.nn.module import Module, Param


class Conv(Module):
    """A convolution of (batch, *places, features), as many places as `size` has lengths.

    Args:
        size: the lengths of the window; one number for one axis.
        stride, dilation: steps of the window, and between what it reads; one number, or one for each axis.
        padding: "SAME", "VALID", "CIRCULAR", or (before, after) for each axis, or a number for all.
        groups: parts of the features that do not see each other.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Conv(3, 8, (3, 3), stride=2, key=random.key(0))(jnp.ones((1, 32, 32, 3))).shape
    (1, 16, 16, 8)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int | Sequence[int],
        *,
        stride: int | Sequence[int] = 1,
        padding: Any = "SAME",
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        init: Any = None,
        bias_init: Any = initializers.zeros,
        dtype: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        self.inputs, self.outputs, self.groups = int(inputs), int(outputs), int(groups)
        self.size = (int(size),) if isinstance(size, (int, np.integer)) else tuple([int(n) for n in size])
        if inputs % groups or outputs % groups:
            raise ValueError(
                errors.explained(f"Conv: groups must divide inputs and outputs; got {groups} for {inputs}, {outputs}.")
            )
        count = len(self.size)
        self.stride, self.dilation = [
            (int(n),) * count if isinstance(n, (int, np.integer)) else tuple([int(i) for i in n])
            for n in (stride, dilation)
        ]
        self.padding = _pairs(padding, count)
        for what, given in (("stride", self.stride), ("dilation", self.dilation), ("padding", self.padding)):
            if not isinstance(given, str) and len(given) != count:
                raise ValueError(
                    errors.explained(f"Conv: {what} must have an entry for each of {count} axes; got {given}.")
                )
        draw, key = init or initializers.lecun_normal(), needed(self, key)
        self.weight = Param(draw(key, (*self.size, inputs // groups, outputs), param_dtype))
        self.bias = Param(bias_init(random.fold_in(key, 1), (outputs,), param_dtype)) if bias else None
        self.dtype = kept(dtype)

    def __call__(self, x: Any) -> Any:
        """The output; an input without a batch gives one without it."""
        check_features(self, x, self.inputs)
        n = len(self.size)
        t = type_of(x)
        if t.ndim not in (n + 1, n + 2):
            raise ValueError(
                errors.explained(
                    f"Conv: the input must have {n + 2} axes, or {n + 1} without a batch; got {t}.",
                    f"size={(3,) * (t.ndim - 2)} for {t.ndim - 2} axes, or another shape of the input.",
                )
            )
        if t.ndim == n + 1:
            return self(jnp.asarray(x)[None])[0]
        x, weight, bias = computing(self.dtype, x, self.weight, self.bias)
        dtype = jnp.result_type(x, weight)
        x, weight = x.astype(dtype), weight.astype(dtype)
        padding = self.padding
        if padding == "CIRCULAR":
            reach = [(k - 1) * d for k, d in zip(self.size, self.dilation, strict=True)]
            x = jnp.pad(x, [(0, 0), *[(r // 2, (r + 1) // 2) for r in reach], (0, 0)], "wrap")
            padding = "VALID"
        places = "DHW"[-n:] if n < 4 else "".join([chr(ord("a") + i) for i in range(n)])
        axes = (f"N{places}C", f"{places}IO", f"N{places}C")
        y = lax.conv_general_dilated(
            x, weight, self.stride, padding, rhs_dilation=self.dilation, dimension_numbers=axes,
            feature_group_count=self.groups,
        )  # fmt: skip
        return y if bias is None else y + bias


def _pairs(padding: Any, count: int) -> Any:
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID", "CIRCULAR"):
            raise ValueError(
                errors.explained(
                    f"Conv: padding is SAME, VALID, CIRCULAR, or pairs of numbers; got {padding!r}.",
                    repr(padding.upper()) if padding.upper() in ("SAME", "VALID", "CIRCULAR") else "'SAME'.",
                )
            )
        return padding
    if isinstance(padding, (int, np.integer)):
        return ((int(padding),) * 2,) * count
    return tuple([(int(p),) * 2 if isinstance(p, (int, np.integer)) else (int(p[0]), int(p[1])) for p in padding])
