"""Types of results of every function of `atled.numpy` are JAX's: dtype, shape, weakness. Nothing is compiled.

The rows are those of `tests/numpy/table`. Dtypes of 64 bits are compared where both libraries have them as their
default; there, functions of small integers are in float64 here, and in float32 in JAX.
"""

from __future__ import annotations

import pathlib
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "numpy"))
from table import CALLS, FUNCTIONS, Call

jax = pytest.importorskip("jax")
NARROW = (
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32", "complex64",
)  # fmt: skip
WIDE = ("int64", "uint64", "float16", "float32", "float64", "complex64", "complex128")
AS_NUMPY = "integers stay integers, as in NumPy"
DIFFERENT = {
    "argpartition": "positions are of the default width",
    "bincount": "weights that are bools are counted, as in NumPy",
    "clip": "a bound that does not fit the dtype is refused, as in NumPy",
    "convolve": AS_NUMPY,
    "correlate": AS_NUMPY,
    "cumprod": "small integers are accumulated in the default width, as in NumPy and as in cumsum",
    "cumulative_prod": "as cumprod",
    "histogram": "counts are integers, as in NumPy",
    "histogram2d": "counts are floating, as in NumPy",
    "histogramdd": "counts are floating, as in NumPy",
    "histogram_bin_edges": "complex numbers have no range",
    "nancumprod": "as cumprod",
    "nancumsum": "as cumsum",
    "piecewise": "a number that does not fit the dtype is refused",
    "polyder": AS_NUMPY,
    "polymul": AS_NUMPY,
    "polysub": "bools count as integers, as in polyadd",
    "polyval": "bools are no coefficients",
    "searchsorted": "positions are of the default width",
    "digitize": "positions are of the default width",
}


def abstract(library: Any, types: Any, call: Call, arrays: dict[str, Any]) -> Any:
    """Types of the results, or None where the call is refused."""
    given = {n: types.ShapeDtypeStruct(x.shape, x.dtype) for n, x in arrays.items()}
    is_array = lambda x: hasattr(x, "dtype") and not isinstance(x, np.generic)
    try:
        out = types.eval_shape(lambda a: [x for x in call(library, a) if is_array(x)], given)
    except Exception:
        return None
    return [(np.dtype(x.dtype), tuple(x.shape), bool(x.weak_type)) for x in out]


SWEPT = [
    c
    for c in CALLS
    if c.is_traced and c.varying() and c is next(d for d in FUNCTIONS[c.covers] if d.is_traced and d.varying())
]


def is_refused_by_numpy(call: Call, arrays: dict[str, Any]) -> bool:
    if any(x.dtype.name == "bfloat16" for x in arrays.values()):
        return False
    try:
        call.expected(arrays)
    except Exception:
        return True
    return False


@pytest.mark.parametrize("call", SWEPT, ids=[c.text for c in SWEPT])
@pytest.mark.parametrize("wide", [False, True], ids=["32", "64"])
def test_types(call: Call, wide: bool):
    """What JAX takes, we take, with the same result; what neither JAX nor NumPy takes is refused."""
    differences = {}
    with atled.enable_x64(wide), jax.enable_x64(wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in WIDE if wide else NARROW:
            arrays = call.arrays(dtype)
            ours, theirs = abstract(jnp, atled, call, arrays), abstract(jax.numpy, jax, call, arrays)
            is_judged = theirs is not None or is_refused_by_numpy(call, arrays)
            if ours != theirs and is_judged and call.covers not in DIFFERENT:
                differences[dtype] = (ours, theirs)
    assert not differences, call.text
