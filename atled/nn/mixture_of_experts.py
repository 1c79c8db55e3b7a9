"""`MixtureOfExperts`: many layers of one kind in parallel; a router selects a few of them for each token."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors
from atled.core.array import Array, describe, type_of
from atled.core.former_names import formerly
from atled.core.sharding import PartitionSpec, current_mesh
from atled.nn import initializers
from atled.nn.activations import logsumexp, one_hot, softmax
from atled.nn.containers import takes_key
from atled.nn.intermediates import collecting
from atled.nn.linear_layers import check_features, needed
from atled.nn.module import Module
from atled.nn.stack import Stacked, assigned_in
from atled.nn.variable_kinds import Param
from atled.ops.placement import with_sharding_constraint
from atled.transforms.vmap import vmap


class Experts(Stacked):
    """`num_layers` layers in parallel: each gets its own slice of an input along the first axis."""

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Each expert's output for its slice."""
        keys = random.split(key, self.num_layers) if key is not None and takes_key(self.layers) else None

        def one(layer: Any, x: Any, key: Any) -> Any:
            more = {} if key is None else {"key": key}
            with collecting() as seen:
                y, assigned = assigned_in(layer, lambda: layer(x, **more))
            return y, assigned, seen

        y, assigned, seen = vmap(one)(self.layers, x, keys)
        seen.hand_on()
        self.assign(assigned)
        return y


@formerly(
    count="num_experts",
    features="in_features",
    capacity="capacity_factor",
    axis="mesh_axis",
    groups="num_groups",
    init="weight_init",
)
class MixtureOfExperts(Module):
    """`num_experts` experts created by `make(key)`; a router sends each token to `k` of them.

    `y = Σ weights[i] * experts[chosen[i]](x)`, over the k largest of `logits = x @ router`, which are computed in
    float32 or wider. For k of 2 or more, the weights are the softmax over the chosen logits, so they add up to 1. For k
    = 1, the weight is the softmax over all logits, at the chosen expert: a constant weight of 1 would give the router
    no gradient.

    All axes of the input but the last are token axes. An expert takes at most
    `capacity_factor * k * tokens / num_experts` tokens, rounded up; first choices have priority over second ones, and
    earlier tokens over later ones. A choice beyond the capacity is dropped and contributes zero.

    Args:
        in_features: the length of the last axis of the input.
        capacity_factor: relative capacity of the experts; 1.0 suffices if all are chosen equally often. With None, each
            expert has room for all tokens, so no choice is dropped, which costs as much as running all experts.
        noise: while training, normal noise of this scale is added to the logits; calls then need a `key`.
        normalize: whether the weights of a token add up to 1; None means k > 1.
        mesh_axis: the mesh axis over which the experts are split, if a mesh is set; the sharding rule for their arrays
            is `{"experts": P(mesh_axis)}`.
        num_groups: tokens are split into this many groups, each with its own capacity. With as many groups as the size
            of `mesh_axis`, each device sends tokens directly to the chosen experts.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> moe = nn.MixtureOfExperts(lambda key: nn.Linear(8, 8, key=key), 4, in_features=8, key=random.key(0))
    >>> y, losses = moe(jnp.ones((2, 5, 8)), return_losses=True)
    >>> y.shape, sorted(losses)
    ((2, 5, 8), ['balance', 'dropped', 'z'])
    """

    router: Array

    def __init__(
        self,
        make: Callable[[Any], Any],
        num_experts: int,
        *,
        in_features: int,
        k: int = 2,
        capacity_factor: float | None = 1.25,
        normalize: bool | None = None,
        noise: float = 0.0,
        mesh_axis: str | None = None,
        num_groups: int = 1,
        weight_init: Any = None,
        param_dtype: Any = "float32",
        key: Any = None,
    ) -> None:
        _check(make, num_experts, k, capacity_factor, noise, num_groups)
        self.num_experts, self.in_features, self.k, self.num_groups = (
            int(num_experts),
            int(in_features),
            int(k),
            int(num_groups),
        )
        self.capacity_factor = None if capacity_factor is None else float(capacity_factor)
        self.normalize = bool(k > 1 if normalize is None else normalize)
        self.noise, self.mesh_axis = float(noise), mesh_axis
        keys = random.split(needed(self, key))
        draw = weight_init or initializers.lecun_normal()
        self.router = Param(draw(keys[0], (in_features, num_experts), param_dtype))
        self.experts = Experts(make, num_experts, key=keys[1])

    def __call__(self, x: Any, *, return_losses: bool = False, key: Any = None) -> Any:
        """The weighted sum of the chosen experts' outputs for each token.

        With `return_losses`, also a dict: "balance" (Switch Transformer; 1 if all experts are chosen equally often),
        "z" (the mean square of `logsumexp(logits)`), and "dropped", the fraction of dropped choices.
        """
        check_features(self, x, self.in_features)
        if type_of(x).kind != "f":
            raise TypeError(errors.explained(f"MixtureOfExperts: the input must be floating-point; got {describe(x)}."))
        tokens = _grouped(jnp.asarray(x), self.num_groups)
        noise_key, own_key = (None, None) if key is None else random.split(key)
        logits = _logits(self.router, tokens, self.noise if self.training else 0.0, noise_key)
        best, chosen = lax.top_k(logits, self.k)
        total = logsumexp(logits, -1, keepdims=True)
        weights = softmax(best, -1) if self.normalize else jnp.exp(best - total)
        room = self._room(tokens.shape[1])
        slots = vmap(lambda c: _slots(c, self.num_experts, room))(chosen)  # of (group, token, choice)
        there = self._spread(vmap(lambda t, s: _dispatched(t, s, self.num_experts * room))(tokens, slots))
        out = self.experts(there, key=own_key)
        _check_outputs(there, out)
        out = self._returned(out)
        picked = vmap(lambda o, s: o.at[s].get(mode="fill", fill_value=0))(out, slots)
        y = (picked.astype(jnp.promote_types(weights.dtype, out.dtype)) * weights[..., None]).sum(-2).astype(out.dtype)
        y = y.reshape(*type_of(x).shape[:-1], y.shape[-1])
        return (y, _losses(logits, total, chosen, slots >= self.num_experts * room)) if return_losses else y

    def _room(self, tokens: int) -> int:
        """The capacity of each expert: how many tokens of a group it takes."""
        if self.capacity_factor is None:
            return tokens
        capacity = math.ceil(round(self.capacity_factor * self.k * tokens / self.num_experts, 9))
        return min(tokens, capacity)

    def _spread(self, x: Any) -> Any:
        """Regroup (groups, experts * room, features) to (experts, groups * room, features); `room` is the capacity."""
        room = x.shape[1] // self.num_experts
        x = self._placed(
            x.reshape(self.num_groups, self.num_experts, room, self.in_features), 0 if self.num_groups > 1 else None
        )
        return self._placed(x, 1).swapaxes(0, 1).reshape(self.num_experts, self.num_groups * room, self.in_features)

    def _returned(self, x: Any) -> Any:
        """The inverse of `_spread`."""
        room, outputs = x.shape[1] // self.num_groups, x.shape[-1]
        x = self._placed(x.reshape(self.num_experts, self.num_groups, room, outputs).swapaxes(0, 1), 1)
        x = self._placed(x, 0 if self.num_groups > 1 else None)
        return x.reshape(self.num_groups, self.num_experts * room, outputs)

    def _placed(self, x: Any, at: int | None) -> Any:
        """Shard axis `at` over the expert mesh axis; no-op without a mesh."""
        if self.mesh_axis is None or current_mesh() is None or at is None:
            return x
        free = PartitionSpec.UNCONSTRAINED
        others = [None, None, free, free]  # groups and experts are not split, except axis `at`
        return with_sharding_constraint(
            x, PartitionSpec(*[self.mesh_axis if i == at else s for i, s in enumerate(others)])
        )


def _grouped(x: Any, groups: int) -> Any:
    """The tokens as (groups, tokens of a group, features)."""
    count = math.prod(x.shape[:-1])
    if count % groups:
        raise ValueError(
            errors.explained(f"MixtureOfExperts: num_groups must divide the tokens; got {groups} for {count}.")
        )
    return x.reshape(groups, count // groups, x.shape[-1])


def _logits(router: Any, tokens: Any, noise: float, key: Any) -> Any:
    """The router's logits, with noise."""
    wide = tokens.astype(jnp.promote_types(tokens.dtype, "float32"))
    logits = jnp.dot(wide, router)
    if not noise:
        return logits
    if key is None:
        raise TypeError(
            errors.explained(
                "MixtureOfExperts: a key must be given while training, for the noise of the router.",
                "…(x, key=key), or model.eval() if it is not training.",
            )
        )
    return logits + noise * random.normal(key, logits.shape, logits.dtype)


def _losses(logits: Any, total: Any, chosen: Any, is_dropped: Any) -> dict[str, Any]:
    """The auxiliary losses: load balance, size of logits, and fraction of dropped choices."""
    tokens, (count, k) = max(chosen.shape[0] * chosen.shape[1], 1), (logits.shape[-1], chosen.shape[-1])
    often = one_hot(chosen, count, dtype=logits.dtype).sum((0, 1, 2)) / (tokens * k)
    likely = jnp.exp(logits - total).sum((0, 1)) / tokens
    dropped = is_dropped.sum().astype(logits.dtype) / (tokens * k)
    return {
        "balance": count * jnp.sum(often * likely),
        "z": jnp.sum(total * total) / tokens,
        "dropped": dropped,
    }


def _slots(chosen: Any, count: int, room: int) -> Any:
    """For each (token, choice), its slot among all experts' slots; `count * room` if dropped."""
    experts = chosen.T.reshape(-1)  # all first choices, then all second ones
    before = jnp.cumsum(one_hot(experts, count, dtype="int32"), 0)
    place = jnp.take_along_axis(before, experts[:, None], 1)[:, 0] - 1
    slots = jnp.where(place < room, experts * room + place, count * room)
    return slots.reshape(chosen.shape[::-1]).T


def _dispatched(tokens: Any, slots: Any, size: int) -> Any:
    """The token in each slot; zeros for empty slots."""
    rows = jnp.broadcast_to(jnp.arange(tokens.shape[0], dtype="int32")[:, None], slots.shape)
    source = jnp.full(size, tokens.shape[0], "int32").at[slots].set(rows, mode="drop")
    return tokens.at[source].get(mode="fill", fill_value=0)


def _check_outputs(given: Any, out: Any) -> None:
    """Raise unless experts returned a vector for each token."""
    t = type_of(out) if isinstance(out, Array) else None
    if t is None or t.ndim != 3 or t.shape[:2] != type_of(given).shape[:2] or t.kind != "f":
        raise TypeError(
            errors.explained(
                f"MixtureOfExperts: an expert must return a vector for each token of (tokens, features); the "
                f"experts got {describe(given)} and returned {describe(out)}."
            )
        )


def _check(make: Any, count: int, k: int, capacity: float | None, noise: float, groups: int) -> None:
    """Raise an error for invalid settings."""
    if isinstance(make, Module) or not callable(make):
        raise TypeError(
            errors.explained(
                f"MixtureOfExperts: the first argument must be a function that makes an expert from a key; "
                f"got {describe(make)}.",
                "lambda key: nn.Linear(…, key=key).",
            )
        )
    if count < 1 or not 1 <= k <= count:
        raise ValueError(
            errors.explained(f"MixtureOfExperts: k must be from 1 to the number of experts; got {k} of {count}.")
        )
    if capacity is not None and not capacity > 0:
        raise ValueError(
            errors.explained(
                f"MixtureOfExperts: capacity_factor must be more than 0; got {capacity}.",
                "capacity_factor=1.25, or None.",
            )
        )
    if noise < 0:
        raise ValueError(errors.explained(f"MixtureOfExperts: the noise must be 0 or more; got {noise}."))
    if groups < 1:
        raise ValueError(errors.explained(f"MixtureOfExperts: num_groups must be 1 or more; got {groups}."))
