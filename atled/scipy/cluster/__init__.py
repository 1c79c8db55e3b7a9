"""SciPy's clustering: vector quantization, in `vq`."""

from __future__ import annotations

from atled.scipy.cluster import vq

__all__ = ["vq"]
__dir__ = __all__.copy
