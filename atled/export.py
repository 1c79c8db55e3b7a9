"""Exported functions: traced once, stored as versioned StableHLO, callable in other processes without their source.

A file has a magic line, a checksum, a JSON header (names, types, pytree structures), closed-over arrays, and the
module. The checksum is verified before the header is parsed, and nothing is unpickled.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, tree
from atled.core.array import type_of
from atled.core.op import Op
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.engine import client
from atled.engine.array import as_array

__all__ = [
    "DisabledSafetyCheck", "Exported", "default_export_platform", "deserialize", "export",
    "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization", "register_pytree_node_serialization",
]  # fmt: skip
__dir__ = __all__.copy
_MAGIC = b"atled.export.1\n"  # the first bytes of files
minimum_supported_calling_convention_version = maximum_supported_calling_convention_version = 1
_CUSTOM_CALL = re.compile(r'custom_call @(?:"([^"]*)"|([\w$.-]+))')


class DisabledSafetyCheck:
    """A safety check that `export` should not make, such as the check for calls of `ffi` functions.

    >>> DisabledSafetyCheck.custom_call("rms").is_custom_call()
    'rms'
    """

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The check of the platform; it has no effect, because loading does not check the platform."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The check for calls of a custom call target; the process that runs the function must have registered it."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the custom call target, or None for other checks."""
        return self._impl.partition(":")[2] or None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)

    def __repr__(self) -> str:
        return self._impl


class CallExported(Op):
    """Calls an exported function."""

    gives_tuple = True
    data: bytes
    function: str
    inputs: tuple[ArrayType, ...]
    outputs: tuple[ArrayType, ...]
    captured: int = 0  # number of inputs that are closed-over arrays

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """The types of the results; raises unless the operands have the types that the function was exported for."""
        if [t.strong() for t in types] != [t.strong() for t in self.inputs]:
            wanted, got = list(self.inputs)[self.captured :], list(types)[self.captured :]
            raise TypeError(
                f"{self.function}: exported for {wanted}; got {got}."
                "\n  try: pad the arguments to these shapes, or export the function once for each shape."
            )
        return self.outputs

    def lower(self, build: Any, *operands: Any) -> Any:
        """Emit a call of the exported module."""
        return build.call_portable(self.data, self.function, operands, self.outputs)

    def __repr__(self) -> str:
        return f"call_exported[{self.function}]"


class Exported:
    """An exported function: callable, also under `jit`, and serializable with `serialize`.

    >>> import atled, atled.numpy as jnp
    >>> double = export(atled.jit(lambda x: 2 * x))(jnp.ones(3))
    >>> double.call(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """

    def __init__(
        self, name: str, data: bytes, captured: Sequence[np.ndarray], inputs: Sequence[ArrayType],
        outputs: Sequence[ArrayType], in_structure: tree.TreeDef, out_structure: tree.TreeDef,
    ) -> None:  # fmt: skip
        self.name, self.data, self.captured = name, data, list(captured)
        self.in_types, self.out_types = tuple(inputs), tuple(outputs)
        self.in_structure, self.out_structure = in_structure, out_structure

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the exported function with arguments of the structure and types that it was exported for."""
        leaves, structure = tree.flatten((args, kwargs))
        if structure != self.in_structure:
            raise TypeError(f"{self.name}: exported for arguments {self.in_structure}; got {structure}.")
        types = tuple([type_of(x) for x in self.captured]) + self.in_types
        op = CallExported(self.data, self.name, types, self.out_types, len(self.captured))
        return self.out_structure.unflatten(bind(op, *[as_array(x) for x in self.captured], *leaves))

    def serialize(self) -> bytes:
        """The exported function as bytes, for `deserialize`."""
        header = {
            "name": self.name,
            "inputs": [_type_to_json(t) for t in self.in_types],
            "outputs": [_type_to_json(t) for t in self.out_types],
            "captured": [_type_to_json(type_of(x)) for x in self.captured],
            "in": _tree_to_json(self.in_structure),
            "out": _tree_to_json(self.out_structure),
            "module": len(self.data),
        }
        text = json.dumps(header).encode()
        payload = struct.pack("<Q", len(text)) + text + b"".join([x.tobytes() for x in self.captured]) + self.data
        return _MAGIC + hashlib.sha256(payload).digest() + payload


def export(
    fun_jit: Callable[..., Any], *, platforms: Sequence[str] | None = None, disabled_checks: Sequence[Any] = ()
) -> Callable[..., Exported]:
    """A function that traces `fun_jit` for its arguments, and returns an `Exported`.

    `fun_jit` must be made by `jit`. The function is exported for the current platform; `platforms` may not name others.
    Shapes are static; symbolic sizes, such as a batch size that is chosen later, are not supported. Export the function
    once for each size, or pad. Arrays that the function closes over are stored with it, and so is a model, or the model
    of a method. Calls of functions that are registered with `ffi` are an error, unless `disabled_checks` has a
    `DisabledSafetyCheck` for them.

    >>> import atled, atled.numpy as jnp
    >>> saved = export(atled.jit(jnp.sin))(jnp.zeros(2)).serialize()
    >>> deserialize(saved).call(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    if platforms is not None and tuple(platforms) != (default_export_platform(),):
        raise NotImplementedError(
            f"export: platforms must be [{default_export_platform()!r}], the current platform; got {list(platforms)}."
        )
    if not hasattr(fun_jit, "trace"):
        raise TypeError("export: a function made by jit is needed; write export(jit(f))(...).")

    def make(*args: Any, **kwargs: Any) -> Exported:
        from atled.engine import stablehlo  # loads MLIR

        traced = fun_jit.trace(*args, **kwargs)  # type: ignore[attr-defined]
        trace = traced._traced
        module = stablehlo.build(trace.program, client.default_backend(), has_calls=False)
        if module.callbacks:
            raise TypeError(f"export: {trace.name} has a callback to Python, which cannot be exported.")
        if module.uses:
            raise NotImplementedError(
                f"export: {trace.name} uses {', '.join(sorted(module.uses))}, which other processes cannot run."
            )
        allowed = {c.is_custom_call() for c in disabled_checks}
        text = stablehlo.module_text(module)
        foreign = sorted({a or b for a, b in _CUSTOM_CALL.findall(text)} - allowed)
        if foreign:
            raise ValueError(
                f"export: {trace.name} calls {', '.join(foreign)}, which another process may define differently."
                f"\n  try: disabled_checks=[DisabledSafetyCheck.custom_call({foreign[0]!r})]."
            )
        captured, structure = list(trace.captured), trace.in_structure
        owner = getattr(fun_jit, "owner", None)
        if owner is not None:  # a model: the first argument becomes data of the file
            captured += tree.leaves(owner)
            positional, by_name = structure.children
            structure = tree._structure(tuple, None, (tree._structure(tuple, None, positional.children[1:]), by_name))
        return Exported(
            trace.name, stablehlo.to_portable(module), [np.asarray(x) for x in captured],
            trace.program.input_types[len(captured) :], trace.program.output_types, structure, trace.out_structure,
        )  # fmt: skip

    return make


def deserialize(blob: bytes | bytearray) -> Exported:
    """Load an exported function from the bytes of `serialize`; raises if the checksum does not match.

    >>> import atled, atled.numpy as jnp
    >>> blob = export(atled.jit(lambda x: 2 * x))(jnp.ones(3)).serialize()
    >>> deserialize(blob).call(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    blob = bytes(blob)
    start = len(_MAGIC) + 32
    if blob[: len(_MAGIC)] != _MAGIC:
        raise ValueError("export: these bytes are not an exported function.")
    payload = blob[start:]
    if hashlib.sha256(payload).digest() != blob[len(_MAGIC) : start]:
        raise ValueError("export: the exported function is damaged: its checksum does not match.")
    (length,) = struct.unpack_from("<Q", payload)
    header = json.loads(payload[8 : 8 + length])
    at, captured = 8 + length, []
    for t in map(_type_from_json, header["captured"]):
        size = t.size * t.dtype.itemsize
        captured.append(np.frombuffer(payload[at : at + size], t.dtype).reshape(t.shape))
        at += size
    data = payload[at : at + header["module"]]
    inputs, outputs = ([_type_from_json(t) for t in header[k]] for k in ("inputs", "outputs"))
    structures = (_tree_from_json(header[k]) for k in ("in", "out"))
    return Exported(header["name"], data, captured, inputs, outputs, *structures)


# class -> its name in files, and the function that writes its static data
_written: dict[type, tuple[str, Callable[[Any], bytes]]] = {}
_read: dict[str, Callable[[bytes, Any], tree.TreeDef]] = {}  # name in files -> function that reads a node


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type:
    """Register how a pytree node class is serialized: under a name, with its static data as bytes.

    `from_children` makes a node from static data and children; the default is the function that the class was
    registered with as a pytree node.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> import atled, atled.numpy as jnp
    >>> atled.tree.register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    >>> _ = register_pytree_node_serialization(
    ...     Pair, serialized_name="pair", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None)
    >>> saved = export(atled.jit(lambda p: p.a + p.b))(Pair(jnp.ones(2), jnp.ones(2))).serialize()
    >>> deserialize(saved).call(Pair(jnp.ones(2), jnp.ones(2)))
    Array([2., 2.], dtype=float32)
    """
    if nodetype in _written or serialized_name in _read:
        raise ValueError(f"export: {nodetype.__name__} or the name {serialized_name!r} is already registered.")

    def read(data: bytes, children: Any) -> tree.TreeDef:
        meta = deserialize_auxdata(data)
        if from_children is None:
            return tree._structure(nodetype, meta, tuple(children))
        node = from_children(meta, [object() for _ in children])
        return tree._structure(nodetype, tree.structure(node).meta, tuple(children))

    _written[nodetype], _read[serialized_name] = (serialized_name, serialize_auxdata), read
    return nodetype


def register_namedtuple_serialization(nodetype: Any, *, serialized_name: str) -> Any:
    """Register a namedtuple class for serialization, under a name.

    >>> import collections
    >>> Point = collections.namedtuple("Point", ["x", "y"])
    >>> register_namedtuple_serialization(Point, serialized_name="point") is Point
    True
    """
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"export: a namedtuple is needed; got {nodetype.__name__}.")
    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(nodetype._fields).encode(),  # type: ignore[attr-defined]
        deserialize_auxdata=json.loads,
        from_children=lambda names, children: nodetype(**dict(zip(names, children, strict=True))),
    )


def default_export_platform() -> str:
    """The platform that functions are exported for: `cpu`, `cuda`, `rocm` or `tpu`.

    >>> default_export_platform() == "cpu" or client.default_backend() != "cpu"
    True
    """
    backend = client.default_backend()
    is_rocm = "rocm" in str(client.devices()[0].client.platform_version).lower()
    return ("rocm" if is_rocm else "cuda") if backend == "gpu" else backend


def _type_to_json(t: ArrayType) -> Any:
    if t.kind == "k":
        raise NotImplementedError("export: random keys cannot be arguments or results; pass random.key_data(key).")
    return [list(t.shape), t.dtype.name, t.weak]


def _type_from_json(item: Any) -> ArrayType:
    dims, dtype, weak = item
    return ArrayType(tuple(dims), dtypes.canonical(dtype), bool(weak))


def _tree_to_json(s: tree.TreeDef) -> Any:
    if s.kind is None:
        return "*"
    children = [_tree_to_json(c) for c in s.children]
    if s.kind in (tuple, list, type(None)):
        return [s.kind.__name__, children]
    if s.kind in _written:
        name, write = _written[s.kind]
        return ["registered", children, name, base64.b64encode(write(s.meta)).decode()]
    if s.kind is dict and all(type(k) in (str, int, bool) for k in s.meta):
        return ["dict", children, list(s.meta)]
    raise NotImplementedError(
        f"export: trees of dicts, lists, tuples and None can be exported; got a {s.kind.__name__}."
        "\n  try: export(jit(model)), which stores the model with the function; for other classes "
        "register_pytree_node_serialization or register_namedtuple_serialization, which define its serialization."
    )


def _tree_from_json(item: Any) -> tree.TreeDef:
    if item == "*":
        return tree.LEAF
    kind, children = item[0], tuple([_tree_from_json(c) for c in item[1]])
    if kind == "registered":
        if item[2] not in _read:
            raise ValueError(f"export: a node of the tree was registered as {item[2]!r}, which is not registered here.")
        return _read[item[2]](base64.b64decode(item[3]), children)
    kinds = {"tuple": tuple, "list": list, "NoneType": type(None), "dict": dict}
    return tree._structure(kinds[kind], tuple(item[2]) if kind == "dict" else None, children)
