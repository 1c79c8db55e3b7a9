"""Gradient clipping by global norm, by array, by unit or by element, as parts of a `chain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import ArrayLike
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct
from atled.optim.optimizer import Optimizer, Rule, State, first_numbers, global_norm, number_dtype, numbers_at, trained


@formerly(limit="max_norm")
@struct
class ClipByGlobalNorm(Optimizer):
    """Clips the global norm of the gradients to `max_norm`.

    >>> part, g = ClipByGlobalNorm(1.0), {"w": jnp.array([3.0, 4.0])}
    >>> part.update(g, part.init(g), g)[0]["w"].round(1)
    Array([0.6, 0.8], dtype=float32)
    """

    max_norm: Any = static(default=1.0)
    is_step: ClassVar[bool] = False

    def init(self, model: Any, *, mesh_axis: str | None = None) -> State:
        """The state, with `max_norm` as a hyperparameter, which can be changed."""
        leaves, structure = tree.flatten(model)
        hyper, scheduled = first_numbers(self, ("max_norm",), number_dtype(leaves, trained(structure, leaves)))
        return State(jnp.zeros((), "int32"), hyper, {}, scheduled, "ClipByGlobalNorm")

    def update(self, grads: Any, state: State, model: Any) -> tuple[Any, State]:
        """The gradients, clipped."""
        numbers, scheduled = numbers_at(self, state)
        factor = _factor(global_norm(grads).astype(numbers.max_norm.dtype), numbers.max_norm)
        clipped = tree.map(lambda g: (g * factor.astype(jnp.abs(g).dtype)).astype(g.dtype), grads)
        return clipped, State(state.step + 1, state.hyperparams, {}, scheduled, state.of)


def _factor(length: Any, limit: Any) -> Any:
    """The factor that clips a norm to a limit; NaN if the norm is NaN."""
    return jnp.where(length <= limit, 1, limit / length)


def clip_by_global_norm(max_norm: ArrayLike | Callable[[Any], ArrayLike]) -> ClipByGlobalNorm:
    """Clips gradients by their global norm; goes before an optimizer in a `chain`.

    With n the norm of all gradients as one vector, each gradient g becomes `g * min(1, max_norm / n)`.

    >>> from atled import optim
    >>> optim.chain(optim.clip_by_global_norm(1.0), optim.SGD(0.1))
    Chain(parts=(ClipByGlobalNorm(max_norm=1.0), SGD(learning_rate=0.1, momentum=0.0, nesterov=False)))
    """
    return ClipByGlobalNorm(max_norm)


@formerly(limit="clip_value")
@struct
class ClipByValue(Rule):
    """Clips each element of the gradients to [-clip_value, clip_value].

    >>> part, g = ClipByValue(0.5), {"w": jnp.array([0.25, -3.0])}
    >>> part.update(g, part.init(g), g)[0]["w"]
    Array([ 0.25, -0.5 ], dtype=float32)
    """

    clip_value: Any = static(default=1.0)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("clip_value",)

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The gradient of one array, clipped."""
        if jnp.iscomplexobj(g):
            raise TypeError(
                errors.explained(
                    "optim.clip_by_value: real gradients are expected; got complex ones, which have no order.",
                    "optim.clip_by_global_norm(max_norm) or optim.clip_by_norm(max_norm).",
                )
            )
        return jnp.clip(g, -h.clip_value, h.clip_value), {}


def clip_by_value(clip_value: ArrayLike | Callable[[Any], ArrayLike]) -> ClipByValue:
    """Clips each element of the gradients to [-clip_value, clip_value]. NaN stays NaN.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> part, g = optim.clip_by_value(0.5), {"w": jnp.array([0.2, -3.0])}
    >>> part.update(g, part.init(g), g)[0]["w"]
    Array([ 0.2, -0.5], dtype=float32)
    """
    return ClipByValue(clip_value)


@formerly(limit="max_norm")
@struct
class ClipByNorm(Rule):
    """Clips the gradient of each array to norm `max_norm`.

    >>> part, g = ClipByNorm(1.0), {"a": jnp.array([4.0]), "b": jnp.array([0.5])}
    >>> part.update(g, part.init(g), g)[0]
    {'a': Array([1.], dtype=float32), 'b': Array([0.5], dtype=float32)}
    """

    max_norm: Any = static(default=1.0)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("max_norm",)
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The gradient of one array, clipped."""
        return g * _factor(global_norm(g), h.max_norm), {}


def clip_by_norm(max_norm: ArrayLike | Callable[[Any], ArrayLike]) -> ClipByNorm:
    """Clips the gradient of each array to norm `max_norm`; in a `Stack`, the gradient of each layer separately.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> part, g = optim.clip_by_norm(1.0), {"a": jnp.array([3.0, 4.0]), "b": jnp.array([0.5])}
    >>> part.update(g, part.init(g), g)[0]
    {'a': Array([0.6, 0.8], dtype=float32), 'b': Array([0.5], dtype=float32)}
    """
    return ClipByNorm(max_norm)


@formerly(limit="clipping")
@struct
class AdaptiveGradClip(Rule):
    """Adaptive gradient clipping: limits each unit's gradient norm by its weight norm (Brock et al., 2021).

    >>> part, w = AdaptiveGradClip(0.5), {"w": jnp.array([3.0, 4.0])}
    >>> part.update({"w": jnp.array([6.0, 8.0])}, part.init(w), w)[0]["w"].round(1)
    Array([1.5, 2. ], dtype=float32)
    """

    clipping: Any = static(default=0.01)
    eps: float = static(default=1e-3)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("clipping", "eps")
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The gradient of one array, clipped unit by unit."""
        axes = tuple(range(g.ndim - 1)) if sum([n > 1 for n in g.shape]) > 1 else None
        length, own = [jnp.sqrt(jnp.sum(jnp.square(jnp.abs(x)), axis=axes, keepdims=True)) for x in (g, p)]
        return g * _factor(length, h.clipping * jnp.maximum(own, h.eps)), {}


def adaptive_grad_clip(clipping: ArrayLike | Callable[[Any], ArrayLike] = 0.01, eps: float = 1e-3) -> AdaptiveGradClip:
    """Adaptive gradient clipping: the gradient norm of a unit is at most `clipping` times the norm of its weights.

    A unit is the weights of one output, at one index of the last axis; a vector is one unit. Weight norms count as at
    least `eps`.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> part, w = optim.adaptive_grad_clip(0.1), {"w": jnp.array([3.0, 4.0])}
    >>> part.update({"w": jnp.array([6.0, 8.0])}, part.init(w), w)[0]["w"]
    Array([0.3, 0.4], dtype=float32)
    """
    return AdaptiveGradClip(clipping, eps)
