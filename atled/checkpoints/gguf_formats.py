"""The formats of tensors in GGUF files: how many numbers a block has, its layout, and how it is read and written.

A plain format stores each number on its own. A quantized format stores blocks of 32 or 256 numbers along the last axis:
small integers, and the scales that map them to floats. A layout is a NumPy dtype with a field for each part of a
block. All arithmetic is in float32; the results equal those of the `gguf` package bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

CHUNK = 1 << 17  # numbers converted at a time, so that temporaries fit into the CPU cache


class Format(NamedTuple):
    """A tensor format: plain if it has a dtype, quantized if it has `decode`, otherwise not readable."""

    number: int  # identifies the format in files
    name: str
    numbers: int = 1  # in a block
    nbytes: int = 0  # of a block; 0 if not known
    dtype: np.dtype | None = None
    layout: np.dtype | None = None
    decode: Callable[[Any, np.ndarray], None] | None = None
    encode: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def is_readable(self) -> bool:
        """Whether tensors of this format can be read."""
        return self.dtype is not None or self.decode is not None

    def size(self, shape: tuple[int, ...]) -> int:
        """The number of bytes of a tensor of this shape, or 0 if the size of a block is not known."""
        return math.prod(shape) // self.numbers * self.nbytes


def decode(form: Format, data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Decode whole blocks into a new 1-d array; `dtype` is a float dtype or, in a plain format, the format's own."""
    if form.dtype is not None:
        with np.errstate(all="ignore"):  # numbers may be infinite or NaN
            return data.view(form.dtype).astype(dtype)
    assert form.decode is not None and form.layout is not None
    blocks, step = data.view(form.layout), CHUNK // form.numbers
    out = np.empty((len(blocks), form.numbers), dtype)
    buffer = None if dtype == np.float32 else np.empty((step, form.numbers), np.float32)
    with np.errstate(all="ignore"):
        for i in range(0, len(blocks), step):
            part = blocks[i : i + step]
            if buffer is None:
                form.decode(part, out[i : i + step])
            else:
                form.decode(part, buffer[: len(part)])
                out[i : i + step] = buffer[: len(part)]
    return out.reshape(-1)


def encode(form: Format, x: np.ndarray) -> Iterator[np.ndarray]:
    """The bytes of an array, in parts. Raises `OverflowError` if a number becomes infinite, or a scale not finite."""
    step = CHUNK // form.numbers
    rows = np.asarray(x, order="C").reshape(-1, form.numbers)
    for part in [rows[i : i + step] for i in range(0, len(rows), step)]:
        with np.errstate(all="ignore"):
            if form.encode is None:
                blocks = part.astype(form.dtype)
                lost = np.isinf(blocks) & ~np.isinf(part) if blocks.dtype.itemsize < part.dtype.itemsize else False
            else:
                blocks = form.encode(part.astype(np.float32))
                lost = [~np.isfinite(blocks[name]) for name in {"scale", "minimum"} & set(blocks.dtype.names or ())]
        if np.any(lost):
            raise OverflowError
        yield blocks.reshape(-1).view(np.uint8)


_Q4_0 = np.dtype([("scale", "<f2"), ("low", "u1", 16)])
_Q4_1 = np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("low", "u1", 16)])
_Q5_0 = np.dtype([("scale", "<f2"), ("high", "u1", 4), ("low", "u1", 16)])
_Q5_1 = np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("high", "u1", 4), ("low", "u1", 16)])
_Q8_0 = np.dtype([("scale", "<f2"), ("all", "i1", 32)])
_Q4_K = np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("scales", "u1", (3, 4)), ("low", "u1", (4, 32))])
_Q5_K = np.dtype(
    [("scale", "<f2"), ("minimum", "<f2"), ("scales", "u1", (3, 4)), ("high", "u1", 32), ("low", "u1", (4, 32))]
)
_Q6_K = np.dtype([("low", "u1", (2, 2, 32)), ("high", "u1", (2, 32)), ("scales", "i1", 16), ("scale", "<f2")])


def _float(field: np.ndarray) -> np.ndarray:
    """A float16 field of blocks as a float32 column."""
    return field.astype(np.float32)[:, None]


def _nibbles(low: np.ndarray) -> np.ndarray:
    """The low and the high nibbles of bytes, along a new axis before the last one."""
    both = np.empty((*low.shape[:-1], 2, low.shape[-1]), np.uint8)
    np.bitwise_and(low, 15, out=both[..., 0, :])
    np.right_shift(low, 4, out=both[..., 1, :])
    return both


def _fifth_bits(blocks: Any) -> np.ndarray:
    """The integers of Q5_0 and Q5_1: the low four bits from `low`, the fifth bit from `high`."""
    high = np.unpackbits(blocks["high"], axis=-1, bitorder="little")
    return _nibbles(blocks["low"]).reshape(-1, 32) | high << 4


def _decode_q4_0(blocks: Any, out: np.ndarray) -> None:
    out[...] = _nibbles(blocks["low"]).reshape(-1, 32)
    out -= 8
    out *= _float(blocks["scale"])


def _decode_q4_1(blocks: Any, out: np.ndarray) -> None:
    out[...] = _nibbles(blocks["low"]).reshape(-1, 32)
    out *= _float(blocks["scale"])
    out += _float(blocks["minimum"])


def _decode_q5_0(blocks: Any, out: np.ndarray) -> None:
    out[...] = _fifth_bits(blocks)
    out -= 16
    out *= _float(blocks["scale"])


def _decode_q5_1(blocks: Any, out: np.ndarray) -> None:
    out[...] = _fifth_bits(blocks)
    out *= _float(blocks["scale"])
    out += _float(blocks["minimum"])


def _decode_q8_0(blocks: Any, out: np.ndarray) -> None:
    out[...] = blocks["all"]
    out *= _float(blocks["scale"])


def _scaled(blocks: Any, numbers: np.ndarray, out: np.ndarray) -> None:
    """Write the numbers of Q4_K or Q5_K blocks to `out`: integers times a scale, minus a minimum.

    Every group of 32 numbers has a 6-bit scale and a 6-bit minimum, which are multiplied by the block's float16 scale
    and minimum. Bytes 0-3 hold scales 0-3, and bytes 4-7 minima 0-3, in their low 6 bits. The low 4 bits of scales 4-7
    and of minima 4-7 are the low and high nibbles of bytes 8-11; their high 2 bits are the top 2 bits of bytes 0-3 and
    4-7.
    """
    first, second, third = (blocks["scales"][:, i] for i in range(3))
    scales = np.concatenate([first & 63, (third & 15) | (first >> 6) << 4], axis=-1)
    minima = np.concatenate([second & 63, third >> 4 | (second >> 6) << 4], axis=-1)
    groups = out.reshape(-1, 8, 32)
    groups[...] = numbers.reshape(-1, 8, 32)
    groups *= (_float(blocks["scale"]) * scales)[..., None]
    groups -= (_float(blocks["minimum"]) * minima)[..., None]


def _decode_q4_k(blocks: Any, out: np.ndarray) -> None:
    _scaled(blocks, _nibbles(blocks["low"]), out)


def _decode_q5_k(blocks: Any, out: np.ndarray) -> None:
    high = blocks["high"][:, None] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    _scaled(blocks, _nibbles(blocks["low"]).reshape(-1, 8, 32) | high << 4, out)


def _decode_q6_k(blocks: Any, out: np.ndarray) -> None:
    """Decode 6-bit integers: the low 4 bits from `low`, the high 2 from `high`. Each group of 16 has a scale."""
    low = blocks["low"]
    high = blocks["high"][:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3
    groups = out.reshape(-1, 16, 16)
    groups[...] = (np.concatenate([low & 15, low >> 4], axis=-2) | high << 4).reshape(-1, 16, 16)
    groups -= 32
    groups *= (_float(blocks["scale"]) * blocks["scales"])[..., None]


def _inverse(scale: np.ndarray) -> np.ndarray:
    """The reciprocals of scales, with zero in place of infinity."""
    inverse = 1 / scale
    return np.where(np.isinf(inverse), 0, inverse)


def _packed(x: np.ndarray) -> np.ndarray:
    """Numbers from 0 to 16, rounded down to at most 15; numbers i and i + 16 of a block share a byte."""
    whole = np.minimum(x, 15).astype(np.uint8)
    return whole[:, :16] | whole[:, 16:] << 4


def _encode_q4_0(x: np.ndarray) -> np.ndarray:
    blocks = np.empty(len(x), _Q4_0)
    scale = np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1) / -8
    blocks["scale"], blocks["low"] = scale[:, 0], _packed(x * _inverse(scale) + np.float32(8.5))
    return blocks


def _encode_q4_1(x: np.ndarray) -> np.ndarray:
    blocks, low = np.empty(len(x), _Q4_1), x.min(-1, keepdims=True)
    scale = (x.max(-1, keepdims=True) - low) / 15
    blocks["scale"], blocks["minimum"] = scale[:, 0], low[:, 0]
    blocks["low"] = _packed((x - low) * _inverse(scale) + np.float32(0.5))
    return blocks


def _encode_q8_0(x: np.ndarray) -> np.ndarray:
    blocks, scale = np.empty(len(x), _Q8_0), np.abs(x).max(-1, keepdims=True) / 127
    scaled = x * _inverse(scale)
    whole = np.trunc(scaled)
    blocks["scale"], blocks["all"] = scale[:, 0], whole + np.trunc(2 * (scaled - whole))  # rounds half away from zero
    return blocks


def _plain(number: int, name: str, kind: Any) -> Format:
    dtype = np.dtype(kind)
    return Format(number, name, 1, dtype.itemsize, dtype)


def _quantized(number: int, name: str, layout: np.dtype, decode: Any, encode: Any = None) -> Format:
    return Format(number, name, 256 if name.endswith("_K") else 32, layout.itemsize, None, layout, decode, encode)


_ALL = (
    _plain(0, "F32", "<f4"), _plain(1, "F16", "<f2"), _plain(30, "BF16", ml_dtypes.bfloat16), _plain(28, "F64", "<f8"),
    _plain(24, "I8", "i1"), _plain(25, "I16", "<i2"), _plain(26, "I32", "<i4"), _plain(27, "I64", "<i8"),
    _quantized(2, "Q4_0", _Q4_0, _decode_q4_0, _encode_q4_0), _quantized(3, "Q4_1", _Q4_1, _decode_q4_1, _encode_q4_1),
    _quantized(6, "Q5_0", _Q5_0, _decode_q5_0), _quantized(7, "Q5_1", _Q5_1, _decode_q5_1),
    _quantized(8, "Q8_0", _Q8_0, _decode_q8_0, _encode_q8_0), _quantized(12, "Q4_K", _Q4_K, _decode_q4_k),
    _quantized(13, "Q5_K", _Q5_K, _decode_q5_k), _quantized(14, "Q6_K", _Q6_K, _decode_q6_k),
    # Formats that cannot be read. The size of a block is given where all programs agree on it.
    Format(4, "Q4_2"), Format(5, "Q4_3"), Format(9, "Q8_1"), Format(10, "Q2_K", 256, 84), Format(11, "Q3_K", 256, 110),
    Format(15, "Q8_K", 256, 292), Format(16, "IQ2_XXS", 256, 66), Format(17, "IQ2_XS", 256, 74),
    Format(18, "IQ3_XXS", 256, 98), Format(19, "IQ1_S", 256, 50), Format(20, "IQ4_NL", 32, 18),
    Format(21, "IQ3_S", 256, 110), Format(22, "IQ2_S", 256, 82), Format(23, "IQ4_XS", 256, 136),
    Format(29, "IQ1_M", 256, 56), Format(31, "Q4_0_4_4"), Format(32, "Q4_0_4_8"), Format(33, "Q4_0_8_8"),
    Format(34, "TQ1_0", 256, 54), Format(35, "TQ2_0", 256, 66), Format(36, "IQ4_NL_4_4"), Format(37, "IQ4_NL_4_8"),
    Format(38, "IQ4_NL_8_8"), Format(39, "MXFP4", 32, 17), Format(40, "NVFP4", 64, 36), Format(41, "Q1_0", 128, 18),
)  # fmt: skip
FORMATS: dict[int, Format] = {form.number: form for form in _ALL}
FLOATS = tuple([np.dtype(kind) for kind in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)])
WRITTEN = {f.name: f for f in _ALL if f.encode is not None or f.dtype in FLOATS[:3]}  # for floats
