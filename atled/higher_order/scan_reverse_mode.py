"""Reverse mode of a scan: `split` divides it into two loops, and `transpose` reverses the linear one.

The first loop runs immediately and stacks residuals for the second loop, which is linear and is written to the tape.
Constants and slices need no stacks, nor do values that cheap arithmetic recomputes (`residual_selection.py`). In the
backward pass, sums of matrix products over the steps are computed after the loop as one product
(`deferred_products.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core.list_partition import kept, left_out, merged
from atled.core.op import instantiate
from atled.core.program import Program, Var, evaluate, pruned, record
from atled.core.trace import bind
from atled.core.types import Linear, Zero
from atled.higher_order.call import Split, split_program
from atled.higher_order.deferred_products import late_terms, sums
from atled.higher_order.remat import without_barriers
from atled.higher_order.residual_selection import lean, run_again
from atled.ops import elementwise, shape
from atled.transforms.transpose import transpose_program


def cut(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Consecutive groups of values, of the given sizes."""
    out, start = [], 0
    for n in sizes:
        out.append(list(values[start : start + n]))
        start += n
    return out


# -- the loop in two --------------------------------------------------------------------------------------------------


def split(op: Any, tape: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Run the part of the loop that depends on no tangent, and write the other part to the tape as a linear loop."""
    halves = ScanPartialEval(op, [not tape.owns(x) for x in operands])
    known = kept([k for part in halves.known for k in part], operands)
    linear = [left_out(ks, xs) for xs, ks in zip(op.parts(operands), halves.known)]
    done, stacks = halves.run_now(known)
    written = halves.write_rest(tape, known, stacks, linear)
    return tuple(merged(halves.waits, written, done))


class ScanPartialEval:
    """The body of a loop, split into one that runs immediately and a linear one for the tape, and the residuals between
    them.
    """

    def __init__(self, op: Any, is_known: Sequence[bool]) -> None:
        self.op = op
        self.part, self.known = _settled_split(op, is_known)
        # an output that is known, but whose carry is not known in all steps, is stacked for the linear loop
        self.ready = self.part.known_outputs
        self.waits = [not k for k in self.known[1]] + [not r for r in self.ready[op.carries :]]
        outputs = iter(self.part.known.outputs)
        now = [next(outputs) for r in self.ready if r]
        is_held = [w for r, w in zip(self.ready, self.waits) if r]
        self.handed = sum(is_held)
        self.kept = left_out(is_held, now)
        self.left = kept(is_held, now) + list(outputs)
        # residuals that are constants or slices are available; the others are stacked
        inputs, (n_c, n_s, _) = self.part.known.inputs, self.counts
        self.constant = {v: i for i, v in enumerate(inputs[:n_c])}
        self.slices = {v: i for i, v in enumerate(inputs[n_c + n_s :])}
        needed = [v for v in self.left if type(v) is Var]
        self.stacked, self.again = lean(self.part.known, needed, {*self.constant, *self.slices})
        later = dict.fromkeys([v for v in (*self.left, *[v for e in self.again for v in e.operands]) if type(v) is Var])
        self.left_constants = [v for v in later if v in self.constant]
        self.left_slices = [v for v in later if v in self.slices]

    @property
    def counts(self) -> list[int]:
        """The numbers of known constants, carries and slices."""
        return [sum(flags) for flags in self.known]

    def run_now(self, known: Sequence[Any]) -> list[list[Any]]:
        """Run the first loop; returns the results that are known, and the stacked residuals."""
        first, op = self.part.known, self.op
        forward = Program(first.inputs, first.equations, [*self.kept, *self.stacked], op.body.name)
        n_c, n_s, _ = self.counts
        return cut(bind(op.again(forward, n_c, n_s), *known), (len(self.kept), len(self.stacked)))

    def write_rest(self, tape: Any, known: Sequence[Any], stacks: Sequence[Any], linear: Sequence[list[Any]]) -> Any:
        """Write the second loop to the tape. Its constants are known residuals and the linear constants; its slices are
        known residuals, the stacked residuals and the linear slices.
        """
        constants, carries, slices = linear
        known_c, _, known_x = cut(known, self.counts)
        counts = (len(constants), len(carries), len(slices))
        op = self.op.again(self.linear_body(counts), len(self.left_constants) + len(constants), len(carries))
        return tape.write(
            op,
            [
                *[known_c[self.constant[v]] for v in self.left_constants], *constants, *carries,
                *[known_x[self.slices[v]] for v in self.left_slices], *stacks, *slices,
            ],
        )  # fmt: skip

    def linear_body(self, counts: tuple[int, int, int]) -> Program:
        """The body of the second loop; `counts` has the numbers of linear constants, carries and slices."""
        n_c, n_s, n_x = counts
        sizes = (len(self.left_constants), n_c, n_s, len(self.left_slices), len(self.stacked), n_x)
        waiting, handed = self.part.waiting, self.handed

        def body(*xs: Any) -> list[Any]:
            a, lc, ls, b, s, lx = cut(xs, sizes)
            env = dict(zip([*self.left_constants, *self.left_slices, *self.stacked], [*a, *b, *s]))
            run_again(self.again, env)
            residuals = [env[v] if type(v) is Var else v for v in self.left]
            written = evaluate(waiting, [*residuals[handed:], *lc, *ls, *lx])
            return merged(kept(self.waits, self.ready), residuals[:handed], written)

        tc, ts, tx = cut(waiting.input_types[len(self.left) - handed :], counts)
        left = [v.type for v in (*self.left_slices, *self.stacked)]
        types = [*[v.type for v in self.left_constants], *tc, *ts, *left, *tx]
        return record(body, types, self.op.body.name)[0]


def _settled_split(op: Any, is_known: Sequence[bool]) -> tuple[Split, tuple[list[bool], list[bool], list[bool]]]:
    """The split body, and flags for the constants, carries and slices that are known in all steps."""
    c_known, s_known, x_known = op.parts(is_known)
    while True:  # a carry is known if its initial value and its value after each step are
        part = split_program(op.body, (*c_known, *s_known, *x_known))
        new = [a and b for a, b in zip(s_known, part.known_outputs[: op.carries])]
        if new == s_known:
            return part, (c_known, s_known, x_known)
        s_known = new


# -- the linear loop turned around ------------------------------------------------------------------------------------


def transpose(op: Any, cotangent: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The cotangents of the constants, the carry and the slices, or None for operands that are not linear."""
    count = op.carries
    c, _, x = op.parts(operands)
    c_lin, x_lin = [type(v) is Linear for v in c], [type(v) is Linear for v in x]
    backward_body, s_given = _settled_transpose(op, c_lin, x_lin, [type(t) is not Zero for t in cotangent])
    fixed, reads = left_out(c_lin, c), left_out(x_lin, x)
    ys = [t for t in cotangent[count:] if type(t) is not Zero]
    # sums of matrix products over the steps are computed after the loop, from the stacked factors
    back_count, given = sum(s_given), [*reads, *ys]
    constants, read, _, seeds = cut(backward_body.inputs, (len(fixed), len(reads), back_count, len(ys)))
    at_hand = dict(zip([*read, *seeds], given))
    totals, carries, rest = cut(backward_body.outputs, (sum(c_lin), count, sum(x_lin)))
    late = late_terms(backward_body, totals, constants, set(at_hand))
    factors = {v: None for terms in late for t in terms for v in (t.left, t.right) if v not in at_hand}
    early = left_out(late, totals)
    outputs = [*early, *kept(s_given, carries), *rest, *factors]
    sizes = (len(fixed), len(early), back_count, len(reads), len(ys))
    backward = _adding_up(backward_body, outputs, sizes, op.body.name)
    out = bind(
        op.again(backward, len(fixed), len(early) + back_count, flips=True),
        *fixed, *[shape.zeros(v.type) for v in early],
        *[instantiate(t) for t, g in zip(cotangent, s_given) if g], *given,
    )  # fmt: skip
    summed, back, cuts, stacks = cut(out, (len(early), back_count, sum(x_lin), len(factors)))
    at_hand.update(zip(factors, stacks))
    products = [p for p in sums(late, at_hand.__getitem__) if p is not None]
    return (*merged(c_lin, merged(late, products, summed)), *merged(s_given, back), *merged(x_lin, cuts))


def _settled_transpose(
    op: Any, c_lin: Sequence[bool], x_lin: Sequence[bool], is_given: Sequence[bool]
) -> tuple[Program, list[bool]]:
    """The transposed body, and flags for the carries that have a cotangent in some step."""
    count, first = op.carries, sum(c_lin)
    flags = (*c_lin, *([True] * count), *x_lin)
    alone = op.body.memo("without barriers", lambda: without_barriers(op.body))  # the original is in another loop
    s_given, y_given = list(is_given[:count]), is_given[count:]
    while True:  # a carry has a cotangent if its final value has one, or if some step gives it one
        transposed, nonzero = transpose_program(alone, flags, (*s_given, *y_given))
        new = [a or b for a, b in zip(s_given, nonzero[first : first + count])]
        if new == s_given:
            break
        s_given = new
    if not all(nonzero):
        transposed, _ = transpose_program(alone, flags, (*s_given, *y_given), True)
    return transposed, s_given


def _adding_up(made: Program, outputs: Sequence[Any], sizes: tuple[int, int, int, int, int], name: str) -> Program:
    """The body of the backward loop: the transposed body, with its first outputs added to running totals.

    Its inputs are constants, totals, carries, slices and cotangents of stacked outputs; `sizes` has their numbers.
    """
    turn = Program(made.inputs, made.equations, outputs, made.name)
    turn = pruned(turn, [True] * len(turn.outputs))
    n_constants, n_totals, n_carries, n_slices, n_seeds = sizes

    def body(*xs: Any) -> list[Any]:
        constants, before, carry, slices, ys = cut(xs, sizes)
        out = evaluate(turn, [*constants, *slices, *carry, *ys])
        more, rest = out[:n_totals], out[n_totals:]
        return [*[elementwise.add(a, b) for a, b in zip(before, more)], *rest]

    constants, slices, carry, seeds = cut(made.input_types, (n_constants, n_slices, n_carries, n_seeds))
    totals = [v.type for v in outputs[:n_totals]]
    return record(body, [*constants, *totals, *carry, *slices, *seeds], name)[0]
