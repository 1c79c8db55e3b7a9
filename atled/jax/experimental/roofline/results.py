"""The classes of `roofline`: its result, and the arguments of cost rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from atled.core.types import ArrayType


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineResult:
    """The cost for one device: operations, bytes of memory, and bytes sent along each mesh axis.

    `flops` and `hbm_bytes` count only matrix products, assuming that the compiler fuses all other ops into them; fields
    that begin with `unfused_` count all ops, each of which reads its operands from memory and writes its results there.
    `peak_hbm_bytes` is the most memory that values take that are alive at the same time. `ici_latency` counts steps of
    communication.

    >>> first = RooflineResult(flops=3, ici_bytes={"x": 4}, peak_hbm_bytes=8)
    >>> both = first + RooflineResult(flops=4, ici_bytes={"x": 1}, peak_hbm_bytes=5)  # one after the other
    >>> both.flops, both.ici_bytes, both.peak_hbm_bytes
    (7, {'x': 5}, 8)
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: Mapping[Any, int] = dataclasses.field(default_factory=dict)
    ici_latency: Mapping[Any, int] = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """A result whose fields are zero."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        return RooflineResult(
            flops=self.flops + other.flops,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=_added(self.ici_bytes, other.ici_bytes),
            ici_latency=_added(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
        )

    def __mul__(self, factor: float) -> RooflineResult:
        def scaled(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {axis: int(n * factor) for axis, n in value.items()}
            return int(value * factor)

        return RooflineResult(**{f.name: scaled(getattr(self, f.name)) for f in dataclasses.fields(self)})

    __rmul__ = __mul__


def _added(first: Mapping[Any, int], second: Mapping[Any, int]) -> dict[Any, int]:
    return {axis: first.get(axis, 0) + second.get(axis, 0) for axis in {**first, **second}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of an operand, an argument of cost rules.

    >>> import atled
    >>> shape = RooflineShape.from_aval(atled.jax.typeof(atled.numpy.ones((2, 3))))
    >>> shape.size, shape.bytes
    (6, 24)
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: ArrayType) -> RooflineShape:
        """The shape and dtype of a type."""
        if not isinstance(aval, ArrayType):
            raise TypeError(f"RooflineShape.from_aval: expected a ShapedArray; got {type(aval).__name__}.")
        return cls(shape=aval.shape, dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return ArrayType(self.shape, self.dtype).size

    @property
    def bytes(self) -> int:
        """The number of bytes of the elements."""
        return bytes_of(ArrayType(self.shape, self.dtype))

    @classmethod
    def total_bytes(cls, avals: Sequence[ArrayType]) -> int:
        """The total number of bytes of arrays of these types."""
        return sum([cls.from_aval(t).bytes for t in avals])


def bytes_of(t: ArrayType) -> int:
    """The number of bytes of an array: 8 for each key, 0 for float0."""
    if t.kind in "k0":
        return 8 * t.size if t.kind == "k" else 0
    return t.size * t.dtype.itemsize


@dataclasses.dataclass(frozen=True, kw_only=True)
class RooflineRuleContext:
    """The context of a cost rule: the equation's primitive and types, the mesh, and options of `roofline`.

    >>> import atled
    >>> from atled.jax.experimental.roofline import register_roofline, roofline
    >>> from atled.jax.extend.core import Primitive
    >>> double = Primitive("double")
    >>> _ = double.def_abstract_eval(lambda x: x)
    >>> @register_roofline(double)
    ... def rule(ctx: RooflineRuleContext, x, **params):
    ...     print(ctx.primitive, ctx.avals_in, ctx.avals_out, ctx.mesh)
    ...     return RooflineResult(unfused_flops=x.size)
    >>> roofline(double.bind)(3.0)[1].unfused_flops
    double [~f32[]] [~f32[]] None
    1
    """

    name_stack: str
    primitive: Any
    avals_in: Sequence[ArrayType]
    avals_out: Sequence[ArrayType]
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool
