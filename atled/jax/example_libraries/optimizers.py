"""Optimizers as triples of functions, in the style of JAX's examples.

An optimizer is a triple: `init_fun(params)` returns a state, `update_fun(step, grads, state)` the next state, and
`get_params(state)` the parameters. A rule is written for one array; the decorator `optimizer` extends it to pytrees.

>>> import atled, atled.numpy as jnp
>>> init_fun, update_fun, get_params = momentum(0.1, mass=0.9)
>>> state = init_fun({"w": jnp.array([1.0, 2.0])})
>>> state = update_fun(0, atled.grad(lambda p: jnp.sum(p["w"] ** 2))(get_params(state)), state)
>>> get_params(state)
{'w': Array([0.8, 1.6], dtype=float32)}
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from atled import numpy as jnp
from atled.core import dtypes, errors, tree, tree_registry
from atled.core.array import Array, describe
from atled.core.tree import leaves

Params = State = Updates = Any
Step = int
Schedule = Callable[[Step], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer: the leaves of each parameter's state, and the structures to unflatten them.

    >>> init, _, _ = sgd(0.5)
    >>> isinstance(init({"w": 2.0}), OptimizerState)
    True
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree_registry.register_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data),
)

InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    >>> init, update, get_params = sgd(0.5)
    >>> float(get_params(update(0, {"w": 1.0}, init({"w": 2.0})))["w"])
    1.5
    """

    init_fn: InitFn
    update_fn: UpdateFn
    params_fn: ParamsFn


def optimizer(opt_maker: Callable[..., tuple[Callable[..., Any], ...]]) -> Callable[..., Optimizer]:
    """Decorator that extends a constructor of optimizers for one array to pytrees.

    The decorated function returns the functions `init(x)`, `update(step, gradient, state)` and `get_params(state)`
    for one array `x`; `state` is any pytree.

    >>> @optimizer
    ... def signs(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * jnp.sign(g), lambda x: x
    >>> init_fun, update_fun, get_params = signs(0.5)
    >>> get_params(update_fun(0, (4.0, jnp.array(-9.0)), init_fun((1.0, 1.0))))
    (Array(0.5, dtype=float32), Array(1.5, dtype=float32))
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree: Params) -> OptimizerState:
            xs, form = tree.flatten(x0_tree)
            return _packed([init(x) for x in xs], form)

        def tree_update(i: Step, grad_tree: Updates, opt_state: OptimizerState) -> OptimizerState:
            grads, form = tree.flatten(grad_tree)
            if form != opt_state.tree_def:
                says = "optimizer: gradients must have the structure of the parameters"
                raise TypeError(errors.explained(f"{says}; got {form} for {opt_state.tree_def}."))
            new_state = _packed([update(i, g, state) for g, state in zip(grads, _states(opt_state), strict=True)], form)
            for before, now in zip(opt_state.subtree_defs, new_state.subtree_defs, strict=True):
                if before != now:
                    says = "optimizer: an update must return a state with the structure of its input"
                    raise TypeError(errors.explained(f"{says}; got {now} for {before}."))
            return new_state

        def tree_params(opt_state: OptimizerState) -> Params:
            return tree.unflatten(opt_state.tree_def, [get_params(state) for state in _states(opt_state)])

        return Optimizer(tree_init, tree_update, tree_params)

    return make


def _packed(states: list[Any], form: Any) -> OptimizerState:
    """Combine the states of the parameters into one `OptimizerState`."""
    flat = [tree.flatten(state) for state in states]
    return OptimizerState(tuple([xs for xs, _ in flat]), form, tuple([inner for _, inner in flat]))


def _states(state: OptimizerState) -> list[Any]:
    """The state of each parameter, as a list."""
    return [tree.unflatten(form, x) for form, x in zip(state.subtree_defs, state.packed_state, strict=True)]


# -- optimizers -------------------------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent. For all optimizers in this module, `step_size` is a number or a function of the step.

    >>> init_fun, update_fun, get_params = sgd(0.5)
    >>> get_params(update_fun(0, 4.0, init_fun(1.0)))
    -1.0
    """
    step_size = make_schedule(step_size)
    return lambda x0: x0, lambda i, g, x: x - step_size(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Gradient descent with momentum: the velocity decays by a factor `mass` each step.

    >>> init_fun, update_fun, get_params = momentum(0.5, 0.9)
    >>> get_params(update_fun(0, 4.0, init_fun(jnp.array(1.0))))
    Array(-1., dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return lambda x0: (x0, jnp.zeros_like(x0)), update, _first


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Nesterov momentum (1983): steps along `mass * velocity + gradient` after the velocity is updated.

    >>> init_fun, update_fun, get_params = nesterov(0.5, 0.5)
    >>> get_params(update_fun(0, 4.0, init_fun(jnp.array(1.0))))
    Array(-2., dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return lambda x0: (x0, jnp.zeros_like(x0)), update, _first


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """Adagrad: gradients divided by the square root of the sum of their squares (Duchi et al., 2011), with momentum.

    >>> init_fun, update_fun, get_params = adagrad(0.5, momentum=0.0)
    >>> get_params(update_fun(0, 4.0, init_fun(jnp.array(1.0))))
    Array(0.5, dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + jnp.square(g)
        m = (1 - momentum) * g * _inverse_root(squares) + momentum * m
        return x - step_size(i) * m, squares, m

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> Any:
    """RMSProp: gradients divided by the square root of a running mean of their squares.

    >>> init_fun, update_fun, get_params = rmsprop(0.5, gamma=0.0)
    >>> get_params(update_fun(0, 4.0, init_fun(jnp.array(1.0))))
    Array(0.5, dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = gamma * mean + (1 - gamma) * jnp.square(g)
        return x - step_size(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x0: (x0, jnp.zeros_like(x0)), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """`rmsprop` with momentum.

    >>> init_fun, update_fun, get_params = rmsprop_momentum(0.5, gamma=0.0)
    >>> get_params(update_fun(0, 4.0, init_fun(jnp.array(1.0))))
    Array(0.5, dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, velocity = state
        mean = gamma * mean + (1 - gamma) * jnp.square(g)
        velocity = momentum * velocity + step_size(i) * g / jnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adam: running means of gradients divided by the roots of running means of their squares (Kingma and Ba, 2015).

    >>> init_fun, update_fun, get_params = adam(0.5)
    >>> get_params(update_fun(0, jnp.array(4.0), init_fun(jnp.array(1.0)))).round(3)
    Array(0.5, dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        return x - step_size(i) * (m / _weight(b1, i, m)) / (jnp.sqrt(v / _weight(b2, i, v)) + eps), m, v

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """AdaMax: `adam` with a decaying maximum of absolute gradients in place of the root of a mean of squares.

    >>> init_fun, update_fun, get_params = adamax(0.5)
    >>> get_params(update_fun(0, jnp.array(4.0), init_fun(jnp.array(1.0)))).round(3)
    Array(0.5, dtype=float32)
    """
    step_size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, abs(g))
        return x - step_size(i) / _weight(b1, i, m) * m / (u + eps), m, u

    return lambda x0: (x0, jnp.zeros_like(x0), jnp.zeros_like(x0)), update, _first


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """SM3: `adagrad` with one accumulator vector per axis instead of one value per element (Anil et al., 2019).

    >>> init_fun, update_fun, get_params = sm3(0.5, momentum=0.0)
    >>> get_params(update_fun(0, jnp.ones((2, 2)), init_fun(jnp.ones((2, 2)))))
    Array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    step_size = make_schedule(step_size)

    def init(x0: Any) -> Any:
        x0 = jnp.asarray(x0)
        squares = [jnp.zeros(n, x0.dtype) for n in x0.shape] or [jnp.zeros((), x0.dtype)]
        return x0, jnp.zeros_like(x0), squares, x0.shape

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, squares, dims = state
        along = [jnp.reshape(v, [-1 if j == k else 1 for j in range(x.ndim)]) for k, v in enumerate(squares)]
        bound = functools.reduce(jnp.minimum, along) + jnp.square(g)
        m = (1 - momentum) * g * _inverse_root(bound) + momentum * m
        others = [tuple([j for j in range(x.ndim) if j != k]) for k in range(len(squares))]
        return x - step_size(i) * m, m, [jnp.max(bound, axis=axes) for axes in others], dims

    return init, update, _first


def _first(state: Any) -> Any:
    return state[0]


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x), and 0 where x is 0."""
    return jnp.where(x > 0, 1 / jnp.sqrt(jnp.where(x > 0, x, 1)), 0)


def _weight(decay: Any, i: Any, like: Any) -> Any:
    """The sum of the weights in a running mean after step i, in the dtype of the mean."""
    wide = jnp.promote_types(like.dtype, dtypes.float32)
    return (1 - jnp.asarray(decay, wide) ** (i + 1)).astype(like.dtype)


# -- step sizes -------------------------------------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """A schedule with a constant step size.

    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """A step size that decays exponentially, by a factor of `decay_rate` in `decay_steps` steps.

    >>> exponential_decay(1.0, 10, 0.25)(5)
    0.5
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """`step_size / (1 + decay_rate * i / decay_steps)`; `staircase` rounds `i / decay_steps` down.

    >>> inverse_time_decay(1.0, 10, 3.0)(10)
    0.25
    """
    whole = jnp.floor if staircase else lambda x: x
    return lambda i: step_size / (1 + decay_rate * whole(i / decay_steps))


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """A step size that decays to `final_step_size` in `decay_steps` steps, by a power of the remaining fraction.

    >>> float(polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i: Step) -> Any:
        rest = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return rest**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """A piecewise constant step size with these values; each boundary is the last step of its interval.

    >>> float(piecewise_constant([100, 200], [1.0, 0.1, 0.01])(150))
    0.10000000149011612
    """
    boundaries, values = jnp.asarray(boundaries), jnp.asarray(values)
    if not boundaries.ndim == values.ndim == 1:
        says = "piecewise_constant: boundaries and values must be sequences"
        raise ValueError(errors.explained(f"{says}; got {boundaries.type} and {values.type}."))
    if len(boundaries) != len(values) - 1:
        says = "piecewise_constant: there must be one more value than boundaries"
        raise ValueError(errors.explained(f"{says}; got {len(values)} and {len(boundaries)}."))
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule: `scalar_or_schedule` itself if callable, else a constant step size.

    >>> make_schedule(0.1)(7)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if isinstance(scalar_or_schedule, (str, list, tuple, dict, type(None))) or jnp.ndim(scalar_or_schedule):
        says = f"make_schedule: a step size is a number or a function of the step; got {describe(scalar_or_schedule)}."
        raise TypeError(errors.explained(says))
    return constant(scalar_or_schedule)


# -- trees ------------------------------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Array:
    """The L2 norm of a pytree: the square root of the sum of all squared elements.

    >>> l2_norm({"a": jnp.array([3.0]), "b": jnp.array(4.0)})
    Array(5., dtype=float32)
    """
    return jnp.sqrt(sum([jnp.vdot(x, x) for x in leaves(tree)], 0.0))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """A pytree of gradients, scaled down if its norm is larger than `max_norm`.

    >>> clip_grads([jnp.array([3.0, 4.0])], 1.0)
    [Array([0.6, 0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks the boundary between two pytrees: a leaf of the outer pytree that holds the inner pytree.

    >>> JoinPoint((1, 2)).subtree
    (1, 2)
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A state in a form to save: the pytree of parameters with a `JoinPoint`, which holds its state, for each.

    >>> unpack_optimizer_state(momentum(0.1, 0.9)[0]({"w": 2.0}))["w"].subtree[0]
    2.0
    """
    return tree.unflatten(opt_state.tree_def, [JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The `OptimizerState` from the result of `unpack_optimizer_state`.

    >>> init_fun, _, get_params = momentum(0.1, 0.9)
    >>> get_params(pack_optimizer_state(unpack_optimizer_state(init_fun({"w": 2.0}))))
    {'w': 2.0}
    """
    points, form = tree.flatten(marked_pytree)
    for point in points:
        if not isinstance(point, JoinPoint):
            says = f"pack_optimizer_state: all leaves must be JoinPoints; got {describe(point)}."
            raise TypeError(errors.explained(says, "the result of unpack_optimizer_state(state)."))
    return _packed([point.subtree for point in points], form)


__all__ = [
    "InitFn", "JoinPoint", "Optimizer", "OptimizerState", "Params", "ParamsFn", "Schedule", "State", "Step", "UpdateFn",
    "Updates", "adagrad", "adam", "adamax", "clip_grads", "constant", "exponential_decay", "inverse_time_decay",
    "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant",
    "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip
__dir__ = __all__.copy
