"""One row per op and shape. Every law of `test_laws.py` holds for every row, and every op class has one.

A row names the op, the shapes of its operands, and a NumPy or SciPy function that computes the same.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import scipy.linalg
import scipy.special

from atled.core.op import Op
from atled.core.trace import bind
from atled.ops import (
    collectives,
    contraction,
    conversion,
    convolution,
    cumulative,
    elementary,
    elementwise,
    fft,
    indexing,
    linalg,
    nonsymmetric_eigen,
    normalization,
    placement,
    random,
    range_check,
    reduction,
    shape,
    solvers,
    sorting,
    special,
    window_reductions,
)  # fmt: skip
from atled.ops import matrix_ops as matrices_ops

FLOATS = ("float32", "float64", "bfloat16", "float16")
WIDE = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("int32", "uint8", "int64")
KINDS = {"f": FLOATS, "c": COMPLEX, "i": ("int32", "int8", "int64"), "u": ("uint8", "uint32"), "b": ("bool",)}


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the table."""

    op: Op
    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Any]
    domain: tuple[float, float] = (-2.0, 2.0)
    dtypes: tuple[str, ...] = ("float32", "float64")
    make: Callable[[np.random.RandomState, Any], Sequence[Any]] | None = None  # operands, where drawing is not enough
    tolerance: float = 8.0  # in units of the dtype's precision
    has_jvp: bool = True
    is_twice: bool = True  # the second derivative is worth a look
    batches: bool = True
    widens: bool = True  # the reference is computed in the widest dtype
    observe: Callable[..., Any] | None = (
        None  # smooth functions of the results, where these are only fixed up to a phase
    )
    note: str = ""

    @property
    def name(self) -> str:
        shapes = "_".join("x".join(map(str, s)) or "0d" for s in self.shapes)
        extra = "-".join(str(p) for p in self.op.parameters if isinstance(p, (str, int, bool)))
        return f"{type(self.op).__name__}[{shapes}]{extra}{self.note}"

    def operands(self, dtype: str, seed: int = 0) -> list[np.ndarray]:
        """Operands of a dtype, the same at every run."""
        rng = np.random.RandomState(zlib.crc32(self.name.encode()) % 2**31 + seed)
        if self.make is not None:
            return [np.asarray(x) for x in self.make(rng, np.dtype(dtype))]
        return [draw(rng, s, dtype, *self.domain) for s in self.shapes]


def draw(rng: np.random.RandomState, shape: tuple[int, ...], dtype: Any, low: float = -2.0, high: float = 2.0) -> Any:
    """Numbers of any dtype; always an array, because NumPy's scalars are weak."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.rand(*shape) > 0.5)
    if dtype.kind in "iu":
        return np.asarray(rng.randint(0 if dtype.kind == "u" else -5, 6, shape), dtype)
    if dtype.kind == "c":
        return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape), dtype)
    return np.asarray(rng.uniform(low, high, shape), dtype)


def of_kinds(kinds: str) -> tuple[str, ...]:
    return tuple(itertools.chain.from_iterable(KINDS.get(k, ()) for k in kinds))


def unary(op: Op, reference: Callable[..., Any], domain: tuple[float, float] = (-2, 2), **more: Any) -> Case:
    more.setdefault("dtypes", of_kinds(type(op).takes))
    return Case(op, ((2, 3),), reference, domain, **more)


def binary(op: Op, reference: Callable[..., Any], domain: tuple[float, float] = (-2, 2), **more: Any) -> list[Case]:
    more.setdefault("dtypes", of_kinds(type(op).takes))
    return [Case(op, s, reference, domain, **more) for s in (((2, 3), (2, 3)), ((), (2, 3)), ((2, 3), ()))]


ew, el, sp = elementwise, elementary, special
INTEGER_SAFE = {"i": 1}


def nonzero(*shapes: tuple[int, ...]) -> Callable[..., Any]:
    """Operands away from zero, for divisions of all dtypes."""

    def make(rng: np.random.RandomState, dtype: Any) -> list[Any]:
        out = []
        for s in shapes:
            x = draw(rng, s, dtype)
            out.append(np.asarray(np.where(np.abs(x) < 0.5, np.asarray(1.5, dtype), x), dtype))
        return out

    return make


def c_div(x: Any, y: Any) -> Any:
    return np.trunc(x / y) if np.asarray(x).dtype.kind in "iu" else x / y


ARITHMETIC = [
    unary(ew.Neg(), np.negative),
    *binary(ew.Add(), np.add),
    *binary(ew.Sub(), np.subtract),
    *binary(ew.Mul(), np.multiply),
    *binary(ew.Slope(), np.multiply),
    *[Case(ew.Div(), s, c_div, make=nonzero(*s), dtypes=of_kinds("iufc")) for s in (((2, 3), (2, 3)), ((), (3,)), ((3,), ()))],
    *[unary(ew.IntegerPow(n), lambda x, n=n: np.asarray(x, np.result_type(x, np.float64)) ** n, (0.5, 2), dtypes=WIDE + COMPLEX)
      for n in (-2, 0, 1, 2, 3, 7)],
    *binary(ew.Max(), np.maximum, dtypes=of_kinds("biuf")),
    unary(ew.Relu(), lambda x: np.maximum(x, 0), dtypes=of_kinds("iuf")),
    *binary(ew.Min(), np.minimum, dtypes=of_kinds("biuf")),
    Case(ew.Clamp(), ((), (2, 3), ()), lambda lo, x, hi: np.clip(x, lo, hi), dtypes=of_kinds("iuf"),
         make=lambda r, d: [np.asarray(0, d), draw(r, (2, 3), d), np.asarray(1, d)]),
    Case(ew.Clamp(), ((3,), (3,), (3,)), lambda lo, x, hi: np.clip(x, lo, hi), dtypes=WIDE,
         make=lambda r, d: [draw(r, (3,), d, -2, -1), draw(r, (3,), d, -3, 3), draw(r, (3,), d, 1, 2)]),
    unary(ew.StopGradient(), lambda x: x, dtypes=("float32", "int32"), has_jvp=False),
]  # fmt: skip

LOGIC = [
    *[c for d, f in {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}.items()
      for c in binary(ew.Compare(d), f, dtypes=of_kinds("biuf" if d not in ("EQ", "NE") else "biufc"))],
    *binary(ew.And(), np.bitwise_and),
    *binary(ew.Or(), np.bitwise_or),
    *binary(ew.Xor(), np.bitwise_xor),
    unary(ew.Not(), np.invert),
    unary(ew.PopulationCount(), lambda x: np.vectorize(lambda v, w=x.dtype.itemsize * 8: bin(int(v) & (1 << w) - 1).count("1"))(x)),
    unary(ew.CountLeadingZeros(), lambda x: np.vectorize(lambda v, w=x.dtype.itemsize * 8: w - (int(v) & (1 << w) - 1).bit_length())(x)),
    *[c for o, f in ((ew.ShiftLeft(), np.left_shift), (ew.ShiftRightArithmetic(), np.right_shift))
      for c in [Case(o, ((2, 3), (2, 3)), f, dtypes=("int32", "int8"), make=lambda r, d: [draw(r, (2, 3), d), r.randint(0, 4, (2, 3)).astype(d)])]],
    Case(ew.ShiftRightLogical(), ((2, 3), (2, 3)), np.right_shift, dtypes=("uint8", "uint32"),
         make=lambda r, d: [r.randint(0, 200, (2, 3)).astype(d), r.randint(0, 4, (2, 3)).astype(d)]),
    *[Case(op(), (p, x, y), lambda p, x, y: np.where(p, x, y), dtypes=of_kinds("biufc"),
           make=lambda r, d, p=p, x=x, y=y: [r.rand(*p) > 0.5, draw(r, x, d), draw(r, y, d)])
      for op in (ew.Select, *ew.GATES)
      for p, x, y in (((2, 3), (2, 3), (2, 3)), ((), (2, 3), (2, 3)), ((2, 3), (), (2, 3)), ((2, 3), (), ()), ((2, 3), (2, 3), ()))],
]  # fmt: skip

NARROW = ("float8_e4m3fn", "float8_e5m2", "int4", "uint4")
CONVERSION = [
    *[Case(conversion.Convert(np.dtype(d)), ((2, 3),), lambda x, d=d: np.asarray(x).astype(d) if d != "bool" else np.asarray(x) != 0,
           dtypes=("float32", "int32", "bfloat16", "uint8", "bool"), domain=(0, 4), make=lambda r, t: [np.abs(draw(r, (2, 3), t)).astype(t)])
      for d in ("float64", "float32", "float16", "bfloat16", "int8", "int32", "uint8", "bool", "complex64")],
    *[Case(conversion.Convert(np.dtype(getattr(ml_dtypes, d))), ((2, 3),), lambda x, d=d: np.asarray(x).astype(getattr(ml_dtypes, d)),
           dtypes=("float32",), make=lambda r, t: [r.randint(0, 4, (2, 3)).astype(t)], has_jvp="float" in d, is_twice=False, note=d) for d in NARROW],
    Case(conversion.BitcastConvert(np.dtype("int32")), ((2, 3),), lambda x: x.view("int32"), dtypes=("float32",), widens=False),
    Case(conversion.BitcastConvert(np.dtype("uint8")), ((2, 3),), lambda x: x.view("uint8").reshape(2, 3, 4), dtypes=("float32", "uint32"), widens=False),
    Case(conversion.BitcastConvert(np.dtype("uint32")), ((2, 4),), lambda x: x.view("uint32").reshape(2), dtypes=("uint8",)),
    Case(conversion.ReducePrecision(8, 7), ((2, 3),), lambda x: x.astype(ml_dtypes.bfloat16).astype(x.dtype), dtypes=("float32",), has_jvp=False),
    unary(conversion.Real(), np.real),
    unary(conversion.Imag(), np.imag),
    *binary(conversion.Complex(), lambda x, y: x + 1j * y, dtypes=WIDE),
    unary(conversion.Conj(), np.conj),
]  # fmt: skip

ELEMENTARY = [
    *[Case(el.Rem(), s, np.fmod, make=lambda r, d, s=s: [draw(r, s[0], d, -3, 3), np.asarray(draw(r, s[1], d, 0.7, 0.9) if d.kind == "f" else np.full(s[1], 2), d)],
            dtypes=("int32", "float32", "float64")) for s in (((2, 3), (2, 3)), ((3,), ()))],
    *binary(el.Pow(), np.power, (0.3, 2)),
    unary(el.Sign(), np.sign),
    unary(el.Abs(), np.abs),
    unary(el.Floor(), np.floor),
    unary(el.Ceil(), np.ceil),
    unary(el.RoundNearestEven(), np.round),
    unary(el.RoundAwayFromZero(), lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5)),
    unary(el.IsFinite(), np.isfinite),
    Case(el.NextAfter(), ((2, 3), (2, 3)), np.nextafter, dtypes=WIDE),
    unary(el.Exp(), np.exp),
    unary(el.Expm1(), np.expm1),
    unary(el.Log(), np.log, (0.2, 3)),
    unary(el.Log1p(), np.log1p, (-0.6, 3)),
    unary(el.Sin(), np.sin),
    unary(el.Cos(), np.cos),
    unary(el.Tan(), np.tan, (-1, 1)),
    unary(el.Tanh(), np.tanh),
    unary(el.Logistic(), scipy.special.expit, dtypes=FLOATS),
    unary(el.Sqrt(), np.sqrt, (0.3, 3)),
    unary(el.Rsqrt(), lambda x: 1 / np.sqrt(x), (0.3, 3)),
    unary(el.Cbrt(), np.cbrt, (0.3, 3)),
    unary(el.Exp2(), np.exp2),
    unary(el.Sinh(), np.sinh),
    unary(el.Cosh(), np.cosh),
    unary(el.Asin(), np.arcsin, (-0.8, 0.8)),
    unary(el.Acos(), np.arccos, (-0.8, 0.8)),
    unary(el.Atan(), np.arctan, (-0.9, 0.9)),
    unary(el.Asinh(), np.arcsinh, (-0.9, 0.9)),
    unary(el.Acosh(), np.arccosh, (1.2, 3)),
    unary(el.Atanh(), np.arctanh, (-0.7, 0.7)),
    *binary(el.Atan2(), np.arctan2, (0.3, 2), dtypes=FLOATS),
    *binary(el.Hypot(), np.hypot, dtypes=FLOATS),
]  # fmt: skip

SPECIAL = [
    unary(sp.Entr(), scipy.special.entr, (0.2, 3), dtypes=FLOATS),
    unary(sp.Erf(), scipy.special.erf, dtypes=WIDE),
    unary(sp.Erfc(), scipy.special.erfc, dtypes=WIDE),
    unary(sp.ErfInv(), scipy.special.erfinv, (-0.8, 0.8), dtypes=WIDE, tolerance=16),
    unary(sp.Ndtr(), scipy.special.ndtr, dtypes=WIDE),
    unary(sp.LogNdtr(), scipy.special.log_ndtr, dtypes=WIDE),
    *binary(sp.LogAddExp(True), np.logaddexp, dtypes=WIDE),
    *binary(sp.LogAddExp(False), np.logaddexp, dtypes=WIDE),
    unary(sp.Lgamma(), scipy.special.gammaln, (0.5, 4), dtypes=WIDE),
    unary(sp.Digamma(), scipy.special.digamma, (0.5, 4), dtypes=WIDE),
    Case(sp.Polygamma(), ((2, 3), (2, 3)), lambda m, x: scipy.special.polygamma(np.asarray(m, int), x), dtypes=WIDE, tolerance=256,
         make=lambda r, d: [r.randint(1, 3, (2, 3)).astype(d), draw(r, (2, 3), d, 0.5, 3)], has_jvp=False),
    Case(sp.Zeta(), ((2, 3), (2, 3)), scipy.special.zeta, dtypes=WIDE, tolerance=64,
         make=lambda r, d: [draw(r, (2, 3), d, 1.5, 3), draw(r, (2, 3), d, 0.5, 3)], has_jvp=False),
    unary(sp.BesselI0e(), scipy.special.i0e, dtypes=WIDE),
    unary(sp.BesselI0e(), scipy.special.i0e, (7, 30), dtypes=WIDE, note="far"),
    unary(sp.BesselI1e(), scipy.special.i1e, (0.2, 3), dtypes=WIDE, tolerance=32),
]  # fmt: skip

S = shape
SHAPE = [
    Case(S.Reshape((3, 2)), ((2, 3),), lambda x: x.reshape(3, 2), dtypes=of_kinds("biufc")),
    Case(S.Broadcast((4, 2, 3), (1, 2)), ((2, 3),), lambda x: np.broadcast_to(x, (4, 2, 3)), dtypes=of_kinds("biufc")),
    Case(S.Broadcast((2, 4, 3), (0, 2)), ((2, 1),), lambda x: np.broadcast_to(x[:, None], (2, 4, 3)), note="stretched"),
    Case(S.Broadcast((2, 3), ()), ((),), lambda x: np.broadcast_to(x, (2, 3)), note="scalar"),
    Case(S.Transpose((2, 0, 1)), ((2, 3, 4),), lambda x: x.transpose(2, 0, 1), dtypes=of_kinds("biufc")),
    Case(S.Concatenate(1), ((2, 1), (2, 3), (2, 2)), lambda *xs: np.concatenate(xs, 1), dtypes=of_kinds("biufc")),
    Case(S.Split((1, 0, 3), 1), ((2, 4),), lambda x: tuple(np.split(x, [1, 1], 1)), dtypes=of_kinds("biufc")),
    Case(S.Pad(((1, 2, 0), (0, 1, 2))), ((2, 3), ()), lambda x, v: _pad(x, v, ((1, 2, 0), (0, 1, 2))), dtypes=of_kinds("biufc")),
    Case(S.Pad(((-1, 2, 1), (1, -1, 0))), ((3, 3), ()), lambda x, v: _pad(x, v, ((-1, 2, 1), (1, -1, 0))), note="negative"),
    Case(S.Reverse((0, 2)), ((2, 3, 4),), lambda x: x[::-1, :, ::-1], dtypes=of_kinds("biufc")),
    Case(S.Slice((0, 1), (3, 4), (2, 1)), ((4, 5),), lambda x: x[0:3:2, 1:4], dtypes=of_kinds("biufc")),
    Case(S.Slice((1, 0), (4, 2), (3, 1)), ((5, 2),), lambda x: x[1:4:3, 0:2], note="stride"),
    Case(S.Iota((2, 3), np.dtype("float32"), 1), (), lambda: np.broadcast_to(np.arange(3.0), (2, 3)), has_jvp=False, batches=False),
    Case(S.Constant(np.arange(6.0).tobytes(), (2, 3), np.dtype("float64")), (), lambda: np.arange(6.0).reshape(2, 3), has_jvp=False, batches=False),
    Case(S.OptimizationBarrier(), ((2, 3), (3,)), lambda *xs: xs),
]  # fmt: skip


def _pad(x: Any, value: Any, padding: Any) -> np.ndarray:
    for axis, (lo, hi, interior) in enumerate(padding):
        x = np.moveaxis(x, axis, 0)
        n = len(x)
        wide = np.full((n + max(n - 1, 0) * interior, *x.shape[1:]), value, x.dtype)
        wide[:: interior + 1] = x
        parts = [
            np.full((max(lo, 0), *x.shape[1:]), value, x.dtype),
            wide,
            np.full((max(hi, 0), *x.shape[1:]), value, x.dtype),
        ]
        x = np.concatenate(parts)[max(-lo, 0) :]
        x = np.moveaxis(x[: len(x) - max(-hi, 0)], 0, axis)
    return x


R = reduction
REDUCTION = [
    *[Case(R.ReduceSum(a), ((2, 3, 4),), lambda x, a=a: np.sum(x, a), dtypes=("int32", "uint8", *WIDE, *COMPLEX)) for a in ((0,), (0, 2), (0, 1, 2))],
    *[Case(R.ReduceProd(a), ((2, 3, 2),), lambda x, a=a: np.prod(x, a), dtypes=("int32", *WIDE, *COMPLEX)) for a in ((1,), (0, 2))],
    Case(R.ReduceProd((0,)), ((3,),), lambda x: np.prod(x, 0), dtypes=("float64",), make=lambda r, d: [np.array([2.0, 0.0, 3.0], d)], note="zero"),
    *[Case(R.ReduceMax(a), ((2, 3, 4),), lambda x, a=a: np.max(x, a), dtypes=of_kinds("biuf")) for a in ((1,), (0, 2))],
    *[Case(R.ReduceMin(a), ((2, 3, 4),), lambda x, a=a: np.min(x, a), dtypes=of_kinds("biuf")) for a in ((1,), (0, 2))],
    Case(R.ReduceAnd((1,)), ((2, 3),), lambda x: np.bitwise_and.reduce(x, 1), dtypes=("bool", "int32", "uint8")),
    Case(R.ReduceOr((1,)), ((2, 3),), lambda x: np.bitwise_or.reduce(x, 1), dtypes=("bool", "int32", "uint8")),
    Case(R.ReduceXor((1,)), ((2, 3),), lambda x: np.bitwise_xor.reduce(x, 1), dtypes=("bool", "int32", "uint8")),
    Case(R.Argmax(1, np.dtype("int32")), ((2, 5),), lambda x: np.argmax(x, 1), dtypes=of_kinds("biuf")),
    Case(R.Argmin(0, np.dtype("int32")), ((4, 3),), lambda x: np.argmin(x, 0), dtypes=of_kinds("biuf")),
    *[Case(op(a, np.dtype("int32")), ((67, 66),), lambda x, a=a, f=f: f(x, a), dtypes=("bool", "int8", "float32", "bfloat16"), note="long") for a in (0, 1) for op, f in ((R.Argmax, np.argmax), (R.Argmin, np.argmin))],
    Case(R.Argmax(0, np.dtype("int32")), ((5,),), lambda x: np.argmax(x, 0), dtypes=("float32",), make=lambda r, d: [np.array([1, np.nan, 3, np.nan, 2], d)], note="nan"),
]  # fmt: skip

C = cumulative
CUMULATIVE = [
    *[Case(op(axis, rev), ((n, 3),), lambda x, f=f, axis=axis, rev=rev: _turned(f, x, axis, rev), dtypes=dt)
      for op, f, dt in (
          (C.Cumsum, np.cumsum, ("int32", *WIDE, *COMPLEX)),
          (C.Cumprod, np.cumprod, ("int32", *WIDE, *COMPLEX)),
          (C.Cummax, np.maximum.accumulate, ("int32", *WIDE)),
          (C.Cummin, np.minimum.accumulate, ("uint8", *WIDE)),
          (C.Cumlogsumexp, lambda x, axis: np.logaddexp.accumulate(x, axis), WIDE),
      ) for n, axis, rev in ((5, 0, False), (4, 0, True), (1, 1, False))],
]  # fmt: skip


def _turned(f: Any, x: Any, axis: int, is_reversed: bool) -> Any:
    return np.flip(f(np.flip(x, axis), axis=axis), axis) if is_reversed else f(x, axis=axis)


D = contraction.DotGeneral
NUMBERS = ("int32", "uint8", *FLOATS, *COMPLEX)
CONTRACTION = [
    Case(D(((1,), (0,)), ((), ())), ((2, 3), (3, 4)), lambda x, y: x @ y, dtypes=NUMBERS),
    Case(D(((2,), (1,)), ((0,), (0,))), ((2, 3, 4), (2, 4, 5)), lambda x, y: x @ y, dtypes=("float32", "complex64", "float64")),
    Case(D(((0, 2), (2, 0)), ((1,), (1,))), ((2, 3, 4), (4, 3, 2)), lambda x, y: np.einsum("abc,cba->b", x, y)),
    Case(D(((2, 0), (1, 3)), ((), ())), ((2, 3, 4), (5, 4, 6, 2)), lambda x, y: np.einsum("abc,dcea->bde", x, y)),
    Case(D(((), ()), ((), ())), ((2,), (3,)), lambda x, y: np.outer(x, y)),
    Case(D(((1,), (0,)), ((), ()), "HIGHEST", np.dtype("float32")), ((2, 3), (3, 4)), lambda x, y: np.asarray(x, "f4") @ np.asarray(y, "f4"),
         dtypes=("bfloat16", "float16", "int8"), has_jvp=False, note="wide"),
]  # fmt: skip

G, GA, SA = indexing.Gather, indexing.GatherAxes, indexing.ScatterAxes


def _indexed(x_shape: Any, index: Any, updates: Any = None) -> Callable[..., Any]:
    def make(rng: np.random.RandomState, dtype: Any) -> list[Any]:
        out = [draw(rng, x_shape, dtype), np.array(index, np.int32)]
        return out if updates is None else [*out, draw(rng, updates, dtype)]

    return make


def _gather_rows(mode: str) -> Case:
    index = [[0], [3], [7], [-2]]

    def reference(x: Any, i: Any) -> Any:
        inside = (i[:, 0] >= 0) & (i[:, 0] < 4)
        rows = np.take(x, np.clip(i[:, 0], 0, 3), 0)
        return rows if mode == "clip" else np.where(inside[:, None], rows, np.asarray(-1, x.dtype))

    return Case(G(GA((1,), (0,), (0,)), (1, 3), mode, -1), ((4, 3), (4, 1)), reference, make=_indexed((4, 3), index),
                dtypes=("float32", "float64", "int32", "complex64"), note=mode)  # fmt: skip


def _scatter_rows(combine: str, mode: str, f: Any, index: Any, dtypes: Any = WIDE) -> Case:
    def reference(x: Any, i: Any, u: Any) -> Any:
        out = x.copy()
        for k, row in zip(i[:, 0], u, strict=True):
            if mode == "clip":
                k = np.clip(k, 0, 3)
            if 0 <= k < 4:
                out[k] = f(out[k], row)
        return out

    op = indexing.Scatter(SA((1,), (0,), (0,)), combine, mode)
    return Case(op, ((4, 3), (len(index), 1), (len(index), 3)), reference, make=_indexed((4, 3), index, (len(index), 3)),
                dtypes=dtypes, note=f"{combine}-{mode}-{len(index)}")  # fmt: skip


REPEATED, APART = [[1], [1], [3], [9], [-1]], [[2], [0]]
INDEXING = [
    _gather_rows("clip"),
    _gather_rows("fill"),
    Case(G(GA((0, 1), (), (0, 1)), (2, 2)), ((4, 5), (2,)), lambda x, i: x[i[0]:i[0] + 2, i[1]:i[1] + 2], make=_indexed((4, 5), [1, 2]), note="window"),
    Case(G(GA((), (0, 1), (0, 1)), (1, 1), "promise"), ((4, 5), (3, 2)), lambda x, i: x[i[:, 0], i[:, 1]], make=_indexed((4, 5), [[0, 4], [3, 1], [0, 4]]), note="points"),
    Case(G(GA((), (1,), (1,), (0,), (0,)), (1, 1)), ((3, 4), (3, 2, 1)), lambda x, i: np.take_along_axis(x, i[..., 0], 1), make=_indexed((3, 4), [[[0], [1]], [[3], [3]], [[2], [0]]]), note="along"),
    _scatter_rows("add", "drop", lambda a, b: a + b, REPEATED, ("float32", "float64", "int32", "complex64")),
    _scatter_rows("add", "clip", lambda a, b: a + b, REPEATED),
    _scatter_rows("set", "drop", lambda a, b: b, REPEATED, ("float32", "float64", "int32", "bool")),
    _scatter_rows("set", "drop", lambda a, b: b, APART),
    _scatter_rows("mul", "drop", lambda a, b: a * b, REPEATED, ("float32", "float64", "int32")),
    _scatter_rows("min", "drop", np.minimum, REPEATED, ("float32", "float64", "int32")),
    _scatter_rows("max", "drop", np.maximum, REPEATED, ("float32", "float64", "int32")),
    Case(indexing.DynamicSlice((2, 3)), ((4, 5), (), ()), lambda x, i, j: x[2:4, 1:4], make=lambda r, d: [draw(r, (4, 5), d), np.int32(3), np.int32(1)],
         dtypes=("float32", "float64", "int32", "bool")),
    Case(indexing.DynamicUpdateSlice(), ((4, 5), (2, 3), (), ()), lambda x, u, i, j: _put(x, u),
         make=lambda r, d: [draw(r, (4, 5), d), draw(r, (2, 3), d), np.int32(1), np.int32(9)], dtypes=("float32", "float64", "int32", "bool")),
]  # fmt: skip


def _put(x: Any, u: Any) -> Any:
    x = x.copy()
    x[1:3, 2:5] = u
    return x


SORTING = [
    *[Case(sorting.Sort(a), ((4, 3),), lambda x, a=a: np.sort(x, a), dtypes=("int32", "uint8", "bool", *WIDE)) for a in (0, 1)],
    *[Case(sorting.Sort(a), ((70, 65),), lambda x, a=a: np.sort(x, a), dtypes=("uint16", "float16", "bfloat16", "float32"), has_jvp=False, note="long") for a in (0, 1)],
    *[Case(sorting.Sort(0), ((70,), (70,)), lambda x, y: [v[np.argsort(x, kind="stable")] for v in (x, y)], dtypes=("bool", "int8", "int32", "uint32", "float16", "float32"), has_jvp=False, note="long, two")],
    Case(sorting.Sort(0), ((6,),), np.sort, dtypes=("float32",), make=lambda r, d: [np.array([3, np.nan, -1, np.inf, -np.inf, np.nan], d)], has_jvp=False, note="nan"),
    Case(sorting.Sort(0, 2), ((6,), (6,), (6,)), lambda a, b, c: [v[np.lexsort((b, a))] for v in (a, b, c)], dtypes=("float64",),
         make=lambda r, d: [r.randint(0, 2, 6).astype(d), draw(r, (6,), d), draw(r, (6,), d)], has_jvp=False),
    Case(sorting.Sort(0), ((5,),), np.sort, dtypes=COMPLEX, is_twice=False),
    Case(sorting.TopK(2), ((3, 5),), lambda x: (np.sort(x)[:, ::-1][:, :2], np.argsort(-x.astype(float), kind="stable")[:, :2]), dtypes=("float32", "float64", "int32"),
         make=lambda r, d: [r.permutation(15).reshape(3, 5).astype(d)]),
]  # fmt: skip

F = fft.Fft
FFT = [
    *[Case(F("FFT", (n,)), ((3, n),), np.fft.fft, dtypes=COMPLEX) for n in (4, 5)],
    Case(F("IFFT", (4,)), ((3, 4),), np.fft.ifft, dtypes=COMPLEX),
    *[Case(F("RFFT", (n,)), ((3, n),), np.fft.rfft, dtypes=WIDE) for n in (4, 5)],
    *[Case(F("IRFFT", (n,)), ((3, n // 2 + 1),), lambda x, n=n: np.fft.irfft(x, n), dtypes=COMPLEX) for n in (4, 5)],
    Case(F("FFT", (2, 3, 4)), ((2, 3, 4),), np.fft.fftn, dtypes=COMPLEX),
    Case(F("RFFT", (4, 5)), ((4, 5),), np.fft.rfft2, dtypes=WIDE),
    Case(F("IRFFT", (4, 6)), ((4, 4),), lambda x: np.fft.irfft2(x, (4, 6)), dtypes=COMPLEX),
]  # fmt: skip


def _conv_reference(op: Any) -> Callable[..., Any]:
    """Convolution by its definition, one output element at a time."""

    def dilate(x: Any, rates: Any) -> Any:
        out = np.zeros((*x.shape[:2], *[(n - 1) * r + 1 for n, r in zip(x.shape[2:], rates, strict=True)]), x.dtype)
        out[(slice(None), slice(None), *[slice(None, None, r) for r in rates])] = x
        return out

    def f(x: Any, k: Any) -> Any:
        x, k = np.transpose(x, op.axes.x), np.transpose(k, op.axes.kernel)
        x = dilate(x, op.x_dilation)
        x = np.pad(x, [(0, 0), (0, 0), *[(max(lo, 0), max(hi, 0)) for lo, hi in op.padding]])
        x = x[
            (
                slice(None),
                slice(None),
                *[slice(max(-lo, 0), n - max(-hi, 0)) for n, (lo, hi) in zip(x.shape[2:], op.padding, strict=True)],
            )
        ]
        k = dilate(k, op.kernel_dilation)
        n, o = x.shape[0] // op.batch_groups, k.shape[0]
        dims = [(a - b) // s + 1 for a, b, s in zip(x.shape[2:], k.shape[2:], op.strides, strict=True)]
        out = np.zeros(
            (n, o, *dims), np.result_type(x, np.float64) if x.dtype.kind in "f" or x.dtype.kind == "V" else x.dtype
        )
        inputs = k.shape[1]
        for at in np.ndindex(*dims):
            window = x[
                (
                    slice(None),
                    slice(None),
                    *[slice(i * s, i * s + m) for i, s, m in zip(at, op.strides, k.shape[2:], strict=True)],
                )
            ]
            for j in range(o):
                g = j // (o // op.feature_groups)
                b = j // (o // op.batch_groups)
                part = window[b * n : (b + 1) * n, g * inputs : (g + 1) * inputs]
                out[(slice(None), j, *at)] = (part * k[j]).reshape(n, -1).sum(1)
        return np.transpose(out, np.argsort(op.axes.out))

    return f  # fmt: skip


def conv(
    x: Any,
    k: Any,
    strides: Any,
    padding: Any,
    xd: Any,
    kd: Any,
    axes: Any = None,
    dtypes: Any = ("float64",),
    **more: Any,
) -> Case:
    n = len(strides)
    plain = tuple(range(n + 2))
    op = convolution.Convolution(axes or convolution.ConvAxes(plain, plain, plain), strides, padding, xd, kd, **more)
    return Case(op, (x, k), _conv_reference(op), dtypes=dtypes, tolerance=32, is_twice=False,
                note=f"{strides}{padding}{xd}{kd}".replace(" ", ""))  # fmt: skip


NHWC = convolution.ConvAxes((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
CONVOLUTION = [
    conv((2, 3, 5), (4, 3, 2), (1,), ((0, 0),), (1,), (1,), dtypes=(*FLOATS, "complex64", "int32")),
    conv((2, 3, 7), (4, 3, 2), (2,), ((1, 2),), (1,), (2,)),
    conv((2, 2, 5), (4, 2, 3), (3,), ((2, 1),), (2,), (1,)),
    conv((1, 2, 6), (2, 2, 2), (1,), ((-1, 1),), (1,), (1,)),
    conv((2, 4, 4, 5), (6, 2, 2, 3), (1, 2), ((1, 0), (0, 1)), (1, 2), (2, 1), feature_groups=2),
    conv((2, 4, 5), (4, 1, 2), (1,), ((1, 1),), (1,), (1,), feature_groups=4),
    conv((4, 2, 5), (4, 2, 3), (1,), ((1, 1),), (1,), (1,), batch_groups=2),
    conv((2, 5, 4, 3), (2, 3, 3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1), (1, 1), axes=NHWC),
    conv((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (1, 2, 1), ((0, 1), (1, 0), (0, 0)), (1, 1, 1), (1, 1, 2)),
]  # fmt: skip


def _window_reference(op: Any, f: Any, start: Any) -> Callable[..., Any]:
    def g(x: Any) -> Any:
        fill = start(x.dtype)
        full = _pad(x, fill, [(lo, hi, d - 1) for (lo, hi), d in zip(op.padding, op.base_dilation, strict=True)])
        reach = [(w - 1) * d + 1 for w, d in zip(op.window, op.window_dilation, strict=True)]
        dims = [(a - b) // s + 1 for a, b, s in zip(full.shape, reach, op.strides, strict=True)]
        out = np.zeros(dims, x.dtype)
        for at in np.ndindex(*dims):
            cut = tuple(
                slice(i * s, i * s + r, d) for i, s, r, d in zip(at, op.strides, reach, op.window_dilation, strict=True)
            )
            out[at] = f(full[cut])
        return out

    return g


def window(combine: str, x: Any, w: Any, s: Any, p: Any, bd: Any, wd: Any, dtypes: Any = WIDE, **more: Any) -> Case:
    f, start = {
        "add": (np.sum, lambda d: 0), "mul": (np.prod, lambda d: 1), "and": (np.all, lambda d: True), "or": (np.any, lambda d: False),
        "max": (np.max, lambda d: -np.inf if d.kind == "f" else np.iinfo(d).min), "min": (np.min, lambda d: np.inf if d.kind == "f" else np.iinfo(d).max),
    }[combine]  # fmt: skip
    op = window_reductions.ReduceWindow(combine, w, s, p, bd, wd)
    return Case(
        op,
        (x,),
        _window_reference(op, f, start),
        dtypes=dtypes,
        is_twice=False,
        note=f"{w}{s}{p}{bd}{wd}".replace(" ", ""),
        **more,
    )


PLAIN = ((5, 6), (2, 3), (2, 1), ((1, 0), (0, 1)), (1, 1), (1, 1))
WIDENED = ((4, 5), (2, 2), (1, 2), ((0, 1), (1, 1)), (2, 1), (1, 2))
WINDOWS = [
    *[window(c, *p, dtypes=("int32", *WIDE)) for c in ("add", "max", "min") for p in (PLAIN, WIDENED)],
    window("mul", *PLAIN),
    window("mul", *WIDENED),
    window("and", *PLAIN, dtypes=("bool",)),
    window("or", *PLAIN, dtypes=("bool",)),
    *[Case(window_reductions.SelectAndGather(c, (2, 2), (2, 1), ((0, 0), (1, 0))), ((4, 3), (4, 3)), lambda t, x, c=c: _select_gather(t, x, c), has_jvp=True) for c in ("max", "min")],
    *[Case(window_reductions.SelectAndScatter(c, (2, 2), (2, 1), ((0, 0), (1, 0))), ((2, 3), (4, 3)), lambda t, x, c=c: _select_scatter(t, x, c), has_jvp=True) for c in ("max", "min")],
]  # fmt: skip


def _positions(x: Any, combine: str) -> Any:
    sign = 1 if combine == "max" else -1
    full = np.pad(sign * x, ((0, 0), (1, 0)), constant_values=-np.inf)
    for i, j in np.ndindex(2, 3):
        cut = full[2 * i : 2 * i + 2, j : j + 2]
        a, b = np.unravel_index(np.argmax(cut), (2, 2))
        yield (i, j), (2 * i + a, j + b - 1)  # fmt: skip


def _select_gather(t: Any, x: Any, combine: str) -> Any:
    out = np.zeros((2, 3), t.dtype)
    for at, source in _positions(x, combine):
        out[at] = t[source]
    return out


def _select_scatter(t: Any, x: Any, combine: str) -> Any:
    out = np.zeros_like(x)
    for at, target in _positions(x, combine):
        out[target] += t[at]
    return out


def spd(rng: np.random.RandomState, dtype: Any, lead: tuple[int, ...] = ()) -> Any:
    a = draw(rng, (*lead, 3, 3), dtype)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(3)).astype(dtype)


def general(rng: np.random.RandomState, dtype: Any, m: int = 3, n: int = 3) -> Any:
    return (draw(rng, (m, n), dtype) + 3 * np.eye(m, n)).astype(dtype)


L = linalg
MATRICES = (*WIDE, *COMPLEX)


def _lu(a: Any) -> Any:
    lu, pivots = scipy.linalg.lu_factor(a)
    order = np.arange(a.shape[0])
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return lu, pivots, order


def _fixed(matrix: Any) -> Callable[..., Any]:
    return lambda r, d: [
        (np.asarray(matrix) + (0.3j * np.arange(9).reshape(3, 3) if np.dtype(d).kind == "c" else 0)).astype(d)
    ]


def _triangular(rng: np.random.RandomState, dtype: Any) -> Any:
    return [general(rng, dtype), draw(rng, (3, 2), dtype)]


def _solve_reference(left: bool, lower: bool, form: str, unit: bool) -> Callable[..., Any]:
    def f(a: Any, b: Any) -> Any:
        a = np.tril(a) if lower else np.triu(a)
        if unit:
            a = a - np.diag(np.diag(a)) + np.eye(3)
        a = {"N": a, "T": a.T, "C": a.conj().T}[form]
        return np.linalg.solve(a, b) if left else np.linalg.solve(a.T, b.T).T

    return f


def _tridiagonal(a: Any, lower: bool) -> Any:
    return scipy.linalg.lapack.get_lapack_funcs("hetrd" if np.iscomplexobj(a) else "sytrd", (a,))(a, lower=lower)[:4]


LINALG = [
    *[Case(matrices_ops.TriangularSolve(le, lo, fo, un), ((3, 3), (3, 2) if le else (2, 3)), _solve_reference(le, lo, fo, un), dtypes=MATRICES, tolerance=64, is_twice=False,
           make=lambda r, d, le=le: [general(r, d), draw(r, (3, 2) if le else (2, 3), d)])
      for le, lo, fo, un in ((True, True, "N", False), (True, False, "T", False), (False, True, "C", False), (False, False, "N", True), (True, True, "T", True))],
    Case(matrices_ops.TridiagonalSolve(), ((4,), (4,), (4,), (4, 2)), lambda a, d, c, b: np.linalg.solve(np.diag(d) + np.diag(a[1:], -1) + np.diag(c[:-1], 1), b),
         dtypes=MATRICES, tolerance=64, is_twice=False, make=lambda r, d: [draw(r, (4,), d), (draw(r, (4,), d) + 6).astype(d), draw(r, (4,), d), draw(r, (4, 2), d)]),
    Case(L.Cholesky(), ((3, 3),), np.linalg.cholesky, dtypes=MATRICES, make=lambda r, d: [spd(r, d)], tolerance=64),
    Case(L.Lu(), ((3, 3),), _lu, dtypes=MATRICES, make=lambda r, d: [general(r, d)], tolerance=64),
    *[Case(L.Lu(), ((m, n),), _lu, dtypes=("float64",), make=lambda r, d, m=m, n=n: [general(r, d, m, n)], tolerance=64, is_twice=False) for m, n in ((4, 2), (2, 4))],
    *[Case(L.Qr(f), ((m, n),), lambda a, f=f: scipy.linalg.qr(a, mode="full" if f else "economic"), dtypes=MATRICES, make=lambda r, d, m=m, n=n: [general(r, d, m, n)],
           tolerance=64, has_jvp=not (f and m > n), is_twice=False) for f, m, n in ((False, 3, 3), (False, 4, 2), (False, 2, 4), (True, 4, 2))],
    *[Case(L.ColumnOrder(), ((m, n),), lambda a: scipy.linalg.qr(a, mode="r", pivoting=True)[1].astype("int32"), dtypes=MATRICES,
           make=lambda r, d, m=m, n=n: [general(r, d, m, n)]) for m, n in ((3, 3), (4, 2), (2, 4))],
    Case(L.HouseholderProduct(), ((4, 2), (2,)), lambda a, t: scipy.linalg.lapack.get_lapack_funcs("ungqr" if np.iscomplexobj(a) else "orgqr", (a,))(a, t)[0],
         dtypes=MATRICES, make=lambda r, d: list(scipy.linalg.lapack.get_lapack_funcs("geqrf", (general(r, d, 4, 2),))(general(r, d, 4, 2))[:2]), has_jvp=False, tolerance=64),
    *[Case(L.Eigh(), ((3, 3),), lambda a: scipy.linalg.eigh(a, driver="evd"), dtypes=dt, make=lambda r, d: [spd(r, d)], tolerance=128, is_twice=False, observe=ob, note=dt[0])
      for dt, ob in ((WIDE, None), (COMPLEX, lambda w, v: (w, matrices_ops.matmul(matrices_ops.scale_columns(v, _counts(v)), matrices_ops.adjoint(v)))))],
    *[Case(L.Svd(f, v), ((m, n),), lambda a, f=f, v=v: _svd(a, f, v), dtypes=dt, make=lambda r, d, m=m, n=n: [general(r, d, m, n)], tolerance=128,
           has_jvp=not (f and m != n), is_twice=False, observe=ob if v and not f else None, note=dt[0])
      for dt, ob in ((WIDE, None), (COMPLEX, lambda s, u, vt: (s, matrices_ops.matmul(matrices_ops.scale_columns(u, _counts(u)), vt))))
      for f, v, m, n in ((False, True, 3, 3), (False, True, 4, 2), (False, True, 2, 4), (True, True, 4, 2), (False, False, 3, 2))],
    *[Case(nonsymmetric_eigen.Eig(v), ((3, 3),), lambda a, v=v: np.linalg.eig(a) if v else np.linalg.eigvals(a), dtypes=MATRICES, tolerance=128, is_twice=False,
           make=_fixed([[1.0, 0.4, 0.2], [0.3, 2.5, 0.1], [0.2, -0.3, 4.0]])) for v in (True, False)],
    Case(nonsymmetric_eigen.Schur(), ((3, 3),), lambda a: scipy.linalg.schur(a), dtypes=MATRICES, make=lambda r, d: [general(r, d)], has_jvp=False, tolerance=128, widens=False),
    Case(nonsymmetric_eigen.Hessenberg(), ((4, 4),), lambda a: scipy.linalg.lapack.get_lapack_funcs("gehrd", (a,))(a)[:2], dtypes=MATRICES, make=lambda r, d: [general(r, d, 4, 4)],
         has_jvp=False, tolerance=64),
    *[Case(nonsymmetric_eigen.Tridiagonal(lo), ((3, 3),), lambda a, lo=lo: _tridiagonal(a, lo), dtypes=MATRICES, make=lambda r, d: [spd(r, d)], has_jvp=False, tolerance=64) for lo in (True, False)],
]  # fmt: skip


def _factored(rng: np.random.RandomState, dtype: Any) -> list[Any]:
    """A matrix, its LU decomposition with row exchanges, and their permutation."""
    a = general(rng, dtype)
    return [a, *[np.asarray(x, a.dtype if i == 0 else np.int32) for i, x in enumerate(_lu(a))]]


def _of_matrix(op: Any) -> Callable[..., Any]:
    """An op that takes the decomposition of its matrix along, as a function of the matrix alone."""
    return lambda a: bind(op, a, *solvers.factored(a))


SOLVERS = [
    *[Case(solvers.Solve(f), ((3, 3), (3, 2), (3, 3), (3,)), lambda a, b, lu, p, f=f: np.linalg.solve(a.T if f else a, b), dtypes=MATRICES, tolerance=64, has_jvp=False,
           make=lambda r, d: (lambda a, lu, _, p: [a, draw(r, (3, 2), d), lu, p])(*_factored(r, d))) for f in (False, True)],
    Case(solvers.LogDeterminant(), ((3, 3), (3, 3), (3,), (3,)), lambda a, *_: tuple(np.linalg.slogdet(a)), dtypes=MATRICES, tolerance=64, make=_factored, has_jvp=False),
    Case(solvers.Determinant(), ((3, 3), (3, 3), (3,), (3,)), lambda a, *_: np.linalg.det(a), dtypes=MATRICES, tolerance=64, make=_factored, has_jvp=False),
    Case(solvers.PseudoInverse(), ((4, 2), (2, 4)), lambda a, p: p, dtypes=MATRICES, tolerance=64, has_jvp=False,
         make=lambda r, d: (lambda a: [a, np.linalg.pinv(a).astype(d)])(general(r, d, 4, 2))),
    Case(solvers.Reflectors(), ((4, 2),), lambda a: scipy.linalg.lapack.get_lapack_funcs("geqrf", (a,))(a)[:2], dtypes=MATRICES, make=lambda r, d: [general(r, d, 4, 2)],
         has_jvp=False, tolerance=64),
]  # fmt: skip
# Their derivatives are by the matrix, which also stands in its decomposition: (function of the matrix and more, shapes)
MATRIX_FUNCTIONS = {
    "solve": (lambda a, b: solvers.solve_matrices(a, b), ((3, 3), (3, 2))),
    "inverse": (lambda a: solvers.inverse_of(a), ((3, 3),)),
    "determinant": (_of_matrix(solvers.Determinant()), ((3, 3),)),
    "log determinant": (lambda a: _of_matrix(solvers.LogDeterminant())(a)[1], ((3, 3),)),
    "pseudoinverse": (lambda a: bind(solvers.PseudoInverse(), a, _pinv(a)), ((4, 2),)),
}


def _pinv(a: Any) -> Any:
    s, u, vt = bind(L.Svd(False, True), solvers.fixed(a))
    return matrices_ops.matmul(
        matrices_ops.scale_columns(matrices_ops.adjoint(vt), elementwise.div(1, s)), matrices_ops.adjoint(u)
    )


def _counts(v: Any) -> Any:
    """1, 2, 3, ... for each column: weights that tell vectors apart."""
    t = v.type
    return shape.iota(t.dtype, (*t.shape[:-2], t.shape[-1]), t.ndim - 2)


def _svd(a: Any, is_full: bool, with_vectors: bool) -> Any:
    out = scipy.linalg.svd(a, full_matrices=is_full, compute_uv=with_vectors)
    return (out[1], out[0], out[2]) if with_vectors else (out,)


def threefry(k0: Any, k1: Any, x0: Any, x1: Any) -> Any:
    """Threefry-2x32 in NumPy."""
    rot = lambda v, d: (v << np.uint32(d)) | (v >> np.uint32(32 - d))
    k0, k1, x0, x1 = np.broadcast_arrays(k0, k1, x0, x1)
    with np.errstate(over="ignore"):
        ks = [k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA)]
        x0, x1 = x0 + ks[0], x1 + ks[1]
        for r in range(5):
            for d in ((13, 15, 26, 6), (17, 29, 16, 24))[r % 2]:
                x0 = x0 + x1
                x1 = rot(x1, d) ^ x0
            x0, x1 = x0 + ks[(r + 1) % 3], x1 + ks[(r + 2) % 3] + np.uint32(r + 1)
    return x0, x1


def _words(*shapes: Any) -> Callable[..., Any]:
    return lambda r, d: [r.randint(0, 2**32, s, dtype=np.uint64).astype(d) for s in shapes]


RANDOM = [
    Case(random.Threefry2x32(), ((), (), (5,), (5,)), threefry, dtypes=("uint32",), make=_words((), (), (5,), (5,))),
    Case(random.Threefry2x32(), ((3,), (3,), (3,), ()), threefry, dtypes=("uint32",), make=_words((3,), (3,), (3,), ())),
    Case(random.RngBitGenerator((4,), np.dtype("uint32")), ((2,),), lambda s: None, dtypes=("uint64",), make=_words((2,)), note="no reference"),
    Case(random.RngUniform((3,)), ((), ()), lambda a, b: np.full(3, a), dtypes=("float32", "int32"), has_jvp=False, batches=False,
         make=lambda r, d: [np.asarray(2, d), np.asarray(3 if d.kind == "i" else 2, d)], note="one outcome"),
    Case(random.WrapKey(), ((3, 2),), lambda w: w, dtypes=("uint32",), make=_words((3, 2)), note="keys"),
    Case(random.UnwrapKey(), ((3, 2),), lambda w: w, dtypes=("uint32",), make=_words((3, 2)), note="keys"),
    Case(range_check.Expect(-99, 300, "labels"), ((3, 2),), lambda x: x, dtypes=INTS),
    Case(placement.ToMemory("pinned_host"), ((3, 2),), lambda x: x),
]  # fmt: skip

# Collectives live inside vmap(axis_name=...): they have rows in tests/ops/test_collectives.py.
COLLECTIVES = (
    collectives.Psum, collectives.Pmax, collectives.Pmin, collectives.AxisIndex, collectives.AllGather, collectives.PsumScatter,
    collectives.Ppermute, collectives.AllToAll,
    # those of meshes are in tests/devices
    collectives.PsumInvariant, collectives.Pvary, collectives.AssumeReplicated, placement.ShardingConstraint,
)  # fmt: skip

NORMALIZATION = [
    *[Case(normalization.Softmax(a), ((3, 4),), lambda x, a=a: scipy.special.softmax(x, a), dtypes=FLOATS) for a in ((1,), (0, 1))],
    *[Case(normalization.LogSoftmax(a), ((3, 4),), lambda x, a=a: scipy.special.log_softmax(x, a), dtypes=FLOATS) for a in ((1,), (0, 1))],
    *[Case(normalization.Logsumexp(a), ((3, 4),), lambda x, a=a: scipy.special.logsumexp(x, a), dtypes=FLOATS) for a in ((0,), (0, 1))],
    Case(normalization.Logsumexp((0,)), ((3,),), lambda x: scipy.special.logsumexp(x, 0), dtypes=("float64",), make=lambda r, d: [np.array([-np.inf, 900.0, 901.0], d)], has_jvp=False, note="far"),
]  # fmt: skip

CASES: list[Case] = [
    *ARITHMETIC, *LOGIC, *CONVERSION, *ELEMENTARY, *SPECIAL, *SHAPE, *REDUCTION, *CUMULATIVE, *CONTRACTION, *INDEXING, *SORTING, *FFT,
    *CONVOLUTION, *WINDOWS, *LINALG, *SOLVERS, *RANDOM, *NORMALIZATION,
]  # fmt: skip
