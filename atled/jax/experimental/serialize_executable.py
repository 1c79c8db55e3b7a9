"""Compiled functions as bytes, with the API of `jax.experimental.serialize_executable`.

The bytes are machine code for this kind of machine and this version of jaxlib, with a description in Python's `pickle`
format: load only files that you trust. `export` writes functions for other machines.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.compiler.fingerprint import NotPortable, digest
from atled.core import dtypes
from atled.core.op import Op
from atled.core.program import Equation, Program, Var
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec
from atled.core.types import ArrayType
from atled.engine import client, compilation, compile_options, disk_cache, executable, placement, program_cache
from atled.engine.executable import Executable
from atled.engine.placement import MeshPlacement
from atled.staging.aot import Compiled, Traced, TracedFunction
from atled.staging.jit_signature import Arguments, Options, Signature

__all__ = ["deserialize_and_load", "serialize"]
__dir__ = __all__.copy
_MAGIC = b"atled.executable.1\n"


class LoadedProgram(Op):
    """Placeholder op for a program that exists only as compiled code."""

    gives_tuple = True
    types: tuple[Any, ...]

    def result_type(self, *types: Any) -> tuple[Any, ...]:
        return self.types


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled function as bytes, and the tree structures of its arguments and results, for `deserialize_and_load`.

    >>> import atled, atled.numpy as jnp
    >>> saved, ins, outs = serialize(atled.jit(jnp.sin).lower(jnp.zeros(2)).compile())
    >>> deserialize_and_load(saved, ins, outs)(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    ready, traced = compiled._executable, compiled._traced._traced
    if not isinstance(ready, Executable):
        raise ValueError(
            f"serialize: {traced.name} is compiled for {ready.topology.name}, but no such device is attached."
        )
    try:
        digest(ready.program)
    except NotPortable as error:
        raise ValueError(f"serialize: {traced.name} holds {error}, which is only valid in this process.") from None
    if traced.captured:
        raise NotImplementedError(
            f"serialize: {traced.name} closes over {len(traced.captured)} arrays, which are not part of the "
            f"compiled code."
            "\n  try: pass them as arguments."
        )
    if compiled._traced._call.statics:
        raise NotImplementedError(f"serialize: {traced.name} has static arguments.\n  try: functools.partial.")
    left = traced.run(compiled._traced._signature.options.keeps_unused)[1]
    module = compilation.lowered(ready.program, ready.where, ready.donated)
    description = {
        "name": traced.name,
        "machine": _machine(ready.where),
        "inputs": [_said(t) for t in traced.program.input_types],
        "outputs": [_said(t) for t in traced.program.output_types],
        "left": left,
        "donated": ready.donated,
        "where": _place(ready.where),
        "committed": bool(ready.placed and ready.placed[0].committed),
        "uses": sorted(module.uses),
    }
    head = pickle.dumps(description)
    # The engine cannot serialize an executable loaded from the disk cache, because it does not keep the code; so
    # compile the program again.
    fresh = executable.compiled_anew(ready.program, ready.where, description["committed"], ready.donated, module)
    payload = struct.pack("<Q", len(head)) + head + fresh.raw.serialize()
    return _MAGIC + hashlib.sha256(payload).digest() + payload, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """The compiled function from the results of `serialize`, by default on the devices with the same ids.

    Args:
        serialized: the bytes that `serialize` returned.
        in_tree: the tree structure of the arguments.
        out_tree: the tree structure of the results.
        backend: the platform, or a client; by default, the platform of the compiled code.
        execution_devices: the devices to run on, as many as the code was compiled for.

    >>> import atled
    >>> compiled = atled.jit(lambda x: x + 1).lower(1.0).compile()
    >>> deserialize_and_load(*serialize(compiled))(2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    start = len(_MAGIC) + 32
    if (
        serialized[: len(_MAGIC)] != _MAGIC
        or hashlib.sha256(serialized[start:]).digest() != serialized[start - 32 : start]
    ):
        raise ValueError("deserialize_and_load: these bytes are not from serialize, or they are damaged.")
    (length,) = struct.unpack_from("<Q", serialized, start)
    header = pickle.loads(serialized[start + 8 : start + 8 + length])
    where = _place_again(header["where"], _devices(backend, header["machine"][1]), execution_devices)
    if header["machine"] != _machine(where):
        raise ValueError(
            f"deserialize_and_load: {header['name']} was compiled for {_shown(header['machine'])}; this is "
            f"{_shown(_machine(where))}."
        )
    program, inner = _program(header)
    settings = compile_options.options(inner, where) if execution_devices is not None else None
    raw = program_cache.revived({"uses": header["uses"]}, serialized[start + 8 + length :], where, settings)
    traced = Traced(program, [], in_tree, out_tree, header["name"], [])
    signature = Signature(lambda: _anything, header["name"], Options())
    args, kwargs = in_tree.unflatten(list(program.input_types))
    function = TracedFunction(traced, Arguments(signature, args, kwargs), signature)
    return Compiled(Executable(raw, inner, where, header["committed"], header["donated"]), function)


def _anything(*args: Any, **kwargs: Any) -> None:
    """Placeholder for the Python function of a loaded program: accepts any arguments."""


def _program(said: dict[str, Any]) -> tuple[Program, Program]:
    """The program of a loaded function, and the program that was compiled, without unused inputs."""
    kinds = [
        [ArrayType(n, dtypes.key_dtype if d is None else d, w) for n, d, w in said[name]]
        for name in ("inputs", "outputs")
    ]
    inputs, outputs = ([Var(t) for t in types] for types in kinds)
    taken = [inputs[i] for i in said["left"]]
    equation = Equation(LoadedProgram(tuple(kinds[1])), tuple(taken), tuple(outputs), None)
    return tuple([Program(given, [equation], outputs, said["name"]) for given in (inputs, taken)])  # type: ignore[return-value]


def _said(t: ArrayType) -> tuple[Any, ...]:
    """A type as a picklable tuple; the key dtype, a singleton, becomes None."""
    return t.shape, None if t.kind == "k" else t.dtype, t.weak


def _machine(where: Any) -> list[str]:
    return disk_cache.runtime(placement.devices_of(where)[0])


def _shown(machine: Sequence[str]) -> str:
    return f"jaxlib {machine[0]} on {machine[1]} ({machine[2]})"


def _place(where: Any) -> Any:
    """The placement of a program, as picklable data with device ids."""
    if not isinstance(where, MeshPlacement):
        return where.id
    mesh = where.mesh
    devices = [d.id for d in mesh.flat]
    return (
        devices,
        mesh.devices.shape,
        mesh.axis_names,
        [[s.spec for s in x if s is not None] for x in (where.ins, where.outs)],
    )


def _devices(backend: Any, platform: str) -> list[Any]:
    return client.devices(backend or platform) if backend is None or isinstance(backend, str) else backend.devices()


def _place_again(said: Any, there: Sequence[Any], chosen: Sequence[Any] | None) -> Any:
    numbers = [said] if isinstance(said, int) else said[0]
    if chosen is None:
        by_number = {d.id: d for d in there}
        gone = [n for n in numbers if n not in by_number]
        if gone:
            raise ValueError(f"deserialize_and_load: code compiled for devices {numbers}; {gone} are not available.")
        devices = [by_number[n] for n in numbers]
    elif len(chosen) != len(numbers):
        raise ValueError(f"deserialize_and_load: code compiled for {len(numbers)} devices; got {len(chosen)}.")
    else:
        devices = list(chosen)
    if isinstance(said, int):
        return devices[0]
    _, shape, names, specs = said
    mesh = Mesh(np.asarray(devices, object).reshape(shape), names)
    ins, outs = (tuple([NamedSharding(mesh, PartitionSpec(*s)) for s in part]) for part in specs)
    return MeshPlacement(mesh, ins, outs)
