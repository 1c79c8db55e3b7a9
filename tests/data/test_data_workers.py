"""Worker processes: the same batches for any number of them, and nothing left behind whatever happens."""

import glob
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np
import pytest

from atled import data, tree
from atled.data import shared_buffers

sys.path.insert(0, str(Path(__file__).parent))
import feeding_functions as f

HERE = Path(__file__).parent


def rows(n=60):
    return data.arrays(x=np.arange(2 * n).reshape(n, 2), y=np.arange(n))


def shared_memory(pid=None):
    return set(glob.glob(f"/dev/shm/atled-{pid or os.getpid()}-*"))


def children():
    """Processes that this one started and that still run, but for the one that watches over shared memory."""
    found = []
    for line in subprocess.run(
        ["ps", "-ww", "--ppid", str(os.getpid()), "-o", "pid=,args="], capture_output=True, text=True
    ).stdout.splitlines():
        if "spawn_main" in line:
            found.append(line)
    return found


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not children()
    assert not shared_memory()


def same(a, b):
    assert tree.structure(a) == tree.structure(b)
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype and np.array_equal(x, y)


PIPELINES = {
    "columns": lambda: rows(100).shuffle(1).batch(7).repeat(2),
    "mapped": lambda: rows(100).shuffle(1).random_map(f.noise, 2).map(f.named).batch(7, drop_last=False),
    "filtered": lambda: rows(100).filter(f.is_kept).random_map(f.noise, 2).batch(7).map(f.summed).repeat(2),
    "packed": lambda: rows(100).map(f.ragged).pack(9).batch(3),
    "buckets": lambda: rows(100).shuffle(3).map(f.ragged).bucket([1, 3, 7], [2, 9, 5], drop_last=False),
    "iterable": lambda: data.iterable(f.ten).map(f.named).batch(3).repeat(3),
    "examples": lambda: rows(9).map(f.named),
}


def recorded(pipeline, workers):
    with pipeline.iterator(num_workers=workers) as iterator:
        return [(b, iterator.state()) for b in iterator]


@pytest.mark.parametrize("name, workers", [*[(name, 2) for name in PIPELINES], ("buckets", 1), ("mapped", 1)])
def test_same_batches_for_any_number_of_workers(name, workers):
    pipeline = PIPELINES[name]()
    want, got = recorded(pipeline, 0), recorded(pipeline, workers)
    for (a, s), (b, u) in zip(want, got, strict=True):  # held all the time, so nothing may be overwritten
        same(a, b)
        assert s == u


def test_eight_workers():
    pipeline = rows(100).shuffle(1).random_map(f.noise, 2).batch(5)
    for (a, s), (b, u) in zip(recorded(pipeline, 0), recorded(pipeline, 8), strict=True):
        same(a, b)
        assert s == u


def test_restore_and_memory():
    """A restored iterator starts its workers anew; arrays that are dropped make room, arrays that are held stay."""
    pipeline = rows(4000).random_map(f.noise, 2).batch(5)
    want = list(pipeline)
    with pipeline.iterator(num_workers=2) as iterator:
        held = [next(iterator) for _ in range(40)]
        state, there = iterator.state(), len(shared_memory())
        kept = [next(iterator)["x"][1:3, 0] for _ in range(300)][::7]  # views of a part keep all of it
        assert len(shared_memory()) <= there + 2
        same(held, want[:40])
        same(kept, [b["x"][1:3, 0] for b in want[40:340]][::7])
        iterator.restore(state)
        same(next(iterator), want[40])
    same(held, want[:40])  # after the end of the workers, too


def test_memory_maps_are_mapped_again(tmp_path):
    array = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "int32", (50, 4))
    array[:] = np.arange(200).reshape(50, 4)
    array.flush()
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")[5:45:2, 1:]
    pipeline = data.arrays(x=mapped).batch(4)
    assert len(pickle.dumps(pipeline)) < 2000
    same(pickle.loads(pickle.dumps(pipeline)).node.arrays[0], np.asarray(mapped))
    for (a, _), (b, _) in zip(recorded(pipeline, 0), recorded(pipeline, 1), strict=True):
        same(a, b)


def test_xla_is_not_started_in_workers():
    batches = recorded(rows(8).map(f.starts_nothing).batch(4), 1)
    assert not any([b["started"].any() for b, _ in batches])
    assert os.getpid() not in batches[0][0]["pid"]


def test_a_killed_worker():
    iterator = rows(60).map(f.kill_at_13).batch(5).iterator(num_workers=2)
    assert [next(iterator)["y"][0] for _ in range(2)] == [0, 5]
    with pytest.raises(data.WorkerLost) as caught:
        next(iterator)
    said = str(caught.value)
    assert "worker 0 was killed by SIGKILL while at example 13 of arrays(x=int64[60,2], y=int64[60]), epoch 0" in said
    assert iterator.state()["position"] == 10
    assert not children() and iterator.restore({**iterator.state(), "position": 15}).state()["position"] == 15
    assert next(iterator)["y"][0] == 15  # with new workers
    iterator.close()


def test_a_worker_that_raises():
    iterator = rows(60).map(f.raise_at_13).batch(5).iterator(num_workers=2)
    assert [next(iterator)["y"][0] for _ in range(2)] == [0, 5]
    with pytest.raises(ZeroDivisionError, match="thirteen") as caught:
        next(iterator)
    notes = "\n".join(caught.value.__notes__)
    assert "in map(raise_at_13), on example 13 of" in notes and "in worker 0" in notes
    assert 'raise ZeroDivisionError("thirteen")' in notes  # the user's own line


def test_an_error_that_cannot_be_sent():
    with pytest.raises(RuntimeError, match=r"data: worker 0 raised an error[\s\S]*Odd: 1 2"):
        next(rows(60).map(f.raise_odd).batch(5).iterator(num_workers=1))


def test_functions_that_workers_cannot_import():
    code = (
        "from atled import data\ndef f(x): return x\nnext(data.source([1, 2]).map(f).batch(2).iterator(num_workers=1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "AttributeError" in done.stderr and "try: functions in a module that workers can import" in done.stderr


def test_too_little_shared_memory(monkeypatch):
    """Where there is none, a worker would be killed by a signal that says nothing."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(MemoryError, match=r"data.iterator: there is no room for \d+ bytes in shared memory"):
        next(rows(60).batch(5).iterator(num_workers=1))


def test_functions_that_cannot_be_sent():
    with pytest.raises(TypeError, match=r"must be picklable; map\(.*<lambda>\) is not"):
        next(rows(60).map(f.to_float).map(lambda e: e).shuffle(0).batch(5).iterator(num_workers=1))
    with pytest.raises(TypeError, match=r"source\(Unsent, 3\) is not"):
        next(data.source(Unsent()).batch(3).iterator(num_workers=1))


class Unsent:
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return i

    def __reduce__(self):
        raise TypeError("not this one")


def test_a_dropped_iterator():
    """Half-way through, while the workers are busy."""
    iterator = rows(60).map(f.very_slow).batch(5).iterator(num_workers=2)
    iterator._maker = iterator._made()
    iterator._maker._ask()
    assert len(children()) == 2
    began = time.perf_counter()
    del iterator
    assert time.perf_counter() - began < 5
    assert not children()


@pytest.mark.parametrize("after", range(4))
def test_ctrl_c_while_memory_is_made(monkeypatch, after):
    """Between the making of a piece of shared memory and the moment somebody knows of it."""
    made = []

    def interrupted(*args, **kwargs):
        found = SharedMemory(*args, **kwargs)
        if kwargs.get("create"):
            made.append(found)
            if len(made) == after + 1:
                raise KeyboardInterrupt
        return found

    iterator = rows(60).batch(5).iterator(num_workers=2)
    monkeypatch.setattr(shared_buffers, "SharedMemory", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(iterator)
    monkeypatch.undo()
    assert len(made) == after + 1 and not shared_memory()


SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background may ignore it
import sys, os, time
import numpy as np
sys.path.insert(0, {here!r})
import feeding_functions as f
from atled import data

if __name__ == "__main__":
    batches = data.arrays(x=np.zeros((1000, 100)), y=np.arange(1000) + 100).map(f.slow).batch(5)
    iterator = batches.iterator(num_workers=2)
    next(iterator)
    print(*[p.pid for p in iterator._maker.processes], flush=True)
    {then}
"""


def script(tmp_path, then):
    path = tmp_path / "feeds.py"
    path.write_text(textwrap.dedent(SCRIPT).format(here=str(HERE), then=then))
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    return subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
        start_new_session=True,
    )  # fmt: skip


def is_alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids, seconds=10):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and any([is_alive(p) for p in pids]):
        time.sleep(0.02)
    return not any([is_alive(p) for p in pids])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals(tmp_path, how):
    """Ctrl-C goes to all processes of the terminal; the others to the one with the iterator only."""
    process = script(tmp_path, "[next(iterator) for _ in range(190)]")
    pids = [int(p) for p in process.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(0.1)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    _, said = process.communicate(timeout=20)
    assert gone(pids)
    end = time.perf_counter() + 5
    while shared_memory(process.pid) and time.perf_counter() < end:
        time.sleep(0.05)  # the process that watches over it is told by its end
    assert not shared_memory(process.pid)
    assert process.returncode in (-how, 130)
    if how == signal.SIGINT:
        assert said.count("KeyboardInterrupt") == 1 and "leaked" not in said, said


@pytest.mark.parametrize(
    "then", ["pass", "sys.exit(3)", "raise ValueError('mine')", "batch = next(iterator); del iterator"]
)
def test_ends_of_the_program(tmp_path, then):
    process = script(tmp_path, then)
    pids = [int(p) for p in process.stdout.readline().split()]
    _, said = process.communicate(timeout=20)
    assert gone(pids) and not shared_memory(process.pid)
    assert process.returncode == {"p": 0, "s": 3, "r": 1, "b": 0}[then[0]]
    assert said == "" or "mine" in said


def test_a_script_without_a_guard(tmp_path):
    path = tmp_path / "unguarded.py"
    path.write_text("from atled import data\nprint(list(data.source(range(4)).batch(2).iterator(num_workers=1)))\n")
    env = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 1
    assert 'start workers below `if __name__ == "__main__":`' in done.stderr
