"""`print_saved_residuals`: prints the residuals that a function stores for its backward pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from atled.core import tree
from atled.core.program import Literal, Program, Var
from atled.core.types import ArrayType
from atled.staging.jit import make_program
from atled.transforms.grad import vjp


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ArrayType, str]]:
    """The type and the origin of each residual of `f`."""

    def kept(*leaves: Any) -> list[Any]:
        return tree.leaves(vjp(lambda args, kwargs: f(*args, **kwargs), *structure.unflatten(leaves))[1])

    leaves, structure = tree.flatten((args, kwargs))
    names = [_argument(f, path) for path, _ in tree.leaves_with_path((args, kwargs))]
    program = make_program(kept)(*leaves)
    return [(x.type, _origin(program, x, names)) for x in program.outputs]


def _argument(f: Any, path: Any) -> str:
    """The name of an argument leaf: the parameter's name and the path in the argument."""
    rest = tree.keystr(path[2:])
    if path[0].idx:  # a keyword argument
        return f"{path[1].key}{rest}"
    first: int = path[1].idx
    try:
        return f"{list(inspect.signature(f).parameters)[first]}{rest}"
    except (TypeError, ValueError, IndexError):
        return f"{first}{rest}"


def _origin(program: Program, x: Var | Literal, names: list[str]) -> str:
    if isinstance(x, Literal):
        return "a literal value"
    count = len(program.consts)
    if x in program.inputs[:count]:
        return "a value that the function closes over"
    for v, name in zip(program.inputs[count:], names, strict=True):
        if v is x:
            return f"from the argument {name}"
    for e in program.equations:
        if any([v is x for v in e.results]):
            return f"output of {e.op.name} from {e.source}" + (f" ({e.source.function})" if e.source else "")
    return "unknown"


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the type and the origin of each residual that reverse mode stores for the backward pass of `f`.

    >>> import atled.numpy as jnp
    >>> print_saved_residuals(lambda x, y: jnp.sin(x) * y, 1.0, 2.0)  # doctest: +ELLIPSIS
    ~f32[] output of cos from ...
    ~f32[] from the argument y
    ~f32[] output of sin from ...
    """
    for kind, origin in saved_residuals(f, *args, **kwargs):
        print(f"{kind} {origin}")
