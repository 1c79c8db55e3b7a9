"""`Elementwise`, the base class of elementwise ops, and functions that they share.

Operands have the same shape, or are scalars, which are broadcast, so `x * 2.0` is one equation. Dtypes agree; Python
numbers take the dtype of the other operand. `derivative` returns the factor of one operand's tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from atled.core import dtypes, error_hints
from atled.core.array import WEAK_SCALARS, Array, describe, type_of
from atled.core.basic_ops import arithmetic
from atled.core.op import LinearOp, Op, instantiate
from atled.core.program import Literal
from atled.core.tangent_mask import ALL
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero

ArrayLike = Any
KINDS = {"b": "bool", "i": "integer", "u": "unsigned", "f": "floating", "c": "complex", "k": "key", "0": "float0"}


class Elementwise(Op):
    """Base class of elementwise ops: operands have the same shape and dtype; scalars are broadcast."""

    is_fusible = True
    hlo: ClassVar[str] = ""
    # Implementations with other ops, where the compiler's own is not accurate enough: keyed by the itemsize of a real
    # dtype, or "c" for complex dtypes. `real_functions.py` and `complex_functions.py` set them.
    computed: ClassVar[dict[Any, Callable[..., Any]]] = {}
    takes: ClassVar[str] = "fc"  # the kinds of dtypes that the op accepts

    def result_type(self, *types: ArrayType) -> ArrayType:
        first = types[0]
        dims, dtype, weak = first.shape, first.dtype, first.weak
        for t in types[1:]:
            if t.shape != dims and t.shape != ():
                if dims != ():
                    raise self.mismatch("operands must have the same shape, or be scalars", types)
                dims = t.shape
            if t.dtype is not dtype:
                raise self.mismatch("operands must have the same dtype", types)
            weak = weak and t.weak
        if dtypes.kind(dtype) not in self.takes:
            raise self.wrong_kind(first)
        return self.typed(dims, dtype, weak)

    def typed(self, dims: tuple[int, ...], dtype: Any, weak: bool) -> ArrayType:
        return ArrayType(dims, dtype, weak)

    def mismatch(self, rule: str, types: Sequence[ArrayType]) -> TypeError:
        got = " and ".join(map(repr, types))
        return TypeError(f"{self.name}: {rule}; got {got}.\n  try: {matching(self.name, types)}")

    def wrong_kind(self, t: ArrayType) -> TypeError:
        kinds = " or ".join(KINDS[k] for k in self.takes)
        return TypeError(f"{self.name}: operands must be {kinds}; got {t}.")

    def lower(self, build: Any, *operands: Any) -> Any:
        out = self.result_type(*[x.type for x in operands])
        spread = [build.spread(x, out.shape) for x in operands]
        compute = self.computed.get(max(out.dtype.itemsize, 4)) if self.computed and out.kind == "f" else None
        if compute is not None:
            return build.map(widened(compute), *spread)
        return build.emit(self.hlo, spread, (out,))

    def derivative(self, i: int, out: Any, *operands: Any) -> Any:
        """The partial derivative with respect to operand i, given the result `out`, or None if it is always zero."""
        raise NotImplementedError(f"{type(self).__name__} has no 'derivative' rule; differentiation needs it.")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        total = None
        for i, t in enumerate(tangents):
            if type(t) is not Zero:
                factor = self.derivative(i, out, *primals)
                if factor is not None:
                    term = arithmetic.slope(t, factor)
                    total = term if total is None else arithmetic.add(total, term)
        return out, spread_tangent(total, out)

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        return bind(self, *align(batched, operands))


def widened(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function f, computed in float32 for 16-bit floats."""

    def apply(*operands: Any) -> Any:
        dtype = type_of(operands[0]).dtype
        if dtypes.bits(dtype) >= 32:
            return f(*operands)
        return arithmetic.convert(f(*[arithmetic.convert(x, dtypes.float32) for x in operands]), dtype)

    return apply


def matching(name: str, types: Sequence[ArrayType]) -> str:
    """The hint for operands of different dtypes or shapes: `lax` functions do not convert implicitly."""
    kinds = [t.dtype for t in types]
    if len(set(kinds)) == 2 and dtypes.key_dtype not in kinds:
        promoted, _ = dtypes.promote(*[(dtype, False) for dtype in kinds])
        number = next((i for i, dtype in enumerate(kinds) if dtype is not promoted), 0)
        line = error_hints.with_operand(number, f"{{}}.astype({promoted.name!r})", name)
        return line or f"x.astype({promoted.name!r}) for one of them."
    return "the function of atled.numpy, which promotes and broadcasts, or x.reshape and x.astype before."


def spread_tangent(tangent: Any, out: Any) -> Any:
    """The tangent broadcast to the shape of the result; `Zero` if the tangent is None."""
    t = type_of(out)
    if tangent is None:
        return Zero(t.tangent())
    return tangent if type_of(tangent).shape == t.shape else arithmetic.broadcast(tangent, t.shape, ())


def align(batched: Sequence[bool], operands: Sequence[Any]) -> list[Any]:
    """The operands of an elementwise op, some with a leading batch axis, broadcast to a common shape or scalars."""
    types = [type_of(x) for x in operands]
    size = next(t.shape[0] for t, b in zip(types, batched, strict=True) if b)
    dims = [t.shape[1:] if b else t.shape for t, b in zip(types, batched, strict=True)]
    full = max(dims, key=len)
    out = []
    for x, b, d in zip(operands, batched, dims, strict=True):
        if b and d != full:  # a batch of scalars, while other operands are arrays
            x = arithmetic.broadcast(x, (size, *full), (0,))
        elif not b and d != ():
            x = arithmetic.broadcast(x, (size, *full), tuple(range(1, len(full) + 1)))
        out.append(x)
    return out


def unspread(cotangent: Any, operand: Any) -> Any:
    """The cotangent of an operand that may be a broadcast scalar."""
    if type_of(cotangent).shape != operand.type.shape:
        return arithmetic.sum(cotangent, tuple(range(type_of(cotangent).ndim)))
    return cotangent


class Flat(Elementwise):
    """Base class of elementwise ops whose derivative is zero."""

    def derivative(self, i: int, out: Any, *operands: Any) -> Any:
        return None


class LinearElementwise(Elementwise, LinearOp):
    """Base class of elementwise ops that are linear in some operands."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = bind(self, *primals)
        total = None
        for group in self.linear_in:
            if not all([type(tangents[i]) is Zero for i in group]):
                operands = [
                    instantiate(t) if i in group else x for i, (x, t) in enumerate(zip(primals, tangents, strict=True))
                ]
                term = bind(self, *operands)
                total = term if total is None else arithmetic.add(total, term)
        return out, spread_tangent(total, out)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *values), masks[0] if len(masks) == 1 else ALL


def spread_all(build: Any, op: Elementwise, operands: Sequence[Any]) -> list[Any]:
    """The operands of an op in its lowering rule, with scalars broadcast to the shape of the result."""
    out = op.result_type(*[x.type for x in operands])
    return [build.spread(x, out.shape) for x in operands]


def check_order(name: str, combine: str, x: ArrayType) -> None:
    """Raise TypeError for a maximum or minimum of complex numbers."""
    if combine in ("max", "min") and x.kind == "c":
        raise TypeError(f"{name}: complex numbers have no order; got {x}.\n  try: x.real, or the magnitude abs(x).")


def zero_like(x: Any) -> Any:
    """The scalar 0 in the dtype of x."""
    return np.zeros((), type_of(x).dtype)


def one_like(x: Any) -> Any:
    """The scalar 1 in the dtype of x."""
    return np.ones((), type_of(x).dtype)


# -- operands ------------------------------------------------------------------------------------------------------


def match(*operands: Any) -> Sequence[Any]:
    """Give Python numbers, and NumPy's default scalars, the dtype of the array operands."""
    if all([isinstance(x, Array) for x in operands]):
        return operands
    dtype = next((x.dtype for x in operands if not _is_weak_number(x) and hasattr(x, "dtype")), None)
    if dtype is dtypes.key_dtype:
        return operands
    if dtype is None:
        types = [type_of(x) for x in operands]
        dtype, _ = dtypes.promote(*[(t.dtype, t.weak) for t in types])
    if all([_is_weak_number(x) or getattr(x, "type", _STRONG).weak for x in operands]):  # the result is weak, too
        weak = ArrayType((), dtype, True)
        return [Literal(np.asarray(x, dtype).item(), weak) if _is_weak_number(x) else x for x in operands]
    return [np.asarray(x, dtype) if _is_weak_number(x) else x for x in operands]


_STRONG = ArrayType((), dtypes.float32)


def _is_weak_number(x: Any) -> bool:
    return x.__class__ in WEAK_SCALARS if isinstance(x, np.generic) else isinstance(x, (bool, int, float, complex))


def is_static_scalar(x: Any) -> bool:
    """Whether an operand is a literal or another scalar that is not an array."""
    return isinstance(x, Literal) or (not isinstance(x, Array) and np.ndim(x) == 0)


def is_finite_number(x: Any) -> bool:
    """Whether an operand is a finite literal."""
    return is_static_scalar(x) and bool(np.isfinite(getattr(x, "value", x)))


def is_nan(x: Any) -> bool:
    """Whether an operand is the literal NaN."""
    return is_static_scalar(x) and type_of(x).kind in "fc" and bool(np.isnan(getattr(x, "value", x)))


def function(op: Op) -> Callable[..., Any]:
    """The function that applies an op without parameters to its operands."""

    def apply(*operands: Any) -> Any:
        return bind(op, *match(*operands)) if len(operands) > 1 else bind(op, _checked(op, operands[0]))  # pyright: ignore[reportGeneralTypeIssues]

    apply.__name__ = apply.__qualname__ = op.name
    apply.__doc__ = f"Elementwise: {op.__doc__}"
    return apply


def _checked(op: Op, x: Any) -> Any:
    if isinstance(x, (list, str)) or x is None:
        raise TypeError(f"{op.name}: expected an array or a number; got {describe(x)}.")
    return x
