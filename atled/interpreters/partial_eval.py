"""Running what is known of a function, under the names of `jax.interpreters.partial_eval`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core.array import type_of
from atled.core.program import Program, Recorder, RecordTracer, Var, evaluate, finish
from atled.core.program import RecordTracer as DynamicJaxprTracer
from atled.core.trace import entered, state
from atled.higher_order.call import Call

JaxprTracer = DynamicJaxprTracer

__all__ = ["DynamicJaxprTracer", "JaxprTracer", "PartialVal", "trace_to_jaxpr_dynamic", "trace_to_jaxpr_nounits"]


class PartialVal(tuple):
    """A value that is known, (None, value), or of which the type is known, (type, None).

    >>> PartialVal.known(3).is_known(), PartialVal.unknown(type_of(1.0)).is_known()
    (True, False)
    """

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A value that is at hand."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """A value of which the type is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is at hand."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> Any:
        """The type."""
        return type_of(self[1]) if self.is_known() else self[0]


class _Unknowns(Recorder):
    """Writes down what depends on unknown values; the rest is run below."""

    __slots__ = ()

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if type(op) is Call:  # some of its results may be known
            return tuple(evaluate(op.program, operands))
        return super().process(op, operands)


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Program, list[PartialVal], list[Any]]:
    """Run what depends on known arguments alone, and write down the rest.

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
    """The program of a function of values of which all are unknown, the types of its results, and its constants."""
    program, out, consts = trace_to_jaxpr_nounits(fun, [PartialVal.unknown(t) for t in in_avals], instantiate=True)
    return program, [p.get_aval() for p in out], consts
