"""SciPy's names for the incomplete gamma and beta functions; they are computed in `lax/incomplete_functions.py`."""

from __future__ import annotations

from atled.core.array import Array, ArrayLike
from atled.lax import incomplete_functions
from atled.scipy.operand_promotion import real_operands
from atled.staging.jit import library_function


@library_function
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, differentiable in both operands.

    >>> import atled.numpy as jnp
    >>> bool(abs(gammainc(1.0, jnp.float32(2.0)) - (1 - jnp.exp(-2.0))) < 1e-6)
    True
    """
    return incomplete_functions.igamma(*real_operands("gammainc", a, x))


@library_function
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function, accurate in the tail; differentiable in both operands.

    >>> round(float(gammaincc(1.0, 1.0)), 3)
    0.368
    """
    return incomplete_functions.igammac(*real_operands("gammaincc", a, x))


@library_function
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, differentiable in all three operands.

    >>> import atled.numpy as jnp
    >>> bool(abs(betainc(2.0, 1.0, jnp.float32(0.3)) - 0.09) < 1e-7)
    True
    """
    return incomplete_functions.betainc(*real_operands("betainc", a, b, x))
