"""Plots the results of the scaling benchmarks."""

from __future__ import annotations

import pathlib
from typing import Any

BLUE, GREEN, RED, GREY = "#3b7dd8", "#2e9e5b", "#d8573b", "#777777"
KINDS = {
    "all-reduce": BLUE,
    "all-gather": GREEN,
    "reduce-scatter": RED,
    "all-to-all": "#c9a227",
    "collective-permute": GREY,
}


def draw(found: dict[str, Any], path: pathlib.Path) -> None:
    """Plot a row of panels for each measured section: virtual devices, processes, chips."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = [(name, draw_row) for name, draw_row in ROWS.items() if found.get(name)]
    figure, panels = plt.subplots(len(parts), 3, figsize=(13, 3.9 * len(parts)), squeeze=False)
    for row, (name, draw_row) in zip(panels, parts):
        draw_row(row, found[name])
    figure.suptitle("A 12-layer transformer's step on virtual CPU devices and in processes; steps for TPU v5p")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def _devices(panels: Any, rows: list[dict[str, Any]]) -> None:
    counts = [r["devices"] for r in rows]
    _line(panels[0], counts, [r["work"] for r in rows], "compile time, CPU seconds of all cores", BLUE)
    _line(panels[1], counts, [r["launch"] * 1e3 for r in rows], "host time of a launch, ms", GREEN, is_log=True)
    _line(panels[2], counts, [r["needed"] / 1e6 for r in rows], "memory of each device, MB", RED)


def _worlds(panels: Any, rows: list[dict[str, Any]]) -> None:
    labels = [f"{r['processes']}\n{r['network']}" for r in rows]
    _bars(panels[0], labels, [r["joining"] for r in rows], "processes: initialization, seconds", BLUE)
    _bars(panels[1], labels, [r["first"] for r in rows], "processes: first step, seconds", GREEN)
    _bars(panels[2], labels, [r["step"] * 1e3 for r in rows], "processes: step over Gloo, ms", RED)


def _chips(panels: Any, rows: list[dict[str, Any]]) -> None:
    labels = [f"{r['model']}\n{r['devices']} chips" for r in rows]
    _bars(panels[0], labels, [r["seconds"] for r in rows], "trace, lower and compile, seconds", BLUE)
    _bars(panels[1], labels, [r["needed"] / 1e9 for r in rows], "memory of each chip, GB", RED)
    _stacked(panels[2], labels, [r["collectives"] for r in rows])


ROWS = {"devices": _devices, "worlds": _worlds, "chips": _chips}


def _line(axes: Any, x: list[int], y: list[float], title: str, color: str, is_log: bool = False) -> None:
    axes.plot(x, y, "o-", color=color)
    axes.set_xscale("log", base=2)
    axes.set_xticks(x, [str(n) for n in x])
    axes.minorticks_off()
    if is_log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.2 * max(y, default=1))
    for a, b in zip(x, y):
        axes.annotate(
            f"{b:.0f}" if b >= 100 else f"{b:.3g}",
            (a, b),
            textcoords="offset points",
            xytext=(0, 7),
            ha="center",
            fontsize=8,
        )
    axes.set_xlabel("devices")
    axes.set_title(title, fontsize=10)
    axes.margins(x=0.12, y=0.2)


def _bars(axes: Any, labels: list[str], y: list[float], title: str, color: str) -> None:
    axes.bar(range(len(y)), y, color=color, width=0.6)
    for i, v in enumerate(y):
        axes.text(i, v, f"{v:.3g}", ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(y)), labels, fontsize=8)
    axes.set_title(title, fontsize=10)
    axes.margins(y=0.15)


def _stacked(axes: Any, labels: list[str], tables: list[list[dict[str, Any]]]) -> None:
    """Plot a bar for each program: the bytes of its collectives, stacked by kind."""
    sent = [{kind: sum([c["bytes"] for c in t if c["kind"] == kind]) / 1e9 for kind in KINDS} for t in tables]
    bottom = [0.0] * len(labels)
    for kind, color in KINDS.items():
        values = [s[kind] for s in sent]
        axes.bar(range(len(values)), values, bottom=bottom, color=color, width=0.6, label=kind)
        bottom = [a + b for a, b in zip(bottom, values)]
    for i, v in enumerate(bottom):
        axes.text(i, v, f"{v:.3g}", ha="center", va="bottom", fontsize=8)
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.set_title("collectives of a step, GB on each chip", fontsize=10)
    axes.set_ylim(0, 1.6 * max(bottom, default=1))
    axes.legend(fontsize=7, ncols=2, loc="upper left")
