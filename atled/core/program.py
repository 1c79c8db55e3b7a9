"""The typed program, its variables and equations; functions that record, evaluate, check and prune programs.

`record` traces a function: it runs the function on tracers and records the ops. Arrays that the function closes over
do not become constants; `record` returns them along with the program, as values for its first inputs. Only scalars
become literals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from atled.core import errors, program_text, source
from atled.core.array import Array, type_of
from atled.core.basic_ops import arithmetic
from atled.core.list_partition import kept
from atled.core.settings import recording, scope
from atled.core.trace import Interpreter, Tracer, bind, entered, leaked, state
from atled.core.types import ArrayType


class Var:
    """A value in a program, defined once.

    >>> import atled
    >>> type(atled.make_program(lambda x: x + 2.0)(1.0).equations[0].operands[0]).__name__
    'Var'
    """

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    def __repr__(self) -> str:
        return f"Var({self.type})"


class Literal:
    """A scalar written into a program.

    >>> import atled
    >>> type(atled.make_program(lambda x: x + 2.0)(1.0).equations[0].operands[1]).__name__
    'Literal'
    """

    __slots__ = ("type", "value")

    def __init__(self, value: Any, type: ArrayType) -> None:
        self.value = value
        self.type = type

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"{self.value}"


class Equation:
    """`results = op(operands)`, and the line of the user's code that it was recorded from.

    >>> import atled
    >>> [e.op.name for e in atled.make_program(lambda x: x * x + 1)(2.0).equations]
    ['mul', 'add']
    """

    __slots__ = ("op", "operands", "results", "source")

    def __init__(self, op: Any, operands: tuple[Var | Literal, ...], results: tuple[Var, ...], source: Any) -> None:
        self.op = op
        self.operands = operands
        self.results = results
        self.source = source

    def __repr__(self) -> str:
        return f"Equation({self.op!r})"


class Program:
    """A traced function: inputs, equations in order, outputs. Immutable; compared by identity.

    >>> import atled
    >>> len(atled.make_program(lambda x: x * x + 1)(2.0).equations)
    2
    """

    __slots__ = ("__weakref__", "consts", "derived", "equations", "input_names", "inputs", "name", "outputs")

    def __init__(
        self,
        inputs: Sequence[Var],
        equations: Sequence[Equation],
        outputs: Sequence[Var | Literal],
        name: str = "program",
        input_names: Sequence[str] = (),
    ) -> None:
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self.name = name
        self.input_names = tuple(input_names)
        self.consts: list[Any] = []  # values of the first inputs, if the program was made by `make_program`
        self.derived: dict[Any, Any] = {}  # cached results of transforming this program, kept as long as it lives

    @property
    def input_types(self) -> tuple[ArrayType, ...]:
        return tuple([v.type for v in self.inputs])

    @property
    def output_types(self) -> tuple[ArrayType, ...]:
        return tuple([v.type for v in self.outputs])

    def __str__(self) -> str:
        return program_text.text(self)

    __repr__ = __str__

    def memo(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of `make()`, computed once for this program and key."""
        value = self.derived.get(key)
        if value is None:
            value = self.derived[key] = make()
        return value


class RecordTracer(Tracer):
    """A variable of a program being recorded.

    >>> import atled
    >>> program = atled.make_program(lambda x: print(type(x).__name__) or x + 1)(1.0)
    RecordTracer
    """

    __slots__ = ("variable",)  # not `var`, which is a method of arrays

    def __init__(self, interpreter: Recorder, var: Var) -> None:
        self.interpreter = interpreter
        self.variable = var
        self.type = var.type


class Recorder(Interpreter):
    """The interpreter that records ops instead of running them."""

    __slots__ = ("captured", "equations", "input_names", "inputs", "name", "with_sources")
    transform = "jit"

    def __init__(self, level: int, name: str, input_names: Sequence[str], with_sources: bool = True) -> None:
        super().__init__(level)
        self.equations: list[Equation] = []
        self.captured: dict[int, tuple[Var, Any]] = {}  # id of a value -> its variable, and the value, to keep it alive
        self.inputs: list[Var] = []
        self.name = name
        self.input_names = tuple(input_names)
        self.with_sources = with_sources

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        lifted = tuple([self.lift(x) for x in operands])
        out = op.result_type(*[v.type for v in lifted])
        where = (state.source or source.here()) if self.with_sources else None
        if type(out) is tuple:
            results = tuple([Var(t) for t in out])
            self.equations.append(Equation(op, lifted, results, where))
            return tuple([RecordTracer(self, v) for v in results])
        result = Var(out)
        self.equations.append(Equation(op, lifted, (result,), where))
        return RecordTracer(self, result)

    def lift(self, x: Any) -> Var | Literal:
        """The variable or literal for a value in this program."""
        if type(x) is RecordTracer and x.interpreter is self:
            return x.variable
        if isinstance(x, Literal):
            return x
        if isinstance(x, Tracer):
            if not x.interpreter.is_open:
                raise leaked(x)
        elif not isinstance(x, Array) and np.ndim(x) == 0:
            return Literal(x, type_of(x))
        known = self.captured.get(id(x))
        if known is None:
            known = self.captured[id(x)] = (Var(type_of(x)), x)
        return known[0]

    def inline(self, program: Program, operands: Iterable[Any]) -> list[Any]:
        """Inline a program's equations, without running its rules again."""
        lift = self.lift
        env: dict[Any, Any] = {v: lift(x) for v, x in zip(program.inputs, operands, strict=True)}
        where = (state.source or source.here()) if self.with_sources else None
        append = self.equations.append
        for e in program.equations:
            inputs = tuple([env[v] if type(v) is Var else v for v in e.operands])
            results = tuple([Var(v.type) for v in e.results])
            for old, new in zip(e.results, results, strict=True):
                env[old] = new
            append(Equation(e.op, inputs, results, e.source or where))
        outputs = [env[v] if type(v) is Var else v for v in program.outputs]
        return [RecordTracer(self, v) if type(v) is Var else v for v in outputs]

    def explain(self, tracer: Tracer) -> str:
        """A line for error messages: the arguments that a value depends on."""
        needed, names = _needed(self.equations, [tracer.variable]), []  # type: ignore[attr-defined]
        for var, name in zip(self.inputs, self.input_names, strict=False):
            if var in needed or var is tracer.variable:  # type: ignore[attr-defined]
                names.append(name)
        text = f"\n  {self.name} {'is being' if self.is_open else 'was'} compiled by jit"
        if names:
            text += f", and the value depends on argument {', '.join(names)}"
        return text + "."


def record(
    f: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    name: str = "program",
    input_names: Sequence[str] = (),
    with_sources: bool = True,
    is_pruned: bool = True,
) -> tuple[Program, list[Any]]:
    """Trace `f` on arguments of these types; returns the program, and the values of its captured inputs.

    The captured inputs are the program's first ones. Dead code is removed if `is_pruned`.
    """
    recorder = Recorder(state.level + 1, name, input_names, with_sources)
    recorder.inputs = [Var(t) for t in types]
    with recording(), entered(recorder, base=recorder):
        outputs = f(*[RecordTracer(recorder, v) for v in recorder.inputs])
        variables = [recorder.lift(x) for x in outputs]
    return finish(recorder, variables, is_pruned)


def record_closed(f: Callable[..., Sequence[Any]], types: Sequence[ArrayType], name: str = "program") -> Program:
    """Like `record`, for programs made by transforms, which have no caller that could pass captured values.

    Only user-written rules can close over arrays; these become constants of the program.
    """
    program, captured = record(f, types, name)
    if not captured:
        return program
    first = []
    for var, x in zip(program.inputs, captured, strict=False):
        if isinstance(x, Tracer):
            raise errors.UnexpectedTracerError(
                x._explained(
                    f"{name}: a custom rule closes over a traced {x.type}, which is not available where "
                    "the rule is used.",
                    "make it an argument of the function; the rule then gets it too.",
                )
            )
        first.append(Equation(arithmetic.constant(x), (), (var,), None))
    return Program(program.inputs[len(captured) :], [*first, *program.equations], program.outputs, name)


def finish(recorder: Recorder, outputs: Sequence[Var | Literal], is_pruned: bool = True) -> tuple[Program, list[Any]]:
    """The recorded program, and the values of its captured inputs."""
    if is_pruned:
        needed = _needed(recorder.equations, outputs)
        equations = [e for e in recorder.equations if e.op.has_effect or not needed.isdisjoint(e.results)]
    else:
        equations = recorder.equations
        needed = {v for e in equations for v in e.operands} | set(outputs)
    captured = [(v, x) for v, x in recorder.captured.values() if v in needed]
    inputs = [v for v, _ in captured] + recorder.inputs
    names = ["captured"] * len(captured) + list(recorder.input_names)
    program = Program(inputs, equations, outputs, recorder.name, names if recorder.input_names else ())
    if scope().check_programs:
        check(program)
    return program, [x for _, x in captured]


def _needed(equations: Sequence[Equation], outputs: Iterable[Any]) -> set[Any]:
    """The variables that the outputs, or an effect, depend on."""
    needed = {v for v in outputs if type(v) is Var}
    for e in reversed(equations):
        if e.op.has_effect or not needed.isdisjoint(e.results):
            needed.update([v for v in e.operands if type(v) is Var])
    return needed


def pruned(program: Program, keep: Sequence[bool]) -> Program:
    """The program with only some of its outputs, and only the equations that these need. All inputs stay."""
    outputs = kept(keep, program.outputs)
    needed = _needed(program.equations, outputs)
    equations = [e for e in program.equations if e.op.has_effect or not needed.isdisjoint(e.results)]
    return Program(program.inputs, equations, outputs, program.name, program.input_names)


def used(program: Program) -> tuple[Program, tuple[int, ...]]:
    """The program without its unused inputs, and the positions of the remaining ones."""

    def make() -> tuple[Program, tuple[int, ...]]:
        needed = _needed(program.equations, program.outputs)
        left = tuple([i for i, v in enumerate(program.inputs) if v in needed])
        if len(left) == len(program.inputs):
            return program, left
        names = [program.input_names[i] for i in left] if program.input_names else ()
        inputs = [program.inputs[i] for i in left]
        return Program(inputs, program.equations, program.outputs, program.name, names), left

    return program.memo("used", make)


def evaluate(program: Program, operands: Sequence[Any]) -> list[Any]:
    """Run a program under the current interpreters."""
    env: dict[Any, Any] = dict(zip(program.inputs, operands, strict=True))
    before = state.source
    try:
        for e in program.equations:
            if e.source is not None:
                state.source = e.source
            out = bind(e.op, *[env[v] if type(v) is Var else v for v in e.operands])
            if type(out) is tuple:
                for v, x in zip(e.results, out, strict=True):
                    env[v] = x
            else:
                env[e.results[0]] = out
    finally:
        state.source = before
    return [env[v] if type(v) is Var else v for v in program.outputs]


def inline(program: Program, operands: Sequence[Any]) -> list[Any]:
    """Run a program of the library's own code: inline its equations while tracing, unless an operand is transformed."""
    base = state.base
    if type(base) is Recorder:
        level = base.level
        for x in operands:
            if isinstance(x, Tracer) and x.interpreter.level > level:
                return evaluate(program, operands)
        return base.inline(program, operands)
    return evaluate(program, operands)


class ProgramError(TypeError):
    """A program is ill-formed: a bug in a transformation or in an op's rule, not in user code.

    >>> import atled
    >>> program = atled.make_program(lambda x: x + 1)(1.0)
    >>> try:
    ...     check(Program((), program.equations, program.outputs))  # its input was left out
    ... except ProgramError as error:
    ...     print(error)
    check: equation 0 (add) uses a variable before it is defined.
    """


def check(program: Program) -> None:
    """Verify that every variable is defined once, before its use, and has the type that its op's rule gives."""
    defined = set(program.inputs)
    if len(defined) != len(program.inputs):
        raise ProgramError("check: an input variable appears twice.")
    for n, e in enumerate(program.equations):
        for v in e.operands:
            if type(v) is Var and v not in defined:
                raise ProgramError(f"check: equation {n} ({e.op.name}) uses a variable before it is defined.")
        promised = e.op.result_type(*[v.type for v in e.operands])
        promised = promised if type(promised) is tuple else (promised,)
        if promised != tuple([v.type for v in e.results]):
            raise ProgramError(
                f"check: equation {n} ({e.op.name}) has results {[v.type for v in e.results]}; "
                f"its rule gives {list(promised)}."
            )
        for v in e.results:
            if v in defined:
                raise ProgramError(f"check: equation {n} ({e.op.name}) defines a variable again.")
            defined.add(v)
    for v in program.outputs:
        if type(v) is Var and v not in defined:
            raise ProgramError("check: an output is not defined.")


def mesh_of(program: Program) -> Any:
    """The mesh that ops of a program refer to, or None."""

    def make() -> tuple[Any]:
        for e in program.equations:
            mesh = e.op.mesh
            for inner in subprograms(e.op):
                mesh = mesh or mesh_of(inner)
            if mesh is not None:
                return (mesh,)
        return (None,)

    return program.memo("mesh", make)[0]


def contains(program: Program, name: str) -> bool:
    """Whether a program, or one that its ops hold, has an op of this name."""

    def find() -> bool:
        ops = [e.op for e in program.equations]
        return any([op.name == name for op in ops]) or any([contains(p, name) for op in ops for p in subprograms(op)])

    return program.memo(("contains", name), find)


def subprograms(op: Any) -> list[Program]:
    """The programs that an op holds."""
    programs = []
    for name in op.fields:
        value = getattr(op, name)
        programs += [p for p in (value if isinstance(value, tuple) else (value,)) if isinstance(p, Program)]
    return programs
