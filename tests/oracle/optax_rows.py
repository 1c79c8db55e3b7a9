"""What tests of optimizers against optax share: a start, a loss with ripples, runs of a hundred steps in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import atled
from atled import tree

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

STEPS = 100
R = np.random.RandomState(0)
START = {
    "body": [{"weight": R.randn(4, 3), "bias": R.randn(3)}, {"weight": R.randn(3, 3), "bias": R.randn(3)}],
    "head": {"weight": R.randn(3, 2), "bias": R.randn(2)},
}
TARGET = tree.map(lambda x: R.randn(*x.shape), START)


def slope(p: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The gradient of a loss with a valley and ripples, by NumPy."""
    return 0.7 * (p - target) + 0.5 * np.sin(3 * p)


def bowl(p: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The gradient of a convex loss."""
    return 0.7 * (p - target) + 0.2 * (p - target) ** 3


def slopes(params: Any, of: Any = slope) -> Any:
    """The gradients of all parameters."""
    return tree.map(lambda p, t: of(np.asarray(p), t), params, TARGET)


def marked(like: Any, name: str) -> Any:
    """A tree of booleans for optax: whether the last step of a path is this name."""
    return jax.tree_util.tree_map_with_path(lambda path, _: path[-1].key == name, like)


def wide(schedule: Any) -> Any:
    """A schedule of optax in float64: for a count in int32, some compute in float32."""
    return lambda count: schedule(count.astype("int64"))


def value_of(step: int) -> np.float64:
    """The value of a loss in a step, for those who ask for it: it falls, and stops to."""
    return np.float64(1 / (1 + min(step, 20)) + 0.3 * (step % 7 == 3))


def run_ours(optimizer: Any, of: Any = slope, takes_value: bool = False) -> tuple[Any, Any]:
    """Parameters and state after a hundred steps."""
    params, state = START, optimizer.init(START)
    step = atled.jit(lambda p, g, s, v: optimizer.step(p, g, s, value=v))
    for i in range(STEPS):
        params, state = step(params, slopes(params, of), state, value_of(i))
    return tree.map(np.asarray, params), state


def run_theirs(optimizer: Any, of: Any = slope, takes_value: bool = False) -> tuple[Any, Any]:
    """The same by optax."""
    params, state = START, optimizer.init(START)

    @jax.jit
    def step(params: Any, grads: Any, state: Any, value: Any) -> Any:
        more = {"value": value} if takes_value else {}
        updates, state = optimizer.update(grads, state, params, **more)
        return optax.apply_updates(params, updates), state

    for i in range(STEPS):
        params, state = step(params, slopes(params, of), state, value_of(i))
    return jax.tree.map(np.asarray, params), state


def largest_error(got: Any, want: Any) -> float:
    """The largest relative error, and a check that shapes and dtypes are the same."""
    worst = 0.0
    for (path, x), y in zip(tree.leaves_with_path(got), jax.tree.leaves(want), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype == np.float64 and x.shape == y.shape, path
        worst = max(worst, float((abs(x - y) / abs(y)).max()))
    return worst
