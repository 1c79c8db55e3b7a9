"""`Op`, the base class of primitives.

Each primitive is a class: its fields are its parameters, its methods are its rules. Ops are compared by exact value, so
they can be cache keys. Rules are written with public op functions, so they can themselves be transformed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar, dataclass_transform

from atled.core import source
from atled.core.annotation_lookup import annotations_of
from atled.core.array import type_of
from atled.core.basic_ops import arithmetic
from atled.core.cache_keys import exact
from atled.core.tangent_mask import ALL
from atled.core.trace import bind
from atled.core.types import Zero


@dataclass_transform(frozen_default=True)
class Op:
    """A primitive operation. Subclasses declare their parameters as fields."""

    name: ClassVar[str] = "op"
    fields: ClassVar[tuple[str, ...]] = ()  # the names of the parameters

    # -- what the op is -----------------------------------------------------------------------------------------

    linear_in: ClassVar[tuple[tuple[int, ...], ...]] = ()  # groups of operands that the op is linear in, together
    gives_tuple: ClassVar[bool] = False  # returns a tuple, even for one result
    is_collective: ClassVar[bool] = False  # communicates over its named `axes`
    is_same_for_all: ClassVar[bool] = False  # a collective whose result is equal along its axes
    mesh = None  # the mesh that the op refers to
    has_effect: ClassVar[bool] = False  # not removed as dead code, even if its results are unused
    effect = None  # the name of the op's side effect, if it has one
    splits: ClassVar[bool] = False  # holds a program, and has a `split` rule for linearization
    selects: ClassVar[bool] = False  # its derivatives discard elements (see core/tangent_mask.py)
    repeats: ClassVar[bool] = False  # a loop: runs its programs any number of times
    runs_on_host: ClassVar[bool] = False  # has an `on_host` rule, which runs if all operands are concrete
    unlowered: ClassVar[tuple[str, ...]] = ()  # parameters that only transforms use
    takes_keys: ClassVar[bool] = False  # lowers random keys itself, rather than as words on a leading axis

    # -- hints to the compiler: they change how fast it runs, never what it returns ------------------------------

    is_fusible: ClassVar[bool] = False  # the compiler may recompute it for each use of its result
    only_spreads: ClassVar[bool] = False  # its result is larger than its operands
    emitted_from: ClassVar[float] = math.inf  # the array size from which fusion emitters generate faster code
    compiler_options: ClassVar[Any] = ()  # XLA options for the program that the op holds, which runs as a launch

    def __init_subclass__(cls) -> None:
        """Turn annotated attributes into parameters, as a dataclass does, but ten times faster."""
        own = [n for n, kind in annotations_of(cls).items() if "ClassVar" not in str(kind)]
        if own:
            cls.fields = tuple(dict.fromkeys((*cls.fields, *own)))
            cls.__init__ = _first_init  # type: ignore[assignment]
        cls.name = re.sub(r"(?<!^)(?=[A-Z][a-z]|(?<=[a-z0-9])[A-Z])", "_", cls.__name__).lower()

    # -- rules: what a subclass supplies ------------------------------------------------------------------------

    def result_type(self, *types: Any) -> Any:
        """The type of the result, or a tuple of types; raises if the operands are invalid."""
        raise missing(self, "result_type", "every call")

    def lower(self, build: Any, *operands: Any) -> Any:
        """Emit StableHLO through a builder."""
        raise missing(self, "lower", "compilation")

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """The result and its tangent; tangents may be `Zero`, but not all of them."""
        raise missing(self, "jvp", "differentiation")

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        """A cotangent for each operand that arrives as `Linear`, and None for other operands."""
        raise missing(self, "transpose", "reverse-mode differentiation")

    def batch(self, batched: tuple[bool, ...], *operands: Any) -> Any:
        """The op with one more leading axis on the operands marked in `batched`, and on every result."""
        raise missing(self, "batch", "vmap")

    def batch_under(self, batch: Any, batched: tuple[bool, ...], *operands: Any) -> Any:
        """Like `batch`, for ops that hold programs: the argument `batch` has the name and size of the batch axis."""
        raise missing(self, "batch_under", "vmap")

    def batch_named(self, name: Any, size: int, batched: tuple[bool, ...], *operands: Any) -> Any:
        """Like `batch`, for a collective: the batch axis is one of its `axes`."""
        raise missing(self, "batch_named", "vmap with an axis name")

    def split(self, tape: Any, operands: Any) -> Any:
        """Run the part that depends on no tangent immediately, and record the other part on the tape."""
        raise missing(self, "split", "reverse-mode differentiation")

    def masked(self, values: Sequence[Any], masks: Sequence[Any]) -> tuple[Any, Any]:
        """The result and its mask: `ALL` if no element was discarded, or a `Mask`; for a tuple, one for each result.

        The op runs on tangents or cotangents. Tangents and cotangents have masks; other operands have None. Operands in
        which the op is linear and that have no tangent are zeros, and count as discarded.
        """
        return bind(self, *values), ALL

    def stepwise(self, *operands: Any) -> Any:
        """Run the programs that the op holds op by op, and return the results."""
        raise missing(self, "stepwise", "running op by op")

    def on_host(self, *arrays: Any) -> Any:
        """The results as NumPy arrays, computed by Python."""
        raise missing(self, "on_host", "running outside of programs")

    def varies(self, of: Any, given: list[frozenset[Any]]) -> list[frozenset[Any]] | None:
        """The mesh axes along which each result varies, or None for those of all operands and inner collectives.

        `given` has the axes of each operand; `of(program, given)` computes the axes of a program's outputs.
        """
        return None

    def chosen_by(self, of: Any, given: list[frozenset[Any]]) -> frozenset[Any]:
        """The mesh axes along which devices take different branches, or different numbers of steps."""
        return frozenset()

    def linear_groups(self, count: int) -> tuple[tuple[int, ...], ...]:
        """`linear_in` for `count` operands; overridden by ops that take any number of operands."""
        return self.linear_in

    # -- identity -----------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The values of the fields, in order."""
        return tuple([getattr(self, name) for name in self.fields])

    @property
    def key(self) -> tuple[Any, ...]:
        """The class and the exact values of the fields, by which ops are compared."""
        try:
            return self.__dict__["_key"]
        except KeyError:
            key = self.__dict__["_key"] = (type(self), *[exact(getattr(self, name)) for name in self.fields])
            return key

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.key == other.key)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        try:
            return self.__dict__["_hash"]
        except KeyError:
            hashed = self.__dict__["_hash"] = hash(self.key)
            return hashed

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.fields]
        return f"{self.name}[{' '.join(shown)}]" if shown else self.name


def _first_init(self: Op, *args: Any, **kwargs: Any) -> None:
    """The `__init__` of a class until its first instance is created: generates the real one and calls it."""
    cls = type(self)
    defaults = {f"_{n}": getattr(cls, n) for n in cls.fields if any([n in vars(c) for c in cls.__mro__[:-2]])}
    header = ", ".join([f"{n}=_{n}" if f"_{n}" in defaults else n for n in cls.fields])
    body = "".join([f"\n self.{n} = {n}" for n in cls.fields])
    exec(source.compiled(f"def __init__(self, {header}):{body}"), defaults)
    cls.__init__ = defaults["__init__"]  # type: ignore[method-assign]
    cls.__init__(self, *args, **kwargs)  # type: ignore[arg-type]


def missing(op: Op, rule: str, needed_by: str) -> NotImplementedError:
    """The error for a rule that an op does not have."""
    return NotImplementedError(f"{type(op).__name__} has no '{rule}' rule; {needed_by} needs it.")


def instantiate(x: Any) -> Any:
    """An array of zeros for a symbolic zero; other values unchanged."""
    return arithmetic.zeros(x.type) if type(x) is Zero else x


class LinearOp(Op):
    """An op that is linear in groups of its operands, by default in the first one. The derivative of the op follows
    from its linearity.

    `linear_in = ((0, 1),)` means linear in operands 0 and 1 jointly (add), `((0,), (1,))` in each alone (mul). The
    derivative is the sum, over the groups, of the op applied to the group's tangents and the other operands.
    """

    linear_in = ((0,),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out, total = bind(self, *primals), None
        for group in self.linear_groups(len(primals)):
            if all([type(tangents[i]) is Zero for i in group]):
                continue
            operands = list(primals)
            for i in group:
                operands[i] = instantiate(tangents[i])
            term = bind(self, *operands)
            total = term if total is None else arithmetic.add(total, term)
        return out, Zero(type_of(out).tangent()) if total is None else total
