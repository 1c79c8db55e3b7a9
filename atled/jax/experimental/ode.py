"""`atled.scipy.integrate.odeint`, with JAX's parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from atled.scipy import odes
from atled.scipy.odes import optimal_step_size

__all__ = ["odeint", "optimal_step_size"]
__dir__ = __all__.copy


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The solution of `y' = func(y, t, *args)`: see `atled.scipy.integrate.odeint`.

    >>> import atled.numpy as jnp
    >>> y = odeint(lambda y, t, rate: -rate * y, 1.0, jnp.array([0.0, 1.0, 2.0]), 0.5, rtol=1e-5)
    >>> [round(float(x), 3) for x in y]
    [1.0, 0.607, 0.368]
    """
    return odes.odeint(func, y0, t, args, rtol=rtol, atol=atol, mxstep=mxstep, hmax=hmax)
