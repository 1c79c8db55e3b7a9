"""Block-scaled matrix products of low-precision numbers: blocks along the contracted axis share a scale.

The formats are those of the Open Compute Project ("mxfp8": blocks of 32, scales that are powers of two) and of NVIDIA
("nvfp4": blocks of 16, scales of eight bits, and one scale for the whole array). Numbers are quantized and then
multiplied in float32, which emulates hardware support for these formats on every device.
"""

from __future__ import annotations

import dataclasses
import warnings
from math import prod
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.higher_order.custom_derivatives import custom_vjp
from atled.ops import contraction
from atled.staging.jit import library_function


@dataclasses.dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """How one operand of `scaled_dot_general` is quantized."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool = False

    @property
    def format(self) -> Format:
        """The static settings, without the global scale, which is an array."""
        return Format(self.mode, self.block_size, dtypes.canonical(self.data_type), dtypes.canonical(self.scale_type))


@dataclasses.dataclass(frozen=True)
class Format:
    """The static part of a `BlockScaleConfig`."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any

    @property
    def largest(self) -> float:
        """The largest number of the data type."""
        return float(dtypes.finfo(self.data_type).max)

    @property
    def largest_scale(self) -> float:
        """The largest number of the scale type."""
        return float(dtypes.finfo(self.scale_type).max)


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None) -> BlockScaleConfig:
    """The `BlockScaleConfig` of an operand of `scaled_dot_general`: `mode` is "mxfp8", or "nvfp4" with an optional
    global scale.

    >>> get_scaled_dot_general_config("mxfp8").mode
    'mxfp8'
    """
    if mode == "nvfp4":
        scale = jnp.ones((1,), "float32") if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, scale)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None)
    raise ValueError(f"get_scaled_dot_general_config: mode must be 'nvfp4' or 'mxfp8'; got {mode!r}.")


# -- the product ------------------------------------------------------------------------------------------------------


def _unscaled(x: Any, scales: Any, dtype: Any) -> Any:
    """x with each block of its last axis multiplied by its scale."""
    blocks = x.astype(dtype).reshape(*scales.shape, x.shape[-1] // scales.shape[-1])
    return (blocks * scales.astype(dtype)[..., None]).reshape(x.shape)


@library_function(static=("dtype",))
def _scaled_matmul(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, dtype: Any) -> Any:
    work = dtypes.float64 if dtype == np.float64 else dtypes.float32
    return jnp.einsum("bmk,bnk->bmn", _unscaled(lhs, lhs_scales, work), _unscaled(rhs, rhs_scales, work)).astype(dtype)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """The product of [B, M, K] and [B, N, K] over K, with block scales: [B, M, K / block], [B, N, K / block].

    >>> import atled.numpy as jnp
    >>> x, scale = jnp.ones((1, 1, 4)), jnp.array([[[2.0, 3.0]]])
    >>> scaled_matmul(x, x, scale, scale)
    Array([[[26.]]], dtype=float32)
    """
    operands = [jnp.asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    a, b, s, t = types = [x.type for x in operands]
    fits = all([x.ndim == 3 for x in types]) and (
        a.shape[::2] == b.shape[::2] and s.shape[:2] == a.shape[:2] and t.shape[:2] == b.shape[:2]
    )
    if not fits or s.shape[2] != t.shape[2] or s.shape[2] == 0 or a.shape[2] % s.shape[2]:
        raise ValueError(
            "scaled_matmul: operands must be [B, M, K] and [B, N, K], scales [B, M, K / block] and [B, N, K / block]; "
            f"got {', '.join(map(str, types))}."
        )
    left, right, left_scales, right_scales = operands
    return _scaled_matmul(left, right, left_scales, right_scales, dtypes.canonical(preferred_element_type))


# -- quantization -----------------------------------------------------------------------------------------------------


def _power_of_two_above(x: Any) -> Any:
    """The biased exponent (+ 127) of the smallest power of two >= x, for float32 x >= 0."""
    bits = x.view("uint32")
    rounded = jnp.minimum((bits + np.uint32(0x7FFFFF)) >> 23, np.uint32(254))
    rounded = jnp.where(bits <= 0x400000, np.uint32(0), rounded)  # 2**-127 is the smallest scale
    return jnp.where(jnp.isfinite(x), rounded, np.uint32(255))


def quantize(x: Any, config: Format, global_scale: Any) -> tuple[Any, Any]:
    """Quantized numbers, and the scales of their blocks along the last axis."""
    n = x.shape[-1]
    if n == 0 or n % config.block_size:
        raise ValueError(
            f"scaled_dot_general: the contracted length must be a multiple of the block size {config.block_size}; "
            f"got {type_of(x)}, contracted over its last axis."
        )
    blocks = x.astype("float32").reshape(*x.shape[:-1], n // config.block_size, config.block_size)
    if global_scale is not None:
        blocks = blocks / global_scale
    exact_scales = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) / config.largest
    if config.mode == "mxfp8":
        exponent = _power_of_two_above(exact_scales)
        scales = exponent.astype("uint8").view(config.scale_type)
        # multiply by the inverse, because the smallest scale is subnormal; scales above 2**120 do not occur
        scaled = blocks * ((np.uint32(254) - jnp.minimum(exponent, np.uint32(253))) << 23).view("float32")
    else:
        scales = jnp.minimum(exact_scales, config.largest_scale).astype(config.scale_type)
        wide = scales.astype("float32")
        scaled = jnp.where(wide == 0, 0.0, blocks / jnp.where(wide == 0, 1.0, wide))
    clipped = jnp.clip(scaled, -config.largest, config.largest)
    if config.mode == "nvfp4":  # round explicitly first: the compiler's conversion rounds twice, through float16
        size = jnp.abs(clipped)
        step = jnp.where(size < 2, 0.5, jnp.where(size < 4, 1.0, 2.0))
        clipped = jnp.round(clipped / step) * step
    quantized = clipped.astype(config.data_type)
    return quantized.reshape(x.shape), scales[..., 0]


def _product(lhs: Any, rhs: Any, formats: Any, scales: Any, dtype: Any) -> Any:
    """The product of both operands over their last axes, after quantization."""
    (a, s), (b, t) = (quantize(x, f, g) for x, f, g in zip((lhs, rhs), formats, scales, strict=True))
    out = scaled_matmul(a, b, s, t, np.float32)
    for g in scales:
        out = out if g is None else out * g
    return out.astype(dtype)


def _forward(formats: Any, dtype: Any, lhs: Any, rhs: Any, scales: Any) -> Any:
    return _product(lhs, rhs, formats[:2], scales[:2], dtype)


def _backward(formats: Any, dtype: Any, residuals: Any, cotangent: Any) -> Any:
    """Straight-through estimator: rounding has derivative 1; in "nvfp4", clipping has derivative 0."""
    lhs, rhs, scales = residuals
    if len(formats) < 3:
        raise ValueError(f"scaled_dot_general: gradients need a third config, for the cotangent; got {len(formats)}.")
    turned = (cotangent, cotangent.mT)
    out = []
    for i, (x, other) in enumerate(((lhs, rhs), (rhs, lhs))):
        if formats[2].mode == "mxfp8":
            config = (formats[2], formats[1 - i]), (scales[2], scales[1 - i])
            slope = _product(turned[i], other.mT, *config, dtype)
        else:
            slope = jnp.matmul(turned[i], other, preferred_element_type=dtype)
            bound = formats[i].largest * formats[i].largest_scale
            slope = jnp.where(jnp.abs(x) <= scales[i] * bound, slope, 0)
        out.append(slope.astype(x.dtype))
    return (*out, tuple([None if s is None else jnp.zeros_like(s) for s in scales]))


_quantized = custom_vjp(_forward, nondiff_argnums=(0, 1))
_quantized.defvjp(lambda f, d, *args: (_forward(f, d, *args), args), _backward)


def _three_axes(x: Any, contracted: tuple[int, ...], batch: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """x as [batch, free, contracted], and the lengths of the free axes."""
    free_axes = [i for i in range(x.ndim) if i not in contracted and i not in batch]
    lengths = [[x.shape[i] for i in axes] for axes in (batch, free_axes, contracted)]
    return x.transpose(*batch, *free_axes, *contracted).reshape(*map(prod, lengths)), tuple(lengths[1])


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Any = None,
    implementation: str | None = None,
) -> Array:
    """`lax.dot_general` of block-quantized operands; without `configs`, of unquantized operands.

    `configs` has a `BlockScaleConfig` for each operand and, if there are gradients, one for the cotangent. Derivatives
    treat rounding as the identity.

    >>> configs = [get_scaled_dot_general_config("mxfp8") for _ in range(2)]
    >>> scaled_dot_general(jnp.ones((1, 2, 32)), jnp.ones((1, 2, 32)), (((2,), (2,)), ((0,), (0,))), configs=configs)
    Array([[[32., 32.],
            [32., 32.]]], dtype=float32)
    """
    if implementation is not None:
        warnings.warn("scaled_dot_general: implementation is ignored.", DeprecationWarning, stacklevel=2)
    (left, right), (left_batch, right_batch) = dimension_numbers
    axes = [(tuple(left), tuple(left_batch)), (tuple(right), tuple(right_batch))]
    dtype = dtypes.canonical(preferred_element_type)
    if configs is None:
        contracting, batch = ((left, right), (left_batch, right_batch))
        return contraction.dot_general(lhs, rhs, contracting, batch, result=dtype)
    if dtype not in (dtypes.float32, dtypes.float16, dtypes.bfloat16):
        raise TypeError(
            f"scaled_dot_general: preferred_element_type must be float32, float16 or bfloat16; got {dtype}."
        )
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    batch = [lhs.shape[i] for i in axes[0][1]]
    (lhs, rows), (rhs, columns) = (_three_axes(x, *a) for x, a in zip((lhs, rhs), axes))
    scales = tuple([c.global_scale for c in configs])
    out = _quantized(tuple([c.format for c in configs]), dtype, lhs, rhs, scales)
    return out.reshape(*batch, *rows, *columns)
