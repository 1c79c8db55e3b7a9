"""Optimizers made of others: one after the other (`chain`), by paths (`groups`); and `clip`, which comes first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import describe
from atled.core.struct import static, struct
from atled.nn.selecting import checked, matches, paths
from atled.optim.optimizer import Optimizer, State, norm, number_dtype, trained


@struct
class Clip(Optimizer):
    """Gradients that are longer than `limit`, all together, made as long as it."""

    limit: float = static(default=1.0)

    def init(self, model: Any, *, split: str | None = None) -> State:
        """The state: the limit, which can be changed."""
        leaves, structure = tree.flatten(model)
        dtype = number_dtype(leaves, trained(structure, leaves))
        return State(jnp.zeros((), "int32"), {"limit": jnp.asarray(self.limit, dtype)}, {})

    def update(self, grads: Any, state: State, model: Any) -> tuple[Any, State]:
        """The gradients, clipped."""
        limit = state.hyper["limit"]
        length = norm(grads).astype(limit.dtype)
        factor = jnp.where(length <= limit, 1, limit / length)  # NaN if the length is
        clipped = tree.map(lambda g: (g * factor.astype(jnp.abs(g).dtype)).astype(g.dtype), grads)
        return clipped, State(state.step + 1, state.hyper, {})


def clip(limit: float) -> Clip:
    """Limits the length of all gradients together; it goes before an optimizer in a `chain`.

    >>> from atled import optim
    >>> optim.chain(optim.clip(1.0), optim.SGD(0.1))
    Chain(parts=(Clip(limit=1.0), SGD(rate=0.1, momentum=0.0, nesterov=False)))
    """
    return Clip(limit)


@struct
class Chain(Optimizer):
    """Optimizers one after the other: each gets what the one before it gives."""

    parts: tuple[Optimizer, ...] = static(default=())

    def init(self, model: Any, *, split: str | None = None) -> tuple[Any, ...]:
        """The states of the parts."""
        return tuple([p.init(model, split=split) for p in self.parts])

    def update(self, grads: Any, state: tuple[Any, ...], model: Any) -> tuple[Any, tuple[Any, ...]]:
        """What the last part gives."""
        if not isinstance(state, tuple) or len(state) != len(self.parts):
            raise TypeError(
                errors.explained(
                    f"Chain: the state must be its own, of {len(self.parts)} parts; got {describe(state)}.",
                    "optimizer.init(model).",
                )
            )
        after = []
        for part, own in zip(self.parts, state, strict=True):
            grads, own = part.update(grads, own, model)
            after.append(own)
        return grads, tuple(after)


def chain(*parts: Optimizer) -> Chain:
    """Optimizers one after the other.

    >>> from atled import optim
    >>> len(optim.chain(optim.clip(1.0), optim.AdamW(1e-3)).parts)
    2
    """
    return Chain(parts)


@struct
class Groups(Optimizer):
    """An optimizer for each pattern of paths; the first that matches holds. None leaves parameters as they are."""

    parts: tuple[tuple[str, Optimizer | None], ...] = static(default=())

    def init(self, model: Any, *, split: str | None = None) -> dict[str, Any]:
        """The states, by pattern."""
        leaves, structure = tree.flatten(model)
        checked("optim.groups", [pattern for pattern, _ in self.parts], paths(structure))
        for path, is_meant in zip(paths(structure), trained(structure, leaves), strict=True):
            if is_meant:
                self._group(path)
        return {
            pattern: part.init(structure.unflatten(self._own(leaves, structure, i)), split=split)
            for i, (pattern, part) in enumerate(self.parts)
            if part is not None
        }

    def update(self, grads: Any, state: dict[str, Any], model: Any) -> tuple[Any, dict[str, Any]]:
        """What each part gives for its parameters."""
        leaves, structure = tree.flatten(model)
        given = structure.flatten_up_to(grads)
        updates: list[Any] = [None] * len(leaves)
        after = {}
        for i, (pattern, part) in enumerate(self.parts):
            if part is None:
                continue
            mine = [structure.unflatten(self._own(xs, structure, i)) for xs in (given, leaves)]
            made, after[pattern] = part.update(mine[0], state[pattern], mine[1])
            for j, u in enumerate(structure.flatten_up_to(made)):
                updates[j] = u if u is not None else updates[j]
        return structure.unflatten(updates), after

    def _own(self, leaves: list[Any], structure: tree.Structure, number: int) -> list[Any]:
        """The leaves of one group, None in place of others."""
        found = [next((i for i, (p, _) in enumerate(self.parts) if matches(p, q)), None) for q in paths(structure)]
        return [x if i == number else None for x, i in zip(leaves, found, strict=True)]

    def _group(self, path: str) -> None:
        if not any([matches(pattern, path) for pattern, _ in self.parts]):
            raise ValueError(
                errors.explained(
                    f"optim.groups: every parameter must be in a group; {path} matches no pattern.",
                    "a last group '**' for the rest.",
                )
            )


def groups(parts: Mapping[str, Optimizer | None]) -> Groups:
    """An optimizer for each pattern of paths; the first that matches holds, and None leaves parameters as they are.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> by_part = optim.groups({"head": optim.SGD(1.0), "**": None})
    >>> params = {"body": jnp.ones(1), "head": jnp.ones(1)}
    >>> by_part.step(params, params, by_part.init(params))[0]
    {'body': Array([1.], dtype=float32), 'head': Array([0.], dtype=float32)}
    """
    return Groups(tuple(parts.items()))
