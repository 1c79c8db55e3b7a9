"""Sums of matrix products over the steps of a loop, computed after the loop as one product.

The cotangent of a weight that a loop uses in every step is a sum over the steps of small matrix products. If the
factors are stored, one large product over all steps computes this sum. This is faster, and avoids an accumulator that
every step reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from atled.core.program import Program, Var
from atled.ops import contraction, elementwise, shape


class Term(NamedTuple):
    """A dot product in every step, and the transpositions of its result."""

    op: contraction.DotGeneral
    left: Var
    right: Var
    orders: tuple[tuple[int, ...], ...] = ()

    def over_steps(self, left: Any, right: Any) -> Any:
        """The sum of the product over the steps, given the factors stacked along axis 0."""
        up = lambda axes: tuple([a + 1 for a in axes])  # noqa: E731
        (xc, yc), (xb, yb) = self.op.contracting, self.op.batch_axes
        contracting, batch = ((0, *up(xc)), (0, *up(yc))), (up(xb), up(yb))
        out = contraction.dot_general(left, right, contracting, batch, self.op.precision, self.op.result)
        for order in self.orders:
            out = shape.transpose(out, order)
        return out


def late_terms(program: Program, outputs: Sequence[Any], constants: Sequence[Var], free: set[Var]) -> list[list[Term]]:
    """The products that sum to each of these outputs of a step; none if storing their factors takes too much memory.

    The variables in `constants` are the same in every step; those in `free` are already stacked.
    """
    producers = {v: e for e in program.equations for v in e.results}
    uses: dict[Any, int] = {}
    for v in [v for e in program.equations for v in e.operands] + list(program.outputs):
        uses[v] = uses.get(v, 0) + 1

    def terms(v: Any) -> list[Term] | None:
        e = producers.get(v)
        if e is None or uses[v] != 1:
            return None
        if type(e.op) is shape.Transpose:
            inner = terms(e.operands[0])
            return None if inner is None else [t._replace(orders=(*t.orders, e.op.permutation)) for t in inner]
        if type(e.op) is elementwise.Add and all([x.type.shape == v.type.shape for x in e.operands]):
            both = [terms(x) for x in e.operands]
            return None if None in both else [t for part in both for t in part]  # type: ignore[union-attr]
        if type(e.op) is contraction.DotGeneral and all([type(x) is Var and x not in constants for x in e.operands]):
            return [Term(e.op, *e.operands)]  # type: ignore[arg-type]
        return None

    room = sum([v.type.size for v in free])
    out = []
    for v in outputs:
        products = terms(v) or []
        new = {x for t in products for x in (t.left, t.right)} - free
        size = sum([x.type.size for x in new])
        out.append(products if products and size <= min(2 * v.type.size, room) else [])
    return out


def sums(late: Sequence[Sequence[Term]], stack: Callable[[Var], Any]) -> list[Any]:
    """The sum over the steps for each list of products, or None; `stack` returns the stacked values of a factor."""
    out = []
    for terms in late:
        total = None
        for t in terms:
            product = t.over_steps(stack(t.left), stack(t.right))
            total = product if total is None else elementwise.add(total, product)
        out.append(total)
    return out
