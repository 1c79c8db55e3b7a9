"""`scan`: repeats a program a known number of times, over slices of arrays, with a carry.

Reverse mode is in `scan_reverse_mode.py`, masked tangents in `scan_tangent_masks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.compiler.builder import Value
from atled.core import error_hints, errors, tree
from atled.core.array import describe, type_of
from atled.core.list_partition import with_zeros
from atled.core.op import Op, instantiate
from atled.core.program import Program, evaluate, record, subprograms
from atled.core.sharding import physical
from atled.core.trace import bind, step
from atled.core.tree_diff import difference
from atled.core.types import ArrayType, Zero
from atled.engine.progress import Progress
from atled.higher_order import scan_reverse_mode
from atled.higher_order.call import has_effects, named_axes
from atled.higher_order.callbacks import effect_callback
from atled.higher_order.cond import Recorded, cond, record_tree, runs_in_python
from atled.higher_order.scan_reverse_mode import cut
from atled.higher_order.scan_tangent_masks import MaskedScan
from atled.ops import conversion, elementary, elementwise, indexing, shape
from atled.transforms.jvp import jvp_program
from atled.transforms.masked_tangents import selects
from atled.transforms.vmap import PartlyBatched, batch_program, vmap


class Scan(Op):
    """Repeats `body`. Operands: constants, initial carry, arrays to slice. Results: final carry, stacked outputs."""

    repeats = True
    gives_tuple = True
    splits = True
    takes_keys = True
    body: Program
    length: int
    is_reversed: bool
    constants: int
    carries: int
    unroll: int = 1

    @property
    def axes(self) -> tuple[Any, ...]:
        """The named axes that collectives in the body run over."""
        return named_axes(self.body)

    @property
    def is_collective(self) -> bool:  # type: ignore[override]
        return bool(self.axes)

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return has_effects(self.body)

    def varies(self, of: Any, given: list[Any]) -> list[Any]:
        constants, carry, slices = self.parts(given)
        while True:
            axes = of(self.body, [*constants, *carry, *slices])
            wider = [a | b for a, b in zip(carry, axes)]
            if wider == carry:
                return axes if self.length else [*carry, *axes[len(carry) :]]
            carry = wider

    def parts(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Separate operands, or flags for operands, into those of constants, carry and slices."""
        n, m = self.constants, self.constants + self.carries
        return list(operands[:n]), list(operands[n:m]), list(operands[m:])

    def again(self, body: Program, constants: int, carries: int, flips: bool = False) -> Scan:
        """The same loop with another body."""
        return Scan(body, self.length, self.is_reversed != flips, constants, carries, self.unroll)

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        out = self.body.output_types
        stacked = [ArrayType((self.length, *t.shape), t.dtype, t.weak) for t in out[self.carries :]]
        return (*out[: self.carries], *stacked)

    def stepwise(self, *operands: Any) -> Any:
        constants, carry, xs = self.parts(operands)
        rows: list[list[Any]] = []
        for k in range(self.length):
            at = self.length - 1 - k if self.is_reversed else k
            with step("scan", at, self.length):
                out = evaluate(self.body, [*constants, *carry, *[_take(x, np.int32(at)) for x in xs]])
            carry = out[: self.carries]
            rows.append(out[self.carries :])
        return (*carry, *_stacked(rows, self.is_reversed, self.result_type()[self.carries :]))

    # -- lowering ----------------------------------------------------------------------------------------------------

    def lower(self, build: Any, *operands: Any) -> Any:
        constants, carry, xs = self.parts(operands)
        types = self.result_type()
        stacks = [_empty(build, t) for t in types[self.carries :]]
        trips = self.length // max(self.unroll, 1)
        values = [*carry, *stacks]

        effects = self.has_effect

        def turn(b: Any, position: Any, values: Sequence[Any]) -> list[Any]:
            slices = [b.apply(_take, x, position) for x in xs]
            out = b.inline(self.body, [*constants, *values[: self.carries], *slices])
            stacked = [b.apply(_put, s, y, position) for s, y in zip(values[self.carries :], out[self.carries :])]
            return [*out[: self.carries], *stacked]

        def position(b: Any, number: Any, offset: int) -> Any:
            if self.is_reversed:
                return b.apply(lambda n: elementwise.sub(np.int32(self.length - 1 - offset), n), number)
            return b.apply(lambda n: elementwise.add(n, np.int32(offset)), number) if offset else number

        integer = ArrayType((), np.dtype("int32"))
        if trips > 1:
            kinds = [integer, *types]
            if effects:  # the effect token is part of the carry
                kinds, values = [*kinds, build.waited().type], [*values, build.waited()]

            def goes_on(b: Any, number: Any, *_: Any) -> Any:
                return b.apply(lambda n: elementwise.lt(n, np.int32(trips * self.unroll)), number)

            def body(b: Any, number: Any, *values: Any) -> list[Any]:
                state = list(values)
                if effects:
                    b.token = state.pop()
                for k in range(self.unroll):
                    state = turn(b, position(b, number, k), state)
                state = [*state, b.token] if effects else state
                return [b.apply(lambda n: elementwise.add(n, np.int32(self.unroll)), number), *state]

            start = build.constant(0, integer)
            regions = [build.region(kinds, goes_on), build.region(kinds, body)]
            ends = build.emit("stablehlo.while", [start, *values], kinds, regions=regions)
            values = list(ends[1:]) if len(kinds) > 1 else []  # with a single type, `emit` returns no tuple
            if effects:
                build.token = values.pop()
            done = trips * self.unroll
        else:
            done = 0
        for k in range(done, self.length):
            at = self.length - 1 - k if self.is_reversed else k
            values = turn(build, build.constant(at, integer), values)
        return tuple(values)

    # -- forward mode ------------------------------------------------------------------------------------------------

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        given = [type(t) is not Zero for t in tangents]
        c_flags, moves, x_flags = self.parts(given)
        count = self.carries
        while True:  # a carry has a tangent if its initial value has one, or if some step gives it one
            _, out = jvp_program(self.body, (*c_flags, *moves, *x_flags))
            new = [m or o for m, o in zip(moves, out[:count])]
            if new == moves:
                break
            moves = new
        y_flags = out[count:]
        derivative, _ = jvp_program(self.body, (*c_flags, *moves, *x_flags), (*moves, *y_flags))
        (c, s, x), (dc, ds, dx) = self.parts(primals), self.parts(tangents)
        dc, dx = [t for t in dc if type(t) is not Zero], [t for t in dx if type(t) is not Zero]
        ds = [instantiate(t) for t, m in zip(ds, moves) if m]
        sizes = (len(c), len(dc), len(s), len(ds), len(x), len(dx))

        def body(*operands: Any) -> list[Any]:
            c, dc, s, ds, x, dx = cut(operands, sizes)
            out = evaluate(derivative, [*c, *s, *x, *dc, *ds, *dx])
            plain, speeds = out[: len(self.body.outputs)], out[len(self.body.outputs) :]
            return [*plain[:count], *speeds[: len(ds)], *plain[count:], *speeds[len(ds) :]]

        tc, ts, tx = self.parts(self.body.input_types)
        types = [
            *tc, *[t.tangent() for t, f in zip(tc, c_flags) if f],
            *ts, *[t.tangent() for t, f in zip(ts, moves) if f],
            *tx, *[t.tangent() for t, f in zip(tx, x_flags) if f],
        ]  # fmt: skip
        new_body = record(body, types, self.body.name)[0]
        op = self.again(new_body, len(c) + len(dc), count + len(ds))
        out = bind(op, *c, *dc, *s, *ds, *x, *dx)
        carry, carry_speeds, ys, y_speeds = cut(out, (count, len(ds), len(self.body.outputs) - count, sum(y_flags)))
        return (*carry, *ys), with_zeros((*moves, *y_flags), [*carry_speeds, *y_speeds], self.result_type())

    # -- reverse mode ------------------------------------------------------------------------------------------------

    def split(self, tape: Any, operands: Sequence[Any]) -> Any:
        return scan_reverse_mode.split(self, tape, operands)

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        return scan_reverse_mode.transpose(self, cotangent, operands)

    @property
    def selects(self) -> bool:  # type: ignore[override]
        return selects(self.body)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        return MaskedScan(self, values, masks).results()

    # -- batching ----------------------------------------------------------------------------------------------------

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        size, name, count = batch.size, batch.axis_name, self.carries
        c_flags, flags, x_flags = self.parts(batched)
        while True:
            _, out = batch_program(self.body, (*c_flags, *flags, *x_flags), size, axis_name=name)
            new = [a or b for a, b in zip(flags, out[:count])]
            if new == flags:
                break
            flags = new
        out_batched = (*flags, *out[count:])
        body, _ = batch_program(self.body, (*c_flags, *flags, *x_flags), size, out_batched, name)
        c, s, x = self.parts(operands)
        s = [v if b or not f else shape.add_axis(v, size) for v, f, b in zip(s, flags, self.parts(batched)[1])]
        x = [shape.move_axis(v, 1, 0) if f else v for v, f in zip(x, x_flags)]  # the loop slices axis 0
        results = bind(self.again(body, self.constants, count), *c, *s, *x)
        ys = [shape.move_axis(v, 0, 1) if f else v for v, f in zip(results[count:], out_batched[count:])]
        return PartlyBatched((*results[:count], *ys), out_batched)


def _empty(build: Any, t: ArrayType) -> Any:
    """A buffer of zeros for stacked results."""
    zeros = build.apply(lambda: shape.zeros(ArrayType(*physical(t))))
    return Value(zeros.handle, t, zeros.literal)


def _take(x: Any, position: Any) -> Any:
    """The slice of an array at a position along its first axis."""
    dims = type_of(x).shape
    starts = [position] + [np.int32(0)] * (len(dims) - 1)
    return shape.reshape(bind(indexing.DynamicSlice((1, *dims[1:])), x, *starts), dims[1:])


def _stacked(rows: list[list[Any]], is_reversed: bool, types: Sequence[ArrayType]) -> list[Any]:
    """The outputs of all steps, stacked along a new first axis in the order of the slices."""
    if not rows:
        return [shape.zeros(t) for t in types]
    ordered = rows[::-1] if is_reversed else rows
    return [shape.concatenate([shape.add_axis(x, 1) for x in column], 0) for column in zip(*ordered)]


def _put(x: Any, value: Any, position: Any) -> Any:
    """The array with `value` as its slice at a position along the first axis."""
    dims = type_of(x).shape
    starts = [position] + [np.int32(0)] * (len(dims) - 1)
    return bind(indexing.DynamicUpdateSlice(), x, shape.reshape(value, (1, *dims[1:])), *starts)


# -- the public functions ---------------------------------------------------------------------------------------------


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    progress: bool | str = False,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Run `carry, y = f(carry, x)` for every slice x of the arrays in `xs`; returns the final carry and all y, stacked.

    The body is compiled once, regardless of the number of steps, which `length` gives if `xs` has no arrays. `reverse`
    runs from the last slice to the first. `unroll` is the number of steps in one iteration of the compiled loop. With
    `progress=True`, or a label, a progress bar is shown. JAX's `_split_transpose` has no effect.

    >>> import atled.numpy as jnp
    >>> scan(lambda total, x: (total + x, total), 0.0, jnp.arange(4.0))
    (Array(6., dtype=float32), Array([0., 0., 1., 3.], dtype=float32))
    """
    try:
        label = progress if isinstance(progress, str) else "scan" if progress else None
        return _scan(f, init, xs, length, reverse, unroll, label)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _scan(
    f: Any, init: Any, xs: Any, length: int | None, reverse: bool, unroll: int | bool, label: str | None = None
) -> tuple[Any, Any]:
    slices, x_structure = tree.flatten(xs)
    types = [type_of(x) for x in slices]
    if any([t.ndim == 0 for t in types]):
        bad = next(t for t in types if t.ndim == 0)
        raise ValueError(
            f"scan: the arrays in xs are sliced along their first axis; got {bad}, which has none."
            "\n  try: numpy.array(xs) to convert a list of numbers to an array."
        )
    lengths = {t.shape[0] for t in types} | (set() if length is None else {int(length)})
    if len(lengths) > 1:
        named = [f"{t} in xs" for t in types] + ([] if length is None else [f"length={length}"])
        raise ValueError(
            f"scan: all arrays must have the same length along the first axis; got {', '.join(named)}."
            f"\n  try: x[:{min(lengths)}] for the longer arrays, or pad the shorter ones."
        )
    if not lengths:
        raise ValueError("scan: xs has no arrays, so the length is unknown.\n  try: scan(f, init, length=n).")
    (count,) = lengths
    if not isinstance(unroll, (bool, int)) or unroll < 0:
        raise ValueError(f"scan: unroll must be a non-negative number of steps or a bool; got {describe(unroll)}.")
    if label is not None:
        f = _reporting(f, count, bool(reverse), label)
        slices, x_structure = tree.flatten((np.arange(count, dtype=np.int32), xs))
        types = [type_of(x) for x in slices]
    if runs_in_python() and count:
        return _in_python(f, init, slices, x_structure, count, reverse)
    steps = max(count if unroll is True else int(unroll), 1)
    cuts = [ArrayType(t.shape[1:], t.dtype, t.weak) for t in types]
    one = x_structure.unflatten(list(range(len(cuts))))
    start, structure, body = carried("scan", f, (init,), _pair, (one, cuts))
    ys = body.structure.children[1]
    op = Scan(body.program, count, bool(reverse), len(body.captured), len(start), steps)
    out = bind(op, *body.captured, *start, *slices)
    (carry,) = structure.unflatten(list(out[: len(start)]))
    return carry, ys.unflatten(list(out[len(start) :]))


def _in_python(
    f: Any, init: Any, slices: list[Any], structure: tree.TreeDef, count: int, reverse: bool
) -> tuple[Any, Any]:
    """The same loop as plain Python, because jit is disabled."""
    carry = tree.map(lambda v: conversion.convert(v, type_of(v).dtype, type_of(v).weak), init)
    rows, kinds = [], None
    for k in range(count):
        at = count - 1 - k if reverse else k
        with step("scan", at, count):
            carry, y = f(carry, structure.unflatten([_take(x, np.int32(at)) for x in slices]))
        flat, kinds = tree.flatten(y)
        rows.append(flat)
    assert kinds is not None
    return carry, kinds.unflatten(_stacked(rows, reverse, ()))


def _reporting(f: Any, count: int, reverse: bool, label: str) -> Any:
    """A loop body that updates a progress bar about 100 times; its slices are pairs of an index and a slice for f."""
    bar, every = Progress((), 0, count, label=label), max(count // 100, 1)

    def report(done: Any) -> None:
        bar.reach(int(done))
        if done == count - 1:
            bar.reach(count)

    def body(carry: Any, x: Any) -> Any:
        at, inner = x
        done = elementwise.sub(np.int32(count - 1), at) if reverse else at
        is_due = elementwise.eq(elementary.rem(done, np.int32(every)), np.int32(0))
        is_due = elementwise.logical_or(is_due, elementwise.eq(done, np.int32(count - 1)))
        cond(is_due, lambda n: effect_callback(report, (n,), {}, "scan"), lambda n: None, done)
        return f(carry, inner)

    return body


def _pair(out: Any) -> Any:
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        got = f"a tuple of {len(out)}" if isinstance(out, tuple) else describe(out)
        raise TypeError(
            f"scan: the function must return a pair (carry, y); got {got}."
            "\n  try: return carry, None if there is nothing to stack."
        )
    return ((out[0],), out[1])


def carried(
    name: str, f: Callable[..., Any], init: tuple[Any, ...], arrange: Callable[[Any], Any], extra: Any = None
) -> tuple[list[Any], tree.TreeDef, Recorded]:
    """Trace the body of a loop. Returns the initial carry, its tree, and the body.

    The carry keeps its tree and types; Python numbers in the initial carry take the type that the body returns.
    `arrange(out)` is the new carry, or a pair (carry, results). `extra`: the tree and leaf types of one more argument.
    """
    leaves, structure = tree.flatten(init)
    types = [type_of(x) for x in leaves]
    more, cuts = ((), []) if extra is None else ((extra[0],), list(extra[1]))
    inputs = tree.structure((*init, *more))

    def run(*args: Any) -> Any:
        return arrange(f(*args))

    run.__name__ = getattr(f, "__name__", name)
    while True:
        body = record_tree(run, inputs, [*types, *cuts])
        got = body.structure if extra is None else body.structure.children[0]
        if got != structure:
            path, first, then = difference(structure, got) or ("", "", "")
            rest = ", and any other values as the second result." if name == "scan" else "."
            raise TypeError(
                errors.explained(
                    f"{name}: the carry must keep its tree; it starts as {structure.children[0]}, "
                    f"and the body gives {got.children[0] if got.children else got}."
                    f"\n  The first difference: carry{path.removeprefix('[0]')} starts as {first}, and becomes {then}.",
                    f"return the same tuple or dict as the start{rest}",
                )
            )
        out = body.program.output_types[: len(types)]
        if all([(a.shape, a.dtype) == (b.shape, b.dtype) for a, b in zip(types, out)]):
            break
        new = [b.strong() if a.weak and a.shape == b.shape else a for a, b in zip(types, out)]
        if new == types:
            raise TypeError(_difference(name, structure, types, out))
        types = new
    settled = [a if not a.weak or b.weak else a.strong() for a, b in zip(types, out)]
    if settled != types:  # if the body makes a Python number strongly typed, it must start strongly typed
        types = settled
        strengthened = _strengthened(body, [*types, *cuts])
        body = record_tree(run, inputs, [*types, *cuts]) if strengthened is None else strengthened
    start = [x if type_of(x) is t else conversion.convert(x, t.dtype, t.weak) for x, t in zip(leaves, types)]
    return start, structure, Recorded(_with_carry(body, types), body.captured, body.structure)


def _strengthened(body: Recorded, types: Sequence[ArrayType]) -> Recorded | None:
    """The body for strongly typed inputs, or None if it would then compute in other dtypes."""
    program, count = body.program, len(body.captured)
    weak = {v for v, t in zip(program.inputs[count:], types) if v.type is not t}
    for e in program.equations:
        if not weak.isdisjoint(e.operands):
            if _gives_way(e):
                return None
            weak.update([v for v in e.results if v.type.weak])

    def f(*operands: Any) -> list[Any]:
        pairs = zip(operands, program.input_types)
        out = evaluate(program, [x if type_of(x) is t else conversion.convert(x, t.dtype, True) for x, t in pairs])
        return [conversion.convert(x, v.type.dtype) if v in weak else x for x, v in zip(out, program.outputs)]

    retyped = record(f, [*program.input_types[:count], *types], program.name)[0]
    return Recorded(retyped, body.captured, body.structure)


def _gives_way(e: Any) -> bool:
    """Whether an equation, or one in its programs, converts a weakly typed operand to another dtype."""
    if type(e.op) is conversion.Convert:
        t = e.operands[0].type
        return t.weak and t.dtype is not e.op.dtype
    return any([_gives_way(inner) for p in subprograms(e.op) for inner in p.equations])


def _with_carry(body: Recorded, types: Sequence[ArrayType]) -> Program:
    """The body with its new carry cast to exactly the carry's types, including weak types."""
    program = body.program
    if list(program.output_types[: len(types)]) == list(types):
        return program

    def f(*operands: Any) -> list[Any]:
        out = evaluate(program, operands)
        carry = [x if type_of(x) is t else conversion.convert(x, t.dtype, t.weak) for x, t in zip(out, types)]
        return [*carry, *out[len(types) :]]

    return record(f, program.input_types, program.name)[0]


def _difference(name: str, structure: tree.TreeDef, want: Sequence[ArrayType], got: Sequence[ArrayType]) -> str:
    paths = [tree.keystr(p[1:]) for p, _ in tree.leaves_with_path(structure.unflatten(list(range(len(want)))))]
    rows = [
        f"\n    carry{p}: starts as {a.strong()}, the body gives {b.strong()}"
        + (f": {a.dtype.name} became {b.dtype.name}" if a.dtype != b.dtype else "")
        for p, a, b in zip(paths, want, got)
        if (a.shape, a.dtype) != (b.shape, b.dtype)
    ]
    first, more = rows[0].strip(), "".join(rows[1:5])
    a, b = next((a, b) for a, b in zip(want, got) if (a.shape, a.dtype) != (b.shape, b.dtype))
    return errors.explained(f"{name}: the carry must keep its type; {first}.{more}", _start(name, len(want), a, b))


def _start(name: str, count: int, want: ArrayType, got: ArrayType) -> str:
    """The hint for a carry that changes its type: the line with another initial value, if the carry is one array."""
    number = {"scan": 1, "while_loop": 2}.get(name)
    template, way_out = f"{{}}.astype({got.dtype.name!r})", f"x.astype({want.dtype.name!r}) in the body."
    if want.shape != got.shape:
        template = f"{{numpy}}.full({got.shape}, {{}})"
        way_out = f"start with shape {got.shape}, or return shape {want.shape} from the body."
    if count != 1 or number is None or (want.shape != got.shape and want.shape):
        return way_out
    return error_hints.with_operand(number, template, name) or way_out


def repeat(
    body: Callable[[Any, Any], Any], count: int, init: Any, first: int = 0, dtype: Any = np.int32, unroll: int = 1
) -> Any:
    """Run `value = body(i, value)` for `count` values of i, starting from `first`; returns the last value."""

    def one(carry: Any, _: Any) -> Any:
        i, value = carry
        return (elementwise.add(i, np.ones((), dtype)), body(i, value)), None

    (_, value), _ = _scan(one, (np.asarray(first, dtype), init), None, count, False, unroll)
    return value


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Like `vmap`, but in a loop, which needs less memory: over single slices, or batches of `batch_size` slices.

    >>> import atled.numpy as jnp
    >>> map(lambda x: x * x, jnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32)
    """
    leaves, structure = tree.flatten(xs)
    if batch_size is None or not leaves:
        return scan(lambda c, x: (c, f(x)), (), xs)[1]
    count = type_of(leaves[0]).shape[0]
    size = min(batch_size, max(count, 1))
    whole = count // size * size
    blocks = [
        shape.reshape(shape.slice_in_axis(x, 0, whole, 0), (whole // size, size, *type_of(x).shape[1:])) for x in leaves
    ]
    done = scan(lambda c, x: (c, vmap(f)(x)), (), structure.unflatten(blocks))[1]
    out = tree.map(lambda y: shape.reshape(y, (whole, *type_of(y).shape[2:])), done)
    if whole == count:
        return out
    rest = vmap(f)(structure.unflatten([shape.slice_in_axis(x, whole, count, 0) for x in leaves]))
    return tree.map(lambda a, b: shape.concatenate([a, b], 0), out, rest)
