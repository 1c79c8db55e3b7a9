"""Draws a picture of shards as SVG."""

from __future__ import annotations

from html import escape
from typing import Any

from atled.inspect import colors, text_drawing

CELL, HEIGHT = 72, 40  # width and height of a block in pixels
LEFT, LINE = 84, 18  # width of the row labels, and height of a line of text
MOST = 32  # maximum number of rows, and of columns
LABEL = 11  # maximum characters of a label


def draw(picture: Any) -> str:
    """A picture as SVG text."""
    rows = text_drawing.shown(len(picture.rows.parts), MOST)
    columns = text_drawing.shown(len(picture.columns.parts), MOST)
    lines = [picture.title, *picture.notes]
    has_rows = any([picture.rows.parts[r] for r in rows if r is not None])
    left = LEFT if has_rows else 8
    top = LINE * len(lines) + 12 + (LINE if any(picture.columns.parts) else 0)
    width = max(left + CELL * len(columns) + 8, 8 * max(map(len, lines)) + 16)
    height = top + HEIGHT * len(rows) + 8
    out = [_text(8, LINE * (i + 1), line, anchor="start") for i, line in enumerate(lines)]
    for i, c in enumerate(columns):
        out.append(_text(left + CELL * (i + 0.5), top - 6, "…" if c is None else picture.columns.parts[c], 11))
    for j, r in enumerate(rows):
        middle = top + HEIGHT * (j + 0.5) + 4
        out.append(_text(left - 6, middle, "…" if r is None else picture.rows.parts[r], 11, "end"))
        for i, c in enumerate(columns):
            x, y = left + CELL * i, top + HEIGHT * j
            if r is None or c is None:
                out.append(_text(x + CELL / 2, middle, "…"))
                continue
            label = picture.label(r, c, LABEL)
            fill = "#{:02x}{:02x}{:02x}".format(*colors.color(picture.number[picture.cells[r, c][0]]))
            out.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{HEIGHT}" fill="{fill}" stroke="white"/>')
            out.append(_text(x + CELL / 2, middle, label, 13 if len(label) < 9 else 10, fill="black"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif">' + "".join(out) + "</svg>"
    )


def _text(x: float, y: float, text: str, size: int = 13, anchor: str = "middle", fill: str = "currentColor") -> str:
    if not text:
        return ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
