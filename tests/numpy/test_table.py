"""The laws of every function of `atled.numpy`, for every row of the table.

Values, shapes and kinds are NumPy's, eager and compiled, for all kinds of dtypes and for special and extreme values;
empty and 0-d arrays are taken where NumPy takes them; vmap is a loop; derivatives are those of NumPy's function.
Dtypes are JAX's, see `tests/oracle/test_numpy_types.py`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from table import CALLS, ELSEWHERE, FUNCTIONS, Call, elementwise, public_functions
from table.calls import EXTREME, REPRESENTATIVE, SPECIAL, is_array

import atled
import atled.numpy as jnp

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
EXAMPLES = int(os.environ.get("ATLED_EXAMPLES", "6"))


def epsilon(dtype: Any) -> float:
    return float(ml_dtypes.finfo(np.empty(0, dtype).real.dtype).eps)


def is_inexact(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fcV"


def wide(x: np.ndarray) -> np.ndarray:
    """In the widest dtype of its kind."""
    x = np.asarray(x)
    return x.astype("c16" if x.dtype.kind == "c" else "f8") if is_inexact(x) else x


def expected(call: Call, arrays: dict[str, np.ndarray]) -> list[Any]:
    """What NumPy says, computed in float64 unless the function is about its dtype."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = call.expected({n: wide(x) for n, x in arrays.items()} if call.widens else arrays)
        if (
            any(getattr(w, "dtype", None) == np.float16 for w in want) and call.widens
        ):  # NumPy's answer for small integers
            want = call.expected({n: x.astype("f8") if call.operands[n].varies else x for n, x in arrays.items()})
    return want


def compare(call: Call, got: Any, want: Any, tolerance: float | None = None, signs: bool = False) -> None:
    """Results are the same: how many, shape, kind of dtype, values."""
    assert len(got) == len(want), f"{call.text}: {len(got)} results, expected {len(want)}"
    for g, w in zip(got, want, strict=True):
        if not is_array(w) and not is_array(g):
            assert g == w, call.text
            continue
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape, f"{call.text}: shape {g.shape}, expected {w.shape}"
        assert is_inexact(g) == is_inexact(w) and (g.dtype.kind == "c") == (w.dtype.kind == "c"), (
            call.text,
            g.dtype,
            w.dtype,
        )
        assert (g.dtype.kind == "b") == (w.dtype.kind == "b"), f"{call.text}: dtype {g.dtype}, expected {w.dtype}"
        if not is_inexact(g):
            np.testing.assert_array_equal(g, w.astype(g.dtype), err_msg=call.text)
            continue
        allowed = (call.tolerance if tolerance is None else tolerance) * epsilon(g.dtype)
        g, w = wide(g), wide(w.astype(g.dtype))
        scale = max(1.0, float(np.max(np.abs(w), initial=0.0, where=np.isfinite(w))))
        np.testing.assert_allclose(g, w, rtol=allowed, atol=allowed * scale, err_msg=call.text)
        if signs:
            np.testing.assert_array_equal(
                np.signbit(g[w == 0]), np.signbit(w[w == 0]), err_msg=f"{call.text}: sign of zero"
            )


def run(call: Call, arrays: dict[str, Any]) -> list[Any]:
    return call(jnp, {n: jnp.asarray(x) for n, x in arrays.items()})


@contextlib.contextmanager
def named(call: Call):
    """Errors say which call of a program they are about."""
    try:
        yield
    except Exception as e:
        e.add_note(f"in {call.text}")
        raise


def lead_dtype(call: Call) -> str:
    """The dtype that most laws look at."""
    if "f" in call.kinds or not call.varying():
        return "float32"
    return {"c": "complex64", "i": "int32", "u": "uint32", "b": "bool"}[max(call.kinds, key="buic".index)]


LEADING = [row[0] for row in FUNCTIONS.values()]


@pytest.mark.parametrize("call", LEADING, ids=[c.text for c in LEADING])
def test_eager(call: Call):
    """One call of each function, on arrays that are there."""
    arrays = call.arrays(lead_dtype(call))
    compare(call, run(call, arrays), expected(call, arrays))


UNTRACED = [c for c in CALLS if c not in LEADING and not (c.is_traced and c.operands)]


@pytest.mark.parametrize("call", UNTRACED, ids=[c.text for c in UNTRACED])
def test_eager_where_results_depend_on_values(call: Call):
    arrays = call.arrays(lead_dtype(call))
    compare(call, run(call, arrays), expected(call, arrays))


def other_dtypes(call: Call) -> list[str]:
    if not call.varying():
        return []
    return [d for k in call.kinds for d in REPRESENTATIVE[k] if d != lead_dtype(call) and d not in call.but]


def is_swept(call: Call) -> bool:
    row = FUNCTIONS[call.covers]
    return bool(other_dtypes(call)) and (call is row[0] or call.kinds not in {c.kinds for c in row[: row.index(call)]})


SWEPT = [c for c in CALLS if is_swept(c)]


@functools.cache
def of_many_dtypes(call: Call) -> Any:
    """The call on several sets of arrays, in one program."""
    function = lambda many: [call(jnp, a) for a in many]
    return atled.jit(function) if call.is_traced else lambda many: [run(call, a) for a in many]


@pytest.mark.parametrize("call", SWEPT, ids=[c.text for c in SWEPT])
def test_all_kinds_of_dtypes(call: Call):
    """Ordinary numbers, and the smallest and largest integers: what wraps around does so as in NumPy."""
    ordinary = [call.arrays(d) for d in other_dtypes(call)]
    rng = np.random.RandomState(zlib.crc32(call.text.encode()) % 2**31)
    moving = [n for n in call.varying() if call.operands[n].is_special]
    extreme = [
        {n: rng.choice(EXTREME[d], x.shape).astype(d) if n in moving and d in EXTREME else x for n, x in a.items()}
        for d, a in zip(other_dtypes(call), ordinary, strict=True)
    ]
    for got, a in zip(of_many_dtypes(call)(ordinary), ordinary, strict=True):
        compare(call, got, expected(call, a), 4 * call.tolerance)
    if "extreme" in call.but or not call.is_traced:
        return
    for got, a in zip(of_many_dtypes(call)(extreme), extreme, strict=True):
        want = expected(call, a)
        if not any(is_inexact(w) for w in want):
            compare(call, got, want)


TRACED = {n: [c for c in row if c.is_traced and c.operands] for n, row in FUNCTIONS.items()}
TRACED = {n: row for n, row in TRACED.items() if row}


def last_of(call: Call) -> str:
    return list(call.operands)[-1]


@functools.cache
def program_of(name: str) -> Any:
    """All calls of a function: as they are, all operands in lanes, and the last one in lanes on its last axis."""

    def program(singles: Any, stacked: Any, last: Any) -> Any:
        out = []
        for c, single, many, at_end in zip(TRACED[name], singles, stacked, last, strict=True):
            with named(c):
                function = lambda arrays, c=c: [jnp.asarray(x) for x in c(jnp, arrays)]
                one_of_them = lambda x, s=single, f=function, c=c: f({**s, last_of(c): x})
                lanes = atled.vmap(function)(many), atled.vmap(one_of_them, in_axes=-1)(at_end)
                out.append((function(single), *lanes))
        return out

    return atled.jit(program)


def check_program(
    row: list[Call], lanes: list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]], leaves_out: Any = ()
) -> None:
    """Two sets of arrays for each call, of one signature: what comes out is NumPy's, lane by lane."""
    stacked = [{n: np.stack([a[n], b[n]]) for n in a} for a, b in lanes]
    last = [np.stack([a[last_of(c)], b[last_of(c)]], -1) for c, (a, b) in zip(row, lanes, strict=True)]
    got = program_of(row[0].covers)([a for a, _ in lanes], stacked, last)
    for c, (one, many, some), (a, b) in zip(row, got, lanes, strict=True):
        if c in leaves_out:
            continue
        want = [expected(c, arrays) for arrays in (a, b, {**a, last_of(c): b[last_of(c)]})]
        compare(c, one, want[0])
        for k in range(2):
            compare(c, [np.asarray(x)[k] for x in many], want[k])
            compare(c, [np.asarray(x)[k] for x in some], want[2 * k])


@pytest.mark.parametrize("name", TRACED)
def test_jit_and_vmap(name: str):
    check_program(TRACED[name], [tuple(c.arrays(lead_dtype(c), seed) for seed in range(2)) for c in TRACED[name]])


ELEMENTWISE = {c.covers for c in elementwise.ROWS if "f" in c.kinds and c.varying() and "special" not in c.but}
FLOATING = [n for n in TRACED if n in ELEMENTWISE]


@pytest.mark.parametrize("name", FLOATING)
def test_special_values(name: str):
    """NaN, infinities and zeros of both signs among the operands of elementwise functions; the program is the same."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)

    def drawn(c: Call) -> dict[str, np.ndarray]:
        arrays = c.arrays(lead_dtype(c))
        for n in c.varying():
            pool = SPECIAL[np.isnan(SPECIAL) | (c.operands[n].low <= SPECIAL)]
            if lead_dtype(c) == "float32" and c.operands[n].is_special and rng.rand() < 0.8:
                arrays[n] = rng.choice(pool, arrays[n].shape).astype("f4")
        return arrays

    for _ in range(EXAMPLES):
        leaves_out = [c for c in TRACED[name] if "special" in c.but]
        check_program(TRACED[name], [(drawn(c), drawn(c)) for c in TRACED[name]], leaves_out)


SMOOTH = {
    n: [c for c in row if c.is_smooth and c.is_traced and c.varying() and set(c.kinds) & set("fc")]
    for n, row in FUNCTIONS.items()
}
SMOOTH = {n: row for n, row in SMOOTH.items() if row}


def inexact(results: list[Any]) -> list[Any]:
    return [x for x in results if is_array(x) and (np.dtype(x.dtype).kind in "fc")]


def direction(rng: np.random.RandomState, call: Call, name: str, dtype: str) -> np.ndarray:
    """In which an operand is moved."""
    shape = call.operands[name].shape
    v = np.asarray(rng.uniform(-1, 1, shape) + (1j * rng.uniform(-1, 1, shape) if dtype[0] == "c" else 0))
    return v + np.conj(np.swapaxes(v, -1, -2)) if call.operands[name].is_symmetric else v


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_numpy(name: str):
    """Forward mode against central differences of NumPy's function, reverse mode against forward mode."""
    row = [
        (c, d)
        for c in SMOOTH[name]
        for d in ("float64", "complex128")
        if {"float64": "f", "complex128": "c"}[d] in c.kinds
    ]
    points, directions, wanted = [], [], []
    for c, dtype in row:
        x = c.arrays(dtype)
        rng = np.random.RandomState(zlib.crc32(c.text.encode()) % 2**31 + 9)
        v = {n: direction(rng, c, n, dtype) for n in c.varying()}
        step = 1e-6
        up, down = (inexact(expected(c, {**x, **{n: x[n] + s * step * v[n] for n in v}})) for s in (1, -1))
        wanted.append([np.asarray((np.asarray(p) - np.asarray(q)) / (2 * step)) for p, q in zip(up, down, strict=True)])
        points.append(x)
        directions.append(v)
    weights = [[np.asarray(np.cos(np.arange(w.size)).reshape(w.shape), w.dtype) for w in many] for many in wanted]

    def program(points: Any, directions: Any, weights: Any) -> Any:
        out = []
        for (c, _), x, v, u in zip(row, points, directions, weights, strict=True):
            with named(c):
                f = lambda moving, c=c, x=x: inexact(c(jnp, {**x, **moving}))
                at = {n: x[n] for n in v}
                _, forward = atled.jvp(f, (at,), (v,))
                values, pull = atled.vjp(f, at)
                (back,) = pull([jnp.asarray(w, y.dtype) for w, y in zip(u, values, strict=True)])
                out.append((forward, back))
        return out

    got = atled.jit(program)(points, directions, weights)
    for (c, _), (forward, back), want, v, u in zip(row, got, wanted, directions, weights, strict=True):
        loose = [(np.asarray(g), w) for g, w in zip(forward, want, strict=True)]
        for g, w in loose:
            assert g.shape == w.shape, c.text
            known = ~np.isnan(w)
            scale = max(1.0, float(np.max(np.abs(w), initial=0.0, where=known)))
            np.testing.assert_allclose(g[known], w[known], rtol=0, atol=1e-6 * scale, err_msg=c.text)
        left = sum(float(np.sum(w * np.asarray(g)).real) for w, g in zip(u, forward, strict=True))
        right = sum(float(np.sum(np.asarray(back[n]) * v[n]).real) for n in v)
        assert abs(left - right) <= 1e-8 * (1 + abs(left)), (
            f"{c.text}: reverse mode is not the adjoint: {left} and {right}"
        )


CHANGES = {
    "no rows": lambda s: (0, *s[1:]),
    "nothing in rows": lambda s: (*s[:-1], 0) if len(s) > 1 else s,
    "one number": lambda s: (),
}


def changed(call: Call, how: str) -> dict[str, np.ndarray] | None:
    arrays = call.arrays(lead_dtype(call))
    out = {}
    for n, x in arrays.items():
        shape = CHANGES[how](x.shape)
        out[n] = (
            x.reshape(-1)[0].reshape(())
            if shape == () and x.ndim
            else np.empty(shape, x.dtype)
            if shape != x.shape
            else x
        )
    return out if any(out[n].shape != arrays[n].shape for n in arrays) else None


@pytest.mark.parametrize("call", [c for c in LEADING if c.operands], ids=lambda c: c.text)
def test_empty_and_0d(call: Call):
    """Taken where NumPy takes them, with the same result; refused where it refuses them."""
    taken = []
    for how in CHANGES:
        arrays = changed(call, how)
        if arrays is None or how in call.but or "empty" in call.but:
            continue
        try:
            taken.append((arrays, expected(call, arrays)))
        except Exception:
            with pytest.raises((TypeError, ValueError, IndexError, ZeroDivisionError)):
                atled.eval_shape(lambda a: call(jnp, a), arrays) if call.is_traced else run(call, arrays)
                print(f"{call.text} takes {how}, which NumPy refuses")
    for got, (_, want) in zip(of_many_dtypes(call)([a for a, _ in taken]), taken, strict=True):
        compare(call, got, want)


def test_every_function_has_a_row():
    known = set(FUNCTIONS) | set(ELSEWHERE)
    assert [n for n in public_functions() if n not in known] == []
    assert [n for n in known if n not in public_functions()] == []
