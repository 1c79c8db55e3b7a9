"""`composite`: a named function that the compiler may replace by its own implementation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from atled.compiler.builder import I32
from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.trace import bind
from atled.higher_order.call import Call, has_effects
from atled.higher_order.cond import record_tree

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


class Composite(Call):
    """A call of a program under the name `label`; transforms turn it into a plain call."""

    label: str = ""
    version: int = 0
    attributes: tuple[tuple[str, Any], ...] = ()

    def lower(self, build: Any, *operands: Any) -> Any:
        if has_effects(self.program):
            return super().lower(build, *operands)
        options: dict[str, Any] = {"name": self.label, "version": I32(self.version)}
        if self.attributes:
            arrays = {k: np.asarray(v) if isinstance(v, tuple) else v for k, v in self.attributes}
            options["composite_attributes"] = arrays
        return build.call(self.program, operands, composite=options)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function whose calls appear in the compiled program as one op, named with a namespace such as "my.softmax".

    Positional arguments are arrays. Keyword arguments are constants and become attributes of the call, unless None.

    >>> import atled.numpy as jnp
    >>> half = composite(lambda x, *, by: x / by, "my.divided")
    >>> half(jnp.array([2.0, 4.0]), by=2.0)
    Array([1., 2.], dtype=float32)
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            errors.explained(
                f"composite: a name must have a namespace, as in 'my.softmax'; got {name!r}.", f"'my.{name}'."
            )
        )

    def call(*args: Any, **attributes: Any) -> Any:
        leaves, structure = tree.flatten(args)
        types = [type_of(x) for x in leaves]
        static = tuple([(k, _attribute(k, v)) for k, v in attributes.items() if v is not None])

        def decomposed(*args: Any) -> Any:
            return decomposition(*args, **attributes)

        try:
            recorded = record_tree(decomposed, structure, types)
            out = bind(Composite(recorded.program, name, int(version), static), *recorded.captured, *leaves)
            return recorded.structure.unflatten(list(out))
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    call.__name__ = getattr(decomposition, "__name__", "composite")
    call.__doc__ = getattr(decomposition, "__doc__", None)
    return call


def _attribute(name: str, value: Any) -> Any:
    """A constant as a bool, a number, a string, or nested tuples of these."""
    if isinstance(value, (np.bool_, np.number)):
        value = value.item()
    if isinstance(value, np.ndarray) or (hasattr(value, "__array__") and not isinstance(value, type)):
        value = np.asarray(value).tolist()
    if isinstance(value, (list, tuple)):
        return tuple([_attribute(name, v) for v in value])
    return value if isinstance(value, (bool, int, float, str)) else str(value)
