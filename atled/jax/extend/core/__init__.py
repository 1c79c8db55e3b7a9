"""Programs and traced values, with the API of `jax.extend.core` and `jax.core`.

A `Program` is both a `Jaxpr` and a `ClosedJaxpr`: it has `invars`, `constvars`, `consts`, `eqns` and `outvars`, and
equations have `primitive`, `params`, `invars` and `outvars`. A primitive represents all ops of a class; the module
`primitives` contains all primitives by name, such as `primitives.sin_p`.

>>> import atled, atled.numpy as jnp
>>> closed = atled.jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
>>> isinstance(closed.jaxpr, Jaxpr), [e.primitive.name for e in closed.eqns]
(True, ['sin', 'mul'])
>>> [float(y) for y in eval_jaxpr(closed.jaxpr, closed.consts, 0.0)]
[0.0]
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, is_array_like, type_of
from atled.core.errors import ConcretizationTypeError
from atled.core.program import Equation as JaxprEqn
from atled.core.program import Literal, Program, Recorder, Var, check, evaluate, subprograms
from atled.core.program import ProgramError as JaxprTypeError
from atled.core.trace import Interpreter, Tracer, entered, responsible, state
from atled.core.types import ArrayType as ShapedArray
from atled.jax.attributes import primitive_of
from atled.jax.effects import Effect
from atled.jax.extend.primitive import Primitive
from atled.staging.compile_time_eval import ensure_compile_time_eval
from atled.transforms.vmap import Batch

__all__ = [
    "AbstractValue", "Atom", "CallPrimitive", "ClosedJaxpr", "ConcretizationTypeError", "DebugInfo", "DropVar",
    "Effect", "Effects", "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "ParamDict", "Primitive", "ShapedArray",
    "Trace", "TraceTag", "Tracer", "Value", "Var", "array_types", "call_impl", "check_jaxpr", "concrete_or_error",
    "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "find_top_trace", "gensym", "get_aval",
    "get_opaque_trace_state", "is_concrete", "jaxpr_as_fun", "jaxprs_in_params", "mapped_aval", "max_dim",
    "min_dim", "new_jaxpr_eqn", "no_effects", "nonempty_axis_env_DO_NOT_USE", "primal_dtype_to_tangent_dtype",
    "set_current_trace", "subjaxprs", "take_current_trace", "trace_state_clean", "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE", "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]  # fmt: skip
__dir__ = __all__.copy

Jaxpr = Program
AbstractValue = ShapedArray
Atom = Var | Literal
Value = Any


class _Closing(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Program)

    def __call__(cls, jaxpr: Program, consts: Any = ()) -> Program:
        consts = list(consts)
        if len(jaxpr.consts) not in (0, len(consts)) or len(consts) > len(jaxpr.inputs):
            raise TypeError(
                f"ClosedJaxpr: each of {len(jaxpr.consts)} constants needs a value; got {len(consts)} values."
            )
        if not consts:
            return jaxpr
        program = Program(jaxpr.inputs, jaxpr.equations, jaxpr.outputs, jaxpr.name, jaxpr.input_names)
        program.consts = consts
        return program


class ClosedJaxpr(metaclass=_Closing):
    """A program with values for its first inputs. Every program is an instance, since there is one class of programs.

    >>> import atled
    >>> program = atled.jax.make_jaxpr(lambda x, y: x + y)(1, 2)
    >>> closed = ClosedJaxpr(program, [3])
    >>> isinstance(program, ClosedJaxpr), len(closed.invars), [int(x) for x in jaxpr_as_fun(closed)(4)]
    (True, 1, [7])
    """


class DropVar(Var):
    """JAX's class of unused results. Programs in atled contain none: unused results are ordinary variables.

    >>> import atled
    >>> program = atled.jax.make_jaxpr(lambda x: (x + 1, x)[1])(1.0)
    >>> any([isinstance(v, DropVar) for e in program.eqns for v in e.outvars])
    False
    """


def check_jaxpr(jaxpr: Program) -> None:
    """Raise a `JaxprTypeError` if a program is invalid: undefined variables or types that do not match.

    >>> import atled
    >>> check_jaxpr(atled.jax.make_jaxpr(lambda x: x + 1)(1))
    """
    check(jaxpr)


def eval_jaxpr(jaxpr: Program, consts: Any, *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """Run a program: `consts` are the values of its `constvars`, `args` those of its `invars`.

    While tracing, the recorded equations have the source line of this call, regardless of `propagate_source_info`.

    >>> import atled
    >>> closed = atled.jax.make_jaxpr(lambda x, y: (x + y, x))(1, 2)
    >>> [int(v) for v in eval_jaxpr(closed, closed.consts, 3, 4)]
    [7, 3]
    """
    return evaluate(jaxpr, [*consts, *args])


def jaxpr_as_fun(closed_jaxpr: Program, *args: Any) -> Callable[..., list[Any]]:
    """A function that runs a program and returns a list of its results.

    >>> import atled
    >>> [int(v) for v in jaxpr_as_fun(atled.jax.make_jaxpr(lambda x: x + 1)(1))(2)]
    [3]
    """
    return lambda *rest: evaluate(closed_jaxpr, [*closed_jaxpr.consts, *args, *rest])


def subjaxprs(jaxpr: Program) -> list[Program]:
    """The programs that the equations hold: bodies of loops, branches and called functions.

    >>> import atled
    >>> loop = atled.jax.make_jaxpr(lambda x: atled.lax.fori_loop(0, 3, lambda i, x: x * 2, x))(1.0)
    >>> len(subjaxprs(loop)) > 0
    True
    """
    return [inner for e in jaxpr.equations for inner in subprograms(e.op)]


def jaxprs_in_params(params: dict[str, Any]) -> list[Program]:
    """The programs among the parameters of an equation, and in tuples and lists among them.

    >>> jaxprs_in_params({"length": 3})
    []
    """
    programs: list[Program] = []
    for value in params.values():
        several = value if isinstance(value, (tuple, list)) else (value,)
        programs += [x for x in several if isinstance(x, Program)]
    return programs


def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
    """`force(val)`; raises a `ConcretizationTypeError` if `val` is a tracer.

    >>> concrete_or_error(int, 3.0)
    3
    """
    if isinstance(val, Tracer):
        raise ConcretizationTypeError(f"{context or 'a concrete value is needed'}; got a tracer of type {val.type}.")
    return val if force is None else force(val)


def is_concrete(x: Any) -> bool:
    """Whether a value is concrete, not a tracer.

    >>> is_concrete(1.0)
    True
    """
    return not isinstance(x, Tracer)


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array or can be converted to an array.

    >>> valid_jaxtype(1.0), valid_jaxtype("a")
    (True, False)
    """
    return is_array_like(x)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch: `aval` without `axis`.

    >>> mapped_aval(3, 0, ShapedArray((3, 2), "float32"))
    f32[2]
    """
    if axis is None:
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"mapped_aval: axis {axis} of {aval} must have size {size}.")
    return aval.with_shape((*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None) -> ShapedArray:
    """The type of a batch of examples: `aval` with a new axis of length `size`.

    >>> unmapped_aval(3, 1, ShapedArray((2,), "float32"))
    f32[2,3]
    """
    return aval if axis is None else aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


class Trace(Interpreter):
    """A user-defined transformation: `process_primitive(primitive, values, params)` handles each op.

    >>> from atled import lax
    >>> class Counting(Trace):
    ...     seen = ()
    ...     def process_primitive(self, primitive, values, params):
    ...         self.seen += (primitive.name,)
    ...         return values[0]  # instead of the result
    >>> trace = Counting()
    >>> with set_current_trace(trace):
    ...     _ = lax.mul(lax.sin(1.0), 2.0)
    >>> trace.seen
    ('sin', 'mul')
    """

    def __init__(self) -> None:
        super().__init__(state.level + 1)

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """Pass an op to `process_primitive` and return its result."""
        primitive = primitive_of(type(op))
        out = self.process_primitive(primitive, list(operands), primitive.params_of(op))  # type: ignore[attr-defined]
        return tuple(out) if primitive.multiple_results else out


@contextlib.contextmanager
def take_current_trace() -> Iterator[Interpreter]:
    """A `with` block whose target is the transformation that handles ops without traced operands.

    >>> with take_current_trace() as trace:
    ...     trace.transform
    'evaluation'
    """
    yield state.base


@contextlib.contextmanager
def set_current_trace(trace: Interpreter) -> Iterator[None]:
    """A `with` block in which `trace` handles all ops without traced operands.

    >>> import atled.numpy as jnp
    >>> with take_current_trace() as outside:
    ...     pass
    >>> with set_current_trace(outside):
    ...     jnp.sin(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    if trace.level <= state.level:  # trace is active already: return to it temporarily
        before = state.base, state.level
        state.base, state.level = trace, trace.level
        try:
            yield
        finally:
            state.base, state.level = before
    else:
        with entered(trace, base=trace):
            yield
        trace.is_open = True


class TraceTag:
    """Distinguishes the traces of different transformations.

    >>> one, other = TraceTag(), TraceTag()
    >>> one is other
    False
    """


class DebugInfo(NamedTuple):
    """The transformation, name and source location of a traced function, for messages.

    >>> DebugInfo("jit", "f at train.py:3", ("x", "y")).arg_names
    ('x', 'y')
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] = ()
    result_paths: tuple[str, ...] | None = None

    @property
    def func_name(self) -> str:
        """The function's name, without the source location."""
        return self.func_src_info.split(" ")[0]


no_effects: frozenset[Effect] = frozenset()
Effects = frozenset


class OpaqueTraceState(NamedTuple):
    """The active transformations; states with the same transformations are equal."""

    base: Any
    innermost: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and all([x is y for x, y in zip(self, other, strict=True)])

    def __hash__(self) -> int:
        return hash((id(self.base), id(self.innermost)))


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """The active transformations as an object to compare with a later state.

    >>> get_opaque_trace_state() == get_opaque_trace_state()
    True
    """
    return OpaqueTraceState(state.base, state.innermost)


def get_aval(x: Any) -> ShapedArray:
    """The type of an array or number.

    >>> get_aval(1.0).shape
    ()
    """
    return type_of(x)


def find_top_trace(xs: Any) -> Interpreter:
    """The transformation that handles ops on these values.

    >>> find_top_trace([1.0]).transform
    'evaluation'
    """
    return responsible(list(xs))


def new_jaxpr_eqn(
    invars: Any, outvars: Any, primitive: Any, params: Any, effects: Any = (), source_info: Any = None, ctx: Any = None
) -> JaxprEqn:
    """An equation that applies `primitive` with `params` to `invars`.

    >>> import atled
    >>> e = atled.jax.make_jaxpr(atled.numpy.sin)(1.0).eqns[0]
    >>> new_jaxpr_eqn(e.invars, e.outvars, e.primitive, e.params)
    Equation(sin)
    """
    return JaxprEqn(primitive.op_of(params), tuple(invars), tuple(outvars), source_info)


def gensym(suffix: str = "") -> Callable[[ShapedArray], Var]:
    """A function that returns a new variable of a given type.

    >>> gensym()(get_aval(1)) is not None
    True
    """
    return Var


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values with this dtype: float0 for integers and bools.

    >>> primal_dtype_to_tangent_dtype("float32").name
    'float32'
    """
    return ShapedArray((), dtypes.canonical(primal_dtype)).tangent().dtype


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes in scope.

    >>> import atled
    >>> _ = atled.vmap(lambda x: print(unsafe_get_axis_names_DO_NOT_USE()), axis_name="i")(np.ones(2))
    ['i']
    """
    return list(state.axes)


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether any named axes are in scope.

    >>> nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(state.axes)


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a function is being traced.

    >>> import atled
    >>> atled.jit(lambda: print(unsafe_am_i_under_a_jit_DO_NOT_USE()))()
    True
    """
    return isinstance(state.base, Recorder)


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being batched.

    >>> import atled
    >>> _ = atled.vmap(lambda x: print(unsafe_am_i_under_a_vmap_DO_NOT_USE()))(np.ones(2))
    True
    """
    interpreter = state.innermost
    while interpreter is not None and not isinstance(interpreter, Batch):
        interpreter = interpreter.outer
    return interpreter is not None


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call the wrapped function `f` with `args`; `params` are ignored.

    >>> from atled.jax.extend.linear_util import wrap_init
    >>> call_impl(wrap_init(lambda x: [x + 1]), 1)
    [2]
    """
    del params
    return f.call_wrapped(*args)


class CallPrimitive(Primitive):
    """A primitive whose first operand is a wrapped function, which `bind` calls; transformations see its ops.

    >>> from atled.jax.extend.linear_util import wrap_init
    >>> CallPrimitive("my_call").bind(wrap_init(lambda x: [x * 2]), 4)
    [8]
    """

    multiple_results = True  # type: ignore[assignment]
    call_primitive = True

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Call the function with the other operands."""
        return call_impl(*operands, **params)


def max_dim(d1: int, d2: int) -> int:
    """The larger of two lengths.

    >>> max_dim(2, 3)
    3
    """
    return max(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two lengths.

    >>> min_dim(2, 3)
    2
    """
    return min(d1, d2)


@contextlib.contextmanager
def eval_context() -> Iterator[None]:
    """A `with` block in which ops on concrete values run eagerly, even while tracing.

    >>> import atled, atled.numpy as jnp
    >>> def f(x):
    ...     with eval_context():
    ...         return x * float(jnp.sum(jnp.ones(3)))
    >>> float(atled.jit(f)(2.0))
    6.0
    """
    with ensure_compile_time_eval():
        yield


ParamDict = dict[str, Any]
array_types = {Array, np.ndarray, *[np.dtype(t).type for t in "?bhilqBHILQefdFD"]}


def trace_state_clean() -> bool:
    """Whether no transformation is active.

    >>> trace_state_clean()
    True
    """
    return state.level == 0
