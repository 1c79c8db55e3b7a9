"""The laws of ops for every dtype that an op takes, also those that its row does not name.

A row of `cases.py` names the dtypes with which all laws are tested. Here each row is tested with all others that
`result_type` accepts: values against the reference, derivatives against those in the widest dtype of the kind.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case
from test_laws import apply, close, directions, epsilon, ids, inexact_positions, is_inexact, on_positions, results, wide

import atled
import atled.numpy as jnp
from atled import lax
from atled.core import dtypes
from atled.core.array import type_of
from atled.ops import random, window_reductions

DTYPES = (
    "bool", "int4", "uint4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def takes(case: Case, dtype: str) -> bool:
    """Whether operands can be made for a row in this dtype, and the op takes them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            operands = case.operands(dtype)
            case.op.result_type(*[type_of(x) for x in operands])
    except (TypeError, ValueError, OverflowError):
        return False
    if dtype.startswith("uint") and (getattr(case.op, "fill", 0) == -1 or isinstance(case.op, random.RngUniform)):
        return False  # the numbers of these rows do not fit
    return any([np.asarray(x).dtype == np.dtype(dtype) for x in operands])


INTEGERS, BYTES = ("bool", "int", "uint"), ("int4", "uint4")
UNLIKE = {  # references that hold for some dtypes only: the values of the others, by how they begin, are not compared
    "Atan2": ("complex",), "Logistic": ("complex",), "BitcastConvert": ("",), "CountLeadingZeros": BYTES,
    "ShiftRightLogical": BYTES, "ShiftRightArithmetic": BYTES, "SelectAndScatter": INTEGERS,
    "SelectAndGather": INTEGERS, "TopK": ("uint",), "PopulationCount": BYTES,
}  # fmt: skip


MORE = [(c, d) for c in CASES if c.shapes for d in DTYPES if d not in c.dtypes and takes(c, d)]


@pytest.mark.parametrize(("case", "dtype"), MORE, ids=ids(MORE))
def test_every_dtype(case: Case, dtype: str):
    check(case, dtype)


def check(case: Case, dtype: str) -> None:
    """The laws of a row with one dtype."""
    operands = case.operands(dtype)
    out = apply(case, operands)
    promised = results(case.op.result_type(*[type_of(x) for x in operands]))
    assert [type_of(x) for x in out] == list(promised)
    compiled = results(atled.jit(lambda *xs: apply(case, xs))(*operands))
    for a, b in zip(out, compiled, strict=True):
        np.testing.assert_array_equal(numbers(a), numbers(b))
    check_value(case, dtype, operands, out)
    if case.batches:
        check_vmap(case, dtype)
    positions = inexact_positions(operands)
    if case.has_jvp and positions and on_positions(case, operands, positions)(*[operands[i] for i in positions]):
        check_derivatives(case, dtype, operands, positions)


def numbers(x: Any) -> np.ndarray:
    """An array in a dtype that NumPy can compare."""
    x = np.asarray(random.unwrap_key(x) if isinstance(x, atled.Array) and type_of(x).kind == "k" else x)
    return x.astype(np.float64) if x.dtype.isbuiltin != 1 else x


def broadened(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64) if x.dtype.name in BYTES else wide(x)


def check_value(case: Case, dtype: str, operands: Any, out: Any) -> None:
    is_unlike = dtype.startswith(UNLIKE.get(type(case.op).__name__, ("no",)))
    is_unlike |= getattr(case.op, "combine", "") in ("and", "or") and dtype != "bool"  # of bits, in integers
    is_unlike |= isinstance(case.op, window_reductions.ReduceWindow) and dtype in (
        "bool",
        "int8",
    )  # starts at infinity; wraps
    if case.note == "no reference" or is_unlike or isinstance(case.op, (random.WrapKey, random.UnwrapKey)):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = results(case.reference(*[broadened(x) if case.widens else x for x in operands]))
    for got, expected in zip(out, want, strict=True):
        host = np.asarray(got)
        if is_inexact(host):
            close(host, expected, case.tolerance * epsilon(host.dtype))
        else:
            np.testing.assert_array_equal(numbers(host), numbers(np.asarray(expected).astype(host.dtype)))


def check_vmap(case: Case, dtype: str) -> None:
    rows = [case.operands(dtype, seed) for seed in range(2)]
    if any([np.shape(a) != np.shape(b) for a, b in zip(*rows, strict=True)]):
        return
    tolerance = 8 * case.tolerance * epsilon(dtype) if dtypes.is_inexact(np.dtype(dtype)) else 1e-6
    want = [apply(case, row) for row in rows]
    got = results(atled.vmap(lambda *xs: apply(case, xs))(*[np.stack(pair) for pair in zip(*rows, strict=True)]))
    for n, x in enumerate(got):
        for lane, w in zip(numbers(x), want, strict=True):
            close(lane, numbers(w[n]), tolerance)


def check_derivatives(case: Case, dtype: str, operands: Any, positions: Any) -> None:
    """Forward and reverse mode have the dtype of the operands, and agree with the widest dtype."""
    f, xs = on_positions(case, operands, positions), [operands[i] for i in positions]
    vs = directions(case, xs)
    ys, tangents = atled.jvp(f, tuple(xs), tuple(vs))
    assert [t.dtype for t in tangents] == [y.dtype for y in ys]
    broad = [wide(x) if i in positions else x for i, x in enumerate(operands)]
    g = on_positions(case, broad, positions)
    zs, want = atled.jvp(g, tuple([broad[i] for i in positions]), tuple([wide(v) for v in vs]))
    for got, expected in zip(tangents, want, strict=True):
        close(numbers(got), expected, 16 * case.tolerance * epsilon(dtype))
    cotangents = [np.asarray(c, np.asarray(y).dtype) for c, y in zip(directions(case, ys), ys, strict=True)]
    back = atled.vjp(f, *xs)[1](cotangents)
    assert [b.dtype for b in back] == [x.dtype for x in xs]
    given = [c.astype(np.asarray(z).dtype) for c, z in zip(cotangents, zs, strict=True)]
    wide_back = atled.vjp(g, *[broad[i] for i in positions])[1](given)
    for got, expected in zip(back, wide_back, strict=True):
        close(numbers(got), expected, 16 * case.tolerance * epsilon(dtype))


def test_what_the_compiler_cannot_do_is_refused():
    """Some of these ended the process, others raised the engine's errors, or gave numbers of no meaning."""
    c, i = np.ones(2, "c8"), np.arange(3)
    for f, message in (
        (lambda: lax.rng_uniform(np.int8(0), np.int8(5), (3,)), "rng_uniform: bounds must be two numbers of one dtype"),
        (lambda: lax.max(c, c), "max: operands must be"),
        (lambda: jnp.asarray(c).at[0].max(1j), "scatter with max: complex numbers have no order"),
        (lambda: lax.dot(c, c, preferred_element_type="float32"), "dot: the result of .* is complex"),
        (lambda: lax.bitcast_convert_type(c, "int32"), "bitcast_convert: c64.2. cannot be read as int32"),
        (lambda: jnp.asarray(i) ** -1, "power: integers cannot be raised to negative powers"),
        (lambda: jnp.power(jnp.asarray(i, "uint8"), -2), "power: integers cannot be raised to negative powers"),
        (lambda: lax.integer_pow(i, -1), "integer_pow: integers cannot be raised to negative powers"),
    ):
        with pytest.raises(TypeError, match=message):
            f()


def test_narrow_numbers():
    np.testing.assert_array_equal(lax.clamp(False, np.array([True, False]), True), [True, False])
    values, positions = lax.top_k(np.array([1, -2, 3], "int4"), 2)
    assert values.dtype.name == "int4" and values.tolist() == [3, 1] and positions.tolist() == [2, 0]
    four = np.array([1, -2, 3], "int4")
    assert float(lax.dot(four, four, preferred_element_type="float32")) == 14.0
