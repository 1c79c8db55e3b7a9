"""`struct`: a frozen dataclass that is a pytree. Layers, optimizers and states are structs."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

from atled.core import tree_nodes

T = TypeVar("T")


def static(**kwargs: Any) -> Any:
    """A static field, compared by value instead of being a child: sizes, names, functions."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def struct(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree whose children are its fields.

    >>> from atled.core import tree
    >>> @struct
    ... class Line:
    ...     slope: float
    ...     offset: float
    ...     name: str = static(default="line")
    >>> tree.map(lambda x: 10 * x, Line(1.0, 2.0))
    Line(slope=10.0, offset=20.0, name='line')
    """
    datacls = dataclasses.dataclass(frozen=True)(cls)
    tree_nodes.register_dataclass(datacls)
    if not hasattr(datacls, "replace"):
        datacls.replace = lambda self, **changes: dataclasses.replace(self, **changes)  # type: ignore[attr-defined]
    return datacls
