"""The exceptions of the library. The docstring of each exception explains it."""

from atled.core.dtypes import PromotionError as TypePromotionError
from atled.core.errors import (
    ConcretizationTypeError,
    JAXIndexError,
    JAXTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)  # fmt: skip
from atled.core.program import ProgramError as JaxprTypeError
from atled.core.tree import TreeError
from atled.engine.client import ForkError
from atled.engine.failures import ExecutionError
from atled.numpy.promotion import MixedWidthWarning
from atled.random.keys import KeyReuseWarning

JaxRuntimeError = ExecutionError  # the name that JAX programs catch

__all__ = [
    "ConcretizationTypeError", "ExecutionError", "ForkError", "JAXIndexError", "JAXTypeError", "JaxRuntimeError",
    "JaxprTypeError", "KeyReuseError", "KeyReuseWarning", "MixedWidthWarning",
    "NonConcreteBooleanIndexError", "ShapeError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "TreeError", "TypePromotionError", "UnexpectedTracerError",
]  # fmt: skip
