"""Partial evaluation, with the API of `jax.interpreters.partial_eval`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core.array import type_of
from atled.core.list_partition import kept
from atled.core.program import Equation, Program, Recorder, RecordTracer, Var, evaluate, finish, used
from atled.core.program import RecordTracer as DynamicJaxprTracer
from atled.core.trace import entered, state
from atled.higher_order.call import Call
from atled.jax.attributes import effects_of_equation, primitive_of

JaxprTracer = DynamicJaxprTracer

Val = Any

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "dce_jaxpr", "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule", "dce_jaxpr_consts", "dce_rules", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits",
]  # fmt: skip
__dir__ = __all__.copy


class PartialVal(tuple):
    """A known value, (None, value), or an unknown value of a known type, (type, None).

    >>> PartialVal.known(3).is_known(), PartialVal.unknown(type_of(1.0)).is_known()
    (True, False)
    """

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """An unknown value of the type `aval`."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None if it is unknown."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> Any:
        """The type of the value."""
        return type_of(self[1]) if self.is_known() else self[0]


class _Unknowns(Recorder):
    """Records ops that depend on unknown values and evaluates the others."""

    __slots__ = ()

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if type(op) is Call:  # some of its results may be known
            return tuple(evaluate(op.program, operands))
        return super().process(op, operands)


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[PartialVal], list[Any]]:
    """Run the ops of a function that depend only on known arguments, and record the others.

    Returns the program from unknown arguments to unknown results, the results as `PartialVal`s, and the values of the
    program's first inputs.

    >>> from atled.jax.extend.linear_util import wrap_init
    >>> f = wrap_init(lambda x, y: [x + 1, x * y])
    >>> _, out, _ = trace_to_jaxpr_nounits(f, [PartialVal.known(1), PartialVal.unknown(type_of(2.0))])
    >>> [p.is_known() for p in out], out[0].get_known()
    ([True, False], 2)
    """
    recorder = _Unknowns(state.level + 1, "unknown", ())
    with entered(recorder):
        operands = []
        for p in pvals:
            if not p.is_known():
                recorder.inputs.append(Var(p.get_aval()))
            operands.append(p.get_known() if p.is_known() else RecordTracer(recorder, recorder.inputs[-1]))
        results = list(fun.call_wrapped(*operands))
        asked = [instantiate] * len(results) if isinstance(instantiate, bool) else instantiate
        is_unknown = [
            a or (isinstance(x, RecordTracer) and x.interpreter is recorder)
            for x, a in zip(results, asked, strict=True)
        ]
        outputs = [recorder.lift(x) for x, u in zip(results, is_unknown, strict=True) if u]
    program, consts = finish(recorder, outputs)
    pairs = zip(results, is_unknown, strict=True)
    return program, [PartialVal.unknown(type_of(x)) if u else PartialVal.known(x) for x, u in pairs], consts


def trace_to_jaxpr_dynamic(fun: Any, in_avals: Sequence[Any], **_: Any) -> tuple[Program, list[Any], list[Any]]:
    """The program of a function whose arguments are all unknown, the types of its results, and its constants.

    >>> import atled
    >>> from atled.jax.extend.linear_util import wrap_init
    >>> fun = wrap_init(lambda x: [x * 2])
    >>> program, types, consts = trace_to_jaxpr_dynamic(fun, [atled.jax.typeof(1.0)])
    >>> [e.primitive.name for e in program.eqns], types
    (['mul'], [~f32[]])
    """
    program, out, consts = trace_to_jaxpr_nounits(fun, [PartialVal.unknown(t) for t in in_avals], instantiate=True)
    return program, [p.get_aval() for p in out], consts


def _pruned(program: Program, keep: Sequence[bool]) -> Program:
    """The program with the outputs `keep` and the equations that they need, reduced by the rules in `dce_rules`."""
    outputs = kept(keep, program.outputs)
    needed = {v for v in outputs if type(v) is Var}
    equations: list[Equation] = []
    for e in reversed(program.equations):
        flags = [v in needed for v in e.results]
        rule = dce_rules.get(primitive_of(type(e.op)))
        left: Equation | None = e if any(flags) or e.op.has_effect else None
        is_used: Sequence[bool] = [True] * len(e.operands)
        if rule is not None:
            is_used, left = rule(flags, e)
        if left is not None:
            equations.append(left)
            needed.update([v for v, u in zip(e.operands, is_used, strict=True) if u and type(v) is Var])
    return Program(program.inputs, equations[::-1], outputs, program.name, program.input_names)


def dce_jaxpr_consts(
    jaxpr: Program, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[bool], list[bool]]:
    """The program without unused results and their equations, and which constants and arguments remain.

    Arguments selected by `instantiate` remain even if unused.

    >>> import atled
    >>> both = atled.jax.make_jaxpr(lambda x, y: (x + 1, x * y))(1.0, 2.0)
    >>> fewer, _, is_left = dce_jaxpr_consts(both, [True, False])
    >>> is_left, [str(e.primitive) for e in fewer.eqns]
    ([True, False], ['add'])
    """
    few, is_left = _left(jaxpr, used_outputs, instantiate)
    count = len(jaxpr.consts)
    program = _with_inputs(few, is_left)
    program.consts = [c for c, k in zip(jaxpr.consts, is_left, strict=False) if k]
    return program, is_left[:count], is_left[count:]


def _left(
    jaxpr: Program, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool]
) -> tuple[Program, list[bool]]:
    """The program without unused equations, and which of its inputs are used or selected by `instantiate`."""
    few = _pruned(jaxpr, used_outputs)
    needed = set(used(few)[1])
    count = len(jaxpr.consts)
    asked = [instantiate] * (len(jaxpr.inputs) - count) if isinstance(instantiate, bool) else list(instantiate)
    return few, [i in needed or (i >= count and asked[i - count]) for i in range(len(few.inputs))]


def _with_inputs(program: Program, is_left: Sequence[bool]) -> Program:
    names = kept(is_left, program.input_names) if program.input_names else ()
    inputs = kept(is_left, program.inputs)
    return Program(inputs, program.equations, program.outputs, program.name, names)


def dce_jaxpr(
    jaxpr: Program, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[bool]]:
    """The program without unused results and their equations, and which arguments remain. Constants remain.

    >>> import atled
    >>> both = atled.jax.make_jaxpr(lambda x, y: (x + 1, x * y))(1.0, 2.0)
    >>> dce_jaxpr(both, [True, False], instantiate=True)[1]
    [True, True]
    """
    few, is_left = _left(jaxpr, used_outputs, instantiate)
    count = len(jaxpr.consts)
    program = _with_inputs(few, [True] * count + is_left[count:])
    program.consts = list(jaxpr.consts)
    return program, is_left[count:]


def dce_jaxpr_call_rule(used_outputs: Sequence[bool], eqn: Equation) -> tuple[list[bool], Equation | None]:
    """A dead code elimination rule that removes unused parts of a called program, `jaxpr` or `call_jaxpr`.

    >>> import atled
    >>> call = atled.jax.make_jaxpr(lambda x, y: atled.jit(lambda x, y: (x + 1, x * y))(x, y))(1.0, 2.0).eqns[0]
    >>> is_left, fewer = dce_jaxpr_call_rule([True, False], call)
    >>> is_left, [e.primitive.name for e in fewer.params["jaxpr"].eqns]
    ([True, False], ['add'])
    """
    if not any(used_outputs) and not effects_of_equation(eqn):
        return [False] * len(eqn.operands), None
    primitive = primitive_of(type(eqn.op))
    params = primitive.params_of(eqn.op)
    name = "jaxpr" if "jaxpr" in params else "call_jaxpr"
    few, is_left = dce_jaxpr(params[name], used_outputs)
    operands = tuple(kept(is_left, eqn.operands))
    results = tuple(kept(used_outputs, eqn.results))
    return is_left, Equation(primitive.op_of({**params, name: few}), operands, results, eqn.source)


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule  # one class is both Jaxpr and ClosedJaxpr

# Dead code elimination rules by primitive: `rule(used_results, equation)` returns a bool for each operand, whether it
# is used, and the reduced equation, or None if it is removed.
dce_rules: dict[Any, Callable[[list[bool], Equation], tuple[Sequence[bool], Equation | None]]] = {
    primitive_of(Call): dce_jaxpr_call_rule
}
