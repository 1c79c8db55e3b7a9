"""First-order primitives, one file per family. An op's class holds all its rules.

Families refer to each other as modules (`from atled.ops import shape`), so that rules can use any op and imports never
form a knot; what several families share lives in `family.py`.
"""

from typing import TYPE_CHECKING

from atled.ops.segments import segment_max, segment_min, segment_prod, segment_sum

if TYPE_CHECKING:  # `family.py` and `masking.py` reach these as attributes of the package, because they import it
    from atled.ops import approximation as approximation
    from atled.ops import elementwise as elementwise
    from atled.ops import family as family
    from atled.ops import reduction as reduction
    from atled.ops import shape as shape

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
