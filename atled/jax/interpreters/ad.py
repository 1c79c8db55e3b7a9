"""Derivatives of user-defined primitives, with the API of `jax.interpreters.ad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core.array import type_of
from atled.core.op import instantiate
from atled.core.types import ArrayType, Zero
from atled.core.types import Linear as UndefinedPrimal
from atled.jax.extend.primitive import jvps as primitive_jvps
from atled.jax.extend.primitive import transposes as primitive_transposes
from atled.ops import elementwise, shape
from atled.transforms.jvp import Jvp as JVPTrace
from atled.transforms.jvp import JvpTracer as JVPTracer

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_tangents", "defbilinear", "defjvp",
    "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal",
    "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip
__dir__ = __all__.copy


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as an array: zeros for a symbolic zero.

    >>> instantiate_zeros(Zero(type_of(1.0)))
    Array(0., dtype=float32)
    """
    return instantiate(tangent)


def is_undefined_primal(x: object) -> bool:
    """Whether a value is a placeholder for a linear operand of a transpose rule.

    >>> is_undefined_primal(UndefinedPrimal(type_of(1.0))), is_undefined_primal(1.0)
    (True, False)
    """
    return isinstance(x, UndefinedPrimal)


def zeros_like_aval(aval: ArrayType) -> Any:
    """An array of zeros with the given type.

    >>> import atled.numpy as jnp
    >>> zeros_like_aval(type_of(jnp.array([1, 2])))
    Array([0, 0], dtype=int32)
    """
    return shape.full(aval, 0)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two tangents, which must be arrays.

    >>> import atled.numpy as jnp
    >>> add_jaxvals(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([11, 22], dtype=int32)
    """
    return elementwise.add(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents; either may be a symbolic zero.

    >>> add_tangents(Zero(type_of(1.0)), 2.0)
    2.0
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def get_primitive_transpose(p: Any) -> Callable[..., Any]:
    """The transpose rule of a primitive.

    >>> from atled.jax.extend.core import Primitive
    >>> triple = Primitive("triple")
    >>> deflinear(triple, lambda ct: [3 * ct])
    >>> get_primitive_transpose(triple)(2.0, UndefinedPrimal(type_of(1.0)))
    [6.0]
    """
    if p not in primitive_transposes:
        raise NotImplementedError(f"Transpose rule for '{p}' not implemented.")
    return primitive_transposes[p]


def _sum(primitive: Any, out: Any, terms: Sequence[Any]) -> Any:
    total: Any = Zero(type_of(out).tangent())
    for term in terms:
        total = add_tangents(total, term)
    return total


def defjvp(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Register a function of the tangent and all operands for each operand; the result's tangent is their sum.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> square = Primitive("square")
    >>> _ = square.def_impl(lambda x: x * x)
    >>> defjvp(square, lambda t, x: 2 * x * t)
    >>> atled.jvp(square.bind, (3.0,), (1.0,))
    (9.0, 6.0)
    """

    def rule(primals: Any, tangents: Any, /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        pairs = zip(jvprules, tangents, strict=True)
        return out, _sum(primitive, out, [f(t, *primals, **params) for f, t in pairs if f and type(t) is not Zero])

    primitive_jvps[primitive] = rule


def defjvp2(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Like `defjvp`, with functions of the tangent, the result and all operands.

    >>> import atled, atled.numpy as jnp
    >>> from atled.jax.extend.core import Primitive
    >>> exp = Primitive("exp")
    >>> _ = exp.def_impl(jnp.exp)
    >>> defjvp2(exp, lambda t, result, x: result * t)  # the derivative is the result itself
    >>> atled.jvp(exp.bind, (0.0,), (3.0,))
    (Array(1., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """

    def rule(primals: Any, tangents: Any, /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        pairs = zip(jvprules, tangents, strict=True)
        return out, _sum(primitive, out, [f(t, out, *primals, **params) for f, t in pairs if f and type(t) is not Zero])

    primitive_jvps[primitive] = rule


def deflinear2(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Declare a primitive linear in all operands; its transpose rule takes the cotangent and the operands.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> triple = Primitive("triple")
    >>> _ = triple.def_impl(lambda x: 3 * x), triple.def_abstract_eval(lambda x: x)
    >>> deflinear2(triple, lambda ct, x: [triple.bind(ct)])
    >>> atled.grad(triple.bind)(1.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def rule(primals: Any, tangents: Any, /, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            several = primitive.multiple_results
            return out, [Zero(type_of(x).tangent()) for x in out] if several else Zero(type_of(out).tangent())
        return out, primitive.bind(*[instantiate_zeros(t) for t in tangents], **params)

    primitive_jvps[primitive] = rule
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Like `deflinear2`, with a transpose rule that takes only the cotangent.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> triple = Primitive("triple")
    >>> _ = triple.def_impl(lambda x: 3 * x), triple.def_abstract_eval(lambda x: x)
    >>> deflinear(triple, lambda ct: [triple.bind(ct)])
    >>> atled.grad(triple.bind)(1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda cotangent, /, *_, **params: transpose_rule(cotangent, **params))


def defbilinear(prim: Any, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Declare a primitive linear in each of its two operands, with a transpose rule for each.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> times = Primitive("times")
    >>> _ = times.def_impl(lambda x, y: x * y), times.def_abstract_eval(lambda x, y: x)
    >>> defbilinear(times, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    >>> atled.grad(times.bind, argnums=(0, 1))(2.0, 5.0)
    (Array(5., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    defjvp(
        prim,
        lambda t, x, y, /, **params: prim.bind(t, y, **params),
        lambda t, x, y, /, **params: prim.bind(x, t, **params),
    )

    def rule(cotangent: Any, x: Any, y: Any, /, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x):
            return lhs_rule(cotangent, x, y, **params), None
        return None, rhs_rule(cotangent, x, y, **params)

    primitive_transposes[prim] = rule
