"""`Call`: a program as one op. Transforming a call transforms its program, which caches the transformed one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core.array import type_of
from atled.core.list_partition import kept, left_out, merged, with_zeros
from atled.core.op import Op
from atled.core.program import Equation, Literal, Program, Recorder, Var, evaluate, record_closed
from atled.core.trace import bind, entered, state
from atled.core.types import ArrayType, Linear, Zero
from atled.transforms.jvp import jvp_program
from atled.transforms.linearize import Tape, TapeTracer
from atled.transforms.masked_tangents import mask_program, selects, users_rule
from atled.transforms.transpose import transpose_program
from atled.transforms.vmap import PartlyBatched, batch_program


class Call(Op):
    """Runs a program, which becomes one function of the compiled module, however often it is called."""

    gives_tuple = True
    splits = True
    takes_keys = True
    program: Program

    def again(self, program: Program) -> Call:
        """The op for a transformed program."""
        return Call(program)

    @property
    def axes(self) -> tuple[Any, ...]:
        """The named axes that collectives in the program run over."""
        return named_axes(self.program)

    @property
    def is_collective(self) -> bool:  # type: ignore[override]
        return bool(named_axes(self.program))

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return has_effects(self.program)

    @property
    def selects(self) -> bool:  # type: ignore[override]
        return selects(self.program)

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        expected = self.program.input_types
        if types != expected and [t.strong() for t in types] != [t.strong() for t in expected]:
            raise TypeError(f"{self.program.name}: expected operands {expected}; got {types}.")
        return self.program.output_types

    def lower(self, build: Any, *operands: Any) -> Any:
        if has_effects(self.program):  # to keep the order of effects inside and outside
            return tuple(build.inline(self.program, operands))
        return build.call(self.program, operands)

    def varies(self, of: Any, given: list[Any]) -> list[Any]:
        return of(self.program, given)

    def stepwise(self, *operands: Any) -> Any:
        return tuple(evaluate(self.program, operands))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        given = tuple([type(t) is not Zero for t in tangents])
        derivative, nonzero = jvp_program(self.program, given)
        out = bind(self.again(derivative), *primals, *[t for t in tangents if type(t) is not Zero])
        count = len(self.program.outputs)
        return out[:count], with_zeros(nonzero, out[count:], self.program.output_types)

    def split(self, tape: Tape, operands: Sequence[Any]) -> Any:
        is_known = tuple([not tape.owns(x) for x in operands])
        parts = split_program(self.program, is_known)
        known = bind(self.again(parts.known), *kept(is_known, operands))
        count = sum(parts.known_outputs)
        waiting = left_out(is_known, operands)
        written = tape.write(self.again(parts.waiting), [*known[count:], *waiting])
        return tuple(merged(parts.known_outputs, known[:count], written))

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        is_linear = tuple([type(x) is Linear for x in operands])
        given = tuple([type(c) is not Zero for c in cotangent])
        transposed, nonzero = transpose_program(self.program, is_linear, given)
        values = left_out(is_linear, operands)
        out = bind(self.again(transposed), *values, *[c for c in cotangent if type(c) is not Zero])
        return tuple(merged(is_linear, merged(nonzero, out)))

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        masked_program = mask_program(self.program, masks)
        return masked_program.run(lambda program, *operands: bind(self.again(program), *operands), values, masks)

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        program, flags = batch_program(self.program, batched, batch.size, axis_name=batch.axis_name)
        return PartlyBatched(bind(self.again(program), *operands), flags)


class Rule(Call):
    """A call of a user-written rule, which may concatenate cotangents with nonzero values."""

    def again(self, program: Program) -> Call:
        return Rule(program)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        with users_rule():
            return super().masked(values, masks)


class TunedCall(Call):
    """A call of a function with XLA options. It is launched separately, since XLA's options are for a whole program."""

    compiler_options: Any

    def again(self, program: Program) -> Call:
        return TunedCall(program, self.compiler_options)

    def lower(self, build: Any, *operands: Any) -> Any:
        raise ValueError(
            f"jit: {self.program.name} has compiler_options, so it cannot be part of another compiled function."
            "\n  try: pass compiler_options to the outermost jit."
        )


def run_program(program: Program, operands: Sequence[Any]) -> Sequence[Any]:
    """Run a program: inline it while tracing, else launch it."""
    return evaluate(program, operands) if type(state.base) is Recorder else bind(Call(program), *operands)


def named_axes(program: Program) -> tuple[Any, ...]:
    """The named axes that a program's collectives run over."""

    def make() -> tuple[Any, ...]:
        axes: dict[Any, None] = {}
        for e in program.equations:
            if e.op.is_collective:
                axes.update(dict.fromkeys(e.op.axes))
        return tuple(axes)

    return program.memo("axes", make)


def has_effects(program: Program) -> bool:
    """Whether a program has side effects."""
    return program.memo("effects", lambda: (any(e.op.has_effect for e in program.equations),))[0]


class Split:
    """A split program: `known` returns known outputs and residuals, `waiting` takes residuals and unknown inputs."""

    __slots__ = ("known", "known_outputs", "waiting")

    def __init__(self, known: Program, waiting: Program, known_outputs: list[bool]) -> None:
        self.known = known
        self.waiting = waiting
        self.known_outputs = known_outputs


def split_program(program: Program, is_known: tuple[bool, ...]) -> Split:
    """Split a program into the part that depends only on known inputs, and the remaining part."""
    return program.memo(("split", is_known), lambda: _split(program, is_known))


def _split(program: Program, is_known: tuple[bool, ...]) -> Split:
    inputs = [Var(v.type) for v in left_out(is_known, program.inputs)]
    collected: dict[str, Any] = {}

    def f(*values: Any) -> list[Any]:
        tape = Tape(state.level + 1)
        with entered(tape):
            out = evaluate(program, merged(is_known, values, [TapeTracer(tape, v) for v in inputs]))
        collected["outputs"] = out
        collected["known_outputs"] = [not tape.owns(x) for x in out]
        collected["equations"], collected["residuals"] = _abstract(tape.equations)
        return [x for x in out if not tape.owns(x)] + [x for _, x in collected["residuals"].values()]

    known = record_closed(f, [v.type for v, k in zip(program.inputs, is_known, strict=True) if k], program.name)
    outputs = [x.variable for x, k in zip(collected["outputs"], collected["known_outputs"], strict=True) if not k]
    residuals = [v for v, _ in collected["residuals"].values()]
    return Split(
        known, Program([*residuals, *inputs], collected["equations"], outputs, program.name), collected["known_outputs"]
    )


def _abstract(equations: Sequence[Equation]) -> tuple[list[Equation], dict[int, tuple[Var, Any]]]:
    """A tape's equations with values replaced by variables, and a dict from id of a value to variable and value."""
    residuals: dict[int, tuple[Var, Any]] = {}

    def operand(x: Any) -> Any:
        if type(x) is Var or isinstance(x, Literal):
            return x
        if id(x) not in residuals:
            residuals[id(x)] = (Var(type_of(x)), x)
        return residuals[id(x)][0]

    abstracted = [Equation(e.op, tuple([operand(x) for x in e.operands]), e.results, e.source) for e in equations]
    return abstracted, residuals
