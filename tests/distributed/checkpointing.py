"""A process of `test_checkpoints.py`: saves a tree that is split over all processes, or loads it and says its bits."""

import hashlib
import json
import os
import sys

import numpy as np

import atled
from atled import checkpoints, distributed
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

SHAPE = (24, 16)
_out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Gloo writes to the standard output


def tree(factor=1.0):
    mesh = atled.make_mesh((atled.device_count(),), ("data",))
    host = np.arange(np.prod(SHAPE), dtype="float32").reshape(SHAPE) * factor

    def put(spec):
        return atled.make_array_from_callback(SHAPE, NamedSharding(mesh, spec), lambda index: host[index])

    return {"rows": put(P("data")), "columns": put(P(None, "data")), "whole": put(P()), "step": 7, "host": host}


def digest(x):
    """The bits of an array of which every process sees a part."""
    if isinstance(x, atled.Array):
        mesh = x.sharding.mesh
        x = atled.device_put(x, NamedSharding(mesh, P())).addressable_shards[0].data
    return hashlib.sha256(np.asarray(x).tobytes()).hexdigest()


def main(rank, size, address, what, path):
    if int(size) > 1:
        distributed.initialize(address, int(size), int(rank))
    said = {}
    if what == "save":
        checkpoints.save(path, tree())
    elif what == "saver":
        saver = checkpoints.Saver(path, max_to_keep=2)
        for step in range(3):
            saver.save(step, tree(step))
        saver.wait()
        said["steps"] = saver.steps()
    elif what == "restore":
        import warnings

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = checkpoints.Saver(path).restore(template=tree(0.0) | {"step": 0})
        said["step"], said["warnings"] = found.step, [str(w.message) for w in caught]
        said["first"] = float(found.tree["host"][0, 1])
    elif what == "apart":  # each its own step
        try:
            checkpoints.Saver(path, wait=True).save(5 + int(rank), tree())
        except checkpoints.CheckpointError as error:
            said["error"] = str(error)
    elif what in ("fail", "fail first", "fail late"):  # on one process only
        if int(rank) == int(what == "fail"):
            from atled.checkpoints.storage import Local

            def write(self, name, _):
                raise self._failed("written", OSError(28, "No space left on device"))

            setattr(Local, "replace" if what == "fail late" else "write", write)
        try:
            checkpoints.save(path, tree())
        except checkpoints.CheckpointError as error:
            said["error"] = str(error)
    else:
        found = checkpoints.load(path, template=tree(0.0) | {"step": 0})
        said["bits"] = {k: digest(v) for k, v in found.items()}
        said["want"] = {k: digest(v) for k, v in tree().items()}
    os.write(_out, json.dumps(said).encode() + b"\n")
    if int(size) > 1:
        distributed.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
