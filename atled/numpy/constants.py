"""NumPy's constants, and names of NumPy itself."""

import math

import numpy as np

pi, e, euler_gamma, inf, nan, newaxis = math.pi, math.e, np.euler_gamma, math.inf, math.nan, None
dtype, ComplexWarning = np.dtype, np.exceptions.ComplexWarning
