"""A scan over tangents or cotangents with masks, which `core/tangent_mask.py` defines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core.list_partition import kept
from atled.core.program import Var, evaluate, pruned, record
from atled.core.trace import bind
from atled.higher_order.scan_reverse_mode import cut
from atled.ops import mask_rules
from atled.transforms.masked_tangents import carried_kinds, mask_program, reaches_of, result_masks


class MaskedScan:
    """A loop over masked tangents or cotangents. The masks of carries are carried, all other masks are inputs."""

    def __init__(self, op: Any, values: Sequence[Any], masks: Sequence[Any]) -> None:
        self.op, self.count = op, op.carries
        self.values, self.masks = op.parts(values), op.parts(masks)
        constants, start, slices = self.masks
        in_step = lambda kinds: mask_program(op.body, [*constants, *kinds, *slices])  # noqa: E731
        carry = carried_kinds(start, lambda kinds: in_step(kinds).kinds[: self.count])
        kinds = [*carry, *in_step(carry).kinds[self.count :]]
        self.is_linear, self.reaches = [k is not None for k in kinds], reaches_of(kinds)
        self.has_mask = [r > 0 for r in self.reaches]
        self.made = mask_program(op.body, [*constants, *carry, *slices], self.reaches)

    def results(self) -> tuple[Any, Any]:
        """The results and their masks. Masks that no step needs are computed lazily, by another loop."""
        n = sum(self.has_mask[: self.count])
        if self.made.has_effect:
            values, masks = self.run([True] * n, True)
            return values, result_masks(self.is_linear, self.reaches, lambda: masks)
        values, _ = self.run(self.needed(n), False)
        return values, result_masks(self.is_linear, self.reaches, lambda: self.run([True] * n, True)[1])

    def needed(self, n: int) -> list[bool]:
        """Flags for the carried masks that a step needs to compute values."""
        both, outputs = self.made.both, len(self.is_linear)
        places = [i for i, has in enumerate(self.has_mask) if has]
        given = sum([r > 0 for r in reaches_of(self.masks[0])])
        first = len(self.op.body.inputs) + given
        flags = [False] * n
        while True:
            keep = [True] * outputs + [flags[i] if i < n else False for i in range(len(places))]
            step = pruned(both, keep)
            used = {v for e in step.equations for v in e.operands if type(v) is Var} | set(step.outputs)
            new = [f or v in used for f, v in zip(flags, both.inputs[first : first + n])]
            if new == flags:
                return flags
            flags = new

    def run(self, flags: Sequence[bool], is_stacked: bool) -> tuple[Any, Any]:
        """Run the loop with some of the carried masks, and optionally with the masks of stacked outputs."""
        op, count, both = self.op, self.count, self.made.both
        (c, s, x), (mc, ms, mx) = self.values, self.masks
        types = op.parts(op.body.input_types)
        bools = lambda types, has: [t.with_dtype(np.dtype(bool)) for t, h in zip(types, has) if h]  # noqa: E731
        c_has, x_has = reaches_of(mc), reaches_of(mx)
        s_has = self.has_mask[:count]
        given_c, given_x = ([m.get() for m, h in zip(part, has) if h] for part, has in ((mc, c_has), (mx, x_has)))
        start = [mask_rules.as_array(m, v) for m, v, h in zip(ms, s, s_has) if h]
        start = kept(flags, start)
        stacks = sum(self.has_mask[count:]) if is_stacked else 0
        ys = len(self.is_linear) - count
        sizes = (len(c), len(given_c), len(s), len(start), len(x), len(given_x))

        def body(*xs: Any) -> list[Any]:
            c, mc, s, ms, x, mx = cut(xs, sizes)
            remaining = iter(ms)
            all_masks = [next(remaining) if f else np.False_ for f in flags]  # the others do not affect values
            all_masks = [mask_rules.filled(m, t.shape) for m, t in zip(all_masks, bools(types[1], s_has))]
            out = evaluate(both, [*c, *s, *x, *mc, *all_masks, *mx])
            carry, stacked, carry_masks, masks = cut(out, (count, ys, sum(s_has), sum(self.has_mask[count:])))
            return [*carry, *kept(flags, carry_masks), *stacked, *masks[:stacks]]

        tc, ts, tx = types
        carried = kept(flags, bools(ts, s_has))
        kinds = [*tc, *bools(tc, c_has), *ts, *carried, *tx, *bools(tx, x_has)]
        new = op.again(record(body, kinds, op.body.name)[0], len(c) + len(given_c), count + len(start))
        out = bind(new, *c, *given_c, *s, *start, *x, *given_x)
        carry, carry_masks, stacked, masks = cut(out, (count, len(start), ys, stacks))
        return (*carry, *stacked), [*carry_masks, *masks]
