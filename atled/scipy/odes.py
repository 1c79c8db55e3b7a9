"""Ordinary differential equations by the Dormand-Prince method, with adaptive step sizes.

The difference of a step of order 5 and one of order 4 from the same seven slopes estimates the error; values between
steps are interpolated by a polynomial (Hairer, Norsett and Wanner, "Solving ordinary differential equations I", II.4 to
II.6). Reverse-mode derivatives solve the adjoint equation backwards in time (Chen et al., 2018, appendix C).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes, errors, tree
from atled.core.array import Array, describe, is_array_like, type_of
from atled.core.program import Program, record
from atled.core.trace import Tracer
from atled.core.types import ArrayType
from atled.higher_order.call import run_program
from atled.higher_order.custom_derivatives import custom_vjp
from atled.higher_order.scan import scan
from atled.higher_order.while_loop import while_loop
from atled.staging.jit import jit
from atled.transforms.grad import vjp
from atled.transforms.vmap import vmap

__all__ = ["odeint", "optimal_step_size"]
__dir__ = __all__.copy

# The Butcher tableau. Row i: the node of stage i, and the weights of the earlier stages.
_SLOPES: list[tuple[float, tuple[float, ...]]] = [
    (1 / 5, (1 / 5,)),
    (3 / 10, (3 / 40, 9 / 40)),
    (4 / 5, (44 / 45, -56 / 15, 32 / 9)),
    (8 / 9, (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729)),
    (1, (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656)),
    (1, (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)),
]
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_DENSE = (
    -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072, 701980252875 / 199316789632,
    -1453857185 / 822651844, 69997945 / 29380423,
)  # fmt: skip


# -- trees as vectors -------------------------------------------------------------------------------------------------


def _as_vector(xs: Sequence[Any], dtype: Any) -> Any:
    parts = [_as_dtype(x, dtype).reshape(-1) for x in xs]
    return jnp.concatenate(parts) if parts else jnp.zeros(0, dtype)


def _as_parts(vector: Any, types: Sequence[ArrayType]) -> list[Any]:
    ends = np.cumsum([t.size for t in types])
    return [_as_dtype(vector[end - t.size : end], t.dtype).reshape(t.shape) for t, end in zip(types, ends, strict=True)]


def _as_dtype(x: Any, dtype: Any) -> Any:
    x = jnp.asarray(x)
    return (x.real if x.type.kind == "c" and dtypes.kind(dtype) != "c" else x).astype(dtype)


# -- one equation -----------------------------------------------------------------------------------------------------


class _Equation(NamedTuple):
    """The equation y' = f(y, t, *operands) and solver options; the first operands of f are its captured values."""

    program: Program
    closed_over: tuple[Any, ...]  # captured arrays; None for tracers, which are passed as operands
    rtol: float
    atol: float
    mxstep: float
    hmax: float

    def __call__(self, y: Any, t: Any, operands: Sequence[Any]) -> Any:
        given = iter(operands)
        first = [next(given) if x is None else x for x in self.closed_over]
        return run_program(self.program, [*first, y, t, *given])[0]


def _made(
    f: Callable[..., Any], types: Sequence[ArrayType], settings: tuple[float, ...], name: str
) -> tuple[_Equation, list[Any]]:
    """The equation of a function, and the tracers it closes over, which are its first operands."""
    program, captured = record(lambda *operands: [f(*operands)], types, name)
    closed = tuple([None if isinstance(x, Tracer) else x for x in captured])
    return _Equation(program, closed, *settings), [x for x in captured if isinstance(x, Tracer)]


def _size(x: Any) -> Any:
    """The root mean square of x."""
    return jnp.sqrt(jnp.mean(_squares(x)))


def _squares(x: Any) -> Any:
    return x.real**2 + x.imag**2 if x.type.kind == "c" else x**2


def _first_step(f: Callable[..., Any], t: Any, y: Any, slope: Any, equation: _Equation) -> Any:
    """An initial step size, estimated from y, its slope and its curvature."""
    scale = equation.atol + equation.rtol * abs(y)
    length = lambda x: jnp.sqrt(jnp.sum(_squares(x / scale))).astype(t.dtype)  # noqa: E731
    d0, d1 = length(y), length(slope)
    is_small = (d0 < 1e-5) | (d1 < 1e-5)
    trial = jnp.where(is_small, 1e-6, 0.01 * d0 / jnp.where(is_small, 1, d1))
    ahead = f((y + trial * slope).astype(y.dtype), t + trial)
    d2 = length(ahead - slope) / trial
    is_flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    guess = jnp.where(is_flat, jnp.maximum(1e-6, trial * 1e-3), (0.01 / jnp.maximum(d1, d2)) ** 0.2)
    return jnp.minimum(100 * trial, guess)


def _slopes(f: Callable[..., Any], y: Any, t: Any, step: Any, first: Any) -> tuple[Any, list[Any]]:
    """The value at the end of a step, and the slopes of all stages; the last one is the slope at the end."""
    slopes, end = [first], y
    for share, weights in _SLOPES:
        end = y + (step * _combined(weights, slopes)).astype(y.dtype)
        slopes.append(f(end, t + share * step))
    return end, slopes


def _combined(weights: Sequence[float], slopes: Sequence[Any]) -> Any:
    return sum([w * k for w, k in zip(weights, slopes, strict=True) if w][1:], weights[0] * slopes[0])


class _Progress(NamedTuple):
    """The state of the solver: the last step went from `start` to `t`; `pieces` is its interpolating polynomial."""

    y: Any
    slope: Any
    t: Any
    start: Any
    step: Any
    pieces: Any


def _advanced(f: Callable[..., Any], at: _Progress, equation: _Equation) -> _Progress:
    """The state after one more step, or if its error is too large, the old state with a smaller step size."""
    end, slopes = _slopes(f, at.y, at.t, at.step, at.slope)
    error = at.step * _combined(_ERROR, slopes)
    allowed = equation.atol + equation.rtol * jnp.maximum(abs(at.y), abs(end))
    ratio = _size(error / allowed).astype(at.t.dtype)
    is_good = ratio <= 1
    factor = jnp.clip(0.9 * ratio**-0.2, jnp.where(ratio < 1, 1.0, 0.2), 10.0)
    step = jnp.minimum(jnp.where(ratio == 0, 10.0, factor) * at.step, equation.hmax)
    change, first, last = end - at.y, at.step * slopes[0], at.step * slopes[-1]
    bend = first - change
    pieces = jnp.stack([at.y, change, bend, change - last - bend, at.step * _combined(_DENSE, slopes)])
    moved = _Progress(end, slopes[-1], at.t + at.step, at.t, step, pieces)
    fields = [jnp.where(is_good, new, old).astype(old.dtype) for new, old in zip(moved, at, strict=True)]
    return _Progress(*fields)._replace(step=step.astype(at.step.dtype))


def _between(at: _Progress, t: Any) -> Any:
    """The solution at a time within the last step; NaN if the solver failed."""
    share = jnp.where(t == at.start, 0, (t - at.start) / (at.t - at.start))
    share = jnp.where(at.step > 0, share, jnp.nan)
    y, change, bend, third, fourth = at.pieces
    rest = 1 - share
    return (y + share * (change + rest * (bend + share * (third + rest * fourth)))).astype(y.dtype)


def _integrated(equation: _Equation, y0: Any, times: Any, operands: Sequence[Any]) -> Any:
    """The solution at all times, on a new first axis."""
    f = lambda y, t: equation(y, t, operands)  # noqa: E731

    def until(at: _Progress, t: Any) -> Any:
        def goes_on(state: Any) -> Any:
            count, at = state
            goes = (at.t < t) & (at.step > 0)
            return goes if equation.mxstep == math.inf else goes & (count < equation.mxstep)

        _, at = while_loop(goes_on, lambda s: (s[0] + 1, _advanced(f, s[1], equation)), (jnp.int32(0), at))
        return at, _between(at, t)

    slope = f(y0, times[0])
    step = jnp.minimum(_first_step(f, times[0], y0, slope, equation), equation.hmax).astype(times.dtype)
    zero = jnp.zeros_like(y0)
    at = _Progress(y0, slope, times[0], times[0], step, jnp.stack([y0, zero, zero, zero, zero]))
    _, ys = scan(until, at, times[1:])
    return jnp.concatenate([y0[None], ys])


# -- and its derivative -----------------------------------------------------------------------------------------------


_solved = custom_vjp(_integrated, nondiff_argnums=(0,))


def _forward(equation: _Equation, y0: Any, times: Any, operands: Any) -> Any:
    # calls `_solved`, whose custom rule also applies to second derivatives
    ys = _solved(equation, y0, times, operands)
    return ys, (ys, times, operands)


def _backward(equation: _Equation, residuals: Any, cotangents: Any) -> Any:
    """Solve the adjoint equation from the last time to the first, adding the cotangent of each output time.

    Between output times, y is integrated backward together with its cotangent.
    """
    ys, times, operands = residuals
    kinds = [type_of(x) for x in operands]
    moving = [i for i, t in enumerate(kinds) if t.kind in "fc"]
    state_types = [type_of(ys[0]), type_of(ys[0]), *[kinds[i].strong() for i in moving]]
    dtype = jnp.result_type(*[t.dtype for t in state_types])

    def merged(changing: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        by_index = dict(zip(moving, changing, strict=True))
        return [by_index.get(i, x) for i, x in enumerate(operands)]

    def adjoint(state: Any, backwards: Any, *operands: Any) -> Any:
        y, a, *_ = _as_parts(state, state_types)
        run = lambda y, *xs: equation(y, -backwards, merged(xs, operands))  # noqa: E731
        slope, pull = vjp(run, y, *[operands[i] for i in moving])
        return _as_vector([-slope, *pull(a)], dtype)

    settings = (equation.rtol, equation.atol, equation.mxstep, equation.hmax)
    size = sum([t.size for t in state_types])
    types = [ArrayType((size,), dtype), type_of(times[0]), *[t.strong() for t in kinds]]
    back, closed_over = _made(adjoint, types, settings, "adjoint")

    def segment(carry: Any, given: Any) -> Any:
        a, sums = carry
        y, cotangent, t, before = given
        slope = equation(y, t, operands)
        a = a + cotangent
        state = _as_vector([y, a, *sums], dtype)
        span = jnp.stack([-t, -before])
        _, a, *sums = _as_parts(_solved(back, state, span, [*closed_over, *operands])[-1], state_types)
        return (a, sums), jnp.sum(cotangent * slope).real.astype(times.dtype)

    start = (jnp.zeros_like(ys[0]), [jnp.zeros(t.shape, t.dtype) for t in state_types[2:]])
    (a, sums), by_time = scan(segment, start, (ys[1:], cotangents[1:], times[1:], times[:-1]), reverse=True)
    by_first = -jnp.sum(a * equation(ys[0], times[0], operands)).real.astype(times.dtype)
    grads = dict(zip(moving, sums, strict=True))
    by_operands = [grads.get(i) for i in range(len(operands))]
    return a + cotangents[0], jnp.concatenate([by_first[None], by_time]), by_operands


_solved.defvjp(_forward, _backward)


# -- public -----------------------------------------------------------------------------------------------------------


def _checked(y0: Any, t: Any, args: Any) -> None:
    for x in tree.leaves(args):
        if not is_array_like(x):
            says = f"odeint: arguments of the function must be arrays or numbers; got {describe(x)}."
            raise TypeError(errors.explained(says, "lambda y, t: f(y, t, x), which closes over it."))
    for x in tree.leaves(y0):
        if not is_array_like(x) or type_of(x).kind not in "fc":
            says = f"odeint: y0 must be a pytree of floating or complex arrays; got {describe(x)}."
            raise TypeError(errors.explained(says, "1.0 instead of 1, or y0.astype(float)."))
    if not is_array_like(t) or type_of(t).kind != "f":
        says = f"odeint: t must be an array of floating numbers; got {describe(t)}."
        raise TypeError(errors.explained(says, "numpy.linspace(0.0, 1.0, 11), or numpy.asarray(t, float)."))
    if type_of(t).ndim != 1 or type_of(t).size == 0:
        raise ValueError(errors.explained(f"odeint: t must be a vector of at least one time; got {type_of(t)}."))


def _solution(func: Callable[..., Any], settings: tuple[float, ...], y0: Any, t: Any, args: Any) -> Any:
    """The solution for a pytree y0, whose leaves are integrated as one vector."""
    parts, form = tree.flatten(y0)
    types = [type_of(x) for x in parts]
    dtype = jnp.result_type(*parts) if parts else dtypes.default("f")
    real = dtypes.real_part(dtype)
    clock = real if dtypes.bits(real) >= 32 else dtypes.float32
    operands, args_form = tree.flatten(args)
    operands = [jnp.asarray(x) for x in operands]

    def field(y: Any, t: Any, *operands: Any) -> Array:
        derivative = func(form.unflatten(_as_parts(y, types)), t, *args_form.unflatten(operands))
        slope = _as_vector(tree.leaves(derivative), dtype)
        if slope.shape != y.shape:
            says = f"odeint: the function must return as many numbers as y has, {y.size}; got {slope.size}."
            raise ValueError(errors.explained(says, "one slope for each number of y, in the same order."))
        return slope

    size = sum([x.size for x in types])
    inputs = [ArrayType((size,), dtype), ArrayType((), clock), *[x.type for x in operands]]
    equation, closed_over = _made(field, inputs, settings, getattr(func, "__name__", "func"))
    ys = _solved(equation, _as_vector(parts, dtype), _as_dtype(t, clock), [*closed_over, *operands])
    return form.unflatten(vmap(lambda y: _as_parts(y, types))(ys))


def optimal_step_size(
    last_step: Any,
    mean_error_ratio: Any,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Any:
    """The next step size, from the last step size and its error divided by the tolerance.

    >>> float(optimal_step_size(1.0, 0.0)), float(optimal_step_size(1.0, 1e9)) > 0.19
    (10.0, True)
    """
    least = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(jnp.power(mean_error_ratio, -1.0 / order) * safety, least))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...] = (),
    *,
    tfirst: bool = False,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The solution of `y' = func(y, t, *args)` with `y = y0` at `t[0]`, at increasing times `t`.

    y is an array or a pytree of arrays; the result has one more leading axis, for times. `rtol` and `atol` bound the
    relative and absolute error of a step. `mxstep` bounds the number of steps between two times, `hmax` their length.
    With `tfirst`, `func` takes `t` first. The Dormand-Prince method is explicit: stiff equations take many steps. Only
    reverse-mode derivatives are defined, with respect to `y0`, `t`, `args` and values that `func` closes over.

    >>> import atled.numpy as jnp
    >>> y = odeint(lambda y, t, rate: -rate * y, 1.0, jnp.array([0.0, 1.0, 2.0]), (0.5,), rtol=1e-5)
    >>> [round(float(x), 3) for x in y]
    [1.0, 0.607, 0.368]
    """
    if not callable(func):
        raise TypeError(errors.explained(f"odeint: the first argument must be a function; got {describe(func)}."))
    if not isinstance(args, tuple):
        raise TypeError(errors.explained(f"odeint: args must be a tuple; got {describe(args)}.", "args=(rate,)."))
    _checked(y0, t, args)
    settings = (float(rtol), float(atol), float(mxstep), float(hmax))
    f = (lambda y, t, *rest: func(t, y, *rest)) if tfirst else func
    # one launch; the trace of the lambda is cached by the values it closes over, not by its identity
    return jit(lambda y0, t, args: _solution(f, settings, y0, t, args))(y0, t, args)
