"""Compiles a large transformer's train step for chips that are not present, and prints JSON.

The arguments of `python -m benchmarks.scale.chips 11B 'tpu v5p:8x8x16' 128 8 8` are model, topology, sizes of the mesh
axes `data` and `model`, and batch size per index along `data`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import atled
from atled import topologies
from atled.inspect.collective_parser import read
from benchmarks import measure
from benchmarks.scale.devices import needed
from benchmarks.scale.transformer import SIZES, arguments, train_step


def main(model: str, name: str, data: int, split: int, batch: int) -> dict[str, Any]:
    began = time.perf_counter()
    size, topology = SIZES[model], topologies.get(name)
    mesh = atled.make_mesh((data, split), ("data", "model"), devices=topology.devices)
    step, args = train_step(size, mesh), arguments(size, mesh, batch * data)
    lowering, lowered = measure.timed(lambda: step.lower(*args))
    compiling, compiled = measure.timed(lambda: lowered.compile(effort=-1.0))
    seconds = time.perf_counter() - began
    stats, cost, text = compiled.memory_analysis(), compiled.cost_analysis(), compiled.as_text()
    return {
        "model": model,
        "parameters": size.parameters,
        "machine": name,
        "devices": len(topology.devices),
        "data": data,
        "split": split,
        "tokens": batch * data * size.length,
        "lowering": lowering,
        "compile": compiling,
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "memory": topology.memory,
        "arguments": stats.argument_size_in_bytes,
        "temporary": stats.temp_size_in_bytes,
        "needed": needed(stats),
        "flops": cost["flops"],  # counts the body of a loop once
        "model_flops": 6 * size.parameters * batch * data * size.length / len(topology.devices),
        "collectives": collectives(text, mesh, size.layers),
        "text": len(text),
    }


def collectives(text: str, mesh: Any, turns: int) -> list[dict[str, Any]]:
    """Number and bytes of a chip's collectives in a step, by kind and mesh axes.

    The TPU compiler does not report trip counts of loops; all loops of this program are over the layers.
    """
    found: dict[Any, dict[str, Any]] = {}
    for c in read(text, mesh):
        over = " x ".join([str(a) for a in c.axes])
        row = found.setdefault((c.kind, over), {"kind": c.kind, "over": over, "count": 0, "runs": 0, "bytes": 0})
        row["count"] += 1
        row["runs"] += c.times or turns
        row["bytes"] += c.bytes * (c.times or turns)
    return sorted(found.values(), key=lambda row: -row["bytes"])


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], *[int(n) for n in sys.argv[3:6]])))
