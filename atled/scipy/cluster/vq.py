"""SciPy's vector quantization `vq`, which assigns each observation to its closest code."""

from __future__ import annotations

from typing import Any

from atled import numpy as jnp
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, type_of
from atled.numpy.promotion import cast, promote_inexact
from atled.staging.jit import library_function

__all__ = ["vq"]
__dir__ = __all__.copy


@library_function
def _vq(obs: Any, code_book: Any) -> tuple[Any, Any]:
    x, y = promote_inexact("vq", obs, code_book)
    s, t = type_of(x), type_of(y)
    if s.ndim != t.ndim or s.ndim not in (1, 2) or s.shape[1:] != t.shape[1:]:
        raise ValueError(
            f"vq: observations and codes must be rows of equal length, or numbers; got {type_of(obs)} and "
            f"{type_of(code_book)}."
        )
    if t.shape[0] == 0:
        raise ValueError(f"vq: at least one code is needed; got {t}.")
    x, y = (v[:, None] if s.ndim == 1 else v for v in (x, y))
    work = dtypes.float32 if dtypes.bits(s.dtype) < 32 else s.dtype
    x, y = cast(x, work), cast(y, work)
    squares = jnp.sum(jnp.abs(x[:, None] - y[None]) ** 2, axis=-1)
    code = jnp.argmin(squares, axis=-1)
    # the distance to the chosen code alone: derivatives do not involve the other codes
    return code, cast(jnp.linalg.norm(x - y[code], axis=-1), dtypes.real_part(s.dtype))


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The index of the closest row of a code book for each row of observations, and the distance to it.

    >>> import atled.numpy as jnp
    >>> code, distance = vq(jnp.array([0.5, 3.0]), jnp.array([0.0, 2.0]))
    >>> code, distance
    (Array([0, 1], dtype=int32), Array([0.5, 1. ], dtype=float32))
    """
    return _vq(obs, code_book)
