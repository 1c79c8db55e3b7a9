"""`python -m benchmarks.growth`: growth of time and memory with layers, batch size, parameters and equations.

Every row runs in a new process, to measure its peak memory and CPU time separately. The command prints the rows, writes
them as JSON, plots them, and checks the growth of the compile time.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

RESULTS = pathlib.Path(__file__).parent / "results"
LAYERS, BATCHES, EQUATIONS = (12, 24, 48), (1, 2, 4, 8, 16, 32), (1_000, 10_000, 100_000)
SIZES = ((12, 768), (24, 768), (24, 1024), (28, 1024))  # layers and width: 1.2 to 4.1 · 10⁸ parameters
FOURFOLD = 4.3  # allowed ratio of compile times of an unrolled model with 48 and 12 layers
BELOW = ("atled, scanned", "flax, unrolled")  # lines with their labels below
BLUE, GREEN, GREY = "#3b7dd8", "#2e9e5b", "#777777"


# -- measurements in a process ----------------------------------------------------------------------------------------


def layers(library: str, count: int, form: str) -> dict[str, Any]:
    """Trace, lower and compile a train step of GPT-2 small from shapes, without allocating arrays."""
    from benchmarks import layers as described

    lib: Any = described.Ours() if library == "atled" else described.Flax()
    eval_shape = lib.top.eval_shape if library == "atled" else lib.nnx.eval_shape
    steps = []

    def made() -> Any:
        model, loss, _ = described.gpt2(lib, count, scanned=form == "scanned")
        step, state = lib.step(model, loss)
        steps.append(step)
        return state

    state = eval_shape(made)
    tokens = lib.top.ShapeDtypeStruct((4, 129), np.int32)
    if library == "atled":
        lib.top.config.update("cache", False)
    began = time.perf_counter()
    lowered = steps[-1].lower(state, tokens)
    lowering = time.perf_counter() - began
    began, work = time.perf_counter(), time.process_time()
    lowered.compile()
    return {"lower": lowering, "compile": time.perf_counter() - began, "work": time.process_time() - work}


def batch(size: int) -> dict[str, Any]:
    """Time and temporary memory of a step of GPT-2 small, with sequences of 128 tokens."""
    step, state, ids = _ready(12, 768, size, 128)
    needed = step.lower(state, ids).compile().memory_analysis().temp_size_in_bytes
    seconds = []
    for _ in range(4):
        began = time.perf_counter()
        state, out = step(state, ids)
        float(out["loss"])
        seconds.append(time.perf_counter() - began)
    return {"step": min(seconds[1:]), "temporary": needed}


def parameters(count: int, width: int) -> dict[str, Any]:
    """Peak memory of creating a model and of two steps, and the size of values, moments and gradients."""
    import atled

    before = _peak()
    step, state, ids = _ready(count, width, 1, 64)
    made = _peak() - before
    number = sum(x.size for x in atled.tree.leaves(state.model))
    for _ in range(2):
        state, out = step(state, ids)
        float(out["loss"])
    return {"parameters": number, "made": made, "peak": _peak() - before, "parts": 16 * number}


def equations(count: int) -> dict[str, Any]:
    """Times for a loop in Python, as in simulations, with three equations per iteration."""
    import atled
    import atled.numpy as jnp

    atled.settings.update("cache", False)

    def simulated(h: Any, w: Any) -> Any:
        for i in range(count // 3):
            h = jnp.tanh(w * h + i)
        return h

    start, weights = jnp.ones(16), jnp.ones(16)
    began = time.perf_counter()
    lowered = atled.jit(simulated).lower(start, weights)
    lowering = time.perf_counter() - began
    began, work = time.perf_counter(), time.process_time()
    compiled = lowered.compile()
    compiling, work = time.perf_counter() - began, time.process_time() - work
    began = time.perf_counter()
    atled.block_until_ready(compiled(start, weights))
    return {"lower": lowering, "compile": compiling, "work": work, "run": time.perf_counter() - began}


def _ready(count: int, width: int, batch: int, length: int) -> Any:
    """A train step of a GPT-2, its state, and tokens."""
    from benchmarks import layers as described

    lib = described.Ours()
    model, loss, (ids,) = described.gpt2(lib, count, width, batch, length)
    step, state = lib.step(model, loss)
    return step, state, ids


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# -- the table --------------------------------------------------------------------------------------------------------


def measured(what: str, *arguments: Any) -> dict[str, Any]:
    """The row that a new process measures, printed and returned; {} if it fails."""
    command = [sys.executable, "-m", "benchmarks.growth", "--row", json.dumps([what, *arguments])]
    done = subprocess.run(command, capture_output=True, text=True)
    name = f"{what:<11}{' '.join(map(str, arguments)):<22}"
    if done.returncode:
        print(f"{name}failed: {' '.join(done.stderr.strip().splitlines()[-1:])}", flush=True)
        return {}
    row = json.loads(done.stdout.splitlines()[-1])
    shown = {k: f"{v / 1e6:,.0f} M" if v > 1e5 else f"{v:.3g} s" for k, v in row.items()}
    print(name + "".join(f"{k + ' ' + v:>22}" for k, v in shown.items()), flush=True)
    return row


def table(parts: list[str]) -> dict[str, Any]:
    """All rows of the chosen parts."""
    found: dict[str, Any] = {}
    if "layers" in parts:
        kinds = [(library, form) for library in ("atled", "flax") for form in ("unrolled", "scanned")]
        found["layers"] = {
            f"{library}, {form}": [measured("layers", library, n, form) for n in LAYERS] for library, form in kinds
        }
    if "batch" in parts:
        found["batch"] = [measured("batch", n) for n in BATCHES]
    if "parameters" in parts:
        found["parameters"] = [measured("parameters", *size) for size in SIZES]
    if "equations" in parts:
        found["equations"] = [measured("equations", n) for n in EQUATIONS]
    return found


def draw(found: dict[str, Any], path: pathlib.Path) -> None:
    """Plot a panel for each part."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, 2, figsize=(10, 7.5))
    panels = grid.ravel()
    looks = {
        "atled, unrolled": (BLUE, "-"), "atled, scanned": (GREEN, "-"),
        "flax, unrolled": (GREY, "-"), "flax, scanned": (GREY, "--"),
    }  # fmt: skip
    for name, rows in found["layers"].items():
        color, style = looks[name]
        _line(panels[0], LAYERS, [r.get("work") for r in rows], color, name, style, name in BELOW)
    _titled(panels[0], "compile a GPT-2 train step, CPU seconds", "layers")
    panels[0].legend(fontsize=8)
    rows = found["batch"]
    _line(panels[1], BATCHES, [r["step"] / n for r, n in zip(rows, BATCHES)], BLUE, "seconds")
    _titled(panels[1], "GPT-2 small: seconds per step and sequence", "batch")
    rows = found["parameters"]
    millions = [round(r["parameters"] / 1e6) for r in rows]
    _line(panels[2], millions, [r["parts"] / 1e9 for r in rows], GREY, "values, moments, gradients", "--", True)
    _line(panels[2], millions, [r["peak"] / 1e9 for r in rows], BLUE, "peak memory of the process")
    _titled(panels[2], "memory of two train steps, GB", "parameters, millions")
    panels[2].legend(fontsize=8)
    rows = found["equations"]
    for what, color in (("lower", GREEN), ("compile", BLUE)):
        _line(panels[3], EQUATIONS, [r[what] for r in rows], color, "trace and lower" if what == "lower" else what)
    panels[3].set_yscale("log")
    panels[3].set_ylim(top=200)
    _titled(panels[3], "an unrolled Python loop: seconds", "equations")
    panels[3].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)


def _line(axes: Any, x: Any, y: list[Any], color: str, label: str, style: str = "-", is_below: bool = False) -> None:
    axes.plot(x, y, "o" + style, color=color, label=label)
    for a, b in zip(x, y):
        if b is not None:
            above = -12 if is_below else 6
            text = f"{b:.2g}" if b < 10 else f"{b:.0f}"
            axes.annotate(
                text, (a, b), textcoords="offset points", xytext=(0, above), ha="center", fontsize=7, color=color
            )


def _titled(axes: Any, title: str, below: str) -> None:
    axes.set_xscale("log")
    ticks = axes.lines[0].get_xdata()
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks], fontsize=8)
    axes.minorticks_off()
    if axes.get_yscale() == "linear":
        axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
    axes.margins(x=0.12)
    axes.set_xlabel(below)
    axes.set_title(title, fontsize=10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="layers,batch,parameters,equations", help="comma separated")
    parser.add_argument("--row", help="measure this row in this process, and print it as JSON")
    options = parser.parse_args()
    if options.row:
        what, *arguments = json.loads(options.row)
        rows = {"layers": layers, "batch": batch, "parameters": parameters, "equations": equations}
        print(json.dumps(rows[what](*arguments)))
        return
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "growth.json"
    found = {**(json.loads(path.read_text()) if path.exists() else {}), **table(options.parts.split(","))}
    path.write_text(json.dumps(found, indent=1))
    if len(found) == 4:
        draw(found, path.with_suffix(".svg"))
        print(f"written to {path} and .svg")
    if "layers" in found:
        first, *_, last = [r["work"] for r in found["layers"]["atled, unrolled"]]
        said = "ok" if last / first <= FOURFOLD else "MISSED"
        print(f"CPU time to compile 48 unrolled layers / 12 layers: {last / first:.2f}, must be ≤ {FOURFOLD}: {said}")


if __name__ == "__main__":
    main()
