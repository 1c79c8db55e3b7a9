"""A process of a training run: steps of the small transformer over a mesh of all processes, until it is told to end.

    training.py RANK SIZE ADDRESS [steps=20] [shape=data,model] [anew=ADDRESS] [heartbeat=2] [serve=0]

Says, a JSON object a line: that it is ready, its losses, and what went wrong. With `anew`, those that are left then
begin a new world there, in the same processes, with the parameters that they saved, and take steps again.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import pathlib
import signal
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "devices"))

import numpy as np
from model import SPECS, parameters, step, tokens, train

import atled
from atled import distributed
from atled.sharding import NamedSharding, P

_out = os.dup(1)  # Gloo writes to the standard output, too, in the middle of lines
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

faulthandler.register(signal.SIGUSR1)  # to stderr, where a process that says nothing waits


def say(**what: Any) -> None:
    os.write(_out, json.dumps(what).encode() + b"\n")


def mesh_of(shape: tuple[int, int]) -> Any:
    count = len(atled.devices())
    data, model = shape if shape[0] * shape[1] == count else (count, 1)
    return atled.make_mesh((data, model), ("data", "model"))


def bits(tree: Any) -> str:
    """A fingerprint of what every process holds a copy of."""
    found = hashlib.sha256()
    for x in atled.tree.leaves(tree):
        if x.is_fully_replicated:
            found.update(np.asarray(x).tobytes())
    return found.hexdigest()


def start(mesh: Any, host: dict[str, np.ndarray]) -> Any:
    place = lambda name, x: atled.make_array_from_callback(x.shape, NamedSharding(mesh, SPECS[name]), lambda i: x[i])
    p = {name: place(name, x) for name, x in host.items()}
    return p, {name: place(name, np.zeros_like(x)) for name, x in host.items()}


def steps_until_failure(mesh: Any, host: dict[str, np.ndarray], limit: int) -> tuple[int, Exception | None]:
    """Take steps; how many were taken, and what ended them."""
    state, taken = start(mesh, host), 0
    try:
        for i in range(limit):
            batch = tokens(i)
            spread = NamedSharding(mesh, P("data"))
            batch = atled.make_array_from_callback(batch.shape, spread, lambda index, batch=batch: batch[index])
            state, value = step(state, batch)
            float(value.addressable_shards[0].data)
            taken += 1
            if i == 2:
                say(ready=True)
    except Exception as error:
        return taken, error
    return taken, None


def main() -> None:
    rank, size, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    given = dict(a.split("=") for a in sys.argv[4:])
    shape = tuple(int(n) for n in given.get("shape", "0,0").split(","))
    heartbeat = float(given.get("heartbeat", 10))
    serve = {"serve": False} if given.get("serve") == "0" else {}
    distributed.initialize(address, size, rank, heartbeat_timeout=heartbeat, **serve)
    if "anew" not in given:
        p, losses = train(mesh_of(shape), int(given.get("steps", 20)))
        whole = {k: atled.device_put(v, NamedSharding(v.sharding.mesh, P())) for k, v in p.items()}
        say(losses=losses, bits=bits(whole), processes=atled.process_count(), devices=atled.device_count())
        distributed.shutdown()
        return
    taken, error = steps_until_failure(mesh_of(shape), parameters(), 100_000)
    at = time.time()
    say(kind=type(error).__name__, text=str(error), ranks=list(getattr(error, "ranks", ())), at=at, taken=taken)
    left = [r for r in range(size) if r not in getattr(error, "ranks", ())]
    if rank not in left:
        return
    del error
    distributed.shutdown()
    distributed.initialize(given["anew"], len(left), left.index(rank), heartbeat_timeout=heartbeat, **serve)
    taken, error = steps_until_failure(mesh_of((len(left), 1)), parameters(), 3)
    say(count=atled.process_count(), taken=taken, error=str(error or ""), seconds=time.time() - at)
    distributed.shutdown()


if __name__ == "__main__":
    main()
