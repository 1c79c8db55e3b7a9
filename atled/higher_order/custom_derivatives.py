"""Functions with custom derivatives: `custom_jvp` and `custom_vjp`.

Called on concrete values, such a function runs unchanged. When the function is differentiated, its rule runs instead.
In a program, the function is a `Call` that also holds its rules; a rule is traced when a transform first needs it.
Values that the function closes over become operands without a derivative; closing over a value that is being
differentiated raises an error.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, errors, tree
from atled.core.array import describe, is_array_like, type_of
from atled.core.list_partition import kept, merged
from atled.core.op import Op, instantiate
from atled.core.program import Program, record, record_closed
from atled.core.trace import Tracer, bind, responsible, state
from atled.core.types import ArrayType, Zero
from atled.higher_order.custom_derivative_calls import (
    ByPattern,
    CallableProgram,
    CustomJvp,
    CustomVjp,
    LazyProgram,
    Pullback,
    closes_over,
    is_moving,
    spread_tangents,
)
from atled.higher_order.symbolic_zeros import CustomVJPPrimal, SymbolicZero
from atled.ops import conversion
from atled.transforms.jvp import Jvp, JvpTracer
from atled.transforms.vmap import BatchTracer


class Custom:
    """The base class of the decorators, which handles non-differentiable arguments and calls."""

    kind = "custom"

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        if not callable(fun):
            raise TypeError(f"{self.kind}: expected a function; got {describe(fun)}.")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.name = getattr(fun, "__name__", type(fun).__name__)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        try:
            self.signature = inspect.signature(fun)
            names = list(self.signature.parameters)
            numbers += tuple([names.index(n) for n in nondiff_argnames])
        except (TypeError, ValueError):
            self.signature = None
        self.fixed = frozenset(numbers)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments as a tuple, including defaults."""
        if self.signature is None:
            if kwargs:
                raise TypeError(f"{self.kind}: {self.name} has no signature, so pass arguments by position.")
            return args
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.kind}: {self.name} has keyword-only arguments ({', '.join(bound.kwargs)}); "
                "rules get arguments by position."
            )
        return bound.args

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._call(self.positional(args, kwargs))
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    def _call(self, args: tuple[Any, ...]) -> Any:
        call = Arguments(self, args)
        interpreter = responsible(call.leaves)
        if interpreter.level == 0:
            out = self.fun(*args)
            if state.level and any([_is_differentiated(x) for x in tree.leaves(out)]):  # it closes over a tracer
                raise closes_over(self.kind, self.name, "a value that is being differentiated")
            return out
        self.check_rule()
        if isinstance(interpreter, Jvp):
            return self.differentiate(interpreter, call)
        program, captured = record(call.function, [type_of(x) for x in call.leaves], self.name)
        return call.result(bind(self.op(call, program, captured), *captured, *call.leaves))

    def check_rule(self) -> None:
        """Raise if there is no rule yet."""
        raise NotImplementedError

    def check_given(self, interpreter: Jvp, values: Sequence[Any]) -> None:
        """Raise if a rule returns a tracer that it closes over; its arguments have been unwrapped."""
        for x in values:
            if isinstance(x, Tracer) and x.interpreter.level >= interpreter.level:
                doing = "batched" if isinstance(x, BatchTracer) else "differentiated"
                raise closes_over(self.kind, self.name, f"a value that is being {doing}")

    def differentiate(self, interpreter: Jvp, call: Arguments) -> Any:
        raise NotImplementedError

    def op(self, call: Arguments, program: Program, captured: list[Any]) -> Op:
        raise NotImplementedError


def _is_differentiated(x: Any) -> bool:
    while isinstance(x, BatchTracer):
        x = x.value
    return isinstance(x, JvpTracer)


class Arguments:
    """The arguments of one call: the non-differentiable ones, and the leaves of the other arguments."""

    def __init__(self, custom: Custom, args: tuple[Any, ...]) -> None:
        self.custom = custom
        self.args = args
        fixed = {n % len(args) for n in custom.fixed} if custom.fixed else custom.fixed
        self.fixed = [x for i, x in enumerate(args) if i in fixed]
        self.is_fixed = [i in fixed for i in range(len(args))]
        self.leaves, self.structure = tree.flatten(tuple([x for i, x in enumerate(args) if i not in fixed]))
        for x in self.leaves:
            try:
                type_of(x)
            except TypeError:
                raise TypeError(
                    f"{custom.kind}: the arguments of {custom.name} must be arrays or numbers; got {describe(x)}."
                    "\n  try: nondiff_argnums for arguments that are neither."
                ) from None
        self.out_structure: tree.TreeDef | None = None

    def merged(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, rebuilt with these leaves."""
        return merged(self.is_fixed, self.fixed, self.structure.unflatten(list(leaves)))

    def function(self, *leaves: Any) -> list[Any]:
        """Call the function with these leaves; returns the leaves of its result."""
        return self.outputs(self.custom.fun(*self.merged(leaves)))

    def outputs(self, out: Any, who: str = "") -> list[Any]:
        """The leaves of a result; raises if its tree differs from that of an earlier call."""
        leaves, structure = tree.flatten(out)
        if self.out_structure is not None and structure != self.out_structure:
            raise TypeError(
                f"{self.custom.kind}: {who or 'the function'} must return the tree that {self.custom.name} returns, "
                f"{self.out_structure}; got {structure}."
            )
        self.out_structure = structure
        for x in leaves:
            type_of(x)
        return leaves

    def result(self, leaves: Sequence[Any]) -> Any:
        assert self.out_structure is not None
        return self.out_structure.unflatten(list(leaves))


def _as_types(custom: Custom, what: str, values: Sequence[Any], types: Sequence[ArrayType]) -> list[Any]:
    """The values returned by a rule, checked against the expected types."""
    out = []
    for x, t in zip(values, types, strict=True):
        got = type_of(x)
        if got.shape != t.shape or (got.dtype is not t.dtype and not got.weak):
            summed = f"numpy.broadcast_to(g, {t.shape}), or a sum over the extra axes."
            way_out = summed if got.shape != t.shape else f"g.astype({t.dtype.name!r})."
            says = f"{custom.kind}: the rule of {custom.name} must give {what} {t}; got {got}."
            raise TypeError(errors.explained(says, way_out))
        out.append(x if got is t else conversion.convert(x, t.dtype, t.weak))
    return out


class custom_jvp(Custom):  # noqa: N801
    """A function with a custom derivative rule, for forward and reverse mode.

    The rule takes primals and tangents, both as tuples, and returns the result and its tangent, which must be linear
    in the tangents. The rule gets arguments in `nondiff_argnums` first, unchanged.

    >>> import atled, atled.numpy as jnp
    >>> @atled.custom_jvp
    ... def log1pexp(x):
    ...     return jnp.log(1.0 + jnp.exp(x))
    >>> @log1pexp.defjvp
    ... def _(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), dx * (1 - 1 / (1 + jnp.exp(x)))
    >>> float(atled.grad(log1pexp)(100.0))
    1.0
    """

    kind = "custom_jvp"
    rule: Callable[..., Any] | None = None
    is_symbolic = False

    def check_rule(self) -> None:
        if self.rule is None:
            raise AttributeError(
                f"custom_jvp: {self.name} must have a rule before it is differentiated; it has none yet."
                f"\n  try: decorate the rule with @{self.name}.defjvp."
            )

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule: `jvp(*nondiff, primals, tangents)` returns the result and its tangent.

        With `symbolic_zeros`, tangents that are known to be zero are passed as `SymbolicZero`, and the rule may
        return one.
        """
        self.rule, self.is_symbolic = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument, `jvp(tangent, result, *primals)`, or None if its derivative is zero."""

        def rule(*args: Any) -> Any:
            *_, primals, tangents = args
            out = self(*args[:-2], *primals)
            terms = [f(t, out, *primals) for f, t in zip(jvps, tangents, strict=True) if f is not None]
            total = functools.reduce(lambda a, b: tree.map(lambda x, y: x + y, a, b), terms)
            return out, total

        self.rule = rule

    def differentiate(self, interpreter: Jvp, call: Arguments) -> Any:
        mine = [isinstance(x, JvpTracer) and x.interpreter is interpreter for x in call.leaves]
        primals = [x.primal if m else x for x, m in zip(call.leaves, mine)]
        tangents = [x.tangent if m else Zero(type_of(x).tangent()) for x, m in zip(call.leaves, mine)]
        masks = interpreter.masks
        if masks is not None:
            tangents = [masks.wrap(t) for t in tangents]
        out, moved = self.apply_rule(call, primals, tangents)
        if masks is not None:
            moved = [masks.bare(t) for t in moved]
        self.check_given(interpreter, [*out, *moved])
        return call.result([interpreter.wrap(x, t) for x, t in zip(out, moved)])

    def apply_rule(
        self, call: Arguments, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The leaves of the rule's result and of its tangent, checked. The rule gets float0 tangents for integers."""
        assert self.rule is not None
        shown = [
            SymbolicZero(t.type) if self.is_symbolic and type(t) is Zero
            else instantiate(t) if is_moving(type_of(x)) else np.zeros(type_of(x).shape, dtypes.float0)
            for x, t in zip(primals, tangents)
        ]  # fmt: skip
        pair = self.rule(*call.fixed, call.structure.unflatten(list(primals)), call.structure.unflatten(shown))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"custom_jvp: the rule of {self.name} must return a pair (result, tangent); got {describe(pair)}."
                f"\n  try: return {self.name}(*primals), tangent"
            )
        out = call.outputs(pair[0], "the rule's result")
        assert call.out_structure is not None
        try:
            moved = call.out_structure.flatten_up_to(pair[1])
        except ValueError as error:
            raise TypeError(
                f"custom_jvp: the rule of {self.name} must give a tangent with the tree of the result. {error}"
            ) from None
        types = [type_of(x).tangent() for x in out]
        checked = [
            Zero(t)
            if t.kind == "0" or x is None or type(x) is SymbolicZero
            else _as_types(self, "a tangent", [x], [t])[0]
            for x, t in zip(moved, types)
        ]
        return out, checked

    def op(self, call: Arguments, program: Program, captured: list[Any]) -> Op:
        n = len(captured)

        types = program.input_types
        moves = [i for i, t in enumerate(types[n:]) if is_moving(t)]

        def make(pattern: Sequence[bool]) -> Program:
            moved = kept(pattern, moves)

            def f(*operands: Any) -> list[Any]:
                primals, given = operands[n : len(types)], dict(zip(moved, operands[len(types) :], strict=True))
                tangents = [given[i] if i in given else Zero(t.tangent()) for i, t in enumerate(types[n:])]
                out, speeds = self.apply_rule(call, primals, tangents)
                out = _as_types(self, "a result", out, program.output_types)
                return [*out, *[instantiate(t) for t, p in zip(speeds, program.output_types) if is_moving(p)]]

            return record_closed(f, [*types, *[types[n + i].tangent() for i in moved]], self.name)

        if self.is_symbolic:
            return CustomJvp(program, ByPattern(lambda pattern: LazyProgram(lambda: make(pattern))), n)
        return CustomJvp(program, LazyProgram(lambda: make([True] * len(moves))), n)


class custom_vjp(Custom):  # noqa: N801
    """A function with a custom reverse-mode rule, in two parts.

    `fwd(*args)` returns the result and the residuals, a tree of values for `bwd`. `bwd(residuals, cotangent)` returns a
    tuple with a cotangent for each argument, or None for zero. Arguments in `nondiff_argnums` are Python values: `fwd`
    gets them at their positions, `bwd` before the residuals.

    >>> import atled, atled.numpy as jnp
    >>> @atled.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1.0, 1.0),))
    >>> float(atled.grad(lambda x: 100.0 * clip_gradient(x))(2.0))
    1.0
    """

    kind = "custom_vjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    is_symbolic = False

    def check_rule(self) -> None:
        if self.fwd is None:
            raise AttributeError(
                f"custom_vjp: {self.name} must have a rule before it is differentiated; it has none yet."
                f"\n  try: {self.name}.defvjp(fwd, bwd)"
            )

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rule: `fwd(*args)` returns (result, residuals), `bwd(*nondiff, residuals, cotangent)` the cotangents.

        With `symbolic_zeros`, `fwd` gets each array as a `CustomVJPPrimal`, with a flag for whether it is being
        differentiated. `optimize_remat` has no effect.
        """
        self.fwd, self.bwd, self.is_symbolic = fwd, bwd, symbolic_zeros

    def differentiate(self, interpreter: Jvp, call: Arguments) -> Any:
        mine = [isinstance(x, JvpTracer) and x.interpreter is interpreter for x in call.leaves]
        primals = [x.primal if m else x for x, m in zip(call.leaves, mine)]
        out, residuals = self.run_forward(call, primals, mine)
        self.check_given(interpreter, [*out, *residuals.arrays])
        types = [type_of(x) for x in primals]
        out_types = [type_of(x) for x in out]
        moves = [(m, x) for m, x, t in zip(mine, call.leaves, types) if is_moving(t)]
        back = self.backward(call, residuals, [type_of(x) for x in residuals.arrays], types, out_types)
        op = Pullback(
            back, len(residuals.arrays), tuple([m for m, _ in moves]),
            tuple([t.tangent() for t in out_types if is_moving(t)]),
        )  # fmt: skip
        moved = bind(op, *residuals.arrays, *[x.tangent for m, x in moves if m])
        return call.result([interpreter.wrap(x, t) for x, t in zip(out, spread_tangents(moved, out_types))])

    def run_forward(
        self, call: Arguments, primals: Sequence[Any], is_moved: Sequence[bool]
    ) -> tuple[list[Any], _Residuals]:
        """The leaves of the result of `fwd`, checked, and its residuals."""
        assert self.fwd is not None
        if self.is_symbolic:
            primals = [CustomVJPPrimal(x, m) for x, m in zip(primals, is_moved)]
        pair = self.fwd(*call.merged(primals))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"custom_vjp: fwd of {self.name} must return a pair (result, residuals); got {describe(pair)}."
                "\n  try: return result, None if bwd needs no residuals."
            )
        return call.outputs(pair[0], "fwd"), _Residuals(pair[1])

    def run_backward(
        self, call: Arguments, residuals: Any, cotangents: Sequence[Any], types: Sequence[ArrayType],
        out_types: Sequence[ArrayType],
    ) -> list[Any]:  # fmt: skip
        """The cotangents that `bwd` returns for inexact arguments, flat and checked."""
        assert self.bwd is not None
        given = iter(cotangents)
        shown = [next(given) if is_moving(t) else np.zeros(t.shape, dtypes.float0) for t in out_types]
        grads = self.bwd(*call.fixed, residuals, call.result(shown))
        count = len(call.structure.children)
        if isinstance(grads, list):
            grads = tuple(grads)
        if not isinstance(grads, tuple) or len(grads) != count:
            got = f"{len(grads)} of them" if isinstance(grads, tuple) else describe(grads)
            says = f"custom_vjp: bwd of {self.name} must return a tuple with a cotangent for each of {count} arguments"
            way_out = "None for an argument that has no derivative; (g,), with a comma, for one argument."
            raise TypeError(errors.explained(f"{says}; got {got}.", way_out))
        leaves: list[Any] = []
        for one, child in zip(grads, call.structure.children, strict=True):
            leaves += _cotangents(self, one, child)
        out = []
        for x, t in zip(leaves, types, strict=True):
            want = t.tangent()
            if want.kind != "0":
                out.append(instantiate(Zero(want)) if x is None else _as_types(self, "a cotangent", [x], [want])[0])
        return out

    def backward(
        self, call: Arguments, kept: _Residuals, kept_types: Sequence[ArrayType], types: Sequence[ArrayType],
        out_types: Sequence[ArrayType],
    ) -> CallableProgram:  # fmt: skip
        """`bwd` as a function of flat arrays: from the residuals' arrays and the cotangents to cotangents."""
        n = len(kept_types)

        def f(*operands: Any) -> list[Any]:
            return self.run_backward(call, kept.rebuilt(operands[:n]), operands[n:], types, out_types)

        cotangents = [t.tangent() for t in out_types if is_moving(t)]
        return CallableProgram(f, [*kept_types, *cotangents], self.name)

    def op(self, call: Arguments, program: Program, captured: list[Any]) -> Op:
        n, count, types = len(captured), len(program.outputs), program.input_types[len(captured) :]

        def rules(pattern: Sequence[bool]) -> tuple[LazyProgram, LazyProgram]:
            residuals: list[_Residuals] = []
            given = iter(pattern)
            is_moved = [is_moving(t) and next(given) for t in types]

            def forward() -> Program:
                def f(*operands: Any) -> list[Any]:
                    out, saved = self.run_forward(call, operands[n:], is_moved)
                    arrays = saved.arrays
                    saved.forget()
                    residuals.append(saved)
                    return [*_as_types(self, "a result", out, program.output_types), *arrays]

                return record_closed(f, program.input_types, self.name)

            first = LazyProgram(forward)

            def backward() -> Program:
                kept_types = first.program.output_types[count:]
                return self.backward(call, residuals[0], kept_types, types, program.output_types).program

            return first, LazyProgram(backward)

        if self.is_symbolic:
            known = functools.cache(rules)
            return CustomVjp(program, ByPattern(lambda p: known(p)[0]), ByPattern(lambda p: known(p)[1]), n)
        return CustomVjp(program, *rules([True] * len(types)), n)


class _Residuals:
    """The residual tree that `fwd` passes to `bwd`, separated into arrays and other leaves."""

    def __init__(self, found: Any) -> None:
        self.leaves, self.structure = tree.flatten(found)
        self.is_array = [is_array_like(x) for x in self.leaves]
        self.arrays = kept(self.is_array, self.leaves)

    def rebuilt(self, arrays: Sequence[Any]) -> Any:
        remaining = iter(arrays)
        return self.structure.unflatten([next(remaining) if a else x for x, a in zip(self.leaves, self.is_array)])

    def forget(self) -> None:
        """Release the arrays."""
        self.leaves = [None if a else x for x, a in zip(self.leaves, self.is_array)]
        self.arrays = []


def _cotangents(custom: custom_vjp, found: Any, structure: tree.TreeDef) -> list[Any]:
    """The leaves of one argument's cotangent, or of zeros if the whole cotangent is None."""
    if found is None:
        return [None] * structure.num_leaves
    try:
        subtrees = structure.flatten_up_to(found)
    except ValueError as error:
        raise TypeError(
            f"custom_vjp: bwd of {custom.name} must give cotangents with the trees of the arguments. {error}"
        ) from None
    return [None if getattr(x, "dtype", None) == dtypes.float0 else x for x in subtrees]
