"""Parts of a `chain`: gradient noise that decreases over time, and smaller steps when the loss reaches a plateau."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import atled.numpy as jnp
from atled import random
from atled.core import errors, tree
from atled.core.array import ArrayLike
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.optim.optimizer import Optimizer, State, first_numbers, number_dtype, numbers_at, trained, whole, wide


def _dtype(model: Any) -> Any:
    leaves, structure = tree.flatten(model)
    return number_dtype(leaves, trained(structure, leaves))


@struct
class AddNoise(Optimizer):
    """Gradients with noise that decreases over time.

    >>> from atled import optim
    >>> optim.add_noise(0.1, seed=1)
    AddNoise(eta=0.1, gamma=0.55, seed=1)
    """

    eta: Any = static(default=0.01)
    gamma: float = static(default=0.55)
    seed: int = static(default=0)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("eta", "gamma")

    def init(self, model: Any, *, mesh_axis: str | None = None) -> State:
        """The state: the hyperparameters, and a random key."""
        hyper, scheduled = first_numbers(self, self.numbers, _dtype(model))
        return State(jnp.zeros((), "int32"), hyper, {"key": random.key(self.seed)}, scheduled, "AddNoise")

    def update(self, grads: Any, state: State, model: Any) -> tuple[Any, State]:
        """The gradients, with noise."""
        h, scheduled = numbers_at(self, state)
        t = state.step + 1
        spread = jnp.sqrt(h.eta / t.astype(h.eta.dtype) ** h.gamma)
        key = random.fold_in(state.slots["key"], state.step)
        leaves, structure = tree.flatten(grads)
        noisy = []
        for i, g in enumerate(leaves):
            g = wide(g)
            drawn = random.normal(random.fold_in(key, i), g.shape, g.dtype)
            noisy.append(g + spread.astype(jnp.abs(g).dtype) * drawn)
        return structure.unflatten(noisy), State(t, state.hyperparams, state.slots, scheduled, state.of)


def add_noise(eta: ArrayLike | Callable[[Any], ArrayLike] = 0.01, gamma: float = 0.55, *, seed: int = 0) -> AddNoise:
    """Adds normal noise with variance `eta / t**gamma` to the gradients of step t, from 1 (Neelakantan et al., 2015).

    The noise depends only on the seed and the step number.

    >>> from atled import optim
    >>> optim.chain(optim.add_noise(0.1, seed=1), optim.SGD(0.1)).parts[0]
    AddNoise(eta=0.1, gamma=0.55, seed=1)
    """
    return AddNoise(eta, gamma, seed)


@formerly(every="accumulation_size", least="min_scale")
@struct
class ReduceOnPlateau(Optimizer):
    """Scales the updates down each time the loss stops decreasing.

    >>> from atled import optim
    >>> optim.reduce_on_plateau(0.5, patience=3).patience
    3
    """

    factor: float = static(default=0.1)
    patience: int = static(default=10)
    rtol: float = static(default=1e-4)
    atol: float = static(default=0.0)
    cooldown: int = static(default=0)
    accumulation_size: int = static(default=1)
    min_scale: float = static(default=0.0)
    takes: ClassVar[tuple[str, ...]] = ("value",)
    is_step: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole(self, "optim.reduce_on_plateau", "patience", "cooldown", "accumulation_size")
        if not 0 < self.factor < 1 or not 0 <= self.rtol <= 1 or self.atol < 0 or self.rtol == self.atol == 0:
            raise ValueError(
                errors.explained(
                    "optim.reduce_on_plateau: factor must be between 0 and 1, rtol from 0 to 1, atol 0 or more, "
                    f"and rtol and atol not both 0; got {self.factor}, {self.rtol}, {self.atol}."
                )
            )
        if self.patience < 1 or self.accumulation_size < 1 or self.cooldown < 0:
            raise ValueError(
                errors.explained(
                    "optim.reduce_on_plateau: patience and accumulation_size must be 1 or more, cooldown 0 or more; "
                    "got "
                    f"{self.patience}, {self.accumulation_size}, {self.cooldown}."
                )
            )

    def init(self, model: Any, *, mesh_axis: str | None = None) -> State:
        """The state: the scale, the best value, and counts."""
        dtype = _dtype(model)
        slots = {"best": jnp.asarray(np.inf, dtype), "mean": jnp.zeros((), dtype)}
        counts = {n: jnp.zeros((), "int32") for n in ("waited", "cooling", "count")}
        return State(jnp.zeros((), "int32"), {"scale": jnp.ones((), dtype)}, {**slots, **counts}, of="ReduceOnPlateau")

    def update(self, grads: Any, state: State, model: Any, *, value: Any) -> tuple[Any, State]:
        """The updates, times the scale."""
        s, scale = state.slots, state.hyperparams["scale"]
        count = s["count"] + 1
        mean = s["mean"] + (jnp.asarray(value, scale.dtype) - s["mean"]) / count
        is_due = count == self.accumulation_size
        is_better = mean < (1 - self.rtol) * s["best"] - self.atol
        waited = jnp.where(is_better, 0, s["waited"] + 1)
        is_cooling = s["cooling"] > 0
        falls = ~is_cooling & (waited == self.patience)
        new = {
            "best": jnp.where(is_better, mean, s["best"]),
            "mean": jnp.zeros_like(mean),
            "waited": jnp.where(is_cooling | falls, 0, waited),
            "cooling": jnp.where(is_cooling, s["cooling"] - 1, jnp.where(falls, self.cooldown, 0)),
            "count": jnp.zeros_like(count),
        }
        new = {n: jnp.where(is_due, new[n], {**s, "mean": mean, "count": count}[n]) for n in new}
        scale = jnp.where(is_due & falls, jnp.maximum(scale * self.factor, self.min_scale), scale)
        scaled = tree.map(lambda g: wide(g) * scale.astype(jnp.abs(wide(g)).dtype), grads)
        return scaled, State(state.step + 1, {"scale": scale}, new, of=state.of)


def reduce_on_plateau(
    factor: float = 0.1, patience: int = 10, *, rtol: float = 1e-4, atol: float = 0.0, cooldown: int = 0,
    accumulation_size: int = 1, min_scale: float = 0.0,
) -> ReduceOnPlateau:  # fmt: skip
    """Multiplies updates by `factor` after `patience` steps without a decrease of the loss; the last part of a `chain`.

    The loss has decreased if it is below `(1 - rtol) best - atol`. After each change, the next `cooldown` values are
    ignored. With `accumulation_size` above 1, means of that many values are compared. The scale, which is in the state,
    is at least `min_scale`. Each step needs the value of the loss: `optimizer.step(model, grads, state, value=value)`.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> sgd = optim.chain(optim.SGD(1.0), optim.reduce_on_plateau(0.5, patience=1))
    >>> p = {"w": jnp.zeros(1)}
    >>> state = sgd.init(p)
    >>> for _ in range(2):
    ...     p, state = sgd.step(p, {"w": jnp.ones(1)}, state, value=3.0)
    >>> p["w"], float(state[1].hyperparams["scale"])
    (Array([-1.5], dtype=float32), 0.5)
    """
    return ReduceOnPlateau(factor, patience, rtol, atol, cooldown, accumulation_size, min_scale)
