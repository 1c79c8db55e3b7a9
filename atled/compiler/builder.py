"""The interface of the builder that ops use to lower themselves.

The engine implements `Builder` with MLIR. A `Value` is opaque except for its `type`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from atled.core.types import ArrayType


class Value:
    """A value in the module being built. A literal becomes a constant, with a handle, on first use."""

    __slots__ = ("handle", "literal", "type")

    def __init__(self, handle: Any, type: ArrayType, literal: Any = None) -> None:
        self.handle = handle
        self.type = type
        self.literal = literal


class U8(int):
    """An unsigned 8-bit integer attribute."""


class I32(int):
    """A 32-bit integer attribute."""


class U64(int):
    """An unsigned 64-bit integer attribute."""


class Builder(Protocol):
    """Emits operations into one block of a module."""

    platform: str
    is_nested: bool
    token: Value | None  # the token of the last callback with an effect; ops pass it through regions

    @property
    def on_one_cpu(self) -> bool:
        """Whether the program runs on one CPU, so ops may lower to code that the partitioner cannot split."""
        ...

    @property
    def manual(self) -> Any:
        """The mesh of the enclosing `shard_map`, whose body is per-device code, or None."""
        ...

    @property
    def has_powers(self) -> bool:
        """Whether the module may contain a `Pow`: XLA rewrites log(a**b), so `Log` must handle negative a."""
        ...

    @property
    def is_spread(self) -> bool:
        """Whether the program runs on several devices, so that the partitioner splits its ops."""
        ...

    @property
    def has_matrix_unit(self) -> bool:
        """Whether the CPU has a matrix unit for bfloat16 products."""
        ...

    def at(self, source: Any, name: str) -> None:
        """Set the source location and op name of the operations emitted next."""
        ...

    def emit(
        self,
        name: str,
        operands: Sequence[Value],
        types: Sequence[ArrayType],
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Any] = (),
        terminator: str = "stablehlo.return",
    ) -> Any:
        """Emit one operation. Attributes are Python values: bools, strings, tuples of ints (arrays of 64 bits),
        `#...` text to parse, or NumPy arrays. Returns the result, or a tuple of several."""
        ...

    def handles(self, values: Sequence[Value]) -> list[Any]:
        """The MLIR values of operands; literals are emitted as constants."""
        ...

    def foreign(self, rule: Callable[..., Any], operands: Sequence[Value], types: Sequence[ArrayType]) -> list[Value]:
        """Call a function of MLIR values that inserts into this block; returns its results, of these types."""
        ...

    def constant(self, value: Any, type: ArrayType) -> Value:
        """A constant of this type; a scalar is repeated to fill the shape."""
        ...

    def spread(self, x: Value, shape: tuple[int, ...]) -> Value:
        """A scalar broadcast to `shape`; other values unchanged."""
        ...

    def broadcast(self, x: Value, shape: tuple[int, ...], dimensions: Sequence[int]) -> Value:
        """Broadcast `x` to a larger shape, in which its axes are `dimensions`."""
        ...

    def region(self, types: Sequence[ArrayType], body: Callable[..., Any]) -> Any:
        """A region for `emit`, whose block takes values of these types and returns the results of `body(build,
        *values)`.
        """
        ...

    def apply(self, f: Callable[..., Any], *operands: Value) -> Any:
        """Lower a function that is written with ops, by tracing it; returns its results."""
        ...

    def map(self, f: Callable[..., Any], *operands: Value) -> Value:
        """Lower a long elementwise function of arrays of equal shape as one loop; the result has the first array's
        dtype.

        Without this, the compiler emits a loop over memory for each value that is used twice.
        """
        ...

    def call(
        self, program: Any, operands: Sequence[Value], is_closed: bool = False, composite: dict[str, Any] | None = None,
        marks: dict[str, str] | None = None,
    ) -> tuple[Value, ...]:  # fmt: skip
        """Call a program as a function of the module, emitted once. No op is moved into or out of a closed function.

        With `composite` (a name, a version and attributes), the call is a composite with the program as decomposition.
        `marks` are frontend attributes of the call.
        """
        ...

    def mark(self, x: Value, marks: dict[str, str]) -> Value:
        """Set frontend attributes on the operation that produces the value, and return it. A block argument, which no
        operation produces, is unchanged.
        """
        ...

    def alike(self, values: Sequence[Value]) -> None:
        """Constrain the partitioner to give these values the same sharding."""
        ...

    def manual_computation(
        self, mesh: Any, axes: Sequence[Any], operands: Sequence[Value], ins: Sequence[Any], outs: Sequence[Any],
        types: Sequence[ArrayType], out_types: Sequence[ArrayType], body: Callable[..., Any],
    ) -> tuple[Value, ...]:  # fmt: skip
        """A block that each device of a mesh runs on its shards; `body(build, *values)` gets values of `types`."""
        ...

    def groups(self, axes: Sequence[Any]) -> Any:
        """The groups of devices that communicate along these mesh axes: an array [group, member]."""
        ...

    def place(self, axis: Any) -> Value:
        """The device's position along a mesh axis."""
        ...

    def channel(self) -> str:
        """The attribute with the channel of a new collective."""
        ...

    def constrain(self, x: Value, sharding: Any) -> Value:
        """The value with a sharding constraint."""
        ...

    def call_portable(self, data: bytes, name: str, operands: Sequence[Value], types: Sequence[ArrayType]) -> Any:
        """Call the serialized module of an exported function."""
        ...

    def inline(self, program: Any, operands: Sequence[Value]) -> list[Value]:
        """Emit a program's equations in this block."""
        ...

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
        """Call a foreign function that is registered with the engine by name."""
        ...

    def callback(self, function: Any, operands: Sequence[Value], types: Sequence[ArrayType], effect: bool) -> Any:
        """Call a Python function on the host; callbacks with an effect run in order."""
        ...

    def waited(self) -> Value:
        """The token that the next callback with an effect must wait for."""
        ...
