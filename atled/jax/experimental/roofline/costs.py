"""The costs of atled's ops: floating-point operations, and bytes read and written.

Ops without a rule cost nothing: those that only move elements, as in JAX, sorts, Fourier transforms and decompositions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from atled.jax.experimental.roofline.results import RooflineResult, RooflineRuleContext, bytes_of
from atled.ops import (
    contraction,
    conversion,
    convolution,
    cumulative,
    elementwise,
    elementwise_family,
    indexing,
    normalization,
    reduction,
    window_reductions,
)  # fmt: skip

Rule = Callable[[Any, RooflineRuleContext], RooflineResult]
_FREE = (conversion.Convert, conversion.ReducePrecision, elementwise.StopGradient)


def cost_of(op: Any, context: RooflineRuleContext) -> RooflineResult:
    """The cost of an op that is neither a collective nor holds a program."""
    if isinstance(op, _FREE):
        return RooflineResult()
    rule = next((_RULES[kind] for kind in type(op).__mro__ if kind in _RULES), None)
    return RooflineResult() if rule is None else rule(op, context)


def _unfused(flops: int, context: RooflineRuleContext) -> RooflineResult:
    moved = sum([bytes_of(t) for t in (*context.avals_in, *context.avals_out)])
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=moved)


def _elementwise(op: Any, context: RooflineRuleContext) -> RooflineResult:
    return _unfused(context.avals_out[0].size, context)


def _select(op: Any, context: RooflineRuleContext) -> RooflineResult:
    """One operation per element; counts the bytes of the predicate and of one case."""
    (out,) = context.avals_out
    return RooflineResult(unfused_flops=out.size, unfused_hbm_bytes=bytes_of(context.avals_in[0]) + bytes_of(out))


def _reduce(op: Any, context: RooflineRuleContext) -> RooflineResult:
    return _unfused(context.avals_in[0].size - context.avals_out[0].size, context)


def _window(op: window_reductions.ReduceWindow, context: RooflineRuleContext) -> RooflineResult:
    return _unfused(context.avals_out[0].size * (math.prod(op.window) - 1), context)


def _normalize(op: Any, context: RooflineRuleContext) -> RooflineResult:
    """Five operations per element: a maximum, a difference, an exponential, a sum, and a quotient or difference."""
    return _unfused(5 * context.avals_in[0].size, context)


def _dot(op: contraction.DotGeneral, context: RooflineRuleContext) -> RooflineResult:
    (left, right), (out,) = context.avals_in, context.avals_out
    flops = 2 * out.size * math.prod([left.shape[a] for a in op.contracting[0]])
    moved = 0 if context.pin_lhs_in_vmem else bytes_of(left) + bytes_of(out)
    moved += 0 if context.pin_rhs_in_vmem else bytes_of(right)
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved)


def _convolve(op: convolution.Convolution, context: RooflineRuleContext) -> RooflineResult:
    """Two operations for each product of elements; padding and the holes of dilations do not count."""
    (x, kernel), (out,) = context.avals_in, context.avals_out
    axes = op.axes
    meetings = [
        _meetings(
            x.shape[axes.x[2 + i]], kernel.shape[axes.kernel[2 + i]], out.shape[axes.out[2 + i]], op.strides[i],
            op.padding[i][0], op.x_dilation[i], op.kernel_dilation[i],
        )
        for i in range(len(op.strides))
    ]  # fmt: skip
    batch, features, inputs = out.shape[axes.out[0]], out.shape[axes.out[1]], kernel.shape[axes.kernel[1]]
    return _unfused(2 * batch * features * inputs * math.prod(meetings), context)


def _meetings(
    length: int, kernel: int, places: int, stride: int, padding: int, x_dilation: int, kernel_dilation: int
) -> int:
    """The number of pairs of kernel and x elements that are multiplied along an axis, over all kernel positions."""
    last = (length - 1) * x_dilation
    met = 0
    for k in range(kernel):
        for place in range(places):
            at = place * stride + k * kernel_dilation - padding
            met += 0 <= at <= last and at % x_dilation == 0
    return met


def _gather(op: Any, context: RooflineRuleContext) -> RooflineResult:
    """Counts the bytes of the indices, and twice those of the result: read and written."""
    moved = bytes_of(context.avals_in[1]) + 2 * bytes_of(context.avals_out[0])
    return RooflineResult(unfused_hbm_bytes=moved)


def _scatter(op: indexing.Scatter, context: RooflineRuleContext) -> RooflineResult:
    """Counts the bytes of the indices, and three times those of the updates: two reads and a write."""
    _, indices, updates = context.avals_in
    flops = 0 if op.combine == "set" else updates.size
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=bytes_of(indices) + 3 * bytes_of(updates))


_RULES: dict[type, Rule] = {
    elementwise_family.Elementwise: _elementwise,
    elementwise.Select: _select,
    reduction.Reduction: _reduce,
    reduction.ArgExtremum: _reduce,
    cumulative.Cumulative: _elementwise,
    window_reductions.ReduceWindow: _window,
    normalization._OverAxes: _normalize,
    contraction.DotGeneral: _dot,
    convolution.Convolution: _convolve,
    indexing.Gather: _gather,
    indexing.Scatter: _scatter,
}
