"""Gradient clipping, as parts of chains: globally, by array, by unit or by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import ArrayLike
from atled.core.tree_registry import static, struct
from atled.optim.optimizer import Optimizer, Rule, State, first_numbers, norm, number_dtype, numbers_at, trained


@struct
class Clip(Optimizer):
    """Clips the global norm of the gradients to `limit`.

    >>> part, g = Clip(1.0), {"w": jnp.array([3.0, 4.0])}
    >>> part.update(g, part.init(g), g)[0]["w"].round(1)
    Array([0.6, 0.8], dtype=float32)
    """

    limit: Any = static(default=1.0)
    is_step: ClassVar[bool] = False

    def init(self, model: Any, *, split: str | None = None) -> State:
        """The state: the limit, which can be changed."""
        leaves, structure = tree.flatten(model)
        hyper, scheduled = first_numbers(self, ("limit",), number_dtype(leaves, trained(structure, leaves)))
        return State(jnp.zeros((), "int32"), hyper, {}, scheduled, "Clip")

    def update(self, grads: Any, state: State, model: Any) -> tuple[Any, State]:
        """The gradients, clipped."""
        numbers, scheduled = numbers_at(self, state)
        factor = _factor(norm(grads).astype(numbers.limit.dtype), numbers.limit)
        clipped = tree.map(lambda g: (g * factor.astype(jnp.abs(g).dtype)).astype(g.dtype), grads)
        return clipped, State(state.step + 1, state.hyper, {}, scheduled, state.of)


def _factor(length: Any, limit: Any) -> Any:
    """The factor that clips a norm; NaN if the norm is."""
    return jnp.where(length <= limit, 1, limit / length)


def clip(limit: ArrayLike | Callable[[Any], ArrayLike]) -> Clip:
    """Clips gradients by their global norm; goes before an optimizer in a `chain`.

    With `n` the norm of all gradients as one vector, each becomes `g * min(1, limit / n)`.

    >>> from atled import optim
    >>> optim.chain(optim.clip(1.0), optim.SGD(0.1))
    Chain(parts=(Clip(limit=1.0), SGD(rate=0.1, momentum=0.0, nesterov=False)))
    """
    return Clip(limit)


@struct
class ClipValues(Rule):
    """Clips each element of the gradients to [-limit, limit].

    >>> part, g = ClipValues(0.5), {"w": jnp.array([0.25, -3.0])}
    >>> part.update(g, part.init(g), g)[0]["w"]
    Array([ 0.25, -0.5 ], dtype=float32)
    """

    limit: Any = static(default=1.0)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("limit",)

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The gradient of one array, clipped."""
        if jnp.iscomplexobj(g):
            raise TypeError(
                errors.explained(
                    "optim.clip_values: real gradients are expected; got complex ones, which have no order.",
                    "optim.clip(limit) or optim.clip_layers(limit).",
                )
            )
        return jnp.clip(g, -h.limit, h.limit), {}


def clip_values(limit: ArrayLike | Callable[[Any], ArrayLike]) -> ClipValues:
    """Clips each element of the gradients to [-limit, limit]. NaN stays NaN.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> part, g = optim.clip_values(0.5), {"w": jnp.array([0.2, -3.0])}
    >>> part.update(g, part.init(g), g)[0]["w"]
    Array([ 0.2, -0.5], dtype=float32)
    """
    return ClipValues(limit)


@struct
class ClipLayers(Rule):
    """Clips the gradient of each array to norm `limit`.

    >>> part, g = ClipLayers(1.0), {"a": jnp.array([4.0]), "b": jnp.array([0.5])}
    >>> part.update(g, part.init(g), g)[0]
    {'a': Array([1.], dtype=float32), 'b': Array([0.5], dtype=float32)}
    """

    limit: Any = static(default=1.0)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("limit",)
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The gradient of one array, clipped."""
        return g * _factor(norm(g), h.limit), {}


def clip_layers(limit: ArrayLike | Callable[[Any], ArrayLike]) -> ClipLayers:
    """Clips the gradient of each array to norm `limit`; in a `Stack`, of each layer.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> part, g = optim.clip_layers(1.0), {"a": jnp.array([3.0, 4.0]), "b": jnp.array([0.5])}
    >>> part.update(g, part.init(g), g)[0]
    {'a': Array([0.6, 0.8], dtype=float32), 'b': Array([0.5], dtype=float32)}
    """
    return ClipLayers(limit)


@struct
class ClipAdaptive(Rule):
    """Adaptive gradient clipping: gradients of units, limited by the norm of the unit's weights (Brock et al., 2021).

    >>> part, w = ClipAdaptive(0.5), {"w": jnp.array([3.0, 4.0])}
    >>> part.update({"w": jnp.array([6.0, 8.0])}, part.init(w), w)[0]["w"].round(1)
    Array([1.5, 2. ], dtype=float32)
    """

    limit: Any = static(default=0.01)
    eps: float = static(default=1e-3)
    is_step: ClassVar[bool] = False
    numbers: ClassVar[tuple[str, ...]] = ("limit", "eps")
    is_elementwise: ClassVar[bool] = False

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The gradient of one array, clipped unit by unit."""
        axes = tuple(range(g.ndim - 1)) if sum([n > 1 for n in g.shape]) > 1 else None
        length, own = [jnp.sqrt(jnp.sum(jnp.square(jnp.abs(x)), axis=axes, keepdims=True)) for x in (g, p)]
        return g * _factor(length, h.limit * jnp.maximum(own, h.eps)), {}


def clip_adaptive(limit: ArrayLike | Callable[[Any], ArrayLike] = 0.01, eps: float = 1e-3) -> ClipAdaptive:
    """Adaptive gradient clipping: the gradient norm of a unit is at most `limit` times the norm of its weights.

    A unit is the weights of one output: all axes but the last; for a vector, all. Weight norms are at least `eps`.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> part, w = optim.clip_adaptive(0.1), {"w": jnp.array([3.0, 4.0])}
    >>> part.update({"w": jnp.array([6.0, 8.0])}, part.init(w), w)[0]["w"]
    Array([0.3, 0.4], dtype=float32)
    """
    return ClipAdaptive(limit, eps)
