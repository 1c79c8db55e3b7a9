# Written by scripts/stubs.
from atled.scipy import cluster as cluster
from atled.scipy import fft as fft
from atled.scipy import integrate as integrate
from atled.scipy import interpolate as interpolate
from atled.scipy import linalg as linalg
from atled.scipy import ndimage as ndimage
from atled.scipy import optimize as optimize
from atled.scipy import signal as signal
from atled.scipy import sparse as sparse
from atled.scipy import spatial as spatial
from atled.scipy import special as special
from atled.scipy import stats as stats

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]
