"""Custom derivatives, and helpers to write them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes, errors, tree
from atled.core.array import describe, type_of
from atled.core.list_partition import kept
from atled.core.program import Program, evaluate
from atled.core.trace import Tracer
from atled.higher_order.cond import Recorded, record_tree
from atled.higher_order.custom_derivatives import custom_jvp, custom_vjp
from atled.higher_order.symbolic_zeros import CustomVJPPrimal, SymbolicZero
from atled.jax.linear_call import linear_call
from atled.numpy.creation import zeros


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """A pytree of `CustomVJPPrimal` with each leaf replaced by its value.

    >>> custom_vjp_primal_tree_values({"a": CustomVJPPrimal(1.0, True)})
    {'a': 1.0}
    """

    def value(leaf: Any) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            says = f"custom_vjp_primal_tree_values: leaves are CustomVJPPrimal; got {describe(leaf)}."
            raise TypeError(errors.explained(says))
        return leaf.value

    return _map(value, tree)


_map = tree.map  # `tree` is the name of a parameter above


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value: zeros, with dtype float0 for integers; or a `SymbolicZero`.

    >>> import atled.numpy as jnp
    >>> zero_from_primal(jnp.ones(2))
    Array([0., 0.], dtype=float32)
    """
    if symbolic_zeros:
        return SymbolicZero.from_primal_value(val)
    t = type_of(val).tangent()
    return np.zeros(t.shape, dtypes.float0) if t.kind == "0" else zeros(t.shape, t.dtype)


# -- closures ---------------------------------------------------------------------------------------------------------


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A version of `fun` that takes its captured tracers as extra arguments, and a list of these tracers.

    Only floating and complex tracers of enclosing transforms become arguments. `fun` is traced for the types of
    `example_args`.

    >>> import atled
    >>> def loss(y):
    ...     f, captured = closure_convert(lambda x: x * y, 1.0)
    ...     return f(3.0, *captured)
    >>> float(atled.grad(loss)(2.0))
    3.0
    """
    leaves, structure = tree.flatten(example_args)
    try:
        recorded = record_tree(fun, structure, [type_of(x) for x in leaves])
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904
    is_hoisted = [isinstance(x, Tracer) and type_of(x).kind in "fc" for x in recorded.captured]
    hoisted = kept(is_hoisted, recorded.captured)

    def converted_fun(*args: Any) -> Any:
        count = len(args) - len(hoisted)
        own, given = args[: max(count, 0)], iter(args[max(count, 0) :])
        own_leaves, got = tree.flatten(own)
        if got != structure:
            raise TypeError(
                errors.explained(
                    f"closure_convert: arguments must have the structure of the example, {structure}, followed by the "
                    f"{len(hoisted)} captured values; got {got}."
                )
            )
        constants = [next(given) if h else x for x, h in zip(recorded.captured, is_hoisted, strict=True)]
        return recorded.structure.unflatten(list(evaluate(recorded.program, [*constants, *own_leaves])))

    return converted_fun, hoisted


class _Backward(NamedTuple):
    """The residuals of `custom_gradient`: captured values of the backward function, and its program."""

    captured: list[Any]
    recorded: Any


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a custom gradient: `fun(*args)` returns the result and its backward function.

    The backward function takes the cotangent of the result, returns a tuple with a cotangent for each argument, and may
    close over values that `fun` computed.

    >>> import atled
    >>> @custom_gradient
    ... def square(x):
    ...     return x**2, lambda g: (100.0 * g * x,)
    >>> float(square(3.0)), float(atled.grad(square)(3.0))
    (9.0, 300.0)
    """

    def result_and_rule(args: tuple[Any, ...]) -> tuple[Any, Any]:
        pair = fun(*args)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not callable(pair[1]):
            name = getattr(fun, "__name__", "the function")
            raise TypeError(f"custom_gradient: {name} must return a result and a function; got {describe(pair)}.")
        return pair[0], pair[1]

    @custom_vjp
    def wrapped_fun(*args: Any) -> Any:
        return result_and_rule(args)[0]

    def fwd(*args: Any) -> tuple[Any, _Backward]:
        out, rule = result_and_rule(args)
        leaves, structure = tree.flatten(out)
        types = [type_of(x).tangent() for x in leaves]

        def of_moving(*cotangents: Any) -> Any:
            given = iter(cotangents)
            shown = [np.zeros(t.shape, dtypes.float0) if t.kind == "0" else next(given) for t in types]
            back = rule(structure.unflatten(shown))
            return back if isinstance(back, (tuple, list)) or len(args) != 1 else (back,)

        moving = [t for t in types if t.kind != "0"]
        recorded = record_tree(of_moving, tree.structure((0.0,) * len(moving)), moving)
        return out, _Backward(recorded.captured, _Program(recorded))

    def bwd(kept: _Backward, cotangent: Any) -> Any:
        given = [g for g in tree.leaves(cotangent) if getattr(g, "dtype", None) != dtypes.float0]
        recorded = kept.recorded
        return recorded.structure.unflatten(list(evaluate(recorded.program, [*kept.captured, *given])))

    wrapped_fun.defvjp(fwd, bwd)
    return wrapped_fun


class _Program:
    """A traced function without its captured values."""

    def __init__(self, recorded: Recorded) -> None:
        self.program: Program = recorded.program
        self.structure = recorded.structure


__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
    "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip
__dir__ = __all__.copy


def __getattr__(name: str) -> Any:
    """The primitives `custom_jvp_call_p` and `custom_vjp_call_p`."""
    if name in ("custom_jvp_call_p", "custom_vjp_call_p"):
        return getattr(importlib.import_module("atled.jax.extend.core.primitives"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
