"""Batching: a value may have a batch axis, always axis 0, which each op's `batch` rule propagates.

`vmap` moves axes only in its arguments and results. Ops without batched operands go to the interpreters below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from atled.core import errors, tree
from atled.core.array import Array, describe, type_of
from atled.core.program import Program, evaluate, record_closed
from atled.core.settings import scope
from atled.core.trace import Axis, Interpreter, Tracer, entered, leaving, received, state
from atled.core.types import ArrayType
from atled.ops import shape


class BatchTracer(Tracer):
    """A value with a hidden leading batch axis."""

    __slots__ = ("value",)

    def __init__(self, interpreter: Interpreter, value: Any) -> None:
        self.interpreter = interpreter
        self.value = value
        t = type_of(value)
        self.type = ArrayType(t.shape[1:], t.dtype, t.weak)


class Batch(Interpreter):
    """Applies `batch` rules."""

    __slots__ = ("axis_name", "size")
    transform = "vmap"

    def __init__(self, level: int, size: int, axis_name: Any) -> None:
        super().__init__(level)
        self.size = size
        self.axis_name = axis_name

    def process(self, op: Any, operands: tuple[Any, ...]) -> Any:
        if scope().is_watched:
            before = state.lanes
            state.lanes = (self.size, *before)
            try:
                return self.apply(op, operands)
            finally:
                state.lanes = before
        return self.apply(op, operands)

    def apply(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """The result that the op's batching rule gives."""
        batched = tuple([isinstance(x, BatchTracer) and x.interpreter is self for x in operands])
        values = [x.value if b else x for x, b in zip(operands, batched, strict=True)]
        if op.splits:
            out = op.batch_under(self, batched, *values)
        elif op.is_collective and self.axis_name in op.axes:
            out = op.batch_named(self.axis_name, self.size, batched, *values)
            if op.is_same_for_all:
                return out
        else:
            out = op.batch(batched, *values)
        if type(out) is PartlyBatched:
            results = [BatchTracer(self, x) if b else x for x, b in zip(out.values, out.is_batched, strict=True)]
            return tuple(results) if op.gives_tuple else results[0]
        if type(out) is tuple:
            return tuple([BatchTracer(self, x) for x in out])
        return BatchTracer(self, out)


class PartlyBatched:
    """Results of a `batch` rule, some of which have no batch axis."""

    __slots__ = ("is_batched", "values")

    def __init__(self, values: Sequence[Any], is_batched: Sequence[bool]) -> None:
        self.values = values
        self.is_batched = is_batched


def batch_flat(
    f: Callable[..., Sequence[Any]],
    operands: Sequence[Any],
    is_batched: Sequence[bool],
    size: int,
    axis_name: Any = None,
) -> tuple[list[Any], list[bool]]:
    """Run a function on operands, some with a leading batch axis; returns the results, and which have the axis."""
    interpreter = Batch(state.level + 1, size, axis_name)
    axis = None if axis_name is None else Axis(axis_name, size, interpreter)
    with entered(interpreter, axis=axis):
        out = f(*[BatchTracer(interpreter, x) if b else x for x, b in zip(operands, is_batched, strict=True)])
        mine = [isinstance(x, BatchTracer) and x.interpreter is interpreter for x in out]
        return [x.value if m else x for x, m in zip(out, mine, strict=True)], mine


def batch_program(
    program: Program,
    is_batched: tuple[bool, ...],
    size: int,
    wanted: tuple[bool, ...] | None = None,
    axis_name: Any = None,
) -> tuple[Program, tuple[bool, ...]]:
    """The program with a leading batch axis on some inputs; also returns which outputs have the axis.

    `wanted` requests a batch axis on outputs that would have none.
    """

    def make() -> tuple[Program, tuple[bool, ...]]:
        flags: list[bool] = []

        def f(*operands: Any) -> list[Any]:
            out, mine = batch_flat(lambda *xs: evaluate(program, xs), operands, is_batched, size, axis_name)
            if wanted is not None:
                out = [shape.add_axis(x, size) if w and not m else x for x, m, w in zip(out, mine, wanted, strict=True)]
                mine = [m or w for m, w in zip(mine, wanted, strict=True)]
            flags.extend(mine)
            return out

        types = [
            ArrayType((size, *v.type.shape), v.type.dtype, v.type.weak) if b else v.type
            for v, b in zip(program.inputs, is_batched, strict=True)
        ]
        batched = record_closed(f, types, program.name)
        return batched, tuple(flags)

    return program.memo(("batch", is_batched, size, wanted, axis_name, tuple(state.axes)), make)


# -- the public function ---------------------------------------------------------------------------------------------


_P = ParamSpec("_P")
_R = TypeVar("_R")


def vmap(
    fun: Callable[_P, _R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[_P, _R]:
    """Turn a function of one example into a function of a batch.

    `in_axes` has the batch axis of each argument, or `None` for an argument that all examples share; it may be a tree
    that is a prefix of the arguments. `out_axes` has the batch axis of each result. Keyword arguments are mapped over
    axis 0. With `axis_name`, collectives such as `lax.psum` work over the batch. `axis_size` is needed if no argument
    is mapped. JAX's `spmd_axis_name` has no effect: the compiler chooses the sharding of the batch.

    >>> import atled.numpy as jnp
    >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
    Array([2., 2., 2.], dtype=float32)
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not isinstance(in_axes, (tuple, int, type(None), dict)):
        raise TypeError(f"vmap: in_axes must be an int, None, or a tuple of these; got {describe(in_axes)}.")

    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return _run(fun, in_axes, out_axes, axis_name, axis_size, args, kwargs)
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    mapped.__name__ = str(getattr(fun, "__name__", "vmap"))
    mapped.__doc__ = getattr(fun, "__doc__", None)
    mapped.__wrapped__ = fun  # type: ignore[attr-defined]
    return mapped


def _run(f: Any, in_axes: Any, out_axes: Any, axis_name: Any, axis_size: Any, args: Any, kwargs: Any) -> Any:
    leaves, structure = tree.flatten((args, kwargs))
    try:
        axes = _flat_axes("in_axes", in_axes, args) + [0] * len(tree.leaves(kwargs))
    except ValueError:
        for x in leaves:
            type_of(x)  # an error about an argument that is no array is clearer
        raise
    for x, a in zip(leaves, axes, strict=True):
        if a is not None:
            type_of(x)  # raises if it is not an array
    size = _batch_size(leaves, axes, axis_size, structure)
    operands = [x if a is None else _to_front(x, a) for x, a in zip(leaves, axes, strict=True)]
    out_structure: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        a, k = received(structure.unflatten, xs)
        result = f(*a, **k)
        leaving(getattr(f, "__name__", "the function"), result)
        results, shape_of_out = tree.flatten(result)
        out_structure.append(shape_of_out)
        for x in results:
            type_of(x)
        return results

    out, mine = batch_flat(flat, operands, [a is not None for a in axes], size, axis_name)
    (result_structure,) = out_structure
    targets = _flat_axes("out_axes", out_axes, result_structure.unflatten(out))
    return result_structure.unflatten([_to_axis(x, m, a, size) for x, m, a in zip(out, mine, targets, strict=True)])


def _is_axis(x: Any) -> bool:
    return x is None or (isinstance(x, int) and not isinstance(x, bool))


def _flat_axes(name: str, axes: Any, target: Any) -> list[Any]:
    """One axis for each leaf of `target`, from a prefix tree of axes."""
    if isinstance(axes, (list, tuple)) and type(target) is tuple and len(axes) != len(target):
        what, many = ("arguments", "argument") if name == "in_axes" else ("results", "result")
        raise ValueError(
            f"vmap: {name} must have an entry for each {many}; got {len(axes)} for {len(target)} {what}."
            "\n  try: an entry for each, None where there is no batch axis."
        )
    way_out = "one axis for a whole dict or list, or a dict or list with an axis for each item."
    for axis in (flat := tree.spread(axes, target, _is_axis, f"vmap: {name}", way_out)):
        if not _is_axis(axis):
            raise TypeError(f"vmap: {name} must contain only ints and None; got {describe(axis)}.")
    return flat


def _batch_size(leaves: Sequence[Any], axes: Sequence[Any], axis_size: int | None, structure: Any) -> int:
    sizes: dict[int, str] = {}
    paths = [tree.keystr(p) for p, _ in tree.leaves_with_path(structure.unflatten(list(range(len(leaves)))))]
    for x, axis, path in zip(leaves, axes, paths, strict=True):
        if axis is not None:
            t = type_of(x)
            if not -t.ndim <= axis < t.ndim:
                has = f"{t.ndim} {'axis' if t.ndim == 1 else 'axes'}"
                way_out = "in_axes=None to pass the same value to all examples; keyword arguments are always mapped"
                if t.ndim:
                    way_out = f"an axis from {-t.ndim} to {t.ndim - 1}"
                raise ValueError(
                    f"vmap: in_axes asks for axis {axis} of {t}, which has {has}{_at(path)}.\n  try: {way_out}."
                )
            sizes.setdefault(t.shape[axis], f"{t.shape[axis]} for {t} along axis {axis}{_at(path)}")
    if axis_size is not None:
        sizes.setdefault(axis_size, f"{axis_size} for axis_size")
    if len(sizes) > 1:
        raise ValueError(
            f"vmap: mapped axes must have the same size; got {', and '.join(sizes.values())}."
            "\n  try: in_axes=(0, None) for an argument that is the same for all, or two vmaps for all pairs."
        )
    if not sizes:
        raise ValueError(
            "vmap: at least one argument must be mapped, because it gives the batch size; got no axis in in_axes."
            "\n  try: in_axes=0 for an argument, or axis_size=n."
        )
    return next(iter(sizes))


def _at(path: str) -> str:
    kind, rest = path[:3], path[3:]
    return f" (argument {rest})" if rest and kind in ("[0]", "[1]") else ""


def _to_front(x: Any, axis: int) -> Any:
    t = type_of(x)
    if not isinstance(x, Array) and axis in (0, -t.ndim):
        return np.asarray(x)
    return shape.move_axis(x, axis % t.ndim, 0)


def _to_axis(x: Any, is_mapped: bool, axis: Any, size: int) -> Any:
    if axis is None:
        if is_mapped:
            t = type_of(x)
            raise ValueError(
                errors.explained(
                    "vmap: out_axes may be None for a result that is the same for all examples; "
                    f"got {ArrayType(t.shape[1:], t.dtype)}, which differs.",
                    "out_axes=0, and .mean(axis=0) or another reduction of the result.",
                )
            )
        return x
    if not is_mapped:
        x = shape.add_axis(x, size)
    ndim = type_of(x).ndim
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"vmap: out_axes asks for axis {axis} of a result with {ndim} axes, including the batch axis."
            f"\n  try: an axis from {-ndim} to {ndim - 1}."
        )
    return shape.move_axis(x, 0, axis % ndim)
