"""A process of `test_data_processes.py`: feeds itself and the others with batches, and says what all of them got."""

import json
import os
import sys

import numpy as np

import atled
from atled import data, distributed
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

_out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Gloo writes to the standard output


def main(rank, size, address, steps, state):
    if int(size) > 1:
        distributed.initialize(address, int(size), int(rank))
    sharding = NamedSharding(atled.make_mesh((atled.device_count(),), ("data",)), P("data"))
    rows = data.arrays(x=np.arange(960, dtype="int32").reshape(480, 2), y=np.arange(480, dtype="int32"))
    batches = rows.shuffle(5).batch(48).sharded()
    seen = []
    with data.to_devices(batches.iterator(), {"x": sharding, "y": sharding}) as fed:
        if json.loads(state):
            fed.restore(json.loads(state))
        for _, batch in zip(range(int(steps)), fed):
            assert batch["x"].shape == (48, 2)
            whole = atled.device_put(batch["y"], NamedSharding(sharding.mesh, P())).addressable_shards[0].data
            seen.append(np.asarray(whole).tolist())
        said = {"seen": seen, "state": fed.state()}
    os.write(_out, (json.dumps(said) + "\n").encode())
    if int(size) > 1:
        distributed.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
