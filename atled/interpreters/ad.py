"""Derivatives of user-defined primitives, with the API of `jax.interpreters.ad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core.array import type_of
from atled.core.op import instantiate
from atled.core.types import ArrayType, Zero
from atled.core.types import Linear as UndefinedPrimal
from atled.extend.primitive import jvps as primitive_jvps
from atled.extend.primitive import transposes as primitive_transposes
from atled.ops import elementwise, shape
from atled.transforms.jvp import Jvp as JVPTrace
from atled.transforms.jvp import JvpTracer as JVPTracer

__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_tangents", "defbilinear", "defjvp",
    "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal",
    "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as an array, also if it is a symbolic zero.

    >>> instantiate_zeros(Zero(type_of(1.0)))
    Array(0., dtype=float32)
    """
    return instantiate(tangent)


def is_undefined_primal(x: object) -> bool:
    """Whether a value represents a linear operand.

    >>> is_undefined_primal(UndefinedPrimal(type_of(1.0))), is_undefined_primal(1.0)
    (True, False)
    """
    return isinstance(x, UndefinedPrimal)


def zeros_like_aval(aval: ArrayType) -> Any:
    """Zeros of a type.

    >>> import atled.numpy as jnp
    >>> zeros_like_aval(type_of(jnp.array([1, 2])))
    Array([0, 0], dtype=int32)
    """
    return shape.full(aval, 0)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two tangents.

    >>> import atled.numpy as jnp
    >>> add_jaxvals(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([11, 22], dtype=int32)
    """
    return elementwise.add(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, of which each may be a symbolic zero.

    >>> add_tangents(Zero(type_of(1.0)), 2.0)
    2.0
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def get_primitive_transpose(p: Any) -> Callable[..., Any]:
    """The rule that was registered for a primitive."""
    if p not in primitive_transposes:
        raise NotImplementedError(f"Transpose rule for '{p}' not implemented.")
    return primitive_transposes[p]


def _sum(primitive: Any, out: Any, terms: Sequence[Any]) -> Any:
    total: Any = Zero(type_of(out).tangent())
    for term in terms:
        total = add_tangents(total, term)
    return total


def defjvp(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """Register, for each operand, a function of its tangent and all operands; the terms are added."""

    def rule(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        pairs = zip(jvprules, tangents, strict=True)
        return out, _sum(primitive, out, [f(t, *primals, **params) for f, t in pairs if f and type(t) is not Zero])

    primitive_jvps[primitive] = rule


def defjvp2(primitive: Any, *jvprules: Callable[..., Any] | None) -> None:
    """As `defjvp`, for functions of the tangent, the result and all operands."""

    def rule(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        pairs = zip(jvprules, tangents, strict=True)
        return out, _sum(primitive, out, [f(t, out, *primals, **params) for f, t in pairs if f and type(t) is not Zero])

    primitive_jvps[primitive] = rule


def deflinear2(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """Declare that a primitive is linear in all operands, and how it is transposed, given cotangent and operands."""

    def rule(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            several = primitive.multiple_results
            return out, [Zero(type_of(x).tangent()) for x in out] if several else Zero(type_of(out).tangent())
        return out, primitive.bind(*[instantiate_zeros(t) for t in tangents], **params)

    primitive_jvps[primitive] = rule
    primitive_transposes[primitive] = transpose_rule


def deflinear(primitive: Any, transpose_rule: Callable[..., Any]) -> None:
    """As `deflinear2`, for a function of the cotangent alone."""
    deflinear2(primitive, lambda cotangent, *_, **params: transpose_rule(cotangent, **params))


def defbilinear(prim: Any, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Declare that a primitive is linear in each of two operands, and how it is transposed by each."""
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def rule(cotangent: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_undefined_primal(x):
            return lhs_rule(cotangent, x, y, **params), None
        return None, rhs_rule(cotangent, x, y, **params)

    primitive_transposes[prim] = rule
