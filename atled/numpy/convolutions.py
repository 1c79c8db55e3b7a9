"""NumPy's `convolve` and `correlate`: one vector slides over the other."""

from __future__ import annotations

from typing import Any

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.trace import bind
from atled.numpy.promotion import operand_type, promote_dtypes
from atled.ops import contraction, conversion, convolution, shape
from atled.staging.jit import library_function

__all__ = ["convolve", "correlate"]


def _slide(x: Any, kernel: Any, mode: str, precision: Any) -> Any:
    """Sliding sums of x times a kernel, which is not longer than x, at the positions that `mode` selects."""
    n, m = (type_of(v).shape[0] for v in (x, kernel))
    padding = {"full": (m - 1, m - 1), "same": (m // 2, m - 1 - m // 2), "valid": (0, 0)}[mode]
    axes = convolution.ConvAxes((0, 1, 2), (0, 1, 2), (0, 1, 2))
    op = convolution.Convolution(axes, (1,), (padding,), (1,), (1,), precision=contraction.precision_name(precision))
    out = bind(op, shape.reshape(x, (1, 1, n)), shape.reshape(kernel, (1, 1, m)))
    return shape.reshape(out, (type_of(out).shape[2],))


def _sliding_operands(name: str, a: Any, v: Any, mode: str) -> list[Any]:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: the mode is 'full', 'same' or 'valid'; got {mode!r}.")
    types = [operand_type(name, x) for x in (a, v)]
    if any(t.ndim != 1 or not t.size for t in types):
        raise ValueError(f"{name}: operands must have one axis that is not empty; got {types[0]} and {types[1]}.")
    x, y = promote_dtypes(name, a, v)
    if type_of(x).kind == "b":
        x, y = (conversion.convert(w, dtypes.default("i")) for w in (x, y))
    return [x, y]


_STATIC = ("mode", "precision", "preferred_element_type")


@library_function(static=_STATIC)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two 1-d arrays: all of it ("full"), its center ("same"), or only complete overlaps ("valid").

    >>> import atled.numpy as jnp
    >>> convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    x, y = _sliding_operands("convolve", a, v, mode)
    if type_of(x).size < type_of(y).size:
        x, y = y, x
    out = _slide(x, shape.reverse(y, (0,)), mode, precision)
    return out if preferred_element_type is None else conversion.convert(out, preferred_element_type)


@library_function(static=_STATIC)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two 1-d arrays, of which the second is conjugated; modes as in `convolve`.

    >>> import atled.numpy as jnp
    >>> correlate(jnp.array([1, 2, 3, 4]), jnp.array([1, 10]))  # 1 * 1 + 2 * 10, ...
    Array([21, 32, 43], dtype=int32)
    """
    x, y = _sliding_operands("correlate", a, v, mode)
    y = conversion.conj(y) if type_of(y).kind == "c" else y
    if type_of(x).size < type_of(y).size:
        out = shape.reverse(_slide(y, x, mode, precision), (0,))
    else:
        out = _slide(x, y, mode, precision)
    return out if preferred_element_type is None else conversion.convert(out, preferred_element_type)
