"""Estimates the cost of a function without running it, with the API of `jax.experimental.roofline`.

`roofline` traces the function and sums the costs of its equations: `costs.py` has the rules of ops, `traffic.py` those
of collectives, and users register rules for their own primitives.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from atled.core import tree
from atled.core.program import Equation, Program, Var, pruned, used
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec, with_devices
from atled.higher_order.call import Call
from atled.higher_order.cond import Cond
from atled.higher_order.implicit_diff import LinearSolve
from atled.higher_order.scan import Scan
from atled.higher_order.shard_map import ShardMap, shard_map
from atled.higher_order.while_loop import While
from atled.jax.attributes import Primitive, primitive_of
from atled.jax.experimental.roofline.costs import cost_of
from atled.jax.experimental.roofline.results import RooflineResult, RooflineRuleContext, RooflineShape, bytes_of
from atled.jax.experimental.roofline.traffic import traffic
from atled.jax.linear_call import LinearCall
from atled.ops.collectives import Collective
from atled.staging.jit import eval_shape, make_program
from atled.transforms.grad import vjp as _vjp

__all__ = [
    "RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline", "register_standard_roofline",
    "roofline", "roofline_and_grad",
]  # fmt: skip
__dir__ = __all__.copy

Rule = Callable[..., RooflineResult]
_rules: dict[Primitive, Rule] = {}  # of users


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """A decorator that registers a primitive's cost rule: a function of a context, operand shapes and parameters.

    >>> from atled.jax.extend.core import Primitive
    >>> double = Primitive("double")
    >>> _ = double.def_abstract_eval(lambda x: x)
    >>> @register_roofline(double)
    ... def rule(ctx, x, **params):
    ...     return RooflineResult(unfused_flops=2 * x.size)
    >>> import atled.numpy as jnp
    >>> roofline(double.bind)(jnp.ones(3))[1].unfused_flops
    6
    """

    def register(rule: Rule) -> Rule:
        _rules[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Primitive) -> None:
    """Register that a primitive has no cost of its own, because the compiler fuses it into other ops.

    >>> from atled.jax.extend.core import Primitive
    >>> mark = Primitive("mark")
    >>> _ = mark.def_abstract_eval(lambda x: x)
    >>> register_standard_roofline(mark)
    >>> roofline(mark.bind)(3.0)[1]
    RooflineResult(flops=0, unfused_flops=0, ici_bytes={}, ici_latency={}, hbm_bytes=0, peak_hbm_bytes=4, \
unfused_hbm_bytes=0)
    """
    _rules[prim] = lambda *_, **__: RooflineResult()


def roofline(
    f: Callable[..., Any],
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function that returns the shapes of the results of `f` and its cost, without computing the results.

    A `scan` costs its length times its body, a `while_loop` one iteration, and a `cond` the maximum over its branches.

    Args:
        mesh: with specs, each device of the mesh runs `f`, as in `shard_map`; may be an `AbstractMesh`.
        in_specs: the specs of the arguments, as in `shard_map`.
        out_specs: the specs of the results.
        pin_lhs_in_vmem: whether left operands and results of matrix products stay in fast memory, at no cost.
        pin_rhs_in_vmem: whether right operands of matrix products stay in fast memory.
        vjp: whether to add the cost of the backward pass; with a mesh, count the backward pass alone.
        print_jaxpr: whether to print the program.

    >>> import atled, atled.numpy as jnp
    >>> x = atled.ShapeDtypeStruct((1000, 1000), "float32")
    >>> shape, cost = roofline(lambda x: jnp.sin(x @ x))(x)
    >>> shape, cost.flops, cost.unfused_flops - cost.flops, cost.hbm_bytes
    (ShapeDtypeStruct(shape=(1000, 1000), dtype=float32), 2000000000, 1000000, 12000000)
    """
    name = f"roofline({getattr(f, '__qualname__', 'f')})"
    is_sharded = mesh is not None and in_specs is not None and out_specs is not None

    def estimate(*args: Any) -> tuple[Any, RooflineResult]:
        whole = shard_map(f, mesh=with_devices(mesh), in_specs=in_specs, out_specs=out_specs) if is_sharded else f
        program, shapes = _recorded(whole, args, vjp, is_sharded)
        if print_jaxpr:
            print(program)
        walk = _Walk(name, mesh, {}, pin_lhs_in_vmem, pin_rhs_in_vmem)
        if is_sharded:  # counts only the ops inside shard_map, per device
            parts = [e for e in program.equations if isinstance(e.op, ShardMap)]
            placed = shapes if vjp else _placed(shapes, out_specs, mesh)
            return placed, sum([walk.of_equation(e) for e in parts], RooflineResult())
        return shapes, walk.of_program(program)

    return estimate


def roofline_and_grad(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """A function that returns the shapes of the results of `f`, the cost of `f`, and the cost of its backward pass.

    >>> import atled
    >>> from atled.sharding import AbstractMesh, P
    >>> mesh = AbstractMesh((4,), ("x",))
    >>> x, w = atled.ShapeDtypeStruct((8, 16), "float32"), atled.ShapeDtypeStruct((16, 2), "float32")
    >>> _, forward, backward = roofline_and_grad(lambda x, w: x @ w, mesh, (P("x"), P()), P("x"))(x, w)
    >>> forward.flops, backward.flops, backward.ici_bytes
    (128, 256, {'x': 192})
    """
    pins = {"pin_lhs_in_vmem": pin_lhs_in_vmem, "pin_rhs_in_vmem": pin_rhs_in_vmem, "print_jaxpr": print_jaxpr}

    def estimate(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        shapes, forward = roofline(f, mesh, in_specs, out_specs, **pins)(*args)
        _, backward = roofline(f, mesh, in_specs, out_specs, vjp=True, **pins)(*args)
        return shapes, forward, backward

    return estimate


def _recorded(f: Callable[..., Any], args: Any, is_derived: bool, is_backward_only: bool) -> tuple[Program, Any]:
    """The program to analyze, and the shapes of its results."""
    if not is_derived:
        return make_program(f, return_shape=True)(*args)
    out = eval_shape(f, *args)
    if is_backward_only:  # residuals are inputs
        pull = eval_shape(lambda *args: _vjp(f, *args)[1], *args)
        return make_program(lambda pull, out: pull(out), return_shape=True)(pull, out)

    def both(out: Any, *args: Any) -> tuple[Any, Any]:
        value, pull = _vjp(f, *args)
        return value, pull(out)

    program, (_, shapes) = make_program(both, return_shape=True)(out, *args)
    return program, shapes


def _placed(shapes: Any, specs: Any, mesh: Any) -> Any:
    """The shapes with the shardings of the specs; without them for an `AbstractMesh`."""
    if not isinstance(mesh, Mesh):
        return shapes
    flat, prefix = tree.flatten(specs, is_leaf=lambda s: isinstance(s, PartitionSpec))
    leaves, structure = tree.flatten(shapes)
    each = [s for s, part in zip(flat, prefix.flatten_up_to(shapes), strict=True) for _ in tree.leaves(part)]
    pairs = zip(leaves, each, strict=True)
    return structure.unflatten([x.update(sharding=NamedSharding(mesh, s)) for x, s in pairs])


class _Walk(NamedTuple):
    """Sums the costs of a program's equations."""

    name: str
    mesh: Any
    sizes: dict[Any, int]  # of the enclosing mesh axes
    pin_lhs: bool
    pin_rhs: bool

    def of_program(self, program: Program) -> RooflineResult:
        """The cost of a program; a value is alive from its equation to its last use."""
        program = pruned(program, [True] * len(program.outputs))
        last = {v: i for i, e in enumerate(program.equations) for v in e.operands if type(v) is Var}
        last.update({v: len(program.equations) for v in program.outputs if type(v) is Var})
        alive = {program.inputs[i] for i in used(program)[1]}
        total = RooflineResult(peak_hbm_bytes=_held(alive))
        for i, e in enumerate(program.equations):
            cost = self.of_equation(e)
            peak = _held(alive - set(e.operands)) + cost.peak_hbm_bytes
            alive = {v for v in alive if last[v] > i} | {v for v in e.results if v in last}
            total += dataclasses.replace(cost, peak_hbm_bytes=max(peak, _held(alive)))
        return total

    def of_equation(self, e: Equation) -> RooflineResult:
        """The cost of an equation, from a user's rule, the programs that its op holds, or the op's rule."""
        op, types = e.op, [v.type for v in e.operands]
        primitive = primitive_of(type(op))
        context = RooflineRuleContext(
            name_stack=self.name, primitive=primitive, avals_in=types, avals_out=[v.type for v in e.results],
            mesh=self.mesh, pin_lhs_in_vmem=self.pin_lhs, pin_rhs_in_vmem=self.pin_rhs,
        )  # fmt: skip
        rule = _rules.get(primitive)
        if rule is not None:
            return rule(context, *[RooflineShape.from_aval(t) for t in types], **primitive.params_of(op))
        if type(primitive) is not Primitive:
            warnings.warn(f"roofline: no rule for {primitive}; its cost counts as 0: register_roofline.", stacklevel=2)
            return RooflineResult()
        held = self.of_programs(op)
        if held is not None:
            return held
        return traffic(op, types, self.sizes) if isinstance(op, Collective) else cost_of(op, context)

    def of_programs(self, op: Any) -> RooflineResult | None:
        """The cost of the programs that an op holds; None if it holds none."""
        if isinstance(op, ShardMap):
            inside = self._replace(sizes={**self.sizes, **{a: op.mesh.shape[a] for a in op.axes_here}})
            return inside.of_program(op.program)
        if isinstance(op, Call):
            return self.of_program(op.program)
        if isinstance(op, Scan):
            step = self.of_program(op.body)
            return dataclasses.replace(step * op.length, peak_hbm_bytes=step.peak_hbm_bytes)
        if isinstance(op, While):
            return self.of_program(op.condition) + self.of_program(op.body)
        if isinstance(op, Cond):
            return _largest([self.of_program(p) for p in op.branches])
        if isinstance(op, LinearSolve):
            return self.of_program(op.solve)
        return self.of_program(op.forward) if isinstance(op, LinearCall) else None


def _held(values: set[Any]) -> int:
    return sum([bytes_of(v.type) for v in values if type(v) is Var])


def _largest(results: list[RooflineResult]) -> RooflineResult:
    """The maximum of each field over the results."""
    axes = {axis for r in results for axis in (*r.ici_bytes, *r.ici_latency)}

    def largest(field: str) -> Any:
        values = [getattr(r, field) for r in results]
        if field.startswith("ici"):
            return {axis: max([v.get(axis, 0) for v in values]) for axis in axes}
        return max(values)

    return RooflineResult(**{f.name: largest(f.name) for f in dataclasses.fields(RooflineResult)})
