"""Linearization: forward mode whose tangents are recorded instead of computed.

Ops on primals run as usual. Ops on tangents are recorded on a `Tape`, as equations linear in the tangents, with primal
values as constants. Ops that hold programs are split into a part that runs immediately and a linear part on the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import source
from atled.core.array import type_of
from atled.core.program import Equation, Program, Var, record
from atled.core.settings import scope
from atled.core.trace import Interpreter, Place, Tracer, entered, state
from atled.core.types import Zero
from atled.transforms.jvp import Jvp
from atled.transforms.masked_tangents import Masked


class TapeTracer(Tracer):
    """A symbolic tangent on a tape."""

    __slots__ = ("variable",)  # not `var`, which is a method of arrays

    def __init__(self, interpreter: Tape, var: Var) -> None:
        self.interpreter = interpreter
        self.variable = var
        self.type = var.type


class Tape(Interpreter):
    """Records linear equations, whose operands are values or variables of the tape."""

    __slots__ = ("equations",)
    transform = "differentiation"

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.equations: list[Equation] = []

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if op.splits:
            return op.split(self, operands)
        return self.write(op, operands)

    def write(self, op: Any, operands: Sequence[Any]) -> Any:
        """Record an equation; returns its results."""
        inputs = tuple([self.operand(x) for x in operands])
        types = op.result_type(*[v.type if type(v) is Var else type_of(v) for v in inputs])
        where: Any = state.source or source.here()
        if scope().is_watched and type(where) is not Place:
            where = Place(where)
        if type(types) is tuple:
            results = tuple([Var(t) for t in types])
            self.equations.append(Equation(op, inputs, results, where))
            return tuple([TapeTracer(self, v) for v in results])
        result = Var(types)
        self.equations.append(Equation(op, inputs, (result,), where))
        return TapeTracer(self, result)

    def operand(self, x: Any) -> Any:
        return x.variable if self.owns(x) else x

    def owns(self, x: Any) -> bool:
        """Whether a value is a tangent of this tape."""
        return isinstance(x, TapeTracer) and x.interpreter is self


class Linearized:
    """The linear part of a function at a point: equations from input tangents to output tangents."""

    __slots__ = ("equations", "inputs", "outputs")

    def __init__(self, inputs: list[Var | None], equations: list[Equation], outputs: list[Any]) -> None:
        self.inputs = inputs  # None for inputs that have no tangent
        self.equations = equations
        self.outputs = outputs  # variables, or Zero


def linearize_flat(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], is_active: Sequence[bool] | None = None
) -> tuple[list[Any], Linearized]:
    """Run a function, and record the linear map from tangents of the active inputs to tangents of the results."""
    tape = Tape(state.level + 1)
    interpreter = Jvp(state.level + 2)
    inputs: list[Var | None] = []
    operands = []
    for i, x in enumerate(primals):
        tangent = type_of(x).tangent()
        if tangent.kind == "0" or (is_active is not None and not is_active[i]):
            inputs.append(None)
            operands.append(x)
        else:
            var = Var(tangent)
            inputs.append(var)
            operands.append(interpreter.wrap(x, TapeTracer(tape, var)))
    with entered(tape, interpreter):
        pairs = [interpreter.split(x) for x in f(*operands)]
    outputs = [t.variable if tape.owns(t) else t for _, t in pairs]
    return [p for p, _ in pairs], Linearized(inputs, tape.equations, outputs)


def run_linear(linear: Linearized, tangents: Sequence[Any]) -> list[Any]:
    """Apply a linearized function to tangents."""
    env: dict[Any, Any] = {v: t for v, t in zip(linear.inputs, tangents, strict=True) if v is not None}
    masks = Masked(state.level + 1)
    with entered(masks):
        for e in linear.equations:
            is_linear = [type(v) is Var for v in e.operands]
            operands = [env[v] if b else v for v, b in zip(e.operands, is_linear, strict=True)]
            out = masks.apply(e.op, operands, is_linear)
            for v, x in zip(e.results, out if type(out) is tuple else (out,), strict=True):
                env[v] = x
        return [masks.value(env[v]) if type(v) is Var else v for v in linear.outputs]


def linear_program(linear: Linearized) -> tuple[Program, list[Any]]:
    """A linearized function as a program, and the values of its first inputs; the other inputs are tangents."""
    given = [v for v in linear.inputs if v is not None]

    def f(*tangents: Any) -> list[Any]:
        remaining = iter(tangents)
        out = run_linear(linear, [None if v is None else next(remaining) for v in linear.inputs])
        return [x for x in out if type(x) is not Zero]

    return record(f, [v.type for v in given], "linear")
