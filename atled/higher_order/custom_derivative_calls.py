"""The ops for functions with custom derivatives: calls that also hold the rules. A rule is recorded when a transform
first needs it (`LazyProgram`). `custom_derivatives.py` has the public functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import errors
from atled.core.array import type_of
from atled.core.list_partition import kept, with_zeros
from atled.core.op import Op, instantiate
from atled.core.program import Program, Recorder, evaluate, record_closed
from atled.core.trace import bind, state
from atled.core.types import ArrayType, Zero
from atled.higher_order.call import Call, Rule, run_program
from atled.ops import reduction, shape
from atled.transforms.masked_tangents import users_rule
from atled.transforms.vmap import batch_program


class LazyProgram:
    """A program that is traced on first use."""

    __slots__ = ("_make", "_program")

    def __init__(self, make: Callable[[], Program]) -> None:
        self._make = make
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        if self._program is None:
            self._program = self._make()
        return self._program

    def run(self, operands: Sequence[Any]) -> Sequence[Any]:
        return run_program(self.program, operands)

    def of(self, has_tangent: tuple[bool, ...]) -> LazyProgram:
        """The program for a pattern of nonzero tangents; here it is the same for all patterns."""
        return self

    def then(self, change: Callable[[Program], Program]) -> LazyProgram:
        """A lazy program that applies `change` to this one."""
        return self.each(lambda _, program: change(program))

    def each(self, change: Callable[[tuple[bool, ...], Program], Program]) -> LazyProgram:
        """Like `then`, but `change` also takes the pattern of nonzero tangents, which is `()` here."""
        return LazyProgram(lambda: change((), self.program))


class ByPattern(LazyProgram):
    """The programs of a rule with symbolic zeros: one for each pattern of nonzero tangents, traced on first use."""

    __slots__ = ("_known", "_of")

    def __init__(self, of: Callable[[tuple[bool, ...]], LazyProgram]) -> None:
        self._of = of
        self._known: dict[tuple[bool, ...], LazyProgram] = {}

    @property
    def program(self) -> Program:
        raise NotImplementedError("a rule with symbolic zeros has one program for each pattern of nonzero tangents.")

    def of(self, has_tangent: tuple[bool, ...]) -> LazyProgram:
        """The program for a pattern of nonzero tangents."""
        program = self._known.get(has_tangent)
        if program is None:
            program = self._known[has_tangent] = self._of(has_tangent)
        return program

    def each(self, change: Callable[[tuple[bool, ...], Program], Program]) -> LazyProgram:
        """Lazy programs that apply `change` to the program of each pattern."""
        return ByPattern(lambda pattern: self.of(pattern).then(lambda program: change(pattern, program)))


class CallableProgram(LazyProgram):
    """A function that can be called directly; traced only if a transform needs the program."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Sequence[Any]], types: Sequence[ArrayType], name: str) -> None:
        super().__init__(lambda: record_closed(function, types, name))
        self._function = function

    def run(self, operands: Sequence[Any]) -> Sequence[Any]:
        before, state.source = state.source, None  # equations get the function's own lines
        try:
            return self._function(*operands)
        finally:
            state.source = before


class CustomJvp(Call):
    """A call with a forward-mode rule: a program from primals and their tangents to results and their tangents."""

    selects = True  # type: ignore[assignment]  # the rule might select
    unlowered = ("rule", "captured")
    masked = Op.masked  # `Call.masked` makes a plain call, without the rule
    rule: LazyProgram
    captured: int  # the number of leading operands, which the function closes over

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        n = self.captured
        _refuse_captured("custom_jvp", self.program.name, tangents[:n])
        moves = [t for t, p in zip(tangents[n:], self.program.input_types[n:]) if is_moving(p)]
        if isinstance(self.rule, ByPattern):
            rule = self.rule.of(tuple([type(t) is not Zero for t in moves]))
            out = rule.run([*primals, *[t for t in moves if type(t) is not Zero]])
        else:
            out = self.rule.run([*primals, *map(instantiate, moves)])
        count = len(self.program.outputs)
        return tuple(out[:count]), spread_tangents(out[count:], self.program.output_types)

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        n, size, name = self.captured, batch.size, batch.axis_name
        every = (True,) * len(self.program.outputs)
        program, _ = batch_program(self.program, batched, size, every, name)
        moves = [b for b, t in zip(batched[n:], self.program.input_types[n:]) if is_moving(t)]
        with_axis = (True,) * (len(every) + sum([is_moving(t) for t in self.program.output_types]))

        def change(pattern: tuple[bool, ...], rule: Program) -> Program:
            flags = (*batched, *[b for i, b in enumerate(moves) if not pattern or pattern[i]])
            return batch_program(rule, flags, size, with_axis, name)[0]

        return bind(CustomJvp(program, self.rule.each(change), n), *operands)


class CustomVjp(Call):
    """A call with a reverse-mode rule: `forward` returns residuals, `backward` takes them with cotangents."""

    unlowered = ("backward", "captured", "forward")
    masked = Op.masked
    forward: LazyProgram  # from operands to results and residuals
    backward: LazyProgram  # from residuals and cotangents of inexact results to cotangents of inexact operands
    captured: int

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        n, types = self.captured, self.program.output_types
        _refuse_captured("custom_vjp", self.program.name, tangents[:n])
        moves = [t for t, p in zip(tangents[n:], self.program.input_types[n:]) if is_moving(p)]
        is_moved = tuple([type(t) is not Zero for t in moves])
        results = self.forward.of(is_moved).run(primals)
        out, residuals = tuple(results[: len(types)]), results[len(types) :]
        op = Pullback(
            self.backward.of(is_moved), len(residuals), is_moved, tuple([t.tangent() for t in types if is_moving(t)])
        )
        return out, spread_tangents(bind(op, *residuals, *[t for t in moves if type(t) is not Zero]), types)

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        n, size, name = self.captured, batch.size, batch.axis_name
        types = self.program.output_types
        every = (True,) * len(types)
        program, _ = batch_program(self.program, batched, size, every, name)

        def forward(plain: Program) -> tuple[Program, tuple[bool, ...]]:
            _, flags = batch_program(plain, batched, size, None, name)
            return batch_program(plain, batched, size, (*every, *flags[len(types) :]), name)

        given = sum([is_moving(t) for t in types])
        moves = [b for b, t in zip(batched[n:], self.program.input_types[n:]) if is_moving(t)]

        def backward(pattern: tuple[bool, ...], plain: Program) -> Program:
            flags = (*forward(self.forward.of(pattern).program)[1][len(types) :], *[True] * given)
            return summing(plain, flags, moves, size, name)

        ahead = self.forward.then(lambda plain: forward(plain)[0])
        return bind(CustomVjp(program, ahead, self.backward.each(backward), n), *operands)


class Pullback(Op):
    """The map from tangents to tangents for a reverse-mode rule: it can be transposed, but not run."""

    gives_tuple = True
    splits = True
    unlowered = ("backward",)
    backward: LazyProgram
    residuals: int
    is_moved: tuple[bool, ...]  # whether each inexact operand of the function has a tangent
    types: tuple[ArrayType, ...]

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.types

    def lower(self, build: Any, *operands: Any) -> Any:
        raise _forward_mode()

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        raise _forward_mode()

    def split(self, tape: Any, operands: Sequence[Any]) -> Any:
        if any([tape.owns(x) for x in operands[: self.residuals]]):
            raise _forward_mode()
        return tape.write(self, operands)

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        residuals = operands[: self.residuals]
        given = [*residuals, *[instantiate(c) for c in cotangent]]
        if type(state.base) is Recorder and type(self.backward) is not CallableProgram:
            back = bind(Rule(self.backward.program), *given)  # cotangents may have masks when this program runs
        else:
            with users_rule():
                back = self.backward.run(given)
        return (*[None] * self.residuals, *kept(self.is_moved, back))

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        n, size, name = self.residuals, batch.size, batch.axis_name
        given = iter(batched[n:])
        moves = [next(given) if m else False for m in self.is_moved]
        flags = (*batched[:n], *[True] * len(self.types))
        backward = self.backward.then(lambda p: summing(p, flags, moves, size, name))
        types = tuple([ArrayType((size, *t.shape), t.dtype) for t in self.types])
        return bind(Pullback(backward, n, self.is_moved, types), *operands)


def summing(program: Program, flags: tuple[bool, ...], batched: Sequence[bool], size: int, name: Any) -> Program:
    """A batched backward program: cotangents of operands without a batch axis are summed over the batch."""
    batched_program, out_flags = batch_program(program, flags, size, None, name)

    def f(*operands: Any) -> list[Any]:
        rows = [x if f else shape.add_axis(x, size) for x, f in zip(evaluate(batched_program, operands), out_flags)]
        return [x if b else reduction.reduce_sum(x, (0,)) for x, b in zip(rows, batched)]

    return record_closed(f, batched_program.input_types, program.name)


def is_moving(t: ArrayType) -> bool:
    """Whether values of this type have tangents."""
    return t.tangent().kind != "0"


def spread_tangents(tangents: Sequence[Any], types: Sequence[ArrayType]) -> tuple[Any, ...]:
    """A tangent for each result: the given ones for inexact results, symbolic zeros for others."""
    return with_zeros([is_moving(t) for t in types], tangents, types)


def _refuse_captured(kind: str, name: str, tangents: Sequence[Any]) -> None:
    for t in tangents:
        if type(t) is not Zero:
            raise closes_over(kind, name, f"a {type_of(t)} that is being differentiated")


def closes_over(kind: str, name: str, what: str) -> errors.UnexpectedTracerError:
    """The error for a function or rule that closes over a value that is being transformed."""
    says = f"{kind}: {name} closes over {what}, which its rule does not take as an argument."
    return errors.UnexpectedTracerError(errors.explained(says, f"make it an argument of {name}."))


def _forward_mode() -> TypeError:
    says = "custom_vjp: forward mode (jvp) cannot differentiate a function that has only a reverse-mode rule."
    return TypeError(errors.explained(says, "custom_jvp, which supports both modes."))
