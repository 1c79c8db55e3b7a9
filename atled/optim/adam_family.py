"""Adaptive optimizers, with a step size for each element; each class is the update rule for one array."""

from __future__ import annotations

from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core.tree_registry import static, struct
from atled.optim.basic_optimizers import Adam, AdamW, Decaying, square
from atled.optim.optimizer import Rule


@struct
class NAdam(Adam):
    """Adam with Nesterov's momentum (Dozat, 2016): the momentum looks one step ahead.

    `m = b1 m + (1 - b1) g`, and in Adam's step `b1 m / (1 - b1**(t+1)) + (1 - b1) g / (1 - b1**t)` instead of the mean.

    >>> from atled import optim
    >>> optim.NAdam(1e-3).numbers
    ('rate', 'b1', 'b2', 'eps')
    """

    def mean(self, g: Any, first: Any, h: Any) -> Any:
        """The bias-corrected mean of gradients."""
        return h.b1 * first / h.ahead + (1 - h.b1) * g / h.first

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The bias corrections of the means for this step and the next one."""
        return {**Adam.derived(self, h, t), "ahead": 1 - h.b1 ** (t + 1)}


@struct
class NAdamW(AdamW):
    """NAdam with weight decay, as in `AdamW`.

    >>> from atled import optim
    >>> optim.NAdamW(1e-3, decay=0.1, decays="weight").decay
    0.1
    """

    mean = NAdam.mean
    derived = NAdam.derived


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
        return -h.rate * step, {"first": first, "second": second, "most": most}


@struct
class AdaMax(Rule):
    """Adam with a decaying maximum of gradients in place of their mean square (Kingma and Ba, 2015).

    `m = b1 m + (1 - b1) g`, `u = max(b2 u, |g| + eps)`, `p -= rate / (1 - b1**t) m / u`.

    >>> from atled import optim
    >>> optim.AdaMax(2e-3).slots
    ('first', 'most')
    """

    rate: Any = static(default=2e-3)
    b1: float = static(default=0.9)
    b2: float = static(default=0.999)
    eps: float = static(default=1e-8)
    slots: ClassVar[tuple[str, ...]] = ("first", "most")
    reals: ClassVar[tuple[str, ...]] = ("most",)
    numbers: ClassVar[tuple[str, ...]] = ("rate", "b1", "b2", "eps")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        first = h.b1 * s["first"] + (1 - h.b1) * g
        most = jnp.maximum(h.b2 * s["most"], jnp.abs(g) + h.eps)
        return -h.rate * (first / h.first) / most, {"first": first, "most": most}

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The bias corrections of the means."""
        return {"first": 1 - h.b1**t}


@struct
class Adagrad(Rule):
    """Step sizes that decrease with the sum of all squared gradients (Duchi et al., 2011).

    `v += |g|**2`, which is `initial` at first, and `p -= rate g / sqrt(v + eps)`.

    >>> from atled import optim
    >>> optim.Adagrad(0.1)
    Adagrad(rate=0.1, initial=0.1, eps=1e-07)
    """

    rate: Any = static(default=1e-2)
    initial: float = static(default=0.1)
    eps: float = static(default=1e-7)
    slots: ClassVar[tuple[str, ...]] = ("total",)
    reals: ClassVar[tuple[str, ...]] = ("total",)
    numbers: ClassVar[tuple[str, ...]] = ("rate", "eps")

    def start(self, slot: str, p: Any) -> Any:
        """The sum of squares before the first step."""
        return self.initial

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        total = s["total"] + square(g)
        inverse = 1 / jnp.sqrt(jnp.where(total == 0, 1, total + h.eps))
        return -h.rate * jnp.where(total == 0, 0, g * inverse), {"total": total}


@struct
class Adadelta(Rule):
    """Adadelta: step sizes from the ratio of past updates to past gradients (Zeiler, 2012).

    `v = b v + (1 - b) |g|**2`, `d = sqrt(u + eps) / sqrt(v + eps) g`, `u = b u + (1 - b) |d|**2`, `p -= rate d`.

    >>> from atled import optim
    >>> optim.Adadelta().rate
    1.0
    """

    rate: Any = static(default=1.0)
    b: float = static(default=0.9)
    eps: float = static(default=1e-6)
    slots: ClassVar[tuple[str, ...]] = ("squares", "steps")
    reals: ClassVar[tuple[str, ...]] = ("squares", "steps")
    numbers: ClassVar[tuple[str, ...]] = ("rate", "b", "eps")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        squares = h.b * s["squares"] + (1 - h.b) * square(g)
        step = jnp.sqrt(s["steps"] + h.eps) / jnp.sqrt(squares + h.eps) * g
        return -h.rate * step, {"squares": squares, "steps": h.b * s["steps"] + (1 - h.b) * square(step)}


@struct
class RMSprop(Rule):
    """Gradients divided by the root of the running mean of their squares (Hinton, 2012), with momentum if it is not 0.

    `v = b v + (1 - b) |g|**2`, `d = g / sqrt(v + eps)`, `p -= rate d`. If `centered`, the square of the running mean is
    subtracted from v. With momentum, `u = momentum u + rate d`, and `p -= u`.

    >>> from atled import optim
    >>> optim.RMSprop(1e-3, momentum=0.9, centered=True).slots
    ('squares', 'mean', 'velocity')
    """

    rate: Any = static(default=1e-2)
    b: float = static(default=0.9)
    eps: float = static(default=1e-8)
    momentum: float = static(default=0.0)
    centered: bool = static(default=False)
    nesterov: bool = static(default=False)
    reals: ClassVar[tuple[str, ...]] = ("squares",)

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The momentum is a hyperparameter only if it is not None."""
        return ("rate", "b", "eps", "momentum") if self.momentum else ("rate", "b", "eps")

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        """Slots for squares; for mean gradients if centered, for velocities with momentum."""
        return ("squares", *["mean"] * self.centered, *["velocity"] * bool(self.momentum))

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        new = {"squares": h.b * s["squares"] + (1 - h.b) * square(g)}
        spread = new["squares"]
        if self.centered:
            new["mean"] = h.b * s["mean"] + (1 - h.b) * g
            spread = jnp.maximum(spread - square(new["mean"]), 0)  # rounding could make it negative
        step = h.rate * g / jnp.sqrt(spread + h.eps)
        if self.momentum:
            new["velocity"] = h.momentum * s["velocity"] + step
            step = step + h.momentum * new["velocity"] if self.nesterov else new["velocity"]
        return -step, new


@struct
class Lion(Decaying):
    """Lion: steps by the sign of a running mean (Chen et al., 2023), with weight decay as in `AdamW`.

    `p -= rate (sign(b1 m + (1 - b1) g) + decay p)`, `m = b2 m + (1 - b2) g`. Rates are about a tenth of Adam's.

    >>> from atled import optim
    >>> optim.Lion(1e-4, decay=0.1).slots
    ('mean',)
    """

    rate: Any = static(default=1e-4)
    b1: float = static(default=0.9)
    b2: float = static(default=0.99)
    decay: float = static(default=1e-3)
    decays: str | None = static(default=None)
    slots: ClassVar[tuple[str, ...]] = ("mean",)
    numbers: ClassVar[tuple[str, ...]] = ("rate", "b1", "b2", "decay")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        step = jnp.sign(h.b1 * s["mean"] + (1 - h.b1) * g) + h.decay * p
        return -h.rate * step, {"mean": h.b2 * s["mean"] + (1 - h.b2) * g}
