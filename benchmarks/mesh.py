"""Host time of a launch over eight devices: each call donates and returns a sharded state of 300 arrays.

`python -m benchmarks.mesh` is a separate process, because the number of devices is fixed when a process starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

DEVICES, LEAVES = 8, 300


def launches(report: Any, rounds: int) -> None:
    """Add rows to the report, measured in a process with eight devices."""
    environment = {
        **os.environ, "ATLED_NUM_CPU_DEVICES": str(DEVICES), "ATLED_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
    }  # fmt: skip
    command = [sys.executable, "-m", "benchmarks.mesh", str(rounds)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    for what, (ours, peer) in json.loads(done.stdout.splitlines()[-1]).items():
        report.add("mesh", what, ours, peer, 1.0)


def main() -> None:
    import jax
    import numpy as np

    import atled
    import atled.sharding

    held: dict[str, Any] = {}
    for name, lib, shard in (("atled", atled, atled.sharding), ("jax", jax, jax.sharding)):
        spec = shard.PartitionSpec
        mesh = shard.Mesh(np.array(lib.devices()).reshape(4, 2), ("a", "b"))
        places = [shard.NamedSharding(mesh, s) for s in (spec("a", "b"), spec("a"), spec(None, "b"), spec())]
        state = {f"w{i}": lib.device_put(np.ones((8, 8), "float32"), places[i % 4]) for i in range(LEAVES)}
        step = lib.jit(lambda s: {k: v * 0.999 for k, v in s.items()}, donate_argnums=0)
        held[name] = [step, step(step(state))]
    best = {"launch": dict.fromkeys(held, float("inf")), "launch and wait": dict.fromkeys(held, float("inf"))}
    for _ in range(int(sys.argv[1])):
        for name, lib in (("atled", atled), ("jax", jax)):
            step, state = held[name]
            start = time.perf_counter()
            state = step(state)
            launched = time.perf_counter() - start
            lib.block_until_ready(state)
            waited = time.perf_counter() - start
            best["launch"][name] = min(best["launch"][name], launched)
            best["launch and wait"][name] = min(best["launch and wait"][name], waited)
            held[name][1] = state
    what = f"of {LEAVES} arrays on {DEVICES} devices"
    print(json.dumps({f"{kind} {what}": (row["atled"], row["jax"]) for kind, row in best.items()}))


if __name__ == "__main__":
    main()
