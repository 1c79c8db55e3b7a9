"""Processes that launch compiled functions in orders that may differ: no value that is read may be wrong.

Run as `orders.py RANK SIZE ADDRESS SEED`: each rank draws its own order from the seed. Says what it read, and how it
ended; a value that is not what all processes together should have is a silent wrong number.
"""

from __future__ import annotations

import json
import random
import sys

import numpy as np

import atled
from atled import distributed, lax
from atled.sharding import NamedSharding, P

FUNCTIONS = 4


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def orders(seed: int, size: int) -> tuple[list[list[int]], list[list[bool]], bool]:
    """For each rank, which function it launches when, and which results it reads; and whether all agree."""
    rng = random.Random(seed)
    common = [rng.randrange(FUNCTIONS) for _ in range(rng.randrange(5, 60))]
    each = [list(common) for _ in range(size)]
    is_alike = rng.random() < 0.25
    if not is_alike:
        rank, at = rng.randrange(size), rng.randrange(len(common) - 1)
        kind = rng.choice(["swapped", "other", "left out", "twice"])
        if kind == "swapped":
            each[rank][at], each[rank][at + 1] = each[rank][at + 1], each[rank][at]
        elif kind == "other":
            each[rank][at] = (each[rank][at] + 1) % FUNCTIONS
        elif kind == "left out":
            del each[rank][at]
        else:
            each[rank].insert(at, each[rank][at])
    share = rng.choice([0.0, 0.1, 0.5, 1.0])
    reads = [[rng.random() < share for _ in order] for order in each]
    return each, reads, all(order == each[0] for order in each)


def trial(seed: int, size: int) -> str:
    """Run so many processes; what is wrong with how it went, or nothing."""
    from worlds import started

    is_alike = orders(seed, size)[2]
    with started(__file__, size, seed) as workers:
        codes = [w.child.wait(90) for w in workers]
        said = [w.heard() for w in workers]
        errors = ["".join(w.errors) for w in workers]
    what = f"seed {seed}, {size} processes: {said} {codes}"
    if any("wrong" in line for lines in said for line in lines):
        return f"{what}: a wrong value was read"
    if is_alike:
        return "" if codes == [0] * size else f"{what}: all launched alike\n{errors}"
    named = [("launch different programs" in e or "is lost" in e or "has left" in e) for e in errors]
    is_named = any("launch different programs" in e for e in errors) and all(named)
    return "" if is_named and all(codes) else f"{what}: not all say what is wrong\n{errors}"


def main() -> None:
    rank, size, seed, address = *[int(sys.argv[i]) for i in (1, 2, 4)], sys.argv[3]
    distributed.initialize(address, size, rank)
    mesh = atled.make_mesh((size,), ("i",))
    x = atled.make_array_from_callback(
        (size,), NamedSharding(mesh, P("i")), lambda i: np.array([rank + 1.0], "float32")
    )

    def function(k: int):
        body = lambda v: lax.psum(v * 10.0**k, "i")
        return atled.jit(atled.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P()))

    functions = [function(k) for k in range(FUNCTIONS)]
    for f in functions:  # compiled in one order; afterwards nobody waits for anybody
        f(x)
    each, reads, _ = orders(seed, size)
    for k, is_read in zip(each[rank], reads[rank], strict=True):
        y = functions[k](x)
        if is_read:
            got, want = float(np.asarray(y)[0]), 10.0**k * size * (size + 1) / 2
            if not np.isclose(got, want):
                say(wrong=got, want=want)
    say(done=True)


if __name__ == "__main__":
    main()
