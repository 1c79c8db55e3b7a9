"""NumPy's constants, and `dtype` and `ComplexWarning`, which are NumPy's own objects."""

import math

import numpy as np

pi, e, euler_gamma, inf, nan, newaxis = math.pi, math.e, np.euler_gamma, math.inf, math.nan, None
dtype, ComplexWarning = np.dtype, np.exceptions.ComplexWarning
