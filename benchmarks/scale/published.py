"""Compiles published models for chips that are not present; prints JSON: seconds, memory of this process and of a chip.

`python -m benchmarks.scale.published t5-11b 'tpu v5p:8x8x16' 128 8 --tokens 512 114 --batch 8` compiles a train step
with AdamW in bfloat16; `llama-3-70b 'tpu v5p:2x2x2' 1 8 --decode 4096 --batch 8` a decoding step with a cache of this
length. The numbers are the mesh axes `data` and `model`, and the batch size per index along `data`.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any

import atled
from atled import models, nn, optim, random, topologies, tree
from atled.sharding import Mesh, NamedSharding
from atled.sharding import PartitionSpec as P
from benchmarks.scale.devices import needed


def sharded(made: Any, rules: Any, mesh: Mesh) -> Any:
    """Shapes of a tree with the shardings that the rules give."""
    place = nn.shardings(made, rules, mesh)
    shapes = [
        atled.ShapeDtypeStruct(x.shape, x.dtype, sharding=s)
        for x, s in zip(tree.leaves(made), tree.leaves(place), strict=True)
    ]
    return tree.structure(made).unflatten(shapes)


def train_step(module: Any, config: Any, mesh: Mesh, tokens: list[int], batch: int) -> tuple[Any, tuple[Any, ...]]:
    """A jitted train step of the architecture's own loss, and the shapes of its arguments."""
    optimizer = optim.AdamW(1e-4)

    def make(key: Any) -> Any:
        return nn.cast(module.Model(config, remat=True, key=key).eval(), "bfloat16")

    def step(model: Any, moments: Any, *ids: Any) -> Any:
        loss, slopes = atled.value_and_grad(module.loss, wrt=nn.Param)(model, *ids)
        model, moments = optimizer.update(slopes, moments, model)
        return model, moments, loss

    shapes = atled.eval_shape(make, random.key(0))
    model = sharded(shapes, module.SHARDING, mesh)
    moments = atled.eval_shape(optimizer.init, shapes)
    rules = {**module.SHARDING}
    moments = sharded(moments, rules, mesh)
    ids = [atled.ShapeDtypeStruct((batch, n), "int32", sharding=NamedSharding(mesh, P("data"))) for n in tokens]
    return atled.jit(step, donate_argnums=(0, 1)), (model, moments, *ids)


def decoding_step(module: Any, config: Any, mesh: Mesh, length: int, batch: int) -> tuple[Any, tuple[Any, ...]]:
    """A jitted decoding step with weights and cache in bfloat16, and the shapes of its arguments."""

    def make(key: Any) -> Any:
        model = nn.cast(module.Model(config, key=key).eval(), param_dtype="bfloat16")
        return nn.seek(nn.init_cache(model, batch, length), atled.numpy.zeros(batch, "int32"))

    heads = {"cache/key": P("data", "model"), "cache/value": P("data", "model")}
    model = sharded(atled.eval_shape(make, random.key(0)), {**module.SHARDING, **heads}, mesh)
    ids = atled.ShapeDtypeStruct((batch, 1), "int32", sharding=NamedSharding(mesh, P("data")))

    def step(model: Any, ids: Any) -> Any:
        logits = model.logits(model.features(ids)[:, 0])
        return model, atled.numpy.argmax(logits, -1)

    return atled.jit(step, donate_argnums=(0,)), (model, ids)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("machine")
    parser.add_argument("data", type=int)
    parser.add_argument("split", type=int)
    parser.add_argument("--tokens", type=int, nargs="+", default=[512])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--decode", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    module = next(m for m in (models.t5, models.llama, models.gpt2, models.bert) if options.model in m.SIZES)
    topology = topologies.get(options.machine)
    mesh = atled.make_mesh((options.data, options.split), ("data", "model"), devices=topology.devices)
    batch, config = options.batch * options.data, module.SIZES[options.model]
    if options.decode:
        step, args = decoding_step(module, config, mesh, options.decode, batch)
    else:
        step, args = train_step(module, config, mesh, options.tokens, batch)
    compiled = step.lower(*args).compile(effort=-1.0)
    stats = compiled.memory_analysis()
    found = {
        "model": options.model,
        "machine": options.machine,
        "parameters": sum([x.size for x in tree.leaves(args[0])]),
        "seconds": time.perf_counter() - began,
        "process_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "chip_bytes": needed(stats),
        "chip_memory": topology.memory,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
