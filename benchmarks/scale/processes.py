"""Measures a transformer's train step over Gloo, in several processes with one device each.

`python -m benchmarks.scale.processes RANK SIZE ADDRESS` prints JSON; `run` starts all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import atled
from atled import distributed
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P
from benchmarks import measure
from benchmarks.models import atled_library, gpt2
from benchmarks.scale.network import Network


def run(size: int, is_apart: bool, is_quick: bool) -> dict[str, Any]:
    """Start `size` processes, in separate network namespaces if `is_apart`, and return the result of the first."""
    network = Network(size) if is_apart else None
    service = distributed.serve(f"{network.host if network else '127.0.0.1'}:0", size)
    children = []
    try:
        for rank in range(size):
            prefix = ["ip", "netns", "exec", network.space(rank)] if network else []
            more = ["--quick"] if is_quick else []
            command = [sys.executable, "-m", "benchmarks.scale.processes", str(rank), str(size), service.address, *more]
            settings = {**os.environ, "ATLED_PLATFORMS": "cpu", "ATLED_NUM_CPU_DEVICES": "1"}
            children.append(subprocess.Popen([*prefix, *command], env=settings, stdout=subprocess.PIPE, text=True))
        said = [child.communicate(timeout=600)[0] for child in children]
        found = [line for line in said[0].splitlines() if line.startswith("{")]  # Gloo prints, too
        return json.loads(found[-1])
    finally:
        for child in children:
            child.kill()
        service.shutdown()
        if network:
            network.close()


def main(rank: int, size: int, address: str, is_quick: bool) -> dict[str, Any]:
    atled.settings.update("cache", False)
    began = time.perf_counter()
    if size > 1:
        distributed.initialize(address, size, rank, serve=False)
    joining = time.perf_counter() - began
    mesh = atled.make_mesh((size, 1), ("data", "model"))
    step, (params, state, tokens) = gpt2(
        atled_library(), layers=2 if is_quick else 12, width=128, heads=8, vocab=512, batch=2 * size, length=32
    )
    put = lambda t, *spec: atled.tree.map(lambda x: atled.device_put(x, NamedSharding(mesh, P(*spec))), t)
    params, state, tokens = put(params), put(state), put(tokens, "data")
    jitted = atled.jit(step, donate_argnums=(0, 1))
    first, (params, state, loss) = measure.timed(lambda: jitted(params, state, tokens))
    steps, launches = [], []
    for _ in range(4 if is_quick else 10):
        atled.block_until_ready((params, state, loss))
        began = time.perf_counter()
        params, state, loss = jitted(params, state, tokens)
        launches.append(time.perf_counter() - began)
        atled.block_until_ready((params, state, loss))
        steps.append(time.perf_counter() - began)
    value = float(loss.addressable_shards[0].data)
    if size > 1:
        distributed.shutdown()
    row = {"processes": size, "joining": joining, "first": first, "launch": min(launches), "step": min(steps)}
    return {**row, "loss": value}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], "--quick" in sys.argv)), flush=True)
