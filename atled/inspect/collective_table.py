"""Collectives of compiled programs: `collectives` lists them in a table, `expect` asserts their number."""

from __future__ import annotations

import html
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from atled.core.sharding import Mesh
from atled.inspect.collective_parser import Collective, read
from atled.inspect.hlo_parser import Line
from atled.staging.jit import jit


class Collectives:
    """The collectives of a compiled program, in `rows`. `str` returns a table; `expect` is for tests.

    >>> import atled
    >>> print(atled.inspect.collectives(lambda x: x * 2)(atled.numpy.ones(8)).expect(all_reduce=0))
    <lambda> runs on one device: no collectives
    """

    def __init__(self, name: str, mesh: Mesh | None, rows: Sequence[Collective]) -> None:
        self.name, self.mesh, self.rows = name, mesh, tuple(rows)

    def count(self, kind: str) -> int:
        """The number of collectives of a kind, such as "all-reduce"."""
        return sum([row.kind == kind for row in self.rows])

    def expect(
        self, *, all_reduce: int | None = None, all_gather: int | None = None, reduce_scatter: int | None = None,
        all_to_all: int | None = None, collective_permute: int | None = None,
    ) -> Collectives:  # fmt: skip
        """Raise AssertionError unless each kind has the given number of collectives, where None allows any number."""
        counts = {
            "all-reduce": all_reduce, "all-gather": all_gather, "reduce-scatter": reduce_scatter,
            "all-to-all": all_to_all, "collective-permute": collective_permute,
        }  # fmt: skip
        wrong = [(k, n, self.count(k)) for k, n in counts.items() if n is not None and n != self.count(k)]
        if wrong:
            expected = ", ".join([f"{n} {kind}" for kind, n, _ in wrong])
            got = ", ".join([f"{n} {kind}" for kind, _, n in wrong])
            raise AssertionError(f"inspect.expect: {self.name} must have {expected}; got {got}.\n{self}")
        return self

    def totals(self) -> dict[tuple[Any, ...], tuple[int, bool]]:
        """Mesh axes -> bytes per device over all loop iterations, and whether all trip counts are known."""
        totals: dict[tuple[Any, ...], tuple[int, bool]] = {}
        for row in self.rows:
            total, is_known = totals.get(row.axes, (0, True))
            totals[row.axes] = (total + row.bytes * (row.times or 1), is_known and row.times is not None)
        return totals

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if not self.rows:
            return self._title()
        table = [HEADER, *[cells for cells, _ in self._groups()]]
        widths = [max([len(row[i]) for row in table]) for i in range(len(HEADER) - 1)]
        indent = sum(widths) + 2 * len(widths)
        room = max(shutil.get_terminal_size((140, 24)).columns - indent, 40)
        out = [self._title(), "", _joined(HEADER, widths)]
        for cells, notes in self._groups():
            why, *more = textwrap.wrap(cells[-1], room)
            out.append(_joined((*cells[:-1], why), widths))
            notes = [textwrap.shorten(note, room - 2, placeholder=" …") for note in notes]
            out += [" " * indent + row for row in (*more, *[f"  {note}" for note in notes])]
        return "\n".join([*out, "", *self._totals()])

    def _repr_html_(self) -> str:
        """The table as HTML for notebooks."""
        cell = '<td style="text-align:left;vertical-align:top">{}</td>'
        rows = []
        for cells, notes in self._groups():
            text = [html.escape(c) for c in cells]
            text[-1] += "".join([f"<br><code>{html.escape(note)}</code>" for note in notes])
            rows.append(f"<tr>{''.join([cell.format(c) for c in text])}</tr>")
        if not rows:
            return f"<p>{html.escape(self._title())}</p>"
        head = "".join([f'<th style="text-align:left">{c}</th>' for c in HEADER])
        foot = "<br>".join([html.escape(line) for line in self._totals()])
        return f"<p>{html.escape(self._title())}</p><table><tr>{head}</tr>{''.join(rows)}</table><p>{foot}</p>"

    def _title(self) -> str:
        if self.mesh is None:
            return f"{self.name} runs on one device: no collectives"
        return (
            f"{_counted(len(self.rows), 'collective') if self.rows else 'no collectives'} in {self.name} on {self.mesh}"
        )

    def _groups(self) -> Iterator[tuple[tuple[str, ...], list[str]]]:
        """The cells of each row of the table, and the notes below the row; equal rows are merged."""
        equal: dict[Any, int] = {}
        for row in self.rows:
            equal[row] = equal.get(row, 0) + 1
        for row, n in equal.items():
            times = f"{n} x " if n > 1 else ""
            times += "?" if row.times is None else f"{row.times}"
            where = ", ".join(_places(row.lines)) or (f"argument {row.argument}" if row.argument else "-")
            notes = [line.text for line in row.lines if line.text] + ([f"in {row.loop}"] if row.loop else [])
            yield (row.kind, row.over, str(row.devices), _bytes(row.bytes), times, where, row.why), notes

    def _totals(self) -> list[str]:
        totals = self.totals().items()
        names = [", ".join(map(str, axes)) or "nothing" for axes, _ in totals]
        sizes = [("" if known else "at least ") + _bytes(n) for _, (n, known) in totals]
        width = max(map(len, names))
        return [f"total over {name:{width}}  {size} on each device" for name, size in zip(names, sizes)]


HEADER = ("kind", "over", "devices", "bytes", "times", "where", "why")


def collectives(f: Callable[..., Any]) -> Callable[..., Collectives]:
    """A function of f's arguments that compiles `f` for them, without running it, and returns its `Collectives`.

    Each row has the kind, the mesh axes, bytes on each device, the user's line, and the reason for the collective.
    Arguments may be arrays, or `ShapeDtypeStruct`s with shardings.

    >>> import atled
    >>> n = atled.device_count()
    >>> mesh = atled.make_mesh((n,), ("data",))
    >>> split = atled.sharding.NamedSharding(mesh, atled.sharding.P("data"))
    >>> x = atled.device_put(atled.numpy.ones(8 * n), split)
    >>> found = collectives(lambda x: x.sum())(x)
    >>> [row.axes for row in found.rows] == ([("data",)] if n > 1 else [])
    True
    """

    def show(*args: Any, **kwargs: Any) -> Collectives:
        lower = getattr(f, "lower", None) or jit(f).lower
        compiled = lower(*args, **kwargs).compile_anew()
        name = getattr(f, "__name__", None) or type(f).__name__
        return Collectives(name, compiled.mesh, list(read(compiled.as_text(), compiled.mesh)))

    if not callable(f):
        raise TypeError(
            f"inspect.collectives: expected a function; got {type(f).__name__}.\n  try: inspect.collectives(f)(*args)."
        )
    return show


def expect(
    f: Callable[..., Any], *, all_reduce: int | None = None, all_gather: int | None = None,
    reduce_scatter: int | None = None, all_to_all: int | None = None, collective_permute: int | None = None,
) -> Callable[..., Collectives]:  # fmt: skip
    """A function of f's arguments that raises AssertionError, with the table, unless `f` has this many collectives.

    None, the default, allows any number.

    >>> import atled
    >>> _ = expect(lambda x: x * 2, all_reduce=0, all_gather=0)(atled.numpy.ones(8))
    """
    show = collectives(f)

    def check(*args: Any, **kwargs: Any) -> Collectives:
        return show(*args, **kwargs).expect(
            all_reduce=all_reduce, all_gather=all_gather, reduce_scatter=reduce_scatter,
            all_to_all=all_to_all, collective_permute=collective_permute,
        )  # fmt: skip

    return check


def _places(lines: Sequence[Line]) -> list[str]:
    """Source lines as text; consecutive lines of a file have its name once."""
    before, out = None, []
    for line in lines:
        out.append(str(line) if line.file != before else str(line.number))
        before = line.file
    return out


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    is_number = (False, False, True, True, True, False, False)
    padded = [c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, is_number)]
    return "  ".join([*padded, cells[-1]]).rstrip()


def _bytes(n: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


def _counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
