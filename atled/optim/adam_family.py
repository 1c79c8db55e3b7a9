"""Adaptive optimizers, with a step size for each element; each class is the update rule for one array."""

from __future__ import annotations

from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.optim.basic_optimizers import Adam, AdamW, Decaying, square
from atled.optim.optimizer import Rule


@formerly(rate="learning_rate")
@struct
class NAdam(Adam):
    """Adam with Nesterov's momentum (Dozat, 2016): the momentum looks one step ahead.

    `m = b1 m + (1 - b1) g`; in Adam's step, the mean is `b1 m / (1 - b1**(t+1)) + (1 - b1) g / (1 - b1**t)`.

    >>> from atled import optim
    >>> optim.NAdam(1e-3).numbers
    ('learning_rate', 'b1', 'b2', 'eps')
    """

    def mean(self, g: Any, first: Any, h: Any) -> Any:
        """The bias-corrected mean of gradients."""
        return h.b1 * first / h.ahead + (1 - h.b1) * g / h.first

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The bias corrections of the means for this step and the next one."""
        return {**Adam.derived(self, h, t), "ahead": 1 - h.b1 ** (t + 1)}


@formerly(rate="learning_rate", decay="weight_decay", decays="weight_decay_mask")
@struct
class NAdamW(AdamW):
    """NAdam with weight decay, as in `AdamW`.

    >>> from atled import optim
    >>> optim.NAdamW(1e-3, weight_decay=0.1, weight_decay_mask="weight").weight_decay
    0.1
    """

    mean = NAdam.mean
    derived = NAdam.derived


@formerly(rate="learning_rate")
@struct
class AMSGrad(Adam):
    """Adam whose bias-corrected mean of squares never decreases (Reddi et al., 2018).

    >>> from atled import optim
    >>> optim.AMSGrad(1e-3).slots
    ('first', 'second', 'most')
    """

    slots: ClassVar[tuple[str, ...]] = ("first", "second", "most")
    reals: ClassVar[tuple[str, ...]] = ("second", "most")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        first, second = self.moments(g, s, h)
        most = jnp.maximum(s["most"], second / h.second)
        step = self.mean(g, first, h) / (jnp.sqrt(most) + h.eps)
        return -h.learning_rate * step, {"first": first, "second": second, "most": most}


@formerly(rate="learning_rate")
@struct
class AdaMax(Rule):
    """Adam with a decaying maximum of gradients in place of their mean square (Kingma and Ba, 2015).

    `m = b1 m + (1 - b1) g`, `u = max(b2 u, |g| + eps)`, `p -= rate / (1 - b1**t) m / u`.

    >>> from atled import optim
    >>> optim.AdaMax(2e-3).slots
    ('first', 'most')
    """

    learning_rate: Any = static(default=2e-3)
    b1: float = static(default=0.9)
    b2: float = static(default=0.999)
    eps: float = static(default=1e-8)
    slots: ClassVar[tuple[str, ...]] = ("first", "most")
    reals: ClassVar[tuple[str, ...]] = ("most",)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "b1", "b2", "eps")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        first = h.b1 * s["first"] + (1 - h.b1) * g
        most = jnp.maximum(h.b2 * s["most"], jnp.abs(g) + h.eps)
        return -h.learning_rate * (first / h.first) / most, {"first": first, "most": most}

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The bias corrections of the means."""
        return {"first": 1 - h.b1**t}


@formerly(rate="learning_rate", initial="initial_accumulator_value")
@struct
class Adagrad(Rule):
    """Step sizes that decrease with the sum of all squared gradients (Duchi et al., 2011).

    `v += |g|**2`, starting from `initial_accumulator_value`, and `p -= rate g / sqrt(v + eps)`.

    >>> from atled import optim
    >>> optim.Adagrad(0.1)
    Adagrad(learning_rate=0.1, initial_accumulator_value=0.1, eps=1e-07)
    """

    learning_rate: Any = static(default=1e-2)
    initial_accumulator_value: float = static(default=0.1)
    eps: float = static(default=1e-7)
    slots: ClassVar[tuple[str, ...]] = ("total",)
    reals: ClassVar[tuple[str, ...]] = ("total",)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "eps")

    def start(self, slot: str, p: Any) -> Any:
        """The sum of squares before the first step."""
        return self.initial_accumulator_value

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        total = s["total"] + square(g)
        inverse = 1 / jnp.sqrt(jnp.where(total == 0, 1, total + h.eps))
        return -h.learning_rate * jnp.where(total == 0, 0, g * inverse), {"total": total}


@formerly(rate="learning_rate", b="rho")
@struct
class Adadelta(Rule):
    """Adadelta: step sizes from the ratio of past updates to past gradients (Zeiler, 2012).

    `v = rho v + (1 - rho) |g|**2`, `d = sqrt(u + eps) / sqrt(v + eps) g`, `u = rho u + (1 - rho) |d|**2`, `p -= rate
    d`.

    >>> from atled import optim
    >>> optim.Adadelta().learning_rate
    1.0
    """

    learning_rate: Any = static(default=1.0)
    rho: float = static(default=0.9)
    eps: float = static(default=1e-6)
    slots: ClassVar[tuple[str, ...]] = ("squares", "steps")
    reals: ClassVar[tuple[str, ...]] = ("squares", "steps")
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "rho", "eps")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        squares = h.rho * s["squares"] + (1 - h.rho) * square(g)
        step = jnp.sqrt(s["steps"] + h.eps) / jnp.sqrt(squares + h.eps) * g
        return -h.learning_rate * step, {"squares": squares, "steps": h.rho * s["steps"] + (1 - h.rho) * square(step)}


@formerly(rate="learning_rate", b="rho")
@struct
class RMSprop(Rule):
    """Gradients divided by the root of the running mean of their squares (Hinton, 2012), with momentum if it is not 0.

    `v = rho v + (1 - rho) |g|**2`, `d = g / sqrt(v + eps)`, `p -= rate d`. If `centered`, the square of the running
    mean of gradients is subtracted from v. With momentum, `u = momentum u + rate d`, and `p -= u`.

    >>> from atled import optim
    >>> optim.RMSprop(1e-3, momentum=0.9, centered=True).slots
    ('squares', 'mean', 'velocity')
    """

    learning_rate: Any = static(default=1e-2)
    rho: float = static(default=0.9)
    eps: float = static(default=1e-8)
    momentum: float = static(default=0.0)
    centered: bool = static(default=False)
    nesterov: bool = static(default=False)
    reals: ClassVar[tuple[str, ...]] = ("squares",)

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The hyperparameters, with the momentum only if it is not 0."""
        return ("learning_rate", "rho", "eps", "momentum") if self.momentum else ("learning_rate", "rho", "eps")

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        """Running means of squares; if centered, of gradients; with momentum, velocities."""
        return ("squares", *["mean"] * self.centered, *["velocity"] * bool(self.momentum))

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        new = {"squares": h.rho * s["squares"] + (1 - h.rho) * square(g)}
        spread = new["squares"]
        if self.centered:
            new["mean"] = h.rho * s["mean"] + (1 - h.rho) * g
            spread = jnp.maximum(spread - square(new["mean"]), 0)  # rounding could make it negative
        step = h.learning_rate * g / jnp.sqrt(spread + h.eps)
        if self.momentum:
            new["velocity"] = h.momentum * s["velocity"] + step
            step = step + h.momentum * new["velocity"] if self.nesterov else new["velocity"]
        return -step, new


@formerly(rate="learning_rate", decay="weight_decay", decays="weight_decay_mask")
@struct
class Lion(Decaying):
    """Lion: steps by the sign of a running mean (Chen et al., 2023), with weight decay as in `AdamW`.

    `p -= rate (sign(b1 m + (1 - b1) g) + decay p)`, `m = b2 m + (1 - b2) g`. Good rates are about a tenth of Adam's.

    >>> from atled import optim
    >>> optim.Lion(1e-4, weight_decay=0.1).slots
    ('mean',)
    """

    learning_rate: Any = static(default=1e-4)
    b1: float = static(default=0.9)
    b2: float = static(default=0.99)
    weight_decay: float = static(default=1e-3)
    weight_decay_mask: str | None = static(default=None)
    slots: ClassVar[tuple[str, ...]] = ("mean",)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "b1", "b2", "weight_decay")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        step = jnp.sign(h.b1 * s["mean"] + (1 - h.b1) * g) + h.weight_decay * p
        return -h.learning_rate * step, {"mean": h.b2 * s["mean"] + (1 - h.b2) * g}
