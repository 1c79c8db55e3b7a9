"""SciPy's integration: of samples, and of ordinary differential equations."""

from atled.numpy.differences import trapezoid
from atled.scipy.odes import odeint

__all__ = ["odeint", "trapezoid"]
__dir__ = __all__.copy
