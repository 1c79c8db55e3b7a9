"""Measures a 12-layer transformer's train step in a process with `ATLED_NUM_CPU_DEVICES` virtual CPU devices.

`ATLED_NUM_CPU_DEVICES=8 python -m benchmarks.scale.devices 4 2` prints JSON for a mesh of data x model = 4 x 2.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import atled
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P
from benchmarks import measure
from benchmarks.models import atled_library, gpt2

# Steps with collectives run on 256 devices and deadlock on 272; a thread pool of XLA seems to be exhausted.
RUNS = 256
COLUMNS, ROWS = ("qkv", "up"), ("out", "down")  # layers whose weights tensor parallelism shards by columns or rows


def spec(path: tuple[Any, ...]) -> P:
    """The partition spec of a weight, by its path."""
    layer, name = [k for k, *_ in path][-2:] if len(path) > 1 else (None, None)
    if layer in COLUMNS:
        return P(None, "model") if name == "w" else P("model")
    return P("model") if layer in ROWS and name == "w" else P()


def main(data: int, model: int, is_quick: bool) -> dict[str, Any]:
    atled.settings.update("cache", False)
    mesh = atled.make_mesh((data, model), ("data", "model"))
    step, (params, state, tokens) = gpt2(
        atled_library(), layers=2 if is_quick else 12, width=128, heads=8, vocab=512, batch=2 * data, length=32
    )
    put = lambda t: atled.tree.map_with_path(lambda k, x: atled.device_put(x, NamedSharding(mesh, spec(k))), t)
    began = time.perf_counter()
    args = put(params), put(state), atled.device_put(tokens, NamedSharding(mesh, P("data")))
    atled.block_until_ready(args)
    placing = time.perf_counter() - began
    splits = atled.tree.map(lambda x: x.sharding, args[:2])
    jitted = atled.jit(step, donate_argnums=(0, 1), out_shardings=(*splits, None))
    lowering, lowered = measure.timed(lambda: jitted.lower(*args))
    began = time.process_time()
    compiling, compiled = measure.timed(lowered.compile)
    work = time.process_time() - began
    params, state, tokens = args
    launch, (params, state) = launching((params, state), 4 if is_quick else 12)
    steps = []
    if mesh.size <= RUNS:
        for _ in range(3 if is_quick else 6):
            began = time.perf_counter()
            params, state, loss = compiled(params, state, tokens)
            atled.block_until_ready((params, state, loss))
            steps.append(time.perf_counter() - began)
    stats = compiled.memory_analysis()
    return {
        "devices": mesh.size,
        "data": data,
        "model": model,
        "leaves": len(atled.tree.leaves((params, state))),
        "placing": placing,
        "lowering": lowering,
        "compile": compiling,
        "work": work,  # CPU seconds of all cores, hardly affected by other programs
        "launch": launch,
        "step": min(steps[1:], default=None),
        "arguments": stats.argument_size_in_bytes,
        "temporary": stats.temp_size_in_bytes,
        "needed": needed(stats),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def launching(state: Any, calls: int) -> tuple[float, Any]:
    """Host seconds to launch a program without collectives on the whole state, and the new state."""
    decay = atled.jit(lambda t: atled.tree.map(lambda x: 0.999 * x, t), donate_argnums=0)
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        state = decay(state)
        times.append(time.perf_counter() - began)
        atled.block_until_ready(state)
    return min(times[2:]), state


def needed(stats: Any) -> int:
    """Bytes per device that a program needs."""
    total = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    return total - stats.alias_size_in_bytes


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), "--quick" in sys.argv)))
