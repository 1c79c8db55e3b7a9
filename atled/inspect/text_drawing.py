"""Draws a picture of shards as text: blocks of color, or a grid of lines without color."""

from __future__ import annotations

import shutil
import textwrap
from typing import Any

from atled.inspect import colors

LABEL = 16  # maximum characters of a label
ROWS = 16  # maximum number of rows of a picture
TALL = 6  # maximum number of rows for which a block is three lines high


def draw(picture: Any, has_color: bool) -> str:
    """A picture as text that fits into the width of the terminal."""
    width = shutil.get_terminal_size((100, 24)).columns
    rows = shown(len(picture.rows.parts), ROWS)
    left = max([len(picture.rows.parts[r]) for r in rows if r is not None])
    left += 1 if left else 0
    columns, cell, has_header = _columns(picture, width - left - 1)
    names = [[_label(picture, r, c) for c in columns] for r in rows]
    out = [row for line in (picture.title, *picture.notes) for row in textwrap.wrap(line, width)]
    if has_header:
        header = ["…" if c is None else picture.columns.parts[c] for c in columns]
        out.append((" " * (left + 1) + " ".join([h.center(cell) for h in header])).rstrip())
    sides = ["…" if r is None else picture.rows.parts[r] for r in rows]
    body = _blocks(picture, rows, columns, names, cell) if has_color else _grid(names, cell)
    for row, line in body:
        out.append((sides[row] if row is not None else "").rjust(left - 1 if left else 0) + " " * bool(left) + line)
    return "\n".join([*out, *_left_out(picture, rows, columns)])


def shown(count: int, room: int) -> list[int | None]:
    """The indices of rows or columns to draw; a None stands for the omitted indices."""
    room = max(room, 3)
    return [*range(count)] if count <= room else [*range(room - 2), None, count - 1]


def _columns(picture: Any, width: int) -> tuple[list[int | None], int, bool]:
    """The columns to draw, the width of each, and whether there is room for a header with their slices."""
    parts = picture.columns.parts
    rows = [r for r in shown(len(picture.rows.parts), ROWS) if r is not None]
    label = max([len(picture.label(r, c, LABEL)) for r in rows for c in {*range(min(8, len(parts))), len(parts) - 1}])
    header = max(map(len, parts))
    wide = max(label + 2, header, 5)
    if header and len(parts) * (wide + 1) <= width:
        return [*range(len(parts))], wide, True
    narrow = min(max(label + 2, 5), max(width - 1, 3))
    if len(parts) * (narrow + 1) <= width or 3 * (wide + 1) > width or not header:
        return shown(len(parts), max(width // (narrow + 1), 1)), narrow, False
    return shown(len(parts), width // (wide + 1)), wide, True


def _label(picture: Any, row: int | None, column: int | None) -> str:
    return "…" if row is None or column is None else picture.label(row, column, LABEL)


def _grid(names: list[list[str]], cell: int) -> list[tuple[int | None, str]]:
    """Lines of text, each with the index of the row whose middle line it is, or None."""
    bars = ["─" * cell] * len(names[0])
    out: list[tuple[int | None, str]] = [(None, f"┌{'┬'.join(bars)}┐")]
    for i, row in enumerate(names):
        out.append((i, f"│{'│'.join([n.center(cell) for n in row])}│"))
        out.append((None, f"├{'┼'.join(bars)}┤" if i < len(names) - 1 else f"└{'┴'.join(bars)}┘"))
    return out


def _blocks(picture: Any, rows: Any, columns: Any, names: Any, cell: int) -> list[tuple[int | None, str]]:
    """Like `_grid`, but with colored blocks instead of borders."""
    out: list[tuple[int | None, str]] = []
    for i, r in enumerate(rows):
        for is_middle in (False, True, False) if len(rows) <= TALL and r is not None else (True,):
            line = ""
            for c, name in zip(columns, names[i]):
                text = (name if is_middle else "").center(cell + 1)
                if r is not None and c is not None:
                    number = picture.number[picture.cells[r, c][0]]
                    text = f"\x1b[38;5;16;48;5;{colors.ansi(number)}m{text}\x1b[0m"
                line += text
            out.append((i if is_middle else None, line))
    return out


def _left_out(picture: Any, rows: list[int | None], columns: list[int | None]) -> list[str]:
    both = [("rows", rows, len(picture.rows.parts)), ("columns", columns, len(picture.columns.parts))]
    return [f"… {n - len(drawn) + 1} of {n} {what} are omitted" for what, drawn, n in both if None in drawn]
