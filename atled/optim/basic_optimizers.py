"""Optimizers defined by the update rule of one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core.array import ArrayLike
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.nn.module_filters import checked, matches
from atled.optim.optimizer import Rule


@formerly(rate="learning_rate")
@struct
class SGD(Rule):
    """Gradient descent, with momentum if it is not zero.

    >>> from atled import optim
    >>> optim.SGD(0.1, momentum=0.9)
    SGD(learning_rate=0.1, momentum=0.9, nesterov=False)
    """

    learning_rate: Any = static(default=1e-2)
    momentum: float = static(default=0.0)
    nesterov: bool = static(default=False)

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The learning rate, and the momentum if it is not 0."""
        return ("learning_rate", "momentum") if self.momentum else ("learning_rate",)

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        """Velocities, if the momentum is not 0."""
        return ("velocity",) if self.momentum else ()

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        if not self.momentum:
            return -h.learning_rate * g, {}
        velocity = h.momentum * s["velocity"] + g
        return -h.learning_rate * (g + h.momentum * velocity if self.nesterov else velocity), {"velocity": velocity}


@formerly(rate="learning_rate")
@struct
class Adam(Rule):
    """Adam: steps from running means of gradients and of their squares.

    >>> from atled import optim
    >>> optim.Adam(1e-3).numbers
    ('learning_rate', 'b1', 'b2', 'eps')
    """

    learning_rate: Any = static(default=1e-3)
    b1: float = static(default=0.9)
    b2: float = static(default=0.999)
    eps: float = static(default=1e-8)
    slots: ClassVar[tuple[str, ...]] = ("first", "second")
    reals: ClassVar[tuple[str, ...]] = ("second",)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "b1", "b2", "eps")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        first, second = self.moments(g, s, h)
        step = self.mean(g, first, h) / (jnp.sqrt(second / h.second) + h.eps)
        return -h.learning_rate * step, {"first": first, "second": second}

    def moments(self, g: Any, s: dict[str, Any], h: Any) -> tuple[Any, Any]:
        """The running means of gradients and of their squares."""
        return h.b1 * s["first"] + (1 - h.b1) * g, h.b2 * s["second"] + (1 - h.b2) * square(g)

    def mean(self, g: Any, first: Any, h: Any) -> Any:
        """The bias-corrected mean of gradients."""
        return first / h.first

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The bias corrections of the means."""
        return {"first": 1 - h.b1**t, "second": 1 - h.b2**t}


def square(g: Any) -> Any:
    """|g|**2, which is real."""
    return (g * jnp.conj(g)).real if jnp.iscomplexobj(g) else g * g


class Decaying(Rule):
    """A rule with weight decay, restricted to the parameters that match the pattern `weight_decay_mask`."""

    weight_decay_mask: str | None

    def check(self, paths: Sequence[str]) -> None:
        """Raise an error for a pattern that matches nothing."""
        if self.weight_decay_mask is not None:
            checked(f"{type(self).__name__}, weight_decay_mask", [self.weight_decay_mask], paths)

    def leaf(self, path: str, h: dict[str, Any]) -> dict[str, Any]:
        """The hyperparameters of the parameter at a path."""
        is_meant = self.weight_decay_mask is None or matches(self.weight_decay_mask, path)
        return h if is_meant else {**h, "weight_decay": 0.0}


@formerly(rate="learning_rate", decay="weight_decay", decays="weight_decay_mask")
@struct
class AdamW(Adam, Decaying):
    """Adam with weight decay: each step also multiplies parameters by 1 - rate * decay.

    `weight_decay_mask` is a pattern of paths, such as `"**/weight"`, to which the decay is restricted.

    >>> from atled import optim
    >>> optim.AdamW(1e-3, weight_decay=0.1, weight_decay_mask="weight").weight_decay_mask
    'weight'
    """

    weight_decay: float = static(default=1e-4)
    weight_decay_mask: str | None = static(default=None)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "b1", "b2", "eps", "weight_decay")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        update, slots = Adam.rule(self, g, p, s, h)
        return update - h.learning_rate * h.weight_decay * p, slots


@formerly(decay="weight_decay", decays="weight_decay_mask")
@struct
class AddDecayedWeights(Decaying):
    """Adds `weight_decay * p` to the gradients of parameters p.

    >>> part, p = AddDecayedWeights(0.5), {"w": jnp.array([4.0])}
    >>> part.update({"w": jnp.array([1.0])}, part.init(p), p)[0]["w"]
    Array([3.], dtype=float32)
    """

    weight_decay: Any = static(default=1e-4)
    weight_decay_mask: str | None = static(default=None)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("weight_decay",)

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The gradient of one array plus the decay term."""
        return g + h.weight_decay * p, {}


def add_decayed_weights(
    weight_decay: ArrayLike | Callable[[Any], ArrayLike], weight_decay_mask: str | None = None
) -> AddDecayedWeights:
    """Adds `weight_decay * p` to the gradients of parameters p that match a pattern, by default all; goes before an
    optimizer.

    The added term is the gradient of `weight_decay / 2` times the sum of squares (L2 regularization). The learning rate
    of the following optimizer scales it.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> sgd = optim.chain(optim.add_decayed_weights(0.5, "weight"), optim.SGD(1.0))
    >>> params = {"bias": jnp.ones(1), "weight": jnp.ones(1)}
    >>> zeros = {"bias": jnp.zeros(1), "weight": jnp.zeros(1)}
    >>> sgd.step(params, zeros, sgd.init(params))[0]
    {'bias': Array([1.], dtype=float32), 'weight': Array([0.5], dtype=float32)}
    """
    return AddDecayedWeights(weight_decay, weight_decay_mask)
