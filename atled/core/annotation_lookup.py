"""Annotations of classes and functions: evaluated at definition up to Python 3.13, lazily from 3.14 on."""

from __future__ import annotations

from typing import Any

try:
    from annotationlib import Format, get_annotations  # pyright: ignore[reportMissingImports]  # Python 3.14
except ImportError:
    Format = get_annotations = None


def annotations_of(owner: Any) -> dict[str, Any]:
    """The annotations of a function, or those in the body of a class; names that are not defined yet stay strings."""
    if get_annotations is not None and Format is not None:
        return get_annotations(owner, format=Format.FORWARDREF)
    if isinstance(owner, type):
        return owner.__dict__.get("__annotations__", {})  # noqa: RUF063
    return owner.__annotations__
