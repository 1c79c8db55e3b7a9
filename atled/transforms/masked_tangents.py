"""Masked tangents and cotangents: elements that a selection discarded stay exactly zero.

The derivative at a discarded element may be infinite or NaN, and times zero it would be NaN. `Masked` is the
interpreter of tangents and cotangents with a mask (`core/tangent_mask.py`). Each op's `masked` rule propagates masks:
selections create them, ops that move elements move them, a product replaces the other factor by 1 where the mask is
false, and ops that mix elements drop them. A tangent without discarded elements is a plain value, so derivatives
without selections have no overhead. Operands are wrapped only while the rule of an op runs that selects elements or has
a masked operand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core.array import type_of
from atled.core.basic_ops import arithmetic
from atled.core.list_partition import kept
from atled.core.program import Program, Var, evaluate, pruned, record_closed, used
from atled.core.tangent_mask import ALL, PRODUCTS, SLOPES, SUMS, Mask
from atled.core.trace import Interpreter, Tracer, bind, entered, state
from atled.core.types import Zero
from atled.ops import elementwise, mask_rules


class MaskTracer(Tracer):
    """A tangent or cotangent, and its mask."""

    __slots__ = ("mask", "value")

    def __init__(self, interpreter: Interpreter, value: Any, mask: Mask) -> None:
        self.interpreter = interpreter
        self.value = value
        self.mask = mask
        self.type = type_of(value)

    def known(self) -> Any:
        value = self.value
        return value.known() if isinstance(value, Tracer) else value


class Masked(Interpreter):
    """Applies `masked` rules."""

    __slots__ = ("is_used",)
    transform = "differentiation"

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.is_used = False  # whether any value may have discarded elements

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        values, masks = [], []
        for x in operands:
            is_mine = type(x) is MaskTracer and x.interpreter is self
            values.append(x.value if is_mine else x)
            masks.append(x.mask if is_mine else None)
        out, out_masks = op.masked(values, _only_tangents(op, values, masks) if _users.on else masks)
        if type(out) is not tuple:
            return self.wrap(out, out_masks)
        return tuple(
            [self.wrap(x, m) for x, m in zip(out, out_masks if type(out_masks) is tuple else [out_masks] * len(out))]
        )

    def wrap(self, x: Any, mask: Mask | None = ALL) -> Any:
        """Attach a mask to a tangent; other values unchanged."""
        if mask is None or type(x) is Zero or type_of(x).kind not in "fc":
            return x
        return x if self.owns(x) else MaskTracer(self, x, mask)

    def owns(self, x: Any) -> bool:
        """Whether a value is a `MaskTracer` of this interpreter."""
        return type(x) is MaskTracer and x.interpreter is self

    def value(self, x: Any) -> Any:
        """A tangent without its mask."""
        return x.value if self.owns(x) else x

    def bare(self, x: Any) -> Any:
        """A tangent, without its mask if it has no discarded elements."""
        if not self.owns(x):
            return x
        if x.mask is ALL:
            return x.value
        self.is_used = True
        return x

    def seed(self, x: Any) -> Any:
        """Attach a mask to a unit vector: its zeros count as discarded."""
        self.is_used = True
        return self.wrap(x, Mask(lambda: elementwise.ne(x, np.zeros((), type_of(x).dtype))))

    # -- ops on tangents and cotangents ------------------------------------------------------------------------------

    def differentiate(self, op: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The result and tangent that an op's `jvp` rule gives, with masked tangents where needed."""
        if not (op.selects or (self.is_used and any([self.owns(t) for t in tangents]))):
            return op.jvp(primals, tangents)
        out, tangent = op.jvp(primals, [self.wrap(t) for t in tangents])
        return out, tuple([self.bare(t) for t in tangent]) if type(tangent) is tuple else self.bare(tangent)

    def transpose(self, op: Any, cotangents: Sequence[Any], operands: Sequence[Any]) -> Sequence[Any]:
        """The cotangents that an op's `transpose` rule gives, with masks where needed."""
        is_masked = op.selects or (self.is_used and any([self.owns(c) for c in cotangents]))
        given = [self.wrap(c) for c in cotangents] if is_masked else cotangents
        out = op.transpose(tuple(given) if op.gives_tuple else given[0], *operands)
        return [self.bare(c) for c in out] if is_masked else out

    def apply(self, op: Any, operands: Sequence[Any], is_linear: Sequence[bool]) -> Any:
        """The result of an op that is linear in some operands, with a mask where needed."""
        if not (op.selects or (self.is_used and any([self.owns(x) for x in operands]))):
            return bind(op, *operands)
        out = bind(op, *[self.wrap(x) if b else x for x, b in zip(operands, is_linear, strict=True)])
        return tuple([self.bare(x) for x in out]) if type(out) is tuple else self.bare(out)

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two cotangents."""
        if self.owns(x) and self.owns(y):
            return arithmetic.add(x, y)
        return arithmetic.add(self.value(x), self.value(y))


class _Users(threading.local):
    on = False


_users = _Users()


class users_rule:  # noqa: N801
    """A `with` block for a user-written rule, which may concatenate cotangents with nonzero values."""

    def __enter__(self) -> None:
        self.before, _users.on = _users.on, True

    def __exit__(self, *_: Any) -> None:
        _users.on = self.before


def _only_tangents(op: Any, values: Sequence[Any], masks: Sequence[Any]) -> Sequence[Any]:
    """The masks of operands; unmasked operands that an op combines with masked ones get a full mask."""
    groups = op.linear_groups(len(values))
    if len(groups) != 1 or len(groups[0]) == 1:
        return masks
    strict = mask_rules.only_zeros(values, masks)
    return [s if i in groups[0] else m for i, (s, m) in enumerate(zip(strict, masks, strict=True))]


# -- programs ---------------------------------------------------------------------------------------------------------


SOME = {reach: Mask(lambda: None, reach) for reach in (SLOPES, PRODUCTS, SUMS)}  # placeholders


class MaskedProgram:
    """The masked version of a program that is linear in some inputs, some of which have masks.

    The program `values` computes the outputs, `masks` their masks. Both take the inputs, then the existing masks;
    `values` takes only the masks flagged in `needs`. `reaches` has the reach of each output's mask, 0 without one.
    """

    is_linear: tuple[bool, ...]
    reaches: tuple[int, ...]

    def __init__(
        self, program: Program, linear: tuple[bool, ...], masked: tuple[int, ...], wanted: tuple[int, ...] | None
    ) -> None:
        count = len(program.inputs)

        def f(*operands: Any) -> list[Any]:
            given = iter(operands[count:])
            masks = Masked(state.level + 1)
            with entered(masks):
                start = [Mask(lambda m=m: m, r) if r else ALL for r in masked for m in [next(given) if r else None]]
                rows = zip(operands[:count], linear, start, strict=True)
                out = evaluate(program, [masks.wrap(x, m) if b else x for x, b, m in rows])
                self.is_linear = tuple([masks.owns(x) for x in out])
                out_masks = [x.mask if b else None for x, b in zip(out, self.is_linear, strict=True)]
                self.reaches = wanted or reaches_of(out_masks)
                out = [masks.value(x) for x in out]
                rows = zip(out, out_masks, self.reaches, strict=True)
                return [*out, *[mask_rules.as_array(m, x) for x, m, r in rows if r]]

        types = program.input_types
        types = [*types, *[t.with_dtype(np.dtype(bool)) for t, r in zip(types, masked, strict=True) if r]]
        self.both = record_closed(f, types, program.name)
        self.has_effect = any([e.op.has_effect for e in self.both.equations])
        n = len(program.outputs)
        self.masks = pruned(self.both, [i >= n for i in range(len(self.both.outputs))])
        values = pruned(self.both, [i < n for i in range(len(self.both.outputs))])
        used = {v for e in values.equations for v in e.operands if type(v) is Var} | set(values.outputs)
        self.needs = [v in used for v in values.inputs[count:]]
        extra = kept(self.needs, values.inputs[count:])
        self.values = Program([*values.inputs[:count], *extra], values.equations, values.outputs, program.name)

    @property
    def kinds(self) -> list[Any]:
        """The mask kind of each output: one of `SOME`, `ALL` if no element is discarded, or None if not linear."""
        return [SOME[r] if r else ALL if b else None for b, r in zip(self.is_linear, self.reaches, strict=True)]

    def run(self, apply: Callable[..., Sequence[Any]], values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        """The outputs and their lazily computed masks; `apply` runs a program."""
        if self.has_effect:  # run ops with effects only once
            n, evaluated = len(self.is_linear), apply(self.both, *values, *arrays_of(masks))
            return tuple(evaluated[:n]), self.result_masks(lambda: evaluated[n:])
        given = [m for m in masks if m is not None and m is not ALL]
        needed = [m.get() for m, b in zip(given, self.needs, strict=True) if b]
        out = apply(self.values, *values, *needed)

        def find() -> Sequence[Any]:  # leave out inputs that the masks ignore: the run must not look linear in them
            program, left = used(self.masks)
            every = [*values, *arrays_of(masks)]
            return apply(program, *[every[i] for i in left])

        return tuple(out), self.result_masks(find)

    def result_masks(self, find: Callable[[], Sequence[Any]]) -> tuple[Any, ...]:
        """A lazy mask for each output that has one; `find` computes all of them on first use."""
        return result_masks(self.is_linear, self.reaches, find)


def mask_program(program: Program, masks: Sequence[Any], wanted: tuple[int, ...] | None = None) -> MaskedProgram:
    """The masked version of a program for these masks of its inputs; `wanted` sets the reaches of the output masks."""
    linear, masked = tuple([m is not None for m in masks]), reaches_of(masks)
    key = ("masks", linear, masked, wanted, _users.on)
    return program.memo(key, lambda: MaskedProgram(program, linear, masked, wanted))


def result_masks(
    is_linear: Sequence[bool], reaches: Sequence[int], find: Callable[[], Sequence[Any]]
) -> tuple[Any, ...]:
    """A lazy mask for each output that has one, else `ALL` or None; `find` computes all of them on first use."""
    every = Mask(find)
    out: list[Any] = [ALL if b else None for b in is_linear]
    for n, i in enumerate([i for i, r in enumerate(reaches) if r]):
        out[i] = Mask(lambda n=n: every.get()[n], reaches[i])
    return tuple(out)


def reaches_of(masks: Sequence[Any]) -> tuple[int, ...]:
    """The reach of each mask; 0 where no element was discarded."""
    return tuple([0 if m is None or m is ALL else m.reach for m in masks])


def arrays_of(masks: Sequence[Any]) -> list[Any]:
    """The existing masks, as arrays."""
    return [m.get() for m in masks if m is not None and m is not ALL]


def wider(kind: Any, other: Any) -> Any:
    """The mask kind of a loop carry for every step, given its kinds before and after a step."""
    reach = max(reaches_of((kind, other)))
    return SOME[reach] if reach else ALL if ALL in (kind, other) else None


def carried_kinds(kinds: Sequence[Any], after: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
    """The mask kinds of all loop carries: the fixed point of `after`, starting from the initial masks."""
    kinds, born = [k if k is None or k is ALL else SOME[k.reach] for k in kinds], set()
    while True:
        new = []
        for i, (kind, next_kind) in enumerate(zip(kinds, after(list(kinds)), strict=True)):
            if kind is None and next_kind is not None:  # an accumulator's initial zeros count as discarded
                born.add(i)
                new.append(SOME[SUMS])
            elif i in born and next_kind is ALL:
                born.remove(i)
                new.append(ALL)
            else:
                new.append(wider(kind, next_kind))
        if new == kinds:
            return new
        kinds = new


def selects(program: Program) -> bool:
    """Whether a program contains an op that selects elements (`op.selects`)."""
    return program.memo("selects", lambda: (any([e.op.selects for e in program.equations]),))[0]
