"""Interpreters, tracers and `bind`, which dispatches every op to an interpreter.

Interpreters are stacked by level: evaluation is level 0, each active transformation is one level higher. An op goes to
the interpreter of the operand with the highest level, or to the `base` (evaluation, or the innermost trace) if none is
higher. Values that do not depend on a tracer therefore stay concrete. The state is per thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from atled.core import error_hints, errors, leaked_tracer_holders, source
from atled.core.array import Array
from atled.core.types import ArrayType


class Interpreter:
    """Processes ops. `level` orders interpreters; `is_open` becomes False when the transformation ends."""

    __slots__ = ("assigned", "is_open", "level", "outer")
    outer: Interpreter | None  # the interpreter entered before this one
    transform = "evaluation"  # the name of the transformation in messages
    is_watching = False  # must process every op itself, so functions are not launched as one program

    def __init__(self, level: int) -> None:
        self.level = level
        self.is_open = True
        self.outer = None
        self.assigned: list[Any] | None = None  # attributes that its function assigned in module arguments

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        raise NotImplementedError

    def explain(self, tracer: Tracer) -> str:
        """A line for error messages: where a tracer of this interpreter comes from."""
        return f"\n  The value is traced by {self.transform}."


class Axis(NamedTuple):
    """A named axis that collectives can refer to, and the interpreter that owns it (None: the compiled program)."""

    name: Any
    size: int
    interpreter: Interpreter | None


class _State(threading.local):
    base: Any  # the interpreter for ops without traced operands
    level: int
    innermost: Interpreter | None  # the interpreter entered last
    axes: dict[Any, Axis]
    source: Any  # overrides the source location of new equations
    lanes: tuple[int, ...]  # while watched: the batch sizes of the enclosing vmaps, the outermost first
    steps: tuple[Any, ...]  # while watched: the enclosing loops, and the current step of each
    is_receiving: bool  # whether a transformed function's arguments are being rebuilt from their leaves
    notes: list[Any] | None  # while a library function is traced: warnings to repeat for every caller

    def __init__(self) -> None:
        self.base = _bottom[0]
        self.level = 0
        self.innermost = None
        self.axes = {}
        self.source = None
        self.lanes = ()
        self.steps = ()
        self.is_receiving = False
        self.notes = None


_bottom: list[Any] = [None]
state = _State()


def install(interpreter: Interpreter) -> None:
    """Set the interpreter of level 0, which evaluates ops."""
    _bottom[0] = interpreter
    state.base = interpreter


def bottom() -> Interpreter:
    """The interpreter of level 0, which runs ops on concrete values."""
    return _bottom[0]


class Place:
    """An op's source location, vmap lanes and loop steps, stored for the backward pass."""

    __slots__ = ("lanes", "source", "steps")

    def __init__(self, source: Any) -> None:
        self.source, self.lanes, self.steps = source, state.lanes, state.steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)


class step:  # noqa: N801
    """A `with` block for one step of a loop."""

    __slots__ = ("before", "turn")

    def __init__(self, name: str, number: int, count: int | None) -> None:
        self.turn = (name, number, count)

    def __enter__(self) -> None:
        self.before = state.steps
        state.steps = (*self.before, self.turn)

    def __exit__(self, *_: Any) -> None:
        state.steps = self.before


_CHOICE = "numpy.where(c, a, b) to choose values, lax.cond to choose what to compute, or a static argument."


class Tracer(Array):
    """An array inside a transformation. Subclasses add the data of their interpreter, such as a tangent.

    >>> import atled
    >>> atled.jit(lambda x: print(isinstance(x, Tracer)))(1.0)
    True
    """

    __slots__ = ("interpreter", "type")
    interpreter: Any
    type: ArrayType

    def __init__(self, interpreter: Any, type: ArrayType) -> None:
        self.interpreter, self.type = interpreter, type

    def known(self) -> Any:
        """The concrete array behind this tracer, or None if there is none."""
        return None

    def __bool__(self) -> bool:
        value = self.known()
        if value is None:
            says = f"bool: the truth value of a traced {self.type} is not known here."
            way_out = (self.type.kind == "b" and error_hints.truth()) or _CHOICE
            raise errors.TracerBoolConversionError(self._explained(says, way_out))
        return bool(value)

    def __int__(self) -> int:
        return int(self._python_value("int", errors.ConcretizationTypeError))

    def __float__(self) -> float:
        return float(self._value_without_derivative("float"))

    def __complex__(self) -> complex:
        return complex(self._value_without_derivative("complex"))

    def __index__(self) -> int:
        value = self.known()
        if value is None:
            says = f"index: a Python integer was requested from a traced {self.type}, whose value is not known here."
            way_out = "keep it in an array, or make the argument static: jit(f, static_argnames=...)."
            raise errors.TracerIntegerConversionError(self._explained(says, error_hints.integer() or way_out))
        return value.__index__()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        says = (
            f"numpy.asarray: a NumPy array was requested from a traced {self.type}, which has no values to copy here."
        )
        way_out = error_hints.of_our_own() or "the function of the same name in atled.numpy."
        raise errors.TracerArrayConversionError(self._explained(says, way_out))

    def item(self, *index: int) -> Any:
        return self._value_without_derivative("item").item(*index)

    def tolist(self) -> Any:
        return self._value_without_derivative("tolist").tolist()

    def __dlpack__(self, **_: Any) -> Any:
        return self.__array__()

    def block_until_ready(self) -> Tracer:
        return self

    def __repr__(self) -> str:
        return f"Traced<{self.type}> by {self.interpreter.transform}"

    def __format__(self, spec: str) -> str:
        value = self.known()
        return format(value, spec) if value is not None else repr(self)

    def _python_value(self, what: str, error: Any) -> Any:
        value = self.known()
        if value is None:
            says = f"{what}: a Python value was requested from a traced {self.type}, whose value is not known here."
            way_out = error_hints.number() or "keep the computation in arrays, or make the argument static."
            raise error(self._explained(says, way_out))
        return value

    def _value_without_derivative(self, what: str) -> Any:
        if self.known() is not None:
            says = f"{what}: a Python number has no derivative, but this {self.type} is being differentiated."
            way_out = error_hints.number() or "the function in atled.numpy"
            way_out += f", or {what}(lax.stop_gradient(x)) if a constant is intended."
            raise errors.ConcretizationTypeError(self._explained(says, way_out))
        return self._python_value(what, errors.ConcretizationTypeError)

    def _explained(self, says: str, instead: str) -> str:
        return errors.explained(says, instead, self.interpreter.explain(self))


def bind(op: Any, *operands: Any) -> Any:
    """Dispatch an op to the interpreter with the highest level among its operands and named axes."""
    interpreter = state.base
    for x in operands:
        if isinstance(x, Tracer) and x.interpreter.level > interpreter.level:
            interpreter = x.interpreter
    if op.is_collective:
        for axis in axes_of(op):
            if axis.interpreter is not None and axis.interpreter.level > interpreter.level:
                interpreter = axis.interpreter
    if not interpreter.is_open:
        raise leaked(next(x for x in operands if isinstance(x, Tracer) and not x.interpreter.is_open))
    try:
        return interpreter.process(op, operands)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def responsible(operands: Iterable[Any]) -> Interpreter:
    """The interpreter to which `bind` would dispatch an op on these operands."""
    interpreter = state.base
    for x in operands:
        if isinstance(x, Tracer) and x.interpreter.level > interpreter.level:
            interpreter = x.interpreter
            if not interpreter.is_open:
                raise leaked(x)
    return interpreter


def axes_of(op: Any) -> list[Axis]:
    """The named axes that a collective op runs over."""
    return [named_axis(name) for name in op.axes]


def named_axis(name: Any) -> Axis:
    """The named axis in scope; raises if there is none of this name."""
    try:
        return state.axes[name]
    except KeyError:
        known = ", ".join(map(repr, state.axes)) or "none"
        raise NameError(
            errors.explained(
                f"collective: there is no axis named {name!r} here; the axes in scope are: {known}.",
                f"vmap(f, axis_name={name!r}), or shard_map over a mesh with that axis.",
            )
        ) from None


def leaked(tracer: Tracer) -> errors.UnexpectedTracerError:
    """The error for a tracer that is used after its transformation has ended."""
    holder = leaked_tracer_holders.holder(tracer)
    return errors.UnexpectedTracerError(
        errors.explained(
            f"leaked value: a {tracer.type} made inside {tracer.interpreter.transform} escaped by a side effect "
            "and was used later.",
            "return the value from the transformed function instead of storing it outside.",
            more=_origin(tracer) + (f"\n  It was kept in {holder}." if holder else ""),
        )
    )


def _origin(tracer: Any) -> str:
    """A line for error messages: where a recorded value was made; empty if unknown."""
    for equation in getattr(tracer.interpreter, "equations", ()):
        if any([v is tracer.variable for v in equation.results]) and equation.source is not None:
            return source.describe(equation.source).replace("\n  in ", "\n  made in ", 1)
    return ""


def received(build: Callable[[Any], Any], leaves: Any) -> Any:
    """The arguments of a transformed function, rebuilt from their leaves, so modules are copies."""
    before, state.is_receiving = state.is_receiving, True
    try:
        return build(leaves)
    finally:
        state.is_receiving = before


def leaving(name: str, *results: Any) -> None:
    """Warn if a transformed function with these results assigned to a module that it does not return."""
    home = state.innermost
    if home is not None and home.assigned:
        done, home.assigned = home.assigned, None
        for tell in done:
            if tell(name, results):  # has warned: once is enough
                break


class entered:  # noqa: N801
    """A `with` block in which interpreters are open, optionally with a new base or one more named axis."""

    __slots__ = ("axis", "base", "before", "interpreters")

    def __init__(self, *interpreters: Interpreter, base: Interpreter | None = None, axis: Axis | None = None) -> None:
        self.interpreters = interpreters
        self.base = base
        self.axis = axis

    def __enter__(self) -> None:
        self.before = (state.base, state.level, state.axes, state.source, state.innermost)
        state.innermost = self.interpreters[-1]
        state.innermost.outer = self.before[-1]
        state.level = state.innermost.level
        if self.base is not None:
            state.base = self.base
            state.source = None
        if self.axis is not None:
            state.axes = {**state.axes, self.axis.name: self.axis}

    def __exit__(self, *_: Any) -> None:
        state.base, state.level, state.axes, state.source, state.innermost = self.before
        for interpreter in self.interpreters:
            interpreter.is_open = False
