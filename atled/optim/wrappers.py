"""Wrappers around optimizers: gradient accumulation, skipping of non-finite steps, loss scaling, and SAM."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import describe
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.higher_order.cond import cond
from atled.optim.optimizer import (
    Optimizer,
    State,
    apply_updates,
    first_numbers,
    global_norm,
    handed,
    like,
    mapped,
    number_dtype,
    numbers_at,
    trained,
    whole,
    wide,
)  # fmt: skip
from atled.staging.jit import eval_shape
from atled.transforms.grad import value_and_grad


@struct
class Wrapped:
    """The states of a wrapper and of its inner optimizer.

    >>> from atled import optim
    >>> state = optim.accumulate(optim.SGD(0.1), 4).init({"w": jnp.zeros(2)})
    >>> int(state.own.slots["count"]), int(state.inner.step)
    (0, 0)
    """

    own: State
    inner: Any


class Wrapper(Optimizer):
    """A wrapper around the optimizer `inner`. Subclasses define their slots and how updates change."""

    inner: Optimizer
    numbers: ClassVar[tuple[str, ...]] = ()
    hands_on: ClassVar[bool] = False  # whether scaled gradients reach the inner optimizer unchanged

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Optimizer):
            raise TypeError(
                errors.explained(
                    f"{type(self).__name__}: the first argument must be an optimizer; got {describe(self.inner)}.",
                    f"optim.{type(self).__name__}(optim.AdamW(1e-3)).",
                )
            )
        if self.inner.has_scale and not self.hands_on:
            raise ValueError(
                errors.explained(
                    f"{type(self).__name__}: LossScale must be outside, because this wrapper needs unscaled "
                    f"gradients; got LossScale inside.",
                    f"optim.LossScale(optim.{type(self).__name__}(optimizer)), in lower case if it is a function.",
                )
            )

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The keyword arguments that the inner optimizer takes."""
        return self.inner.takes

    @property
    def is_step(self) -> bool:  # type: ignore[override]
        """Whether the inner optimizer turns gradients into updates."""
        return self.inner.is_step

    @property
    def keeps_weights(self) -> bool:  # type: ignore[override]
        """Whether the inner optimizer keeps its own copy of the weights."""
        return self.inner.keeps_weights

    @property
    def has_scale(self) -> bool:  # type: ignore[override]
        """Whether the inner optimizer is or contains a `LossScale`."""
        return self.inner.has_scale

    def slots(self, model: Any, mesh_axis: str | None) -> dict[str, Any]:
        """The initial slots of the wrapper itself."""
        return {}

    def init(self, model: Any, *, mesh_axis: str | None = None) -> Wrapped:
        """The states of the wrapper and of the inner optimizer before the first step."""
        leaves, structure = tree.flatten(model)
        hyper, scheduled = first_numbers(self, self.numbers, number_dtype(leaves, trained(structure, leaves)))
        own = State(jnp.zeros((), "int32"), hyper, self.slots(model, mesh_axis), scheduled, type(self).__name__)
        return Wrapped(own, self.inner.init(model, mesh_axis=mesh_axis))

    def eval_model(self, model: Any, state: Wrapped) -> Any:
        """The model for evaluation, with weights averaged by the inner optimizer."""
        return self.inner.eval_model(model, state.inner)

    def scale_loss(self, value: Any, state: Wrapped) -> Any:
        """The value of a loss, multiplied by the loss scale of the inner optimizer."""
        return self.inner.scale_loss(value, state.inner)

    def own(self, state: Any) -> tuple[State, Any]:
        """The states of the wrapper and of the inner optimizer; raises if there are not two, or if they belong to
        another optimizer.
        """
        if not isinstance(state, Wrapped) or state.own.of not in ("", type(self).__name__):
            got = f"that of {state.own.of}" if isinstance(state, Wrapped) else describe(state)
            raise TypeError(
                errors.explained(
                    f"{type(self).__name__}: the state must be that of this wrapper; got {got}.",
                    "optimizer.init(model).",
                )
            )
        return state.own, state.inner


def _updated_if(condition: Any, inner: Optimizer, grads: Any, state: Any, model: Any, values: dict[str, Any]) -> Any:
    """The updates of an optimizer if a condition holds; else zeros and the unchanged state."""

    given = handed(inner, values)
    loss = {"loss": given.pop("loss")} if "loss" in given else {}  # a function, not an array argument

    def go(grads: Any, state: Any, model: Any, given: dict[str, Any]) -> Any:
        return inner.update(grads, state, model, **given, **loss)

    shapes = eval_shape(go, grads, state, model, given)[0]

    def stay(grads: Any, state: Any, model: Any, given: dict[str, Any]) -> Any:
        return tree.map(lambda t: jnp.zeros(t.shape, t.dtype), shapes), state

    return cond(condition, go, stay, grads, state, model, given)


def _are_finite(grads: Any) -> Any:
    """Whether all numbers of all gradients are finite."""
    return jnp.all(jnp.asarray([jnp.all(jnp.isfinite(g)) for g in tree.leaves(grads)] or [True]))


@struct
class Accumulate(Wrapper):
    """One step of `inner` for the mean of `every` gradients.

    >>> from atled import optim
    >>> optim.accumulate(optim.SGD(0.1), 4)
    Accumulate(inner=SGD(learning_rate=0.1, momentum=0.0, nesterov=False), every=4)
    """

    inner: Optimizer = static()
    every: int = static(default=1)
    hands_on: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        whole(self, "optim.accumulate", "every")
        if "loss" in self.inner.takes:
            raise ValueError(
                errors.explained(
                    f"optim.accumulate: the inner optimizer must not need the loss as a function, which would "
                    f"be that of the last batch only; got {type(self.inner).__name__}.",
                    "larger batches; or optim.SAM(optim.accumulate(optimizer, every)), which perturbs the weights "
                    "for each batch.",
                )
            )
        if self.every < 1:
            raise ValueError(errors.explained(f"optim.accumulate: every must be 1 or more; got {self.every}."))

    def slots(self, model: Any, mesh_axis: str | None) -> dict[str, Any]:
        """The running mean, the number of gradients in total and per parameter; and the mean of values, if needed."""
        leaves, structure = tree.flatten(model)
        value = {"value": jnp.zeros((), number_dtype(leaves, trained(structure, leaves)))}
        counts = {"count": jnp.zeros((), "int32"), "given": jnp.zeros(len(leaves), "int32")}
        return {"mean": like(model, 0, mesh_axis), **counts, **(value if "value" in self.inner.takes else {})}

    def update(self, grads: Any, state: Wrapped, model: Any, **values: Any) -> tuple[Any, Wrapped]:
        """Zeros, or the updates for the mean of the last gradients."""
        own, inner = self.own(state)
        structure, old = tree.structure(model), own.slots
        is_given = [g is not None for g in structure.flatten_up_to(grads)]
        count, given = old["count"] + 1, old["given"] + np.asarray(is_given, "int32")
        counts = structure.unflatten([given[i] for i in range(len(is_given))])
        add = lambda m, g, n: m if g is None else m + (wide(g) - m) / n.astype(jnp.abs(m).dtype)  # noqa: E731
        new = {"mean": mapped(add, model, old["mean"], grads, counts), "count": count, "given": given}
        if "value" in old:
            new["value"] = old["value"] + (jnp.asarray(values["value"], old["value"].dtype) - old["value"]) / count
            values = {**values, "value": new["value"]}
        is_due = count == self.every
        updates, inner = self._updated(is_due, new["mean"], grads, counts, inner, model, values)
        slots = tree.map(lambda x: jnp.where(is_due, jnp.zeros_like(x), x), new)
        return updates, Wrapped(State(own.step + 1, own.hyperparams, slots, of=own.of), inner)

    def _updated(
        self, is_due: Any, mean: Any, grads: Any, counts: Any, state: Any, model: Any, values: dict[str, Any]
    ) -> Any:
        """The inner optimizer's updates if a step is due, for the parameters that had a gradient in some batch.

        If some gradients of the last batch are None, two steps are compiled: without these parameters, and with all.
        """
        now = mapped(lambda m, g: None if g is None else m, model, mean, grads)
        late = tree.leaves(mapped(lambda m, g, n: n if g is None else None, model, mean, grads, counts))
        if not late:
            return _updated_if(is_due, self.inner, now, state, model, values)
        is_late = jnp.any(jnp.asarray(late) > 0)
        some, state = _updated_if(is_due & ~is_late, self.inner, now, state, model, values)
        every, state = _updated_if(is_due & is_late, self.inner, mean, state, model, values)

        def joined(u: Any, v: Any, n: Any) -> Any:
            return jnp.where(n > 0, u if v is None else u + v, jnp.zeros_like(u))

        return mapped(joined, model, every, some, counts), state


def accumulate(optimizer: Optimizer, every: int) -> Accumulate:
    """Gradient accumulation: one step for the mean of `every` gradients, and none in between.

    The mean is over gradients that are not None: a parameter whose gradients are all None does not change. If a
    gradient is None only in the last batch, the slots of parameters without any gradient are updated with zeros. An
    optimizer that takes the loss value gets the mean value.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> sgd = optim.accumulate(optim.SGD(1.0), 2)
    >>> p = {"w": jnp.zeros(1)}
    >>> state = sgd.init(p)
    >>> for g in (1.0, 3.0):
    ...     p, state = sgd.step(p, {"w": jnp.full(1, g)}, state)
    ...     print(p["w"])
    [0.]
    [-2.]
    """
    return Accumulate(optimizer, every)


@struct
class ApplyIfFinite(Wrapper):
    """Skips the step and keeps the state if a gradient is not finite.

    >>> from atled import optim
    >>> optim.apply_if_finite(optim.SGD(0.1))
    ApplyIfFinite(inner=SGD(learning_rate=0.1, momentum=0.0, nesterov=False))
    """

    inner: Optimizer = static()

    def slots(self, model: Any, mesh_axis: str | None) -> dict[str, Any]:
        """The number of skipped steps, in total and in a row."""
        return {"skipped": jnp.zeros((), "int32"), "in_a_row": jnp.zeros((), "int32")}

    def update(self, grads: Any, state: Wrapped, model: Any, **values: Any) -> tuple[Any, Wrapped]:
        """Zeros if a gradient is not finite; else the optimizer's updates."""
        own, inner = self.own(state)
        is_finite = _are_finite(grads)
        updates, inner = _updated_if(is_finite, self.inner, grads, inner, model, values)
        slots = {
            "skipped": own.slots["skipped"] + ~is_finite,
            "in_a_row": jnp.where(is_finite, 0, own.slots["in_a_row"] + 1),
        }
        return updates, Wrapped(State(own.step + 1, own.hyperparams, slots, of=own.of), inner)


def apply_if_finite(optimizer: Optimizer) -> ApplyIfFinite:
    """Skips steps whose gradients have NaN or infinity, and counts them in `own.slots["skipped"]` of the state.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> sgd = optim.apply_if_finite(optim.SGD(1.0))
    >>> p = {"w": jnp.zeros(1)}
    >>> p, state = sgd.step(p, {"w": jnp.array([jnp.nan])}, sgd.init(p))
    >>> p["w"], int(state.own.slots["skipped"])
    (Array([0.], dtype=float32), 1)
    """
    return ApplyIfFinite(optimizer)


@formerly(every="growth_interval", factor="growth_factor", least="min_scale")
@struct
class LossScale(Wrapper):
    """Loss scaling for float16: the loss is multiplied by a scale so that gradients do not underflow, and gradients are
    divided by it.

    Differentiate `optimizer.scale_loss(loss, state)`. The scale, `hyperparams["scale"]` of the state, is multiplied by
    `growth_factor` after `growth_interval` finite steps in a row; if a gradient is not finite, the step is skipped, and
    the scale is divided by `growth_factor`, down to `min_scale`. `LossScale` must be the outermost wrapper: the inner
    optimizer gets unscaled gradients.

    >>> from atled import optim
    >>> import atled, atled.numpy as jnp
    >>> adam = optim.LossScale(optim.Adam(0.1))
    >>> p = {"w": jnp.zeros(1, "float16")}
    >>> state = adam.init(p)
    >>> tiny = lambda p: jnp.sum(p["w"].astype("float32")) * 1e-8
    >>> atled.grad(tiny)(p)["w"], atled.grad(lambda p: adam.scale_loss(tiny(p), state))(p)["w"] > 0
    (Array([0.], dtype=float16), Array([ True], dtype=bool))
    """

    inner: Optimizer = static()
    scale: float = static(default=2.0**15)
    growth_interval: int = static(default=2000)
    growth_factor: float = static(default=2.0)
    min_scale: float = static(default=1.0)
    numbers: ClassVar[tuple[str, ...]] = ("scale",)
    has_scale: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        Wrapper.__post_init__(self)
        whole(self, "LossScale", "growth_interval")
        if callable(self.scale):
            raise TypeError(
                errors.explained(
                    "LossScale: scale must be a number, since it adapts automatically; got a schedule.",
                    "optim.LossScale(optimizer, 2.0**15).",
                )
            )
        if self.growth_interval < 1 or not self.growth_factor > 1 or not self.scale > 0:
            raise ValueError(
                errors.explained(
                    "LossScale: scale must be above 0, growth_interval 1 or more, growth_factor above 1; got "
                    f"{self.scale}, {self.growth_interval}, {self.growth_factor}."
                )
            )

    def slots(self, model: Any, mesh_axis: str | None) -> dict[str, Any]:
        """The number of finite steps since the scale changed, and of skipped steps."""
        return {"good": jnp.zeros((), "int32"), "skipped": jnp.zeros((), "int32")}

    def scale_loss(self, value: Any, state: Wrapped) -> Any:
        """The value of a loss, times the scale."""
        own, inner = self.own(state)
        value = wide(jnp.asarray(self.inner.scale_loss(value, inner)))
        return value * own.hyperparams["scale"].astype(value.dtype)

    def update(self, grads: Any, state: Wrapped, model: Any, **values: Any) -> tuple[Any, Wrapped]:
        """The updates for the unscaled gradients; zeros if one is not finite."""
        own, inner = self.own(state)
        scale = own.hyperparams["scale"]
        grads = tree.map(lambda g: wide(g) / scale.astype(jnp.abs(wide(g)).dtype), grads)
        is_finite = _are_finite(grads)
        updates, inner = _updated_if(is_finite, self.inner, grads, inner, model, values)
        good = jnp.where(is_finite, own.slots["good"] + 1, 0)
        is_due, grown = good == self.growth_interval, scale * self.growth_factor
        grown = jnp.where(is_due & jnp.isfinite(grown), grown, scale)
        scale = jnp.where(is_finite, grown, jnp.maximum(scale / self.growth_factor, self.min_scale))
        slots = {"good": jnp.where(is_due, 0, good), "skipped": own.slots["skipped"] + ~is_finite}
        return updates, Wrapped(State(own.step + 1, {"scale": scale}, slots, of=own.of), inner)


def uphills(loss: Any) -> Any:
    """A function of a model that returns the loss and the gradients of ascent, conjugated; the model is not changed."""
    both = value_and_grad(lambda m: (loss(m), m), has_aux=True)  # state that layers assign is discarded

    def call(model: Any) -> tuple[Any, Any]:
        (value, _), grads = both(model)
        return value, tree.map(lambda g: g.conj() if jnp.iscomplexobj(g) else g, grads)

    return call


@struct
class SAM(Wrapper):
    """Sharpness-aware minimization (SAM): steps along the gradients at the worst point nearby (Foret et al., 2021).

    `inner` gets the gradients at `p + rho g / |g|`, with |g| the global norm of the gradients. The step computes these
    gradients, so SAM needs the loss of the batch as a function of the model.

    >>> from atled import optim
    >>> import atled, atled.numpy as jnp
    >>> sam = optim.SAM(optim.SGD(0.1), rho=0.5)
    >>> loss = lambda p: jnp.sum(p["w"] ** 2)
    >>> p = {"w": jnp.ones(1)}
    >>> sam.step(p, atled.grad(loss)(p), sam.init(p), loss=loss)[0]["w"]
    Array([0.7], dtype=float32)
    """

    inner: Optimizer = static()
    rho: Any = static(default=0.05)
    numbers: ClassVar[tuple[str, ...]] = ("rho",)

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """`loss`, and the keyword arguments that the inner optimizer takes."""
        return tuple(sorted({"loss", *self.inner.takes}))

    def update(self, grads: Any, state: Wrapped, model: Any, *, loss: Any, **values: Any) -> tuple[Any, Wrapped]:
        """The updates for the gradients at the perturbed parameters."""
        own, inner = self.own(state)
        length, (h, scheduled) = global_norm(grads), numbers_at(self, own)
        share = h.rho / jnp.where(length == 0, 1, length).astype(h.rho.dtype)
        leaves, structure = tree.flatten(model)
        is_trained = structure.unflatten([True if a else None for a in trained(structure, leaves)])
        uphill = mapped(
            lambda _, g: None if g is None else wide(g) * share.astype(jnp.abs(wide(g)).dtype), model, is_trained, grads
        )
        there = mapped(lambda _, g: g, model, grads, uphills(loss)(apply_updates(model, uphill))[1])
        updates, inner = self.inner.update(there, inner, model, **handed(self.inner, {"loss": loss, **values}))
        return updates, Wrapped(State(own.step + 1, own.hyperparams, {}, scheduled, own.of), inner)
