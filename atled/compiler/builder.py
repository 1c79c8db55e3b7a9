"""What an op may say when it is lowered: the interface of the builder.

The engine implements it over MLIR. Values are opaque but for their `type`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from atled.core.types import ArrayType


class Value:
    """A value in the module being built. A literal has no handle until somebody needs one."""

    __slots__ = ("handle", "literal", "type")

    def __init__(self, handle: Any, type: ArrayType, literal: Any = None) -> None:
        self.handle = handle
        self.type = type
        self.literal = literal


class U8(int):
    """An integer attribute of 8 unsigned bits."""


class I32(int):
    """An integer attribute of 32 bits."""


class U64(int):
    """An integer attribute of 64 unsigned bits."""


class Builder(Protocol):
    """Emits operations into one block of a module."""

    platform: str
    is_nested: bool
    token: Value | None  # what the next callback with an effect waits for; ops with regions pass it through them

    @property
    def on_one_cpu(self) -> bool:
        """Whether an op may take a form that is fast on a CPU, and that the partitioner would not split."""
        ...

    @property
    def manual(self) -> Any:
        """The mesh of whose devices each runs this block on its own part; None outside of such blocks."""
        ...

    @property
    def is_spread(self) -> bool:
        """Whether the program runs over several devices, so that the partitioner splits its ops."""
        ...

    @property
    def has_matrix_unit(self) -> bool:
        """Whether the CPU has one for products of bfloat16."""
        ...

    def at(self, source: Any, name: str) -> None:
        """Operations emitted from here on come from this place."""
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
        `#...` text to parse, or NumPy arrays. One result comes back as a value, several as a tuple."""
        ...

    def handles(self, values: Sequence[Value]) -> list[Any]:
        """The values of the module that stand for these."""
        ...

    def foreign(self, rule: Callable[..., Any], operands: Sequence[Value], types: Sequence[ArrayType]) -> list[Value]:
        """What a function makes of the module's own values, in a block where MLIR's bindings insert here."""
        ...

    def constant(self, value: Any, type: ArrayType) -> Value:
        """A constant; a scalar value fills the whole shape."""
        ...

    def spread(self, x: Value, shape: tuple[int, ...]) -> Value:
        """A scalar repeated over `shape`; other values as they are."""
        ...

    def broadcast(self, x: Value, shape: tuple[int, ...], dimensions: Sequence[int]) -> Value:
        """`x` with its axes at `dimensions` of a larger shape."""
        ...

    def region(self, types: Sequence[ArrayType], body: Callable[..., Any]) -> Any:
        """A region for `emit`, whose block takes values of these types and returns what `body(build, *values)` does."""
        ...

    def apply(self, f: Callable[..., Any], *operands: Value) -> Any:
        """Lower a function that is written with ops."""
        ...

    def map(self, f: Callable[..., Any], *operands: Value) -> Value:
        """Lower a long elementwise function, of arrays of one shape with results of the first one's dtype, as one loop.

        Left to itself, the compiler makes a loop for each value that is used twice, and each goes over the memory.
        """
        ...

    def call(
        self, program: Any, operands: Sequence[Value], is_closed: bool = False, composite: dict[str, Any] | None = None,
        marks: dict[str, str] | None = None,
    ) -> tuple[Value, ...]:  # fmt: skip
        """Call a program as a function of the module, emitted once. Nothing moves into or out of a closed one.

        A `composite` has a name for the compiler, a version and attributes, and the program is what it means. `marks`
        are words to the compiler about the call.
        """
        ...

    def mark(self, x: Value, marks: dict[str, str]) -> Value:
        """The value, and words to the compiler about the operation that gives it; an argument has none."""
        ...

    def alike(self, values: Sequence[Value]) -> None:
        """Let the partitioner split these values in one way."""
        ...

    def manual_computation(
        self, mesh: Any, axes: Sequence[Any], operands: Sequence[Value], ins: Sequence[Any], outs: Sequence[Any],
        types: Sequence[ArrayType], out_types: Sequence[ArrayType], body: Callable[..., Any],
    ) -> tuple[Value, ...]:  # fmt: skip
        """What each device of a mesh does with its part; `body(build, *values)` gets values of `types`."""
        ...

    def groups(self, axes: Sequence[Any]) -> Any:
        """Which devices of the mesh communicate over some of its axes: an array [group, place]."""
        ...

    def place(self, axis: Any) -> Value:
        """The position along an axis of the mesh."""
        ...

    def channel(self) -> str:
        """An attribute that tells collectives apart."""
        ...

    def constrain(self, x: Value, sharding: Any) -> Value:
        """The value, split over a mesh."""
        ...

    def call_portable(self, data: bytes, name: str, operands: Sequence[Value], types: Sequence[ArrayType]) -> Any:
        """Call a function that was exported."""
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
        """Call a function that is registered with the engine by name."""
        ...

    def callback(self, function: Any, operands: Sequence[Value], types: Sequence[ArrayType], effect: bool) -> Any:
        """Call a Python function; with an effect, after all others so far."""
        ...

    def waited(self) -> Value:
        """What stands for all effects so far."""
        ...
