"""Programs as text, with the user's line after each equation.

program loss(a: f32[3], b: f32[]) {
  c: f32[3] = sin a                    # train.py:12
  return c
}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def _names() -> Iterator[str]:
    """Yields the names a, b, ..., z, ba, bb, ..."""
    n = 0
    while True:
        text, k = "", n
        while True:
            text = chr(97 + k % 26) + text
            k //= 26
            if k == 0:
                break
        yield text
        n += 1


def text(program: Any, sources: bool = True, indent: str = "") -> str:
    """The program as text."""
    names: dict[Any, str] = {}
    fresh = _names()

    def name(v: Any) -> str:
        if hasattr(v, "value"):  # a literal
            return f"{v.value}:{v.type}"
        if v not in names:
            names[v] = next(fresh)
        return names[v]

    inputs = ", ".join(f"{name(v)}: {v.type}" for v in program.inputs)
    rows: list[tuple[str, str]] = []
    for e in program.equations:
        results = ", ".join(f"{name(v)}: {v.type}" for v in e.results) or "()"
        parameters, nested = _parameters(e.op, indent + "  ", sources)
        operands = " ".join(name(v) for v in e.operands)
        line = f"{indent}  {results} = {e.op.name}{parameters} {operands}".rstrip()
        rows.append((line, f"# {e.source}" if sources and e.source is not None else ""))
        rows.extend((n, "") for n in nested)
    width = min(max((len(line) for line, comment in rows if comment), default=0), 100)
    body = [f"{line:<{width}}  {comment}".rstrip() if comment else line for line, comment in rows]
    outputs = ", ".join(name(v) for v in program.outputs)
    return "\n".join(
        [f"{indent}program {program.name}({inputs}) {{", *body, f"{indent}  return {outputs}", f"{indent}}}"]
    )


def _parameters(op: Any, indent: str, sources: bool) -> tuple[str, list[str]]:
    """The op's parameters in brackets, and the programs that it holds on lines of their own."""
    shown, nested = [], []
    for name, value in zip(op.fields, op.parameters, strict=True):
        if _is_program(value):
            nested.append(text(value, sources, indent + "  "))
        elif isinstance(value, tuple) and value and all(map(_is_program, value)):
            nested.extend(text(p, sources, indent + "  ") for p in value)
        elif not hasattr(type(op), name) or value != getattr(type(op), name):
            shown.append(f"{name}={_value(value)}")
    return (f"[{' '.join(shown)}]" if shown else ""), nested


def _is_program(value: Any) -> bool:
    return hasattr(value, "equations")


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({','.join(map(_value, value))})"
    return getattr(value, "name", None) or (f"<{value.__name__}>" if callable(value) else str(value))
