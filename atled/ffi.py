"""Foreign functions (FFI) in compiled programs, with the API of `jax.ffi`.

Compile a function against the headers in `include_dir()`, register it under a name, and call it by this name:

    library = ctypes.CDLL("./rms.so")
    ffi.register_ffi_target("rms", ffi.pycapsule(library.Rms))
    y = ffi.ffi_call("rms", atled.ShapeDtypeStruct(x.shape, x.dtype))(x, eps=np.float32(1e-5))

Names are valid in one process only, so programs with such calls are not cached on disk.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import errors
from atled.core.array import type_of
from atled.core.list_partition import kept
from atled.core.op import Op
from atled.core.sharding import physical
from atled.core.trace import bind
from atled.core.types import ArrayType, Zero
from atled.engine import ffi_targets, mlir_attributes
from atled.higher_order.scan import scan
from atled.ops import shape
from atled.ops.callback import METHODS

__all__ = [
    "ffi_call", "include_dir", "pycapsule", "register_ffi_target",
    "register_ffi_target_as_batch_partitionable", "register_ffi_type", "register_ffi_type_id",
]  # fmt: skip
__dir__ = __all__.copy

include_dir = ffi_targets.include_dir


def pycapsule(funcptr: Any) -> Any:
    """A function of a library loaded by `ctypes`, as a PyCapsule for `register_ffi_target`.

    >>> import ctypes
    >>> type(pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    no_destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, no_destructor)
    return make(funcptr, None, no_destructor(0))


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Register a function under the name that `ffi_call` takes.

    `fn` is a capsule, or a dictionary of capsules by stage: `instantiate`, `prepare`, `initialize`, `execute`. A name
    cannot be registered again with another function.

    >>> import atled, numpy as np
    >>> from jaxlib.cpu import _lapack  # has compiled functions
    >>> _lapack.initialize()
    >>> register_ffi_target("my_cholesky", _lapack.registrations()["lapack_spotrf_ffi"])
    >>> results = (atled.ShapeDtypeStruct((1, 1), "float32"), atled.ShapeDtypeStruct((), "int32"))
    >>> ffi_call("my_cholesky", results)(np.float32([[9]]), uplo=np.uint8(ord("L")))
    (Array([[3.]], dtype=float32), Array(0, dtype=int32))
    """
    _only_cpu("register_ffi_target", platform)
    ffi_targets.register_target(name, fn, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register a C++ type for state that functions keep between calls.

    `type_registration` is a dict of capsules with pointers: `type_id` to the type's id, `type_info` to its description.

    >>> number, info = ctypes.c_int64(0), (ctypes.c_void_p * 4)()  # here, a type without functions
    >>> where = {"type_id": pycapsule(ctypes.addressof(number)), "type_info": pycapsule(ctypes.addressof(info))}
    >>> register_ffi_type("my_state", where)
    >>> number.value > 0  # the engine has given it a number
    True
    """
    _only_cpu("register_ffi_type", platform)
    ffi_targets.register_type(name, type_registration)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Raise ValueError: the engine no longer supports this old form of `register_ffi_type`.

    >>> try:
    ...     register_ffi_type_id("state", 1)
    ... except ValueError as error:
    ...     print(error)
    register_ffi_type_id: the engine needs more than a number of a type.
      try: register_ffi_type('state', {'type_id': ..., 'type_info': ...}, 'cpu').
    """
    raise ValueError(
        "register_ffi_type_id: the engine needs more than a number of a type."
        f"\n  try: register_ffi_type({name!r}, {{'type_id': ..., 'type_info': ...}}, {platform!r})."
    )


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declare that a function is batched over leading axes, so each device may call it for its shard of a batch.

    The batch axes are those that `vmap` adds to all arguments, as with `vmap_method="broadcast_all"`.

    >>> import atled, atled.numpy as jnp
    >>> register_ffi_target_as_batch_partitionable("normalize")
    >>> call = ffi_call("normalize", atled.ShapeDtypeStruct((3,), "float32"), vmap_method="broadcast_all")
    >>> atled.eval_shape(atled.vmap(call), jnp.ones((8, 3)))  # each device may get some of the 8 rows
    ShapeDtypeStruct(shape=(8, 3), dtype=float32)
    """
    ffi_targets.register_batched(name)


def _only_cpu(where: str, platform: str) -> None:
    if platform not in ("cpu", "Host"):
        raise NotImplementedError(f"{where}: foreign functions run on cpu; got {platform!r}.")


# -- calls ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Target:
    """The target and options of a call, without a fingerprint, because the name is valid in this process only."""

    name: str
    has_side_effect: bool
    api_version: int
    config: str | None
    attributes: dict[str, Any]
    aliases: tuple[tuple[int, int], ...]
    vmap_method: str | None


class FfiCall(Op):
    """Calls a registered function; layouts list axes from minor (fastest) to major (slowest)."""

    gives_tuple = True
    target: _Target
    types: tuple[ArrayType, ...]
    input_layouts: tuple[tuple[int, ...], ...]
    output_layouts: tuple[tuple[int, ...], ...]
    batch_axes: int = 0  # number of leading batch axes of all operands and results

    @property
    def has_effect(self) -> bool:  # type: ignore[override]
        return self.target.has_side_effect

    def result_type(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        for t in types:
            if t.kind == "k":
                raise TypeError(f"ffi_call: random keys are not supported; got {t}.\n  try: random.key_data(key).")
        return self.types

    def lower(self, build: Any, *operands: Any) -> Any:
        if build.platform != "cpu":
            raise NotImplementedError(f"ffi_call: foreign functions run on cpu; got {build.platform!r}.")
        target, given = self.target, [v.type.shape for v in operands]
        splits = ffi_targets.batch_attributes(target.name, self.batch_axes, given, [t.shape for t in self.types])
        types = [v.type for v in operands]

        def emit(*values: Any) -> list[Any]:
            config: Any = target.config
            if target.api_version >= 4:
                config = {k: ffi_targets.attribute(v) for k, v in target.attributes.items()}
            elif target.attributes:
                raise ValueError(
                    f"ffi_call: attributes need at least api_version 4; got {target.api_version} and "
                    f"{list(target.attributes)}."
                )
            call = ffi_targets.custom_call(
                target.name, operands=values, result_types=[mlir_attributes.module_type(t) for t in self.types],
                has_side_effect=target.has_side_effect, operand_layouts=minor_to_major(types, self.input_layouts),
                result_layouts=minor_to_major(self.types, self.output_layouts),
                operand_output_aliases=dict(target.aliases), api_version=target.api_version, backend_config=config,
                extra_attributes=splits,
            )  # fmt: skip
            return list(call.results)

        results = build.foreign(emit, operands, self.types)
        return tuple(results)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if any([t.tangent().kind != "0" for t in self.types]):
            raise ValueError(
                f"ffi_call: the derivative of {self.target.name!r}, a registered function, is not known."
                "\n  try: wrap the call in a function with custom_jvp or custom_vjp, or stop_gradient its arguments."
            )
        return bind(self, *primals), tuple([Zero(t.tangent()) for t in self.types])

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        size = next(type_of(x).shape[0] for x, b in zip(operands, batched, strict=True) if b)
        method = self.target.vmap_method
        if method is None:
            raise NotImplementedError(
                f"ffi_call: vmap must be told how {self.target.name!r} takes a batch."
                "\n  try: ffi_call(..., vmap_method='sequential') to call it for each example, or 'expand_dims' or"
                "\n  'broadcast_all' if it works on arrays with one more leading axis."
            )
        if method.startswith("sequential"):
            return self._one_by_one(batched, operands, method == "sequential_unrolled")
        is_first = [b or method != "legacy_vectorized" for b in batched]
        new = size if method == "broadcast_all" else 1
        given = [shape.add_axis(x, new) if f and not b else x for x, b, f in zip(operands, batched, is_first)]
        types = tuple([ArrayType((size, *t.shape), t.dtype) for t in self.types])
        ins = [_behind(order) if f else order for order, f in zip(self.input_layouts, is_first, strict=True)]
        outs = [_behind(order) for order in self.output_layouts]
        axes = self.batch_axes + 1 if method == "broadcast_all" or all(batched) else 0
        return bind(FfiCall(self.target, types, tuple(ins), tuple(outs), axes), *given)

    def _one_by_one(self, batched: tuple[bool, ...], operands: Sequence[Any], unroll: bool) -> Any:
        def step(_: Any, rows: Any) -> Any:
            row = iter(rows)
            return (), bind(self, *[next(row) if b else x for x, b in zip(operands, batched, strict=True)])

        return scan(step, (), kept(batched, operands), unroll=unroll)[1]


def _behind(order: Sequence[int]) -> tuple[int, ...]:
    """The layout of an array with a new first axis, as the major axis."""
    return (*[axis + 1 for axis in order], 0)


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a registered function with arrays, and with its keyword arguments as attributes.

    `result_shape_dtypes` is a `ShapeDtypeStruct`, or a sequence of them for several results. A call has no derivative.
    `vmap_method` selects the batching rule: `"sequential"` makes one call per example, `"expand_dims"` and
    `"broadcast_all"` one call with one more leading axis. Layouts list axes from major (slowest) to minor; arguments
    are converted to them. `input_output_aliases` maps arguments to results that may reuse their buffers; the compiler
    passes a copy of an argument that is still needed.

    >>> import atled, numpy as np
    >>> from jaxlib.cpu import _lapack  # has compiled functions
    >>> _lapack.initialize()
    >>> register_ffi_target("my_factor", _lapack.registrations()["lapack_spotrf_ffi"])
    >>> results = (atled.ShapeDtypeStruct((1, 1), "float32"), atled.ShapeDtypeStruct((), "int32"))
    >>> factor = atled.jit(lambda x: ffi_call("my_factor", results)(x, uplo=np.uint8(ord("L")))[0])
    >>> factor(np.float32([[9]]))
    Array([[3.]], dtype=float32)
    """
    try:
        return _caller(
            target_name, result_shape_dtypes, has_side_effect, vmap_method, input_layouts, output_layouts,
            input_output_aliases or {}, custom_call_api_version, legacy_backend_config,
        )  # fmt: skip
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _caller(
    name: str, results: Any, has_side_effect: bool, method: str | None, input_layouts: Any, output_layouts: Any,
    aliases: dict[int, int], api_version: int, config: str | None,
) -> Callable[..., Any]:  # fmt: skip
    if method is not None and method not in METHODS:
        raise ValueError(f"ffi_call: vmap_method is one of {', '.join(METHODS)}; got {method!r}.")
    if api_version >= 4 and config is not None:
        raise ValueError(f"ffi_call: legacy_backend_config needs custom_call_api_version < 4; got {api_version}.")
    several = isinstance(results, Sequence)
    specs = list(results) if several else [results]
    for i, r in enumerate(specs):
        if not hasattr(r, "shape") or not hasattr(r, "dtype"):
            raise ValueError(f"ffi_call: result {i} needs a shape and a dtype, as a ShapeDtypeStruct has; got {r!r}.")
    types = tuple([ArrayType(tuple(r.shape), r.dtype) for r in specs])
    outs = _orders("outputs", types, output_layouts if several or output_layouts is None else [output_layouts])

    def call(*args: Any, **attributes: Any) -> Any:
        try:
            given = [type_of(x) for x in args]
            ins = _orders("arguments", given, input_layouts)
            pairs = tuple(sorted([(int(i), int(o)) for i, o in aliases.items()]))
            _check_aliases(pairs, given, types, ins, outs)
            constants = {k: _kept(k, v) for k, v in sorted(attributes.items())}
            target = _Target(name, bool(has_side_effect), api_version, config, constants, pairs, method)
            out = bind(FfiCall(target, types, ins, outs), *args)
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904
        return out[0] if not several else tuple(out) if isinstance(results, tuple) else list(out)

    return call


def _kept(name: str, value: Any) -> Any:
    """The value of an attribute, with arrays copied; raises TypeError if its type is not supported."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    if isinstance(value, dict):
        return {k: _kept(k, v) for k, v in value.items()}
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"ffi_call: the attribute {name} must be a number, a string, an array, a dict or a tuple; got {value!r}."
        ) from None
    return value


def _orders(what: str, types: Sequence[ArrayType], layouts: Any) -> tuple[tuple[int, ...], ...]:
    layouts = [None] * len(types) if layouts is None else list(layouts)
    if len(layouts) != len(types):
        raise ValueError(f"ffi_call: there must be one layout for each of {len(types)} {what}; got {len(layouts)}.")
    orders = [_order(t, getattr(x, "major_to_minor", x), getattr(x, "tiling", None)) for t, x in zip(types, layouts)]
    return tuple([order[::-1] for order in orders])


def _order(t: ArrayType, layout: Any, tiling: Any) -> tuple[int, ...]:
    """The axes of an array from major (slowest) to minor, by default in order."""
    axes = tuple(range(t.ndim)) if layout is None else tuple(layout)
    if sorted(axes) != list(range(t.ndim)) or tiling is not None:
        raise ValueError(f"ffi_call: the layout of {t} must name each axis once, without tiles; got {layout!r}.")
    return axes


def _check_aliases(
    pairs: Sequence[tuple[int, int]], given: Sequence[ArrayType], types: Sequence[ArrayType], ins: Any, outs: Any
) -> None:
    for i, o in pairs:
        if not 0 <= i < len(given) or not 0 <= o < len(types):
            raise ValueError(
                f"ffi_call: input_output_aliases names argument {i} and output {o}; there are {len(given)} and "
                f"{len(types)}."
            )
        if (given[i].shape, given[i].dtype) != (types[o].shape, types[o].dtype) or ins[i] != outs[o]:
            raise ValueError(
                f"ffi_call: input_output_aliases needs equal types and layouts; argument {i} is {given[i]} and output "
                f"{o} is {types[o]}, with axes {ins[i][::-1]} and {outs[o][::-1]} from the slowest to the fastest."
            )


def minor_to_major(types: Sequence[Any], layouts: Sequence[Any] | None) -> list[tuple[int, ...]]:
    """Layouts in the engine's order, from the minor (fastest) to the major axis, with None as row-major."""
    orders: list[tuple[int, ...]] = []
    for t, layout in zip(types, [None] * len(types) if layouts is None else layouts):
        if layout is None:
            orders.append(tuple(range(len(physical(t)[0])))[::-1])
        elif hasattr(layout, "major_to_minor"):
            orders.append(tuple(layout.major_to_minor)[::-1])
        else:
            orders.append(tuple(layout))
    return orders
