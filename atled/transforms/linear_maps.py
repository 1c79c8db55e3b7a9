"""The linear functions that `linearize` and `vjp` return: callable, and pytrees of their residuals.

Jitted functions can therefore return these functions and take them as arguments. Their static data are the equations
without residuals (`_LinearEquations`, `_PullbackEquations`). The linear functions that one compiled program returns
share these data, so a jitted function that takes them is not recompiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, errors, tree, tree_registry
from atled.core.array import Array, type_of
from atled.core.op import instantiate
from atled.core.program import Equation, Literal, Program, Var, evaluate
from atled.core.settings import scope
from atled.core.trace import Tracer, state
from atled.core.types import ArrayType, Zero
from atled.ops import conversion
from atled.transforms.linearize import Linearized, linear_program
from atled.transforms.transpose import transpose_linearized


def public(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that removes the library's frames from tracebacks that leave the function."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return _left(f(*args, **kwargs))
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    call.__name__, call.__qualname__, call.__doc__ = f.__name__, f.__qualname__, f.__doc__
    call.__wrapped__ = f  # type: ignore[attr-defined]
    call.__module__ = f.__module__
    return call


def _left(out: Any) -> Any:
    """Return the results of a transform. Under `debug_nans`, wait for them, so that a NaN in them raises."""
    if scope().is_watched:
        for x in tree.leaves(out):
            if isinstance(x, Array) and not isinstance(x, Tracer):
                x.block_until_ready()
    return out


def checked_tangents(types: Sequence[ArrayType], given: Sequence[Any], is_active: Sequence[bool] | None) -> list[Any]:
    """The tangents, checked against the types of the primals; `Zero` for None and for inactive inputs."""
    moves = is_active or [True] * len(types)
    return [
        check_tangent(x, t) if a and t is not None else Zero(x.tangent())
        for x, t, a in zip(types, given, moves, strict=True)
    ]


def check_tangent(x: ArrayType, t: Any) -> Any:
    """The tangent of a primal of type x, converted if it is weakly typed; raises if its type is wrong."""
    want = x.tangent()
    if isinstance(t, Zero):
        return t
    if getattr(t, "dtype", None) == dtypes.float0:
        got: ArrayType = ArrayType(tuple(np.shape(t)), dtypes.float0)
    else:
        got = type_of(t)
        if got.weak and got.kind == want.kind and got.shape == want.shape:
            t = conversion.convert(t, want.dtype) if got.dtype is not want.dtype else t
            got = want
    if got.shape != want.shape or got.dtype is not want.dtype:
        raise TypeError(
            f"jvp: the tangent of {x} must be {want}; got {got}."
            + (
                f"\n  try: t.astype({want.dtype.name!r})."
                if got.shape == want.shape and want.kind != "0"
                else "\n  try: numpy.ones_like(x), or another array with the shape and dtype of the argument."
            )
        )
    return Zero(want) if want.kind == "0" else t


def visible(t: Any, like: ArrayType) -> Any:
    """A tangent or cotangent as users get it: weakly typed if `like` is; for integers, a NumPy array of float0."""
    if type(t) is Zero:
        if t.type.kind == "0":
            return np.zeros(t.type.shape, dtypes.float0)
        t = instantiate(t)
    actual = type_of(t)
    if actual.weak == like.weak or actual.dtype is not like.dtype:
        return t
    if hasattr(t, "_with_weakness") and not state.base.is_watching:  # a device array: nothing to compute
        return t._with_weakness(like.weak)
    return conversion.convert(t, like.dtype, like.weak)


def check_cotangent(t: ArrayType, c: Any) -> Any:
    """The cotangent of an output of type t, converted if it is weakly typed; raises if its type is wrong."""
    want = t.tangent()
    if isinstance(c, Zero) or want.kind == "0":
        return Zero(want)
    got = type_of(c)
    if got.weak and got.kind == want.kind and got.shape == want.shape:
        return conversion.convert(c, want.dtype)
    if got.shape != want.shape or got.dtype is not want.dtype:
        raise TypeError(
            f"vjp: the cotangent of an output {t} must be {want}; got {got}."
            "\n  try: numpy.ones_like(y) for an output y, or another array with its shape and dtype."
        )
    return c


def only(found: list[Any], is_active: Sequence[bool] | None) -> list[Any]:
    """The cotangents of differentiated inputs, and None for other inputs."""
    return found if is_active is None else [x if a else None for x, a in zip(found, is_active, strict=True)]


class _Trees:
    """The trees and types of a linear function's inputs and outputs."""

    __slots__ = ("in_types", "is_active", "out_structure", "out_types", "structure")

    def __init__(
        self, leaves: Sequence[Any], structure: tree.TreeDef, is_active: Sequence[bool] | None, out: Sequence[Any],
        out_structure: tree.TreeDef,
    ) -> None:  # fmt: skip
        self.structure, self.is_active, self.in_types = structure, is_active, [type_of(x) for x in leaves]
        self.out_structure, self.out_types = out_structure, [type_of(x) for x in out]


class _LinearEquations:
    """The static data of a `LinearMap`: its program, without the residuals."""

    __slots__ = ("has_input", "outputs", "program", "trees")

    def __init__(self, program: Program, linear: Linearized, trees: _Trees) -> None:
        self.program, self.trees = program, trees
        self.has_input = [v is not None for v in linear.inputs]
        self.outputs = [v if type(v) is Zero else None for v in linear.outputs]


class LinearMap:
    """The function that `linearize` returns: from tangents of arguments to tangents of results."""

    __slots__ = ("__weakref__", "form", "values")

    def __init__(self, form: _LinearEquations, values: Sequence[Any]) -> None:
        self.form, self.values = form, values

    def __call__(self, *tangents: Any) -> Any:
        """The tangents of the results."""
        try:
            return _left(self._run(tangents))
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    def _run(self, given: tuple[Any, ...]) -> Any:
        form, trees = self.form, self.form.trees
        try:
            leaves = trees.structure.flatten_up_to(given)
        except tree.TreeError:
            got = tree.structure(given)
            raise TypeError(f"linearize: the tangents must have the structure of the primals; got {got}.") from None
        checked = checked_tangents(trees.in_types, leaves, trees.is_active)
        active = [instantiate(t) for t, is_there in zip(checked, form.has_input, strict=True) if is_there]
        moved = iter(evaluate(form.program, [*self.values, *active]))
        tangents = [next(moved) if v is None else v for v in form.outputs]
        return trees.out_structure.unflatten([visible(t, y) for t, y in zip(tangents, trees.out_types, strict=True)])


def linear_map(
    linear: Linearized, leaves: Sequence[Any], structure: tree.TreeDef, is_active: Sequence[bool] | None,
    out: Sequence[Any], out_structure: tree.TreeDef,
) -> LinearMap:  # fmt: skip
    """The `LinearMap` of a linearized function."""
    program, values = linear_program(linear)
    return LinearMap(
        _LinearEquations(program, linear, _Trees(leaves, structure, is_active, out, out_structure)), values
    )


class _PullbackEquations:
    """The static data of a `PullBack`: its equations, with the residuals replaced by their numbers."""

    __slots__ = ("equations", "inputs", "outputs", "trees")

    def __init__(self, linear: Linearized, numbers: dict[int, int], trees: _Trees) -> None:
        self.inputs, self.outputs, self.trees = linear.inputs, linear.outputs, trees
        self.equations: list[tuple[Any, list[Any], tuple[Var, ...], Any]] = [
            (e.op, [numbers[id(x)] if _is_value(x) else x for x in e.operands], e.results, e.source)
            for e in linear.equations
        ]

    def filled(self, values: Sequence[Any]) -> Linearized:
        """The equations with these residuals."""
        equations = [
            Equation(op, tuple([values[x] if type(x) is int else x for x in operands]), results, source)
            for op, operands, results, source in self.equations
        ]
        return Linearized(self.inputs, equations, self.outputs)


def _is_value(x: Any) -> bool:
    return not isinstance(x, (Var, Literal, Zero))


class PullBack:
    """The function that `vjp` returns: from cotangents of results to cotangents of arguments."""

    __slots__ = ("__weakref__", "_form", "linear", "trees")

    def __init__(self, linear: Linearized, trees: _Trees, form: _PullbackEquations | None = None) -> None:
        self.linear, self.trees, self._form = linear, trees, form

    def __call__(self, cotangents: Any, is_basis: bool = False) -> Any:
        """The cotangents of the arguments, as a tuple."""
        try:
            return _left(self._run(cotangents, is_basis))
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    def _run(self, cotangents: Any, is_basis: bool) -> Any:
        trees = self.trees
        given, given_structure = tree.flatten(cotangents)
        if given_structure != trees.out_structure:
            raise TypeError(
                f"vjp: the cotangents must have the structure of the output, {trees.out_structure}; got "
                f"{given_structure}.\n  try: one cotangent for each output, in the same tuple or dict."
            )
        checked = [check_cotangent(t, c) for t, c in zip(trees.out_types, given, strict=True)]
        back = transpose_linearized(self.linear, checked, is_basis)
        results = [visible(Zero(t.tangent()) if c is None else c, t) for t, c in zip(trees.in_types, back, strict=True)]
        return trees.structure.unflatten(only(results, trees.is_active))

    def flattened(self) -> tuple[list[Any], _PullbackEquations]:
        """The distinct residuals, and the equations without them."""
        values = {id(x): x for e in self.linear.equations for x in e.operands if _is_value(x)}
        if self._form is None:
            self._form = _PullbackEquations(self.linear, {key: i for i, key in enumerate(values)}, self.trees)
        return list(values.values()), self._form


def pull_back(
    linear: Linearized, leaves: Sequence[Any], structure: tree.TreeDef, is_active: Sequence[bool] | None,
    out: Sequence[Any], out_structure: tree.TreeDef,
) -> PullBack:  # fmt: skip
    """The `PullBack` of a linearized function."""
    return PullBack(linear, _Trees(leaves, structure, is_active, out, out_structure))


tree_registry.register_node(LinearMap, lambda f: (f.values, f.form), LinearMap)
tree_registry.register_node(
    PullBack, PullBack.flattened, lambda form, values: PullBack(form.filled(values), form.trees, form)
)
