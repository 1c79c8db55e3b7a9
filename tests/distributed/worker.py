"""What the processes of the tests do: one function a scenario, called with rank, number of processes and address."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import re
import signal
import socket
import sys
import threading
import time
from functools import partial
from typing import Any

import numpy as np
from collective import Sum

import atled
import atled.numpy as jnp
from atled import distributed
from atled.engine import compilation
from atled.engine.multiprocess import processes
from atled.jax.experimental.multihost_utils import reached_preemption_sync_point
from atled.sharding import NamedSharding, P

# Gloo writes to the standard output when it connects; what the tests read goes past it.
_out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

faulthandler.register(signal.SIGUSR1)  # to stderr, where a process that says nothing waits


def say(**what: Any) -> None:
    os.write(_out, json.dumps(what).encode() + b"\n")


def raised(work: Any) -> dict[str, Any]:
    """What a call raised, in words."""
    try:
        work()
    except Exception as error:
        return {"kind": type(error).__name__, "text": str(error), "ranks": getattr(error, "ranks", None)}
    return {"kind": "nothing", "text": "", "ranks": None}


def meet(rank: int, size: int, address: str) -> None:
    distributed.initialize()  # all is in the environment
    say(
        index=atled.process_index(), count=atled.process_count(), devices=[d.id for d in atled.devices()],
        local=[d.id for d in atled.local_devices()], is_initialized=distributed.is_initialized(),
    )  # fmt: skip
    Sum()(1.0)
    say(sin=float(jnp.sin(1.0)))
    distributed.shutdown()
    say(is_initialized=distributed.is_initialized(), count=atled.process_count())


def compile_once(rank: int, size: int, address: str) -> None:
    """A program over all processes, with no cache on disk: how many programs were compiled here."""
    distributed.initialize(address, size, rank)
    counted: list[str] = []
    compile_module = compilation.compile_module
    compilation.compile_module = lambda module, program, where: (
        counted.append(program.name) or compile_module(module, program, where)
    )
    mesh = atled.make_mesh((size,), ("i",))
    x = atled.make_array_from_callback((size,), NamedSharding(mesh, P("i")), lambda i: np.ones(1, "float32"))

    def total(x):
        return jnp.sin(x).sum()

    value = atled.jit(total)(x)
    say(compiled=counted.count("total"), value=float(value.addressable_shards[0].data))
    distributed.shutdown()


def reduced_apart(rank: int, size: int, address: str) -> None:
    """A program with three sums over all processes: how many arrays each of its all-reduces has."""
    distributed.initialize(address, size, rank)
    mesh = atled.make_mesh((size,), ("i",))
    x = atled.make_array_from_callback((size,), NamedSharding(mesh, P("i")), lambda i: np.ones(1, "float32"))
    compiled = atled.jit(lambda x: (jnp.sin(x).sum(), jnp.cos(x).sum(), jnp.exp(x).sum())).lower(x).compile()
    say(arrays=[len(a.split(", ")) for a in re.findall(r" all-reduce\((.*?)\)", compiled.as_text())])
    distributed.shutdown()


def after_the_end(rank: int, size: int, address: str) -> None:
    distributed.initialize(address, size, rank)
    mesh = atled.make_mesh((size,), ("i",))
    x = atled.make_array_from_callback((size,), NamedSharding(mesh, P("i")), lambda i: np.ones(1, "float32"))
    f = atled.jit(lambda x: x.sum())
    f(x)
    distributed.shutdown()
    say(known=raised(lambda: f(x)), new=raised(lambda: atled.jit(lambda x: x.max())(x)), eager=raised(lambda: x + 1))


def talk(rank: int, size: int, address: str) -> None:
    distributed.initialize(address, size, rank)
    store = distributed.store
    store.set(f"from/{rank}", f"rank {rank}")
    others = [store.get(f"from/{r}").decode() for r in range(size)]
    absent = raised(lambda: store.get("nobody", timeout=0.2))
    numbers = store.increment("tickets")
    distributed.barrier("one")
    taken = raised(lambda: store.set("from/0", "again", overwrite=False))
    not_a_number = raised(lambda: store.increment("from/0"))
    distributed.barrier("two")
    store.delete("from")
    distributed.barrier("three")
    say(others=others, absent=absent, ticket=numbers, taken=taken, nan=not_a_number, gone=store.try_get("from/0"))
    alone = raised(lambda: distributed.barrier("alone", timeout=0.3)) if rank == 0 else None
    distributed.sync()
    pair = raised(lambda: distributed.barrier("pair", ranks=(0, 1))) if rank < 2 else None
    say(alone=alone, pair=pair)
    distributed.shutdown()


def spread(rank: int, size: int, address: str) -> None:
    distributed.initialize(address, size, rank)
    tree = {"a": np.arange(3) + rank, "b": [jnp.full((2, 2), rank, "bfloat16"), np.float32(rank)]}
    one = distributed.broadcast(tree, source=1)
    all_ = distributed.gather(tree)
    big = distributed.broadcast(np.full(700_001, rank, "f4"), source=size - 1)
    say(
        one=[one["a"].tolist(), one["b"][0].astype("f4").tolist(), str(one["b"][0].dtype), float(one["b"][1])],
        all=[all_["a"].tolist(), all_["b"][1].tolist()],
        big=[float(big.min()), float(big.max())],
        different=raised(lambda: distributed.gather(np.zeros(2 + rank))),
        source=raised(lambda: distributed.broadcast(tree, source=size)),
    )
    distributed.shutdown()


def count(rank: int, size: int, address: str) -> None:
    """Metrics of batches that each process has seen, merged."""
    from atled import metrics

    distributed.initialize(address, size, rank)
    scores, labels = (np.arange(4) / 4 + rank / 8).astype("f4"), np.arange(4) % 2
    means = metrics.Mean().update(jnp.full(3, float(rank)))
    auc = metrics.AUC(8).update(scores, labels)
    say(mean=float(means.gather().compute()), auc=float(auc.gather().compute()), own=float(means.compute()))
    distributed.shutdown()


def preempted(rank: int, size: int, address: str) -> None:
    distributed.initialize(address, size, rank)
    seen, step = [], 0
    while not any(seen) or len(seen) <= seen.index(True) + 1:
        seen.append(reached_preemption_sync_point(step))
        step += 1
        if rank == size - 1 and step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.02)
    say(at=seen.index(True), count=sum(seen))
    distributed.shutdown()


def join(rank: int, size: int, *addresses_and_options: str) -> None:
    """Initialize only, at one address after the other; options are as Python writes them. What is raised, and when?"""
    given = {k: eval(v) for k, v in (o.split("=") for o in addresses_and_options if "=" in o)}
    for address in [a for a in addresses_and_options if "=" not in a]:
        start = time.time()
        say(**raised(partial(distributed.initialize, address, size, rank, **given)), seconds=time.time() - start)
        if distributed.is_initialized():
            distributed.shutdown()


def steps(rank: int, size: int, address: str, *options: str) -> None:
    """Add numbers over all processes until something goes wrong, say what and when, then go on without the lost."""
    given = {k: eval(v) for k, v in (o.split("=") for o in options)}
    anew, pause = given.pop("anew", None), given.pop("pause", 0)
    distributed.initialize(address, size, rank, **given)
    add = Sum()
    number = processes.agree("digest of sum", "sum", "worker.py:1")
    say(is_ready=True)
    time.sleep(pause)
    found = raised(partial(steps_until_failure, add))
    later = raised(lambda: processes.launched(number))
    say(**found, at=time.time(), lost=list(distributed.lost()), later=later["kind"])
    del add
    if anew is not None:  # the address of the next world, in which the ranks close up
        start = time.time()
        left = [r for r in range(size) if r not in found["ranks"]]
        distributed.shutdown()
        distributed.initialize(anew, len(left), left.index(rank))
        Sum()(1.0)
        say(count=atled.process_count(), seconds=time.time() - start)
        distributed.shutdown()


def launches(rank: int, size: int, address: str, kind: str) -> None:
    """Processes that do not launch the same programs in the same order."""
    distributed.initialize(address, size, rank)
    first, second = ("f", "g") if rank == 0 or kind != "new" else ("g", "f")
    found = raised(lambda: say(number=processes.agree(f"digest {first}", first, f"train.py:{ord(first)}")))
    if kind == "known":
        numbers = [0, processes.agree("digest g", second, "train.py:103")]
        add = Sum()
        for _ in range(20):  # the same so far
            for number in numbers:
                processes.launched(number)
        start = time.time()

        def differ() -> None:
            processes.launched(numbers[rank % 2])
            while time.time() < start + 20:
                processes.launched(numbers[0])
                time.sleep(0.01)
                if rank == 0:
                    add(1.0)  # waits for the others

        try:
            differ()
        except Exception as error:
            mine = error if isinstance(error, processes.ProgramMismatch) else processes.explain(error)
            found = {"kind": type(mine).__name__, "text": str(mine), "seconds": time.time() - start}
    say(**found)
    distributed.shutdown()


def ends_early(rank: int, size: int, address: str) -> None:
    """The last rank ends as programs do, while the others wait at a barrier."""
    distributed.initialize(address, size, rank)
    if rank < size - 1:
        start = time.time()
        say(**raised(lambda: distributed.barrier("here", timeout=25)), seconds=time.time() - start)


def waits(rank: int, size: int, address: str) -> None:
    """Rank 0 reads a sum for which the others launch nothing, until it is interrupted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs without
    distributed.initialize(address, size, rank)
    mesh = atled.make_mesh((size,), ("x",))
    x = atled.make_array_from_callback((size,), NamedSharding(mesh, P("x")), lambda i: np.ones(1, "float32"))
    add = atled.jit(lambda x: x.sum())
    float(np.asarray(add(x)))
    say(ready=True)
    if rank == 0:
        try:
            float(np.asarray(add(x)))
        except KeyboardInterrupt:
            say(interrupted=True)
    else:
        time.sleep(60)


def generations(rank: int, size: int, address: str, count: str, offset: str = "0") -> None:
    """World after world in the same process: what is left of each?"""
    from atled import jit

    state = np.full(4, 2.0, np.float32)
    host, _, port = address.rpartition(":")
    for number in range(int(count)):
        distributed.initialize(f"{host}:{int(port)}", size, rank)
        Sum()(1.0)
        f = jit(lambda x: jnp.sin(x) * 0 + x + 1)
        state = np.asarray(f(jnp.asarray(state))).copy()
        state = distributed.broadcast(state)
        del f
        distributed.shutdown()
        gc.collect()
        say(
            number=number, state=state.tolist(), threads=len(os.listdir("/proc/self/task")),
            python_threads=threading.active_count(), fds=len(os.listdir("/proc/self/fd")), memory=resident(),
        )  # fmt: skip


def resident() -> float:
    """The memory of this process, in megabytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def held(rank: int, size: int, address: str) -> None:
    """Arrays and functions of one world are still held in the next."""
    x = jnp.arange(3.0)
    say(used=raised(lambda: distributed.initialize(address, size, rank)))
    distributed.shutdown()
    distributed.initialize(address, size, rank)
    say(again=raised(lambda: distributed.initialize(address, size, rank)))
    y, old = jnp.arange(3.0) * 2, Sum()
    distributed.shutdown()
    distributed.initialize(address, size, rank)
    say(old=raised(lambda: old(1.0)))
    Sum()(1.0)
    say(x=np.asarray(x).tolist(), y=np.asarray(y).tolist())
    distributed.shutdown()


def bystanders(rank: int, size: int, address: str) -> None:
    """A lost process costs no connection that is not Gloo's; a forked child keeps none alive."""
    here, there = socket.socketpair()
    server = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(server.getsockname())
    other, _ = server.accept()
    distributed.initialize(address, size, rank)
    add = Sum()
    add(1.0)
    child = os.fork()
    if child == 0:
        time.sleep(2)
        os._exit(0)
    distributed.sync()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.time()
    found = raised(lambda: steps_until_failure(add))
    here.send(b"still")
    one.send(b"here")
    say(**found, seconds=time.time() - start, heard=[there.recv(9).decode(), other.recv(9).decode()])
    for one_of_ours in (here, there, server, one, other):
        one_of_ours.close()
    os.waitpid(child, 0)


def steps_until_failure(add: Sum) -> None:
    try:
        while True:
            add(1.0)
    except Exception as error:
        raise processes.explain(error) or error from None


def fails(rank: int, size: int, address: str) -> None:
    """Rank 1 ends with an exception."""
    distributed.initialize(address, size, rank)
    add = Sum()
    add(1.0)
    if rank == 1:
        raise ValueError("no more data")
    say(**raised(lambda: steps_until_failure(add)))


def serve(address: str, size: str) -> None:
    """A supervisor."""
    service = distributed.serve(address, int(size), heartbeat_timeout=2)
    say(address=service.address)
    sys.stdin.readline()
    service.shutdown()
    say(gone=service.gone)


def different(rank: int, size: int, address: str, kind: str) -> None:
    """Compiled functions over a mesh of all processes, which are not the same everywhere, or not in the same order."""
    distributed.initialize(address, size, rank)
    mesh = atled.make_mesh((len(atled.devices()),), ("x",))
    over = NamedSharding(mesh, P("x"))
    x = atled.make_array_from_callback((8, 4), over, lambda i: np.ones((8, 4), "float32")[i])
    add = atled.jit(lambda x: x.sum())
    average = atled.jit(lambda x: x.mean())

    def go() -> None:
        if kind == "order":
            first, second = (add, average) if rank == 0 else (average, add)
            float(first(x).addressable_shards[0].data)
            float(second(x).addressable_shards[0].data)
        elif kind == "known":
            for f in (add, average, add, average):
                float(f(x).addressable_shards[0].data)
            float((add if rank == 0 else average)(x).addressable_shards[0].data)  # fits, and is wrong
            distributed.shutdown()
        elif kind == "shape":
            n = 8 + 8 * rank
            y = atled.make_array_from_callback((n, 4), over, lambda i: np.ones((n, 4), "float32")[i])
            float(add(y).addressable_shards[0].data)
        elif kind == "alone":
            if rank == 0:
                float(add(x).addressable_shards[0].data)
            distributed.barrier("end", timeout=2)

    start = time.time()
    say(**raised(go), seconds=time.time() - start)
    raised(lambda: distributed.shutdown(timeout=1))  # warns if the others do not come


if __name__ == "__main__":
    scenario, *args = sys.argv[1:]
    if scenario == "serve":
        serve(*args)
    else:
        globals()[scenario](int(args[0]), int(args[1]), *args[2:])
