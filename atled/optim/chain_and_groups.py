"""Combined optimizers: in sequence (`chain`), and by parameter paths (`partition`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from atled.core import errors, tree
from atled.core.array import describe
from atled.core.tree_registry import static, struct
from atled.nn.module_filters import checked, matches, paths
from atled.optim.basic_optimizers import AddDecayedWeights
from atled.optim.optimizer import Optimizer, handed, trained


@struct
class Chain(Optimizer):
    """Optimizers in sequence: each gets the updates of the previous one.

    >>> from atled import optim
    >>> optim.chain(optim.clip_by_global_norm(1.0), optim.SGD(0.1)).parts[0]
    ClipByGlobalNorm(max_norm=1.0)
    """

    parts: tuple[Optimizer, ...] = static(default=())

    def __post_init__(self) -> None:
        for i, part in enumerate(self.parts):
            if not isinstance(part, Optimizer):
                raise TypeError(
                    errors.explained(
                        f"optim.chain: the parts must be optimizers; got {describe(part)} at position {i}.",
                        "optim.chain(optim.clip_by_global_norm(1.0), optim.AdamW(1e-3)).",
                    )
                )
            _check_place(part, self.parts[:i])

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The keyword arguments that the parts take."""
        return tuple(sorted({n for p in self.parts for n in p.takes}))

    @property
    def is_step(self) -> bool:  # type: ignore[override]
        """Whether one of the parts turns gradients into updates."""
        return any([p.is_step for p in self.parts])

    @property
    def keeps_weights(self) -> bool:  # type: ignore[override]
        """Whether one of the parts keeps its own copy of the weights."""
        return any([p.keeps_weights for p in self.parts])

    @property
    def has_scale(self) -> bool:  # type: ignore[override]
        """Whether one of the parts is or contains a `LossScale`."""
        return any([p.has_scale for p in self.parts])

    def init(self, model: Any, *, mesh_axis: str | None = None) -> tuple[Any, ...]:
        """The states of the parts."""
        return tuple([p.init(model, mesh_axis=mesh_axis) for p in self.parts])

    def update(self, grads: Any, state: tuple[Any, ...], model: Any, **values: Any) -> tuple[Any, tuple[Any, ...]]:
        """The updates of the last part."""
        if not isinstance(state, tuple) or len(state) != len(self.parts):
            raise TypeError(
                errors.explained(
                    f"Chain: the state must be that of this chain, with {len(self.parts)} parts; got "
                    f"{describe(state)}.",
                    "optimizer.init(model).",
                )
            )
        after = []
        for part, own in zip(self.parts, state, strict=True):
            grads, own = part.update(grads, own, model, **handed(part, values))
            after.append(own)
        return grads, tuple(after)

    def scale_loss(self, value: Any, state: tuple[Any, ...]) -> Any:
        """The value of a loss, multiplied by the loss scale of the parts."""
        for part, own in zip(self.parts, state, strict=True):
            value = part.scale_loss(value, own)
        return value

    def eval_model(self, model: Any, state: tuple[Any, ...]) -> Any:
        """The model for evaluation, with weights averaged by the parts."""
        for part, own in zip(self.parts, state, strict=True):
            model = part.eval_model(model, own)
        return model


def _check_place(part: Optimizer, before: Sequence[Optimizer]) -> None:
    """Raise an error for a part that is not allowed at its position in a chain."""
    name, i = type(part).__name__, len(before)
    keeping = [type(p).__name__ for p in before if p.keeps_weights]
    if isinstance(part, AddDecayedWeights) and any([p.is_step for p in before]):
        problem = f"add_decayed_weights adds to gradients, so it goes before the optimizer; got it at position {i}."
        way_out = "optim.chain(optim.add_decayed_weights(1e-4), optimizer)."
    elif keeping:
        problem = (
            f"{keeping[0]} keeps its own copy of the weights, so its steps must not be changed; got {name} after it."
        )
        way_out = "put it inside: optim.average(optim.chain(optim.SGD(0.1), optim.reduce_on_plateau()))."
    elif part.has_scale and before:
        problem = f"LossScale must be outermost, or first, since it scales gradients; got it at position {i}."
        way_out = "optim.LossScale(optim.chain(optim.clip_by_global_norm(1.0), optimizer))."
    elif "loss" in part.takes and before:
        problem = f"{name} evaluates the loss itself, so parts before it have no effect; got it at position {i}."
        way_out = "put the other parts inside: optim.SAM(optim.chain(optim.clip_by_global_norm(1.0), optimizer))."
    else:
        return
    raise ValueError(errors.explained(f"optim.chain: {problem}", way_out))


def chain(*parts: Optimizer) -> Chain:
    """Optimizers in sequence: each gets the updates of the previous one, and the first gets the gradients.

    >>> from atled import optim
    >>> optim.chain(optim.clip_by_global_norm(1.0), optim.SGD(0.1))
    Chain(parts=(ClipByGlobalNorm(max_norm=1.0), SGD(learning_rate=0.1, momentum=0.0, nesterov=False)))
    """
    return Chain(parts)


@struct
class Partition(Optimizer):
    """An optimizer for each pattern of paths; the first match applies. None leaves parameters unchanged.

    >>> from atled import optim
    >>> optim.partition({"bias": optim.SGD(0.1), "**": None}).parts[1]
    ('**', None)
    """

    parts: tuple[tuple[str, Optimizer | None], ...] = static(default=())

    def __post_init__(self) -> None:
        for pattern, part in self.parts:
            _check_group(pattern, part)

    @property
    def keeps_weights(self) -> bool:  # type: ignore[override]
        """Whether one of the parts keeps its own copy of the weights."""
        return any([p.keeps_weights for _, p in self.parts if p is not None])

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The keyword arguments that the parts take."""
        return tuple(sorted({n for _, p in self.parts if p is not None for n in p.takes}))

    def init(self, model: Any, *, mesh_axis: str | None = None) -> dict[str, Any]:
        """The states of the parts, by pattern."""
        leaves, structure = tree.flatten(model)
        checked("optim.partition", [pattern for pattern, _ in self.parts], paths(structure))
        for path, is_meant in zip(paths(structure), trained(structure, leaves), strict=True):
            if is_meant:
                self._group(path)
        return {
            pattern: part.init(structure.unflatten(self._own(leaves, structure, i)), mesh_axis=mesh_axis)
            for i, (pattern, part) in enumerate(self.parts)
            if part is not None
        }

    def update(self, grads: Any, state: dict[str, Any], model: Any, **values: Any) -> tuple[Any, dict[str, Any]]:
        """The updates of each part for its parameters."""
        leaves, structure = tree.flatten(model)
        given = structure.flatten_up_to(grads)
        updates: list[Any] = [None] * len(leaves)
        after = {}
        for i, (pattern, part) in enumerate(self.parts):
            if part is None:
                continue
            mine = [structure.unflatten(self._own(xs, structure, i)) for xs in (given, leaves)]
            part_updates, after[pattern] = part.update(mine[0], state[pattern], mine[1], **handed(part, values))
            for j, u in enumerate(structure.flatten_up_to(part_updates)):
                updates[j] = u if u is not None else updates[j]
        return structure.unflatten(updates), after

    def eval_model(self, model: Any, state: dict[str, Any]) -> Any:
        """The model for evaluation, with weights averaged by the parts."""
        leaves, structure = tree.flatten(model)
        params = list(leaves)
        for i, (pattern, part) in enumerate(self.parts):
            if part is not None:
                mine = part.eval_model(structure.unflatten(self._own(leaves, structure, i)), state[pattern])
                params = [y if x is None else x for x, y in zip(structure.flatten_up_to(mine), params, strict=True)]
        return structure.unflatten(params)

    def _own(self, leaves: list[Any], structure: tree.TreeDef, number: int) -> list[Any]:
        """The leaves of group `number`, with None in place of all others."""
        owners = [next((i for i, (p, _) in enumerate(self.parts) if matches(p, q)), None) for q in paths(structure)]
        return [x if i == number else None for x, i in zip(leaves, owners, strict=True)]

    def _group(self, path: str) -> None:
        if not any([matches(pattern, path) for pattern, _ in self.parts]):
            raise ValueError(
                errors.explained(
                    f"optim.partition: every parameter must be in a group; {path} matches no pattern.",
                    "a last group '**' for the rest.",
                )
            )


def _check_group(pattern: str, part: Any) -> None:
    """Raise an error for an invalid optimizer of a group."""
    if part is None:
        return
    if not isinstance(part, Optimizer):
        raise TypeError(
            errors.explained(
                f"optim.partition: the parts must be optimizers, or None; got {describe(part)} for {pattern!r}.",
                "optim.partition({'head': optim.SGD(0.1), '**': None}).",
            )
        )
    name = type(part).__name__
    if part.has_scale:
        problem, way_out = "LossScale must wrap the whole partition", "optim.LossScale(optim.partition(parts))."
    elif "loss" in part.takes:
        problem = "an optimizer that evaluates the loss needs the whole model"
        way_out = "optim.SAM(optim.partition(parts)), or nn.freeze for parameters to keep."
    else:
        return
    raise ValueError(errors.explained(f"optim.partition: {problem}; got {name} for {pattern!r}.", way_out))


def partition(parts: Mapping[str, Optimizer | None]) -> Partition:
    """An optimizer for each pattern of paths; the first match applies, and None leaves parameters unchanged.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> by_part = optim.partition({"head": optim.SGD(1.0), "**": None})
    >>> params = {"body": jnp.ones(1), "head": jnp.ones(1)}
    >>> by_part.step(params, params, by_part.init(params))[0]
    {'body': Array([1.], dtype=float32), 'head': Array([0.], dtype=float32)}
    """
    return Partition(tuple(parts.items()))
