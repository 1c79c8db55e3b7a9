"""Partial evaluation, with the API of `jax.interpreters.partial_eval`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core.array import type_of
from atled.core.program import Program, Recorder, RecordTracer, Var, evaluate, finish, pruned, used
from atled.core.program import RecordTracer as DynamicJaxprTracer
from atled.core.trace import entered, state
from atled.higher_order.call import Call

JaxprTracer = DynamicJaxprTracer

Val = Any

__all__ = [
    "DynamicJaxprTracer", "JaxprTracer", "PartialVal", "Val", "dce_jaxpr", "dce_jaxpr_consts", "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]  # fmt: skip


class PartialVal(tuple):
    """A value that is known, (None, value), or of which the type is known, (type, None).

    >>> PartialVal.known(3).is_known(), PartialVal.unknown(type_of(1.0)).is_known()
    (True, False)
    """

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A concrete value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """A value of which only the type is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is concrete."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> Any:
        """The type."""
        return type_of(self[1]) if self.is_known() else self[0]


class _Unknowns(Recorder):
    """Records ops that depend on unknown values; the rest is evaluated."""

    __slots__ = ()

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if type(op) is Call:  # some of its results may be known
            return tuple(evaluate(op.program, operands))
        return super().process(op, operands)


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[PartialVal], list[Any]]:
    """Run the ops that depend only on known arguments, and record the rest.

    Returns the program from unknown arguments to unknown results, the results, and the values of the program's first
    inputs.

    >>> from atled.extend.linear_util import wrap_init
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
    """The program of a function of unknown values, the types of its results, and its constants.

    >>> import atled
    >>> from atled.extend.linear_util import wrap_init
    >>> fun = wrap_init(lambda x: [x * 2])
    >>> program, types, consts = trace_to_jaxpr_dynamic(fun, [atled.typeof(1.0)])
    >>> [e.primitive.name for e in program.eqns], types
    (['mul'], [~f32[]])
    """
    program, out, consts = trace_to_jaxpr_nounits(fun, [PartialVal.unknown(t) for t in in_avals], instantiate=True)
    return program, [p.get_aval() for p in out], consts


def dce_jaxpr_consts(
    jaxpr: Program, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[bool], list[bool]]:
    """A program reduced to some results and their dependencies; which constants and arguments are left.

    Arguments selected by `instantiate` are kept even if unused.

    >>> import atled
    >>> both = atled.make_jaxpr(lambda x, y: (x + 1, x * y))(1.0, 2.0)
    >>> fewer, _, is_left = dce_jaxpr_consts(both, [True, False])
    >>> is_left, [str(e.primitive) for e in fewer.eqns]
    ([True, False], ['add'])
    """
    few = pruned(jaxpr, used_outputs)
    needed = set(used(few)[1])
    count = len(jaxpr.consts)
    asked = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    is_left = [i in needed or (i >= count and asked[i - count]) for i in range(len(few.inputs))]
    names = [n for n, k in zip(few.input_names, is_left, strict=True) if k] if few.input_names else ()
    inputs = [v for v, k in zip(few.inputs, is_left, strict=True) if k]
    program = Program(inputs, few.equations, few.outputs, few.name, names)
    program.consts = [c for c, k in zip(jaxpr.consts, is_left, strict=False) if k]
    return program, is_left[:count], is_left[count:]


def dce_jaxpr(
    jaxpr: Program, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[bool]]:
    """A program reduced to some results and their dependencies; which arguments are left. Constants are kept.

    >>> import atled
    >>> both = atled.make_jaxpr(lambda x, y: (x + 1, x * y))(1.0, 2.0)
    >>> dce_jaxpr(both, [True, False], instantiate=True)[1]
    [True, True]
    """
    _, _, is_left = dce_jaxpr_consts(jaxpr, used_outputs, instantiate)
    few, count = pruned(jaxpr, used_outputs), len(jaxpr.consts)
    all_left = [True] * count + is_left
    names = [n for n, k in zip(few.input_names, all_left, strict=True) if k] if few.input_names else ()
    program = Program(
        [v for v, k in zip(few.inputs, all_left, strict=True) if k], few.equations, few.outputs, few.name, names
    )
    program.consts = list(jaxpr.consts)
    return program, is_left
