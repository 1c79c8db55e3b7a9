"""`shard_map`: runs a function on each device of a mesh, on that device's shards of the arguments.

The function becomes a per-device program, held by one op, `ShardMap`. Its collectives refer to mesh axes. The program
is differentiated per device, and `varying_axes_inference.py` determines which values are replicated, so that their
cotangents are summed over the devices exactly once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from atled.core import errors, settings, source, tree
from atled.core.array import describe, type_of
from atled.core.list_partition import kept, left_out, merged, with_zeros
from atled.core.op import Op
from atled.core.program import Program, evaluate, record, record_closed
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec, mesh_or_current
from atled.core.tangent_mask import ALL
from atled.core.trace import Axis, bind, leaving, received, state
from atled.core.types import ArrayType, Linear, Zero
from atled.higher_order.call import has_effects, named_axes, split_program
from atled.higher_order.varying_axes_inference import explain, typed, varying
from atled.ops import shape
from atled.transforms.jvp import jvp_program
from atled.transforms.linearize import Tape
from atled.transforms.masked_tangents import arrays_of, mask_program, reaches_of, selects
from atled.transforms.transpose import transpose_program
from atled.transforms.vmap import PartlyBatched, batch_program

Specs = tuple[PartitionSpec, ...]


class ShardMap(Op):
    """Runs a program on each device of a mesh; `ins` and `outs` are the PartitionSpecs of inputs and results."""

    gives_tuple = True
    splits = True
    takes_keys = True
    program: Program
    mesh: Mesh
    axes_here: tuple[Any, ...]  # the mesh axes that are manual; the compiler partitions along the others
    ins: Specs
    outs: Specs

    @property
    def axes(self) -> tuple[Any, ...]:
        """The named axes of enclosing transformations that collectives in the program run over."""
        return tuple([a for a in named_axes(self.program) if a not in self.axes_here])

    @property
    def is_collective(self) -> bool:  # type: ignore[override]
        return bool(self.axes)

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return has_effects(self.program)

    def again(self, program: Program, ins: Sequence[Any], outs: Sequence[Any]) -> ShardMap:
        """The op for a transformed program."""
        return ShardMap(program, self.mesh, self.axes_here, tuple(ins), tuple(outs))

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        parts = tuple([local(t, s, self.mesh) for t, s in zip(types, self.ins, strict=True)])
        expected = self.program.input_types
        if [t.strong() for t in parts] != [t.strong() for t in expected]:
            raise TypeError(f"{self.program.name}: expected shards {expected}; got {parts}.")
        return tuple([whole(t, s, self.mesh) for t, s in zip(self.program.output_types, self.outs, strict=True)])

    def lower(self, build: Any, *operands: Any) -> Any:
        def body(inner: Any, *values: Any) -> Any:
            return inner.inline(self.program, values)

        types = self.result_type(*[v.type for v in operands])
        if not types:
            return ()
        return build.manual_computation(
            self.mesh, self.axes_here, operands, self.ins, self.outs, self.program.input_types, types, body
        )

    def stepwise(self, *operands: Any) -> Any:
        return bind(self, *operands)

    # -- transforms --------------------------------------------------------------------------------------------------

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        given = tuple([type(t) is not Zero for t in tangents])
        with scope(self.mesh, self.axes_here):
            derivative, nonzero = jvp_program(self.program, given)
        ins = [*self.ins, *kept(given, self.ins)]
        op = self.again(derivative, ins, [*self.outs, *kept(nonzero, self.outs)])
        out = bind(op, *primals, *kept(given, tangents))
        count = len(self.outs)
        return out[:count], with_zeros(nonzero, out[count:], [type_of(x) for x in out[:count]])

    def split(self, tape: Tape, operands: Sequence[Any]) -> Any:
        is_known = tuple([not tape.owns(x) for x in operands])
        with scope(self.mesh, self.axes_here):
            parts = self.program.memo(("cut", is_known, self.ins, self.axes_here), lambda: _Cut(self, is_known))
        known = kept(is_known, operands)
        ins = kept(is_known, self.ins)
        first = self.again(parts.known, ins, [*kept(parts.known_outputs, self.outs), *parts.specs])
        out = bind(first, *known)
        count = sum(parts.known_outputs)
        waiting_ins = left_out(is_known, self.ins)
        outs = left_out(parts.known_outputs, self.outs)
        residuals = [*[known[i] for i in parts.inputs], *out[count:]]
        specs = [*[ins[i] for i in parts.inputs], *parts.specs]
        later = self.again(parts.waiting, [*specs, *waiting_ins], outs)
        written = tape.write(later, [*residuals, *left_out(is_known, operands)])
        return tuple(merged(parts.known_outputs, out[:count], written))

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        is_linear = tuple([type(x) is Linear for x in operands])
        given = tuple([type(c) is not Zero for c in cotangent])
        with scope(self.mesh, self.axes_here):
            shared = self.program.memo(
                ("typed", self.ins, self.outs),
                lambda: typed(self.program, self._sets(self.ins), self._sets(self.outs), self.mesh),
            )
            transposed, nonzero = transpose_program(shared, is_linear, given)
        values = left_out(is_linear, operands)
        ins = [*left_out(is_linear, self.ins), *kept(given, self.outs)]
        back = kept(is_linear, self.ins)
        out = bind(self.again(transposed, ins, kept(nonzero, back)), *values, *kept(given, cotangent))
        return tuple(merged(is_linear, merged(nonzero, out)))

    @property
    def selects(self) -> bool:  # type: ignore[override]
        return selects(self.program)

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        with scope(self.mesh, self.axes_here):
            masked_program = mask_program(self.program, masks, (0,) * len(self.outs))
        op = self.again(masked_program.both, [*self.ins, *kept(reaches_of(masks), self.ins)], self.outs)
        return bind(op, *values, *arrays_of(masks)), tuple([ALL if b else None for b in masked_program.is_linear])

    def _sets(self, specs: Specs) -> list[frozenset[Any]]:
        """The manual mesh axes that split each value."""
        return [frozenset(s.names) & frozenset(self.axes_here) for s in specs]

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        with scope(self.mesh, self.axes_here):
            batched_program, flags = batch_program(self.program, batched, batch.size, axis_name=batch.axis_name)
        ins = [PartitionSpec(None, *s) if b else s for s, b in zip(self.ins, batched)]
        outs = [PartitionSpec(None, *s) if b else s for s, b in zip(self.outs, flags)]
        return PartlyBatched(bind(self.again(batched_program, ins, outs), *operands), flags)


class _Cut:
    """The known and the linear part of a `ShardMap`'s program, and the specs of the residuals.

    Residuals get one more leading axis, along which the devices' values are concatenated.
    """

    def __init__(self, op: ShardMap, is_known: tuple[bool, ...]) -> None:
        parts = split_program(op.program, is_known)
        self.known_outputs = parts.known_outputs
        count = sum(parts.known_outputs)
        known = parts.known
        inner_residuals = known.outputs[count:]
        position = {v: i for i, v in enumerate(known.inputs)}
        self.inputs = [position[v] for v in inner_residuals if v in position]  # such residuals keep the input's spec
        is_new = [v not in position for v in inner_residuals]
        sets = varying(known, kept(is_known, op._sets(op.ins)))[count:]
        order = op.axes_here
        axes = [tuple([a for a in order if a in s]) for s, n in zip(sets, is_new) if n]
        self.specs = [PartitionSpec(a if len(a) > 1 else a[0] if a else None) for a in axes]
        types = [v.type for v, n in zip(inner_residuals, is_new) if n]

        def first(*xs: Any) -> list[Any]:
            out = evaluate(known, xs)
            fresh = kept(is_new, out[count:])
            return [*out[:count], *[shape.add_axis(x, 1) for x in fresh]]

        def second(*xs: Any) -> list[Any]:
            inputs, new = iter(xs[: len(self.inputs)]), iter(xs[len(self.inputs) : len(inner_residuals)])
            residuals = [
                shape.reshape(next(new), v.type.shape) if n else next(inputs) for v, n in zip(inner_residuals, is_new)
            ]
            return evaluate(parts.waiting, [*residuals, *xs[len(inner_residuals) :]])

        self.known = record_closed(first, known.input_types, known.name)
        wide = [ArrayType((1, *t.shape), t.dtype, t.weak) for t in types]
        kept_types = [known.inputs[i].type for i in self.inputs]
        rest = parts.waiting.input_types[len(inner_residuals) :]
        self.waiting = record_closed(second, [*kept_types, *wide, *rest], parts.waiting.name)


def local(t: ArrayType, spec: PartitionSpec, mesh: Mesh) -> ArrayType:
    """The type of one shard."""
    return ArrayType(NamedSharding(mesh, spec).shard_shape(t.shape), t.dtype, t.weak)


def whole(t: ArrayType, spec: PartitionSpec, mesh: Mesh) -> ArrayType:
    """The type of a global array whose shards have this type."""
    counts = NamedSharding(mesh, spec).counts(len(t.shape))
    return ArrayType(tuple([n * k for n, k in zip(t.shape, counts)]), t.dtype, t.weak)


@contextlib.contextmanager
def scope(mesh: Mesh, axes: Sequence[Any]) -> Iterator[None]:
    """A `with` block in which collectives can refer to these axes of a mesh."""
    before = state.axes
    state.axes = {**before, **{a: Axis(a, mesh.shape[a], None) for a in axes}}
    try:
        yield
    finally:
        state.axes = before


# -- the public function ---------------------------------------------------------------------------------------------


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | None = None,
    axis_names: Any = None,
    check_vma: bool = True,
) -> Any:
    """Turn a function of shards into a function of global arrays, which runs it on each device of a mesh.

    `in_specs` and `out_specs` are `PartitionSpec`s, or trees of them that are prefixes of the arguments and results.
    A spec has, for each dimension, the mesh axes along which an argument is split or a result concatenated. In the
    function, collectives such as `lax.psum` refer to mesh axes. A result whose spec omits a mesh axis must be
    replicated along that axis.

    Args:
        mesh: the mesh to run on; by default the current mesh.
        axis_names: the manual mesh axes; the compiler partitions along the others.
        check_vma: whether to check that results are replicated along axes that their spec omits.

    >>> import atled, atled.numpy as jnp
    >>> from atled.sharding import P
    >>> mesh = atled.make_mesh((1,), ("x",), devices=atled.devices()[:1])
    >>> total = shard_map(lambda v: atled.lax.psum(v.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    >>> float(total(jnp.arange(4.0)))
    6.0
    """
    if f is None:
        return lambda g: shard_map(
            g, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )

    def mapped(*args: Any) -> Any:
        try:
            chosen = mesh_or_current(mesh, "shard_map")
            return run(f, chosen, in_specs, out_specs, axis_names, check_vma, args)
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    mapped.__name__ = str(getattr(f, "__name__", "shard_map"))
    mapped.__doc__ = getattr(f, "__doc__", None)
    mapped.__wrapped__ = f  # type: ignore[attr-defined]
    return mapped


def run(
    f: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, axis_names: Any, is_checked: bool, args: Any
) -> Any:
    """Trace a function on shards of its arguments, and run it on all devices.

    `out_specs` may also be a function from the result's tree and the shards' types to a tuple of specs.
    """
    name = getattr(f, "__name__", "shard_map")
    axes = tuple([a for a in mesh.axis_names if not axis_names or a in axis_names])
    for a in axis_names or ():
        if a not in mesh.shape:
            raise ValueError(f"shard_map: the mesh has no axis {a!r}; its axes are {', '.join(map(repr, mesh.shape))}.")
    if in_specs is None:
        raise ValueError("shard_map: in_specs must say how the arguments are split.\n  try: in_specs=P('data').")
    leaves, structure = tree.flatten(args)
    ins = _flat_specs("in_specs", in_specs, args, mesh, axes)
    paths = [tree.keystr(p) for p, _ in tree.leaves_with_path(args)]
    types = []
    for x, s, path in zip(leaves, ins, paths, strict=True):
        t = type_of(x)
        NamedSharding(mesh, s).check(t.shape, f"shard_map: argument {path} of {name}")
        types.append(local(t, s, mesh))
    op, captured, out_structure = _recorded(f, name, structure, types, mesh, axes, ins, out_specs, is_checked)
    return out_structure.unflatten(list(bind(op, *captured, *leaves)))


def _recorded(
    f: Callable[..., Any], name: str, structure: tree.TreeDef, types: Sequence[ArrayType], mesh: Mesh,
    axes: tuple[Any, ...], ins: Specs, out_specs: Any, is_checked: bool,
) -> tuple[ShardMap, list[Any], tree.TreeDef]:  # fmt: skip
    """Trace a function of shards of these types; returns the op, the captured values, and the tree of the results."""
    its_structure: list[Any] = []

    def flat(*parts: Any) -> list[Any]:
        result = f(*received(structure.unflatten, list(parts)))
        leaving(name, result)
        out, result_structure = tree.flatten(result)
        its_structure.append(result_structure)
        for x in out:
            type_of(x)
        return out

    with scope(mesh, axes):
        program, captured = record(flat, types, name)
    (out_structure,) = its_structure
    result = out_structure.unflatten([object()] * out_structure.num_leaves)
    if callable(out_specs):
        outs: Any = out_specs(result, program.output_types)
    else:
        outs = _flat_specs("out_specs", out_specs, result, mesh, axes)
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(result)]
    for t, s, path in zip(program.output_types, outs, paths, strict=True):
        if len(s) > len(t.shape) and s.names:
            raise ValueError(
                f"shard_map: out_specs has {s} for the result{path} of {name}, whose shard is {t}, with "
                f"{len(t.shape)} dimensions.\n  try: P(), or a result with one more dimension: x[None]."
            )
    op = ShardMap(program, mesh, axes, (*[PartitionSpec()] * len(captured), *ins), outs)
    if not settings.scope().divergent_collectives:
        _check_branches(op, name)
    if is_checked:
        _check(op, name, paths)
    return op, captured, out_structure


def _flat_specs(what: str, specs: Any, target: Any, mesh: Mesh, axes: Sequence[Any]) -> Specs:
    """One spec for each leaf of `target`, from a prefix tree of specs."""
    is_spec = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    way_out = "one P(...) for a whole dict or list, or a tuple with a P(...) for each argument."
    flat = tree.spread(specs, target, is_spec, f"shard_map: {what}", way_out)
    flat = [PartitionSpec() if s is None else s for s in flat]
    for s in flat:
        if not isinstance(s, PartitionSpec):
            raise TypeError(f"shard_map: {what} must contain only PartitionSpecs; got {describe(s)}.")
        for n in s.names:
            if n not in axes:
                raise ValueError(
                    f"shard_map: {what} names the axis {n!r}; the mesh has {', '.join(map(repr, axes))}."
                    "\n  try: one of these axes."
                )
        NamedSharding(mesh, s)
    return tuple(flat)


def _check(op: ShardMap, name: str, paths: Sequence[str]) -> None:
    """Raise an error for results that vary along a mesh axis that their spec omits."""
    sets = varying(op.program, op._sets(op.ins))
    for along, spec, t, path, out in zip(sets, op.outs, op.program.output_types, paths, op.program.outputs):
        extra = [a for a in op.axes_here if a in along and a not in spec.names and op.mesh.shape[a] > 1]
        if extra:
            axes = ", ".join(map(repr, extra))
            raise ValueError(
                f"shard_map: the result{path} of {name} is {t} on each device and differs along {axes}, which "
                f"its spec {spec} omits." + explain(op.program, out) + f"\n  try: {extra[0]!r} in out_specs, "
                f"or lax.psum(x, {extra[0]!r}) or another reduction; check_vma=False if the values are equal anyway."
            )


def _check_branches(op: ShardMap, name: str) -> None:
    """Raise an error for collectives in branches or loops that only some devices may run, which would deadlock."""

    def diverges(e: Any, axes: frozenset[Any]) -> None:
        apart = [a for a in op.axes_here if a in axes and op.mesh.shape[a] > 1]
        if apart:
            raise ValueError(
                f"{name}: a branch or loop holds a collective over {', '.join(map(repr, apart))}, and devices along "
                f"that axis may take different branches, which would deadlock.{source.describe(e.source)}"
                f"\n  try: the same predicate on all devices, such as lax.pmax(predicate, {apart[0]!r}); the "
                "collective outside of the branch or loop; atled.settings.update('divergent_collectives', True) if all "
                "devices have the same predicate."
            )

    varying(op.program, op._sets(op.ins), diverges)
