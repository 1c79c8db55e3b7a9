"""SciPy's `map_coordinates`: an array as a function of continuous coordinates, by splines of orders 0 to 5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes, cast, operand_type, promote_inexact
from atled.ops import conversion, elementary
from atled.scipy.fft import dct, idct
from atled.staging.jit import library_function

__all__ = ["map_coordinates"]
__dir__ = __all__.copy

_MODES = {
    "constant": "constant", "grid-constant": "constant", "nearest": "nearest", "wrap": "wrap", "grid-wrap": "wrap",
    "mirror": "mirror", "reflect": "reflect", "grid-mirror": "reflect",
}  # fmt: skip
# Values of the B-spline of each order at 0, 1 and 2
_SAMPLES = {2: (6 / 8, 1 / 8), 3: (4 / 6, 1 / 6), 4: (230 / 384, 76 / 384, 1 / 384), 5: (66 / 120, 26 / 120, 1 / 120)}
_MARGIN = 12  # elements farther outside do not affect the coefficients inside


def _index(index: Any, n: int, mode: str) -> Any:
    """The index between 0 and n - 1 whose element an index out of bounds reads in a mode."""
    if mode == "wrap":
        return index % n
    if mode == "mirror":
        period = max(2 * n - 2, 1)
        return abs((index + n - 1) % period - (n - 1)) if n > 1 else index * 0
    if mode == "reflect":
        folded = index % (2 * n)
        return jnp.minimum(folded, 2 * n - 1 - folded)
    return jnp.clip(index, 0, n - 1)


def _coefficients(x: Any, axis: int, order: int, mode: str) -> Any:
    """The coefficients of the spline through x along an axis, by a division in a cosine or Fourier basis."""
    n = type_of(x).shape[axis]
    if n == 1:
        return x
    step = {"mirror": math.pi / (n - 1), "reflect": math.pi / n, "wrap": 2 * math.pi / n}[mode]
    count = n // 2 + 1 if mode == "wrap" and type_of(x).kind != "c" else n
    angle = step * np.arange(count)
    first, *others = _SAMPLES[order]
    symbol = first + sum(2 * v * np.cos(k * angle) for k, v in enumerate(others, 1))
    symbol = cast(symbol, dtypes.real_part(type_of(x).dtype))
    x = jnp.moveaxis(x, axis, -1)
    if mode != "wrap":
        kind = 1 if mode == "mirror" else 2
        out = idct(dct(x, kind) / symbol, kind)
    elif type_of(x).kind == "c":
        out = jnp.fft.ifft(jnp.fft.fft(x) / symbol)
    else:
        out = jnp.fft.irfft(jnp.fft.rfft(x) / symbol, n)
    return jnp.moveaxis(out, -1, axis)


def _weights(share: Any, order: int) -> list[Any]:
    """The values of the nonzero B-splines at the fraction `share` of the interval between two knots (Cox, de Boor)."""
    basis = [jnp.ones_like(share)]
    for p in range(1, order + 1):
        padded = [0, *basis, 0]
        basis = [((share + (p - j)) * padded[j] + (j + 1 - share) * padded[j + 1]) / p for j in range(p + 1)]
    return basis


def _nodes(coordinate: Any, n: int, order: int, mode: str) -> tuple[Any, Any, Any]:
    """Along one axis: indices of the elements with nonzero weight, whether they are inside, and their weights."""
    if mode == "nearest":
        coordinate = jnp.clip(coordinate, 0, n - 1)
    moved = coordinate + (order + 1) / 2
    base = elementary.floor(moved)
    index = cast(base, dtypes.int32)[..., None] + np.arange(-order, 1)
    return _index(index, n, mode), (index >= 0) & (index < n), jnp.stack(_weights(moved - base, order), axis=-1)


@library_function(static=("order", "mode"))
def _map_coordinates(x: Any, coordinates: list[Any], cval: Any, order: int, mode: str) -> Any:
    t = operand_type("map_coordinates", x)
    work = jnp.asarray(promote_inexact("map_coordinates", x)[0])
    wide = dtypes.float32 if dtypes.bits(type_of(work).dtype) < 32 else type_of(work).dtype
    work, cval = cast(work, wide), cast(cval, wide)
    places = promote_inexact("map_coordinates", *coordinates)
    dims = broadcast_shapes(*[type_of(c).shape for c in places])
    places = [jnp.broadcast_to(c, dims) for c in places]
    if order > 1:
        if mode in ("constant", "nearest"):
            options = {"constant_values": cval} if mode == "constant" else {}
            work = jnp.pad(work, _MARGIN, "constant" if mode == "constant" else "edge", **options)
            places = [c + _MARGIN for c in places]
        for axis in range(t.ndim):
            work = _coefficients(work, axis, order, {"constant": "mirror", "nearest": "reflect"}.get(mode, mode))
    # one gather of all elements with nonzero weight, on new axes
    axes = lambda v, i: jnp.expand_dims(v, [len(dims) + k for k in range(t.ndim) if k != i])  # noqa: E731
    sides = [
        [axes(v, i) for v in _nodes(c, n, order, mode)]
        for i, (c, n) in enumerate(zip(places, type_of(work).shape, strict=True))
    ]
    out = work[tuple([index for index, _, _ in sides])]
    for _, inside, _ in sides if mode == "constant" else ():
        out = jnp.where(inside, out, cval)
    for _, _, weight in sides:
        out = out * cast(weight, dtypes.real_part(wide))
    out = jnp.sum(out, axis=tuple(range(len(dims), len(dims) + t.ndim)))
    if t.kind in "iub":
        out = jnp.sign(out) * elementary.floor(abs(out) + 0.5)
    return conversion.convert(out, t.dtype) if type_of(out).dtype is not t.dtype else out


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """The values of an array at coordinates between its elements, by splines of an order from 0 to 5.

    `coordinates` has one array for each axis. Outside of its bounds, the array has the value `cval` ("constant") or its
    outermost values ("nearest"), is repeated ("wrap"), or mirrored about the centers of its outermost elements
    ("mirror") or about their edges ("reflect"). "constant" and "wrap" mean SciPy's "grid-constant" and "grid-wrap".

    >>> import atled.numpy as jnp
    >>> map_coordinates(jnp.array([[0.0, 1.0], [2.0, 3.0]]), [jnp.array([0.5, 1.0]), jnp.array([0.5, 0.0])], order=1)
    Array([1.5, 2. ], dtype=float32)
    """
    t = operand_type("map_coordinates", input)
    if mode not in _MODES:
        raise NotImplementedError(f"map_coordinates: the mode is one of {tuple(_MODES)}; got {mode!r}.")
    if order not in range(6):
        raise NotImplementedError(f"map_coordinates: the order is a whole number from 0 to 5; got {order!r}.")
    places = [asarray(c) for c in coordinates]
    if len(places) != t.ndim or t.ndim == 0:
        raise ValueError(
            f"map_coordinates: one array of coordinates for each axis is needed; got {len(places)} for {t}."
        )
    if t.size == 0:
        raise ValueError(f"map_coordinates: an empty array has no values to interpolate; got {t}.")
    return _map_coordinates(input, places, cval, int(order), _MODES[mode])
