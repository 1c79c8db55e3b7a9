"""The laws that every op obeys, for every row of the table and every dtype that the row names."""

from __future__ import annotations

import itertools
import warnings
import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cases import CASES, COLLECTIVES, MATRIX_FUNCTIONS, Case, draw

import atled
from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp, Op
from atled.core.program import Program
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.ops import random
from atled.ops.callback import Callback

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def ids(pairs: Any) -> list[str]:
    return [f"{c.name}-{d}" for c, d in pairs]


def results(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def is_inexact(x: Any) -> bool:
    return dtypes.is_known(np.dtype(x.dtype)) and dtypes.is_inexact(np.dtype(x.dtype))


def wide(x: np.ndarray) -> np.ndarray:
    """A copy in the widest dtype of its kind, to compute references in."""
    if is_inexact(x):
        return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return x


def epsilon(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtypes.real_part(np.dtype(dtype))).eps)


def close(got: Any, want: Any, tolerance: float) -> None:
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind == "V":
        got = got.astype(np.float64)
    if want.dtype.kind == "V":
        want = want.astype(np.float64)
    assert got.shape == want.shape, (got.shape, want.shape)
    scale = max(1.0, float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0))) if want.dtype.kind in "fc" else 1.0
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


def apply(case: Case, operands: Any) -> tuple[Any, ...]:
    if isinstance(case.op, random.UnwrapKey):  # its operand has no NumPy form
        operands = [random.wrap_key(x) for x in operands]
    return results(bind(case.op, *operands))


ALL = [(c, d) for c in CASES for d in c.dtypes]


@pytest.mark.parametrize(("case", "dtype"), ALL, ids=ids(ALL))
def test_value_and_type(case: Case, dtype: str):
    """The value is NumPy's, and the type is what `result_type` promised."""
    operands = case.operands(dtype)
    out = apply(case, operands)
    if not isinstance(case.op, random.UnwrapKey):
        promised = results(case.op.result_type(*[type_of(x) for x in operands]))
        assert [type_of(x) for x in out] == list(promised)
    if case.note == "no reference":
        return
    if isinstance(case.op, random.WrapKey):
        out = tuple(random.unwrap_key(x) for x in out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = results(case.reference(*[wide(x) if case.widens else x for x in operands]))
    for got, expected in zip(out, want, strict=True):
        host = np.asarray(got)
        if is_inexact(host):
            close(host, expected, case.tolerance * epsilon(host.dtype))
        else:
            np.testing.assert_array_equal(host, np.asarray(expected).astype(host.dtype))


FIRST = [(c, c.dtypes[0]) for c in CASES if c.shapes]


@pytest.mark.parametrize(("case", "dtype"), FIRST, ids=ids(FIRST))
def test_jit_changes_nothing(case: Case, dtype: str):
    operands = case.operands(dtype)
    eager = apply(case, operands)
    compiled = results(atled.jit(lambda *xs: apply(case, xs))(*operands))
    for a, b in zip(eager, compiled, strict=True):
        if type_of(a).kind == "k":
            a, b = random.unwrap_key(a), random.unwrap_key(b)
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


WIDEST = {"float64", "complex128"}
SMOOTH = [(c, d) for c in CASES for d in c.dtypes if d in WIDEST and c.has_jvp and c.shapes]


def inexact_positions(operands: Any) -> list[int]:
    return [i for i, x in enumerate(operands) if is_inexact(np.asarray(x))]


def on_positions(case: Case, operands: Any, positions: Any) -> Any:
    """The op as a function of some of its operands, giving its inexact results."""

    def f(*xs: Any) -> list[Any]:
        full = list(operands)
        for i, x in zip(positions, xs, strict=True):
            full[i] = x
        out = apply(case, full)
        if case.observe is not None:
            out = results(case.observe(*out))
        return [y for y in out if dtypes.is_inexact(type_of(y).dtype)]

    return f


def rng_of(case: Case) -> np.random.RandomState:
    return np.random.RandomState(zlib.crc32(case.note.encode() if not case.shapes else case.name.encode()) % 2**31 + 1)


def directions(case: Case, xs: Any) -> list[np.ndarray]:
    rng = rng_of(case)
    return [draw(rng, np.shape(x), np.asarray(x).dtype, -1, 1) for x in xs]


def difference(f: Any, xs: Any, vs: Any, step: float = 1e-6) -> list[np.ndarray]:
    """Central differences along a direction."""
    up = f(*[np.asarray(x + step * v) for x, v in zip(xs, vs, strict=True)])
    down = f(*[np.asarray(x - step * v) for x, v in zip(xs, vs, strict=True)])
    return [(np.asarray(a) - np.asarray(b)) / (2 * step) for a, b in zip(up, down, strict=True)]


@pytest.mark.parametrize(("case", "dtype"), SMOOTH, ids=ids(SMOOTH))
def test_jvp_is_the_derivative(case: Case, dtype: str):
    """Forward mode agrees with central differences, and reverse mode is its adjoint."""
    operands = case.operands(dtype)
    positions = inexact_positions(operands)
    f = on_positions(case, operands, positions)
    xs = [operands[i] for i in positions]
    if not f(*xs):
        return
    vs = directions(case, xs)
    _, tangents = atled.jvp(f, tuple(xs), tuple(vs))
    for got, want in zip(tangents, difference(f, xs, vs), strict=True):
        close(got, want, 2e-5)
    check_adjoint(case, f, xs, vs, tangents)


def pairing(a: Any, b: Any) -> float:
    """Re(sum(a * b)): the pairing of cotangents with tangents."""
    return float(np.real(np.sum(np.asarray(a) * np.asarray(b))))


def check_adjoint(case: Case, f: Any, xs: Any, vs: Any, tangents: Any) -> None:
    out, pull = atled.vjp(f, *xs)
    rng = rng_of(case)
    cts = [draw(rng, np.shape(y), np.asarray(y).dtype, -1, 1) for y in out]
    back = pull(cts)
    left = sum(pairing(c, t) for c, t in zip(cts, tangents, strict=True))
    right = sum(pairing(b, v) for b, v in zip(back, vs, strict=True))
    assert abs(left - right) <= 1e-8 * (1 + abs(left)), (left, right)


@pytest.mark.parametrize(("case", "dtype"), SMOOTH, ids=ids(SMOOTH))
def test_jvp_by_each_operand_alone(case: Case, dtype: str):
    """Tangents that are zero for the other operands."""
    operands = case.operands(dtype)
    positions = inexact_positions(operands)
    if len(positions) < 2:
        return
    for i in positions:
        f = on_positions(case, operands, [i])
        xs = [operands[i]]
        if not f(*xs):
            return
        vs = directions(case, xs)
        _, tangents = atled.jvp(f, tuple(xs), tuple(vs))
        for got, want in zip(tangents, difference(f, xs, vs), strict=True):
            close(got, want, 2e-5)
        check_adjoint(case, f, xs, vs, tangents)


@pytest.mark.parametrize(("case", "dtype"), SMOOTH, ids=ids(SMOOTH))
def test_nan_reaches_what_depends_on_it(case: Case, dtype: str):
    """A NaN on the way, forward or back, is in every element that would otherwise move: no zero wins over it."""
    operands = case.operands(dtype)
    positions = inexact_positions(operands)
    f = on_positions(case, operands, positions)
    xs = [operands[i] for i in positions]
    if not f(*xs):
        return
    rng = rng_of(case)
    out, pull = atled.vjp(f, *xs)
    ordinary = [draw(rng, np.shape(y), np.asarray(y).dtype, 0.5, 1) for y in out]
    check_nans(pull(ordinary), pull([nans_like(y) for y in out]))
    push = lambda ts: atled.jvp(f, tuple(xs), tuple(ts))[1]
    check_nans(push(directions(case, xs)), push([nans_like(x) for x in xs]))


def nans_like(x: Any) -> np.ndarray:
    return np.full_like(np.asarray(x), complex(np.nan, np.nan) if np.asarray(x).dtype.kind == "c" else np.nan)


def check_nans(ordinary: Any, bad: Any) -> None:
    for x, y in zip(ordinary, bad, strict=True):
        moves = np.abs(np.asarray(x)) > 1e-12  # what is less may be rounding
        assert np.isnan(np.asarray(y))[moves].all()


TWICE = [(c, d) for c, d in SMOOTH if c.is_twice]


@pytest.mark.parametrize(("case", "dtype"), TWICE, ids=ids(TWICE))
def test_laws_hold_twice(case: Case, dtype: str):
    """The derivative of the derivative, forward over forward and reverse over forward."""
    operands = case.operands(dtype)
    positions = inexact_positions(operands)
    f = on_positions(case, operands, positions)
    xs = [operands[i] for i in positions]
    if not f(*xs):
        return
    vs = directions(case, xs)
    g = lambda *ys: atled.jvp(f, ys, tuple(vs))[1]
    ws = [v[::-1].copy() if v.ndim else v for v in vs]
    _, tangents = atled.jvp(g, tuple(xs), tuple(ws))
    for got, want in zip(tangents, difference(g, xs, ws), strict=True):
        close(got, want, 1e-4)
    check_adjoint(case, g, xs, ws, tangents)


LINEAR = [(c, d) for c in CASES for d in c.dtypes if c.op.linear_groups(len(c.shapes)) and d in WIDEST]


@pytest.mark.parametrize(("case", "dtype"), LINEAR, ids=ids(LINEAR))
def test_transpose_is_the_adjoint(case: Case, dtype: str):
    """For every group of operands that the op is linear in, and for every part of a group alone."""
    operands = case.operands(dtype)
    for group in case.op.linear_groups(len(operands)):
        group = [i for i in group if is_inexact(np.asarray(operands[i]))]
        for positions in itertools.chain.from_iterable(itertools.combinations(group, n) for n in (len(group), 1)):
            fixed = [np.zeros_like(x) if i in group else x for i, x in enumerate(operands)]
            f = on_positions(case, fixed, positions)
            xs = [operands[i] for i in positions]
            out = f(*xs)
            if not out:
                return
            rng = rng_of(case)
            cts = [draw(rng, np.shape(y), np.asarray(y).dtype, -1, 1) for y in out]
            back = atled.linear_transpose(f, *xs)(cts)
            left = sum(pairing(c, y) for c, y in zip(cts, out, strict=True))
            right = sum(pairing(b, x) for b, x in zip(back, xs, strict=True))
            assert abs(left - right) <= 1e-8 * (1 + abs(left)), (group, left, right)
            doubled = f(*[np.asarray(2 * x) for x in xs])
            for y, z in zip(out, doubled, strict=True):
                close(z, 2 * np.asarray(y), 1e-10)


BATCHED = [(c, d) for c in CASES for d in c.dtypes[:1] if c.batches and c.shapes]


@pytest.mark.parametrize(("case", "dtype"), BATCHED, ids=ids(BATCHED))
def test_vmap_is_a_loop(case: Case, dtype: str):
    """For every choice of batched operands, and for batch axes in front and at the end; also twice."""
    rows = [case.operands(dtype, seed) for seed in range(2)]
    count = len(case.shapes)
    tolerance = 8 * case.tolerance * epsilon(dtype) if dtypes.is_inexact(np.dtype(dtype)) else 1e-6
    for chosen in itertools.product((False, True), repeat=count):
        if not any(chosen):
            continue
        lanes = [[rows[k][i] if chosen[i] else rows[0][i] for i in range(count)] for k in range(2)]
        want = [apply(case, lane) for lane in lanes]
        for at_end in (False, True):
            axes = [(rows[0][i].ndim if at_end else 0) if chosen[i] else None for i in range(count)]
            stacked = [np.stack([rows[0][i], rows[1][i]], axes[i]) if chosen[i] else rows[0][i] for i in range(count)]
            got = results(atled.vmap(lambda *xs: apply(case, xs), in_axes=tuple(axes))(*stacked))
            compare_lanes(got, want, tolerance)
        if all(chosen) and not isinstance(case.op, (random.WrapKey, random.UnwrapKey)):
            twice = [np.stack([s, s]) for s in (np.stack([rows[0][i], rows[1][i]]) for i in range(count))]
            out = results(atled.vmap(atled.vmap(lambda *xs: apply(case, xs)))(*twice))
            compare_lanes([x[0] for x in map(np.asarray, out)], want, tolerance)


def compare_lanes(got: Any, want: Any, tolerance: float) -> None:
    for n, x in enumerate(got):
        if isinstance(x, atled.Array) and type_of(x).kind == "k":
            x, lanes = random.unwrap_key(x), [random.unwrap_key(w[n]) for w in want]
        else:
            lanes = [w[n] for w in want]
        for lane, expected in zip(np.asarray(x), lanes, strict=True):
            close(lane, expected, tolerance)


GRAD = [(c, d) for c, d in SMOOTH if d == "float64" and c.batches]


@pytest.mark.parametrize(("case", "dtype"), GRAD, ids=ids(GRAD))
def test_vmap_of_grad_under_jit(case: Case, dtype: str):
    rows = [case.operands(dtype, seed) for seed in range(2)]
    positions = inexact_positions(rows[0])

    def gradients(*operands: Any) -> Any:
        def loss(*xs: Any) -> Any:
            out = on_positions(case, operands, positions)(*xs)
            from atled.ops import elementwise, reduction
            from atled.ops.conversion import real

            total = np.float64(0)
            for y in out:
                t = type_of(y)
                y = real(y) if t.kind == "c" else y
                total = elementwise.add(
                    reduction.reduce_sum(elementwise.mul(y, y), tuple(range(t.ndim))),
                    np.asarray(total) if not isinstance(total, atled.Array) else total,
                )
            return total

        if not on_positions(case, operands, positions)(*[operands[i] for i in positions]):
            return ()
        return atled.grad(loss, argnums=tuple(range(len(positions))))(*[operands[i] for i in positions])

    want = [gradients(*r) for r in rows]
    stacked = [np.stack([rows[0][i], rows[1][i]]) for i in range(len(rows[0]))]
    got = atled.jit(atled.vmap(gradients))(*stacked)
    for n, x in enumerate(got):
        for lane, w in zip(np.asarray(x), want, strict=True):
            close(lane, w[n], 1e-6)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", MATRIX_FUNCTIONS)
def test_functions_of_matrices(name: str, dtype: str):
    """Derivatives by the matrix of ops that take its decomposition along, twice, and batched."""
    f, shapes = MATRIX_FUNCTIONS[name]
    rng = np.random.RandomState(5)
    xs = [draw(rng, s, dtype) + (3 * np.eye(*s) if i == 0 else 0) for i, s in enumerate(shapes)]
    vs, ws = ([draw(rng, s, dtype) for s in shapes] for _ in range(2))
    case = Case(LinearOp, (), None, note=name)  # type: ignore[arg-type]
    g = lambda *a: [f(*a)]
    for h in (g, lambda *a: atled.jvp(g, a, tuple(vs))[1]):
        _, tangents = atled.jvp(h, tuple(xs), tuple(ws))
        close(tangents[0], difference(h, xs, ws)[0], 1e-5)
        check_adjoint(case, h, xs, ws, tangents)
    stacked = [np.stack([x, 2 * x]) for x in xs]
    close(atled.vmap(f)(*stacked), np.stack([np.asarray(f(*[2**i * x for x in xs])) for i in range(2)]), 1e-9)


def subclasses(cls: type) -> set[type]:
    found = set(cls.__subclasses__())
    return found.union(*(subclasses(c) for c in found))


def test_every_op_has_a_row():
    covered = {type(c.op) for c in CASES} | set(COLLECTIVES) | {Callback}  # tests/higher_order/test_callbacks.py
    first_order = {c for c in subclasses(Op) if c.__module__.startswith("atled.ops.")}
    families = {c for c in first_order if c.__subclasses__()}
    missing = sorted(c.__name__ for c in first_order - covered - families)
    assert not missing, f"no row in tests/ops/cases.py for {missing}"
    assert LinearOp not in covered


BAD = [
    ("Add", (2, 3), (3, 2), r"add: operands must have the same shape.*f32\[2,3\] and f32\[3,2\]"),
    ("Reshape", (2, 3), (4,), r"reshape: the number of elements must stay the same"),
    ("DotGeneral", (2, 3), (4, 5), r"dot: axis 1 of f32\[2,3\] and axis 0 of f32\[4,5\]"),
    ("Concatenate", (2, 2), (3, 3), r"concatenate: operands must have equal shapes except along axis 0"),
    ("ReduceSum", (2, 3), (), r"reduce_sum: axes must be different axes of"),
    ("Cholesky", (2, 3), (), r"cholesky: expected square matrices"),
]


@pytest.mark.parametrize(("name", "a", "b", "message"), BAD, ids=[b[0] for b in BAD])
def test_bad_operands_say_what_is_wrong(name: str, a: Any, b: Any, message: str):
    from atled.ops import contraction, elementwise, linalg, reduction, shape

    x, y = np.zeros(a, "f4"), np.zeros(b, "f4")
    call = {
        "Add": lambda: elementwise.add(x, y),
        "Reshape": lambda: shape.reshape(x, b),
        "DotGeneral": lambda: contraction.dot_general(x, y, ((1,), (0,))),
        "Concatenate": lambda: shape.concatenate([x, y], 0),
        "ReduceSum": lambda: reduction.reduce_sum(x, (5,)),
        "Cholesky": lambda: bind(linalg.Cholesky(), x),
    }[name]
    with pytest.raises(TypeError, match=message):
        call()


def test_wrong_dtypes_are_refused():
    from atled.ops import elementary, elementwise

    with pytest.raises(TypeError, match=r"sin: operands must be floating or complex; got i32\[3\]"):
        elementary.sin(np.zeros(3, "i4"))
    with pytest.raises(TypeError, match="add: operands must have the same dtype"):
        elementwise.add(np.zeros(3, "i4"), np.zeros(3, "f4"))


def test_a_missing_rule_says_so():
    class Silent(Op):
        def result_type(self, x: ArrayType) -> ArrayType:
            return x

        def lower(self, build: Any, x: Any) -> Any:
            return x

    x = np.ones(3, "f4")
    np.testing.assert_array_equal(np.asarray(bind(Silent(), x)), x)
    with pytest.raises(NotImplementedError, match="Silent has no 'jvp' rule; differentiation needs it"):
        atled.jvp(lambda v: bind(Silent(), v), (x,), (x,))
    with pytest.raises(NotImplementedError, match="Silent has no 'batch' rule; vmap needs it"):
        atled.vmap(lambda v: bind(Silent(), v))(np.ones((2, 3), "f4"))
    assert isinstance(atled.make_program(lambda v: bind(Silent(), v))(x), Program)
