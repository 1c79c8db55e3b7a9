"""Functions with a custom batching rule: `custom_vmap` and `sequential_vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import errors, tree
from atled.core.array import describe, type_of
from atled.core.list_partition import kept
from atled.core.op import Op, instantiate
from atled.core.program import record
from atled.core.trace import bind, responsible
from atled.core.types import ArrayType, Zero
from atled.higher_order.call import Call
from atled.higher_order.custom_derivative_calls import is_moving, spread_tangents
from atled.higher_order.custom_derivatives import Arguments, Custom
from atled.higher_order.scan import map as over_slices
from atled.ops import shape
from atled.transforms.jvp import jvp_flat, jvp_program
from atled.transforms.vmap import PartlyBatched

__all__ = ["custom_vmap", "sequential_vmap"]
__dir__ = __all__.copy


class CustomVmap(Call):
    """A call with a custom batching rule: `rule(size, batched, operands)` returns results, and a bool for each."""

    unlowered = ("rule",)
    masked = Op.masked
    rule: Callable[..., Any]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        given = tuple([type(t) is not Zero for t in tangents])
        types = self.program.output_types
        with_tangent = tuple([is_moving(t) for t in types])
        program, _ = jvp_program(self.program, given, with_tangent)
        count = len(primals)

        def rule(size: int, batched: Sequence[bool], operands: Sequence[Any]) -> Any:
            moves = iter(zip(operands[count:], batched[count:]))
            speeds = []
            for x, b, g in zip(operands[:count], batched[:count], given):
                if not g:
                    speeds.append(Zero(type_of(x).tangent()))
                    continue
                t, t_batched = next(moves)
                if t_batched and not b:
                    raise NotImplementedError(
                        "custom_vmap: a tangent is batched and its primal is not, which the rule does not support."
                    )
                speeds.append(shape.add_axis(t, size) if b and not t_batched else t)
            flags: list[bool] = []

            def of_primals(*xs: Any) -> list[Any]:
                out, out_batched = self.rule(size, batched[:count], xs)
                flags.extend(out_batched)
                return out

            out, out_tangents = jvp_flat(of_primals, operands[:count], speeds)
            moved = [instantiate(t) for t, w in zip(out_tangents, with_tangent) if w]
            return [*out, *moved], [*flags, *kept(with_tangent, flags)]

        out = bind(CustomVmap(program, rule), *primals, *[t for t in tangents if type(t) is not Zero])
        return tuple(out[: len(types)]), spread_tangents(out[len(types) :], types)

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        out, flags = self.rule(batch.size, list(batched), operands)
        for x, f, t in zip(out, flags, self.program.output_types):
            want = (batch.size, *t.shape) if f else t.shape
            if type_of(x).shape != want or type_of(x).dtype != t.dtype:
                expected = ArrayType(want, t.dtype)
                raise TypeError(f"custom_vmap: the rule of {self.program.name} must give {expected}; got {type_of(x)}.")
        return PartlyBatched(out, flags)


class custom_vmap(Custom):  # noqa: N801
    """A function with a custom batching rule.

    `def_vmap` sets the rule, a function of the axis size, a list of pytrees of bools, and the arguments. Leaves of the
    arguments have the batch axis first where the bools are True. The rule returns the result, and a pytree of bools
    that says which of its leaves are batched.

    >>> import atled, atled.numpy as jnp
    >>> @custom_vmap
    ... def f(x):
    ...     return x + 1.0
    >>> @f.def_vmap
    ... def _(axis_size, in_batched, x):
    ...     return x + 100.0, True
    >>> atled.vmap(f)(jnp.zeros(2))
    Array([100., 100.], dtype=float32)
    """

    kind = "custom_vmap"
    rule: Callable[..., Any] | None = None

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the batching rule."""
        self.rule = rule
        return rule

    def _call(self, args: tuple[Any, ...]) -> Any:
        call = Arguments(self, args)
        if responsible(call.leaves).level == 0:
            return self.fun(*args)
        if self.rule is None:
            raise AttributeError(f"custom_vmap: {self.name} has no rule yet.\n  try: @{self.name}.def_vmap")
        given = self.rule
        program, captured = record(call.function, [type_of(x) for x in call.leaves], self.name)
        n = len(captured)

        def rule(size: int, batched: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            if any(batched[:n]):
                raise errors.UnexpectedTracerError(
                    f"custom_vmap: {self.name} closes over a batched value, which its rule does not handle."
                    f"\n  try: make it an argument of {self.name}."
                )
            flags = call.structure.unflatten(list(batched[n:]))
            pair = given(size, list(flags), *call.merged(operands[n:]))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(
                    f"custom_vmap: the rule of {self.name} must return a pair (result, batched); got {describe(pair)}."
                )
            out = call.outputs(pair[0], "the rule's result")
            out_flags = pair[1]
            if isinstance(out_flags, bool):
                return out, [out_flags] * len(out)
            return out, [bool(b) for b in tree.leaves(out_flags)]

        return call.result(bind(CustomVmap(program, rule), *captured, *call.leaves))


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that `vmap` runs on one example after another, as `lax.map` does.

    >>> import atled, atled.numpy as jnp
    >>> atled.vmap(sequential_vmap(lambda x: x + 1))(jnp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    function = custom_vmap(f)

    def rule(size: int, batched: Sequence[Any], *args: Any) -> Any:
        leaves, structure = tree.flatten(args)
        flags = tree.leaves(list(batched))
        moving = kept(flags, leaves)

        def one(xs: Any) -> Any:
            slices = iter(xs)
            return f(*structure.unflatten([next(slices) if b else x for x, b in zip(leaves, flags)]))

        out = over_slices(one, moving)
        return out, tree.map(lambda _: True, out)

    function.def_vmap(rule)
    return function
