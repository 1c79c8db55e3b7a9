"""Transposition: calls `op.transpose` for each equation of a linear program, from the last to the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import source
from atled.core.basic_ops import arithmetic
from atled.core.list_partition import kept, left_out, merged
from atled.core.op import instantiate
from atled.core.program import Equation, Program, Var, record_closed
from atled.core.trace import bind, entered, state
from atled.core.types import Linear, Zero
from atled.transforms.linearize import Linearized
from atled.transforms.masked_tangents import Masked


def backward(
    equations: Sequence[Equation],
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
    wanted: Sequence[Any],
    value: Callable[[Any], Any] = lambda x: x,
    masks: Masked | None = None,
) -> list[Any]:
    """The cotangents of the `wanted` variables, given the cotangents of the outputs of linear equations.

    `value` maps a non-linear operand to its value; `masks`, if given, is the masking interpreter of the cotangents.
    """
    cotangent_of: dict[Any, Any] = {}
    for v, c in zip(outputs, cotangents, strict=True):
        if type(v) is Var and type(c) is not Zero:
            _accumulate(cotangent_of, v, c, masks)
    linear = set(wanted)
    for e in equations:
        if any([v in linear for v in e.operands if type(v) is Var]):
            linear.update(e.results)
    before = state.source
    try:
        for e in reversed(equations):
            given = [cotangent_of.pop(v, None) for v in e.results]
            if all([c is None for c in given]) or e.results[0] not in linear:
                continue
            state.source = source.backward(e.source)
            given = [Zero(v.type) if c is None else c for v, c in zip(e.results, given, strict=True)]
            operands = [Linear(v.type) if type(v) is Var and v in linear else value(v) for v in e.operands]
            if masks is None:
                out = e.op.transpose(tuple(given) if e.op.gives_tuple else given[0], *operands)
            else:
                out = masks.transpose(e.op, given, operands)
            for v, x, c in zip(e.operands, operands, out, strict=True):
                if type(x) is Linear and c is not None and type(c) is not Zero:
                    _accumulate(cotangent_of, v, c, masks)
    finally:
        state.source = before
    return [Zero(v.type) if (c := cotangent_of.get(v)) is None else c for v in wanted]


def _accumulate(found: dict[Any, Any], v: Any, c: Any, masks: Masked | None) -> None:
    known = found.get(v)
    found[v] = c if known is None else arithmetic.add(known, c) if masks is None else masks.add(known, c)


def transpose_linearized(linear: Linearized, cotangents: Sequence[Any], is_basis: bool = False) -> list[Any]:
    """The cotangent of every input of a linearized function, or None for inputs without a tangent.

    If `is_basis`, zeros in the given cotangents count as discarded.
    """
    inputs = [v for v in linear.inputs if v is not None]
    masks = Masked(state.level + 1)
    with entered(masks):
        given = [masks.seed(c) for c in cotangents] if is_basis else cotangents
        results = backward(linear.equations, linear.outputs, given, inputs, masks=masks)
        out = iter([masks.value(c) for c in results])
    return [None if v is None else next(out) for v in linear.inputs]


def transpose_program(
    program: Program, is_linear: tuple[bool, ...], has_cotangent: tuple[bool, ...], is_full: bool = False
) -> tuple[Program, tuple[bool, ...]]:
    """The transpose of a program that is linear in some inputs.

    The transpose takes the other inputs and the nonzero cotangents of the outputs; it returns the nonzero cotangents of
    the linear inputs, or with `is_full` all of them. Also returns which linear inputs have a cotangent.
    """

    def make() -> tuple[Program, tuple[bool, ...]]:
        unknown = kept(is_linear, program.inputs)
        known = left_out(is_linear, program.inputs)
        nonzero: list[bool] = []

        def f(*operands: Any) -> list[Any]:
            env = dict(zip(known, operands, strict=False))
            zeros = [Zero(v.type) for v in left_out(has_cotangent, program.outputs)]
            cotangents = merged(has_cotangent, operands[len(known) :], zeros)
            linear = _run_known(program, env, set(unknown))
            out = backward(
                linear, program.outputs, cotangents, unknown, lambda v: env.get(v, v) if type(v) is Var else v
            )
            out = [instantiate(c) for c in out] if is_full else out
            nonzero.extend([type(c) is not Zero for c in out])
            return [c for c in out if type(c) is not Zero]

        types = [v.type for v in known]
        types += [v.type for v, h in zip(program.outputs, has_cotangent, strict=True) if h]
        transposed = record_closed(f, types, program.name)
        return transposed, tuple(nonzero)

    return program.memo(("transpose", is_linear, has_cotangent, is_full), make)


def _run_known(program: Program, env: dict[Any, Any], linear: set[Any]) -> list[Equation]:
    """Evaluate the equations that depend on no linear input, add their results to `env`, and return the others."""
    rest, before = [], state.source
    try:
        for e in program.equations:
            if any([v in linear for v in e.operands if type(v) is Var]):
                linear.update(e.results)
                rest.append(e)
                continue
            state.source = e.source
            out = bind(e.op, *[env[v] if type(v) is Var else v for v in e.operands])
            for v, x in zip(e.results, out if type(out) is tuple else (out,), strict=True):
                env[v] = x
    finally:
        state.source = before
    return rest
