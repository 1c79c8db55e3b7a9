"""Probability distributions from formulas for the standardized variable; location and scale are added here.

A distribution is a dictionary of functions. `continuous` and `counted` make it from formulas that hold on its support;
they handle promotion, location and scale, values outside of the support, and invalid parameters, which give NaN.
Formulas only get operands inside of the support, so outside of it derivatives are zero instead of NaN. 16-bit floats
are computed in float32.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes
from atled.core.array import type_of
from atled.numpy.promotion import cast, promote_inexact
from atled.ops import conversion
from atled.staging.jit import library_function

Formula = Callable[..., Any]
Functions = dict[str, Callable[..., Any]]
LOG_TWO_PI = math.log(2 * math.pi)
INFINITE = math.inf

# For each function: the start of its docstring, and its values below and above the support.
_KINDS = {
    "pdf": ("The density", (0, 0)),
    "logpdf": ("The logarithm of the density", (-INFINITE, -INFINITE)),
    "pmf": ("The probability of k", (0, 0)),
    "logpmf": ("The logarithm of the probability of k", (-INFINITE, -INFINITE)),
    "cdf": ("The cumulative distribution function", (0, 1)),
    "logcdf": ("The logarithm of the cumulative distribution function", (-INFINITE, 0)),
    "sf": ("The survival function, 1 - cdf", (1, 0)),
    "logsf": ("The logarithm of the survival function", (0, -INFINITE)),
    "ppf": ("The quantile function, the inverse of the cdf", None),
    "isf": ("The inverse of the survival function", None),
    "entropy": ("The entropy", None),
}


def function(distribution: str, name: str, parameters: str, what: str, compute: Formula) -> Callable[..., Any]:
    """A public function with parameters such as "x a loc=0"; `compute` gets real arrays of a common dtype."""
    params = []
    for text in parameters.split():
        key, _, default = text.partition("=")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        params.append(inspect.Parameter(key, kind, default=int(default) if default else inspect.Parameter.empty))
    signature = inspect.Signature(params)

    def call(*operands: Any, **named: Any) -> Any:
        bound = signature.bind(*operands, **named)
        bound.apply_defaults()
        wide, dtype = wide_operands(f"{distribution}.{name}", *bound.args)
        return cast(compute(*wide), dtype)

    call.__name__ = name
    call.__qualname__ = f"{distribution}.{name}"
    call.__module__ = f"atled.scipy.stats.{distribution}"
    call.__doc__ = f"{_KINDS[name][0]}, for {what}."
    call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return library_function(call)


def wide_operands(name: str, *operands: Any) -> tuple[list[Any], Any]:
    """Real operands converted to a common dtype of 32 bits or more, and the dtype of the result."""
    promoted = promote_inexact(name, *operands)
    dtype = type_of(promoted[0]).dtype
    if dtypes.kind(dtype) == "c":
        raise TypeError(f"{name}: real numbers are needed; got {' and '.join(str(type_of(x)) for x in operands)}.")
    wide = dtype if dtypes.bits(dtype) >= 32 else dtypes.float32
    # Python numbers become arrays, too: with literals, formulas could return another dtype
    return [conversion.convert(cast(x, wide), wide) for x in promoted], dtype


def continuous(
    name: str,
    what: str,
    parameters: str = "",
    *,
    support: Formula = lambda *_: (-INFINITE, INFINITE),
    inside: float = 0.5,
    allows: Formula = lambda *_: True,
    place: str = "loc=0 scale=1",
    variables: dict[str, str] | None = None,
    **formulas: Formula,
) -> Functions:
    """The functions of a distribution of real numbers.

    `formulas` take the standardized variable and the parameters. `support` returns the interval of possible values,
    which contains `inside`, and `allows` whether parameters are valid. `variables` names the first parameter of a
    function if it is not x (q for quantiles).
    """

    def standard(kind: str, formula: Formula) -> Formula:
        def compute(x: Any, *rest: Any) -> Any:
            values, (loc, scale) = _split(rest, place)
            z = (x - loc) / scale if place else x
            low, high = support(*values)
            is_below, is_above = (z < low) | (z == -INFINITE), (z > high) | (z == INFINITE)
            out = formula(jnp.where(is_below | is_above, np.asarray(inside, type_of(z).dtype), z), *values)
            if kind == "logpdf" and place:
                out = out - jnp.log(scale)
            below, above = _KINDS[kind][1]
            out = jnp.where(is_below, below, jnp.where(is_above, above, out))
            return _if_allowed(out, allows(*values), scale)

        return compute

    def quantile(formula: Formula) -> Formula:
        def compute(q: Any, *rest: Any) -> Any:
            values, (loc, scale) = _split(rest, place)
            is_inside = (q >= 0) & (q <= 1)
            out = formula(jnp.where(is_inside, q, np.asarray(0.5, type_of(q).dtype)), *values)
            out = out * scale + loc if place else out
            return _if_allowed(jnp.where(is_inside, out, np.nan), allows(*values), scale)

        return compute

    computed = {}
    for kind, formula in formulas.items():
        is_quantile = kind in ("ppf", "isf")
        variable = (variables or {}).get(kind, "q" if is_quantile else "x")
        compute = quantile(formula) if is_quantile else standard(kind, formula)
        computed[kind] = (variable, compute)
        if kind == "logpdf":
            computed["pdf"] = (variable, lambda *operands, f=compute: jnp.exp(f(*operands)))
    return {k: function(name, k, f"{v} {parameters} {place}", what, f) for k, (v, f) in computed.items()}


def _split(rest: tuple[Any, ...], place: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The parameters, and the location and scale: (0, 1) without `place`."""
    return (rest[:-2], rest[-2:]) if place else (rest, (0, 1))


def _if_allowed(out: Any, is_allowed: Any, scale: Any) -> Any:
    """The result, or NaN where parameters are invalid."""
    condition = is_allowed if isinstance(scale, int) else is_allowed & (scale > 0)
    return out if condition is True else jnp.where(condition, out, np.nan)


def counted(
    name: str,
    what: str,
    parameters: str,
    *,
    support: Formula,
    logpmf: Formula,
    allows: Formula,
    cdf: Formula | None = None,
    with_place: bool = True,
) -> Functions:
    """The functions of a distribution of integers; `support` returns its smallest and largest value."""

    def compute(k: Any, *rest: Any) -> Any:
        values, k = rest[:-1], k - rest[-1]
        low, high = support(*values)
        is_inside = (k >= low) & (k <= high) & (k == jnp.floor(k)) & (k < INFINITE)
        out = jnp.where(is_inside, logpmf(jnp.where(is_inside, k, low), *values), -INFINITE)
        return jnp.where(allows(*values) & (k == k), out, np.nan)

    def cumulative(k: Any, *rest: Any) -> Any:
        values, k = (rest[:-1], k - rest[-1]) if with_place else (rest, k)
        low, high = support(*values)
        is_inside = (k >= low) & (k < high) & (k < INFINITE)
        assert cdf is not None
        out = cdf(jnp.where(is_inside, jnp.floor(k), low), *values)
        out = jnp.where(is_inside, out, jnp.where(k < low, np.zeros((), type_of(out).dtype), 1))
        return jnp.where(allows(*values) & (k == k), out, np.nan)

    computed = {"logpmf": compute, "pmf": lambda *operands: jnp.exp(compute(*operands))}
    out = {kind: function(name, kind, f"k {parameters} loc=0", what, f) for kind, f in computed.items()}
    if cdf is not None:
        out["cdf"] = function(name, "cdf", f"k {parameters} {'loc=0' if with_place else ''}", what, cumulative)
    return out
