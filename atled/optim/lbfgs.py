"""L-BFGS with a line search: as an optimizer that takes the loss as a function, and as `minimize`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.higher_order.scan import scan
from atled.optim.optimizer import (
    Optimizer,
    State,
    apply_updates,
    first_numbers,
    like,
    mapped,
    number_dtype,
    numbers_at,
    trained,
    whole,
    wide,
)  # fmt: skip
from atled.optim.wrappers import uphills
from atled.scipy import optimize
from atled.scipy.line_search import Point, line_search
from atled.staging.jit import jit


def _dot(a: Any, b: Any, dtype: Any) -> Any:
    """The real inner product of two trees of parameters."""
    pairs = zip(tree.leaves(a), tree.leaves(b), strict=True)
    return sum([jnp.sum((x.conj() * y).real).astype(dtype) for x, y in pairs], jnp.zeros((), dtype))


@formerly(rate="learning_rate", memory="memory_size", searches="max_linesearch_steps")
@struct
class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps from the last few gradient changes, with a line search (Nocedal, 1980), for full
    batches.

    With s the last steps, y the changes of gradients along them and `r = 1 / s·y`, the direction is `-H g`, where H
    starts as `s·y / y·y`, and becomes `V* H V + r s s*` with `V = I - r y s*` for each pair. The first direction is -g,
    scaled to length 1 if it is longer. The step length meets the strong Wolfe conditions, or is the best of
    `max_linesearch_steps` points; it is `learning_rate` if `max_linesearch_steps` is 0. Pairs without positive
    curvature, `s·y <= 0`, are skipped. The step evaluates the loss, as a function of the model.

    >>> from atled import optim
    >>> import atled, atled.numpy as jnp
    >>> loss = lambda p: jnp.sum((p["w"] - 3.0) ** 2 * jnp.array([1.0, 10.0]))
    >>> lbfgs, p = optim.LBFGS(), {"w": jnp.zeros(2)}
    >>> state = lbfgs.init(p)
    >>> for _ in range(6):
    ...     value, grads = atled.value_and_grad(loss)(p)
    ...     p, state = lbfgs.step(p, grads, state, value=value, loss=loss)
    >>> bool(jnp.allclose(p["w"], 3.0, atol=1e-4))
    True
    """

    learning_rate: Any = static(default=1.0)
    memory_size: int = static(default=10)
    max_linesearch_steps: int = static(default=20)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate",)

    def __post_init__(self) -> None:
        whole(self, "LBFGS", "memory_size", "max_linesearch_steps")
        if self.memory_size < 1 or self.max_linesearch_steps < 0:
            raise ValueError(
                errors.explained(
                    "LBFGS: memory_size must be 1 or more, max_linesearch_steps 0 or more; got "
                    f"{self.memory_size}, {self.max_linesearch_steps}."
                )
            )

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The loss and its value, if there is a line search."""
        return ("loss", "value") if self.max_linesearch_steps else ()

    def init(self, model: Any, *, mesh_axis: str | None = None) -> State:
        """The state before the first step."""
        leaves, structure = tree.flatten(model)
        dtype = number_dtype(leaves, trained(structure, leaves))
        hyper, scheduled = first_numbers(self, self.numbers, dtype)
        slots = {
            "steps": like(model, 0, mesh_axis, (self.memory_size,)),
            "changes": like(model, 0, mesh_axis, (self.memory_size,)),
            "inverses": jnp.zeros(self.memory_size, dtype), "curvature": jnp.ones((), dtype),
            "last": like(model, None, mesh_axis), "gradients": like(model, 0, mesh_axis),
        }  # fmt: skip
        return State(jnp.zeros((), "int32"), hyper, slots, scheduled, "LBFGS")

    def update(self, grads: Any, state: State, model: Any, *, value: Any = None, loss: Any = None) -> tuple[Any, State]:
        """The step along the L-BFGS direction."""
        numbers, scheduled = numbers_at(self, state)
        old = state.slots
        g = mapped(lambda z, g: jnp.zeros_like(z) if g is None else wide(g).astype(z.dtype), model, old["last"], grads)
        here = mapped(lambda _, p: wide(p), model, old["last"], model)
        dtype = old["inverses"].dtype
        memory = self._remembered(old, state.step, here, g)
        order = (state.step + np.arange(self.memory_size)) % self.memory_size  # the oldest first
        is_first = state.step == 0
        length = jnp.sqrt(_dot(g, g, dtype))
        plain = jnp.minimum(1, 1 / jnp.where(length == 0, 1, length))
        direction = _direction(g, memory, order, jnp.where(is_first, plain, memory["curvature"]))
        slope = _dot(direction, g, dtype)
        is_lost = ~(slope < 0)  # not a descent direction, or NaN: use the gradient, and reset the memory
        direction = tree.map(lambda d, g: jnp.where(is_lost, -plain.astype(jnp.abs(g).dtype) * g, d), direction, g)
        memory["inverses"] = jnp.where(is_lost, 0, memory["inverses"])
        far = numbers.learning_rate
        if self.max_linesearch_steps:
            far = _length(
                loss,
                model,
                direction,
                value,
                jnp.where(is_lost, -plain * length**2, slope),
                far,
                self.max_linesearch_steps,
            )
        updates = mapped(lambda d, g: g if g is None else far.astype(jnp.abs(d).dtype) * d, model, direction, grads)
        slots = {**memory, "last": here, "gradients": g}
        return updates, State(state.step + 1, state.hyperparams, slots, scheduled, state.of)

    def _remembered(self, old: dict[str, Any], step: Any, here: Any, g: Any) -> dict[str, Any]:
        """The memory with the last step, and the change of gradients along it."""
        s, y = tree.map(jnp.subtract, here, old["last"]), tree.map(jnp.subtract, g, old["gradients"])
        dtype = old["inverses"].dtype
        product, size = _dot(s, y, dtype), _dot(y, y, dtype)
        is_useful = (step > 0) & (product > 0)
        inverse = jnp.where(is_useful, 1 / jnp.where(is_useful, product, 1), 0)
        place = (step - 1) % self.memory_size
        put = lambda xs, x: xs.at[place].set(jnp.where(step > 0, x, jnp.zeros_like(x)))  # noqa: E731
        return {
            "steps": tree.map(put, old["steps"], s),
            "changes": tree.map(put, old["changes"], y),
            "inverses": old["inverses"].at[place].set(inverse),
            "curvature": jnp.where(is_useful, product / jnp.where(is_useful, size, 1), old["curvature"]),
        }


def _direction(g: Any, memory: dict[str, Any], order: Any, scale: Any) -> Any:
    """Minus the inverse Hessian, approximated by the memory, times the gradients: the two-loop recursion."""

    def add(x: Any, factor: Any, xs: Any, i: Any) -> Any:
        return tree.map(lambda a, b: a + factor.astype(jnp.abs(a).dtype) * b[i], x, xs)

    def product(xs: Any, i: Any, x: Any) -> Any:
        inverse = memory["inverses"][i]
        return inverse * _dot(tree.map(lambda a: a[i], xs), x, inverse.dtype)

    def back(q: Any, i: Any) -> Any:
        share = product(memory["steps"], i, q)
        return add(q, -share, memory["changes"], i), share

    def forth(r: Any, each: Any) -> Any:
        i, share = each
        return add(r, share - product(memory["changes"], i, r), memory["steps"], i), None

    if not tree.leaves(g):
        return g
    q, shares = scan(back, g, order, reverse=True)
    q = tree.map(lambda x: scale.astype(jnp.abs(x).dtype) * x, q)
    return tree.map(jnp.negative, scan(forth, q, (order, shares))[0])


def _length(loss: Any, model: Any, direction: Any, value: Any, slope: Any, first: Any, searches: int) -> Any:
    """The step length along a direction: one that meets the strong Wolfe conditions, else the best one, or 0."""
    both = uphills(loss)

    def evaluate(at: Any) -> Point:
        moved = apply_updates(model, mapped(lambda d: at.astype(jnp.abs(d).dtype) * d, model, direction))
        new_value, grads = both(moved)
        slopes = mapped(
            lambda d, g: None if g is None else jnp.sum((g.conj() * d).real).astype(slope.dtype),
            model,
            direction,
            grads,
        )
        along = sum(tree.leaves(slopes), jnp.zeros_like(slope))
        return Point(at, jnp.asarray(new_value, slope.dtype), along, along)

    start = Point(jnp.zeros_like(slope), jnp.asarray(value, slope.dtype), slope, slope)
    search = line_search(evaluate, start, first.astype(slope.dtype), searches)
    return jnp.where(search.is_done, search.last.at, search.low.at)


@struct
class Minimum:
    """The result of `minimize`.

    `status` is 0 at a minimum, also where rounding allows no better step, 1 after the maximum number of steps, and 5
    where no step along the gradient decreases `fun`. `evaluations` counts how often `fun` and its gradient were
    evaluated.

    >>> found = minimize(lambda x: (x - 3) ** 2, jnp.array(0.0))
    >>> round(float(found.x), 3), int(found.status)
    (3.0, 0)
    """

    x: Any
    value: Any
    gradient: Any
    is_converged: Any
    status: Any
    steps: Any
    evaluations: Any


@formerly(f="fun", tolerance="tol", steps="maxiter", memory="memory_size", searches="max_linesearch_steps")
def minimize(
    fun: Callable[..., Any], x0: Any, *args: Any, tol: float | None = None, maxiter: int | None = None,
    memory_size: int = 10, max_linesearch_steps: int = 30,
) -> Minimum:  # fmt: skip
    """A local minimum of `fun(x, *args)` over trees x of real or complex arrays, from x0: L-BFGS in one compiled loop.

    Args:
        tol: the largest entry of the gradient at a minimum; by default the square root of the machine epsilon.
        maxiter: the maximum number of steps; by default 200 per parameter, and at least 1000.
        memory_size: the number of stored gradient changes.
        max_linesearch_steps: the maximum number of evaluations in one line search.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> def rosenbrock(p):
    ...     return (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2
    >>> found = optim.minimize(rosenbrock, {"x": jnp.asarray(-1.2), "y": jnp.asarray(1.0)})
    >>> bool(found.is_converged), bool(jnp.allclose(found.x["y"], 1.0, atol=1e-3))
    (True, True)
    """
    for path, x in tree.leaves_with_path(x0):
        if type_of(x).kind not in "fc":
            where = "".join(map(str, path)) or "the start"
            raise TypeError(
                errors.explained(
                    f"optim.minimize: x0 must consist of floating-point arrays; got {type_of(x)} at {where}.",
                    "x0.astype(float).",
                )
            )
    if not tree.leaves(x0):
        raise ValueError(errors.explained("optim.minimize: x0 must have arrays; got none."))
    return _minimized(fun, x0, args, tol, maxiter, memory_size, max_linesearch_steps)


@functools.partial(jit, static_argnames=("fun", "tol", "maxiter", "memory_size", "searches"))
def _minimized(fun: Any, x0: Any, args: Any, tol: Any, maxiter: Any, memory_size: int, searches: int) -> Minimum:
    leaves, structure = tree.flatten(x0)
    leaves = [jnp.asarray(x) for x in leaves]
    flat = jnp.concatenate([x.ravel() for x in leaves])
    ends = np.cumsum([x.size for x in leaves])[:-1]

    def whole(v: Any) -> Any:
        parts = zip(jnp.split(v, ends), leaves, strict=True)
        return structure.unflatten([_as(part.reshape(x.shape), x.dtype) for part, x in parts])

    eps = float(jnp.finfo(flat.dtype).eps)
    result = optimize.minimize(
        lambda v: fun(whole(v), *args), flat, method=optimize._LIMITED,
        options={
            "gtol": eps**0.5 if tol is None else tol, "ftol": -np.inf, "maxcor": memory_size,
            "maxls": searches, "maxiter": max(200 * flat.size, 1000) if maxiter is None else maxiter,
        },
    )  # fmt: skip
    return Minimum(
        whole(result.x), result.fun, whole(result.jac), result.success, result.status, result.nit, result.nfev
    )


def _as(x: Any, dtype: Any) -> Any:
    """An array in the dtype of its counterpart in x0."""
    return (x if np.dtype(dtype).kind == "c" or not jnp.iscomplexobj(x) else x.real).astype(dtype)
