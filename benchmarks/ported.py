"""Training scripts of JAX libraries on atled and on JAX: `python -m benchmarks.ported --jax PYTHON --atled PYTHON`.

The Python of `--jax` has the libraries and jax; that of `--atled` has the libraries and atled, but not jax. Each script
runs 100 steps in a new process, in turns; both use their disk caches, which the first turn fills. The table has the
largest relative difference of losses, and ratios to JAX's times: median step, and process start to first step.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

SCRIPT = pathlib.Path(__file__).with_name("ported_training.py")
NAMES = ("optax", "haiku", "linen", "nnx", "equinox", "numpyro")


def run(command: list[str], caches: str) -> dict[str, Any]:
    """The results that one process prints, with the seconds until the end of its first step."""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": f"{caches}/jax", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1", "ATLED_CACHE_DIR": f"{caches}/atled", "JAX_PLATFORMS": "cpu",
        "PYTHONHASHSEED": "0",
    }  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | settings
    began = time.time()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-3000:]}")
    result = json.loads(done.stdout.splitlines()[-1])
    return {**result, "first": result["first"] - began}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax", required=True)
    parser.add_argument("--atled", default=sys.executable)
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    for python, package in ((options.jax, "jax"), (options.atled, "atled")):  # pip also compiles the files of a wheel
        where = f"import importlib.util as u; print(u.find_spec({package!r}).submodule_search_locations[0])"
        folder = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run([python, "-m", "compileall", "-q", folder], check=True)
    print("| library | loss difference | step | cold start | warm start |\n| --- | --- | --- | --- | --- |", flush=True)
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory() as caches:
            turns = []
            for _ in range(options.turns):
                theirs = run([options.jax, str(SCRIPT), name], caches)
                ours = run([options.atled, "-m", "atled.jax.as_jax", str(SCRIPT), name], caches)
                turns.append((ours, theirs))
        pairs = list(zip(turns[0][0]["losses"], turns[0][1]["losses"]))
        apart = max(abs(a - b) / max(abs(b), 1e-30) for a, b in pairs)
        step, warm = [min(t[0][k] for t in turns[1:]) / min(t[1][k] for t in turns[1:]) for k in ("step", "first")]
        cold = turns[0][0]["first"] / turns[0][1]["first"]
        print(f"| {name} | {apart:.1e} | {step:.2f} | {cold:.2f} | {warm:.2f} |", flush=True)


if __name__ == "__main__":
    main()
