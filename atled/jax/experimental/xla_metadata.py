"""Frontend attributes for the compiler, with the API of `jax.experimental.xla_metadata`."""

from __future__ import annotations

from typing import Any

from atled.core import tree
from atled.core.trace import bind
from atled.higher_order.frontend_attributes import Mark, marks_of

__all__ = ["set_xla_metadata"]
__dir__ = __all__.copy


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """The arrays of a pytree, unchanged; `kwargs` become frontend attributes of the operations that produce them.

    Attributes do not apply to derivatives or to function arguments, which no operation produces.

    >>> import atled, atled.numpy as jnp
    >>> f = atled.jit(lambda x: set_xla_metadata(jnp.sin(x), kind="wave"))
    >>> 'stablehlo.sine %arg0 {mhlo.frontend_attributes = {kind = "wave"}}' in f.lower(1.0).as_text()
    True
    """
    if x is None:
        raise NotImplementedError(
            "set_xla_metadata: only values can be annotated, not blocks of code.\n  try: y = set_xla_metadata(y, "
            "key='value')."
        )
    op = Mark(marks_of(kwargs))
    return tree.map(lambda v: bind(op, v), x)
