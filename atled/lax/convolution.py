"""Convolutions with the arguments of JAX's `lax`: padding by name or pairs, and axes by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.trace import bind
from atled.lax.precision import PrecisionLike
from atled.ops import convolution, elementary, shape
from atled.ops.contraction import precision_name
from atled.ops.conversion import convert
from atled.ops.convolution import dilated
from atled.ops.placement import placed


class ConvDimensionNumbers(NamedTuple):
    """The axes of input and result, as (batch, feature, *spatial), and of the kernel, as (out, in, *spatial).

    >>> ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1)).rhs_spec
    (2, 1, 0)
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


ConvGeneralDilatedDimensionNumbers = Union[tuple[str, str, str], ConvDimensionNumbers, None]  # noqa: UP007


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Axes of a convolution from strings such as ("NHWC", "HWIO", "NHWC"); None means batch first, then features.

    >>> conv_dimension_numbers((1, 8, 3), (5, 3, 4), ("NWC", "WIO", "NWC")).lhs_spec
    (0, 2, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    n = len(lhs_shape)
    if dimension_numbers is None:
        plain = tuple(range(n))
        return ConvDimensionNumbers(plain, plain, plain)
    lhs, rhs, out = dimension_numbers
    if len(lhs) != n or len(rhs) != n or len(out) != n:
        raise ValueError(f"conv: {dimension_numbers} does not name the {n} axes of the operands.")
    spatial = [c for c in rhs if c not in "OI"]
    axes = lambda text, first: tuple([text.index(c) for c in [*first, *spatial]])  # noqa: E731
    try:
        return ConvDimensionNumbers(axes(lhs, "NC"), axes(rhs, "OI"), axes(out, "NC"))
    except ValueError:
        raise ValueError(
            f"conv: {dimension_numbers} must name N, C, O, I and the same spatial axes in all parts."
        ) from None


def padding_amounts(
    name: str, padding: Any, lengths: Sequence[int], reach: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Padding as pairs, from pairs or from "SAME", "SAME_LOWER" or "VALID"."""
    if not isinstance(padding, str):
        out = [(int(a), int(b)) for a, b in padding]
        if len(out) != len(lengths):
            raise ValueError(f"{name}: {len(lengths)} pairs of padding are needed; got {padding}.")
        return out
    if padding.upper() == "VALID":
        return [(0, 0)] * len(lengths)
    if padding.upper() not in ("SAME", "SAME_LOWER"):
        raise ValueError(f"{name}: padding is 'SAME', 'SAME_LOWER', 'VALID' or pairs; got {padding!r}.")
    out = []
    for n, r, s in zip(lengths, reach, strides, strict=True):
        total = max((-(-n // s) - 1) * s + r - n, 0)
        low = total // 2 if padding.upper() == "SAME" else total - total // 2
        out.append((low, total - low))
    return out


def conv_general_dilated(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[Sequence[int]],
    lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None,
    feature_group_count: int = 1, batch_group_count: int = 1, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:  # fmt: skip
    """Convolution (cross-correlation) in any number of dimensions.

    Operands of two float dtypes are promoted to the wider one.

    >>> import atled.numpy as jnp
    >>> conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[2., 2., 2.]]], dtype=float32)
    """
    x, k = type_of(lhs), type_of(rhs)
    if x.dtype is not k.dtype and x.kind == k.kind == "f" and preferred_element_type is None:
        lhs, rhs = (convert(v, dtypes.promote((x.dtype, False), (k.dtype, False))[0]) for v in (lhs, rhs))
    numbers = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    n = x.ndim - 2
    ones = (1,) * n
    x_dilation, k_dilation = tuple(lhs_dilation or ones), tuple(rhs_dilation or ones)
    if len(window_strides) != n:
        raise ValueError(f"conv: {n} strides are needed for {x}; got {window_strides}.")
    lengths = [dilated(x.shape[a], d) for a, d in zip(numbers.lhs_spec[2:], x_dilation, strict=True)]
    reach = [dilated(k.shape[a], d) for a, d in zip(numbers.rhs_spec[2:], k_dilation, strict=True)]
    pairs = padding_amounts("conv", padding, lengths, reach, window_strides)
    op = convolution.Convolution(
        convolution.ConvAxes(*numbers), tuple(window_strides), tuple(pairs), x_dilation, k_dilation,
        feature_group_count, batch_group_count, precision_name(precision),
        None if preferred_element_type is None else dtypes.canonical(preferred_element_type),
    )  # fmt: skip
    return placed(bind(op, lhs, rhs), out_sharding, "conv_general_dilated")


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolution of (batch, feature, *spatial) with a kernel (out, in, *spatial).

    >>> import atled.numpy as jnp
    >>> conv(jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[1.0, 10.0]]]), (1,), "VALID")
    Array([[[21., 32.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str | Sequence[Sequence[int]],
    lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Convolution of (batch, feature, *spatial) with a kernel (out, in, *spatial), any padding and any dilation.

    >>> import atled.numpy as jnp
    >>> x, kernel = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[1.0, 10.0]]])
    >>> conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, None)
    Array([[[10., 21., 32.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int], padding: str | Sequence[Sequence[int]],
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None, transpose_kernel: bool = False,
    precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:  # fmt: skip
    """Transposed convolution: strides dilate the input.

    Padding pairs apply to the dilated input; with `use_consistent_padding`, they are the padding of the convolution
    that is transposed. "SAME" and "VALID" always name the padding of that convolution.

    >>> import atled.numpy as jnp
    >>> x, kernel = jnp.array([[[1.0], [2.0]]]), jnp.array([[[1.0]], [[10.0]]])
    >>> conv_transpose(x, kernel, (2,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")).ravel()
    Array([10.,  1., 20.,  2.], dtype=float32)
    """
    n = type_of(lhs).ndim - 2
    if dimension_numbers is None:
        spatial = "HWD"[:n] if n <= 3 else "".join(chr(ord("a") + i) for i in range(n))
        dimension_numbers = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    numbers = conv_dimension_numbers(type_of(lhs).shape, type_of(rhs).shape, dimension_numbers)
    dilation = tuple(rhs_dilation or (1,) * n)
    kernel = [dilated(type_of(rhs).shape[a], d) for a, d in zip(numbers.rhs_spec[2:], dilation, strict=True)]
    if isinstance(padding, str):
        pairs = transposed_padding("conv_transpose", kernel, strides, padding)
    elif use_consistent_padding:
        pairs = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(kernel, padding, strict=True)]
    else:
        pairs = padding
    if transpose_kernel:
        rhs = shape.reverse(rhs, numbers.rhs_spec[2:])
        order = list(range(n + 2))
        o, i = numbers.rhs_spec[:2]
        order[o], order[i] = order[i], order[o]
        rhs = shape.transpose(rhs, order)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * n,
        pairs,
        strides,
        dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def transposed_padding(name: str, kernel: Sequence[int], strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """Padding of a transposed convolution as pairs, from "SAME" or "VALID"."""
    if padding.upper() not in ("SAME", "VALID"):
        raise ValueError(f"{name}: padding is 'SAME', 'VALID' or pairs; got {padding!r}.")
    pairs = []
    for k, s in zip(kernel, strides, strict=True):
        total = k + s - 2 if padding.upper() == "SAME" else k + s - 2 + max(k - s, 0)
        low = (k - 1 if s > k - 1 else -(-total // 2)) if padding.upper() == "SAME" else k - 1
        pairs.append((low, total - low))
    return pairs


# -- reductions with a given function ---------------------------------------------------------------------------------


rounding = {0: elementary.round_away, 1: elementary.round_even}
