"""Adds the attributes that tools written for JAX expect to atled's classes of programs, types and tracers.

`install` runs when `atled.jax` is imported: a program then has `.eqns`, an equation `.primitive` and `.params`, a type
`.weak_type`. Code outside of `atled.jax` does not read them.

>>> import atled.jax as jax
>>> [e.primitive.name for e in jax.make_jaxpr(lambda x: x * x + 1)(2.0).jaxpr.eqns]
['mul', 'add']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from atled.core.array import Array
from atled.core.program import Equation, Literal, Program, Var, subprograms
from atled.core.sharding import NO_MESH, NamedSharding, PartitionSpec
from atled.core.source import NOWHERE, Source, shown
from atled.core.trace import Interpreter, Tracer, bind
from atled.core.types import ArrayType, Linear, Zero
from atled.jax.effects import BY_NAME
from atled.staging.aot import TracedFunction


class Primitive:
    """A primitive of JAX: represents all ops of one class."""

    names: Mapping[str, str] = {"call": "jit", "checkpoint": "remat", "convert": "convert_element_type"}

    def __init__(self, op: Any) -> None:
        self.op = op
        self.name = self.names.get(op.name, op.name)

    @property
    def multiple_results(self) -> bool:
        """Whether `bind` returns a list."""
        return self.op.gives_tuple

    def params_of(self, op: Any) -> dict[str, Any]:
        """The parameters of an op; a program is named `jaxpr`, as in JAX."""
        return {"jaxpr" if f == "program" else f: v for f, v in zip(op.fields, op.parameters, strict=True)}

    def op_of(self, params: Mapping[str, Any]) -> Any:
        """An op of this primitive's class with the given parameters."""
        return self.op(**{"program" if name == "jaxpr" else name: value for name, value in params.items()})

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive to operands, which may be tracers."""
        out = bind(self.op_of(params), *operands)
        return list(out) if type(out) is tuple else out

    def bind_with_trace(self, trace: Interpreter, operands: Sequence[Any], *types_and_params: Any) -> Any:
        """Apply the primitive under a transformation. Parameters come last; types before them are ignored."""
        out = trace.process(self.op_of(types_and_params[-1]), tuple(operands))
        return list(out) if type(out) is tuple else out

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of `bind`: `bind(*operands, **get_bind_params(params))`."""
        return params

    def __repr__(self) -> str:
        return self.name


_primitives: dict[type, Primitive] = {}  # by class of op, made at the first request


def primitive_of(op: type) -> Primitive:
    """The primitive of a class of ops; every call returns the same object."""
    primitive = _primitives.get(op)
    if primitive is None:
        primitive = _primitives.setdefault(op, getattr(op, "primitive", None) or Primitive(op))
    return primitive


def effects_of_equation(e: Equation) -> frozenset[Any]:
    """The side effects of an equation; those of its subprograms, if it has any."""
    held = subprograms(e.op)
    if held:
        return frozenset().union(*[effects_of(p) for p in held])
    if hasattr(e.op, "effects"):  # an op of a user-defined primitive
        return e.op.effects(*[v.type for v in e.operands])
    return frozenset([BY_NAME.get(e.op.effect, e.op)]) if e.op.has_effect else frozenset()


def effects_of(program: Program) -> frozenset[Any]:
    """The side effects of a program's equations."""
    return frozenset().union(*[effects_of_equation(e) for e in program.equations])


def _str_short(t: ArrayType, short_dtypes: bool = True) -> str:
    """The type as text; with `short_dtypes=False`, the dtype has its full name."""
    return repr(t) if short_dtypes else f"{t.dtype.name}[{','.join(map(str, t.shape))}]"


# The properties and methods to add, by class; a property is a function of the object.
_ATTRIBUTES: dict[type, dict[str, Any]] = {
    ArrayType: {
        "weak_type": lambda t: t.weak,
        "sharding": lambda t: NamedSharding(NO_MESH, PartitionSpec(*[None] * t.ndim)),
    },
    Array: {"aval": lambda x: x.type},
    Zero: {"aval": lambda x: x.type},
    Linear: {"aval": lambda x: x.type},
    Literal: {"aval": lambda x: x.type, "val": lambda x: x.value},
    Var: {"aval": lambda v: v.type},
    Source: {"name_stack": lambda s: shown(s.scopes).rstrip("/"), "traceback": lambda s: s},
    Interpreter: {"main": lambda i: i},
    Tracer: {"_trace": lambda x: x.interpreter},
    Equation: {
        "primitive": lambda e: primitive_of(type(e.op)),
        "params": lambda e: e.primitive.params_of(e.op),
        "invars": lambda e: list(e.operands),
        "outvars": lambda e: list(e.results),
        "effects": effects_of_equation,
        "source_info": lambda e: e.source or NOWHERE,
    },
    Program: {
        "jaxpr": lambda p: p,
        "eqns": lambda p: list(p.equations),
        "literals": lambda p: p.consts,
        "constvars": lambda p: list(p.inputs[: len(p.consts)]),
        "invars": lambda p: list(p.inputs[len(p.consts) :]),
        "outvars": lambda p: list(p.outputs),
        "in_avals": lambda p: [v.type for v in p.invars],
        "out_avals": lambda p: list(p.output_types),
        "effects": effects_of,
    },
    TracedFunction: {"jaxpr": lambda traced: traced.program},
}
_METHODS: dict[type, dict[str, Any]] = {
    ArrayType: {
        "str_short": _str_short, "strip_weak_type": ArrayType.strong, "to_tangent_aval": ArrayType.tangent,
        "at_least_vspace": ArrayType.tangent,
    },
}  # fmt: skip


def install() -> None:
    """Add the properties and methods to atled's classes."""
    for kind, attributes in _ATTRIBUTES.items():
        for name, get in attributes.items():
            setattr(kind, name, property(get))
    for kind, methods in _METHODS.items():
        for name, method in methods.items():
            setattr(kind, name, method)
