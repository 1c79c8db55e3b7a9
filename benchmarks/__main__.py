"""`python -m benchmarks`: runs all sections, prints a table with ratios, writes JSON and a plot."""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import functions, kernels, measure, mesh
from benchmarks.loops import loops
from benchmarks.models import MODELS, SMALL, Library, atled_library, jax_library

RESULTS = pathlib.Path(__file__).parent / "results"


class Report:
    """Rows of (section, what, atled, peer, ratio, target)."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(
        self,
        section: str,
        what: str,
        ours: float,
        peer: float,
        target: float | None = None,
        peer_name: str = "jax",
        others: dict[str, float] | None = None,
    ) -> None:
        """Add a row and print it. `others` are seconds of further candidates, shown as ratios."""
        row = {
            "section": section,
            "what": what,
            "atled": ours,
            "peer": peer,
            "peer_name": peer_name,
            "ratio": ours / peer,
            "target": target,
            "others": others or {},
        }
        self.rows.append(row)
        print(_line(row), flush=True)

    def note(self, section: str, what: str, ratio: float, target: float | None) -> None:
        row = {
            "section": section,
            "what": what,
            "atled": None,
            "peer": None,
            "peer_name": "jax",
            "ratio": ratio,
            "target": target,
            "others": {},
        }
        self.rows.append(row)
        print(_line(row), flush=True)


def _seconds(t: float | None) -> str:
    if t is None:
        return ""
    if t > 1e4:  # bytes
        return f"{t / 1e6:.1f} MB"
    return f"{t * 1e6:.2f} µs" if t < 1e-3 else f"{t * 1e3:.2f} ms" if t < 1 else f"{t:.2f} s"


def _line(row: dict[str, Any]) -> str:
    target = (
        "" if row["target"] is None else f"≤ {row['target']:.2f} {'ok' if row['ratio'] <= row['target'] else 'MISSED'}"
    )
    others = "".join(f"  {name} {row['atled'] / seconds:.2f}" for name, seconds in row["others"].items())
    return (
        f"{row['section']:<9}{row['what']:<40}{_seconds(row['atled']):>12}{_seconds(row['peer']):>12} "
        f"{row['peer_name']:<7}{row['ratio']:>7.3f}  {target}{others}"
    )


# -- sections ---------------------------------------------------------------------------------------------------------


def start(report: Report, rounds: int) -> None:
    """Import and first result in a fresh process, with a warm disk cache."""
    code = "import {0}.numpy as np; x = np.ones(3) + 1; assert float(x.sum()) == 6.0"
    run = {n: (lambda n=n: measure.fresh_process(code.format(n))) for n in ("atled", "jax")}
    for f in run.values():
        f()
    best = measure.once_each(run, rounds)
    report.add("start", "import + first result", best["atled"], best["jax"], 0.30)


def launches(report: Report, rounds: int) -> None:
    """Calls of compiled functions with 2 arrays, 100 arrays, and a pytree of 300 arrays."""
    import jax

    import atled
    from atled.core import tree

    host = np.ones(128, "f4")
    for what, make, calls, target in [
        ("jit call, 2 arrays", lambda put: (put(host), put(host)), 300, 0.95),
        ("jit call, 100 flat", lambda put: tuple(put(host + i) for i in range(100)), 20, None),
        (
            "jit call, tree of 300",
            lambda put: ({f"layer{i}": {k: put(host) for k in "wbs"} for i in range(100)},),
            10,
            1.00,
        ),
    ]:
        ours, theirs = make(atled.numpy.asarray), make(jax.numpy.asarray)
        several = len(ours) != 2
        body = lambda mapped: (lambda *a: mapped(lambda v: v + v, a)) if several else (lambda a, b: a + b)  # noqa: B023
        f, g = atled.jit(body(atled.tree.map)), jax.jit(body(jax.tree.map))
        f(*ours), g(*theirs)
        ready = f.trace(*ours).lower().compile()._executable
        execute, handlers = ready.execute, ready.handlers
        buffers = [x._buffer for x in tree.leaves(ours)]
        candidates = {
            "bare": lambda: execute(buffers).consume_with_handlers(handlers),  # noqa: B023
            "atled": lambda: f(*ours),  # noqa: B023
            "jax": lambda: g(*theirs),  # noqa: B023
        }
        best = measure.interleaved(candidates, calls, rounds)
        report.add("launch", what, best["atled"], best["jax"], target)
        report.add("launch", what, best["atled"], best["bare"], 1.25 if not several else None, "bare")


def eager_calls(lib: Library) -> dict[str, Callable[[], Any]]:
    """Forty typical eager calls, by name."""
    jnp, nn, random, lax = lib.numpy, lib.nn, lib.random, lib.lax
    x, y = jnp.arange(128.0), jnp.ones(128)
    m, b = jnp.ones((16, 16)), jnp.ones(16)
    i, mask = jnp.int32(3), jnp.arange(128) > 5
    ints = jnp.arange(10)
    key = random.key(0)
    fresh = (lambda: random.clone(key)) if lib.name == "atled" else (lambda: key)
    return {
        "x + y": lambda: x + y,
        "x + 1.0": lambda: x + 1.0,
        "2 * x": lambda: 2 * x,
        "x - y": lambda: x - y,
        "x / y": lambda: x / y,
        "x ** 2": lambda: x**2,
        "-x": lambda: -x,
        "x > y": lambda: x > y,
        "x @ y": lambda: x @ y,
        "m @ m": lambda: m @ m,
        "m.T": lambda: m.T,
        "x[1]": lambda: x[1],
        "x[i]": lambda: x[i],
        "x[2:5]": lambda: x[2:5],
        "m[:, 0]": lambda: m[:, 0],
        "x[ints]": lambda: x[ints],
        "x.at[3].set(1.)": lambda: x.at[3].set(1.0),
        "x.at[ints].add(1.)": lambda: x.at[ints].add(1.0),
        "reshape": lambda: x.reshape(8, 16),
        "astype": lambda: x.astype("int32"),
        "sum": lambda: jnp.sum(x),
        "m.sum(axis=0)": lambda: m.sum(axis=0),
        "mean": lambda: jnp.mean(x),
        "std": lambda: jnp.std(x),
        "max": lambda: jnp.max(x),
        "argmax": lambda: jnp.argmax(x),
        "cumsum": lambda: jnp.cumsum(x),
        "sin": lambda: jnp.sin(x),
        "exp": lambda: jnp.exp(x),
        "maximum": lambda: jnp.maximum(x, 0.0),
        "where": lambda: jnp.where(mask, x, y),
        "clip": lambda: jnp.clip(x, 0.0, 1.0),
        "concatenate": lambda: jnp.concatenate([x, y]),
        "stack": lambda: jnp.stack([x, y]),
        "einsum": lambda: jnp.einsum("ij,jk->ik", m, m),
        "zeros": lambda: jnp.zeros((3,)),
        "arange": lambda: jnp.arange(10),
        "softmax": lambda: nn.softmax(m),
        "gelu": lambda: nn.gelu(x),
        "relu": lambda: nn.relu(x),
        "one_hot": lambda: nn.one_hot(ints, 10),
        "dot_general": lambda: lax.dot_general(m, b, (((1,), (0,)), ((), ()))),
        "random.normal": lambda: random.normal(fresh(), (3,)),
        "random.split": lambda: random.split(fresh()),
        "sort": lambda: jnp.sort(x),
    }


def eager(report: Report, rounds: int) -> None:
    """Eager calls, each as a row, their geometric mean, and an eager gradient."""
    ours, theirs = eager_calls(atled_library()), eager_calls(jax_library())
    ratios = {}
    for name in ours:
        best = measure.interleaved({"atled": ours[name], "jax": theirs[name]}, 50, rounds)
        report.add("eager", name, best["atled"], best["jax"])
        ratios[name] = best["atled"] / best["jax"]
    worst = max(ratios, key=lambda n: ratios[n])
    report.note(
        "eager", f"geometric mean of {len(ratios)}", float(np.exp(np.mean(np.log(list(ratios.values()))))), 0.35
    )
    report.note("eager", f"worst: {worst}", ratios[worst], 1.00)
    grads = {}
    for lib in (atled_library(), jax_library()):
        g = lib.top.grad(lambda z, jnp=lib.numpy: jnp.sum(jnp.sin(z) * z))
        x = lib.numpy.arange(128.0)
        grads[lib.name] = lambda g=g, x=x: g(x)
    best = measure.interleaved(grads, 10, rounds)
    report.add("eager", "grad of sum(sin(z) * z)", best["atled"], best["jax"], 0.30)


def numpy_functions(report: Report, rounds: int, is_small: bool) -> None:
    """NumPy's functions, each as a row, their geometric mean, and the slowest relative to JAX."""
    ours, theirs = functions.calls(atled_library().numpy), functions.calls(jax_library().numpy)
    ratios = {}
    for name in list(ours)[:: 8 if is_small else 1]:
        best = measure.interleaved({"atled": ours[name], "jax": theirs[name]}, 20, max(5, rounds // 4))
        ratios[name] = best["atled"] / best["jax"]
        report.add("numpy", name, best["atled"], best["jax"])
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    report.note("numpy", f"geometric mean of {len(ratios)}", mean, 0.35)
    worst = max(ratios, key=lambda n: ratios[n])
    report.note("numpy", f"worst: {worst}", ratios[worst], 1.00)


_numbers = itertools.count()


def models(report: Report, rounds: int, is_small: bool, only: list[str] | None) -> None:
    """Trace and lower, compile, and step time of the models."""
    import jax

    import atled

    torch = torch_step(rounds)

    libraries = {"atled": atled_library(), "jax": jax_library()}
    for name, make in MODELS.items():
        if only and name not in only:
            continue
        made = {n: make(lib, **(SMALL[name] if is_small else {})) for n, lib in libraries.items()}
        args = {
            "atled": atled.tree.map(atled.numpy.asarray, made["atled"][1]),
            "jax": jax.tree.map(jax.numpy.asarray, made["jax"][1]),
        }
        held: dict[str, Any] = {}

        def lower(n: str, made: Any = made, args: Any = args, held: Any = held) -> float:
            f = made[n][0]
            again = lambda *a, _number=next(_numbers): f(*a)  # noqa: B008  # a new function, to avoid a cache hit
            seconds, held[n] = measure.timed(lambda: libraries[n].top.jit(again).lower(*args[n]))
            return seconds

        best = measure.once_each({n: (lambda n=n, lower=lower: lower(n)) for n in libraries}, max(3, rounds // 10))
        report.add(name, "trace + lower", best["atled"], best["jax"], 0.30 if name == "gpt2" else None)

        compiled: dict[str, Any] = {}

        def compile_(n: str, held: Any = held, compiled: Any = compiled) -> float:
            if n == "atled":
                atled.settings.update("cache", False)
                held[n]._traced.program.derived.clear()
                _forget_executables()
            else:
                jax.clear_caches()
                lower(n)
            seconds, compiled[n] = measure.timed(held[n].compile)
            return seconds

        best = measure.once_each({n: (lambda n=n: compile_(n)) for n in libraries}, 3)
        report.add(name, "compile", best["atled"], best["jax"], 1.00)
        atled.settings.update("cache", True)

        def step(n: str, compiled: Any = compiled, args: Any = args) -> float:
            return measure.timed(lambda: libraries[n].top.block_until_ready(compiled[n](*args[n])))[0]

        for n in libraries:
            step(n)
        best = measure.once_each({n: (lambda n=n, step=step: step(n)) for n in libraries}, max(10, rounds))
        others = {"limit": kernels.step_limit(compiled["atled"], args["atled"])} if not is_small else {}
        if torch is not None and name != "per_example":  # PyTorch would run another program
            others["torch"] = torch(make, SMALL[name] if is_small else {}, lambda step=step: step("atled"))
        report.add(name, "step", best["atled"], best["jax"], 1.02, others=others)


def torch_step(rounds: int) -> Callable[..., float] | None:
    """A function that measures a model's step in PyTorch, interleaved with another step; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    from benchmarks.torch_library import torch_library

    library = torch_library()

    def measured(make: Any, sizes: dict[str, Any], other: Callable[[], Any]) -> float:
        f, args = make(library, **sizes)
        args = library.tree.map(torch.as_tensor, args)
        found = measure.once_each({"torch": lambda: measure.timed(lambda: f(*args))[0], "other": other}, max(5, rounds))
        return found["torch"]

    return measured


def _forget_executables() -> None:
    from atled.engine import program_cache

    program_cache.forget()


# -- output -----------------------------------------------------------------------------------------------------------


def plot(rows: list[dict[str, Any]], path: pathlib.Path) -> None:
    """Plot the ratios as bars on a logarithmic axis, with a line at 1."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [r for r in rows if r["peer_name"] == "jax"]
    labels = [f"{r['section']}: {r['what']}" for r in shown]
    values = [r["ratio"] for r in shown]
    colors = [
        "#3b7dd8" if r["target"] is None else "#2e9e5b" if r["ratio"] <= r["target"] else "#d8573b" for r in shown
    ]
    figure, axes = plt.subplots(figsize=(9, 0.24 * len(shown) + 1.2))
    axes.barh(range(len(shown)), values, color=colors)
    axes.set_yticks(range(len(shown)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=1)
    for i, v in enumerate(values):
        axes.text(v * 1.03, i, f"{v:.2f}", va="center", fontsize=7)
    axes.set_xlabel("time of atled / time of JAX (lower is better)")
    axes.margins(y=0.01)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run small models for few rounds, as a smoke test")
    parser.add_argument(
        "--sections", default="start,launch,eager,numpy,kernels,models,loops,mesh", help="comma separated"
    )
    parser.add_argument("--models", default="", help="comma-separated names of models to run")
    parser.add_argument("--kernels", default="", help="comma-separated words: kernels to run, by name")
    parser.add_argument("--scale", type=float, default=1.0, help="factor for the lengths of the kernels' arrays")
    parser.add_argument("--strict", action="store_true", help="fail if a row of the kernels section is over its target")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds
    report = Report()
    began = time.time()
    print(f"{'section':<9}{'what':<40}{'atled':>12}{'peer':>12} {'':<7}{'ratio':>7}  target")
    chosen = options.sections.split(",")
    if "start" in chosen:
        start(report, 3 if options.quick else 12)
    if "launch" in chosen:
        launches(report, rounds)
    if "eager" in chosen:
        eager(report, rounds)
    if "numpy" in chosen:
        numpy_functions(report, rounds, options.quick)
    if "kernels" in chosen:
        words = [w for w in options.kernels.split(",") if w]
        kernels.table(report, rounds, options.scale, options.quick, words)
    if "models" in chosen:
        chosen_models = [m for m in options.models.split(",") if m] or (["gpt2"] if options.quick else None)
        models(report, rounds, options.quick, chosen_models)
    if "loops" in chosen:
        loops(report, rounds, options.quick)
    if "mesh" in chosen:
        mesh.launches(report, rounds)
    RESULTS.mkdir(exist_ok=True)
    name = "quick" if options.quick else "full"
    about = {"python": platform.python_version(), "machine": platform.machine(), "seconds": round(time.time() - began)}
    (RESULTS / f"{name}.json").write_text(json.dumps({"about": about, "rows": report.rows}, indent=1))
    plot(report.rows, RESULTS / f"{name}.png")
    missed = [r for r in report.rows if r["target"] is not None and r["ratio"] > r["target"]]
    print(f"{len(report.rows)} rows, {len(missed)} over target; results in {RESULTS / name}.json and .png")
    sys.exit(options.strict and any(r["section"] == "kernels" for r in missed))


if __name__ == "__main__":
    main()
