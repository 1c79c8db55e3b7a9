"""Modules as text, and as a collapsible tree in notebooks."""

from __future__ import annotations

import html as escaping
import types
from collections.abc import Callable
from typing import Any

from atled.core import tree
from atled.core.array import Array, type_of
from atled.core.types import ShapeDtypeStruct

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type)
FormOf = Callable[[Any], Any]  # the `ModuleDef` of a module, or None for other objects


def text(module: Any, form_of: FormOf) -> str:
    """A module as text, for its `repr`."""
    return "".join(_lines(form_of, module, "", ""))


def _lines(form_of: FormOf, x: Any, indent: str, kind: str) -> list[str]:
    """A value as lines of text: one line of at most 100 characters, or else a line for each part."""
    form = form_of(x)
    if form is not None:
        inner = indent + "  "
        kinds = {n: f"{k.__name__} " for n, k in form.kinds.items()}
        parts = [f"{n}={''.join(_lines(form_of, x.__dict__[n], inner, kinds.get(n, '')))}" for n in form.names]
        statics = [(n, v) for n, v in form.statics.items() if v is not None and v != ()]
        parts += [f"{n}={v!r}" if type(v) not in _FUNCTIONS else f"{n}={v.__name__}" for n, v in statics]
        text = f"{type(x).__name__}({', '.join(parts)})"
        if len(text) + len(indent) <= 100 and "\n" not in text:
            return [text]
        return [f"{type(x).__name__}(\n", *[f"{inner}{p},\n" for p in parts], f"{indent})"]
    if type(x) in (list, tuple, dict) and x:
        items = [f"{k!r}: " for k in x] if type(x) is dict else [""] * len(x)
        values = list(x.values()) if type(x) is dict else list(x)
        parts = [k + "".join(_lines(form_of, v, indent + "  ", kind)) for k, v in zip(items, values, strict=True)]
        a, b = {list: "[]", tuple: "()", dict: "{}"}[type(x)]
        text = f"{a}{', '.join(parts)}{',' if len(x) == 1 and type(x) is tuple else ''}{b}"
        if len(text) + len(indent) <= 100 and "\n" not in text:
            return [text]
        return [f"{a}\n", *[f"{indent}  {p},\n" for p in parts], f"{indent}{b}"]
    if isinstance(x, (Array, ShapeDtypeStruct)):
        t = x.type if isinstance(x, ShapeDtypeStruct) else type_of(x)
        return [f"{kind}{t}"]
    return [x.__name__ if type(x) in _FUNCTIONS else repr(x)]


def html(module: Any, form_of: FormOf) -> str:
    """A module as HTML for notebooks, with collapsible parts."""
    return f"<div style='font-family: monospace'>{_unfolding(form_of, module, type(module).__name__, '', True)}</div>"


def _unfolding(form_of: FormOf, x: Any, label: str, kind: str, is_open: bool = False) -> str:
    parts = _parts(form_of, x, kind)
    if parts is None:
        shown = "".join(_lines(form_of, x, "", f"{kind} " if kind else ""))
        return f"<div style='margin-left: 1.4em'>{escaping.escape(label)}: {escaping.escape(shown)}</div>"
    count = sum([y.size for y in _arrays(x)])
    name = f"{label}: {type(x).__name__}" if label != type(x).__name__ else label
    head = f"<summary>{escaping.escape(name)} <small>{count:,} numbers</small></summary>"
    inside = "".join([_unfolding(form_of, value, key, declared) for key, value, declared in parts])
    return f"<details style='margin-left: 1.4em'{' open' if is_open else ''}>{head}{inside}</details>"


def _parts(form_of: FormOf, x: Any, kind: str) -> list[tuple[str, Any, str]] | None:
    """Names, values and kinds of the children of an object; None for an object without children."""
    form = form_of(x)
    if form is not None:
        kinds = {n: k.__name__ for n, k in form.kinds.items()}
        children = [(n, x.__dict__[n], kinds.get(n, "")) for n in form.names]
        return [*children, *[(n, v, "") for n, v in form.statics.items()]]
    if type(x) in (list, tuple, dict) and x:
        items = x.items() if type(x) is dict else enumerate(x)
        return [(str(k), v, kind) for k, v in items]
    return None


def _arrays(x: Any) -> list[Any]:
    return [y for y in tree.leaves(x) if isinstance(y, Array)]
