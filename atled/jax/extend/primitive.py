"""User-defined primitives, with the API of `jax.extend.core.Primitive`.

A primitive is a name with rules, registered one by one: by `def_impl`, `def_abstract_eval`, and in the tables of
`atled.jax.interpreters` for derivatives, batching and lowering, where its ops look them up. (A user-defined `Op` with
rules as methods takes less code: see CONTRIBUTING.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from atled.compiler.builder import Value
from atled.core.array import type_of
from atled.core.op import Op
from atled.core.trace import bind, bottom, responsible
from atled.core.types import ArrayType, Zero
from atled.jax import attributes
from atled.ops import shape
from atled.transforms.masked_tangents import users_rule
from atled.transforms.vmap import PartlyBatched

Rule = Callable[..., Any]
jvps: dict[Any, Rule] = {}  # by primitive: f(primals, tangents, **params)
transposes: dict[Any, Rule] = {}  # f(cotangent, *operands, **params)
batchers: dict[Any, Rule] = {}  # f(axis, operands, dimensions, **params)
lowerings: dict[tuple[Any, str | None], Rule] = {}  # by primitive and platform: f(context, *values, **params)


class BatchAxis(NamedTuple):
    """The new batch axis, an argument of batching rules."""

    size: int
    name: Any = None


class Primitive(attributes.Primitive):
    """A user-defined primitive, whose rules are registered after its creation.

    >>> import atled, atled.numpy as jnp
    >>> double = Primitive("double")
    >>> _ = double.def_impl(lambda x: 2 * x)
    >>> _ = double.def_abstract_eval(lambda x: x)
    >>> int(double.bind(4)), atled.jax.make_jaxpr(double.bind)(4).eqns[0].primitive is double
    (8, True)
    """

    multiple_results = False  # type: ignore[assignment]
    call_primitive = False
    map_primitive = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.op = type("UserOp", (UserOp,), {"primitive": self, "__module__": "user"})
        self.op.name = name
        self.impl: Any = self._no_impl
        self.abstract_eval: Any = self._no_abstract_eval
        self.is_effectful = False
        self.effects_of: Any = lambda *_, **__: frozenset()

    def def_impl(self, impl: Rule) -> Rule:
        """Define the eager implementation."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Define the rule from operand types to result types."""
        self.abstract_eval = abstract_eval
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Like `def_abstract_eval`, for a rule that returns the types and a set of effects."""
        self.is_effectful = True
        self.abstract_eval = lambda *types, **params: abstract_eval(*types, **params)[0]
        self.effects_of = lambda *types, **params: frozenset(abstract_eval(*types, **params)[1])
        return abstract_eval

    def _no_impl(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"Evaluation rule for '{self.name}' not implemented: use {self.name}.def_impl.")

    def _no_abstract_eval(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"Abstract evaluation for '{self.name}' not implemented: use {self.name}.def_abstract_eval."
        )

    @property
    def has_impl(self) -> bool:
        """Whether `def_impl` defined an eager implementation."""
        return self.impl != self._no_impl

    def params_of(self, op: Any) -> dict[str, Any]:
        return dict(op.items)

    def op_of(self, params: Any) -> Any:
        return self.op(tuple(params.items()))

    def bind(self, /, *operands: Any, **params: Any) -> Any:
        """Apply the primitive to operands, which may be tracers."""
        if self.has_impl and responsible(operands) is bottom():
            return self.impl(*operands, **params)
        out = bind(self.op_of(params), *operands)
        return list(out) if self.multiple_results else out

    def __repr__(self) -> str:
        return self.name


class UserOp(Op):
    """An op of a user-defined primitive."""

    primitive: ClassVar[Any]
    items: tuple[tuple[str, Any], ...]

    @property
    def gives_tuple(self) -> bool:  # type: ignore[override]
        return self.primitive.multiple_results

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return self.primitive.is_effectful

    @property
    def runs_on_host(self) -> bool:  # type: ignore[override]
        return self.primitive.has_impl

    def _rule(self, table: dict[Any, Rule], what: str, way: str) -> Rule:
        rule = table.get(self.primitive)
        if rule is None:
            raise NotImplementedError(f"{what} rule for '{self.name}' not implemented: use interpreters.{way}.")
        return rule

    def _shaped(self, out: Any) -> Any:
        return tuple(out) if self.gives_tuple else out

    def result_type(self, *types: ArrayType) -> Any:
        return self._shaped(self.primitive.abstract_eval(*types, **dict(self.items)))

    def effects(self, *types: ArrayType) -> frozenset[Any]:
        return self.primitive.effects_of(*types, **dict(self.items))

    def on_host(self, *arrays: Any) -> Any:
        """The results for concrete operands, by the eager implementation."""
        return self._shaped(self.primitive.impl(*arrays, **dict(self.items)))

    def lower(self, build: Any, *operands: Any) -> Any:
        rule = lowerings.get((self.primitive, build.platform)) or lowerings.get((self.primitive, None))
        if rule is None:
            raise NotImplementedError(
                f"MLIR translation rule for primitive '{self.name}' not found for platform {build.platform}: "
                "use interpreters.mlir.register_lowering."
            )
        ins, out = [v.type for v in operands], self.result_type(*[v.type for v in operands])
        outs = list(out) if self.gives_tuple else [out]
        context = Lowering(build, self.primitive, ins, outs)
        results = build.foreign(lambda *values: rule(context, *values, **dict(self.items)), operands, outs)
        return tuple(results) if self.gives_tuple else results[0]

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        rule = self._rule(jvps, "Differentiation", "ad.defjvp")
        with users_rule():
            out, tangent = rule(list(primals), list(tangents), **dict(self.items))
        return self._shaped(out), self._shaped(tangent)

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        rule = self._rule(transposes, "Transpose", "ad.primitive_transposes")
        with users_rule():
            given = list(cotangent) if type(cotangent) is tuple else cotangent
            cotangents = rule(given, *operands, **dict(self.items))
        return tuple([None if type(x) is Zero else x for x in cotangents])

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        size = next(type_of(x).shape[0] for x, b in zip(operands, batched, strict=True) if b)
        rule = self._rule(batchers, "Batching", "batching.primitive_batchers")
        out, dims = rule(BatchAxis(size), list(operands), [0 if b else None for b in batched], **dict(self.items))
        if not self.gives_tuple:
            out, dims = [out], [dims]
        elif not isinstance(dims, Sequence):
            dims = [dims] * len(out)
        front = [x if d in (0, None) else _to_front(x, d) for x, d in zip(out, dims, strict=True)]
        return PartlyBatched(front, [d is not None for d in dims])


def _to_front(x: Any, axis: int) -> Any:
    order = [axis, *[i for i in range(type_of(x).ndim) if i != axis]]
    return shape.transpose(x, order)


class ModuleContext(NamedTuple):
    """The module in which a lowering rule emits code, and its platform.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> from atled.jax.interpreters import mlir
    >>> same = Primitive("same")
    >>> _ = same.def_abstract_eval(lambda x: x)
    >>> def rule(ctx, x):
    ...     print(ctx.module_context.platforms)
    ...     return [x]
    >>> _ = mlir.register_lowering(same, rule)
    >>> atled.jit(same.bind)(3.0)
    ('cpu',)
    Array(3., dtype=float32, weak_type=True)
    """

    build: Any

    @property
    def platforms(self) -> tuple[str, ...]:
        """The target platforms."""
        return (self.build.platform,)


class Lowering:
    """The context of a lowering rule for one equation; `interpreters.mlir.LoweringRuleContext`.

    >>> import atled
    >>> from atled.jax.extend.core import Primitive
    >>> from atled.jax.interpreters import mlir
    >>> double = Primitive("double")
    >>> _ = double.def_abstract_eval(lambda x: x)
    >>> def rule(ctx: mlir.LoweringRuleContext, x):
    ...     print(ctx.avals_in, ctx.avals_out, ctx.platforms)
    ...     return mlir.lower_fun(lambda x: 2 * x, multiple_results=False)(ctx, x)
    >>> _ = mlir.register_lowering(double, rule)
    >>> atled.jit(double.bind)(3.0)
    [~f32[]] [~f32[]] ('cpu',)
    Array(6., dtype=float32, weak_type=True)
    """

    def __init__(self, build: Any, primitive: Any, avals_in: Sequence[Any], avals_out: Sequence[Any]) -> None:
        self.build, self.primitive = build, primitive
        self.avals_in, self.avals_out = list(avals_in), list(avals_out)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The target platforms."""
        return (self.build.platform,)

    @property
    def module_context(self) -> ModuleContext:
        """The context of the module that the equation is lowered into."""
        return ModuleContext(self.build)

    def replace(self, **changes: Any) -> Lowering:
        """A copy with changed attributes, such as types or the primitive."""
        copy = Lowering(self.build, self.primitive, self.avals_in, self.avals_out)
        vars(copy).update(changes)
        return copy

    def inlined(self, closed: Any, values: Sequence[Any]) -> list[Any]:
        """Emit a program, and return its result values."""
        given = [Value(v, t) for v, t in zip(values, closed.input_types, strict=True)]
        return self.build.handles(self.build.inline(closed, given))
