"""Shapes of convolutions and window reductions, and windows extracted as an axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from atled.core import errors
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.lax.convolution import (
    conv_dimension_numbers,
    conv_general_dilated,
    padding_amounts,
    transposed_padding,
)
from atled.lax.precision import PrecisionLike
from atled.numpy.creation import asarray
from atled.ops import contraction, shape


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
) -> list[tuple[int, int]]:
    """The (low, high) padding of each axis that "SAME", "SAME_LOWER" or "VALID" stands for.

    >>> padtype_to_pads((5,), (3,), (2,), "SAME")
    [(1, 1)]
    """
    name = getattr(padding, "name", padding)
    return [
        (int(a), int(b)) for a, b in padding_amounts("padtype_to_pads", name, in_shape, window_shape, window_strides)
    ]


def _lengths(
    name: str, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], padding: Any
) -> list[int]:
    pads = padding_amounts(name, getattr(padding, "name", padding), sizes, windows, strides)
    return [max(0, (n + a + b - w) // s + 1) for n, w, s, (a, b) in zip(sizes, windows, strides, pads, strict=True)]


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Sequence[Sequence[int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of the convolution of (batch, feature, *spatial) with a kernel (out, in, *spatial).

    >>> conv_shape_tuple((1, 3, 8), (5, 3, 3), (1,), [(0, 0)])
    (1, 5, 6)
    """
    if lhs_shape[0] % batch_group_count:
        raise ValueError(f"conv_shape_tuple: {batch_group_count} groups do not divide a batch of {lhs_shape[0]}.")
    lengths = _lengths("conv_shape_tuple", lhs_shape[2:], rhs_shape[2:], strides, pads)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *lengths)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The positions of batch, feature and spatial axes in the operands and the result of a convolution.

    >>> conv_general_permutations(("NWC", "WIO", "NWC"))
    ((0, 2, 1), (2, 1, 0), (0, 2, 1))
    """
    dims = (0,) * len(dimension_numbers[0])
    return tuple([tuple(spec) for spec in conv_dimension_numbers(dims, dims, tuple(dimension_numbers))])


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of a convolution, with axes given by `dimension_numbers`.

    >>> conv_general_shape_tuple((1, 8, 3), (3, 3, 5), (2,), "SAME", ("NWC", "WIO", "NWC"))
    (1, 4, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    dims = conv_shape_tuple([lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs], window_strides, padding)
    return tuple([dims[out.index(i)] for i in range(len(out))])


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of a transposed convolution, with axes given by `dimension_numbers`.

    >>> conv_transpose_shape_tuple((1, 4, 3), (2, 3, 5), (2,), "SAME", ("NWC", "WIO", "NWC"))
    (1, 8, 5)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    (batch, _, *sizes), (features, _, *kernel) = [lhs_shape[i] for i in lhs], [rhs_shape[i] for i in rhs]
    if isinstance(padding, str):
        padding = transposed_padding("conv_transpose_shape_tuple", kernel, window_strides, padding)
    grown = [n if not n else (n - 1) * s + 1 for n, s in zip(sizes, window_strides, strict=True)]
    lengths = _lengths("conv_transpose_shape_tuple", grown, kernel, (1,) * len(kernel), padding)
    dims = (batch, features, *lengths)
    return tuple([int(dims[out.index(i)]) for i in range(len(out))])


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of a window reduction.

    >>> reduce_window_shape_tuple((8, 8), (2, 2), (2, 2), "VALID")
    (4, 4)
    """
    spread = lambda ns, by: [n if not n or by is None else (n - 1) * by[i] + 1 for i, n in enumerate(ns)]  # noqa: E731
    sizes, windows = spread(operand_shape, base_dilation), spread(window_dimensions, window_dilation)
    return tuple(_lengths("reduce_window_shape_tuple", sizes, windows, window_strides, padding))


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The windows of a convolution: at each output position, the feature axis holds all elements of the window.

    >>> import atled.numpy as jnp
    >>> conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")[0]
    Array([[0., 1., 2.],
           [1., 2., 3.]], dtype=float32)
    """
    t = type_of(lhs)
    numbers = conv_dimension_numbers(t.shape, t.shape, dimension_numbers)
    features, size = t.shape[numbers.lhs_spec[1]], prod(filter_shape)
    kernel = np.tile(np.eye(size).reshape(size, 1, *filter_shape), (features, *[1] * (t.ndim - 1)))
    kernel = np.transpose(kernel, np.argsort(numbers.rhs_spec))
    return conv_general_dilated(
        lhs, asarray(kernel, t.dtype), window_strides, padding, lhs_dilation, rhs_dilation, numbers, features,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: PrecisionLike = None,
) -> Array:
    """A locally connected layer: a convolution with a separate kernel at each output position.

    The spatial axes of `rhs` are those of the result; its input features are the elements of a window of `lhs`, in the
    order in which `conv_general_dilated_patches` returns them.

    >>> import atled.numpy as jnp
    >>> kernels = jnp.array([[[1.0, 2.0], [0.0, 1.0]]])
    >>> conv_general_dilated_local(jnp.array([[[1.0, 2.0, 3.0]]]), kernels, (1,), "VALID", (2,))
    Array([[[1., 7.]]], dtype=float32)
    """
    t, k = type_of(lhs), type_of(rhs)
    numbers = conv_dimension_numbers(t.shape, k.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, precision
    )
    (batch, features, *places), (_, inputs, *windows) = numbers.out_spec, numbers.rhs_spec
    seen = type_of(patches)
    want = (seen.shape[features], *[seen.shape[a] for a in places])
    if (k.shape[inputs], *[k.shape[a] for a in windows]) != want:
        raise ValueError(
            errors.explained(
                f"conv_general_dilated_local: kernels of {want[0]} elements at {want[1:]} positions are "
                f"needed; got {k} "
                f"with {k.shape[inputs]} elements at {tuple([k.shape[a] for a in windows])} positions."
            )
        )
    name = contraction.precision_name(precision)
    out = contraction.dot_general(patches, rhs, ((features,), (inputs,)), (tuple(places), tuple(windows)), name)
    order = [*places, batch, features]  # the axis of the result that each axis of the product is
    return shape.transpose(out, [order.index(a) for a in range(t.ndim)])
