"""`remat`: recomputes residuals in the backward pass instead of storing them.

The forward pass of a checkpointed program stores only its inputs and the intermediate values that the policy selects.
The linear part on the tape first recomputes the other residuals, behind an optimization barrier that keeps the compiler
from merging the recomputation with the original computation (CSE).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

from atled.core import errors, tree
from atled.core.array import Array, type_of
from atled.core.list_partition import kept, left_out, merged
from atled.core.op import LinearOp
from atled.core.program import Equation, Literal, Program, Var, evaluate, pruned, record_closed
from atled.core.trace import bind, responsible, state
from atled.core.types import ArrayType, Linear, Zero
from atled.engine.array import as_array
from atled.higher_order.call import Call, run_program, split_program
from atled.higher_order.cond import record_tree, runs_in_python
from atled.ops import contraction, shape
from atled.ops.placement import ToMemory
from atled.transforms.linearize import Tape


class Offload(NamedTuple):
    """What a policy returns for a value to offload: the kind of memory, such as `pinned_host`."""

    memory: str


Policy = Callable[[Any, Sequence[ArrayType]], "bool | Offload"]  # arguments: an op, the types of its operands


class Checkpoint(Call):
    """Runs a program, and stores only its inputs and the values that the policy selects for the backward pass."""

    unlowered = ("policy", "prevent_cse")
    policy: Any
    prevent_cse: bool

    def again(self, program: Program) -> Checkpoint:
        """The op for another program."""
        return Checkpoint(program, self.policy, self.prevent_cse)

    def split(self, tape: Tape, operands: Sequence[Any]) -> Any:
        is_known = tuple([not tape.owns(x) for x in operands])
        part = self.program.memo(("kept", is_known, self.policy), lambda: Kept(self.program, is_known, self.policy))
        known = kept(is_known, operands)
        waiting = left_out(is_known, operands)
        out = run_program(part.forward, known)
        count = sum(part.known_outputs)
        residuals = [*[known[i] for i in part.inputs], *out[count:]]
        op = self.again(part.later) if part.computes_again else Call(part.later)
        written = tape.write(op, [*residuals, *waiting])
        return tuple(merged(part.known_outputs, out[:count], written))

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        is_value = [type(x) is not Linear for x in operands]
        is_given = [type(c) is not Zero for c in cotangent]
        if self.prevent_cse and any(is_value):  # recompute nothing before the cotangents are available
            values = kept(is_value, operands)
            behind = iter(shape.optimization_barrier(*values, *kept(is_given, cotangent)))
            operands = tuple([next(behind) if v else x for x, v in zip(operands, is_value)])
            cotangent = tuple([next(behind) if g else c for c, g in zip(cotangent, is_given)])
        return super().transpose(cotangent, *operands)


def without_barriers(program: Program) -> Program:
    """The program with `prevent_cse=False` in its checkpoints, for uses where the original computation is elsewhere."""

    def alone(e: Equation) -> Equation:
        if type(e.op) is not Checkpoint:
            return e
        return Equation(Checkpoint(e.op.program, e.op.policy, False), e.operands, e.results, e.source)

    equations = [alone(e) for e in program.equations]
    return Program(program.inputs, equations, program.outputs, program.name)


class Kept:
    """A program split into known and unknown parts, with only the residuals that the policy saves between them.

    `forward` returns the known outputs and these residuals; `later` takes the known inputs at positions `inputs`, the
    residuals and the unknown inputs.
    """

    def __init__(self, program: Program, is_known: tuple[bool, ...], policy: Policy | None) -> None:
        parts = split_program(program, is_known)
        self.known_outputs = parts.known_outputs
        known = spliced(parts.known)
        count = sum(parts.known_outputs)
        results, residuals = known.outputs[:count], known.outputs[count:]
        saved = _saved(known, policy)
        # uses of a value whose named copy is saved read the copy
        named = {e.operands[0]: e.results[0] for e in known.equations if type(e.op) is Name and e.results[0] in saved}
        residuals = [named.get(v, v) for v in residuals]
        rest = [
            Equation(e.op, tuple([named.get(v, v) for v in e.operands]), e.results, e.source)
            for e in known.equations
            if not e.op.has_effect and e.results[0] not in saved and e.results[0] not in named
        ]
        again = Program([*known.inputs, *saved], rest, residuals, program.name)
        again = pruned(again, [True] * len(residuals))
        used = {v for e in again.equations for v in e.operands} | set(again.outputs)
        self.inputs = [i for i, v in enumerate(known.inputs) if v in used]
        stored = [v for v in saved if v in used]
        places = [saved[v] for v in stored]
        self.forward = _moved(known, results, stored, places)
        first = [known.inputs[i] for i in self.inputs]
        again = Program([*first, *stored], again.equations, residuals, program.name)
        self.computes_again = bool(again.equations)
        n, m = len(first), len(first) + len(stored)

        def later(*operands: Any) -> list[Any]:
            back = [x if p is None else bind(ToMemory("device"), x) for x, p in zip(operands[n:m], places)]
            return evaluate(parts.waiting, [*evaluate(again, [*operands[:n], *back]), *operands[m:]])

        linear = parts.waiting.input_types[len(residuals) :]
        self.later = record_closed(later, [*again.input_types, *linear], program.name)


def _saved(program: Program, policy: Policy | None) -> dict[Var, str | None]:
    """The variables to save, and the memory for each (None: the default). Ops with effects must run only once."""
    saved: dict[Var, str | None] = {}
    for e in program.equations:
        answer = e.op.has_effect or (policy is not None and policy(e.op, [v.type for v in e.operands]))
        if answer:
            saved.update(dict.fromkeys(e.results, answer.memory if isinstance(answer, Offload) else None))
    return saved


def _moved(program: Program, results: Sequence[Any], kept: Sequence[Var], places: Sequence[str | None]) -> Program:
    equations, outputs = list(program.equations), []
    for v, place in zip(kept, places):
        if place is not None:
            moved = Var(v.type)
            equations.append(Equation(ToMemory(place), (v,), (moved,), None))
            v = moved
        outputs.append(v)
    whole = Program(program.inputs, equations, [*results, *outputs], program.name)
    return pruned(whole, [True] * len(whole.outputs))


def spliced(program: Program) -> Program:
    """The program with its calls inlined, so that the policy decides about each of their equations."""
    if not any([type(e.op) is Call for e in program.equations]):
        return program
    env: dict[Any, Any] = {}
    equations: list[Equation] = []

    def walk(inner: Program) -> None:
        for e in inner.equations:
            operands = tuple([env.get(v, v) for v in e.operands])
            if type(e.op) is Call:
                env.update(zip(e.op.program.inputs, operands))
                walk(e.op.program)
                env.update(zip(e.results, [env.get(v, v) for v in e.op.program.outputs]))
            else:  # a program may be called twice, so its variables are renamed
                results = tuple([Var(v.type) for v in e.results])
                env.update(zip(e.results, results))
                equations.append(Equation(e.op, operands, results, e.source))

    walk(program)
    return Program(program.inputs, equations, [env.get(v, v) for v in program.outputs], program.name)


class Name(LinearOp):
    """The identity op that names its operand for policies."""

    label: str

    def result_type(self, x: ArrayType) -> ArrayType:
        return x

    def lower(self, build: Any, x: Any) -> Any:
        return x

    def transpose(self, cotangent: Any, x: Any) -> Any:
        return (cotangent,)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *values), masks[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return bind(self, *primals), tangents[0]

    def batch(self, batched: tuple[bool, ...], x: Any) -> Any:
        return bind(self, x)


# -- policies ---------------------------------------------------------------------------------------------------------


def everything_saveable(op: Any, types: Sequence[ArrayType]) -> bool:
    """Save all intermediate values, as without `remat`."""
    return True


def nothing_saveable(op: Any, types: Sequence[ArrayType]) -> bool:
    """Save no intermediate values."""
    return False


def dots_saveable(op: Any, types: Sequence[ArrayType]) -> bool:
    """Save the results of matrix products."""
    return isinstance(op, contraction.DotGeneral)


def dots_with_no_batch_dims_saveable(op: Any, types: Sequence[ArrayType]) -> bool:
    """Save the results of matrix products without batch axes, such as those with weights but not those in attention."""
    return isinstance(op, contraction.DotGeneral) and not op.batch_axes[0]


def save_any_names_but_these(*names: str) -> Policy:
    """Save all named values except those with these names; see `checkpoint_name`."""
    return lambda op, types: isinstance(op, Name) and op.label not in names


def save_anything_except_these_names(*names: str) -> Policy:
    """Save all values except those with these names; see `checkpoint_name`."""
    return lambda op, types: not (isinstance(op, Name) and op.label in names)


def save_only_these_names(*names: str) -> Policy:
    """Save only values with these names; see `checkpoint_name`."""
    return lambda op, types: isinstance(op, Name) and op.label in names


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Save the values that at least one of two policies saves."""
    return lambda op, types: first(op, types) or second(op, types)


def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str],
    offload_src: str = "device", offload_dst: str = "pinned_host",
) -> Policy:  # fmt: skip
    """Save values with the first names, and offload values with the second names to `offload_dst`."""

    def policy(op: Any, types: Sequence[ArrayType]) -> bool | Offload:
        if not isinstance(op, Name):
            return False
        if op.label in names_which_can_be_offloaded:
            return Offload(offload_dst)
        return op.label in names_which_can_be_saved

    return policy


def offload_dot_with_no_batch_dims(offload_src: str = "device", offload_dst: str = "pinned_host") -> Policy:
    """Offload the results of matrix products without batch axes to `offload_dst`."""
    return lambda op, types: Offload(offload_dst) if dots_with_no_batch_dims_saveable(op, types) else False


checkpoint_policies = types.SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    save_any_names_but_these=save_any_names_but_these,
    save_anything_except_these_names=save_anything_except_these_names,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
)


# -- the public functions ---------------------------------------------------------------------------------------------


_P = ParamSpec("_P")
_R = TypeVar("_R")


@overload
def remat(
    fun: Callable[_P, _R],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[_P, _R]: ...
@overload
def remat(
    fun: None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
def remat(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Rematerialization: make `fun` recompute its intermediate values in the backward pass instead of storing them.

    Args:
        policy: selects the intermediate values to save: one of `checkpoint_policies`; by default none are saved.
        prevent_cse: whether to keep the compiler from merging the recomputation with the original computation. False
            is safe inside `scan`, where the two are in different loops.
        static_argnums: positions of arguments that are Python values, not arrays.

    >>> import atled, atled.numpy as jnp
    >>> f = remat(lambda x: jnp.sin(jnp.sin(x)), policy=checkpoint_policies.nothing_saveable)
    >>> round(float(atled.grad(f)(1.0)), 4)
    0.36
    """
    if fun is None:
        return lambda f: remat(f, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    if not all([isinstance(n, int) for n in numbers]):
        raise TypeError(f"remat: static_argnums must be an int or a tuple of ints; got {static_argnums!r}.")

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        try:
            return _run(fun, policy, prevent_cse, _static(checkpointed.__name__, numbers, len(args)), args, kwargs)
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    checkpointed.__name__ = str(getattr(fun, "__name__", "remat"))
    checkpointed.__doc__ = getattr(fun, "__doc__", None)
    checkpointed.__wrapped__ = fun  # type: ignore[attr-defined]
    return checkpointed


def _static(name: str, numbers: tuple[int, ...], count: int) -> set[int]:
    """The positions of static arguments in a call with `count` positional arguments."""
    for n in numbers:
        if not -count <= n < count:
            raise ValueError(
                f"remat: {name} is called with {count} positional arguments; got static_argnums={n}."
                "\n  try: pass the static argument by position."
            )
    return {n % count for n in numbers}


def _run(fun: Any, policy: Any, prevent_cse: bool, static: set[int], args: tuple[Any, ...], kwargs: Any) -> Any:
    dynamic = tuple([x for i, x in enumerate(args) if i not in static])
    leaves, structure = tree.flatten((dynamic, kwargs))
    if runs_in_python():
        return fun(*args, **kwargs)

    def merged(given: Any, named: Any) -> Any:
        remaining = iter(given)
        return fun(*[x if i in static else next(remaining) for i, x in enumerate(args)], **named)

    merged.__name__ = str(getattr(fun, "__name__", "remat"))
    recorded = record_tree(merged, structure, [type_of(x) for x in leaves])
    operands = [*recorded.captured, *leaves]
    if state.level == 0 and responsible(operands).level == 0:  # no operand is transformed
        results = evaluate(recorded.program, operands)
        types = recorded.program.output_types
        return recorded.structure.unflatten([_as_array(x, t) for x, t in zip(results, types, strict=True)])
    return recorded.structure.unflatten(list(bind(Checkpoint(recorded.program, policy, prevent_cse), *operands)))


def _as_array(x: Any, t: ArrayType) -> Any:
    """A result as an array: a literal of the program or an argument may be a number."""
    return x if isinstance(x, Array) else as_array(x.value if type(x) is Literal else x, t)


def checkpoint_name(x: Any, name: str) -> Any:
    """The arrays of a tree, named for the policies of `remat`.

    >>> import atled.numpy as jnp
    >>> checkpoint_name(jnp.ones(2), "activations")
    Array([1., 1.], dtype=float32)
    """
    return tree.map(lambda v: bind(Name(name), v), x)
