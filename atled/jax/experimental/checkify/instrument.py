"""Instruments programs for `checkify`: the current error becomes their first inputs and outputs.

`sites_of` finds the checks of a program, explicit and automatic; `instrumented` makes the program that evaluates them.
Programs inside ops are instrumented in the same way: loops carry the error, branches return it, calls pass it on. The
error keeps the first failure in the order of execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from atled.core.array import type_of
from atled.core.program import Equation, Literal, Program, Var, evaluate, record_closed, subprograms
from atled.core.sharding import PartitionSpec
from atled.core.trace import bind, state
from atled.core.types import ArrayType
from atled.higher_order.call import Call, Rule, TunedCall
from atled.higher_order.composite import Composite
from atled.higher_order.cond import Cond
from atled.higher_order.custom_derivative_calls import CustomJvp, CustomVjp
from atled.higher_order.frontend_attributes import MarkedCall
from atled.higher_order.remat import Checkpoint
from atled.higher_order.scan import Scan
from atled.higher_order.shard_map import ShardMap, scope
from atled.higher_order.while_loop import While
from atled.jax.custom_batching import CustomVmap
from atled.jax.experimental.checkify import checks
from atled.jax.experimental.checkify.checks import CODE, NONE, Check, DivisionByZeroError, NaNError, OOBError, Site
from atled.ops import conversion, elementary, elementwise, indexing, reduction, shape

_INT = np.dtype("int32")
_PAIR = (ArrayType((2,), _INT),)  # an index and its axis
_CALLS = (Call, Rule, TunedCall, Checkpoint, Composite, MarkedCall)
_HOLDS = (*_CALLS, CustomJvp, CustomVjp, CustomVmap, Cond, Scan, While, ShardMap)
# Ops that cannot produce a NaN from finite numbers: they move, select or round.
_SAFE = frozenset([
    "abs", "all_gather", "all_to_all", "assume_replicated", "bitcast_convert", "broadcast", "callback", "ceil", "clamp",
    "complex", "concatenate", "conj", "constant", "convert", "dynamic_slice", "dynamic_update_slice", "exp2",
    "expect", "floor", "gather", "imag", "iota", "max", "min", "name", "neg", "next_after", "optimization_barrier",
    "pick", "pmax", "pmin", "ppermute", "pvary", "real", "reduce_max", "reduce_min", "reduce_precision", "reshape",
    "reverse", "rng_uniform", "round_away_from_zero", "round_nearest_even", "select", "select_and_gather",
    "sharding_constraint", "sign", "slice", "sort", "split", "stop_gradient", "to_memory", "top_k", "transpose",
])  # fmt: skip
_NAMES = {"convolution": "conv_general_dilated", "betainc": "regularized_incomplete_beta"}  # JAX's names


class How(NamedTuple):
    """The enabled categories, the checks by number, and the largest number of words that a check's values take."""

    enabled: frozenset[Any]
    sites: tuple[Site, ...]
    width: int

    @property
    def types(self) -> list[ArrayType]:
        """The types of the arrays of an error."""
        return [CODE, *([ArrayType((self.width,), np.dtype("uint32"))] if self.width else [])]

    @property
    def start(self) -> list[Any]:
        """The initial arrays of an error: no failure."""
        return [NONE, *[np.zeros(t.shape, t.dtype) for t in self.types[1:]]]


def how_for(program: Program, enabled: frozenset[Any]) -> How:
    """How to instrument a program: its checks, numbered in program order."""
    sites = sites_of(program, enabled)
    return How(enabled, sites, max([s.width for s in sites], default=0))


# -- the checks of a program -------------------------------------------------------------------------------------------


def sites_of(program: Program, enabled: frozenset[Any]) -> tuple[Site, ...]:
    """The checks in a program, each once, in program order."""

    def make() -> tuple[tuple[Site, ...]]:
        sites: dict[Site, None] = {}
        for e in program.equations:
            if type(e.op) is Check:
                sites.update(dict.fromkeys([s for s in e.op.sites if s.category in enabled]))
            elif type(e.op) in _HOLDS:
                for inner in subprograms(e.op):
                    sites.update(dict.fromkeys(sites_of(inner, enabled)))
            else:
                sites.update(dict.fromkeys(_automatic(e, enabled)))
        return (tuple(sites),)

    return program.memo(("sites", enabled), make)[0]


def _automatic(e: Equation, enabled: frozenset[Any]) -> list[Site]:
    """The automatic checks of an equation: those of its operands, then those of its results."""
    if not enabled & {DivisionByZeroError, NaNError, OOBError}:
        return []
    place, sites = checks.place_of(e.source), []
    if DivisionByZeroError in enabled and e.op.name == "div" and not _is_nonzero(e.operands[1]):
        sites.append(Site(DivisionByZeroError, "div", place=place))
    if OOBError in enabled and _index_axes(e) is not None:
        sites.append(Site(OOBError, e.op.name, e.operands[0].type.shape, _PAIR, place=place))
    is_computed = e.op.name not in _SAFE
    if NaNError in enabled and is_computed and any([v.type.kind in "fc" and v.type.size for v in e.results]):
        sites.append(Site(NaNError, _name(e.op), place=place))
    return sites


def _name(op: Any) -> str:
    if isinstance(op, indexing.Scatter):
        return "scatter" if op.combine == "set" else f"scatter-{op.combine}"
    return _NAMES.get(str(op.name), str(op.name))


def _is_nonzero(x: Var | Literal) -> bool:
    return isinstance(x, Literal) and bool(x.value != 0)


def _index_axes(e: Equation) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The indexed axes of an equation and the highest valid index for each; None if it has no indices."""
    op, types = e.op, [v.type for v in e.operands]
    if isinstance(op, indexing.Gather):
        axes, sizes, count = op.axes.start_map, op.sizes, types[1].size
    elif isinstance(op, indexing.Scatter):
        axes, sizes, count = op.axes.start_map, op.sizes(types[0], types[2]), types[1].size
    elif isinstance(op, (indexing.DynamicSlice, indexing.DynamicUpdateSlice)):
        sizes = op.sizes if isinstance(op, indexing.DynamicSlice) else types[1].shape
        axes, count = tuple(range(len(sizes))), len(sizes)
    else:
        return None
    return (tuple(axes), tuple([types[0].shape[a] - sizes[a] for a in axes])) if count else None


# -- the error during evaluation ---------------------------------------------------------------------------------------


class _Error:
    """The current error while a program is evaluated."""

    def __init__(self, how: How, arrays: Sequence[Any]) -> None:
        self.how = how
        self.numbers = {s: i for i, s in enumerate(how.sites)}
        self.arrays = list(arrays)

    def note(self, code: Any, is_failure: Any, words: Any) -> None:
        """Record a failure unless an earlier one is recorded; `words` is None if the message needs no values."""
        is_new = elementwise.logical_and(is_failure, elementwise.lt(self.arrays[0], np.int32(0)))
        self.arrays[0] = elementwise.select(is_new, code, self.arrays[0])
        if words is not None and self.how.width:
            flags = shape.broadcast(is_new, (self.how.width,), ())
            self.arrays[1] = elementwise.select(flags, checks.fitted(words, self.how.width), self.arrays[1])

    def add(self, site: Site, is_failure: Any, words: Any = None) -> None:
        number = self.numbers.get(site)
        if number is not None:  # checks in rules that were traced later are ignored
            self.note(np.int32(number), is_failure, words)

    def check(self, op: Check, code: Any, *words: Any) -> None:
        """Record the failure of a `Check`, whose code counts the sites of that op."""
        table = [self.numbers.get(s, -1) for s in op.sites]
        if all([n < 0 for n in table]):
            return
        number: Any = np.int32(table[0])
        for i, n in enumerate(table[1:], 1):
            number = elementwise.select(elementwise.eq(code, np.int32(i)), np.int32(n), number)
        number = elementwise.select(elementwise.lt(code, np.int32(0)), NONE, number)
        self.note(number, elementwise.ge(number, np.int32(0)), words[0] if words else None)

    def before(self, e: Equation, operands: Sequence[Any], sites: Sequence[Site]) -> None:
        for site in sites:
            if site.category is DivisionByZeroError:
                t = type_of(operands[1])
                if t.size:
                    self.add(site, _any(elementwise.eq(operands[1], np.zeros((), t.dtype))))
            elif site.category is OOBError:
                self.add(site, *_outside(e, operands))

    def after(self, results: Sequence[Any], sites: Sequence[Site]) -> None:
        for site in sites:
            if site.category is NaNError:
                flags = [_any(elementwise.ne(x, x)) for x in results if type_of(x).kind in "fc" and type_of(x).size]
                is_bad = flags[0]
                for other in flags[1:]:
                    is_bad = elementwise.logical_or(is_bad, other)
                self.add(site, is_bad)


def _any(flags: Any) -> Any:
    axes = range(len(type_of(flags).shape))
    return reduction.reduce_or(flags, axes) if axes else flags


def _outside(e: Equation, operands: Sequence[Any]) -> tuple[Any, Any]:
    """Whether an index is out of bounds, and the words for the first such index: the index and its axis."""
    indexed = _index_axes(e)
    assert indexed is not None
    axes, limits = indexed
    if isinstance(e.op, (indexing.Gather, indexing.Scatter)):
        indices = operands[1]
    else:
        starts = operands[1:] if isinstance(e.op, indexing.DynamicSlice) else operands[2:]
        indices = shape.concatenate([shape.reshape(s, (1,)) for s in starts], 0)
    t = type_of(indices)
    ends, own = np.iinfo(np.int32), np.iinfo(t.dtype)
    low, high = [np.asarray(x, t.dtype) for x in (max(own.min, ends.min), min(own.max, ends.max))]
    wide = conversion.convert(elementwise.clamp(low, indices, high), np.int32)  # stays out of bounds
    t = type_of(wide)
    limit = np.minimum(limits, ends.max).astype(np.int32)
    most = shape.broadcast(shape.constant(limit), t.shape, (len(t.shape) - 1,))
    flags = elementwise.logical_or(elementwise.lt(wide, np.zeros((), t.dtype)), elementwise.gt(wide, most))
    flags = checks.flat(flags)
    at = reduction.argmax(flags, 0, np.int32)
    index = indexing.dynamic_slice(checks.flat(wide), [at], (1,))
    column = elementary.rem(at, np.int32(len(axes)))
    axis = indexing.dynamic_slice(shape.constant(np.asarray(axes, np.int32)), [column], (1,))
    return _any(flags), checks.words_of([shape.concatenate([index, axis], 0)])


# -- programs ----------------------------------------------------------------------------------------------------------


def instrumented(program: Program, how: How) -> Program:
    """The program with the current error before its inputs and the updated error before its outputs."""

    def f(*operands: Any) -> list[Any]:
        n = len(how.types)
        error = _Error(how, operands[:n])
        out = _run(program, operands[n:], error)
        return [*error.arrays, *out]

    def make() -> Program:
        return record_closed(f, [*how.types, *program.input_types], program.name)

    return program.memo(("instrumented", how, tuple(state.axes)), make)


def _run(program: Program, operands: Sequence[Any], error: _Error) -> list[Any]:
    env: dict[Any, Any] = dict(zip(program.inputs, operands, strict=True))
    before, enabled = state.source, error.how.enabled
    try:
        for e in program.equations:
            state.source = e.source or before
            given = [env[v] if type(v) is Var else v for v in e.operands]
            if type(e.op) is Check:
                error.check(e.op, *given)
                continue
            rule = _RULES.get(type(e.op))
            if rule is not None and any([sites_of(p, enabled) or _checks(p) for p in subprograms(e.op)]):
                out: Any = rule(e.op, error, given)
            else:
                sites = _automatic(e, enabled) if rule is None else []
                error.before(e, given, sites)
                out = bind(e.op, *given)
                error.after(out if type(out) is tuple else (out,), sites)
            env.update(zip(e.results, out if type(out) in (tuple, list) else [out], strict=True))
    finally:
        state.source = before
    return [env[v] if type(v) is Var else v for v in program.outputs]


def _checks(program: Program) -> bool:
    """Whether a program has an explicit check, which must be removed even if its category is disabled."""

    def make() -> tuple[bool]:
        inner = [p for e in program.equations if type(e.op) in _HOLDS for p in subprograms(e.op)]
        return (any([type(e.op) is Check for e in program.equations]) or any([_checks(p) for p in inner]),)

    return program.memo("holds checks", make)[0]


def _finish(error: _Error, out: Sequence[Any]) -> list[Any]:
    """Take the new error from the first results of an instrumented op; returns the other results."""
    n = len(error.arrays)
    error.arrays = list(out[:n])
    return list(out[n:])


def _call(op: Call, error: _Error, operands: list[Any]) -> list[Any]:
    return _finish(error, bind(op.again(instrumented(op.program, error.how)), *error.arrays, *operands))


def _custom_jvp(op: CustomJvp, error: _Error, operands: list[Any]) -> list[Any]:
    how = error.how  # the error has no tangent, like captured values
    instrumented_op = CustomJvp(
        instrumented(op.program, how), op.rule.then(lambda p: instrumented(p, how)), op.captured + len(error.arrays)
    )
    return _finish(error, bind(instrumented_op, *error.arrays, *operands))


def _custom_vjp(op: CustomVjp, error: _Error, operands: list[Any]) -> list[Any]:
    how = error.how
    forward = op.forward.then(lambda p: instrumented(p, how))
    instrumented_op = CustomVjp(instrumented(op.program, how), forward, op.backward, op.captured + len(error.arrays))
    return _finish(error, bind(instrumented_op, *error.arrays, *operands))


def _custom_vmap(op: CustomVmap, error: _Error, operands: list[Any]) -> list[Any]:
    n = len(error.arrays)

    def rule(size: int, batched: Sequence[bool], xs: Sequence[Any]) -> Any:  # the user's rule, without checks
        out, flags = op.rule(size, list(batched[n:]), xs[n:])
        return [*xs[:n], *out], [*batched[:n], *flags]

    return _finish(error, bind(CustomVmap(instrumented(op.program, error.how), rule), *error.arrays, *operands))


def _cond(op: Cond, error: _Error, operands: list[Any]) -> list[Any]:
    instrumented_op = Cond(tuple([instrumented(b, error.how) for b in op.branches]))
    return _finish(error, bind(instrumented_op, operands[0], *error.arrays, *operands[1:]))


def _scan(op: Scan, error: _Error, operands: list[Any]) -> list[Any]:
    constants, carry, xs = op.parts(operands)
    body = _with_error_after(op.body, error.how, len(constants))
    instrumented_op = op.again(body, len(constants), len(carry) + len(error.arrays))
    return _finish(error, bind(instrumented_op, *constants, *error.arrays, *carry, *xs))


def _with_error_after(program: Program, how: How, count: int) -> Program:
    """The instrumented program with its first `count` inputs moved before the error."""
    inner = instrumented(program, how)
    n, types = len(how.types), program.input_types

    def make() -> Program:
        f = lambda *xs: evaluate(inner, [*xs[count : count + n], *xs[:count], *xs[count + n :]])  # noqa: E731
        return record_closed(f, [*types[:count], *how.types, *types[count:]], program.name)

    return inner.memo(("error after", count), make) if count else inner


def _while(op: While, error: _Error, operands: list[Any]) -> list[Any]:
    how, n = error.how, len(error.arrays)
    asks, does, carry = op.parts(operands)
    ask, step = instrumented(op.condition, how), instrumented(op.body, how)
    a, b = len(asks), len(asks) + len(does)

    def turn(*xs: Any) -> list[Any]:
        errors = xs[b : b + n]
        out = evaluate(step, [*errors, *xs[a:b], *xs[b + n + 1 :]])
        answer = evaluate(ask, [*out[:n], *xs[:a], *out[n:]])  # the error, and whether the loop continues
        return [*answer, *out[n:]]

    def goes_on(*xs: Any) -> list[Any]:
        return [xs[n]]

    types = [*how.types, *op.condition.output_types, *op.body.output_types]
    body = record_closed(turn, [*[type_of(x) for x in (*asks, *does)], *types], op.body.name)
    condition = record_closed(goes_on, types, op.condition.name)
    first = _finish(error, bind(Call(ask), *error.arrays, *asks, *carry))
    out = _finish(error, bind(While(condition, body, 0, b), *asks, *does, *error.arrays, *first, *carry))
    return out[1:]


def _shard_map(op: ShardMap, error: _Error, operands: list[Any]) -> list[Any]:
    how, n, here = error.how, len(error.arrays), list(op.axes_here)

    def part(*xs: Any) -> list[Any]:
        out = evaluate(inner, xs)
        return [*[shape.add_axis(x, 1) for x in out[:n]], *out[n:]]

    with scope(op.mesh, here):
        inner = instrumented(op.program, how)
        program = record_closed(part, inner.input_types, op.program.name)
    side_by_side = PartitionSpec(tuple(here) if len(here) > 1 else here[0])
    again = op.again(program, [*[PartitionSpec()] * n, *op.ins], [*[side_by_side] * n, *op.outs])
    out = list(bind(again, *error.arrays, *operands))
    return _finish(error, [*checks.earliest_of(*out[:n]), *out[n:]])


_RULES: dict[Any, Callable[..., list[Any]]] = {
    **dict.fromkeys(_CALLS, _call), CustomJvp: _custom_jvp, CustomVjp: _custom_vjp, CustomVmap: _custom_vmap,
    Cond: _cond, Scan: _scan, While: _while, ShardMap: _shard_map,
}  # fmt: skip
