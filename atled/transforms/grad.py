"""The public derivatives: `jvp`, `vjp`, `linearize`, `grad`, Jacobians and Hessians.

`grad` calls `vjp` with the cotangent 1; `vjp` linearizes the function and transposes the result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from atled.core import errors, tree
from atled.core.array import describe, is_array_like, type_of
from atled.core.list_partition import kept
from atled.core.program import evaluate, record
from atled.core.source import describe as describe_source
from atled.core.source import here
from atled.core.tangent_mask import ALL
from atled.core.trace import Tracer, bind, leaving, received
from atled.core.types import Zero
from atled.ops import elementwise, shape
from atled.transforms.jvp import masked_jvp_flat
from atled.transforms.linear_maps import check_cotangent, checked_tangents, linear_map, public, pull_back, visible
from atled.transforms.linearize import linearize_flat
from atled.transforms.masked_tangents import mask_program
from atled.transforms.transpose import transpose_program
from atled.transforms.vmap import vmap

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Flat:
    """A function of trees as a function of leaves; stores the last call's output tree and auxiliary output."""

    def __init__(self, f: Callable[..., Any], structure: tree.TreeDef, kwargs: dict[str, Any], has_aux: bool) -> None:
        self.f, self.structure, self.kwargs, self.has_aux = f, structure, kwargs, has_aux

    def __call__(self, *leaves: Any) -> list[Any]:
        out = self.f(*received(self.structure.unflatten, leaves), **self.kwargs)
        leaving(getattr(self.f, "__name__", "the function"), out)
        aux: Any = None
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"has_aux: the function must return a pair (output, auxiliary); got {describe(out)}."
                    "\n  try: return output, auxiliary from the function, or leave out has_aux=True."
                )
            out, aux = out
        flat, self.out_structure = tree.flatten(out)
        self.aux_leaves, self.aux_structure = tree.flatten(aux)
        for x in flat:
            if not is_array_like(x):
                raise TypeError(
                    f"derivative: the function must return arrays or numbers; got {describe(x)}."
                    "\n  try: has_aux=True, and return (output, auxiliary), with all other values in auxiliary."
                )
        self.count = len(flat)
        return flat + [x for x in self.aux_leaves if is_array_like(x)]

    def results(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """The output and the auxiliary output, rebuilt from flat values."""
        rest = iter(values[self.count :])
        aux = [next(rest) if is_array_like(x) else x for x in self.aux_leaves]
        return self.out_structure.unflatten(values[: self.count]), self.aux_structure.unflatten(aux)


@public
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, wrt: Any = None
) -> tuple[Any, ...]:
    """The value of `fun(*primals)`, and its directional derivative along the tangents.

    A tangent of None means zero. Tangents of leaves that `wrt` (see `grad`) does not select are ignored.

    >>> import atled.numpy as jnp
    >>> y, dy = jvp(jnp.sin, (0.0,), (1.0,))
    >>> float(y), float(dy)
    (0.0, 1.0)
    """
    return _jvp(fun, primals, tangents, has_aux, False, wrt)


def _jvp(
    f: Any, primals: Any, tangents: Any, has_aux: bool, is_basis: bool = False, wrt: Any = None
) -> tuple[Any, ...]:
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            f"jvp: primals and tangents must be tuples, one entry for each argument of the function; got "
            f"{describe(primals)} and {describe(tangents)}.\n  try: jvp(f, (x,), (t,))."
        )
    leaves, structure = tree.flatten(tuple(primals))
    try:
        given = structure.flatten_up_to(tuple(tangents))
    except tree.TreeError:
        raise TypeError(
            f"jvp: primals and tangents must have the same structure; got {structure} and "
            f"{tree.structure(tuple(tangents))}."
            "\n  try: a tangent for each argument, None or zeros_like(x) for constant arguments."
        ) from None
    checked = checked_tangents([type_of(x) for x in leaves], given, _active(structure, leaves, wrt))
    flat = _Flat(f, structure, {}, has_aux)
    out, out_tangents = masked_jvp_flat(flat, leaves, checked, is_basis)
    value, aux = flat.results(out)
    moved = [visible(t, type_of(y)) for t, y in zip(out_tangents[: flat.count], out)]
    tangent = flat.out_structure.unflatten(moved)
    return (value, tangent, aux) if has_aux else (value, tangent)


@public
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, wrt: Any = None) -> tuple[Any, ...]:
    """The value of `fun(*primals)`, and the linear function from tangents of the primals to tangents of the value.

    `fun` runs once; the linear function can be called many times. Primals that `wrt` (see `grad`) does not
    select are constant, and their tangents are ignored.

    >>> import atled.numpy as jnp
    >>> y, df = linearize(lambda x: x**2, 3.0)
    >>> float(df(1.0)), float(df(10.0))
    (6.0, 60.0)
    """
    leaves, structure = tree.flatten(primals)
    flat = _Flat(fun, structure, {}, has_aux)
    is_active = _active(structure, leaves, wrt)
    out, linear = linearize_flat(flat, leaves, is_active)
    linear.outputs = linear.outputs[: flat.count]
    apply = linear_map(linear, leaves, structure, is_active, out[: flat.count], flat.out_structure)
    value, aux = flat.results(out)
    return (value, apply, aux) if has_aux else (value, apply)


@public
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, wrt: Any = None) -> tuple[Any, ...]:
    """The value of `fun(*primals)`, and the function from cotangents of the value to cotangents of the primals.

    The cotangents of primals that `wrt` (see `grad`) does not select are None.

    >>> import atled.numpy as jnp
    >>> y, pull = vjp(lambda a, b: a * b, 2.0, 5.0)
    >>> [float(g) for g in pull(1.0)]
    [5.0, 2.0]
    """
    leaves, structure = tree.flatten(primals)
    return _vjp(fun, leaves, structure, {}, _active(structure, leaves, wrt), has_aux)


def _vjp(
    f: Callable[..., Any],
    leaves: list[Any],
    structure: tree.TreeDef,
    kwargs: dict[str, Any],
    is_active: Sequence[bool] | None,
    has_aux: bool,
) -> tuple[Any, ...]:
    for x in leaves:
        type_of(x)
    flat = _Flat(f, structure, kwargs, has_aux)
    out, linear = linearize_flat(flat, leaves, is_active)
    linear.outputs = linear.outputs[: flat.count]
    pull = pull_back(linear, leaves, structure, is_active, out[: flat.count], flat.out_structure)
    value, aux = flat.results(out)
    return (value, pull, aux) if has_aux else (value, pull)


@public
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Callable[..., Any]:
    """The transpose of a linear function. The primals only give the shapes and dtypes of its arguments.

    >>> import atled.numpy as jnp
    >>> t = linear_transpose(lambda x: 3.0 * x, jnp.zeros(2))
    >>> t(jnp.ones(2))
    (Array([3., 3.], dtype=float32),)
    """
    leaves, structure = tree.flatten(primals)
    types = [type_of(x).strong() for x in leaves]
    flat = _Flat(fun, structure, {}, False)
    program, captured = record(flat, types, getattr(fun, "__name__", "linear"))
    out_structure = flat.out_structure
    is_linear = (False,) * len(captured) + (True,) * len(leaves)

    @public
    def transposed(cotangents: Any) -> Any:
        given, given_structure = tree.flatten(cotangents)
        if given_structure != out_structure:
            raise TypeError(f"linear_transpose: expected cotangents {out_structure}; got {given_structure}.")
        checked = [check_cotangent(t, c) for t, c in zip(program.output_types, given, strict=True)]
        has = tuple([type(c) is not Zero for c in checked])
        back, nonzero = transpose_program(program, is_linear, has)
        back = mask_program(back, [None] * len(captured) + [ALL] * sum(has)).values
        out = iter(evaluate(back, [*captured, *[c for c in checked if type(c) is not Zero]]))
        return structure.unflatten(
            [next(out) if n else visible(Zero(t), t) for n, t in zip(nonzero, types, strict=True)]
        )

    return transposed


# -- gradients ------------------------------------------------------------------------------------------------------


def grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    wrt: Any = None,
) -> Callable[_P, Any]:
    """The gradient of a function with a scalar result.

    Args:
        argnums: the positions of the arguments to differentiate with respect to; a tuple gives a tuple of gradients.
        has_aux: whether the function returns `(result, auxiliary)`; its gradient then returns `(gradient, auxiliary)`.
        holomorphic: whether the function is complex and holomorphic.
        allow_int: whether to allow integer arguments; their gradients have dtype `float0`.
        wrt: selects the leaves to differentiate with respect to: a predicate on the leaf, or on its path (a string) and
            the leaf; a kind such as `nn.Param`; or the class of the modules that contain them. By default, it selects
            leaves without a declared kind or with a trainable one. The gradient is `None` at other leaves.

    For a complex argument z and a real result, the gradient g is such that a small change dz changes the result by
    `Re(g * dz)`.

    >>> import atled.numpy as jnp
    >>> float(grad(jnp.sin)(0.0))
    1.0
    >>> float(grad(lambda p: p["w"] * p["b"])({"w": 2.0, "b": 3.0})["w"])
    3.0
    """
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, wrt)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        try:
            value, derivative = both(*args, **kwargs)
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904
        return (derivative, value[1]) if has_aux else derivative

    return _named_like(gradient, fun)


def value_and_grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    wrt: Any = None,
) -> Callable[_P, tuple[_R, Any]]:
    """Like `grad`, but returns (value, gradient), or ((value, auxiliary), gradient) with `has_aux`.

    >>> value, g = value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(g)
    (9.0, 6.0)
    """
    return _named_like(public(_value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, wrt)), fun)


def _value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, holomorphic: bool, allow_int: bool, wrt: Any
) -> Callable[..., Any]:
    def both(*args: Any, **kwargs: Any) -> Any:
        chosen = _Chosen(fun, args, argnums, wrt)
        for x in chosen.moving:
            _check_differentiable(x, holomorphic, allow_int)
        out = _vjp(chosen, chosen.leaves, chosen.structure, kwargs, chosen.is_active, has_aux)
        value, pull = out[0], out[1]
        back = pull(_seed(value, holomorphic))
        gradient = back[0] if isinstance(argnums, int) else back
        return ((value, out[2]) if has_aux else value), gradient

    return both


def _named_like(made: Any, f: Any) -> Any:
    made.__name__ = str(getattr(f, "__name__", "f"))
    made.__doc__ = getattr(f, "__doc__", None)
    made.__wrapped__ = f
    return made


def _argument_numbers(f: Any, argnums: int | Sequence[int], args: Sequence[Any]) -> list[int]:
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ValueError(
                f"grad: argnums asks for argument {n} of {getattr(f, '__name__', 'the function')}, "
                f"which was called with {len(args)} positional arguments."
                + "\n  try: "
                + (
                    f"argnums from 0 to {len(args) - 1}; they count from 0."
                    if args
                    else "pass arguments by position: f(x)."
                )
            )
    return [n % len(args) for n in numbers]


class _Chosen:
    """A function of the arguments in `argnums` only; the other arguments are constant."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], argnums: int | Sequence[int], wrt: Any) -> None:
        self.f, self.args = f, args
        self.__name__ = getattr(f, "__name__", "the function")
        self.numbers = _argument_numbers(f, argnums, args)
        self.leaves, self.structure = tree.flatten(tuple([args[n] for n in self.numbers]))
        self.is_active = _active(self.structure, self.leaves, wrt, isinstance(argnums, int))

    @property
    def moving(self) -> list[Any]:
        """The leaves to differentiate with respect to."""
        return self.leaves if self.is_active is None else kept(self.is_active, self.leaves)

    def __call__(self, *values: Any, **kwargs: Any) -> Any:
        full = list(self.args)
        for n, v in zip(self.numbers, values, strict=True):
            full[n] = v
        return self.f(*full, **kwargs)

    def of_moving(self, parts: Iterable[Any]) -> Any:
        """A tuple of argument trees with these values at the differentiated leaves, and None elsewhere."""
        rest = iter(parts)
        flags = self.is_active or [True] * len(self.leaves)
        return self.structure.unflatten([next(rest) if a else None for a in flags])

    def moving_in(self, made: Any) -> list[Any]:
        """The values at the differentiated leaves of a tuple of argument trees; the inverse of `of_moving`."""
        flags = self.is_active or [True] * len(self.leaves)
        return kept(flags, self.structure.flatten_up_to(made))


def _active(structure: tree.TreeDef, leaves: Sequence[Any], wrt: Any, is_one: bool = False) -> Sequence[bool] | None:
    """Whether to differentiate with respect to each leaf, or None for all, if no `wrt` and no declared kind is given.

    For a single argument (`is_one`), the paths that `wrt` gets begin inside the argument.
    """
    kinds = structure.kinds
    if wrt is None:
        return None if not any(kinds) else [k is None or k.is_trained for k in kinds]
    paths = tree.leaves_with_path(structure.unflatten(leaves))
    if isinstance(wrt, type):
        inside = tree.map(
            lambda x: tree.map(lambda _: isinstance(x, wrt), x),
            structure.unflatten(leaves),
            is_leaf=lambda x: isinstance(x, wrt),
        )
        return [a or (k is not None and issubclass(k, wrt)) for a, k in zip(tree.leaves(inside), kinds, strict=True)]
    if not callable(wrt):
        raise TypeError(
            errors.explained(
                f"grad: wrt must be a kind such as nn.Param, or a function of a path and a leaf; got {describe(wrt)}.",
                "wrt=lambda path, x: 'head' in path, or nn.freeze(model, pattern) for the other leaves.",
            )
        )
    try:
        count = len(inspect.signature(wrt).parameters)
    except (TypeError, ValueError):
        count = 1
    if count == 1:
        return [bool(wrt(x)) for _, x in paths]
    return [bool(wrt(tree.keystr(p[is_one:]), x)) for p, x in paths]


def _check_differentiable(x: Any, holomorphic: bool, allow_int: bool) -> None:
    t = type_of(x)
    if holomorphic and t.kind != "c":
        raise TypeError(f"grad: holomorphic=True needs complex arguments; got {t}.")
    if t.kind in "biu" and not allow_int:
        raise TypeError(
            f"grad: derivatives need real or complex (inexact) arguments; got {t}."
            + describe_source(here())
            + "\n  try: a float argument such as 3.0, argnums= to choose other arguments, or allow_int=True."
        )
    if t.kind == "k":
        raise TypeError(
            f"grad: random keys have no derivative; got {t}.\n  try: argnums= to choose the other arguments."
        )


def _seed(value: Any, holomorphic: bool) -> Any:
    if not is_array_like(value):
        way_out = "return one scalar, or (scalar, auxiliary) with has_aux=True."
        if value is None:
            way_out = "return the scalar: a function without a `return` returns None."
        raise TypeError(f"grad: the function must return a scalar; got {describe(value)}.\n  try: {way_out}")
    t = type_of(value)
    if t.shape != ():
        raise TypeError(
            f"grad: the function must return a scalar; got {t}, shape {t.shape}."
            + describe_source(here())
            + "\n  try: jacrev for a Jacobian, or .sum() or .mean() to make it a scalar."
        )
    if holomorphic and t.kind != "c":
        raise TypeError(f"grad: holomorphic=True needs a complex result; got {t}.")
    if not holomorphic and t.kind != "f":
        hint = (
            "holomorphic=True, or a real result such as abs(z)"
            if t.kind == "c"
            else "a float result, because integers have no derivative"
        )
        raise TypeError(f"grad: the function must return a real scalar; got {t}.\n  try: {hint}.")
    return shape.full(t.tangent(), 1)


def jacfwd(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    wrt: Any = None,
) -> Callable[_P, Any]:
    """The Jacobian, column by column with forward mode: efficient for few inputs. The arguments are those of `grad`.

    >>> import atled.numpy as jnp
    >>> jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = _Chosen(fun, args, argnums, wrt)
        leaves = chosen.moving
        for x in leaves:
            _check_differentiable(x, holomorphic, False)
        primals = chosen.structure.unflatten(chosen.leaves)

        def push(*basis: Any) -> Any:
            return _jvp(_given(chosen, kwargs), primals, chosen.of_moving(basis), has_aux, is_basis, lambda x: True)

        is_basis = sum(type_of(x).size for x in leaves) > 1  # the basis of one scalar has no zeros
        out_axes = (None, -1, None) if has_aux else (None, -1)
        out = vmap(push, out_axes=out_axes)(*_basis(leaves))
        value, columns = out[0], out[1]
        if holomorphic:
            for y in tree.leaves(value):
                if type_of(y).kind != "c":
                    raise TypeError(f"jacfwd: holomorphic=True needs complex results; got {type_of(y)}.")
        jacobians = tree.map(lambda y, c: chosen.of_moving(_split_last(y, c, leaves)), value, columns)
        gradient = _pick_argument(jacobians, value, argnums)
        return (gradient, out[2]) if has_aux else gradient

    return _named_like(public(jacobian), fun)


def _given(f: Any, kwargs: dict[str, Any]) -> Callable[..., Any]:
    """A function with these keyword arguments bound."""
    if not kwargs:
        return f

    def call(*args: Any) -> Any:
        return f(*args, **kwargs)

    call.__name__ = f.__name__
    return call


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """The unit vectors of the joint space of all leaves, stacked along a leading axis: an array for each leaf."""
    total = sum(type_of(x).size for x in leaves)
    out, start = [], 0
    for x in leaves:
        t = type_of(x)
        rows = np.zeros((total, t.size), t.dtype)
        rows[np.arange(start, start + t.size), np.arange(t.size)] = 1
        out.append(rows.reshape(total, *t.shape))
        start += t.size
    return out


def _split_last(y: Any, columns: Any, leaves: Sequence[Any]) -> list[Any]:
    """Cut the last axis into one part for each input leaf, in that leaf's shape."""
    out, start = [], 0
    last = type_of(columns).ndim - 1
    for x in leaves:
        t = type_of(x)
        part = shape.slice_in_axis(columns, start, start + t.size, last)
        out.append(shape.reshape(part, (*type_of(y).shape, *t.shape)))
        start += t.size
    return out


def _pick_argument(made: Any, value: Any, argnums: Any) -> Any:
    """For a single argnum, unwrap the 1-tuple of Jacobians below each output leaf."""
    if not isinstance(argnums, int):
        return made
    return tree.map(lambda _, m: m[0], value, made)


def jacrev(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    wrt: Any = None,
) -> Callable[_P, Any]:
    """The Jacobian, row by row with reverse mode: efficient for few outputs. The arguments are those of `grad`.

    >>> import atled.numpy as jnp
    >>> jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = _Chosen(fun, args, argnums, wrt)
        leaves = chosen.moving
        for x in leaves:
            _check_differentiable(x, holomorphic, allow_int)
        out = _vjp(chosen, chosen.leaves, chosen.structure, kwargs, chosen.is_active, has_aux)
        value, pull = out[0], out[1]
        out_leaves, out_structure = tree.flatten(value)
        for y in out_leaves:
            _check_jacobian_output(y, holomorphic)
        is_basis = sum(type_of(y).size for y in out_leaves) > 1
        rows = vmap(lambda *basis: pull(out_structure.unflatten(basis), is_basis))(*_basis(out_leaves))
        parts = chosen.moving_in(rows)
        jacobians, start = [], 0
        for y in out_leaves:
            t = type_of(y)
            cut = [shape.slice_in_axis(r, start, start + t.size, 0) for r in parts]
            shaped = [shape.reshape(c, (*t.shape, *type_of(x).shape)) for c, x in zip(cut, leaves, strict=True)]
            jacobians.append(chosen.of_moving(shaped))
            start += t.size
        gradient = _pick_argument(out_structure.unflatten(jacobians), value, argnums)
        return (gradient, out[2]) if has_aux else gradient

    return _named_like(public(jacobian), fun)


def _check_jacobian_output(y: Any, holomorphic: bool) -> None:
    t = type_of(y)
    if holomorphic and t.kind != "c":
        raise TypeError(f"jacrev: holomorphic=True needs complex results; got {t}.")
    if not holomorphic and t.kind != "f":
        raise TypeError(f"jacrev: the results must be real; got {t}.\n  try: holomorphic=True for complex functions.")


jacobian = jacrev


def hessian(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    wrt: Any = None,
) -> Callable[_P, Any]:
    """The matrix of second derivatives, by forward mode over reverse mode. The arguments are those of `grad`.

    >>> import atled.numpy as jnp
    >>> hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    inner = jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic, wrt=wrt)
    return jacfwd(inner, argnums, has_aux=has_aux, holomorphic=holomorphic, wrt=wrt)


def stop_gradient(x: Any) -> Any:
    """The tree x, as a constant for differentiation: derivatives with respect to it are zero.

    >>> float(grad(lambda x: x * stop_gradient(x))(3.0))
    3.0
    """
    return tree.map(_stopped, x)


def _stopped(x: Any) -> Any:
    return bind(elementwise.StopGradient(), x) if isinstance(x, Tracer) else x
