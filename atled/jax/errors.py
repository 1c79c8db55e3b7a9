"""`atled.errors`, and aliases of some errors under JAX's names."""

from atled.errors import *  # noqa: F403
from atled.errors import ExecutionError as JaxRuntimeError
from atled.errors import ProgramError as JaxprTypeError
from atled.errors import TracingIndexError as JAXIndexError
from atled.errors import TracingTypeError as JAXTypeError
from atled.errors import __all__ as _ours

__all__ = [*_ours, "JAXIndexError", "JAXTypeError", "JaxRuntimeError", "JaxprTypeError"]  # pyright: ignore[reportUnsupportedDunderAll]
__dir__ = __all__.copy
