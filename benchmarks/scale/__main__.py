"""`python -m benchmarks.scale`: measures, prints tables, writes JSON and a plot.

Every row runs in a new process, since the number of devices is fixed when a process starts.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.scale import plots

RESULTS = pathlib.Path(__file__).parents[1] / "results"
# On a busy machine, the threads of many devices arrive at a collective so late that XLA would report a deadlock.
PATIENCE = "--xla_cpu_collective_call_terminate_timeout_seconds=900 --xla_cpu_collective_timeout_seconds=900"
MESHES = {1: (1, 1), 2: (2, 1), 8: (4, 2), 64: (16, 4), 512: (64, 8)}
CHIPS = [
    ("1.3B", "tpu v5p:4x8x8", 64, 4, 4),
    ("1.3B", "tpu v5p:8x8x16", 256, 4, 4),
    ("11B", "tpu v5p:4x8x8", 32, 8, 8),
    ("11B", "tpu v5p:8x8x16", 128, 8, 8),
]
ROUNDS = 3
GROWTH, SECONDS, MEMORY = 1.5, 180, 6e9  # limits: compile time at 512 / 8 devices; for the largest program


def measured(module: str, *arguments: Any, **environment: str) -> dict[str, Any] | None:
    """The JSON that a new process prints, parsed; None if the process fails."""
    command = [sys.executable, "-m", f"benchmarks.scale.{module}", *map(str, arguments)]
    settings = {"ATLED_PLATFORMS": "cpu", "XLA_FLAGS": PATIENCE, **os.environ, **environment}
    load = os.getloadavg()[0]
    done = subprocess.run(command, env=settings, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:]
        print(f"{module} {arguments} failed with code {done.returncode}: {said}", flush=True)
        return None
    return {**json.loads(done.stdout.splitlines()[-1]), "load": load}


def devices(is_quick: bool) -> list[dict[str, Any]]:
    """A step on virtual CPU devices: compile time, host time of a launch, memory of each device.

    Meshes take turns and the best turn of each counts, since other programs on the machine affect the times.
    """
    heads = ("mesh", 8), ("compile s", 11), ("of cores", 10), ("launch ms", 11), ("step ms", 10), ("MB/device", 11)
    print(f"{'devices':>8}{''.join([f'{name:>{width}}' for name, width in heads])}{'load':>6}")
    best: dict[int, dict[str, Any]] = {}
    turns: dict[int, list[Any]] = {count: [] for count in MESHES}
    for _ in range(1 if is_quick else ROUNDS):
        for count, (data, model) in MESHES.items():
            if is_quick and count > 8:
                break
            more = ["--quick"] if is_quick else []
            row = measured("devices", data, model, *more, ATLED_NUM_CPU_DEVICES=str(count))
            turns[count].append(None if row is None else row["compile"])
            if row is not None:
                print(_line(row), flush=True)
                kept = best.setdefault(count, row)
                for what in ("compile", "work", "launch", "step"):
                    kept[what] = None if row[what] is None else min(kept[what], row[what])
    for count, row in best.items():
        row["compiles"] = turns[count]
    growth = sorted([b / a for a, b in zip(turns[8], turns[512]) if a and b])
    if growth:
        each = ", ".join([f"{g:.2f}" for g in growth])
        print(f"compile time, 512 / 8 devices: {statistics.median(growth):.2f}, the median of {each}, from equal turns")
        print(f"must be at most {GROWTH}")
    return list(best.values())


def _line(row: dict[str, Any]) -> str:
    mesh, step = f"{row['data']}x{row['model']}", "" if row["step"] is None else f"{row['step'] * 1e3:.1f}"
    return (
        f"{row['devices']:>8}{mesh:>8}{row['compile']:>11.2f}{row['work']:>10.2f}{row['launch'] * 1e3:>11.2f}{step:>10}"
        f"{row['needed'] / 1e6:>11.1f}{row['load']:>6.1f}"
    )


def chips(is_quick: bool) -> list[dict[str, Any]]:
    """Train steps of large transformers, compiled ahead of time for TPUs that are not present."""
    print(
        f"{'model':>6}{'machine':>16}{'mesh':>8}{'seconds':>9}{'RAM GB':>8}{'GB/chip':>9}{'Tflop/chip':>12}{'load':>6}"
    )
    rows = []
    for model, name, data, split, batch in CHIPS[:1] if is_quick else CHIPS:
        row = measured("chips", model, name, data, split, batch)
        if row is not None:
            rows.append(row)
            print(
                f"{model:>6}{name:>16}{f'{data}x{split}':>8}{row['seconds']:>9.1f}{row['peak'] / 1e9:>8.2f}"
                f"{row['needed'] / 1e9:>9.2f}{row['model_flops'] / 1e12:>12.1f}{row['load']:>6.1f}"
            )
            for c in row["collectives"]:
                print(
                    f"{'':>8}{c['kind']:<20}over {c['over']:<14}{c['count']:>4} in the program{c['runs']:>6} in a step"
                    f"{c['bytes'] / 1e9:>9.3f} GB"
                )
            sys.stdout.flush()
            if (model, row["devices"]) == ("11B", 1024):
                is_met = row["seconds"] <= SECONDS and row["peak"] <= MEMORY
                answer = "yes" if is_met else "NO"
                print(f"{'':>8}within {SECONDS} s and {MEMORY / 1e9:.0f} GB: {answer}", flush=True)
    return rows


def worlds(is_quick: bool) -> list[dict[str, Any]]:
    """The same step over Gloo, in processes with one device each, on loopback and in separate network namespaces."""
    from benchmarks.scale import processes

    print(
        f"{'processes':>10}{'network':>12}{'join s':>8}{'first step s':>14}{'launch ms':>11}{'step ms':>9}{'load':>6}"
    )
    rows = []
    for is_apart in (False, True) if os.geteuid() == 0 and shutil.which("ip") else (False,):
        for size in (1, 2) if is_quick else (1, 2, 3, 4):
            if is_apart and size == 1:
                continue
            load = os.getloadavg()[0]
            row = {
                **processes.run(size, is_apart, is_quick),
                "network": "bridge" if is_apart else "loopback",
                "load": load,
            }
            rows.append(row)
            print(
                f"{size:>10}{row['network']:>12}{row['joining']:>8.2f}{row['first']:>14.2f}{row['launch'] * 1e3:>11.2f}"
                f"{row['step'] * 1e3:>9.1f}{load:>6.1f}",
                flush=True,
            )
    return rows


SECTIONS = {"devices": devices, "worlds": worlds, "chips": chips}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run few devices and one small program, as a smoke test")
    parser.add_argument("--sections", default=",".join(SECTIONS), help="comma separated")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / ("scale-quick.json" if options.quick else "scale.json")
    found = json.loads(file.read_text()) if file.exists() else {}
    for name in options.sections.split(","):
        found[name] = SECTIONS[name](options.quick)
    found["about"] = {"python": platform.python_version(), "cores": os.cpu_count()}
    file.write_text(json.dumps(found, indent=1))
    plots.draw(found, file.with_suffix(".png"))
    print(f"results in {file} and .png")


if __name__ == "__main__":
    main()
