"""SciPy's `minimize` by quasi-Newton methods: BFGS, and L-BFGS, which stores the last few steps instead of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes
from atled.core.array import ArrayLike, type_of
from atled.higher_order.while_loop import fori_loop, while_loop
from atled.numpy.promotion import cast, inexact_dtype, operand_type
from atled.ops import conversion
from atled.scipy.line_search import Point, line_search, noise
from atled.transforms.grad import value_and_grad

__all__ = ["OptimizeResults", "minimize"]
__dir__ = __all__.copy


class OptimizeResults(NamedTuple):
    """The result of `minimize`: `x`, its status, the value, gradient and inverse Hessian at `x`, and call counts.

    The status is 0 at a minimum, 1 after `maxiter` iterations, 2 and 3 at the limit on evaluations of the function and
    its gradient, 4 if the value decreased by less than `ftol`, and 5 if no step along the gradient decreases the value.

    >>> found = minimize(lambda x: ((x - 3) ** 2).sum(), jnp.zeros(1), method="BFGS")
    >>> round(float(found.x[0]), 3), bool(found.success)
    (3.0, True)
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


# -- state of the methods ----------------------------------------------------------------------------------------------


class _Method(NamedTuple):
    """A quasi-Newton method, as functions that return the initial memory, a search direction, and the next memory."""

    start: Callable[[Any], Any]  # argument: a vector shaped like x
    direction: Callable[[Any, Any], Any]
    # arguments: the memory, whether it is empty, the step, and the change of the gradient
    updated: Callable[[Any, Any, Any, Any], Any]


def _dot(x: Any, y: Any) -> Any:
    return jnp.dot(x, y, precision="highest")


def _updated_inverse(inverse: Any, is_empty: Any, s: Any, y: Any) -> Any:
    """The inverse Hessian after a step: J. Nocedal and S. J. Wright, Numerical Optimization (2006), 6.17 and 6.20."""
    curvature = _dot(s, y)
    inverse = jnp.where(is_empty, inverse * (curvature / _dot(y, y)), inverse)
    moved = _dot(inverse, y)
    mixed = jnp.outer(s, moved)
    return inverse - (mixed + mixed.T) / curvature + jnp.outer(s, s) * ((1 + _dot(y, moved) / curvature) / curvature)


_BFGS = _Method(
    start=lambda x: jnp.eye(type_of(x).size, dtype=type_of(x).dtype),
    direction=lambda inverse, g: -_dot(inverse, g),
    updated=_updated_inverse,
)


class _Steps(NamedTuple):
    """The last steps, the changes of the gradient in them (the newest last), and the number of steps."""

    s: Any
    y: Any
    count: Any


def _limited(size: int) -> _Method:
    def start(x: Any) -> _Steps:
        nothing = jnp.zeros((size, type_of(x).size), type_of(x).dtype)
        return _Steps(nothing, nothing, 0)

    def direction(memory: _Steps, g: Any) -> Any:
        """The search direction, by the two-loop recursion of Nocedal and Wright, algorithm 7.4."""
        s, y, count = memory
        products = jnp.sum(s * y, axis=1)
        known = np.arange(size) >= size - count
        inverse = jnp.where(known, 1 / jnp.where(known, products, 1), 0)

        def back(i: Any, state: Any) -> Any:
            q, shares = state
            k = size - 1 - i
            share = inverse[k] * _dot(s[k], q)
            return q - share * y[k], shares.at[k].set(share)

        q, shares = fori_loop(0, size, back, (g, jnp.zeros_like(products)))
        scale = jnp.where(count > 0, products[-1] / jnp.where(count > 0, _dot(y[-1], y[-1]), 1), 1)
        forth = lambda k, r: r + s[k] * (shares[k] - inverse[k] * _dot(y[k], r))  # noqa: E731
        return -fori_loop(0, size, forth, scale * q)

    def updated(memory: _Steps, is_empty: Any, s: Any, y: Any) -> _Steps:
        keep = lambda old, new: jnp.concatenate([old[1:], new[None]])  # noqa: E731
        return _Steps(keep(memory.s, s), keep(memory.y, y), jnp.minimum(memory.count + 1, size))

    return _Method(start, direction, updated)


# -- the iteration ----------------------------------------------------------------------------------------------------


class _Limits(NamedTuple):
    """The tolerances and limits at which the iterations stop."""

    gtol: Any
    ftol: Any
    norm: Any
    iterations: Any
    values: Any
    gradients: Any
    search: Any


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    memory: Any
    is_empty: Any  # whether the memory is empty: the direction is -gradient then
    status: Any  # -1 while the iterations continue
    steps: Any
    evaluations: Any


def _ended(limits: _Limits, state: _State, fall: Any) -> Any:
    """The status of a state; `fall` is the decrease of the value in the last step."""
    status = jnp.where(fall < limits.ftol, 4, -1)
    status = jnp.where(state.evaluations >= limits.gradients, 3, status)
    status = jnp.where(state.evaluations >= limits.values, 2, status)
    status = jnp.where(state.steps >= limits.iterations, 1, status)
    return jnp.where(jnp.linalg.norm(state.gradient, limits.norm) < limits.gtol, 0, status)


def _tree_where(condition: Any, x: Any, y: Any) -> Any:
    if isinstance(x, _Steps):
        return _Steps(*[jnp.where(condition, a, b) for a, b in zip(x, y, strict=True)])
    return jnp.where(condition, x, y)


def _iterate(fun: Callable[[Any], Any], x: Any, method: _Method, limits: _Limits) -> _State:
    both = value_and_grad(fun)

    def step(state: _State) -> _State:
        direction = method.direction(state.memory, state.gradient)
        slope = _dot(direction, state.gradient)
        is_lost = ~(slope < 0)  # not a descent direction, or NaN
        direction = jnp.where(is_lost, -state.gradient, direction)
        slope = jnp.where(is_lost, -_dot(state.gradient, state.gradient), slope)
        is_plain = state.is_empty | is_lost

        def evaluate(at: Any) -> Point:
            value, gradient = both(state.x + at * direction)
            return Point(at, value, _dot(gradient, direction), gradient)

        length = jnp.sqrt(_dot(direction, direction))
        first = jnp.where(is_plain, jnp.minimum(1, 1 / length), 1)
        origin = Point(jnp.zeros_like(slope), state.value, slope, state.gradient)
        search = line_search(evaluate, origin, first, limits.search)
        point = Point(*[jnp.where(search.is_done, a, b) for a, b in zip(search.last, search.low, strict=True)])
        moved = jnp.where(point.at == 0, state.x, state.x + point.at * direction)
        s, y = moved - state.x, point.gradient - state.gradient
        rounding = float(dtypes.finfo(type_of(s).dtype).eps)
        is_useful = _dot(s, y) > rounding * jnp.sqrt(_dot(s, s) * _dot(y, y))
        memory = _tree_where(is_plain, method.start(s), state.memory)
        memory = _tree_where(is_useful, method.updated(memory, is_plain, s, y), memory)
        # if no step was found, the memory is cleared, and the next direction is -gradient
        is_stuck = jnp.all(s == 0)
        memory = _tree_where(is_stuck, method.start(s), memory)
        is_empty = is_stuck | (is_plain & ~is_useful)
        count = state.evaluations + search.count
        new = _State(moved, point.value, point.gradient, memory, is_empty, -1, state.steps + 1, count)
        fall = jnp.where(is_stuck, np.inf, state.value - point.value)
        # the predicted decrease is below the rounding error of values, or the step only reaches adjacent floats
        is_short = ~is_plain & (jnp.max(jnp.abs(direction)) <= 8 * rounding * jnp.max(jnp.abs(state.x)))
        is_exact = is_stuck & ((-slope <= noise(state.value)) | is_short)
        status = jnp.where(is_stuck & is_plain, 5, _ended(limits, new, fall))
        return new._replace(status=jnp.where(is_exact, 0, status))

    value, gradient = both(x)
    empty = jnp.asarray(True)
    state = _State(x, value, gradient, method.start(x), empty, jnp.asarray(-1), 0, 1)
    state = state._replace(status=_ended(limits, state, np.inf))
    return while_loop(lambda state: state.status < 0, step, state)


# -- the public function ----------------------------------------------------------------------------------------------

_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"
_OPTIONS = {
    "bfgs": ("maxiter", "norm", "gtol", "line_search_maxiter"),
    _LIMITED: ("maxiter", "norm", "maxcor", "ftol", "gtol", "maxfun", "maxgrad", "maxls"),
}


def _start(x0: Any, method: str) -> Any:
    t = operand_type("minimize", x0)
    if t.ndim != 1:
        raise ValueError(f"minimize: x0 must have one axis; got {t}.\n  try: x0.ravel(), and reshape in fun.")
    if t.kind == "c" and method == "bfgs":
        raise ValueError(f"minimize: BFGS takes real numbers; got {t}.\n  try: real and imaginary parts, concatenated.")
    return cast(jnp.asarray(x0), inexact_dtype(t.dtype))


def minimize(
    fun: Callable[..., Any], x0: ArrayLike, args: tuple[Any, ...] = (), *, method: str, tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:  # fmt: skip
    """Find a local minimum of `fun(x, *args)` over vectors x, starting from x0; the method is "BFGS".

    Options: `maxiter`, `gtol` (by default `tol`, or 1e-5), below which the `norm` of the gradient means a minimum, and
    `line_search_maxiter`. `success` is also true if only rounding prevents a better step.
    The method "l-bfgs-experimental-do-not-rely-on-this" needs less memory, also takes complex numbers, and has options
    `maxiter`, `gtol`, `norm`, `ftol`, `maxcor` (steps to keep), `maxfun`, `maxgrad` and `maxls`.

    >>> import atled.numpy as jnp
    >>> found = minimize(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2), method="BFGS")
    >>> bool(found.success), bool(jnp.allclose(found.x, 3.0))
    (True, True)
    """
    kind, given = str(method).lower(), dict(options or {})
    if kind not in _OPTIONS:
        raise ValueError(f"minimize: the method is 'BFGS' or {_LIMITED!r}; got {method!r}.")
    if not isinstance(args, tuple):
        raise TypeError(
            f"minimize: args must be a tuple; got {type(args).__name__}.\n  try: args=(x,) for one argument."
        )
    if unknown := sorted(given.keys() - set(_OPTIONS[kind])):
        raise TypeError(f"minimize: the options of {method} are {', '.join(_OPTIONS[kind])}; got {', '.join(unknown)}.")
    x = _start(x0, kind)
    n, is_complex = type_of(x).size, type_of(x).kind == "c"
    gtol, norm = given.get("gtol", 1e-5 if tol is None else tol), given.get("norm", np.inf)
    counts = [given.get(name) for name in ("maxiter", "maxfun", "maxgrad")]
    if all([c is None for c in counts]):
        counts[0] = n * 200
    most, values, gradients = (np.inf if c is None else c for c in counts)
    steps = given.get("line_search_maxiter", 20) if kind == "bfgs" else given.get("maxls", 20)
    ftol = -np.inf if kind == "bfgs" else given.get("ftol", 2.220446049250313e-09)
    whole = (lambda v: conversion.complex(v[:n], v[n:])) if is_complex else (lambda v: v)
    plan = _BFGS if kind == "bfgs" else _limited(int(given.get("maxcor", 10)))
    start = jnp.concatenate([conversion.real(x), conversion.imag(x)]) if is_complex else x
    state = _iterate(
        lambda v: fun(whole(v), *args), start, plan, _Limits(gtol, ftol, norm, most, values, gradients, steps)
    )
    # by convention, the gradient with respect to a complex number is conjugated
    gradient = whole(state.gradient).conj() if is_complex else state.gradient
    success = (state.status == 0) | (state.status == 4)
    inverse = state.memory if kind == "bfgs" else None
    count = state.evaluations
    return OptimizeResults(
        whole(state.x), success, state.status, state.value, gradient, inverse, count, count, state.steps
    )
