"""`jet`: derivatives of all orders along a curve at once, by arithmetic on truncated Taylor series.

Each value is a polynomial in one variable, truncated at some order. The rule for an op follows from its properties: a
linear op applies to each coefficient, and a bilinear op multiplies polynomials. For any other op, the `jvp` rule is a
differential equation: y' is a function of x and x', which are computed to one order less. The cost is therefore
polynomial in the order; with nested `jvp`s, each order doubles it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from atled import numpy as jnp
from atled.core import dtypes, errors, tree
from atled.core.array import describe, is_array_like, type_of
from atled.core.op import instantiate
from atled.core.program import evaluate
from atled.core.trace import Interpreter, Tracer, bind, entered, state
from atled.core.types import Zero
from atled.higher_order.call import Call
from atled.higher_order.remat import Checkpoint
from atled.ops import elementwise as ew

__all__ = ["def_comp", "def_deriv", "jet"]
__dir__ = __all__.copy
_composed: dict[Any, Callable[..., Any]] = {}  # decompositions of user-defined primitives
_slopes: dict[Any, Callable[..., Any]] = {}  # their derivatives


class TaylorTracer(Tracer):
    """A polynomial: `terms[k]` is the coefficient of power k; `terms[0]` is the value."""

    __slots__ = ("terms",)

    def __init__(self, interpreter: Interpreter, terms: list[Any]) -> None:
        self.interpreter = interpreter
        self.terms = terms
        self.type = type_of(terms[0])

    def known(self) -> Any:
        value = self.terms[0]
        return value.known() if isinstance(value, Tracer) else value


class Taylor(Interpreter):
    """Applies ops to polynomials truncated after the power `order`, which is at least 1."""

    __slots__ = ("order",)
    transform = "differentiation"

    def __init__(self, level: int, order: int) -> None:
        super().__init__(level)
        self.order = order

    def terms(self, x: Any) -> list[Any] | None:
        """The terms of a polynomial, or None for a constant."""
        return x.terms if isinstance(x, TaylorTracer) and x.interpreter is self else None

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if type(op) is Call or type(op) is Checkpoint:
            return tuple(evaluate(op.program, operands))
        own = getattr(op, "primitive", None)
        if own in _composed:
            return _composed[own](*operands, **dict(op.items))
        rows = [self.terms(x) for x in operands]
        values = [x if r is None else r[0] for x, r in zip(operands, rows, strict=True)]
        moving = {i for i, r in enumerate(rows) if r is not None}
        groups = op.linear_groups(len(operands))
        types = op.result_type(*[type_of(x) for x in values])
        if not moving or (type(types) is not tuple and types.kind not in "fc"):
            return bind(op, *values)
        if any([moving <= {*group} for group in groups]):
            group = next(group for group in groups if moving <= {*group})
            series = self._linear(op, values, rows, group)
        elif type(op) is ew.Div:
            series = self._quotient(values, rows)
        elif len(groups) == 2 and all([len(group) == 1 for group in groups]) and moving == {g[0] for g in groups}:
            series = self._product(op, values, rows, groups[0][0], groups[1][0])
        else:
            return self._by_rule(op, values, rows)
        if type(types) is not tuple:
            return TaylorTracer(self, series)
        return tuple([TaylorTracer(self, list(terms)) for terms in zip(*series, strict=True)])

    def _linear(self, op: Any, values: list[Any], rows: list[Any], group: tuple[int, ...]) -> list[Any]:
        still = [
            instantiate(Zero(type_of(x).tangent())) if i in group and rows[i] is None else x
            for i, x in enumerate(values)
        ]
        higher = [
            bind(op, *[x if r is None else r[k] for x, r in zip(still, rows, strict=True)])
            for k in range(1, self.order + 1)
        ]
        return [bind(op, *values), *higher]

    def _product(self, op: Any, values: list[Any], rows: list[Any], left: int, right: int) -> list[Any]:
        def term(k: int) -> Any:
            parts = []
            for j in range(k + 1):
                given = list(values)
                given[left], given[right] = rows[left][j], rows[right][k - j]
                parts.append(bind(op, *given))
            return _total(parts)

        return [term(k) for k in range(self.order + 1)]

    def _quotient(self, values: list[Any], rows: list[Any]) -> list[Any]:
        """The coefficients of the quotient q with x = q y, computed from the lowest power up."""
        below, (x, y) = rows[1], values
        coefficients = [ew.div(x, y)]
        for k in range(1, self.order + 1):
            rest = _total([ew.mul(below[j], coefficients[k - j]) for j in range(1, k + 1)])
            coefficients.append(ew.div(ew.neg(rest) if rows[0] is None else ew.sub(rows[0][k], rest), y))
        return coefficients

    def _by_rule(self, op: Any, values: list[Any], rows: list[Any]) -> Any:
        """The polynomial y that solves y' = jvp(x, x'), where x and x' have one order less."""
        less = Taylor(state.level + 1, self.order - 1)
        with entered(less):
            primals = [x if r is None else less.wrap(r[:-1]) for x, r in zip(values, rows, strict=True)]
            tangents = [
                Zero(type_of(x).tangent()) if r is None else less.wrap(_derivative(r))
                for x, r in zip(values, rows, strict=True)
            ]
            own = getattr(op, "primitive", None)
            if own in _slopes:
                out, moved = bind(op, *primals), ew.mul(_slopes[own](*primals), tangents[0])
            else:
                out, moved = op.jvp(primals, tangents)
            is_tuple = type(out) is tuple
            pairs = zip(out, moved, strict=True) if is_tuple else [(out, moved)]
            results = [self._integral(less, x, t) for x, t in pairs]
        return tuple(results) if is_tuple else results[0]

    def _integral(self, less: Taylor, value: Any, slope: Any) -> Any:
        terms = less.terms(value)
        value = value if terms is None else terms[0]
        if type(slope) is Zero:
            return value
        slopes = less.terms(slope) or [slope]
        slopes = slopes + [instantiate(Zero(type_of(value).tangent()))] * (self.order - len(slopes))
        return TaylorTracer(self, [value, *[_scaled(s, 1 / k) for k, s in enumerate(slopes, 1)]])

    def wrap(self, terms: list[Any]) -> Any:
        """A polynomial with these terms, or the plain value if it is the only term."""
        return TaylorTracer(self, terms) if len(terms) > 1 else terms[0]


def def_deriv(prim: Any, deriv: Callable[..., Any]) -> None:
    """Register the derivative of a user-defined primitive of one operand, as a function of that operand.

    >>> import atled.numpy as jnp
    >>> from atled.jax.extend.core import Primitive
    >>> sine = Primitive("sine")
    >>> _ = sine.def_impl(jnp.sin), sine.def_abstract_eval(lambda x: x)
    >>> def_deriv(sine, jnp.cos)
    >>> jet(sine.bind, (0.0,), ((1.0, 0.0),))  # sin(0), cos(0), -sin(0)
    (Array(0., dtype=float32, weak_type=True), [Array(1., dtype=float32), Array(0., dtype=float32)])
    """
    _slopes[prim] = deriv


def def_comp(prim: Any, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Register the decomposition of a user-defined primitive: a function of its operands and parameters.

    >>> import atled.numpy as jnp
    >>> from atled.jax.extend.core import Primitive
    >>> cube = Primitive("cube")
    >>> _ = cube.def_abstract_eval(lambda x: x)
    >>> def_comp(cube, lambda x: x * x * x)
    >>> jet(cube.bind, (2.0,), ((1.0, 0.0),))  # the value, then 3 x**2 and 6 x
    (Array(8., dtype=float32, weak_type=True), [Array(12., dtype=float32), Array(12., dtype=float32)])
    """
    _composed[prim] = lambda *operands, **params: comp(*operands, **kwargs, **params)


def _total(parts: Sequence[Any]) -> Any:
    out = parts[0]
    for x in parts[1:]:
        out = ew.add(out, x)
    return out


def _scaled(x: Any, by: float) -> Any:
    return x if by == 1 else ew.mul(x, jnp.asarray(by, type_of(x).dtype))


def _derivative(terms: list[Any]) -> list[Any]:
    return [_scaled(x, k) for k, x in enumerate(terms[1:], 1)]


def _checked(primals: Any, series: Any) -> list[list[Any]]:
    """The value and the terms of each argument, as arrays of its dtype."""
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        says = "jet: primals and series must be tuples, one entry for each argument of the function"
        raise TypeError(errors.explained(f"{says}; got {describe(primals)} and {describe(series)}."))
    for terms in series:
        if not isinstance(terms, (tuple, list)):
            says = f"jet: the series of an argument must be a tuple or list of terms; got {describe(terms)}."
            raise TypeError(errors.explained(says, "((v,),) for a first derivative v alone."))
    if len(series) != len(primals) or len({len(terms) for terms in series}) > 1:
        counts = ", ".join([str(len(terms)) for terms in series])
        says = f"jet: each of {len(primals)} arguments must have a series, all of one length; got lengths ({counts})."
        raise ValueError(errors.explained(says))
    rows = []
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if not is_array_like(x):
            says = f"jet: arguments must be arrays or numbers; argument {i} is {describe(x)}."
            raise ValueError(errors.explained(says, "a function of the leaves of a tree."))
        x = jnp.asarray(x)
        if x.type.kind not in "fc":
            raise TypeError(errors.explained(f"jet: arguments must be floating or complex; argument {i} is {x.type}."))
        terms = [jnp.asarray(term, x.dtype) for term in terms]
        for term in terms:
            if term.shape != x.shape:
                says = f"jet: terms must have the shape of their argument, {x.type}; got {term.type} for argument {i}."
                raise ValueError(errors.explained(says))
        rows.append([x, *terms])
    return rows


def jet(fun: Callable[..., Any], primals: Any, series: Any, factorial_scaled: bool = True, **_: Any) -> Any:
    """The value of `fun(*primals)`, and its derivatives of all orders along a curve through the primals.

    `series` holds a sequence for each argument: the first, second and higher derivatives of the curve. The derivatives
    of `fun` are returned as one list for each result. Without `factorial_scaled`, series and derivatives are Taylor
    coefficients: the k-th derivative divided by k!.

    >>> import atled.numpy as jnp
    >>> value, (first, second, third) = jet(lambda x: x**3, (2.0,), ((1.0, 0.0, 0.0),))
    >>> float(value), float(first), float(second), float(third)
    (8.0, 12.0, 12.0, 6.0)
    """
    rows = _checked(primals, series)
    order = len(rows[0]) - 1 if rows else 0
    factors = [1 / math.factorial(k) if factorial_scaled else 1.0 for k in range(order + 1)]
    if order == 0:
        out, form = tree.flatten(fun(*[row[0] for row in rows]))
        return form.unflatten(out), form.unflatten([[] for _ in out])
    interpreter = Taylor(state.level + 1, order)
    with entered(interpreter):
        curves = [TaylorTracer(interpreter, [_scaled(x, f) for x, f in zip(row, factors, strict=True)]) for row in rows]
        out, form = tree.flatten(fun(*curves))
        polynomials = [interpreter.terms(x) or _constant(x, order) for x in out]
        polynomials = [
            [x, *[_scaled(v, 1 / f) for v, f in zip(terms, factors[1:], strict=True)]] for x, *terms in polynomials
        ]
    return form.unflatten([x for x, *_ in polynomials]), form.unflatten([terms for _, *terms in polynomials])


def _constant(x: Any, order: int) -> list[Any]:
    t = type_of(x)
    zero = jnp.zeros(t.shape, t.dtype if t.kind in "fc" else dtypes.default("f"))
    return [x, *[zero] * order]
