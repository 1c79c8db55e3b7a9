"""NumPy's own functions on traced arrays: `np.sin(x)` under `jit` is `atled.numpy.sin(x)`.

NumPy dispatches to its operands by `__array_ufunc__` and `__array_function__`. Only tracers override them: device
arrays have values, so NumPy converts them and returns a NumPy array.
"""

from __future__ import annotations

import ast
import importlib
from typing import Any

import numpy as np

from atled.core import error_hints, source
from atled.core.array import Array
from atled.core.trace import Tracer

_METHODS = {
    ("add", "reduce"): "sum", ("multiply", "reduce"): "prod", ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min", ("logical_and", "reduce"): "all", ("logical_or", "reduce"): "any",
    ("add", "accumulate"): "cumsum", ("multiply", "accumulate"): "cumprod", ("multiply", "outer"): "outer",
}  # fmt: skip


def array_ufunc(self: Tracer, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
    """Called by NumPy for a ufunc, or an operator with a NumPy array on the left."""
    name = ufunc.__name__
    if getattr(np, name, None) is not ufunc:
        raise _unknown(
            name, self, "a function of atled.numpy or atled.scipy.special, or pure_callback to call this one."
        )
    if method != "__call__":
        instead = _METHODS.get((name, method))
        way_out = (
            f"atled.numpy.{instead}." if instead else "lax.reduce or lax.associative_scan, with a function of your own."
        )
        raise _unknown(f"numpy.{name}.{method}", self, way_out)
    out = options.pop("out", None)
    if out is not None and not (out[0] is operands[0] and _is_augmented()):
        raise _no_room(f"numpy.{name}", self)
    return _function("numpy", name, self)(*operands, **options)


def array_function(self: Tracer, function: Any, types: Any, args: Any, options: dict[str, Any]) -> Any:
    """Called by NumPy for its other functions."""
    if not all([issubclass(t, (Array, np.ndarray)) for t in types]):
        return NotImplemented
    if options.get("out") is not None:
        raise _no_room(f"{function.__module__}.{function.__name__}", self)
    return _function(function.__module__, function.__name__, self)(*args, **options)


def _function(module: str, name: str, x: Tracer) -> Any:
    """The function of the same name in `atled.numpy`, or in its submodule (`linalg`, `fft`) of the same name."""
    function = None
    if module.partition(".")[0] == "numpy":
        function = getattr(importlib.import_module(f"atled.{module}"), name, None)
    if function is None:
        raise _unknown(f"{module}.{name}", x, "other functions of atled.numpy, or pure_callback to call NumPy itself.")
    return function


def _is_augmented() -> bool:
    """Whether the user's line is `x += ...`: returning a new array is enough, because the line rebinds x."""
    line = error_hints.line_at(source.here())
    return line is not None and isinstance(line.statement, ast.AugAssign)


def _unknown(name: str, x: Tracer, way_out: str) -> TypeError:
    return TypeError(
        x._explained(f"{name}: NumPy needs values to compute with; got a traced {x.type} without values.", way_out)
    )


def _no_room(name: str, x: Tracer) -> TypeError:
    return TypeError(
        x._explained(
            f"{name}: a NumPy array given as `out` must be filled with values; got a traced {x.type} without values.",
            f"y = {name.replace('numpy', 'atled.numpy')}(...) without `out`.",
        )
    )
