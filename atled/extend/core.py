"""Programs and traced values, under the names of `jax.extend.core` and `jax.core`.

A `Program` is both a `Jaxpr` and a `ClosedJaxpr`: it has `invars`, `constvars`, `consts`, `eqns` and `outvars`, and
equations have `primitive`, `params`, `invars` and `outvars`. Primitives are ops: objects with `name` that are compared
by value.

>>> import atled, atled.numpy as jnp
>>> closed = atled.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
>>> isinstance(closed.jaxpr, Jaxpr), [e.primitive.name for e in closed.eqns]
(True, ['sin', 'mul'])
>>> [float(y) for y in eval_jaxpr(closed.jaxpr, closed.consts, 0.0)]
[0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled.core.array import is_array_like
from atled.core.errors import ConcretizationTypeError
from atled.core.op import Op as Primitive
from atled.core.program import Equation as JaxprEqn
from atled.core.program import Literal, Program, Var, check, evaluate, subprograms
from atled.core.program import ProgramError as JaxprTypeError
from atled.core.trace import Interpreter as Trace
from atled.core.trace import Tracer, state
from atled.core.types import ArrayType as ShapedArray
from atled.higher_order.scopes import ensure_compile_time_eval

__all__ = [
    "AbstractValue", "Atom", "ClosedJaxpr", "ConcretizationTypeError", "DropVar", "Jaxpr", "JaxprEqn", "JaxprTypeError",
    "Literal", "Primitive", "ShapedArray", "Trace", "Tracer", "Value", "Var", "check_jaxpr", "concrete_or_error",
    "ensure_compile_time_eval", "eval_jaxpr", "is_concrete", "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval",
    "subjaxprs", "unmapped_aval", "valid_jaxtype",
]  # fmt: skip

Jaxpr = ClosedJaxpr = Program
AbstractValue = ShapedArray
Atom = Var | Literal
Value = Any
check_jaxpr = check


class DropVar(Var):
    """A result that nobody uses. Programs here have none: what is not used is a variable as others are."""


def eval_jaxpr(jaxpr: Program, consts: Any, *args: Any) -> list[Any]:
    """Run a program: `consts` are the values of its `constvars`, `args` those of its `invars`.

    >>> import atled
    >>> closed = atled.make_jaxpr(lambda x, y: (x + y, x))(1, 2)
    >>> [int(v) for v in eval_jaxpr(closed, closed.consts, 3, 4)]
    [7, 3]
    """
    return evaluate(jaxpr, [*consts, *args])


def jaxpr_as_fun(closed_jaxpr: Program) -> Callable[..., list[Any]]:
    """A program as a function that gives a list.

    >>> import atled
    >>> [int(v) for v in jaxpr_as_fun(atled.make_jaxpr(lambda x: x + 1)(1))(2)]
    [3]
    """
    return lambda *args: evaluate(closed_jaxpr, [*closed_jaxpr.consts, *args])


def subjaxprs(jaxpr: Program) -> list[Program]:
    """The programs that equations hold: bodies of loops, branches, functions that are called.

    >>> import atled
    >>> loop = atled.make_jaxpr(lambda x: atled.lax.fori_loop(0, 3, lambda i, x: x * 2, x))(1.0)
    >>> len(subjaxprs(loop)) > 0
    True
    """
    return [inner for e in jaxpr.equations for inner in subprograms(e.op)]


def jaxprs_in_params(params: dict[str, Any]) -> list[Program]:
    """The programs among the parameters of an equation, also in tuples and lists of them.

    >>> jaxprs_in_params({"length": 3})
    []
    """
    found: list[Program] = []
    for value in params.values():
        several = value if isinstance(value, (tuple, list)) else (value,)
        found += [x for x in several if isinstance(x, Program)]
    return found


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """`force(val)`, or a clear error if the value is traced.

    >>> concrete_or_error(int, 3.0)
    3
    """
    if isinstance(val, Tracer):
        raise ConcretizationTypeError(f"{context or 'a value is needed here'}; got one that is traced, {val.type}.")
    return val if force is None else force(val)


def is_concrete(x: Any) -> bool:
    """Whether a value is at hand.

    >>> is_concrete(1.0)
    True
    """
    return not isinstance(x, Tracer)


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array, or can be taken as one.

    >>> valid_jaxtype(1.0), valid_jaxtype("a")
    (True, False)
    """
    return is_array_like(x)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch.

    >>> mapped_aval(3, 0, ShapedArray((3, 2), "float32"))
    f32[2]
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval} must have size {size}.")
    return aval.with_shape((*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, *_: Any) -> ShapedArray:
    """The type of a batch of examples.

    >>> unmapped_aval(3, 1, ShapedArray((2,), "float32"))
    f32[2,3]
    """
    return aval if axis is None else aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


def trace_state_clean() -> bool:
    """Whether no function is being transformed.

    >>> trace_state_clean()
    True
    """
    return state.level == 0
