"""Fourier transforms over the last axes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.ops import conversion, elementwise, shape


class Fft(LinearOp):
    """A discrete Fourier transform: FFT, IFFT, RFFT (real to half spectrum) or IRFFT (half spectrum to real)."""

    kind: str
    lengths: tuple[int, ...]

    def result_type(self, x: ArrayType) -> ArrayType:
        n = len(self.lengths)
        if not 1 <= n <= 3 or x.ndim < n:
            raise TypeError(f"fft: one to three axes can be transformed; got {x} with lengths {self.lengths}.")
        half = (*self.lengths[:-1], self.lengths[-1] // 2 + 1)
        real = self.kind == "RFFT"
        if x.dtype not in ((dtypes.float32, dtypes.float64) if real else (dtypes.complex64, dtypes.complex128)):
            raise TypeError(f"fft: {self.kind.lower()} takes {'float' if real else 'complex'} arrays; got {x}.")
        last_dims = half if self.kind == "IRFFT" else self.lengths
        if x.shape[-n:] != last_dims:
            raise TypeError(f"fft: {self.kind.lower()} of lengths {self.lengths} needs last axes {last_dims}; got {x}.")
        if self.kind == "RFFT":
            return ArrayType((*x.shape[:-n], *half), dtypes.complex_of(x.dtype))
        if self.kind == "IRFFT":
            return ArrayType((*x.shape[:-n], *self.lengths), dtypes.real_part(x.dtype))
        return x

    def lower(self, build: Any, x: Any) -> Any:
        out = self.result_type(x.type)
        if out.size == 0:
            return build.constant(0, out)
        attributes = {"fft_type": f"#stablehlo<fft_type {self.kind}>", "fft_length": self.lengths}
        return build.emit("stablehlo.fft", (x,), (out,), attributes)

    def transpose(self, cotangent: Any, x: Any) -> Any:
        if self.kind in ("FFT", "IFFT"):  # the matrix of the transform is symmetric
            return (bind(self, cotangent),)
        if self.kind == "RFFT":
            # a real transform is half of the complex one: pad with zeros, transform, and keep the real part
            dims = type_of(cotangent).shape
            missing = self.lengths[-1] - dims[-1]
            full = shape.pad(cotangent, 0, [(0, 0, 0)] * (len(dims) - 1) + [(0, missing, 0)])
            return (conversion.real(bind(Fft("FFT", self.lengths), full)),)
        # coefficients also stand for their mirror images, except the first, and the last of an even length
        spectrum = bind(Fft("RFFT", self.lengths), cotangent)
        t = type_of(spectrum)
        weight = np.full(t.shape[-1], 2.0)
        weight[0] = 1.0
        if self.lengths[-1] % 2 == 0:
            weight[-1] = 1.0
        scale = shape.broadcast(shape.constant((weight / prod(self.lengths)).astype(t.dtype)), t.shape, (t.ndim - 1,))
        return (conversion.conj(elementwise.mul(spectrum, scale)),)

    def batch(self, batched: Any, x: Any) -> Any:
        return bind(self, x)


def fft(x: Any, kind: str, lengths: tuple[int, ...]) -> Any:
    """A discrete Fourier transform of the last axes."""
    return bind(Fft(kind, tuple(lengths)), x)
