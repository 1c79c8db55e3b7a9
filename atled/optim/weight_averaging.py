"""Optimizers with two sets of weights: weight averaging, Lookahead, and schedule-free training.

`optimizer.eval_model(model, state)` is the model with the weights for evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import ArrayLike
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.optim.basic_optimizers import AdamW, square
from atled.optim.optimizer import (
    Optimizer,
    State,
    handed,
    like,
    mapped,
    number_dtype,
    numbers_at,
    trained,
    whole,
    wide,
)  # fmt: skip
from atled.optim.wrappers import Wrapped, Wrapper


def _moved(p: Any, u: Any) -> Any:
    """A parameter after its update, in float32 or wider."""
    return wide(p if u is None else (p + u).astype(p.dtype))


@struct
class Average(Wrapper):
    """`inner`, with an average of the weights along its trajectory.

    >>> from atled import optim
    >>> optim.average(optim.SGD(0.1), decay=0.5)
    Average(inner=SGD(learning_rate=0.1, momentum=0.0, nesterov=False), decay=0.5, begin=0, every=1)
    """

    inner: Optimizer = static()
    decay: Any = static(default=None)
    begin: int = static(default=0)
    every: int = static(default=1)
    keeps_weights: ClassVar[bool] = True  # type: ignore[misc]
    hands_on: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        whole(self, "optim.average", "begin", "every")
        if isinstance(self.decay, Real) and not 0 <= float(self.decay) < 1:
            raise ValueError(
                errors.explained(
                    f"optim.average: decay must be 0 or more, and below 1; got {self.decay}.",
                    "no decay, for the mean of all weights.",
                )
            )
        if self.every < 1 or self.begin < 0:
            raise ValueError(
                errors.explained(
                    f"optim.average: every must be 1 or more, begin 0 or more; got {self.every}, {self.begin}."
                )
            )

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The decay, if there is one."""
        return () if self.decay is None else ("decay",)

    def slots(self, model: Any, mesh_axis: str | None) -> dict[str, Any]:
        """The average, and the number of weights in it."""
        return {"average": like(model, None, mesh_axis), "count": jnp.zeros((), "int32")}

    def update(self, grads: Any, state: Wrapped, model: Any, **values: Any) -> tuple[Any, Wrapped]:
        """The inner optimizer's updates; the average includes the new weights if due."""
        own, inner = self.own(state)
        updates, inner = self.inner.update(grads, inner, model, **handed(self.inner, values))
        t, (h, scheduled) = own.step + 1, numbers_at(self, own)
        is_due = (t > self.begin) & ((t - self.begin) % self.every == 0)
        count = own.slots["count"] + is_due

        def averaged(a: Any, p: Any, u: Any) -> Any:
            dtype = jnp.abs(a).dtype
            n = jnp.maximum(count, 1).astype(dtype)
            if self.decay is None:
                share = 1 / n
            else:
                decay = h.decay.astype(dtype)
                share = jnp.where(
                    n == 1, 1, (1 - decay) / (1 - decay**n)
                )  # bias correction: the first weights have no extra share
            return jnp.where(is_due, a + share * (_moved(p, u) - a), a)

        slots = {"average": mapped(averaged, model, own.slots["average"], model, updates), "count": count}
        return updates, Wrapped(State(t, own.hyperparams, slots, scheduled, own.of), inner)

    def eval_model(self, model: Any, state: Wrapped) -> Any:
        """The model with averaged parameters; unchanged before there is an average."""
        own, _ = self.own(state)
        return _with(
            model, mapped(lambda a, p: jnp.where(own.slots["count"] > 0, a, p), model, own.slots["average"], model)
        )


def _check_alone(optimizer: Any) -> None:
    """Raise an error for an inner optimizer that keeps its own copy of the weights."""
    if optimizer.inner.keeps_weights:
        name = type(optimizer).__name__
        raise ValueError(
            errors.explained(
                f"{name}: the inner optimizer must not keep its own copy of the weights, since its steps are "
                "modified; got "
                f"{type(optimizer.inner).__name__}.",
                f"optim.average(optim.{name}(optimizer)).",
            )
        )


def _with(model: Any, parameters: Any) -> Any:
    """The model with other parameters, converted to the dtypes of its own."""
    leaves, structure = tree.flatten(model)
    new_leaves = structure.flatten_up_to(parameters)
    return structure.unflatten([x if y is None else y.astype(x.dtype) for x, y in zip(leaves, new_leaves, strict=True)])


def average(
    optimizer: Optimizer, decay: ArrayLike | Callable[[Any], ArrayLike] | None = None, *, begin: int = 0, every: int = 1
) -> Average:
    """Averages the weights of every `every`-th step after step `begin`; training itself does not change.

    With a `decay`, the average is `a = decay a + (1 - decay) p` with bias correction (EMA); without one, it is the mean
    of all weights (SWA, Polyak). `optimizer.eval_model(model, state)` is the model with the averaged weights.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> sgd = optim.average(optim.SGD(1.0), decay=0.5)
    >>> p = {"w": jnp.zeros(1)}
    >>> state = sgd.init(p)
    >>> for _ in range(2):
    ...     p, state = sgd.step(p, {"w": jnp.ones(1)}, state)
    >>> round(float(sgd.eval_model(p, state)["w"][0]), 4)  # (0.5 * -1 + -2) / 1.5
    -1.6667
    """
    return Average(optimizer, decay, begin, every)


@formerly(every="sync_period", share="slow_step_size")
@struct
class Lookahead(Wrapper):
    """Lookahead: every `sync_period` steps, slow weights move a fraction `slow_step_size` toward the model's weights,
    which are then reset to the slow weights (Zhang et al., 2019).

    `s += slow_step_size (p - s)`, then `p = s`. `eval_model` gives the model with the slow weights.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> sgd = optim.Lookahead(optim.SGD(1.0), sync_period=2)
    >>> p = {"w": jnp.zeros(1)}
    >>> state = sgd.init(p)
    >>> for _ in range(2):
    ...     p, state = sgd.step(p, {"w": jnp.ones(1)}, state)
    ...     print(p["w"])
    [-1.]
    [-1.]
    """

    inner: Optimizer = static()
    sync_period: int = static(default=5)
    slow_step_size: Any = static(default=0.5)
    numbers: ClassVar[tuple[str, ...]] = ("slow_step_size",)
    keeps_weights: ClassVar[bool] = True  # type: ignore[misc]
    hands_on: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        _check_alone(self)
        whole(self, "Lookahead", "sync_period")
        if self.sync_period < 1:
            raise ValueError(errors.explained(f"Lookahead: sync_period must be 1 or more; got {self.sync_period}."))

    def slots(self, model: Any, mesh_axis: str | None) -> dict[str, Any]:
        """The slow weights."""
        return {"slow": like(model, None, mesh_axis)}

    def update(self, grads: Any, state: Wrapped, model: Any, **values: Any) -> tuple[Any, Wrapped]:
        """The inner optimizer's updates, or the reset to the slow weights."""
        own, inner = self.own(state)
        updates, inner = self.inner.update(grads, inner, model, **handed(self.inner, values))
        t, (h, scheduled) = own.step + 1, numbers_at(self, own)
        is_due = t % self.sync_period == 0

        def slower(s: Any, p: Any, u: Any) -> Any:
            return jnp.where(is_due, s + h.slow_step_size.astype(jnp.abs(s).dtype) * (_moved(p, u) - s), s)

        slow = mapped(slower, model, own.slots["slow"], model, updates)
        back = lambda u, p, s: jnp.where(is_due, s - wide(p), u).astype(u.dtype)  # noqa: E731
        after = State(t, own.hyperparams, {"slow": slow}, scheduled, own.of)
        return mapped(back, model, updates, model, slow), Wrapped(after, inner)

    def eval_model(self, model: Any, state: Wrapped) -> Any:
        """The model with the slow weights."""
        return _with(model, self.own(state)[0].slots["slow"])


@formerly(b="b1", power="weight_lr_power")
@struct
class ScheduleFree(Wrapper):
    """Schedule-free training with `inner` (Defazio et al., 2024): gradients are taken between weights and their mean.

    `z += u`, with u the update of `inner` for the gradients at y; `x += c (z - x)`, with c the share of this step in
    the sum of all `rate**weight_lr_power`; `y = b1 x + (1 - b1) z`. The model holds y; `eval_model` gives x, for
    inference. `inner` must have one learning rate, and no momentum.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> free = optim.ScheduleFree(optim.SGD(1.0), b1=0.5)
    >>> p = {"w": jnp.zeros(1)}
    >>> state = free.init(p)
    >>> for _ in range(2):
    ...     p, state = free.step(p, {"w": jnp.ones(1)}, state)
    >>> state.own.slots["z"]["w"], free.eval_model(p, state)["w"]
    (Array([-2.], dtype=float32), Array([-1.5], dtype=float32))
    """

    inner: Optimizer = static()
    b1: float = static(default=0.9)  # static: the state depends on it
    weight_lr_power: float = static(default=2.0)
    keeps_weights: ClassVar[bool] = True  # type: ignore[misc]
    hands_on: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        _check_alone(self)
        if not 0 < self.b1 <= 1:
            raise ValueError(errors.explained(f"ScheduleFree: b1 must be above 0, and at most 1; got {self.b1}."))

    def slots(self, model: Any, mesh_axis: str | None) -> dict[str, Any]:
        """The weights z, the sum of averaging weights, and the largest rate."""
        leaves, structure = tree.flatten(model)
        dtype = number_dtype(leaves, trained(structure, leaves))
        return {"z": like(model, None, mesh_axis), "total": jnp.zeros((), dtype), "most": jnp.zeros((), dtype)}

    def update(self, grads: Any, state: Wrapped, model: Any, **values: Any) -> tuple[Any, Wrapped]:
        """The updates of y, the model's weights."""
        own, inner = self.own(state)
        updates, inner = self.inner.update(grads, inner, model, **handed(self.inner, values))
        rate = _rate(inner)
        most = jnp.maximum(own.slots["most"], rate)
        weight = most**self.weight_lr_power
        total = own.slots["total"] + weight
        share = jnp.where(total == 0, 0, weight / jnp.where(total == 0, 1, total))
        z = mapped(lambda z, u: z if u is None else (z + u).astype(z.dtype), model, own.slots["z"], updates)

        def way(u: Any, y: Any, old: Any, new: Any) -> Any:
            y, c = wide(y), share.astype(jnp.abs(new).dtype)
            x = self._mean(y, old)
            x = x + c * (new - x)
            return self.b1 * x + (1 - self.b1) * new - y

        ways = mapped(way, model, updates, model, own.slots["z"], z)
        slots = {"z": z, "total": total, "most": most}
        return ways, Wrapped(State(own.step + 1, own.hyperparams, slots, of=own.of), inner)

    def _mean(self, y: Any, z: Any) -> Any:
        return (y - (1 - self.b1) * z) / self.b1

    def eval_model(self, model: Any, state: Wrapped) -> Any:
        """The model with x, the mean."""
        own, _ = self.own(state)
        return _with(model, mapped(lambda z, y: self._mean(wide(y), z), model, own.slots["z"], model))


def _rate(state: Any) -> Any:
    """The rate of the last step in a state."""
    states = [s for s in tree.leaves(state, is_leaf=lambda s: isinstance(s, State)) if isinstance(s, State)]
    rates = [r for s in states for n, r in {**s.hyperparams, **s.scheduled}.items() if n == "learning_rate"]
    if len(rates) != 1:
        raise ValueError(
            errors.explained(
                f"ScheduleFree: the inner optimizer must have one learning_rate; got {len(rates)}.",
                "optim.ScheduleFree(optim.SGD(0.1)).",
            )
        )
    return rates[0]


@struct
class SquaresW(AdamW):
    """AdamW without momentum, the inner optimizer of schedule-free AdamW."""

    slots: ClassVar[tuple[str, ...]] = ("second",)
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "b2", "eps", "weight_decay")

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of one array."""
        second = h.b2 * s["second"] + (1 - h.b2) * square(g)
        step = g / (jnp.sqrt(second / h.second) + h.eps) + h.weight_decay * p
        return -h.learning_rate * step, {"second": second}

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """The bias correction of the mean."""
        return {"second": 1 - h.b2**t}


@formerly(rate="learning_rate", decay="weight_decay", decays="weight_decay_mask")
def schedule_free_adamw(
    learning_rate: ArrayLike | Callable[[Any], ArrayLike] = 2.5e-3, *,
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
    weight_decay: float = 0.0, weight_decay_mask: str | None = None,
) -> ScheduleFree:  # fmt: skip
    """AdamW without a schedule: `ScheduleFree` around AdamW without momentum, with b1 as in `ScheduleFree`.

    >>> from atled import optim
    >>> optim.schedule_free_adamw(1e-2).b1
    0.9
    """
    return ScheduleFree(
        SquaresW(
            learning_rate=learning_rate, b2=b2, eps=eps, weight_decay=weight_decay, weight_decay_mask=weight_decay_mask
        ),
        b1,
    )
