"""First-order primitives, one file per family. The class of an op holds all its rules.

Files import only earlier ones in this order: `elementwise_family` and `mask_rules`, which all others use, then
`elementwise`, `conversion`, `elementary`, `shape`, `real_functions`, `complex_functions`, and the rest. Functions
that a rule needs from a later file are in `core/basic_ops.py`.
"""

from atled.ops import complex_functions as complex_functions
from atled.ops import real_functions as real_functions  # registers implementations of ops in `elementary`
from atled.ops.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
__dir__ = __all__.copy
