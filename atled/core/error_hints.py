"""Rewrites the line that raised an error into one that works, for the `try:` line of the error message.

Each function takes the statement at a source location and the expression that was running, and returns the line with
that expression changed. The result is an empty string if the line cannot be rewritten, for example because the
expression spans several lines or the file was deleted.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from atled.core import source
from atled.core.source import Source


class Line(NamedTuple):
    """A source line: its text, the syntax tree of its statement, and the columns of the running expression."""

    text: str
    statement: ast.stmt
    start: int
    end: int
    number: int  # the line number within the tree

    def around(self) -> Iterator[Any]:
        """The syntax nodes that contain the running expression, innermost first."""
        nodes: list[Any] = [n for n in ast.walk(self.statement) if self._holds(n)]
        yield from sorted(nodes, key=lambda n: n.end_col_offset - n.col_offset)
        yield self.statement

    def _holds(self, node: Any) -> bool:
        if not isinstance(node, ast.expr) or node.lineno != self.number or node.end_lineno != self.number:
            return False
        return node.col_offset <= self.start and self.end <= (node.end_col_offset or 0)

    def of(self, node: Any) -> str:
        """The text of a node."""
        return self.text[node.col_offset : node.end_col_offset]

    def operand(self, node: Any) -> str:
        """The text of a node, in parentheses if needed."""
        text = self.of(node)
        return text if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"

    def with_(self, node: Any, new: str) -> str:
        """The line with a node replaced, without its comment."""
        return _without_comment(self.text[: node.col_offset] + new + self.text[node.end_col_offset :])


def line_at(place: Source | None) -> Line | None:
    """The statement at a source location, if it is on one line; else the expression that was running, if that is on one
    line.
    """
    if place is None:
        return None
    number, end_number, start, end = place.span
    full = linecache.getline(place.file, number or 0).rstrip("\n")
    text = full.strip()
    if number is None or number != end_number or start is None or end is None or not text.isascii():
        return None
    indent = len(full) - len(full.lstrip())
    part = " " * (start - indent) + full[start:end]
    for before, code, after in (
        ("", text, ""),
        ("", text, "\n pass"),
        ("if 1: pass\n", text, "\n pass"),  # elif
        ("(\n", part, "\n)"),
    ):
        try:
            node: Any = ast.parse(before + code + after).body[0]
        except (SyntaxError, IndexError):
            continue
        statement = node.orelse[0] if before.startswith("if") else node
        return Line(text, statement, start - indent, end - indent, 2 if before else 1)
    return None


def _without_comment(text: str) -> str:
    return text.split("  #")[0].strip()


def numpy_name(place: Source | None) -> str:
    """The user's name for `atled.numpy`, such as `jnp`."""
    lines = linecache.getlines(place.file) if place is not None else []
    match = re.search(r"^\s*(?:import atled\.numpy|from atled import numpy) as (\w+)", "".join(lines), re.MULTILINE)
    return match[1] if match else "numpy"


def _first(change: Callable[[Line, Any, str], str]) -> str:
    """The user's line, rewritten by the first call of `change`, on the nodes around the location, that succeeds."""
    place = source.here()
    line = line_at(place)
    if line is None:
        return ""
    name = numpy_name(place)
    return next((modified for node in line.around() if (modified := change(line, node, name))), "")


def truth() -> str:
    """The line rewritten to avoid the truth value of a boolean array."""
    return _first(_truth)


_BUILTIN = {"max": "maximum", "min": "minimum", "any": "any", "all": "all", "sorted": "sort"}


def _truth(line: Line, node: Any, name: str) -> str:
    match node:
        case ast.BoolOp():
            sign = " & " if isinstance(node.op, ast.And) else " | "
            return line.with_(node, sign.join([line.operand(v) for v in node.values]))
        case ast.UnaryOp(op=ast.Not()):
            return line.with_(node, f"~{line.operand(node.operand)}")
        case ast.Compare(ops=[_, _, *_]):
            ends = [node.left, *node.comparators]
            pairs = [line.text[a.col_offset : b.end_col_offset] for a, b in itertools.pairwise(ends)]
            return line.with_(node, " & ".join([f"({pair})" for pair in pairs]))
        case ast.IfExp():
            parts = [line.of(part) for part in (node.test, node.body, node.orelse)]
            return line.with_(node, f"{name}.where({', '.join(parts)})")
        case ast.Call(func=ast.Name(id=called)) if called in _BUILTIN:
            return line.with_(node.func, f"{name}.{_BUILTIN[called]}")
        case ast.While():
            return f"lax.while_loop(lambda ...: {line.of(node.test)}, step, start), where step runs one iteration."
        case ast.Assert():
            return "check the value outside of the function, or print it with debug.print."
    return ""


def number() -> str:
    """The line without the conversion of an array to a Python number."""
    return _first(_number)


def _number(line: Line, node: Any, name: str) -> str:
    match node:
        case ast.Call(func=ast.Name(id="int" | "float" | "complex" as kind), args=[x]):
            return line.with_(node, f"{line.operand(x)}.astype({kind})")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=attr)) if hasattr(np, attr):
            return line.with_(node.func, f"{name}.{attr}")
        case ast.Call(func=ast.Attribute(value=x, attr="item" | "tolist"), args=[]):
            return line.with_(node, line.of(x))
    return ""


def integer() -> str:
    """The line without the conversion of an array to a Python integer."""
    return _first(_integer)


def _integer(line: Line, node: Any, name: str) -> str:
    match node:
        case ast.Subscript(value=x):
            return line.with_(x, f"{name}.asarray({line.of(x)})")
        case ast.Call(func=ast.Name(id="range")):
            return "lax.fori_loop instead of range, or make the argument static: jit(f, static_argnames=...)."
    return _number(line, node, name)


def of_our_own() -> str:
    """The line with NumPy's function replaced by the one in `atled.numpy`."""
    return _first(_of_our_own)


def _of_our_own(line: Line, node: Any, name: str) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy") as x)) if name != x.id:
            return line.with_(x, name)
    return ""


def with_operand(number: int, template: str, function: str = "") -> str:
    """The line with one operand of an operator, or one argument of a call, changed.

    In `template`, `{}` is the operand's source text and `{numpy}` the user's name for `atled.numpy`. Only calls of
    `function` are changed, if it is given.
    """

    def change(line: Line, node: Any, name: str) -> str:
        if (node.col_offset, node.end_col_offset) != (line.start, line.end):
            return ""
        match node:
            case ast.BinOp(left=x, right=y) | ast.Compare(left=x, comparators=[y]):
                operands = [x, y]
            case ast.Call(func=called, args=operands) if line.of(called).endswith(function):
                pass
            case _:
                return ""
        if number >= len(operands) or isinstance(operands[number], ast.Starred):
            return ""
        old = operands[number]
        text = line.operand(old) if template.startswith("{}") else line.of(old)
        return line.with_(old, template.format(text, numpy=name))

    return _first(change)


def called_with(*arguments: str, function: str) -> str:
    """The line with new arguments in its call of `function`; `{0}`, `{1}`, ... stand for the existing ones."""

    def change(line: Line, node: Any, name: str) -> str:
        if not isinstance(node, ast.Call) or not node.args or not line.of(node.func).endswith(function):
            return ""
        old = [line.of(x) for x in node.args]
        try:
            new = [text.format(*old, numpy=name) for text in arguments]
        except IndexError:
            return ""
        new += [line.of(k) for k in node.keywords]
        at = node.func.end_col_offset or 0
        return _without_comment(line.text[:at] + f"({', '.join(new)})" + line.text[node.end_col_offset :])

    return _first(change)


def called_also_with(keyword: str, function: str) -> str:
    """The line with one more keyword argument in its call of `function`."""

    def change(line: Line, node: Any, name: str) -> str:
        if not isinstance(node, ast.Call) or not line.of(node.func).endswith(function):
            return ""
        given = [line.of(x) for x in (*node.args, *node.keywords)]
        return line.with_(node, f"{line.of(node.func)}({', '.join([*given, keyword])})")

    return _first(change)


def chosen() -> str:
    """The line with a `cond` of two values rewritten as a `where`."""
    return _first(_chosen)


def _chosen(line: Line, node: Any, name: str) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr="cond"), args=[_, _, _], keywords=[]):
            return line.with_(node.func, f"{name}.where")
    return ""


def masked() -> str:
    """The line with a mask index replaced by a `where` that is zero outside the mask."""
    return _first(_masked)


def _masked(line: Line, node: Any, name: str) -> str:
    match node:
        case ast.Subscript(value=x, slice=mask):
            return line.with_(node, f"{name}.where({line.of(mask)}, {line.of(x)}, 0)")
    return ""


def listed() -> str:
    """The line with the list argument of its call converted to an array."""
    return _first(_listed)


def _listed(line: Line, node: Any, name: str) -> str:
    match node:
        case ast.Call(args=args):
            lists = [x for x in args if isinstance(x, (ast.List, ast.Tuple, ast.ListComp))] or args
            return line.with_(lists[0], f"{name}.asarray({line.of(lists[0])})") if len(lists) == 1 else ""
        case ast.BinOp(left=x, right=y) | ast.Compare(left=x, comparators=[y]):
            lists = [v for v in (x, y) if isinstance(v, (ast.List, ast.Tuple, ast.ListComp))]
            return line.with_(lists[0], f"{name}.asarray({line.of(lists[0])})") if len(lists) == 1 else ""
    return ""


_UPDATES = {ast.Add: "add({})", ast.Sub: "add(-{})", ast.Mult: "multiply({})", ast.Div: "divide({})",
            ast.Pow: "power({})"}  # fmt: skip


def update() -> str:
    """An item assignment rewritten as `x.at[i].set(v)`, or a deletion as a call of `delete`."""
    place = source.here()
    line = line_at(place)
    match line.statement if line is not None else None:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            call = f"set({line.of(value)})"  # type: ignore[union-attr]
        case ast.AugAssign(target=ast.Subscript() as target, value=value, op=op) if type(op) in _UPDATES:
            inner = line.operand(value) if isinstance(op, ast.Sub) and not isinstance(value, ast.Constant) else ""  # type: ignore[union-attr]
            call = _UPDATES[type(op)].format(inner or line.of(value))  # type: ignore[union-attr]
        case ast.Delete(targets=[ast.Subscript(slice=ast.Constant() | ast.Name() | ast.UnaryOp()) as target]):
            x, i = line.of(target.value), line.of(target.slice)  # type: ignore[union-attr]
            return f"{x} = {numpy_name(place)}.delete({x}, {i})"
        case _:
            return ""
    x, i = line.of(target.value), line.of(target.slice)  # type: ignore[union-attr]
    return f"{x} = {x}.at[{i}].{call}"
