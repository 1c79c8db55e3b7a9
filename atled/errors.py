"""The exceptions of the library; the docstring of each explains its cause."""

from atled.core.dtypes import PromotionError as TypePromotionError
from atled.core.errors import (
    ConcretizationTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TracingIndexError,
    TracingTypeError,
    UnexpectedTracerError,
)  # fmt: skip
from atled.core.program import ProgramError
from atled.core.tree import TreeError
from atled.engine.client import ForkError
from atled.engine.execution_errors import ExecutionError
from atled.numpy.promotion import MixedWidthWarning
from atled.random.keys import KeyReuseWarning

__all__ = [
    "ConcretizationTypeError", "ExecutionError", "ForkError", "KeyReuseError", "KeyReuseWarning", "MixedWidthWarning",
    "NonConcreteBooleanIndexError", "ProgramError", "ShapeError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "TracingIndexError", "TracingTypeError", "TreeError",
    "TypePromotionError", "UnexpectedTracerError",
]  # fmt: skip
__dir__ = __all__.copy
