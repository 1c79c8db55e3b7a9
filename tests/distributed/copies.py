"""Two processes that put data which both hold copies of. Run as `copies.py RANK SIZE ADDRESS KIND`.

Says what it read, or how it was told that the copies differ.
"""

from __future__ import annotations

import json
import sys
import threading

import numpy as np

import atled
import atled.numpy as jnp
from atled import distributed
from atled.sharding import NamedSharding, P


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def main(rank: int, kind: str) -> None:
    distributed.initialize()
    mesh = atled.make_mesh((2, 2), ("data", "model"))
    whole, halves, batch = [NamedSharding(mesh, s) for s in (P(), P("model"), P("data"))]
    other = rank if kind.startswith("other") else 0
    name = kind.split()[-1]
    total = atled.jit(lambda w, x: jnp.sum(x) + jnp.sum(w))
    x = atled.make_array_from_process_local_data(batch, np.full((2, 3), float(rank), "f4"))
    try:
        if name == "host":
            w = atled.device_put(np.arange(4.0, dtype="f4") + other, whole)
        elif name == "device":
            w = atled.device_put(jnp.arange(4.0) + other, whole)
        elif name == "part":  # each process has both halves, one on each of its devices
            w = atled.device_put(np.arange(4.0, dtype="f4") + other, halves)
        elif name == "nan":
            w = atled.device_put(np.array([np.nan, -0.0 if other else 0.0], "f4"), whole)
        elif name == "key":
            w = atled.device_put(atled.random.key(other), whole)
            total = atled.jit(lambda w, x: jnp.sum(x) + atled.random.uniform(w))
        elif name == "eager":
            w = jnp.arange(4.0) + other
            total = lambda w, x: (x[:, :1] * w).sum()
        elif name == "threads":  # puts of several threads come in any order
            made: dict[int, object] = {}

            def put(i: int) -> None:
                made[i] = atled.device_put(np.full(1000 + i, i, "f4"), whole)

            threads = [threading.Thread(target=put, args=(i,)) for i in range(8)]
            for t in threads if rank else reversed(threads):
                t.start()
            for t in threads:
                t.join()
            w = [made[i] for i in range(8)]
            total = atled.jit(lambda w, x: jnp.sum(x) + sum([jnp.sum(v) for v in w]))
        say(read=str(total(w, x)))
        say(again=str(total(w, x)))
    except distributed.ProgramMismatch as error:
        say(told=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[4])
