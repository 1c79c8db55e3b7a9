"""`while_loop` and `fori_loop`: repeat a program while a condition holds.

Values that the loop closes over are not carried: they are constants of the compiled loop. The number of steps is not
known, so forward mode is supported, but not `linearize` and reverse mode, which would have to store every step. A
`fori_loop` with concrete bounds is a scan, and so is a `while_loop` with `max_steps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from atled.core import errors
from atled.core.array import describe, type_of
from atled.core.list_partition import with_zeros
from atled.core.op import Op, instantiate
from atled.core.program import Program, evaluate, record
from atled.core.trace import Tracer, bind, step
from atled.core.types import ArrayType, Zero
from atled.higher_order.call import has_effects, named_axes
from atled.higher_order.cond import cond, record_tree, runs_in_python, where_lanes
from atled.higher_order.remat import remat
from atled.higher_order.scan import carried, repeat
from atled.ops import conversion, elementwise, mask_rules, reduction, shape
from atled.transforms.jvp import jvp_program
from atled.transforms.masked_tangents import (
    arrays_of,
    carried_kinds,
    mask_program,
    reaches_of,
    result_masks,
    selects,
)
from atled.transforms.vmap import PartlyBatched, batch_program


class While(Op):
    """Repeats `body` while `condition` holds. Operands: constants of the condition, constants of the body, carry."""

    repeats = True
    gives_tuple = True
    splits = True
    takes_keys = True
    condition: Program
    body: Program
    condition_constants: int
    body_constants: int

    @property
    def axes(self) -> tuple[Any, ...]:
        """The named axes that collectives in the loop run over."""
        return tuple(dict.fromkeys([*named_axes(self.condition), *named_axes(self.body)]))

    @property
    def is_collective(self) -> bool:  # type: ignore[override]
        return bool(self.axes)

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return has_effects(self.condition) or has_effects(self.body)

    def varies(self, of: Any, given: list[Any]) -> list[Any]:
        first, second, carry = self.parts(given)
        while True:
            (stops,) = of(self.condition, [*first, *carry])
            wider = [a | b | stops for a, b in zip(carry, of(self.body, [*second, *carry]))]
            if wider == carry:
                return carry
            carry = wider

    def chosen_by(self, of: Any, given: list[Any]) -> Any:
        (stops,) = of(self.condition, [*self.parts(given)[0], *self.varies(of, given)])
        return stops

    def parts(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Separate operands, or flags for them, into constants of the condition, constants of the body, and carry."""
        n, m = self.condition_constants, self.condition_constants + self.body_constants
        return list(operands[:n]), list(operands[n:m]), list(operands[m:])

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.body.output_types

    def lower(self, build: Any, *operands: Any) -> Any:
        asks, does, carry = self.parts(operands)
        count, types = len(carry), list(self.body.output_types)
        if self.has_effect:  # the effect token is part of the carry
            carry, types = [*carry, build.waited()], [*types, build.waited().type]

        def condition(b: Any, *values: Any) -> list[Any]:
            return b.inline(self.condition, [*asks, *values[:count]])

        def body(b: Any, *values: Any) -> list[Any]:
            b.token = values[count] if self.has_effect else None
            out = b.inline(self.body, [*does, *values[:count]])
            return [*out, b.token] if self.has_effect else out

        regions = [build.region(types, condition), build.region(types, body)]
        out = build.emit("stablehlo.while", carry, types, regions=regions)
        out = (out,) if len(types) == 1 else out
        if self.has_effect:
            build.token = out[count]
        return tuple(out[:count])

    def stepwise(self, *operands: Any) -> Any:
        asks, does, carry = self.parts(operands)
        count = 0
        while bool(evaluate(self.condition, [*asks, *carry])[0]):
            with step("while_loop", count, None):
                carry = evaluate(self.body, [*does, *carry])
            count += 1
        return tuple(carry)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        _, gives, moves = self.parts([type(t) is not Zero for t in tangents])
        while True:  # a carry has a tangent if its initial value has one, or if some step gives it one
            _, out = jvp_program(self.body, (*gives, *moves))
            if out == tuple([m and o for m, o in zip(moves, out)]):
                break
            moves = [m or o for m, o in zip(moves, out)]
        loop_jvp, _ = jvp_program(self.body, (*gives, *moves), tuple(moves))
        asks, does, carry = self.parts(primals)
        _, more, starts = self.parts(tangents)
        more = [t for t in more if type(t) is not Zero]
        n, c, k = len(does), len(carry), len(more)
        start = [instantiate(t) for t, m in zip(starts, moves) if m]

        def body(*xs: Any) -> list[Any]:
            constants, changes, values, speeds = xs[:n], xs[n : n + k], xs[n + k : n + k + c], xs[n + k + c :]
            return evaluate(loop_jvp, [*constants, *values, *changes, *speeds])

        types = self.body.input_types
        speeds = [t.tangent() for t, m in zip(types[n:], moves) if m]
        changes = [type_of(t) for t in more]
        new_body = record(body, [*types[:n], *changes, *types[n:], *speeds], self.body.name)[0]
        new_condition = _ignoring(self.condition, speeds)
        out = bind(While(new_condition, new_body, len(asks), n + k), *asks, *does, *more, *carry, *start)
        return out[:c], with_zeros(moves, out[c:], types[n:])

    @property
    def selects(self) -> bool:  # type: ignore[override]
        return selects(self.body)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        (_, constants, start), (asks, does, carry) = self.parts(masks), self.parts(values)
        kinds = carried_kinds(start, lambda kinds: mask_program(self.body, [*constants, *kinds]).kinds)
        has = reaches_of(kinds)
        masked_body = mask_program(self.body, [*constants, *kinds], has).both
        given = arrays_of(constants)
        first = [mask_rules.as_array(m, v) for m, v, h in zip(start, carry, has) if h]
        n, k, c = len(does), len(given), len(carry)

        def body(*xs: Any) -> list[Any]:
            return evaluate(masked_body, [*xs[:n], *xs[n + k : n + k + c], *xs[n : n + k], *xs[n + k + c :]])

        types, flags = self.body.input_types, [type_of(m) for m in first]
        new_body = record(body, [*types[:n], *map(type_of, given), *types[n:], *flags], self.body.name)[0]
        op = While(_ignoring(self.condition, flags), new_body, len(asks), n + k)
        out = bind(op, *asks, *does, *given, *carry, *first)
        return out[:c], result_masks([k is not None for k in kinds], has, lambda: out[c:])

    def split(self, tape: Any, operands: Sequence[Any]) -> Any:
        raise ValueError(
            errors.explained(
                "while_loop: linearize and reverse mode would have to store every step, but the number of steps "
                "is not known.",
                "while_loop(..., max_steps=n), fori_loop with concrete bounds, or scan; or forward mode (jvp).",
            )
        )

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        size, name = batch.size, batch.axis_name
        asks, does, flags = self.parts(batched)
        while True:
            _, (differs,) = batch_program(self.condition, (*asks, *flags), size, axis_name=name)
            _, out = batch_program(self.body, (*does, *flags), size, axis_name=name)
            new = [True] * len(flags) if differs else [a or b for a, b in zip(flags, out)]
            if new == flags:
                break
            flags = new
        condition, _ = batch_program(self.condition, (*asks, *flags), size, axis_name=name)
        body, _ = batch_program(self.body, (*does, *flags), size, tuple(flags), name)
        first, second, carry = self.parts(operands)
        carry = [x if not f or b else shape.add_axis(x, size) for x, f, b in zip(carry, flags, self.parts(batched)[2])]
        if not differs:
            op = While(condition, body, len(first), len(second))
            return PartlyBatched(bind(op, *first, *second, *carry), flags)
        n = len(first)

        def any_lane(*xs: Any) -> list[Any]:
            return [reduction.reduce_or(evaluate(condition, xs)[0], (0,))]

        def own_lanes(*xs: Any) -> list[Any]:  # batch elements that have stopped keep their values
            (runs,) = evaluate(condition, [*xs[:n], *xs[n + len(second) :]])
            out = evaluate(body, xs[n:])
            return [where_lanes(runs, new, old) for new, old in zip(out, xs[n + len(second) :])]

        types = [type_of(x) for x in (*first, *second, *carry)]
        asks_types = [*types[:n], *body.output_types]
        stops = record(any_lane, asks_types, self.condition.name)[0]
        steps = record(own_lanes, [*types[: n + len(second)], *body.output_types], self.body.name)[0]
        return tuple(bind(While(stops, steps, n, n + len(second)), *first, *first, *second, *carry))


def _ignoring(program: Program, types: Sequence[ArrayType]) -> Program:
    """A program with additional unused inputs."""
    count = len(program.inputs)
    return record(lambda *xs: evaluate(program, xs[:count]), [*program.input_types, *types], program.name)[0]


# -- the public functions ---------------------------------------------------------------------------------------------


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, *, max_steps: int | None = None
) -> Any:
    """Repeat `val = body_fun(val)` while `cond_fun(val)` is true; the value must keep its tree, shapes and dtypes.

    With `max_steps`, the loop stops after at most that many steps and supports reverse mode, whose memory grows with
    the square root of `max_steps`. If the loop stopped at the bound, `cond_fun` is still true for the result.

    >>> import atled.numpy as jnp
    >>> while_loop(lambda n: n < 100, lambda n: n * 2, jnp.int32(1))
    Array(128, dtype=int32)
    """
    try:
        return _while_loop(cond_fun, body_fun, init_val, max_steps)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _while_loop(cond_fun: Any, body_fun: Any, init_val: Any, max_steps: int | None) -> Any:
    if max_steps is not None:
        return _bounded(cond_fun, body_fun, init_val, int(max_steps))
    if runs_in_python():
        value, count = init_val, 0
        while (holds := cond_fun(value)) is not None:
            known = holds.known() if isinstance(holds, Tracer) else holds
            if known is None:  # a batched condition: only the op `While` supports it
                break
            if not known:
                return value
            with step("while_loop", count, None):
                value = body_fun(value)
            count += 1
        init_val = value
    start, structure, body = carried("while_loop", body_fun, (init_val,), _first)
    types = [type_of(x) for x in start]
    asks = record_tree(cond_fun, structure, types)
    if asks.program.output_types != (ArrayType((), np.dtype(bool)),):
        got = ", ".join(map(str, asks.program.output_types)) or "nothing"
        raise TypeError(
            f"while_loop: the condition must be a single boolean; cond_fun returns {got}."
            "\n  try: a comparison, n > 0; for arrays, (x > 0).any() or (x > 0).all()."
        )
    op = While(asks.program, body.program, len(asks.captured), len(body.captured))
    (out,) = structure.unflatten(bind(op, *asks.captured, *body.captured, *start))
    return out


def _bounded(cond_fun: Any, body_fun: Any, init_val: Any, max_steps: int) -> Any:
    """A loop of at most `max_steps` steps, in blocks that the backward pass recomputes one after another.

    Memory grows with the square root of `max_steps`. Blocks after the end of the loop are skipped.
    """
    size = max(math.isqrt(max_steps), 1)

    def goes_on(state: Any) -> Any:
        count, value = state
        return elementwise.logical_and(elementwise.lt(count, np.int32(max_steps)), cond_fun(value))

    def one(state: Any) -> Any:
        count, value = state
        return elementwise.add(count, np.int32(1)), body_fun(value)

    def turn(state: Any) -> Any:
        return cond(goes_on(state), one, lambda s: s, state)

    block = remat(lambda state: repeat(lambda i, s: turn(s), size, state), prevent_cse=False)
    blocks = -(-max_steps // size)
    done = repeat(lambda i, s: cond(goes_on(s), block, lambda s: s, s), blocks, (np.int32(0), init_val))
    return done[1]


def _first(out: Any) -> Any:
    return (out,)


def fori_loop(
    lower: SupportsIndex,
    upper: SupportsIndex,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """Repeat `val = body_fun(i, val)` for i from `lower` up to `upper`.

    If the bounds are concrete, this is a `scan`, which supports reverse mode and `unroll`.

    >>> import atled.numpy as jnp
    >>> fori_loop(0, 5, lambda i, total: total + i, jnp.int32(0))
    Array(10, dtype=int32)
    """
    for x in (lower, upper):
        t = type_of(x)
        if t.shape != () or t.kind not in "iu":
            raise TypeError(
                errors.explained(
                    f"fori_loop: the bounds must be integers; got {describe(x)}.", "int(n), or n // 2 instead of n / 2."
                )
            )
    try:
        if not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
            first, count = int(lower), int(upper) - int(lower)
            dtype = type_of(lower).dtype
            return repeat(
                lambda i, v: body_fun(i, v), max(count, 0), init_val, first, dtype, 1 if unroll is None else unroll
            )
        low, high = elementwise.match(lower, upper)
        dtype = type_of(low).dtype
        high = conversion.convert(high, dtype)

        def one(pair: Any) -> Any:
            i, value = pair
            return elementwise.add(i, np.ones((), dtype)), body_fun(i, value)

        return _while_loop(lambda pair: elementwise.lt(pair[0], high), one, (low, init_val), None)[1]
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904
