"""`DotGeneral`: sums of products over shared axes, the op behind matmul, tensordot and einsum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from atled.core import dtypes
from atled.core.array import type_of
from atled.core.op import LinearOp
from atled.core.settings import scope
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear
from atled.ops import conversion, elementwise, few_rows, shape
from atled.ops.elementwise_family import matching

PRECISIONS = {"default": "DEFAULT", "fastest": "DEFAULT", "high": "HIGH", "highest": "HIGHEST", "float32": "HIGHEST",
              "bfloat16": "DEFAULT", "tensorfloat32": "HIGH"}  # fmt: skip
PLAIN_PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")


class DotAlgorithm(NamedTuple):
    """The algorithm of a dot product: operand precisions, accumulation type, number of components.

    >>> from atled import lax
    >>> preset = lax.DotAlgorithmPreset.BF16_BF16_F32_X3  # three products of parts in bfloat16, summed in float32
    >>> lax.dot(lax.full((2, 3), 1.0), lax.full((3,), 2.0), precision=preset)
    Array([6., 6.], dtype=float32)
    >>> DotAlgorithm("bfloat16", "bfloat16", "float32", num_primitive_operations=3).accumulation_type
    'float32'
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    def words(self) -> str:
        """The algorithm as the text of a StableHLO attribute."""
        kinds = [
            _SPELLED.get("tf32" if isinstance(v, str) and v == "tf32" else dtypes.canonical(v).name) for v in self[:3]
        ]
        if None in kinds:
            raise ValueError(f"precision: an algorithm needs floating-point dtypes; got {self}.")
        counts = ", ".join([f"{n} = {v}" for n, v in zip(self._fields[3:6], self[3:6], strict=True)])
        types = ", ".join([f"{n} = {v}" for n, v in zip(self._fields[:3], kinds, strict=True)])
        return f"<{types}, {counts}, {self._fields[6]} = {str(bool(self[6])).lower()}>"


_SPELLED = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "tf32": "tf32",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
}  # fmt: skip
# name -> the algorithm, the storage dtype of its operands, and whether CPUs support it
ALGORITHMS: dict[str, tuple[DotAlgorithm, Any, bool]] = {
    "F16_F16_F16": (DotAlgorithm("float16", "float16", "float16"), dtypes.float16, True),
    "F16_F16_F32": (DotAlgorithm("float16", "float16", "float32"), dtypes.float16, False),
    "BF16_BF16_BF16": (DotAlgorithm("bfloat16", "bfloat16", "bfloat16"), dtypes.bfloat16, False),
    "BF16_BF16_F32": (DotAlgorithm("bfloat16", "bfloat16", "float32"), dtypes.bfloat16, True),
    "BF16_BF16_F32_X3": (DotAlgorithm("bfloat16", "bfloat16", "float32", 1, 1, 3), dtypes.float32, True),
    "BF16_BF16_F32_X6": (DotAlgorithm("bfloat16", "bfloat16", "float32", 1, 1, 6), dtypes.float32, True),
    "BF16_BF16_F32_X9": (DotAlgorithm("bfloat16", "bfloat16", "float32", 1, 1, 9), dtypes.float32, False),
    "TF32_TF32_F32": (DotAlgorithm("tf32", "tf32", "float32"), dtypes.float32, False),
    "TF32_TF32_F32_X3": (DotAlgorithm("tf32", "tf32", "float32", 1, 1, 3), dtypes.float32, False),
    "F32_F32_F32": (DotAlgorithm("float32", "float32", "float32"), dtypes.float32, True),
    "F64_F64_F64": (DotAlgorithm("float64", "float64", "float64"), dtypes.float64, True),
}
_OF_EIGHT_BITS = tuple(
    [f"ANY_F8_ANY_F8_{s}{e}" for s in ("F32", "ANY") for e in ("", "_FAST_ACCUM")]
)  # names in JAX's enum that no backend supports


def precision_name(precision: Any) -> str | None:
    """A user's precision (a name, an enum, an algorithm or None) as the compiler's name for it, or None."""
    if precision is None:
        precision = scope().matmul_precision
    if precision is None:
        return None
    if isinstance(precision, DotAlgorithm):
        return precision.words()
    if isinstance(precision, (tuple, list)):
        precision = precision[0]
    text = str(getattr(precision, "name", precision))
    xla_name = PRECISIONS.get(text.lower())
    if xla_name is None and (text in ALGORITHMS or text in _OF_EIGHT_BITS):
        return text
    if xla_name is None:
        raise ValueError(f"precision: expected one of {sorted(PRECISIONS)} or {[*ALGORITHMS]}; got {precision!r}.")
    return xla_name


class DotGeneral(LinearOp):
    """Products of x and y summed over `contracting` axes, for each index of the `batch` axes.

    The result has the batch axes, then the other axes of x, then those of y. With `result`, the products are summed and
    returned in that dtype.
    """

    linear_in = ((0,), (1,))
    contracting: tuple[tuple[int, ...], tuple[int, ...]]
    batch_axes: tuple[tuple[int, ...], tuple[int, ...]]
    precision: str | None = None
    result: Any = None

    def result_type(self, x: ArrayType, y: ArrayType) -> ArrayType:
        (xc, yc), (xb, yb) = self.contracting, self.batch_axes
        if len(xc) != len(yc) or len(xb) != len(yb):
            raise TypeError(f"dot: {x} and {y} must have the same number of contracting and of batch axes.")
        for a, b in zip((*xc, *xb), (*yc, *yb), strict=True):
            if not (0 <= a < x.ndim and 0 <= b < y.ndim) or x.shape[a] != y.shape[b]:
                raise TypeError(
                    f"dot: axis {a} of {x} and axis {b} of {y} must have the same length "
                    f"(shapes {x.shape} and {y.shape})."
                )
        if x.dtype is not y.dtype and self.result is None:
            raise TypeError(
                f"dot: operands must have the same dtype; got {x} and {y}.\n  try: {matching('dot', (x, y))}"
            )
        if x.kind == "k" or y.kind == "k":
            raise TypeError(f"dot: operands must be numbers; got {x} and {y}.")
        if self.result is not None and "c" in (x.kind, y.kind) and dtypes.kind(self.result) != "c":
            raise TypeError(f"dot: the result of {x} and {y} is complex; it cannot be {self.result.name}.")
        dims = [x.shape[a] for a in xb]
        dims += [n for a, n in enumerate(x.shape) if a not in xc and a not in xb]
        dims += [n for a, n in enumerate(y.shape) if a not in yc and a not in yb]
        return ArrayType(tuple(dims), self.result or x.dtype, self.result is None and x.weak and y.weak)

    def lower(self, build: Any, x: Any, y: Any) -> Any:
        if self.precision is not None and self.precision not in PLAIN_PRECISIONS:
            return self._by_algorithm(build, self.precision, x, y)
        return self._lowered(build, x, y)

    def _by_algorithm(self, build: Any, name: str, x: Any, y: Any) -> Any:
        """The product by a named algorithm, with operands in its storage dtype and sums in its accumulation dtype."""
        given, stored, is_on_cpu = ALGORITHMS.get(name, (None, x.type.dtype, False))
        if (build.platform == "cpu" and not is_on_cpu) or name in _OF_EIGHT_BITS:
            raise ValueError(f"precision: {name!r} is not supported on {build.platform}.")
        if x.type.kind == "c" or y.type.kind == "c":
            raise TypeError(f"precision: {name!r} is for real numbers; got {x.type} and {y.type}.")
        sums = dtypes.canonical(given.accumulation_type) if given else self.result
        target_dtype = self.result or x.type.dtype
        x, y = (build.apply(lambda v: conversion.convert(v, stored), v) for v in (x, y))
        plain = DotGeneral(self.contracting, self.batch_axes, None, sums)
        words = None if build.platform == "cpu" else given.words() if given else name
        product = plain._lowered(build, x, y, words)
        return (
            product
            if product.type.dtype is target_dtype
            else build.apply(lambda v: conversion.convert(v, target_dtype), product)
        )

    def _lowered(self, build: Any, x: Any, y: Any, algorithm: str | None = None) -> Any:
        out = self.result_type(x.type, y.type)
        work = out
        (xc, yc), (xb, yb) = self.contracting, self.batch_axes
        if build.on_one_cpu and not build.is_nested and not xb:
            product, x, y, (xc, yc) = few_rows.prepared(build, x, y, self.contracting, out)
            if product is not None:
                return product
        if build.platform == "cpu":
            kernel = _kernel(build, x.type.dtype, y.type.dtype, out.dtype)
            common = x.type.dtype if kernel else _cpu_dtype(x.type.dtype, y.type.dtype, out.dtype)
            x, y = (
                build.apply(lambda v: conversion.convert(v, common), v) if v.type.dtype is not common else v
                for v in (x, y)
            )
            summed = kernel or common
            if dtypes.kind(summed) == "f" and dtypes.bits(out.dtype) < dtypes.bits(summed):
                work = out.with_dtype(summed)
            if kernel and max(x.type.size, y.type.size) >= _MANY:
                free = [a for a in range(x.type.ndim) if a not in xc and a not in xb]
                x = build.apply(lambda v: _in_memory(v, [*xb, *free, *xc]), x)
                y = build.apply(lambda v: _in_memory(v, range(y.type.ndim)), y)
                xb, xc = tuple(range(len(xb))), tuple(range(len(xb) + len(free), x.type.ndim))
        elif {x.type.kind, y.type.kind} == {"i", "f"}:  # not all compilers multiply integers by floats
            x, y = (build.apply(lambda v: conversion.convert(v, out.dtype), v) for v in (x, y))
        if build.on_one_cpu and _gains_by_merging(x.type, xc) and _gains_by_merging(y.type, yc):
            x, y = (build.apply(lambda v, axes=axes: _merged(v, axes), v) for v, axes in ((x, xc), (y, yc)))
            xb, yb = (tuple([a - (len(xc) - 1) * (a > axes[0]) for a in b]) for b, axes in ((xb, xc), (yb, yc)))
            xc, yc = xc[:1], yc[:1]
        numbers = (
            f"#stablehlo.dot<lhs_batching_dimensions = {list(xb)}, rhs_batching_dimensions = {list(yb)}, "
            f"lhs_contracting_dimensions = {list(xc)}, rhs_contracting_dimensions = {list(yc)}>"
        )
        attributes: dict[str, Any] = {"dot_dimension_numbers": numbers}
        if self.precision is not None:
            attributes["precision_config"] = (f"#stablehlo<precision {self.precision}>",) * 2
        if algorithm is not None:
            attributes["precision_config"] = ("#stablehlo<precision DEFAULT>",) * 2
            attributes["algorithm"] = f"#stablehlo.dot_algorithm{algorithm}"
        product = build.emit("stablehlo.dot_general", (x, y), (work,), attributes)
        return product if work is out else build.apply(lambda v: conversion.convert(v, out.dtype), product)

    def transpose(self, cotangent: Any, x: Any, y: Any) -> Any:
        if type(x) is Linear:
            return self._back(cotangent, x.type, y, False), None
        return None, self._back(cotangent, y.type, x, True)

    def _back(self, cotangent: Any, wanted: ArrayType, other: Any, is_swapped: bool) -> Any:
        """The cotangent of one operand: the cotangent of the result times the other operand."""
        (wc, oc), (wb, ob) = self.contracting, self.batch_axes
        if is_swapped:
            (oc, wc), (ob, wb) = self.contracting, self.batch_axes
        other_type = type_of(other)
        w_free = [a for a in range(wanted.ndim) if a not in wc and a not in wb]
        o_free = [a for a in range(other_type.ndim) if a not in oc and a not in ob]
        n = len(wb)
        o_start = n if is_swapped else n + len(w_free)
        o_axes = tuple(range(o_start, o_start + len(o_free)))
        # the product's axes: batch, free axes of `wanted`, its contracting axes in the order of those of `other`
        contracted = [wc[i] for i in sorted(range(len(oc)), key=lambda i: oc[i])]
        order, left, right = [*wb, *w_free, *contracted], cotangent, other
        contracting, batch = (o_axes, tuple(o_free)), (tuple(range(n)), tuple(ob))
        if [*wb, *contracted, *w_free] == list(range(wanted.ndim)):  # `other` first avoids a transpose
            order = list(range(wanted.ndim))
            left, right = right, left
            contracting, batch = (tuple(o_free), o_axes), (tuple(ob), tuple(range(n)))
        result = None if type_of(cotangent).dtype is other_type.dtype is wanted.dtype else wanted.dtype
        product = dot_general(left, right, contracting, batch, self.precision, result)
        return shape.transpose(product, [order.index(a) for a in range(wanted.ndim)])

    def batch(self, batched: tuple[bool, ...], x: Any, y: Any) -> Any:
        (xc, yc), (xb, yb) = self.contracting, self.batch_axes
        up = lambda axes: tuple([a + 1 for a in axes])  # noqa: E731
        if all(batched):
            batch_axes = ((0, *up(xb)), (0, *up(yb)))
            return dot_general(x, y, (up(xc), up(yc)), batch_axes, self.precision, self.result)
        if batched[0]:
            out = dot_general(x, y, (up(xc), yc), (up(xb), yb), self.precision, self.result)
            return shape.move_axis(out, len(xb), 0)
        # with y as the left operand, its batch axis comes before the axes of x
        out = dot_general(y, x, (up(yc), xc), (up(yb), xb), self.precision, self.result)
        n = len(xb)
        y_free = type_of(y).ndim - 1 - len(yc) - n
        x_free = type_of(x).ndim - len(xc) - n
        start = n + 1 + y_free
        order = [n, *range(n), *range(start, start + x_free), *range(n + 1, start)]
        return shape.transpose(out, order)


def _gains_by_merging(t: ArrayType, axes: Sequence[int]) -> bool:
    """Whether a product that contracts several adjacent axes is faster with these axes merged into one.

    For several contracting axes, the CPU compiler makes a transposed copy of the operand, into which it fuses other
    ops; over one axis, its float32 kernel needs no copy. For small operands and other dtypes, the copy is faster.
    """
    if not _are_side_by_side(axes) or t.dtype is not dtypes.float32:
        return False
    return t.size >= max(1 << 17, 64 * math.prod([t.shape[a] for a in axes]))


def _are_side_by_side(axes: Sequence[int]) -> bool:
    return len(axes) > 1 and list(axes) == list(range(axes[0], axes[0] + len(axes)))


def _merged(x: Any, axes: Sequence[int]) -> Any:
    """x with adjacent axes merged into one."""
    dims = type_of(x).shape
    first, after = axes[0], axes[-1] + 1
    return shape.reshape(x, (*dims[:first], math.prod(dims[first:after]), *dims[after:]))


_MANY = 4096  # minimum number of elements for which a fast kernel is worth a transposed copy


def _in_memory(x: Any, order: Sequence[int]) -> Any:
    """x transposed in memory: reshaped to one axis behind a barrier, which leaves the compiler no choice of layout."""
    t = type_of(x)
    (flat,) = shape.optimization_barrier(shape.reshape(shape.transpose(x, order), (t.size,)))
    return shape.reshape(flat, [t.shape[a] for a in order])


def _kernel(build: Any, x: Any, y: Any, out: Any) -> Any:
    """The accumulation dtype of a fast kernel for narrow operands, or None if there is none.

    The CPU compiler's kernels for int8 and bfloat16 are several times as fast as its loops, but need row-major
    operands, and contract the last axes of the left one.
    """
    if not build.on_one_cpu or x is not y:
        return None
    if x is dtypes.int8 and out is dtypes.int32:
        return out
    return dtypes.float32 if x is dtypes.bfloat16 and out in (x, dtypes.float32) and build.has_matrix_unit else None


def _cpu_dtype(x: Any, y: Any, out: Any) -> Any:
    """The dtype in which a CPU multiplies: 16-bit floats, slow there and rounded at every step, become float32."""
    kinds = {dtypes.kind(d) for d in (x, y)}
    if kinds == {"f"}:
        widest = max((x, y, out), key=lambda d: dtypes.bits(d) if dtypes.kind(d) == "f" else 0)
        return dtypes.float32 if dtypes.bits(widest) < 32 else widest
    if x is dtypes.bool_ and y is dtypes.bool_:
        return out
    return x if x is y and dtypes.bits(x) >= 8 else out


def dot_general(
    x: Any,
    y: Any,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch_axes: tuple[Sequence[int], Sequence[int]] = ((), ()),
    precision: str | None = None,
    result: Any = None,
) -> Any:
    """Products of x and y summed over contracting axes, for each index of the batch axes."""
    (xc, yc), (xb, yb) = contracting, batch_axes
    op = DotGeneral((tuple(xc), tuple(yc)), (tuple(xb), tuple(yb)), precision, result)
    return bind(op, *elementwise.match(x, y))
