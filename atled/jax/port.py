"""`atled port file.py`: changes the imports of a program that was written for JAX, and lists missing names.

Only imports change: `import jax` becomes `import atled.jax as jax`, `from jax.x import y` becomes
`from atled.jax.x import y`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import pathlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

PAGES = 'the pages "Every name" and "Porting from JAX" of the documentation'


class Missing(NamedTuple):
    """A name of JAX that a program uses and atled does not have."""

    line: int
    name: str


def ported(source: str) -> str:
    """The source of a program with imports of `jax` changed to `atled.jax`.

    >>> print(ported("import jax\\nimport jax.numpy as jnp\\nfrom jax.lax import scan\\n"), end="")
    import atled.jax as jax
    import atled.jax.numpy as jnp
    from atled.jax.lax import scan
    """
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    text = source.encode()  # the columns of syntax tree nodes are in bytes
    for node in sorted(_imports(ast.parse(source)), key=lambda n: (n.lineno, n.col_offset), reverse=True):
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = text[:begin] + _changed(node, text[begin:end].decode()).encode() + text[end:]
    return text.decode()


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if any(map(_is_jax, names)):
            yield node  # type: ignore[misc]


def _is_jax(name: str) -> bool:
    return name == "jax" or name.startswith("jax.")


def _changed(node: ast.Import | ast.ImportFrom, text: str) -> str:
    if isinstance(node, ast.ImportFrom):
        head, _, rest = text.partition("import")
        return head.replace("jax", "atled.jax", 1) + "import" + rest
    parts = []
    for alias in node.names:
        ours = "atled." + alias.name
        if not _is_jax(alias.name):
            parts.append(alias.name + (f" as {alias.asname}" if alias.asname else ""))
        elif alias.asname:
            parts.append(f"{ours} as {alias.asname}")
        elif alias.name == "jax":
            parts.append("atled.jax as jax")
        else:  # `import jax.numpy` binds jax
            parts += [ours, "atled.jax as jax"]
    return "import " + ", ".join(dict.fromkeys(parts))


def missing(source: str) -> list[Missing]:
    """The JAX names that a program uses, directly or through imported modules, but atled lacks.

    >>> missing("import jax\\njax.grad\\njax.no_such_function(1)\\n")
    [Missing(line=3, name='jax.no_such_function')]
    """
    tree = ast.parse(source)
    bound: dict[str, str] = {}  # JAX's full names by name in the program
    absent: list[Missing] = []
    for node in _imports(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                bound[alias.asname or alias.name] = full
                if alias.name != "*" and not _is_here(full):
                    absent.append(Missing(node.lineno, full))
            continue
        for alias in node.names:
            if _is_jax(alias.name):
                bound[alias.asname or "jax"] = alias.name if alias.asname else "jax"
                if not _is_here(alias.name):
                    absent.append(Missing(node.lineno, alias.name))
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            full = _path(node, bound)
            if full is not None and (name := _first_missing(full)) is not None:
                absent.append(Missing(node.lineno, name))
    return sorted(dict.fromkeys(absent))


def _path(node: ast.Attribute, bound: dict[str, str]) -> str | None:
    """The full name of an attribute, or None: `jnp.linalg.norm` is `jax.numpy.linalg.norm`."""
    parts, value = [node.attr], node.value
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name) or value.id not in bound:
        return None
    return ".".join([bound[value.id], *reversed(parts)])


def _first_missing(full: str) -> str | None:
    """The shortest prefix of a dotted name that atled lacks, or None."""
    parts = full.split(".")
    for n in range(1, len(parts) + 1):
        value = _find(".".join(parts[:n]))
        if value is _NOTHING:
            return ".".join(parts[:n])
        if not isinstance(value, ModuleType):
            return None
    return None


_NOTHING = object()


def _find(full: str) -> Any:
    head, _, name = f"atled.{full}".rpartition(".")
    try:
        if not head:
            return importlib.import_module(name)
        return getattr(importlib.import_module(head), name)
    except (ImportError, AttributeError):
        try:
            return importlib.import_module(f"{head}.{name}")
        except ImportError:
            return _NOTHING


def _is_here(full: str) -> bool:
    return _first_missing(full) is None


def add(commands: Any) -> None:
    """Add the command `port` to the parser."""
    parser = commands.add_parser("port", help="change the imports of programs for JAX, and list missing names")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", action="store_true", help="change the files; by default, only show the changes")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Port files; the exit status is 1 if names are missing."""
    count = 0
    for path in options.files:
        try:
            source = path.read_text()
            changed, gone = ported(source), missing(source)
        except (OSError, SyntaxError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        if options.write:
            path.write_text(changed)
        else:
            names = str(path), f"{path} for atled"
            sys.stdout.writelines(difflib.unified_diff(source.splitlines(True), changed.splitlines(True), *names, n=0))
        print(_report(path, source != changed, gone, options.write))
        count += len(gone)
    return 1 if count else 0


def _report(path: pathlib.Path, is_changed: bool, gone: Sequence[Missing], is_written: bool) -> str:
    what = "nothing to change" if not is_changed else "imports changed" if is_written else "imports would change"
    if not gone:
        return f"{path}: {what}; no names are missing."
    lines = [f"{path}: {what}; {len(gone)} missing:"]
    lines += [f"  line {m.line}: {m.name}" for m in gone]
    if any([m.name.startswith("jax._src") for m in gone]):
        lines.append("  jax._src is private to JAX; atled.jax._src has some of its names.")
    lines.append(f"  for reasons and replacements, see {PAGES}.")
    return "\n".join(lines)
