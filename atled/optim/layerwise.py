"""Layer-wise optimizers: LARS, LAMB, Adafactor. Each layer of a `Stack` counts as a separate array."""

from __future__ import annotations

from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core.tree_registry import static, struct
from atled.optim.basic_optimizers import AdamW, Decaying, square
from atled.optim.optimizer import norm


def _trusted(step: Any, p: Any, trust: Any = 1.0, eps: Any = 0.0) -> Any:
    """A step rescaled to `trust` times the parameter's norm; unchanged if either norm is zero."""
    own, length = norm(p), norm(step)
    is_zero = (own == 0) | (length == 0)
    return step * jnp.where(is_zero, 1, trust * own / jnp.where(is_zero, 1, length + eps))


@struct
class LARS(Decaying):
    """SGD with momentum whose steps are a fixed fraction of each array's norm (You et al., 2017), for large batches.

    `d = g + decay p`, scaled by `trust |p| / (|d| + eps)`, `u = momentum u + rate d`, `p -= u`.

    >>> from atled import optim
    >>> optim.LARS(0.1, decay=1e-4).slots
    ('velocity',)
    """

    rate: Any = static(default=1.0)
    momentum: float = static(default=0.9)
    trust: float = static(default=1e-3)
    decay: float = static(default=0.0)
    eps: float = static(default=0.0)
    decays: str | None = static(default=None)
    nesterov: bool = static(default=False)
    slots: ClassVar[tuple[str, ...]] = ("velocity",)
    numbers: ClassVar[tuple[str, ...]] = ("rate", "momentum", "trust", "decay", "eps")
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        step = h.rate * _trusted(g + h.decay * p, p, h.trust, h.eps)
        velocity = h.momentum * s["velocity"] + step
        return -(step + h.momentum * velocity if self.nesterov else velocity), {"velocity": velocity}


@struct
class LAMB(AdamW):
    """AdamW whose steps have the norm of each array, times the rate (You et al., 2020), for large batches.

    With d Adam's step and its decay, `p -= rate |p| / |d| d`; arrays or steps that are zero take `rate d`.

    >>> from atled import optim
    >>> optim.LAMB(1e-3).eps
    1e-06
    """

    eps: float = static(default=1e-6)
    decay: float = static(default=0.0)
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        first, second = self.moments(g, s, h)
        step = self.mean(g, first, h) / (jnp.sqrt(second / h.second) + h.eps) + h.decay * p
        return -h.rate * _trusted(step, p), {"first": first, "second": second}


@struct
class Adafactor(Decaying):
    """Adam's scaling with little memory (Shazeer and Stern, 2018): squares of matrices factored into rows and columns.

    In step t, the running mean of squares has decay `b = 1 - t**-power`. If the two longest axes of an array both have
    at least `least` entries, only row and column means of the squares are stored; otherwise all squares. Steps are
    clipped to a root mean square of `limit`, and scaled by `rate` times the root mean square of their array, at least
    `small`.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> slots = optim.Adafactor(1e-2).init({"w": jnp.ones((256, 128))}).slots
    >>> slots["rows"]["w"].shape, slots["columns"]["w"].shape, slots["squares"]["w"]
    ((256,), (128,), None)
    """

    rate: Any = static(default=1e-2)
    power: float = static(default=0.8)
    limit: float = static(default=1.0)
    small: float = static(default=1e-3)
    eps: float = static(default=1e-30)
    momentum: float = static(default=0.0)
    decay: float = static(default=0.0)
    decays: str | None = static(default=None)
    least: int = static(default=128)
    is_relative: bool = static(default=True)
    reals: ClassVar[tuple[str, ...]] = ("rows", "columns", "squares")
    is_elementwise: ClassVar[bool] = False

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The momentum is a hyperparameter only if it is not None."""
        return ("rate", "power", "limit", "small", "eps", "decay", *["momentum"] * bool(self.momentum))

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        """Means of squares; and of steps if there is momentum."""
        return ("rows", "columns", "squares", *["velocity"] * bool(self.momentum))

    def _factored(self, dims: tuple[int, ...]) -> tuple[int, int] | None:
        """The two longest axes, the longer last, if they are long enough."""
        order = sorted(range(len(dims)), key=lambda a: dims[a])
        return (order[-2], order[-1]) if len(dims) > 1 and dims[order[-2]] >= self.least else None

    def axes(self, dims: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """Row means lack the shorter of the two axes, column means the longer one; unfactored squares have all."""
        both, every = self._factored(dims), tuple(range(len(dims)))
        extra = {"velocity": every} if self.momentum else {}
        if both is None:
            return {"squares": every, **extra}
        short, long = both
        return {
            "rows": tuple([a for a in every if a != short]), "columns": tuple([a for a in every if a != long]), **extra,
        }  # fmt: skip

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The decay of squares in this step."""
        return {"b": 1 - t**-h.power}

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        squares, both = square(g) + h.eps, self._factored(p.shape)
        if both is None:
            new = {"squares": h.b * s["squares"] + (1 - h.b) * squares}
            step = g / jnp.sqrt(new["squares"])
        else:
            short, long = both
            new = {
                name: h.b * s[name] + (1 - h.b) * squares.mean(axis)
                for name, axis in (("rows", short), ("columns", long))
            }
            rows, columns = jnp.expand_dims(new["rows"], short), jnp.expand_dims(new["columns"], long)
            step = g / jnp.sqrt(rows) / jnp.sqrt(columns / columns.mean(short, keepdims=True))
        step = h.rate * step / jnp.maximum(1, _rms(step) / h.limit)
        if self.is_relative:
            step = step * jnp.maximum(_rms(p), h.small)
        if self.momentum:
            step = new["velocity"] = h.momentum * s["velocity"] + (1 - h.momentum) * step
        return -(step + h.decay * p), new


def _rms(x: Any) -> Any:
    """The root mean square of an array; zero for an empty one."""
    return jnp.sqrt(jnp.sum(square(x)) / max(x.size, 1))
