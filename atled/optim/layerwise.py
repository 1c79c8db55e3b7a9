"""Layer-wise optimizers: LARS, LAMB, Adafactor. Each layer of a `Stack` counts as a separate array."""

from __future__ import annotations

from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.optim.basic_optimizers import AdamW, Decaying, square
from atled.optim.optimizer import global_norm


def _trusted(step: Any, p: Any, trust: Any = 1.0, eps: Any = 0.0) -> Any:
    """A step rescaled to `trust` times the parameter's norm; unchanged if either norm is zero."""
    own, length = global_norm(p), global_norm(step)
    is_zero = (own == 0) | (length == 0)
    return step * jnp.where(is_zero, 1, trust * own / jnp.where(is_zero, 1, length + eps))


@formerly(rate="learning_rate", decay="weight_decay", decays="weight_decay_mask", trust="trust_coefficient")
@struct
class LARS(Decaying):
    """SGD with momentum whose steps are a fixed fraction of each array's norm (You et al., 2017), for large batches.

    `d = g + decay p`, scaled by `trust_coefficient |p| / (|d| + eps)`, `u = momentum u + rate d`, `p -= u`.

    >>> from atled import optim
    >>> optim.LARS(0.1, weight_decay=1e-4).slots
    ('velocity',)
    """

    learning_rate: Any = static(default=1.0)
    momentum: float = static(default=0.9)
    trust_coefficient: float = static(default=1e-3)
    weight_decay: float = static(default=0.0)
    eps: float = static(default=0.0)
    weight_decay_mask: str | None = static(default=None)
    nesterov: bool = static(default=False)
    slots: ClassVar[tuple[str, ...]] = ("velocity",)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "momentum", "trust_coefficient", "weight_decay", "eps")
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        step = h.learning_rate * _trusted(g + h.weight_decay * p, p, h.trust_coefficient, h.eps)
        velocity = h.momentum * s["velocity"] + step
        return -(step + h.momentum * velocity if self.nesterov else velocity), {"velocity": velocity}


@formerly(rate="learning_rate", decay="weight_decay", decays="weight_decay_mask")
@struct
class LAMB(AdamW):
    """AdamW whose steps have the norm of each array, times the rate (You et al., 2020), for large batches.

    Let d be Adam's step including decay: `p -= rate |p| / |d| d`, or `p -= rate d` if p or d is zero.

    >>> from atled import optim
    >>> optim.LAMB(1e-3).eps
    1e-06
    """

    eps: float = static(default=1e-6)
    weight_decay: float = static(default=0.0)
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        first, second = self.moments(g, s, h)
        step = self.mean(g, first, h) / (jnp.sqrt(second / h.second) + h.eps) + h.weight_decay * p
        return -h.learning_rate * _trusted(step, p), {"first": first, "second": second}


@formerly(
    rate="learning_rate",
    decay="weight_decay",
    decays="weight_decay_mask",
    power="decay_rate",
    limit="clipping_threshold",
    small="min_parameter_scale",
    least="min_dim_size_to_factor",
    is_relative="multiply_by_parameter_scale",
)
@struct
class Adafactor(Decaying):
    """Adam's scaling with little memory (Shazeer and Stern, 2018): squares of matrices factored into rows and columns.

    In step t, the running mean of squares has decay `b = 1 - t**-decay_rate`. If the two longest axes of an array both
    have at least `min_dim_size_to_factor` entries, only row and column means of the squares are stored; otherwise the
    means of all squares. Steps are clipped to a root mean square of `clipping_threshold`, and scaled by `learning_rate`
    times the root mean square of their array, at least `min_parameter_scale`.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> slots = optim.Adafactor(1e-2).init({"w": jnp.ones((256, 128))}).slots
    >>> slots["rows"]["w"].shape, slots["columns"]["w"].shape, slots["squares"]["w"]
    ((256,), (128,), None)
    """

    learning_rate: Any = static(default=1e-2)
    decay_rate: float = static(default=0.8)
    clipping_threshold: float = static(default=1.0)
    min_parameter_scale: float = static(default=1e-3)
    eps: float = static(default=1e-30)
    momentum: float = static(default=0.0)
    weight_decay: float = static(default=0.0)
    weight_decay_mask: str | None = static(default=None)
    min_dim_size_to_factor: int = static(default=128)
    multiply_by_parameter_scale: bool = static(default=True)
    reals: ClassVar[tuple[str, ...]] = ("rows", "columns", "squares")
    is_elementwise: ClassVar[bool] = False

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The hyperparameters, with the momentum only if it is not 0."""
        return (
            "learning_rate",
            "decay_rate",
            "clipping_threshold",
            "min_parameter_scale",
            "eps",
            "weight_decay",
            *["momentum"] * bool(self.momentum),
        )

    @property
    def slots(self) -> tuple[str, ...]:  # type: ignore[override]
        """Running means of squares, and of steps if the momentum is not 0."""
        return ("rows", "columns", "squares", *["velocity"] * bool(self.momentum))

    def _factored(self, dims: tuple[int, ...]) -> tuple[int, int] | None:
        """The two longest axes, the longer last, if they are long enough."""
        order = sorted(range(len(dims)), key=lambda a: dims[a])
        return (order[-2], order[-1]) if len(dims) > 1 and dims[order[-2]] >= self.min_dim_size_to_factor else None

    def axes(self, dims: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """The axes of slots: row means lack the shorter of the two longest axes, column means the longer one."""
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
        return {"b": 1 - t**-h.decay_rate}

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
        step = h.learning_rate * step / jnp.maximum(1, _rms(step) / h.clipping_threshold)
        if self.multiply_by_parameter_scale:
            step = step * jnp.maximum(_rms(p), h.min_parameter_scale)
        if self.momentum:
            step = new["velocity"] = h.momentum * s["velocity"] + (1 - h.momentum) * step
        return -(step + h.weight_decay * p), new


def _rms(x: Any) -> Any:
    """The root mean square of an array; zero for an empty one."""
    return jnp.sqrt(jnp.sum(square(x)) / max(x.size, 1))
