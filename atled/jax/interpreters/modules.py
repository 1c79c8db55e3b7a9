"""Lowering of whole programs to MLIR modules and functions; `atled.jax.interpreters.mlir` exports these names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from atled.core.op import Op
from atled.core.program import Equation, Program, evaluate, record_closed
from atled.core.sharding import NamedSharding, PartitionSpec, with_devices
from atled.core.types import ArrayType
from atled.engine import placement, stablehlo
from atled.engine.mlir import ir
from atled.jax.attributes import effects_of, primitive_of
from atled.jax.extend.primitive import Lowering, ModuleContext

Rule = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class ShardingContext:
    """The number of devices of a module that the compiler partitions.

    >>> ShardingContext(4).num_devices
    4
    """

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: Any = None


@dataclasses.dataclass(frozen=True)
class SPMDAxisContext:
    """The mesh of a program that each device runs; the program's collectives refer to the mesh axes.

    >>> from atled.sharding import AbstractMesh
    >>> SPMDAxisContext(AbstractMesh((4,), ("x",))).mesh.shape
    {'x': 4}
    """

    mesh: Any
    manual_axes: frozenset[Any] = frozenset()


AxisContext = ShardingContext | SPMDAxisContext


@dataclasses.dataclass(frozen=True)
class LoweringParameters:
    """Parameters of lowering: `override_lowering_rules` replaces rules of primitives; other fields have no effect.

    >>> LoweringParameters().override_lowering_rules is None
    True
    """

    override_lowering_rules: tuple[tuple[Any, Rule], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


class LoweringResult(NamedTuple):
    """A module, and the list of Python functions that it calls by index.

    >>> LoweringResult(None, [], [], None).host_callbacks
    []
    """

    module: Any
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: Any


class _Overridden(Op):
    """An op with another lowering rule."""

    op: Op
    rule: Rule

    @property
    def gives_tuple(self) -> bool:  # type: ignore[override]
        return self.op.gives_tuple

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return self.op.has_effect

    def result_type(self, *types: ArrayType) -> Any:
        return self.op.result_type(*types)

    def lower(self, build: Any, *operands: Any) -> Any:
        types, out = [v.type for v in operands], self.result_type(*[v.type for v in operands])
        outs, primitive = list(out) if self.gives_tuple else [out], primitive_of(type(self.op))
        context, params = Lowering(build, primitive, types, outs), primitive.params_of(self.op)
        results = build.foreign(lambda *values: self.rule(context, *values, **params), operands, outs)
        return tuple(results) if self.gives_tuple else results[0]


def lower_jaxpr_to_module(
    module_name: str,
    jaxpr: Program,
    *,
    platforms: Sequence[str],
    axis_context: AxisContext,
    donated_args: Sequence[bool],
    lowering_parameters: LoweringParameters,
    in_avals: Sequence[ArrayType] | None = None,
    arg_shardings: Sequence[NamedSharding | None] | None = None,
    result_shardings: Sequence[NamedSharding | None] | None = None,
    arg_names: Sequence[str] | None = None,
    **_: Any,
) -> LoweringResult:
    """The StableHLO module of a program for one platform. Further parameters of JAX are accepted and ignored.

    >>> import atled
    >>> program = atled.jax.make_jaxpr(lambda x: x + 1)(1.0)
    >>> result = lower_jaxpr_to_module(
    ...     "plus", program, platforms=["cpu"], axis_context=ShardingContext(1), donated_args=[False],
    ...     lowering_parameters=LoweringParameters())
    >>> "module @plus" in str(result.module), "stablehlo.add" in str(result.module)
    (True, True)
    """
    if len(platforms) != 1:
        raise NotImplementedError(f"lower_jaxpr_to_module: one platform is needed; got {', '.join(platforms)}.")
    program = _closed(jaxpr, module_name, lowering_parameters.override_lowering_rules or (), arg_names or ())
    donated = _aliases(program, donated_args)
    if isinstance(axis_context, SPMDAxisContext):
        built = stablehlo.build(program, platforms[0], donated, manual=with_devices(axis_context.mesh))
    else:
        spread = _spread(program, arg_shardings or (), result_shardings or ())
        built = stablehlo.build(program, platforms[0], donated, spread=spread)
    return LoweringResult(built.module, [], list(built.callbacks), None)


def lower_jaxpr_to_fun(
    ctx: ModuleContext,
    name: str,
    jaxpr: Program,
    effects: Sequence[Any],
    *,
    main_function: bool = False,
    in_avals: Sequence[ArrayType] | None = None,
    **_: Any,
) -> Any:
    """Emit a program as a function in the module of a lowering rule, and return the function.

    The function's name gets a number if it exists already. Further parameters of JAX are accepted and ignored.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> from atled.engine.mlir import func
    >>> from atled.jax.interpreters import mlir
    >>> program = atled.jax.make_jaxpr(lambda x: x * 3)(1.0)
    >>> triple = Primitive("triple")
    >>> _ = triple.def_abstract_eval(lambda x: x)
    >>> def rule(ctx, x):
    ...     return func.CallOp(lower_jaxpr_to_fun(ctx.module_context, "times_three", program, []), [x]).results
    >>> _ = mlir.register_lowering(triple, rule)
    >>> "call @times_three" in atled.jit(triple.bind).lower(2.0).as_text()
    True
    """
    program = _closed(jaxpr, name)
    if effects or effects_of(program):
        raise NotImplementedError(
            "lower_jaxpr_to_fun: effects keep their order only in the function of the rule; use jaxpr_subcomp instead."
        )
    module = ctx.build.module
    symbol = module.fresh_name(name)
    module.emit_function(symbol, program, ctx.build.platform, "public" if main_function else "private")
    return ir.SymbolTable(module.module.operation)[symbol]


def _closed(program: Program, name: str, rules: Sequence[tuple[Any, Rule]] = (), names: Sequence[str] = ()) -> Program:
    """The program with another name, its constants inlined, and other lowering rules for some primitives."""
    if program.consts:
        consts, whole = program.consts, program
        program = record_closed(lambda *xs: evaluate(whole, [*consts, *xs]), whole.input_types[len(consts) :], name)
    if rules:
        program = _with_rules(program, dict(rules))
    return Program(program.inputs, program.equations, program.outputs, name, names or program.input_names)


def _with_rules(program: Program, rules: dict[Any, Rule]) -> Program:
    def changed(value: Any) -> Any:
        if isinstance(value, Program):
            return _with_rules(value, rules)
        return tuple([changed(v) for v in value]) if isinstance(value, tuple) else value

    equations = []
    for e in program.equations:
        rule = rules.get(primitive_of(type(e.op)))
        params = [changed(p) for p in e.op.parameters]
        op = _Overridden(e.op, rule) if rule is not None else type(e.op)(*params) if params else e.op  # pyright: ignore[reportCallIssue]
        equations.append(Equation(op, e.operands, e.results, e.source))
    return Program(program.inputs, equations, program.outputs, program.name, program.input_names)


def _aliases(program: Program, donated: Sequence[bool]) -> list[int | None]:
    """For each donated input, the index of an output of the same type that may reuse its buffer, or None."""
    free = list(enumerate(program.output_types))
    found: list[int | None] = []
    for t, is_donated in zip(program.input_types, donated, strict=True):
        at = next((i for i, (_, u) in enumerate(free) if u.strong() is t.strong()), None) if is_donated else None
        found.append(None if at is None else free.pop(at)[0])
    return found


def _spread(program: Program, ins: Sequence[NamedSharding | None], outs: Sequence[NamedSharding | None]) -> Any:
    """The placement on the mesh of these shardings, or None without any; inputs without a sharding are replicated."""
    mesh = next((s.mesh for s in (*ins, *outs) if s is not None), None)
    if mesh is None:
        return None
    whole = NamedSharding(mesh, PartitionSpec())
    given = [s or whole for s in ins] or [whole] * len(program.inputs)
    return placement.MeshPlacement(mesh, tuple(given), tuple(outs) or (None,) * len(program.outputs))
