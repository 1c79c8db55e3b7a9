"""`curves`: plots the log of a run with matplotlib."""

from __future__ import annotations

import io
import re
from typing import Any

from atled.core import errors
from atled.train.logs import records


def curves(log: Any, path: Any = None, *, names: Any = None) -> Any:
    """Plot the logged metrics to a PNG, SVG or PDF file; without a path, returns a figure that notebooks show.

    A metric and its evaluation counterpart share a panel. Curves of over 50 values are drawn pale, with a running mean.
    Needs matplotlib: `pip install "atled[plot]"`.

    Args:
        log: the directory of a run, a `JSONL` file, or records as `train.records` returns them.
        names: which metrics to draw; by default all.

    >>> from atled import train
    >>> picture = train.curves([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0, "eval/loss": 1.5}])
    >>> len(picture.figure.axes)
    1
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            errors.explained("train.curves: matplotlib is not installed.", 'pip install "atled[plot]".')
        ) from None
    log_records = log if isinstance(log, list) else records(log)
    points = _points(log_records)
    panels = list(dict.fromkeys([name.removeprefix("eval/") for name in points]))
    panels = [p for p in panels if names is None or p in names or f"eval/{p}" in names]
    if not panels:
        raise ValueError(errors.explained(f"train.curves: nothing to draw; the log has {', '.join(points) or 'none'}."))
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.2 * rows), layout="constrained")
    for i, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, i + 1)
        for name, color in ((panel, "tab:blue"), (f"eval/{panel}", "tab:orange")):
            if name in points:
                _draw(axes, *points[name], name, color)
        axes.set_xlabel("step")
        axes.set_title(panel, fontsize=11)
        axes.grid(alpha=0.3)
        if f"eval/{panel}" in points and panel in points:
            axes.legend(fontsize=9)
    if path is None:
        return Curves(figure)
    figure.savefig(path, dpi=110)
    return None


class Curves:
    """A matplotlib figure, `figure`, that notebooks display with any backend."""

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    def _repr_html_(self) -> str:
        out = io.StringIO()
        self.figure.savefig(out, format="svg")
        width = 72 * self.figure.get_figwidth()
        drawn = re.sub(r'width="[^"]*pt" height="[^"]*pt"', 'width="100%"', out.getvalue(), count=1)
        return f'<div style="max-width:{width:.0f}pt">{drawn[drawn.index("<svg") :]}</div>'  # fits the page


def _points(found: list[dict[str, Any]]) -> dict[str, tuple[list[int], list[float]]]:
    points: dict[str, tuple[list[int], list[float]]] = {}
    for one in found:
        for name, value in one.items():
            if name != "step" and isinstance(value, (int, float)):
                steps, values = points.setdefault(name, ([], []))
                steps.append(one["step"])
                values.append(value)
    return points


def _draw(axes: Any, steps: list[int], values: list[float], name: str, color: str) -> None:
    if len(values) <= 50:
        axes.plot(steps, values, color=color, label=name, marker="o" if len(values) < 20 else None, markersize=3)
        return
    axes.plot(steps, values, color=color, alpha=0.25, linewidth=0.7)
    share = 1 - 1 / max(len(values) / 50, 2)
    mean, weight, smooth = 0.0, 0.0, []
    for value in values:
        if value == value:
            mean, weight = share * mean + (1 - share) * value, share * weight + (1 - share)
        smooth.append(mean / weight if weight else value)
    axes.plot(steps, smooth, color=color, label=name)
