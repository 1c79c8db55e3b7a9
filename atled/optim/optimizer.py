"""What an optimizer is: `init`, `update`, `step`; and the rule of one array, which is all that most of them say.

An optimizer is a frozen struct without arrays, compared by value. Its state is a tree with names: `step`, the numbers
in `hyper`, which can be read and changed without compiling anything again, and trees like the parameters in `slots`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import atled.numpy as jnp
from atled.core import errors, tree
from atled.core.array import describe, type_of
from atled.core.differences import difference
from atled.core.program import Recorder
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.core.struct import struct
from atled.core.trace import responsible
from atled.higher_order.jit import jit
from atled.nn.selecting import paths
from atled.optim.schedules import Schedule


@struct
class State:
    """What an optimizer remembers."""

    step: Any  # how many updates there were
    hyper: dict[str, Any]  # numbers, which can be changed
    slots: dict[str, Any]
    scheduled: dict[str, Any] = dataclasses.field(default_factory=dict)  # numbers that follow a schedule, at last


class Optimizer:
    """Turns gradients into changes of parameters."""

    def init(self, model: Any, *, split: str | None = None) -> Any:
        """The state before the first step. Its arrays are split over devices as those of the model are.

        Args:
            split: a mesh axis, such as that of the data, along which they are split further where lengths allow it.
        """
        raise NotImplementedError

    def update(self, grads: Any, state: Any, model: Any) -> tuple[Any, Any]:
        """What to add to the parameters, and the new state."""
        raise NotImplementedError

    def step(self, model: Any, grads: Any, state: Any) -> tuple[Any, Any]:
        """The model after a step, and the new state.

        >>> from atled import optim
        >>> import atled.numpy as jnp
        >>> sgd = optim.SGD(0.5)
        >>> params = {"w": jnp.ones(2)}
        >>> params, state = sgd.step(params, {"w": jnp.ones(2)}, sgd.init(params))
        >>> params
        {'w': Array([0.5, 0.5], dtype=float32)}
        """
        updates, state = self.update(grads, state, model)
        return apply(model, updates), state


def apply(model: Any, updates: Any) -> Any:
    """The model with updates added to its parameters, each in the dtype of the parameter."""
    leaves, structure = tree.flatten(model)
    changes = _matched("apply", structure, updates)
    made = [x if u is None else (x + u).astype(x.dtype) for x, u in zip(leaves, changes, strict=True)]
    return structure.unflatten(made)


def norm(grads: Any) -> Any:
    """The length of all gradients as one vector.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> float(optim.norm({"a": jnp.array(3.0), "b": jnp.array(4.0)}))
    5.0
    """
    squares = [jnp.sum(jnp.square(jnp.abs(_wide(g)))) for g in tree.leaves(grads)]
    return jnp.sqrt(sum(squares)) if squares else jnp.float32(0)


def _is_short(x: Any) -> bool:
    return type_of(x).kind == "f" and type_of(x).dtype.itemsize < 4


def _wide(x: Any) -> Any:
    """An array to compute with: in bfloat16, 0.999 is 1."""
    return x.astype("float32") if _is_short(x) else x


class Rule(Optimizer):
    """An optimizer that treats arrays one by one: subclasses say what becomes of one.

    Fields named in `numbers` are found in the state's `hyper`; those that are functions of the step, schedules, in
    `scheduled`, as they were in the last step.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[tuple[str, ...]] = ("rate",)

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of a parameter p with gradient g and slots s, and its new slots. `h` has the numbers by name."""
        raise NotImplementedError

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """Numbers that follow from the others in step t, from 1; they are computed once for all parameters."""
        return {}

    def leaf(self, path: str, h: dict[str, Any]) -> dict[str, Any]:
        """The numbers for the parameter at a path."""
        return h

    def init(self, model: Any, *, split: str | None = None) -> State:
        """The state before the first step."""
        leaves, structure = tree.flatten(model)
        is_trained = trained(structure, leaves)
        dtype = number_dtype(leaves, is_trained)
        step = jnp.zeros((), "int32")
        values = {n: getattr(self, n) for n in self.numbers}
        hyper = {n: jnp.asarray(v, dtype) for n, v in values.items() if not callable(v)}
        scheduled = {n: _at(v, step, dtype) for n, v in values.items() if callable(v)}
        self.check(paths(structure))
        slots = {
            name: structure.unflatten(
                [_zeros(x, split) if a else None for x, a in zip(leaves, is_trained, strict=True)]
            )
            for name in self.slots
        }
        return State(step, hyper, slots, scheduled)

    def check(self, paths: Sequence[str]) -> None:
        """Complain if what the optimizer says of paths does not fit those of a model."""

    def update(self, grads: Any, state: State, model: Any) -> tuple[Any, State]:
        """What to add to the parameters, and the new state."""
        leaves, structure = tree.flatten(model)
        name = type(self).__name__
        if not isinstance(state, State) or {*state.hyper, *state.scheduled} != set(self.numbers):
            has = (
                f"one with {', '.join([*state.hyper, *state.scheduled])}"
                if isinstance(state, State)
                else describe(state)
            )
            raise TypeError(
                errors.explained(
                    f"{name}: the state must be its own, with {', '.join(self.numbers)}; got {has}.",
                    "optimizer.init(model).",
                )
            )
        given = _matched(name, structure, grads)
        slots = {n: _matched(f"{name}, {n}", structure, s) for n, s in state.slots.items()}
        scheduled = {n: _at(getattr(self, n), state.step, x.dtype) for n, x in state.scheduled.items()}
        hyper = {**state.hyper, **scheduled}
        is_trained, t = trained(structure, leaves), state.step + 1
        updates: list[Any] = [None] * len(leaves)
        after = {n: list(xs) for n, xs in slots.items()}
        names = paths(structure)
        rule, prepared = _rule(self, is_recorded=type(responsible([state.step])) is Recorder), _Prepared(self, t)
        for i, (g, p) in enumerate(zip(given, leaves, strict=True)):
            if g is None or not is_trained[i]:
                continue
            if any([xs[i] is None for xs in slots.values()]):
                raise ValueError(
                    errors.explained(
                        f"{name}: there is a gradient for {names[i]}, and no state.",
                        "optimizer.init(model) of the model as it is now.",
                    )
                )
            for what, x in (("the gradient", g), *[(f"the slot {n}", xs[i]) for n, xs in slots.items()]):
                if type_of(x).shape != type_of(p).shape:
                    raise ValueError(
                        errors.explained(f"{name}: {what} of {names[i]} must be {type_of(p)}; got {type_of(x)}.")
                    )
            numbers = prepared.of(self.leaf(names[i], hyper), _real(p))
            updates[i], new = rule(g, p, {n: xs[i] for n, xs in slots.items()}, numbers)
            for n, x in new.items():
                after[n][i] = x
        made = {n: structure.unflatten(xs) for n, xs in after.items()}
        return structure.unflatten(updates), State(t, state.hyper, made, scheduled)


def number_dtype(leaves: Sequence[Any], is_trained: Sequence[bool]) -> Any:
    """The dtype of numbers for these parameters: as wide as the widest of them, and no less than float32."""
    wide = [_real(x) == "float64" for x, a in zip(leaves, is_trained, strict=True) if a]
    return np.float64 if any(wide) else np.float32


def _at(schedule: Any, step: Any, dtype: Any) -> Any:
    return jnp.asarray(schedule.at(step, dtype) if isinstance(schedule, Schedule) else schedule(step), dtype)


class _Numbers:
    """Numbers by name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


def _rule(optimizer: Rule, is_recorded: bool) -> Any:
    """The rule of an optimizer; while a program is recorded, traced once for all parameters of one type."""

    def rule(g: Any, p: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        update, new = optimizer.rule(_wide(g), _wide(p), s, _Numbers(h))
        return update, {n: x.astype(s[n].dtype) for n, x in new.items()}

    return jit(rule, inline=True) if is_recorded else rule


class _Prepared:
    """The numbers of a step in the dtypes of parameters, each computed once."""

    def __init__(self, optimizer: Rule, t: Any) -> None:
        self._optimizer, self._t = optimizer, t
        self._found: list[tuple[Any, Any, dict[str, Any]]] = []

    def of(self, h: dict[str, Any], dtype: Any) -> dict[str, Any]:
        for known, d, made in self._found:
            if d == dtype and all([known[n] is v for n, v in h.items()]):
                return made
        made = {n: jnp.asarray(v, dtype) for n, v in h.items()}
        made |= self._optimizer.derived(_Numbers(made), self._t.astype(dtype))
        self._found.append((h, dtype, made))
        return made


def _real(p: Any) -> Any:
    """The dtype of numbers next to a parameter."""
    return "float64" if type_of(p).dtype.name in ("float64", "complex128") else "float32"


def trained(structure: tree.Structure, leaves: Sequence[Any]) -> list[bool]:
    """Which leaves are parameters: those declared as trained; without declarations, all that are no integers."""
    return [
        type_of(x).kind in "fc" and (k is None or k.is_trained) for x, k in zip(leaves, structure.kinds, strict=True)
    ]


def _matched(what: str, structure: tree.Structure, other: Any) -> list[Any]:
    """What stands in another tree at the leaves of a model: None where there is nothing."""
    try:
        return structure.flatten_up_to(other)
    except tree.TreeError:
        path, was, got = difference(structure, tree.structure(other)) or ("", "", "")
        raise tree.TreeError(
            errors.explained(
                f"{what}: the tree must be that of the model; at {path or 'the root'}, the model has {was}, and it has "
                f"{got}.",
                "both from the same model.",
            )
        ) from None


def _zeros(x: Any, split: str | None) -> Any:
    """Zeros like a parameter, where it is, and not short; split also along a mesh axis, if one is named."""
    where, dtype = getattr(x, "sharding", None), np.float32 if _is_short(x) else x.dtype
    if split is None or not isinstance(where, NamedSharding):
        return jnp.zeros_like(x, dtype)
    if split not in where.mesh.shape:
        raise ValueError(
            errors.explained(
                f"optim: split is an axis of the mesh, {', '.join(map(str, where.mesh.shape))}; got {split!r}."
            )
        )
    count = where.mesh.shape[split]
    spec = [*where.spec, *[None] * (x.ndim - len(where.spec))]
    used = [n for d in range(x.ndim) for n in where.spec.axes(d)]
    for d in range(x.ndim):
        parts = math.prod([where.mesh.shape[n] for n in where.spec.axes(d)])
        if split not in used and x.shape[d] % (parts * count) == 0:
            spec[d] = (*where.spec.axes(d), split) if where.spec.axes(d) else split
            break
    while spec and spec[-1] is None:
        spec.pop()
    return jnp.zeros(x.shape, dtype, out_sharding=NamedSharding(where.mesh, PartitionSpec(*spec)))


def change(state: Any, **numbers: Any) -> Any:
    """A state with other numbers: the next step uses them, and nothing is compiled again.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> state = optim.Adam(0.1).init({"w": jnp.ones(2)})
    >>> float(optim.change(state, rate=0.5).hyper["rate"])
    0.5
    """
    known, fixed = set(), set()

    def of(x: Any) -> Any:
        if isinstance(x, State):
            known.update(x.hyper)
            fixed.update(x.scheduled)
            return x.replace(hyper={n: jnp.asarray(numbers.get(n, v), v.dtype) for n, v in x.hyper.items()})  # type: ignore[attr-defined]
        return x

    made = tree.map(of, state, is_leaf=lambda x: isinstance(x, State))
    missing = [n for n in numbers if n not in known]
    if missing:
        follows = [n for n in missing if n in fixed]
        why = f"; {follows[0]} follows a schedule" if follows else ""
        raise ValueError(
            errors.explained(
                f"optim.change: the state has {', '.join(sorted(known)) or 'nothing'}{why}; got {', '.join(missing)}."
            )
        )
    return made
