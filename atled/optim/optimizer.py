"""The base classes: `Optimizer` with `init`, `update`, `step`; and `Rule`, the update rule of one array.

An optimizer is a frozen struct without arrays, compared by value. Its state is a tree with names: `step`, the
hyperparameters in `hyperparams`, which can be read and changed without recompiling, and trees like the parameters in
`slots`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

import atled.numpy as jnp
from atled.core import errors, tree, tree_registry
from atled.core.array import Array, describe, type_of
from atled.core.former_names import formerly
from atled.core.program import Recorder
from atled.core.sharding import NamedSharding, PartitionSpec, asked_sharding
from atled.core.trace import responsible
from atled.core.tree_diff import difference
from atled.core.tree_registry import static, struct
from atled.nn.module_filters import depths, paths
from atled.ops.shape import optimization_barrier
from atled.optim.schedules import Schedule
from atled.staging.jit import jit
from atled.transforms.vmap import vmap


@formerly(hyper="hyperparams")
@struct
class State:
    """The state of an optimizer.

    >>> from atled import optim
    >>> state = optim.SGD(0.5, momentum=0.75).init({"w": jnp.zeros(2)})
    >>> int(state.step), float(state.hyperparams["momentum"])
    (0, 0.75)
    """

    step: Any  # the number of updates
    hyperparams: dict[str, Any]  # hyperparameters, which can be changed
    slots: dict[str, Any]
    scheduled: dict[str, Any] = dataclasses.field(default_factory=dict)  # last values of scheduled hyperparameters
    of: str = static(default="")  # the optimizer's class, by which `set_hyperparams` distinguishes equal names


@formerly(evaluated="eval_model", scaled="scale_loss")
class Optimizer:
    """Turns gradients into updates of parameters.

    `takes` lists further keyword arguments of `update`: `value`, the loss value, and `loss`, a function of the model.

    >>> from atled import optim
    >>> sgd, p = optim.SGD(0.5), {"w": jnp.array([1.0])}
    >>> updates, state = sgd.update({"w": jnp.array([2.0])}, sgd.init(p), p)
    >>> optim.apply_updates(p, updates)["w"]
    Array([0.], dtype=float32)
    """

    takes: ClassVar[tuple[str, ...]] = ()
    is_step: ClassVar[bool] = True  # whether its results are updates to add to parameters, not gradients
    keeps_weights: ClassVar[bool] = False  # whether it keeps its own weights, so that its updates must not be changed
    has_scale: ClassVar[bool] = False  # whether it expects gradients of a scaled loss, and unscales them

    def init(self, model: Any, *, mesh_axis: str | None = None) -> Any:
        """The state before the first step; its arrays are sharded like those of the model.

        Args:
            mesh_axis: a mesh axis, such as the data axis, over which the state's arrays are sharded further, along an
                axis whose length is divisible. The layer axis of a `Stack` is not sharded over it.
        """
        raise NotImplementedError

    def update(self, grads: Any, state: Any, model: Any) -> tuple[Any, Any]:
        """The updates to add to the parameters, and the new state."""
        raise NotImplementedError

    def step(self, model: Any, grads: Any, state: Any, *, value: Any = None, loss: Any = None) -> tuple[Any, Any]:
        """The model after a step, and the new state.

        Args:
            value: the loss value, for optimizers that need it, such as `optim.reduce_on_plateau`; others ignore it.
            loss: a function of the model, for optimizers that evaluate the loss at other points, such as `optim.SAM`
                and `optim.LBFGS`.

        >>> from atled import optim
        >>> import atled.numpy as jnp
        >>> sgd = optim.SGD(0.5)
        >>> params = {"w": jnp.ones(2)}
        >>> params, state = sgd.step(params, {"w": jnp.ones(2)}, sgd.init(params))
        >>> params
        {'w': Array([0.5, 0.5], dtype=float32)}
        """
        updates, state = self.update(grads, state, model, **handed(self, {"value": value, "loss": loss}))
        return apply_updates(model, updates), state

    def eval_model(self, model: Any, state: Any) -> Any:
        """The model for evaluation: with averaged parameters if the optimizer has any, else unchanged.

        >>> from atled import optim
        >>> import atled.numpy as jnp
        >>> averaging = optim.average(optim.SGD(1.0))
        >>> params = {"w": jnp.zeros(1)}
        >>> state = averaging.init(params)
        >>> for _ in range(3):
        ...     params, state = averaging.step(params, {"w": jnp.ones(1)}, state)
        >>> params["w"], averaging.eval_model(params, state)["w"]
        (Array([-3.], dtype=float32), Array([-2.], dtype=float32))
        """
        return model

    def scale_loss(self, value: Any, state: Any) -> Any:
        """The loss value to differentiate: multiplied by the scale of a `LossScale`, else unchanged."""
        return value


def handed(optimizer: Optimizer, values: dict[str, Any]) -> dict[str, Any]:
    """The values that an optimizer takes as keyword arguments; raises if one is missing."""
    for name in optimizer.takes:
        if values.get(name) is None:
            what = "the value of the loss" if name == "value" else "the loss, as a function of the model,"
            raise TypeError(
                errors.explained(
                    f"{type(optimizer).__name__}: {what} must be given; got none.",
                    f"optimizer.step(model, grads, state, {', '.join([f'{n}={n}' for n in optimizer.takes])}).",
                )
            )
    return {n: values[n] for n in optimizer.takes}


def apply_updates(model: Any, updates: Any) -> Any:
    """The model with updates added to its parameters, each in the dtype of the parameter.

    >>> apply_updates({"w": jnp.array([1.0])}, {"w": jnp.array([-0.25])})["w"]
    Array([0.75], dtype=float32)
    """
    leaves, structure = tree.flatten(model)
    changes = _matched("apply_updates", structure, updates)
    new_leaves = [x if u is None else (x + u).astype(x.dtype) for x, u in zip(leaves, changes, strict=True)]
    return structure.unflatten(new_leaves)


def global_norm(grads: Any) -> Array:
    """The global norm of all gradients.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> float(optim.global_norm({"a": jnp.array(3.0), "b": jnp.array(4.0)}))
    5.0
    """
    squares = [jnp.sum(jnp.square(jnp.abs(wide(g)))) for g in tree.leaves(grads)]
    dtype = "float64" if any([s.dtype == "float64" for s in squares]) else "float32"
    return jnp.sqrt(sum([s.astype(dtype) for s in squares], jnp.zeros((), dtype)))


def _is_short(x: Any) -> bool:
    return type_of(x).kind == "f" and type_of(x).dtype.itemsize < 4


def wide(x: Any) -> Any:
    """x in float32 or wider: in bfloat16, 0.999 rounds to 1."""
    return x.astype("float32") if _is_short(x) else x


class Rule(Optimizer):
    """An optimizer that treats arrays separately: subclasses define the update of one array.

    Fields named in `numbers` are hyperparameters: the state has constants in `hyperparams`, and the last values of
    schedules in `scheduled`. A rule that is not elementwise is applied to each layer of a `Stack` separately.

    >>> class Signs(Rule):
    ...     numbers = ()
    ...     def rule(self, g, p, s, h): return -jnp.sign(g), {}
    >>> p = {"w": jnp.zeros(2)}
    >>> Signs().step(p, {"w": jnp.array([7.0, -3.0])}, Signs().init(p))[0]["w"]
    Array([-1.,  1.], dtype=float32)
    """

    slots: ClassVar[tuple[str, ...]] = ()
    reals: ClassVar[tuple[str, ...]] = ()  # slots that are real for complex parameters
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate",)
    is_elementwise: ClassVar[bool] = True

    def rule(self, g: Any, p: Any, s: dict[str, Any], h: Any) -> tuple[Any, dict[str, Any]]:
        """The update of a parameter p with gradient g and slots s, and its new slots; h has the hyperparameters."""
        raise NotImplementedError

    def derived(self, h: Any, t: Any) -> dict[str, Any]:
        """Values that follow from the hyperparameters in step t, counted from 1; computed once for all parameters."""
        return {}

    def leaf(self, path: str, h: dict[str, Any]) -> dict[str, Any]:
        """The hyperparameters of the parameter at a path."""
        return h

    def axes(self, dims: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """By slot, the axes of a parameter that it has, by default all; a slot that is not in the dict is None."""
        return dict.fromkeys(self.slots, tuple(range(len(dims))))

    def start(self, slot: str, p: Any) -> Any:
        """The initial value of a slot: a fill value, or an array like the parameter."""
        return 0

    def check(self, paths: Sequence[str]) -> None:
        """Raise if path patterns of the optimizer do not match the model."""

    def init(self, model: Any, *, mesh_axis: str | None = None) -> State:
        """The state before the first step."""
        leaves, structure = tree.flatten(model)
        is_trained, names = trained(structure, leaves), paths(structure)
        self.check(names)
        slot_leaves: dict[str, list[Any]] = {name: [] for name in self.slots}
        for x, is_meant, depth in zip(leaves, is_trained, self._depths(structure, mesh_axis), strict=True):
            own = self.axes(type_of(x).shape[depth:]) if is_meant else {}
            for name in self.slots:
                slot = own.get(name)
                axes = slot if slot is None else (*range(depth), *[a + depth for a in slot])
                slot_leaves[name].append(
                    None if axes is None else filled(x, self.start(name, x), axes, depth, mesh_axis, name in self.reals)
                )
        hyper, scheduled = first_numbers(self, self.numbers, number_dtype(leaves, is_trained))
        slots = {name: structure.unflatten(xs) for name, xs in slot_leaves.items()}
        return State(jnp.zeros((), "int32"), hyper, slots, scheduled, type(self).__name__)

    def _depths(self, structure: tree.TreeDef, mesh_axis: str | None) -> list[int]:
        """The number of leading layer axes of each leaf; 0 for elementwise rules without a `mesh_axis`."""
        return [0] * structure.num_leaves if self.is_elementwise and mesh_axis is None else stack_depths(structure)

    def update(self, grads: Any, state: State, model: Any) -> tuple[Any, State]:
        """The updates to add to the parameters, and the new state."""
        leaves, structure = tree.flatten(model)
        name = type(self).__name__
        _check_state(name, state, self.numbers)
        given = _matched(name, structure, grads)
        slots = {n: _matched(f"{name}, {n}", structure, s) for n, s in state.slots.items()}
        scheduled = {n: _at(getattr(self, n), state.step, x.dtype) for n, x in state.scheduled.items()}
        hyper = {**state.hyperparams, **scheduled}
        is_trained, t, names = trained(structure, leaves), state.step + 1, paths(structure)
        updates: list[Any] = [None] * len(leaves)
        after = {n: list(xs) for n, xs in slots.items()}
        rules, prepared = _Rules(self, is_recorded=type(responsible([state.step])) is Recorder), _Prepared(self, t)
        for i, (p, depth) in enumerate(zip(leaves, self._depths(structure, None), strict=True)):
            g = given[i]
            if g is None or not is_trained[i]:
                continue
            dims = type_of(p).shape
            own = {n: xs[i] for n, xs in slots.items() if xs[i] is not None}
            self._check(names[i], g, dims, depth, own)
            numbers = prepared.of(self.leaf(names[i], hyper), _real(p))
            updates[i], new = rules.of(depth)(g, p, own, numbers)
            for n, x in new.items():
                after[n][i] = x
        new_slots = {n: structure.unflatten(xs) for n, xs in after.items()}
        return structure.unflatten(updates), State(t, state.hyperparams, new_slots, scheduled, state.of)

    def _check(self, path: str, g: Any, dims: tuple[int, ...], depth: int, own: dict[str, Any]) -> None:
        """Raise an error for a gradient or slot whose shape does not match the parameter."""
        name, axes = type(self).__name__, self.axes(dims[depth:])
        if set(axes) != set(own):
            raise ValueError(
                errors.explained(
                    f"{name}: there is a gradient for {path}, but no state.",
                    "optimizer.init(model) with the current model.",
                )
            )
        expected = [("the gradient", g, dims)]
        expected += [(f"the slot {n}", x, (*dims[:depth], *[dims[a + depth] for a in axes[n]])) for n, x in own.items()]
        for what, x, shape in expected:
            got = type_of(x)
            if got.shape != shape:
                raise ValueError(
                    errors.explained(f"{name}: {what} of {path} must be {got.with_shape(shape)}; got {got}.")
                )


def _check_state(name: str, state: Any, numbers: Sequence[str]) -> None:
    """Raise an error for a state that does not belong to an optimizer with these hyperparameters."""
    if isinstance(state, State) and {*state.hyperparams, *state.scheduled} == set(numbers):
        return
    is_other = isinstance(state, State)
    has = f"one with {', '.join([*state.hyperparams, *state.scheduled])}" if is_other else describe(state)
    raise TypeError(
        errors.explained(
            f"{name}: the state must be that of this optimizer, with {', '.join(numbers)}; got {has}.",
            "optimizer.init(model).",
        )
    )


def whole(optimizer: Any, who: str, *names: str) -> None:
    """Convert fields of an optimizer to Python integers; raise if they are not integral."""
    for name in names:
        value = getattr(optimizer, name)
        try:
            if isinstance(value, bool):
                raise TypeError
            object.__setattr__(optimizer, name, operator.index(value))
        except TypeError:
            raise TypeError(
                errors.explained(f"{who}: {name} must be an integer; got {value!r}.", f"{name}=int({name}).")
            ) from None


def first_numbers(optimizer: Any, names: Sequence[str], dtype: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The initial hyperparameters of an optimizer: constants, and scheduled ones."""
    values = {n: getattr(optimizer, n) for n in names}
    hyper = {n: jnp.asarray(v, dtype) for n, v in values.items() if not callable(v)}
    return hyper, {n: _at(v, jnp.zeros((), "int32"), dtype) for n, v in values.items() if callable(v)}


def numbers_at(optimizer: Any, state: State) -> tuple[Any, dict[str, Any]]:
    """All hyperparameters of a step, as attributes, and a dict of the scheduled ones."""
    scheduled = {n: _at(getattr(optimizer, n), state.step, x.dtype) for n, x in state.scheduled.items()}
    return _Numbers({**state.hyperparams, **scheduled}), scheduled


def number_dtype(leaves: Sequence[Any], is_trained: Sequence[bool]) -> Any:
    """The dtype of hyperparameters: the widest of the parameters' dtypes, at least float32."""
    is_double = [_real(x) == "float64" for x, a in zip(leaves, is_trained, strict=True) if a]
    return np.float64 if any(is_double) else np.float32


def _at(schedule: Any, step: Any, dtype: Any) -> Any:
    return jnp.asarray(schedule.at(step, dtype) if isinstance(schedule, Schedule) else schedule(step), dtype)


class _Numbers:
    """Numbers as attributes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


class _Rules:
    """The rule of an optimizer, vectorized over layer axes of stacks; under a trace, traced once for equal types."""

    def __init__(self, optimizer: Rule, is_recorded: bool) -> None:
        self._optimizer, self._is_recorded = optimizer, is_recorded
        self._found: dict[int, Any] = {}

    def of(self, depth: int) -> Any:
        if depth not in self._found:
            rule = self._one
            for _ in range(depth):
                rule = vmap(rule, in_axes=(0, 0, 0, None))
            self._found[depth] = jit(rule, inline=True) if self._is_recorded else rule
        return self._found[depth]

    def _one(self, g: Any, p: Any, s: dict[str, Any], h: dict[str, Any]) -> Any:
        update, new = self._optimizer.rule(wide(g), wide(p), s, _Numbers(h))
        return update, {n: x.astype(s[n].dtype) for n, x in new.items()}


class _Prepared:
    """The hyperparameters of a step in the dtypes of parameters, each converted once."""

    def __init__(self, optimizer: Rule, t: Any) -> None:
        self._optimizer, self._t = optimizer, t
        self._found: list[tuple[Any, Any, dict[str, Any]]] = []

    def of(self, h: dict[str, Any], dtype: Any) -> dict[str, Any]:
        for known, d, prepared in self._found:
            if d == dtype and all([known[n] is v for n, v in h.items()]):
                return prepared
        prepared = {n: jnp.asarray(v, dtype) for n, v in h.items()}
        prepared |= self._optimizer.derived(_Numbers(prepared), self._t.astype(dtype))
        self._found.append((h, dtype, prepared))
        return prepared


def _real(p: Any) -> Any:
    """The dtype of hyperparameters for one parameter."""
    return "float64" if type_of(p).dtype.name in ("float64", "complex128") else "float32"


def trained(structure: tree.TreeDef, leaves: Sequence[Any]) -> list[bool]:
    """Which leaves are parameters: those declared as trainable; without declarations, all inexact arrays."""
    return [
        type_of(x).kind in "fc" and (k is None or k.is_trained) for x, k in zip(leaves, structure.kinds, strict=True)
    ]


def _matched(what: str, structure: tree.TreeDef, other: Any) -> list[Any]:
    """The values of another tree at the leaves of a model; None for missing ones."""
    try:
        return structure.flatten_up_to(other)
    except tree.TreeError:
        path, was, got = difference(structure, tree.structure(other)) or ("", "", "")
        raise tree.TreeError(
            errors.explained(
                f"{what}: the tree must match that of the model; at {path or 'the root'}, the model has "
                f"{was}, but the tree has {got}.",
                "both from the same model.",
            )
        ) from None


def stack_depths(structure: tree.TreeDef) -> list[int]:
    """For each leaf, the number of enclosing stacks, which is the number of its leading layer axes."""
    file = sys.modules.get("atled.nn.stack")  # slow to import; if it is not imported, there are no stacks
    return [0] * structure.num_leaves if file is None else depths(structure, file.Stacked)


def filled(
    x: Any, value: Any, axes: tuple[int, ...], depth: int, mesh_axis: str | None, is_real: bool = False,
    first: tuple[int, ...] = (),
) -> Any:  # fmt: skip
    """A slot with some axes of the parameter x, sharded like x and also over `mesh_axis`, in float32 or wider.

    `value` is a number to fill the slot with, or an array like x to copy. The new axes `first` are not sharded, and the
    `depth` leading layer axes are not sharded over `mesh_axis`.
    """
    dims, dtype = type_of(x).shape, np.dtype(_real(x)) if is_real or _is_short(x) else type_of(x).dtype
    where = _place(x, axes, depth, mesh_axis)
    if isinstance(value, Array):
        slot = jnp.array(value, dtype, copy=True)
        slot = optimization_barrier(slot)[0] if slot is value else slot  # under a trace, the copy is the value itself
        return slot if where is None or where == getattr(slot, "sharding", None) else jnp.asarray(slot, device=where)
    if where is not None:
        where = NamedSharding(where.mesh, PartitionSpec(*[None] * len(first), *where.spec)) if first else where
        return jnp.full([*first, *[dims[a] for a in axes]], value, dtype, out_sharding=where)
    if not first and axes == tuple(range(len(dims))):
        return jnp.full_like(x, value, dtype)  # on the same device
    return jnp.full([*first, *[dims[a] for a in axes]], value, dtype)


def _place(x: Any, axes: tuple[int, ...], depth: int, mesh_axis: str | None) -> NamedSharding | None:
    """The sharding of an array with some axes of a parameter: that of the parameter, each mesh axis used once."""
    where = asked_sharding(x)
    if not isinstance(where, NamedSharding):
        return None
    mesh, spec, used = where.mesh, [], set()
    if mesh_axis is None and axes == tuple(range(x.ndim)):
        return where
    if mesh_axis is not None and mesh_axis not in mesh.shape:
        raise ValueError(
            errors.explained(
                f"optim: mesh_axis must be an axis of the mesh, {', '.join(map(str, mesh.shape))}; got {mesh_axis!r}."
            )
        )
    for a in axes:
        spec.append([n for n in where.spec.axes(a) if n not in used])
        used.update(spec[-1])
    for i, a in enumerate(axes):
        parts = math.prod([mesh.shape[n] for n in spec[i]])
        if (
            mesh_axis is not None
            and mesh_axis not in used
            and i >= depth
            and x.shape[a] % (parts * mesh.shape[mesh_axis]) == 0
        ):
            spec[i].append(mesh_axis)
            break
    while spec and not spec[-1]:
        spec.pop()
    return NamedSharding(mesh, PartitionSpec(*[tuple(n) if len(n) > 1 else n[0] if n else None for n in spec]))


def like(model: Any, value: Any, mesh_axis: str | None, first: tuple[int, ...] = ()) -> Any:
    """A tree like the parameters of a model, filled with `value`, or with copies of them if `value` is None."""
    leaves, structure = tree.flatten(model)
    new_leaves = []
    for x, is_meant, depth in zip(leaves, trained(structure, leaves), stack_depths(structure), strict=True):
        axes, start = tuple(range(type_of(x).ndim)), jnp.asarray(x) if value is None else value
        new_leaves.append(filled(x, start, axes, depth, mesh_axis, first=first) if is_meant else None)
    return structure.unflatten(new_leaves)


def mapped(f: Callable[..., Any], model: Any, *trees: Any) -> Any:
    """Map a function over the values of trees at each leaf of a model; None where the first tree has None."""
    structure = tree.structure(model)
    columns = zip(*[structure.flatten_up_to(t) for t in trees], strict=True)
    return structure.unflatten([None if xs[0] is None else f(*xs) for xs in columns])


def set_hyperparams(state: Any, **numbers: Any) -> Any:
    """A state with other hyperparameters: the next step uses them, without recompiling.

    A hyperparameter is changed in all groups of a `partition`. If optimizers of several
    classes have it, prefix the class:
    `set_hyperparams(state, **{"AdamW.weight_decay": 0.1})`. For two parts of one class in
    a chain, change the state of each part separately.

    >>> from atled import optim
    >>> import atled.numpy as jnp
    >>> state = optim.Adam(0.1).init({"w": jnp.ones(2)})
    >>> float(optim.set_hyperparams(state, learning_rate=0.5).hyperparams["learning_rate"])
    0.5
    """
    places, structure = tree.flatten_with_path(state, is_leaf=lambda x: isinstance(x, State))
    states = [x for _, x in places]
    for name, value in numbers.items():
        if type_of(value).shape != ():
            raise ValueError(
                errors.explained(f"optim.set_hyperparams: {name} must be one number; got {type_of(value)}.")
            )
        indices = _places(places, name)
        _check_meaning(name, indices, places)
        n = name.rpartition(".")[2]
        for i in indices:
            hyper = states[i].hyperparams
            states[i] = states[i].replace(hyperparams={**hyper, n: jnp.asarray(value, hyper[n].dtype)})
    return structure.unflatten(states)


def _places(places: Sequence[tuple[Any, Any]], name: str) -> list[int]:
    """The indices of states with a hyperparameter, whose name may have the class as a prefix; raises if none has it."""
    of, _, n = name.rpartition(".")
    states = [(i, x) for i, (_, x) in enumerate(places) if isinstance(x, State) and of in ("", x.of)]
    indices = [i for i, x in states if n in x.hyperparams]
    if not indices:
        known = sorted({m for _, x in places if isinstance(x, State) for m in x.hyperparams})
        why = f"; {name} follows a schedule" if any([n in x.scheduled for _, x in states]) else ""
        raise ValueError(
            errors.explained(f"optim.set_hyperparams: the state has {', '.join(known) or 'nothing'}{why}; got {name}.")
        )
    return indices


def _check_meaning(name: str, found: Sequence[int], places: Sequence[tuple[Any, Any]]) -> None:
    """Raise if a hyperparameter name is ambiguous: if several classes, or several parts of a chain, have it."""
    classes = sorted({places[i][1].of for i in found})
    if len(classes) > 1:
        names = [f"{c or 'another optimizer'}.{name}" for c in classes]
        raise ValueError(
            errors.explained(
                f"optim.set_hyperparams: {name} is ambiguous; got {' and '.join(names)}.",
                f"optim.set_hyperparams(state, **{{{names[-1]!r}: …}}).",
            )
        )
    for i, j in itertools.pairwise(found):
        parting = next(a for a, b in zip(places[i][0], places[j][0], strict=False) if a != b)
        if not isinstance(parting, tree_registry.DictKey):  # two groups of a partition are not ambiguous
            both = " and ".join([f"state{tree.keystr(places[k][0])}" for k in (i, j)])
            raise ValueError(
                errors.explained(
                    f"optim.set_hyperparams: {name} is ambiguous; got those of {both}.",
                    "optim.set_hyperparams on the state of one part, which then replaces the old state of that part.",
                )
            )
