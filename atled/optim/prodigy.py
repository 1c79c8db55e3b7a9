"""Prodigy: Adam that estimates its learning rate from the distance that the parameters have moved."""

from __future__ import annotations

from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core import tree
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.nn.module_filters import checked, matches, paths
from atled.optim.basic_optimizers import square
from atled.optim.optimizer import (
    Optimizer,
    State,
    first_numbers,
    like,
    mapped,
    number_dtype,
    numbers_at,
    trained,
    wide,
)  # fmt: skip


@formerly(
    rate="learning_rate",
    decay="weight_decay",
    decays="weight_decay_mask",
    initial="estim_lr0",
    growth="estim_lr_coef",
    has_warmup="safeguard_warmup",
)
@struct
class Prodigy(Optimizer):
    """Adam that estimates the distance d to a solution and scales its steps by it (Mishchenko and Defazio, 2024).

    The learning rate should be 1, or a schedule that starts at 1. With `l = d rate sqrt(1 - b2**t) / (1 - b1**t)`,
    `b3 = sqrt(b2)`: `m = b1 m + (1 - b1) d g`, `v = b2 v + (1 - b2) |d g|**2`, `r = b3 r + l d / d0 g·(p0 - p)`,
    `s = b3 s + l d / d0 g`, `d = max(d, estim_lr_coef r / |s|_1)`, `p -= l (m / (sqrt(v) + d eps) + decay p)`. The
    state has d in `slots["distance"]`.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> float(optim.Prodigy().init({"w": jnp.ones(1)}).slots["distance"]) == float(jnp.float32(1e-6))
    True
    """

    learning_rate: Any = static(default=1.0)
    b1: float = static(default=0.9)
    b2: float = static(default=0.999)
    b3: float | None = static(default=None)
    eps: float = static(default=1e-8)
    estim_lr0: float = static(default=1e-6)
    estim_lr_coef: float = static(default=1.0)
    weight_decay: float = static(default=0.0)
    weight_decay_mask: str | None = static(default=None)
    safeguard_warmup: bool = static(default=False)  # whether s leaves out the rate and the bias corrections
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "b1", "b2", "eps", "estim_lr_coef", "weight_decay")

    def init(self, model: Any, *, mesh_axis: str | None = None) -> State:
        """The state before the first step."""
        leaves, structure = tree.flatten(model)
        if self.weight_decay_mask is not None:
            checked("Prodigy, weight_decay_mask", [self.weight_decay_mask], paths(structure))
        dtype = number_dtype(leaves, trained(structure, leaves))
        hyper, scheduled = first_numbers(self, self.numbers, dtype)
        slots = {n: like(model, 0, mesh_axis) for n in ("first", "second", "total")}
        scalars = {"distance": jnp.asarray(self.estim_lr0, dtype), "gain": jnp.zeros((), dtype)}
        slots |= {"start": like(model, None, mesh_axis), **scalars}
        return State(jnp.zeros((), "int32"), hyper, slots, scheduled, "Prodigy")

    def update(self, grads: Any, state: State, model: Any) -> tuple[Any, State]:
        """The updates to add to the parameters, and the new state."""
        h, scheduled = numbers_at(self, state)
        s, d, t = state.slots, state.slots["distance"], (state.step + 1).astype(h.b1.dtype)
        b3 = jnp.sqrt(h.b2) if self.b3 is None else jnp.asarray(self.b3, h.b2.dtype)
        length = d * h.learning_rate * jnp.sqrt(1 - h.b2**t) / (1 - h.b1**t)
        share = (d if self.safeguard_warmup else length) * d / self.estim_lr0
        meant = mapped(lambda old, g: g if g is None else wide(g), model, s["start"], grads)

        def kept(old: Any, fading: Any, share: Any, f: Any = lambda g: g) -> Any:
            """A slot updated as a decaying sum: `fading * old + share * f(gradient)`."""

            def new(x: Any, g: Any) -> Any:
                return x if g is None else (_as(fading, x) * x + _as(share, x) * f(g)).astype(x.dtype)

            return mapped(new, model, old, meant)

        first = kept(s["first"], h.b1, (1 - h.b1) * d)
        second = kept(s["second"], h.b2, (1 - h.b2) * d**2, square)
        total = kept(s["total"], b3, share)
        gains = mapped(lambda g, p, p0: jnp.sum((g.conj() * (p0 - wide(p))).real), model, meant, model, s["start"])
        gain = b3 * s["gain"] + d / self.estim_lr0 * length * _added(gains, d)
        size = _added(mapped(lambda a: jnp.sum(jnp.abs(a)), model, total), d)
        longer = jnp.where(size == 0, 0, h.estim_lr_coef * gain / jnp.where(size == 0, 1, size))
        distance = jnp.maximum(d, longer)

        def step(g: Any, p: Any, m: Any, v: Any, path: str) -> Any:
            is_meant = self.weight_decay_mask is None or matches(self.weight_decay_mask, path)
            direction = m / (jnp.sqrt(v.real) + _as(distance * h.eps, m))
            return -_as(length, m) * (direction + _as(h.weight_decay, m) * wide(p) if is_meant else direction)

        structure = tree.structure(model)
        names = structure.unflatten(paths(structure))
        updates = mapped(step, model, meant, model, first, second, names)
        slots = {"first": first, "second": second, "total": total, "start": s["start"]}
        scalars = {"distance": distance, "gain": gain}
        return updates, State(state.step + 1, state.hyperparams, {**slots, **scalars}, scheduled, state.of)


def _as(number: Any, x: Any) -> Any:
    """A number in the real dtype of an array."""
    return number.astype(jnp.abs(x).dtype)


def _added(numbers: Any, like: Any) -> Any:
    """The sum of numbers in a tree."""
    return sum([n.astype(like.dtype) for n in tree.leaves(numbers)], jnp.zeros_like(like))
