"""NumPy's functions on arrays that can be differentiated, batched, compiled and spread over devices."""

from __future__ import annotations

import math

import numpy as _np

from atled.core.array import Array as ndarray
from atled.core.dtypes import finfo, iinfo, issubdtype
from atled.numpy import methods as _methods
from atled.numpy.contractions import *  # noqa: F403
from atled.numpy.creation import *  # noqa: F403
from atled.numpy.elementwise import *  # noqa: F403
from atled.numpy.indexing import take, take_along_axis
from atled.numpy.reductions import *  # noqa: F403
from atled.numpy.scalar_types import *  # noqa: F403
from atled.numpy.shapes import *  # noqa: F403

_methods.install()
pi, e, euler_gamma, inf, nan, newaxis = math.pi, math.e, _np.euler_gamma, math.inf, math.nan, None
dtype = _np.dtype
