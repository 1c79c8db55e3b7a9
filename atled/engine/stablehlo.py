"""Lowers programs to StableHLO modules: the builder over MLIR's bindings.

`Operation.create` with cached types and attributes (`mlir_attributes.py`) takes a microsecond per op, a quarter of the
time of the generated op classes or of text.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jaxlib._jax as _jax
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _stablehlo

from atled.compiler.builder import I32, U64, Value
from atled.compiler.lowering import lower
from atled.core import settings
from atled.core.program import Program, contains, record
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec, physical, physical_sharding
from atled.core.source import Source
from atled.core.source import shown as shown_scopes
from atled.core.types import ArrayType
from atled.engine.mlir_attributes import (
    UNKNOWN,
    attribute_of,
    context,
    dense,
    known_attributes,
    known_types,
    lock,
    module_type,
)

_create = ir.Operation.create


@functools.cache
def cpu_features() -> frozenset[str]:
    """The CPU feature flags as Linux names them; empty on other systems."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return frozenset()
    return frozenset(flags.split())


class Module:
    """A module under construction, and its functions by program."""

    def __init__(self, name: str) -> None:
        self.module = ir.Module.create(UNKNOWN)
        self.module.operation.attributes["sym_name"] = ir.StringAttr.get(_symbol(name))
        self.functions: dict[Any, tuple[str, Any]] = {}
        self.names: set[str] = {"main"}
        self.meshes: dict[Mesh, str] = {}
        self.locations: dict[Any, Any] = {}
        self.has_calls = True  # called programs become functions; otherwise their equations are inlined
        self.is_spread = False  # whether the program runs on several devices
        self.has_powers = False  # whether the program contains a `Pow`
        self.callbacks: list[Any] = []  # Python functions that the compiled program calls, by number
        self.channels = 0  # number of channels: one for each collective
        self.alike = 0  # number of groups of values with the same sharding
        self.uses: set[str] = set()  # kinds of custom calls, whose targets must be registered before loading

    def function(self, program: Program, platform: str, is_nested: bool, manual: Mesh | None) -> str:
        """The symbol of a program's function, emitted on first use; calls inside regions use a second function."""
        key = (id(program), is_nested, manual)
        known = self.functions.get(key)
        if known is None:
            known = self.functions[key] = (self.fresh_name(program.name), program)
            self.emit_function(known[0], program, platform, "private", is_nested=is_nested, manual=manual)
        return known[0]

    def mesh(self, mesh: Mesh) -> str:
        """The symbol of a mesh, declared on first use."""
        symbol = self.meshes.get(mesh)
        if symbol is None:
            symbol = self.meshes[mesh] = "mesh" if not self.meshes else f"mesh_{len(self.meshes)}"
            axes = ", ".join([f"{_quoted(n)}={k}" for n, k in mesh.shape.items()])
            attributes = {
                "sym_name": ir.StringAttr.get(symbol),
                "mesh": ir.Attribute.parse(f"#sdy.mesh<[{axes}]>"),
            }
            _create("sdy.mesh", [], [], attributes, loc=UNKNOWN, ip=ir.InsertionPoint.at_block_begin(self.module.body))
        return symbol

    def sharding(self, sharding: NamedSharding, t: ArrayType) -> Any:
        """The MLIR attribute of an array's sharding."""
        stored = physical_sharding(sharding, t)
        return ir.Attribute.parse(self.sharding_text(stored.mesh, stored.spec, len(physical(t)[0])))

    def sharding_text(self, mesh: Mesh, spec: PartitionSpec, ndim: int, is_open: bool = False) -> str:
        """A sharding attribute as text; with `is_open`, the partitioner may split the dimensions that the spec does not
        split.
        """
        parts = []
        for d in range(ndim):
            names = [_quoted(n) for n in spec.axes(d)]
            free = (d < len(spec) and spec[d] is PartitionSpec.UNCONSTRAINED) or (is_open and not names)
            parts.append(f"{{{', '.join([*names, *(['?'] if free else [])])}}}")
        return f"#sdy.sharding<@{self.mesh(mesh)}, [{', '.join(parts)}]>"

    def fresh_name(self, wanted: str) -> str:
        base = name = _symbol(wanted)
        n = 0
        while name in self.names:
            n += 1
            name = f"{base}_{n}"
        self.names.add(name)
        return name

    def portable_function(self, data: bytes, wanted: str) -> str:
        """The symbol of an exported function, added to this module on first use."""
        known = self.functions.get(hash(data))
        if known is None:
            name = self.fresh_name(wanted)
            imported = _stablehlo.deserialize_portable_artifact(context, data)
            (main,) = list(imported.body.operations)
            copy = main.operation.clone(ip=ir.InsertionPoint(self.module.body))
            copy.attributes["sym_name"] = ir.StringAttr.get(name)
            copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
            known = self.functions[hash(data)] = (name, data)
        return known[0]

    def emit_function(
        self, name: str, program: Program, platform: str, visibility: str, argument_attributes: Sequence[Any] = (),
        result_attributes: Sequence[Any] = (), is_nested: bool = False, manual: Mesh | None = None,
    ) -> None:  # fmt: skip
        ins = [module_type(t) for t in program.input_types]
        outs = [module_type(t) for t in program.output_types]
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "sym_visibility": ir.StringAttr.get(visibility),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(ins, outs)),
        }
        if argument_attributes:
            attributes["arg_attrs"] = ir.ArrayAttr.get([attribute_of(a) for a in argument_attributes])
        if result_attributes:
            attributes["res_attrs"] = ir.ArrayAttr.get([attribute_of(a) for a in result_attributes])
        at = ir.InsertionPoint(self.module.body)
        function = _create("func.func", [], [], attributes, regions=1, loc=UNKNOWN, ip=at)
        locations = [ir.Location.name(n) for n in program.input_names] or [UNKNOWN] * len(ins)
        block = ir.Block.create_at_start(function.regions[0], ins, locations)
        build = BlockBuilder(self, platform, program.name, ir.InsertionPoint(block))
        build.is_nested, build.manual = is_nested, manual
        arguments = [Value(h, t) for h, t in zip(block.arguments, program.input_types, strict=True)]
        results = lower(build, program, arguments)
        build.at(None, "return")
        build.emit("func.return", results, ())


def _quoted(name: Any) -> str:
    return '"' + re.sub(r'["\\]', "_", str(name)) + '"'


def _symbol(name: str) -> str:
    return re.sub(r"\W", "_", name) or "f"


class BlockBuilder:
    """The builder of one block. `compiler/builder.py` documents the methods."""

    __slots__ = ("constants", "ip", "is_nested", "location", "manual", "module", "places", "platform", "scope", "token")

    def __init__(self, module: Module, platform: str, scope: str, ip: Any) -> None:
        self.module = module
        self.platform = platform
        self.scope = scope
        self.ip = ip
        self.is_nested = False  # inside a region of an operation, such as the body of a loop, or called from there
        self.manual: Mesh | None = None  # the mesh of the enclosing shard_map block
        self.places: dict[Any, Value] = {}  # axis -> the device's index along it, if that is an operand
        self.constants: dict[Any, Value] = {}  # constants that are already in this block
        self.location = UNKNOWN
        self.token: Value | None = None  # the token of the last callback with an effect

    def at(self, source: Source | None, name: str) -> None:
        """Set the source location of the operations that follow."""
        locations = self.module.locations
        if source is None:
            key: Any = name
        else:
            key = (id(source.code), source.lasti, name, source.is_backward, source.scopes)
        location = locations.get(key)
        if location is None:
            child = None
            if source is not None:
                place = locations.get(key[:2])
                if place is None:
                    line, column = source.position
                    place = ir.Location.file(os.path.abspath(source.file), line, column)
                    place = locations[key[:2]] = ir.Location.name(source.function, childLoc=place)
                child = place
            shown = f"backward({name})" if source is not None and source.is_backward else name
            scopes = "" if source is None else shown_scopes(source.scopes)
            location = locations[key] = ir.Location.name(f"{self.scope}/{scopes}{shown}", childLoc=child)
        self.location = location

    def emit(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[ArrayType],
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Any] = (),
        terminator: str = "stablehlo.return",
    ) -> Any:
        handles = [v.handle if v.handle is not None else self._materialize(v) for v in operands]  # as `handles`
        op = _create(
            name,
            [known_types.get(t) or module_type(t) for t in types],
            handles,
            {k: attribute_of(v) for k, v in attributes.items()} if attributes else None,
            regions=len(regions),
            loc=self.location,
            ip=self.ip,
        )
        if regions:
            for region, (block_types, body) in zip(op.regions, regions, strict=True):
                self._fill(region, block_types, body, terminator)
        if len(types) == 1:
            return Value(op.result, types[0])
        return tuple([Value(h, t) for h, t in zip(op.results, types, strict=True)])

    def handles(self, values: Sequence[Value]) -> list[Any]:
        return [v.handle if v.handle is not None else self._materialize(v) for v in values]

    def foreign(self, rule: Callable[..., Any], operands: Sequence[Value], types: Sequence[ArrayType]) -> list[Value]:
        handles = self.handles(operands)
        with context, self.location, self.ip:
            return [Value(h, t) for h, t in zip(rule(*handles), types, strict=True)]

    def region(self, types: Sequence[ArrayType], body: Callable[..., Any]) -> Any:
        return types, body

    def _fill(self, region: Any, types: Sequence[ArrayType], body: Callable[..., Any], terminator: str) -> None:
        block = ir.Block.create_at_start(region, [module_type(t) for t in types], [self.location] * len(types))
        inner = BlockBuilder(self.module, self.platform, self.scope, ir.InsertionPoint(block))
        inner.location, inner.is_nested = self.location, True
        inner.manual, inner.places = self.manual, self.places
        out = body(inner, *[Value(h, t) for h, t in zip(block.arguments, types, strict=True)])
        inner.emit(terminator, out if isinstance(out, (tuple, list)) else (out,), ())

    def _materialize(self, v: Value) -> Any:
        v.handle = self.constant(v.literal, v.type).handle
        return v.handle

    def constant(self, value: Any, type: ArrayType) -> Value:
        dtype = physical(type)[1]
        data = np.asarray(False if type.kind == "0" else value, dtype)
        if data.size != 1:
            return self._constant(dense(data, dtype, type.shape), type)
        key = (data.tobytes(), type)
        cached = self.constants.get(key)
        if cached is None:
            attribute = known_attributes.get(key)
            if attribute is None:
                attribute = known_attributes[key] = dense(data, dtype, type.shape)
            cached = self.constants[key] = self._constant(attribute, type)
        return cached

    def _constant(self, attribute: Any, type: ArrayType) -> Value:
        op = _create("stablehlo.constant", [module_type(type)], [], {"value": attribute}, loc=self.location, ip=self.ip)
        return Value(op.result, type)

    def spread(self, x: Value, shape: tuple[int, ...]) -> Value:
        if x.type.shape == shape:
            return x
        assert x.type.shape == ()
        if x.handle is None:
            return self.constant(x.literal, ArrayType(shape, x.type.dtype))
        return self.broadcast(x, shape, ())

    def broadcast(self, x: Value, shape: tuple[int, ...], dimensions: Sequence[int]) -> Value:
        attributes = {"broadcast_dimensions": tuple(dimensions)}
        return self.emit("stablehlo.broadcast_in_dim", (x,), (ArrayType(shape, x.type.dtype),), attributes)

    def apply(self, f: Callable[..., Any], *operands: Value) -> Any:
        single = []

        def flat(*xs: Any) -> Any:
            out = f(*xs)
            single.append(type(out) is not tuple)
            return out if type(out) is tuple else (out,)

        program, captured = record(flat, [v.type for v in operands], "apply", with_sources=False)
        assert not captured
        location = self.location
        out = lower(_Quiet(self, location), program, operands)
        self.location = location
        return out[0] if single[0] else tuple(out)

    @property
    def has_matrix_unit(self) -> bool:
        return self.platform == "cpu" and "amx_bf16" in cpu_features()

    @property
    def has_powers(self) -> bool:
        return self.module.has_powers

    @property
    def is_spread(self) -> bool:
        return self.module.is_spread

    @property
    def on_one_cpu(self) -> bool:
        return self.platform == "cpu" and not self.is_spread

    def map(self, f: Callable[..., Any], *operands: Value) -> Value:
        t = operands[0].type
        if not t.shape or not self.on_one_cpu:  # the partitioner does not split a map
            return self.apply(f, *operands)
        scalars = [ArrayType((), v.type.dtype) for v in operands]
        region = self.region(scalars, lambda b, *xs: b.apply(f, *xs))
        return self.emit("stablehlo.map", operands, (t,), {"dimensions": tuple(range(t.ndim))}, [region])

    def call(
        self, program: Program, operands: Sequence[Value], is_closed: bool = False,
        composite: dict[str, Any] | None = None, marks: dict[str, str] | None = None,
    ) -> tuple[Value, ...]:  # fmt: skip
        if not self.module.has_calls or self.places:  # a function cannot use `places`, values of this block
            return tuple(lower(self, program, operands))  # type: ignore[arg-type]
        symbol = self.module.function(program, self.platform, self.is_nested, self.manual)
        if composite is not None:
            attributes = {**composite, "decomposition": ir.FlatSymbolRefAttr.get(symbol)}
            out = self.emit("stablehlo.composite", operands, program.output_types, attributes)
            return (out,) if len(program.output_types) == 1 else out
        attributes: dict[str, Any] = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
        if is_closed or marks:
            attributes["mhlo.frontend_attributes"] = {**(marks or {}), **({"inlineable": "false"} if is_closed else {})}
        out = self.emit("func.call", operands, program.output_types, attributes)
        return (out,) if len(program.output_types) == 1 else out

    def mark(self, x: Value, marks: dict[str, str]) -> Value:
        (handle,) = self.handles((x,))
        if not isinstance(handle.owner, ir.Block):
            attributes, name = handle.owner.attributes, "mhlo.frontend_attributes"
            before = {a.name: a.attr for a in ir.DictAttr(attributes[name])} if name in attributes else {}
            attributes[name] = attribute_of({**before, **marks})
        return Value(handle, x.type)

    def alike(self, values: Sequence[Value]) -> None:
        if self.is_spread:
            number = {"group_id": self.module.alike}
            self.module.alike += 1
            for handle in self.handles(values):
                given = {k: attribute_of(v) for k, v in number.items()}
                _create("sdy.sharding_group", [], [handle], given, loc=self.location, ip=self.ip)

    def manual_computation(
        self, mesh: Mesh, axes: Sequence[Any], operands: Sequence[Value], ins: Sequence[PartitionSpec],
        outs: Sequence[PartitionSpec], types: Sequence[ArrayType], out_types: Sequence[ArrayType], body: Any,
    ) -> tuple[Value, ...]:  # fmt: skip
        if mesh.size == 1:  # the partitioner does not run for one device
            before, self.manual = self.manual, mesh
            try:
                return tuple(body(self, *operands))
            finally:
                self.manual = before
        is_partial = set(axes) != set(mesh.axis_names)

        def per_value(specs: Sequence[PartitionSpec], types: Sequence[ArrayType]) -> Any:
            parts = []
            for spec, t in zip(specs, types, strict=True):
                stored = physical_sharding(NamedSharding(mesh, spec), t)
                text = self.module.sharding_text(mesh, stored.spec, len(physical(t)[0]), is_partial)
                parts.append(text.removeprefix("#sdy.sharding"))
            return ir.Attribute.parse(f"#sdy.sharding_per_value<[{', '.join(parts)}]>")

        given, types, ins = list(operands), list(types), list(ins)
        if is_partial:  # the compiler also partitions some axes, so the device's index is passed as an operand
            index = ArrayType((1,), np.dtype(np.int32))
            for a in axes:
                whole = ArrayType((mesh.shape[a],), np.dtype(np.int32))
                given.append(self.emit("stablehlo.iota", (), (whole,), {"iota_dimension": 0}))
                ins.append(PartitionSpec(a))
                types.append(index)

        def inside(inner: Any, *values: Any) -> Any:
            if is_partial:
                inner.places = {**self.places, **dict(zip(axes, values[len(operands) :]))}
            return body(inner, *values[: len(operands)])

        attributes = {
            "in_shardings": per_value(ins, [v.type for v in given]),
            "out_shardings": per_value(outs, out_types),
            "manual_axes": ir.Attribute.parse(f"#sdy<manual_axes{{{', '.join(map(_quoted, axes))}}}>"),
        }
        before, self.manual = self.manual, mesh
        try:
            out = self.emit("sdy.manual_computation", given, out_types, attributes, [(types, inside)], "sdy.return")
        finally:
            self.manual = before
        return _as_tuple(out)

    def place(self, axis: Any) -> Value:
        index = ArrayType((1,), np.dtype(np.int32))
        if axis in self.places:
            position = self.places[axis]
        else:
            groups = self.groups((axis,))
            table = np.zeros(groups.size, np.int32)
            table[groups] = np.arange(groups.shape[1], dtype=np.int32)
            number = self.emit("stablehlo.partition_id", (), (ArrayType((), np.dtype(np.uint32)),))
            known = self.constant(table, ArrayType((groups.size,), index.dtype))
            position = self.emit("stablehlo.dynamic_slice", (known, number), (index,), {"slice_sizes": (1,)})
        return self.emit("stablehlo.reshape", (position,), (ArrayType((), index.dtype),))

    def groups(self, axes: Sequence[Any]) -> np.ndarray:
        names = ", ".join(map(repr, axes))
        if self.manual is None or any([a not in self.manual.shape for a in axes]):
            raise NotImplementedError(f"collective: the axis {names} is not an axis of an enclosing vmap or mesh.")
        order = [self.manual.axis_names.index(a) for a in axes]
        rest = [a for a in range(len(self.manual.axis_names)) if a not in order]
        numbers = np.arange(self.manual.size).reshape(self.manual.devices.shape)
        return numbers.transpose(rest + order).reshape(-1, prod([self.manual.shape[a] for a in axes]))

    def channel(self) -> str:
        self.module.channels += 1
        return f"#stablehlo.channel_handle<handle = {self.module.channels}, type = 1>"

    def constrain(self, x: Value, sharding: NamedSharding) -> Value:
        attributes = {"sharding": self.module.sharding(sharding, x.type)}
        return self.emit("sdy.sharding_constraint", (x,), (x.type,), attributes)

    def call_portable(self, data: bytes, name: str, operands: Sequence[Value], types: Sequence[ArrayType]) -> Any:
        symbol = self.module.portable_function(data, name)
        attributes = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
        out = self.emit("func.call", operands, types, attributes)
        return (out,) if len(types) == 1 else out

    def inline(self, program: Program, operands: Sequence[Value]) -> list[Value]:
        return lower(self, program, operands)  # type: ignore[arg-type]

    def custom_call(
        self,
        target: str,
        operands: Sequence[Value],
        types: Sequence[ArrayType],
        config: dict[str, Any],
        operand_layouts: Sequence[Sequence[int]] | None = None,
        result_layouts: Sequence[Sequence[int]] | None = None,
        has_side_effect: bool = False,
    ) -> Any:
        attributes: dict[str, Any] = {
            "call_target_name": target,
            "api_version": I32(4),
            "backend_config": config,
            "has_side_effect": has_side_effect,
        }
        if operand_layouts is not None and result_layouts is not None:
            attributes["operand_layouts"] = _layouts(operand_layouts)
            attributes["result_layouts"] = _layouts(result_layouts)
        if target.startswith("lapack_"):
            self.module.uses.add("lapack")
        return self.emit("stablehlo.custom_call", operands, types, attributes)

    def callback(self, function: Any, operands: Sequence[Value], types: Sequence[ArrayType], effect: bool) -> Any:
        if self.platform != "cpu":
            raise NotImplementedError(
                f"callback: compiled code on {self.platform} cannot call Python yet; it can on cpu."
            )
        index = len(self.module.callbacks)
        config = {"index": U64(index)}
        if not effect:
            self.module.callbacks.append(function)
            out = self.custom_call("xla_ffi_python_cpu_callback", operands, types, config)
            return (out,) if len(types) == 1 else out
        self.module.callbacks.append(lambda _, *arrays: (*function(*arrays), _ZERO))
        *out, self.token = _as_tuple(
            self.custom_call(
                "xla_ffi_python_cpu_callback", [self.waited(), *operands], [*types, TOKEN], config, has_side_effect=True
            )
        )
        return tuple(out)

    def waited(self) -> Value:
        """The token of all effects so far, a number that the next callback takes to run after them."""
        return self.token or self.constant(0, TOKEN)


TOKEN = ArrayType((), np.dtype("uint32"))
_ZERO = np.zeros((), np.uint32)


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if type(x) is tuple else (x,)


class _Quiet(BlockBuilder):
    """A builder of the same block that keeps the source location of the op being lowered."""

    __slots__ = ()

    def __init__(self, outer: BlockBuilder, location: Any) -> None:
        super().__init__(outer.module, outer.platform, outer.scope, outer.ip)
        self.constants, self.is_nested = outer.constants, outer.is_nested
        self.manual, self.places = outer.manual, outer.places
        self.location = location

    def at(self, source: Source | None, name: str) -> None:
        pass


def _layouts(layouts: Sequence[Sequence[int]]) -> Any:
    arrays = [np.asarray(v, np.int64) for v in layouts]
    index = ir.IndexType.get()
    return ir.ArrayAttr.get([ir.DenseIntElementsAttr.get(a, type=index) for a in arrays])  # pyright: ignore[reportCallIssue, reportArgumentType]


def build(
    program: Program, platform: str, donated: Sequence[int | None] = (), has_calls: bool = True, spread: Any = None,
    manual: Mesh | None = None,
) -> Module:  # fmt: skip
    """The module of a program; `donated[i]` is the output that may reuse the buffer of input i, or None.

    With `manual`, each device of that mesh runs the program on its shards.
    """
    # The module must depend only on the program, because processes with other settings share disk cache entries.
    with lock, context, UNKNOWN, settings.override(narrow=False):
        module = Module(program.name)
        module.has_calls = has_calls
        module.has_powers = contains(program, "pow")
        attributes: list[dict[str, Any]] = [{} if d is None else {"tf.aliasing_output": I32(d)} for d in donated]
        results: list[dict[str, Any]] = []
        if spread is not None:
            module.is_spread = spread.mesh.size > 1
            gone = [*[d is not None for d in donated], *([False] * (len(spread.ins) - len(donated)))]
            attributes = [
                {"sdy.sharding": module.sharding(s, t), **({"jax.buffer_donor": True} if g else {})}
                for s, t, g in zip(spread.ins, program.input_types, gone, strict=True)
            ]
            results = [
                {} if s is None else {"sdy.sharding": module.sharding(s, t)}
                for s, t in zip(spread.outs, program.output_types, strict=True)
            ]
        module.emit_function("main", program, platform, "public", attributes, results, manual=manual)
    return module


def computation(module: Module) -> Any:
    """The module as an unoptimized XLA computation."""
    text = module.module.operation.get_asm(enable_debug_info=True)
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)


def module_text(module: Module, debug_info: bool = False) -> str:
    """The module as text."""
    with context:
        return module.module.operation.get_asm(enable_debug_info=debug_info)  # pyright: ignore[reportReturnType]


def to_portable(module: Module) -> bytes:
    """The module in StableHLO's portable, versioned format."""
    version = _stablehlo.get_version_from_compatibility_requirement(
        _stablehlo.StablehloCompatibilityRequirement.WEEK_12
    )
    with context:
        return _jax.mlir.serialize_portable_artifact(module.module, version)
