"""Forward mode: each value carries a tangent, and each op's `jvp` rule computes both for its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core.array import type_of
from atled.core.list_partition import with_zeros
from atled.core.op import instantiate
from atled.core.program import Program, evaluate, record_closed
from atled.core.trace import Interpreter, Tracer, bind, entered, state
from atled.core.types import Zero
from atled.transforms.masked_tangents import Masked


class JvpTracer(Tracer):
    """A primal value and its tangent.

    >>> import atled
    >>> def f(x):
    ...     print(type(x).__name__, x.primal, x.tangent)
    ...     return x
    >>> _ = atled.jvp(f, (1.0,), (5.0,))
    JvpTracer 1.0 5.0
    """

    __slots__ = ("primal", "tangent")

    def __init__(self, interpreter: Interpreter, primal: Any, tangent: Any) -> None:
        self.interpreter = interpreter
        self.primal = primal
        self.tangent = tangent
        self.type = type_of(primal)

    def known(self) -> Any:
        primal = self.primal
        return primal.known() if isinstance(primal, Tracer) else primal


class Jvp(Interpreter):
    """Applies `jvp` rules. Ops that no tangent reaches go to the interpreters below, so their values stay concrete.

    >>> import atled
    >>> _ = atled.jvp(lambda x: print(type(x.interpreter).__name__) or x, (1.0,), (1.0,))
    Jvp
    """

    __slots__ = ("masks",)
    transform = "differentiation"

    def __init__(self, level: int, masks: Masked | None = None) -> None:
        super().__init__(level)
        self.masks = masks  # the masking interpreter of tangents; None while tangents are recorded

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        primals, tangents, is_flat = [], [], True
        for x in operands:
            if isinstance(x, JvpTracer) and x.interpreter is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                is_flat = False
            else:
                primals.append(x)
                tangents.append(Zero(type_of(x).tangent()))
        if is_flat:  # a collective over an axis of this level
            return bind(op, *primals)
        masks = self.masks
        if masks is None:
            out, tangent = op.jvp(primals, tangents)
        else:
            out, tangent = masks.differentiate(op, primals, tangents)
        if type(out) is tuple:
            return tuple([self.wrap(x, t) for x, t in zip(out, tangent, strict=True)])
        return self.wrap(out, tangent)

    def wrap(self, primal: Any, tangent: Any) -> Any:
        return primal if type(tangent) is Zero else JvpTracer(self, primal, tangent)

    def split(self, x: Any) -> tuple[Any, Any]:
        """The primal and the tangent of a result of the differentiated function."""
        if isinstance(x, JvpTracer) and x.interpreter is self:
            return x.primal, x.tangent
        return x, Zero(type_of(x).tangent())


def jvp_flat(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Forward mode on flat lists, without masks: the results and their tangents. Tangents may be `Zero`."""
    interpreter = Jvp(state.level + 1)
    with entered(interpreter):
        out = f(*[interpreter.wrap(x, t) for x, t in zip(primals, tangents, strict=True)])
        pairs = [interpreter.split(x) for x in out]
    return [p for p, _ in pairs], [t for _, t in pairs]


def masked_jvp_flat(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any], is_basis: bool = False
) -> tuple[list[Any], list[Any]]:
    """Forward mode on flat lists, with masks. If `is_basis`, zeros in the tangents count as discarded."""
    masks = Masked(state.level + 1)
    interpreter = Jvp(state.level + 2, masks)
    with entered(masks, interpreter):
        given = [masks.seed(t) for t in tangents] if is_basis else tangents
        out = f(*[interpreter.wrap(x, t) for x, t in zip(primals, given, strict=True)])
        pairs = [interpreter.split(x) for x in out]
        return [p for p, _ in pairs], [masks.value(t) for _, t in pairs]


def jvp_program(
    program: Program, has_tangent: tuple[bool, ...], wanted: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """The derivative of a program: a program from primals and nonzero tangents to results and nonzero tangents.

    Also returns which results have a tangent. `wanted` requests zero tangents for results that would have none.
    """

    def make() -> tuple[Program, tuple[bool, ...]]:
        nonzero: list[bool] = []

        def f(*operands: Any) -> list[Any]:
            primals = operands[: len(program.inputs)]
            tangents = with_zeros(has_tangent, operands[len(program.inputs) :], program.input_types)
            out, out_tangents = jvp_flat(lambda *xs: evaluate(program, xs), primals, tangents)
            if wanted is not None:
                out_tangents = [instantiate(t) if w else t for t, w in zip(out_tangents, wanted, strict=True)]
            nonzero.extend([type(t) is not Zero for t in out_tangents])
            return out + [t for t in out_tangents if type(t) is not Zero]

        types = [v.type for v in program.inputs]
        types += [v.type.tangent() for v, h in zip(program.inputs, has_tangent, strict=True) if h]
        derivative = record_closed(f, types, program.name)
        return derivative, tuple(nonzero)

    return program.memo(("jvp", has_tangent, wanted), make)
