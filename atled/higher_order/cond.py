"""`cond` and `switch`: run one of several programs, chosen by an index.

The branches take the same operands and return results of the same types. Values that a branch closes over become
operands of all branches. If the index is batched, all branches run and the result of each batch element is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, error_hints, errors, tree
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.core.list_partition import kept, left_out, merged, with_zeros
from atled.core.op import Op
from atled.core.program import Program, Recorder, evaluate, pruned, record
from atled.core.settings import scope
from atled.core.tangent_mask import SUMS
from atled.core.trace import Tracer, bind, leaving, received, state
from atled.core.tree_diff import difference
from atled.core.types import ArrayType, Linear, Zero
from atled.higher_order.call import has_effects, named_axes, split_program
from atled.ops import conversion, elementwise, shape
from atled.transforms.jvp import jvp_program
from atled.transforms.linearize import Tape
from atled.transforms.masked_tangents import arrays_of, mask_program, result_masks
from atled.transforms.transpose import transpose_program
from atled.transforms.vmap import PartlyBatched, batch_program


class Cond(Op):
    """Runs the branch that its first operand, the index, selects; the other operands go to the branch."""

    gives_tuple = True
    splits = True
    takes_keys = True
    selects = True
    branches: tuple[Program, ...]

    @property
    def axes(self) -> tuple[Any, ...]:
        """The named axes that collectives in the branches run over."""
        return tuple(dict.fromkeys([a for b in self.branches for a in named_axes(b)]))

    @property
    def is_collective(self) -> bool:  # type: ignore[override]
        return bool(self.axes)

    def varies(self, of: Any, given: list[Any]) -> list[Any]:
        return [given[0].union(*rows) for rows in zip(*[of(b, given[1:]) for b in self.branches])]

    def chosen_by(self, of: Any, given: list[Any]) -> Any:
        return given[0]

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return any([has_effects(b) for b in self.branches])

    def result_type(self, index: ArrayType, *types: ArrayType) -> tuple[ArrayType, ...]:
        first = self.branches[0]
        if index.shape != () or index.kind != "i" or len(types) != len(first.inputs):
            raise TypeError(f"cond: expected a scalar index and operands {first.input_types}; got {index}, {types}.")
        return first.output_types

    def lower(self, build: Any, index: Any, *operands: Any) -> Any:
        if index.literal is not None:  # a constant index: emit only its branch
            return tuple(build.inline(self.branches[int(np.clip(index.literal, 0, len(self.branches) - 1))], operands))
        types = list(self.branches[0].output_types)
        token = build.waited() if self.has_effect else None

        def branch(b: Any, program: Program) -> list[Any]:
            b.token = token
            out = b.inline(program, operands)
            return out if token is None else [*out, b.token]

        regions = [build.region((), lambda b, p=p: branch(b, p)) for p in self.branches]
        kinds = types if token is None else [*types, token.type]
        out = build.emit("stablehlo.case", (index,), kinds, regions=regions)
        out = (out,) if len(kinds) == 1 else out
        if token is not None:
            *out, build.token = out
        return tuple(out)

    def stepwise(self, index: Any, *operands: Any) -> Any:
        return tuple(evaluate(self.branches[int(np.clip(int(index), 0, len(self.branches) - 1))], operands))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        given = tuple([type(t) is not Zero for t in tangents[1:]])
        nonzero = _any_of([jvp_program(b, given)[1] for b in self.branches])
        branches = tuple([jvp_program(b, given, nonzero)[0] for b in self.branches])
        out = bind(Cond(branches), *primals, *[t for t in tangents if type(t) is not Zero])
        types = self.branches[0].output_types
        return out[: len(types)], with_zeros(nonzero, out[len(types) :], types)

    def split(self, tape: Tape, operands: Sequence[Any]) -> Any:
        index, *rest = operands
        is_known = tuple([not tape.owns(x) for x in rest])
        parts = [split_program(b, is_known) for b in self.branches]
        # an output that is unknown in one branch is unknown in all of them
        waits = _any_of([[not k for k in p.known_outputs] for p in parts])
        slots = _slots([_residual_types(p, waits) for p in parts])
        known = tuple([_known_branch(p, waits, slots) for p in parts])
        out = bind(Cond(known), index, *kept(is_known, rest))
        count = len(waits) - sum(waits)
        waiting = tuple([_waiting_branch(p, waits, slots) for p in parts])
        linear = left_out(is_known, rest)
        written = tape.write(Cond(waiting), [index, *out[count:], *linear])
        return tuple(merged(waits, written, out[:count]))

    def transpose(self, cotangent: Any, index: Any, *operands: Any) -> Any:
        is_linear = tuple([type(x) is Linear for x in operands])
        given = tuple([type(c) is not Zero for c in cotangent])
        branches = tuple([transpose_program(b, is_linear, given, True)[0] for b in self.branches])
        values = left_out(is_linear, operands)
        out = bind(Cond(branches), index, *values, *[c for c in cotangent if type(c) is not Zero])
        return (None, *merged(is_linear, out))

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        rest = masks[1:]
        masked_branches = [mask_program(b, rest) for b in self.branches]
        is_linear = _any_of([p.is_linear for p in masked_branches])
        # a result that is constant in a branch counts as discarded in it
        rows = zip(is_linear, *[zip(p.is_linear, p.reaches) for p in masked_branches])
        reaches = tuple([max([SUMS if m != b else r for b, r in flags]) for m, *flags in rows])
        masked_branches = [mask_program(b, rest, reaches) for b in self.branches]
        n, operands = len(is_linear), [*values, *arrays_of(rest)]
        if any([p.has_effect for p in masked_branches]) or not any(reaches):
            out = bind(Cond(tuple([p.both for p in masked_branches])), *operands)
            return out[:n], result_masks(is_linear, reaches, lambda: out[n:])
        parts = [
            [pruned(p.both, [(i < n) == b for i in range(len(p.both.outputs))]) for p in masked_branches]
            for b in (True, False)
        ]
        find = lambda: bind(Cond(tuple(parts[1])), *operands)  # noqa: E731
        return bind(Cond(tuple(parts[0])), *operands), result_masks(is_linear, reaches, find)

    def batch_under(self, batch: Any, batched: tuple[bool, ...], index: Any, *operands: Any) -> Any:
        size, name, rest = batch.size, batch.axis_name, batched[1:]
        if batched[0]:
            return self._select(size, name, rest, index, operands)
        with_axis = _any_of([batch_program(b, rest, size, axis_name=name)[1] for b in self.branches])
        branches = tuple([batch_program(b, rest, size, with_axis, name)[0] for b in self.branches])
        return PartlyBatched(bind(Cond(branches), index, *operands), with_axis)

    def _select(self, size: int, name: Any, batched: tuple[bool, ...], index: Any, operands: Sequence[Any]) -> Any:
        """Run every branch on the whole batch, and select the result of each batch element."""
        every = (True,) * len(self.branches[0].outputs)
        programs = [batch_program(b, batched, size, every, name)[0] for b in self.branches]
        out = evaluate(programs[0], operands)
        for i, program in enumerate(programs[1:], 1):
            is_this = elementwise.eq(index, np.int32(i))
            out = [where_lanes(is_this, x, y) for x, y in zip(evaluate(program, operands), out)]
        return tuple(out)


def where_lanes(condition: Any, x: Any, y: Any) -> Any:
    """x for batch elements whose condition is true, else y; the batch axis is axis 0."""
    dims = type_of(x).shape
    return elementwise.select(shape.broadcast(condition, dims, (0,)), x, y)


def _any_of(rows: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    return tuple([any(column) for column in zip(*rows)])


def _residual_types(part: Any, waits: Sequence[bool]) -> list[ArrayType]:
    """The types that a branch passes to its linear part: known outputs that other branches defer, then residuals."""
    types = iter(part.known.output_types)
    known = [next(types) if k else None for k in part.known_outputs]
    return [t for t, w in zip(known, waits) if t is not None and w] + list(types)


def _slots(rows: Sequence[Sequence[ArrayType]]) -> list[ArrayType]:
    """The types of the residual slots that all branches share: of each type, as many as any branch needs."""
    count: dict[ArrayType, int] = {}
    for row in rows:
        for t in set(row):
            count[t] = max(count.get(t, 0), row.count(t))
    return [t for t, n in count.items() for _ in range(n)]


def _places(types: Sequence[ArrayType], slots: Sequence[ArrayType]) -> list[int]:
    """The position in `slots` for each value of these types."""
    taken: set[int] = set()
    out = []
    for t in types:
        i = next(i for i, s in enumerate(slots) if s is t and i not in taken)
        taken.add(i)
        out.append(i)
    return out


def _known_branch(part: Any, waits: Sequence[bool], slots: Sequence[ArrayType]) -> Program:
    types = _residual_types(part, waits)

    def f(*operands: Any) -> list[Any]:
        outputs = iter(evaluate(part.known, operands))
        known = [next(outputs) if k else None for k in part.known_outputs]
        residuals = [x for x, k, w in zip(known, part.known_outputs, waits) if k and w] + list(outputs)
        places = dict(zip(_places(types, slots), residuals))
        left = [places[i] if i in places else shape.zeros(t) for i, t in enumerate(slots)]
        return left_out(waits, known) + left

    return record(f, part.known.input_types, part.known.name)[0]


def _waiting_branch(part: Any, waits: Sequence[bool], slots: Sequence[ArrayType]) -> Program:
    types = _residual_types(part, waits)
    places = _places(types, slots)
    held = sum([k and w for k, w in zip(part.known_outputs, waits)])
    count = len(types) - held

    def f(*operands: Any) -> list[Any]:
        residuals = [operands[i] for i in places]
        written = evaluate(part.waiting, [*residuals[held:], *operands[len(slots) :]])
        return merged(kept(waits, part.known_outputs), residuals[:held], written)

    linear = part.waiting.input_types[count:]
    return record(f, [*slots, *linear], part.waiting.name)[0]


# -- the public functions ---------------------------------------------------------------------------------------------


def cond(
    pred: ArrayLike, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = ...,
    true_operand: Any = ..., false_operand: Any = ...,
) -> Any:  # fmt: skip
    """`true_fun(*operands)` if `pred`, else `false_fun(*operands)`, chosen when the compiled program runs.

    Both functions must return results of the same types. Under `vmap` with a batched `pred`, both run. The older form
    with an operand for each function, `cond(pred, true_operand, true_fun, false_operand, false_fun)`, also works.

    >>> import atled.numpy as jnp
    >>> cond(True, lambda x: x + 1.0, lambda x: -x, jnp.float32(2.0))
    Array(3., dtype=float32)
    """
    if len(operands) == 2 and not callable(true_fun) and callable(false_fun) and callable(operands[1]):
        true_operand, true_fun, (false_operand, false_fun), operands = true_fun, false_fun, operands, ()
    if true_operand is not ... or false_operand is not ...:
        if true_operand is ... or false_operand is ...:
            raise TypeError("cond: true_operand and false_operand must be given together; one of them is missing.")
        own = true_fun, false_fun
        operands = (true_operand, false_operand)
        true_fun, false_fun = (lambda x, _: own[0](x)), (lambda _, x: own[1](x))
    operands = operands if operand is ... else (operand,)
    t = _scalar("cond", "the predicate", pred)
    if t.kind not in "biuf":
        raise TypeError(f"cond: the predicate must be a boolean or a number; got {t}.")
    is_true = pred if t.kind == "b" else elementwise.ne(pred, np.zeros((), t.dtype))
    return choose("cond", conversion.convert(is_true, np.int32), [false_fun, true_fun], operands)


def switch(index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = ...) -> Any:
    """`branches[index](*operands)`; an index out of range selects the first or the last branch.

    >>> import atled.numpy as jnp
    >>> switch(2, [jnp.sin, jnp.cos, jnp.exp], jnp.float32(0.0))
    Array(1., dtype=float32)
    """
    operands = operands if operand is ... else (operand,)
    t = _scalar("switch", "the index", index)
    if t.kind not in "iu":
        raise TypeError(f"switch: the index must be an integer; got {t}.")
    if not branches:
        raise ValueError("switch: at least one branch is needed.")
    if len(branches) == 1:
        return branches[0](*operands)
    index = elementwise.clamp(np.zeros((), t.dtype), index, np.asarray(len(branches) - 1, t.dtype))
    return choose("switch", conversion.convert(index, np.int32), list(branches), operands)


def _scalar(name: str, what: str, x: Any) -> ArrayType:
    t = type_of(x)
    if t.shape != ():
        raise TypeError(
            errors.explained(
                f"{name}: {what} must be a scalar; got {t}.",
                "numpy.where to choose element by element, or vmap; (...).any() or .all() to reduce an array "
                "to one value.",
            )
        )
    return t


def choose(name: str, index: Any, functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """`functions[index](*operands)`; the index is an int32 between 0 and the number of functions minus one."""
    try:
        return _bind_branches(name, index, functions, operands)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _bind_branches(name: str, index: Any, functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    for f in functions:
        if not callable(f):
            raise TypeError(
                f"{name}: the branches must be functions; got {describe(f)}."
                f"\n  try: {error_hints.chosen() or 'numpy.where(c, x, y), which chooses between values'}"
            )
    chosen = index.known() if isinstance(index, Tracer) else index
    if runs_in_python() and chosen is not None:
        return functions[int(chosen)](*operands)
    leaves, structure = tree.flatten(operands)
    types = [type_of(x) for x in leaves]

    recorded = [record_tree(f, structure, types) for f in functions]
    check_same_trees(name, _labels(name, functions), recorded)
    # values that a branch closes over are operands of all branches
    captured: dict[int, Any] = {id(x): x for r in recorded for x in r.captured}
    out_types = [_common_type(types) for types in zip(*[r.program.output_types for r in recorded])]
    kinds = [type_of(x) for x in captured.values()]
    programs = tuple([_with_inputs(r, list(captured), kinds, out_types) for r in recorded])
    return recorded[0].structure.unflatten(list(bind(Cond(programs), index, *captured.values(), *leaves)))


def runs_in_python() -> bool:
    """Whether loops and branches run as plain Python, because jit is disabled."""
    return not scope().jit and type(state.base) is not Recorder


def _labels(name: str, functions: Sequence[Callable[..., Any]]) -> list[str]:
    """The names of branches in messages: those of the functions if they differ, else `true_fun` or `branch 0`."""
    names = [getattr(f, "__name__", "<lambda>") for f in functions]
    if len(set(names)) == len(names) and "<lambda>" not in names:
        return names
    return ["false_fun", "true_fun"] if name == "cond" else [f"branch {i}" for i in range(len(names))]


class Recorded:
    """A function of trees as a program, whose first inputs are the captured ones, and the tree of its result."""

    __slots__ = ("captured", "program", "structure")

    def __init__(self, program: Program, captured: list[Any], structure: tree.TreeDef) -> None:
        self.program, self.captured, self.structure = program, captured, structure


def record_tree(f: Callable[..., Any], structure: tree.TreeDef, types: Sequence[ArrayType]) -> Recorded:
    """Record a function whose arguments are a tree."""
    its_structure: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        result = f(*received(structure.unflatten, list(leaves)))
        leaving(name, result)
        out, out_structure = tree.flatten(result)
        for x in out:
            if not isinstance(x, Array):
                type_of(x)  # raises if x is no array or number
        its_structure.append(out_structure)
        return out

    name = getattr(f, "__name__", type(f).__name__)
    program, captured = record(flat, types, name)
    return Recorded(program, captured, its_structure[0])


def _with_inputs(r: Recorded, order: list[int], types: list[ArrayType], wanted: Sequence[ArrayType]) -> Program:
    """A branch that takes the captured values of all branches, and returns results of the common types."""
    count, mine = len(order), [order.index(id(x)) for x in r.captured]

    def f(*operands: Any) -> list[Any]:
        out = evaluate(r.program, [*[operands[i] for i in mine], *operands[count:]])
        return [x if type_of(x) is t else conversion.convert(x, t.dtype, t.weak) for x, t in zip(out, wanted)]

    return record(f, [*types, *r.program.input_types[len(r.captured) :]], r.program.name)[0]


def _common_type(types: Sequence[ArrayType]) -> ArrayType:
    """The common type of a result: the first strong one, else the first."""
    return next((t for t in types if not t.weak), types[0])


def check_same_trees(name: str, names: Sequence[str], recorded: Sequence[Recorded]) -> None:
    """Raise if branches return results of different trees or types."""
    first = recorded[0]
    for other, label in zip(recorded[1:], names[1:]):
        if first.structure != other.structure:
            path, one, another = difference(first.structure, other.structure) or ("", "", "")
            raise TypeError(
                errors.explained(
                    f"{name}: the branches must return the same tree; {names[0]} gives {first.structure}, "
                    f"{label} gives {other.structure}."
                    f"\n  The first difference: result{path} is {one} from {names[0]}, and {another} from {label}.",
                    "return the same tree from each branch, with zeros where it has no value.",
                )
            )
        rows = list(zip(first.program.output_types, other.program.output_types))
        if any([(a.shape, a.dtype) != (b.shape, b.dtype) for a, b in rows]):
            paths = [
                tree.keystr(p) for p, _ in tree.leaves_with_path(first.structure.unflatten(list(range(len(rows)))))
            ]
            lines = [
                f"{'result' + p}: {names[0]} gives {a}, {label} gives {b}"
                for p, (a, b) in zip(paths, rows)
                if (a.shape, a.dtype) != (b.shape, b.dtype)
            ]
            a, b = next((a, b) for a, b in rows if (a.shape, a.dtype) != (b.shape, b.dtype))
            widest = max(a.dtype, b.dtype, key=lambda d: "biufck".index(dtypes.kind(d)))
            way_out = (
                f"x.astype({widest.name!r}), or a Python number of that kind."
                if a.shape == b.shape
                else "numpy.zeros_like(x)."
            )
            says = f"{name}: the branches must return the same types; {'; '.join(lines)}."
            raise TypeError(errors.explained(says, way_out))
