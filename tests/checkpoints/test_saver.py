"""`Saver`: which steps are kept, and that a tree is saved as it was when `save` was called."""

import threading
import time

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import checkpoints
from atled.checkpoints import storage


def steps(saver):
    saver.wait()
    return saver.steps()


def test_every_and_keep(tmp_path):
    saver = checkpoints.Saver(tmp_path, every=3, max_to_keep=2)
    assert [saver.save(s, {"x": s}) for s in range(10)] == [s % 3 == 0 for s in range(10)]
    assert steps(saver) == [6, 9]
    assert saver.save(10, {"x": 10}, force=True)
    assert steps(saver) == [9, 10]
    assert steps(checkpoints.Saver(tmp_path)) == [9, 10]
    everything = checkpoints.Saver(tmp_path, max_to_keep=None)
    for s in (11, 12, 13):
        everything.save(s, {"x": s})
    assert steps(everything) == [9, 10, 11, 12, 13]


@pytest.mark.parametrize("mode, best", [("min", 2), ("max", 4)])
def test_the_best_is_kept(tmp_path, mode, best):
    saver = checkpoints.Saver(tmp_path, max_to_keep=1, best="loss", mode=mode)
    for step, value in enumerate([3.0, float("nan"), 1.0, 2.0, 9.0, 5.0, 4.0]):
        saver.save(step, {"x": step}, metrics={"loss": jnp.asarray(value)})
    assert steps(saver) == sorted({best, 6})
    with pytest.raises(ValueError, match="metrics must contain 'loss', the metric of the best checkpoint; got other"):
        saver.save(9, {"x": 1}, metrics={"other": 1.0})


def test_steps_before_the_newest(tmp_path):
    saver = checkpoints.Saver(tmp_path, max_to_keep=2)
    for step in (5, 10):
        saver.save(step, {"x": step})
    with pytest.raises(
        ValueError, match=r"has step 10 already; got the earlier step 7.*\n.*\n.*\n  try: saver.rewind\(7\)"
    ):
        saver.save(7, {"x": 7})
    with pytest.raises(ValueError, match="has step 10 already"):
        checkpoints.Saver(tmp_path).save(7, {"x": 7})
    saver.save(10, {"x": 11})
    assert steps(saver) == [5, 10] and saver.restore(template={"x": 0}).tree == {"x": 11}
    with pytest.raises(checkpoints.CheckpointError, match="there is no step 4"):
        saver.rewind(4)
    saver.rewind(5)
    assert steps(saver) == [5]
    saver.save(7, {"x": 7})
    assert steps(saver) == [5, 7]


def test_threads_that_save_at_once(tmp_path):
    saver = checkpoints.Saver(tmp_path, max_to_keep=None)
    trees = {s: {"x": jnp.full(1000, s)} for s in range(8)}
    errors = []

    def run(s):
        try:
            saver.save(s, trees[s])
        except ValueError as error:  # it came after a later one
            errors.append(error)

    threads = [threading.Thread(target=run, args=(s,)) for s in trees]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    found = steps(saver)
    assert len(found) + len(errors) == 8
    for s in found:
        assert (np.asarray(saver.restore(template=trees[0], step=s).tree["x"]) == s).all()


def test_metadata_comes_back(tmp_path):
    saver = checkpoints.Saver(tmp_path)
    saver.save(3, {"x": 1}, metadata={"position": 17})
    assert saver.restore(template={"x": 0}) == (3, {"x": 1}, {"position": 17})
    assert checkpoints.Saver(tmp_path / "none").restore(template={"x": 0}) is None
    assert checkpoints.Saver(tmp_path / "none").latest() is None


@pytest.fixture
def slow(monkeypatch):
    """A disk on which nothing is written until an event is set."""
    gate, write = threading.Event(), storage.Local.write

    def waiting(self, name, chunks):
        assert gate.wait(30)
        return write(self, name, chunks)

    monkeypatch.setattr(storage.Local, "write", waiting)
    return gate


def test_a_tree_is_saved_as_it_was(tmp_path, slow):
    """Donated and changed after `save`, before anything is written."""
    step = atled.jit(lambda x: x + 1, donate_argnums=0)
    host, x = np.zeros(1000), jnp.zeros((300, 300))
    saver = checkpoints.Saver(tmp_path)
    begin = time.perf_counter()
    saver.save(1, {"host": host, "x": x})
    for _ in range(3):
        x = step(x)
    host += 7
    assert float(x[0, 0]) == 3 and time.perf_counter() - begin < 10
    assert saver.latest() is None
    slow.set()
    found = saver.restore(template={"host": host, "x": x})
    assert (found.tree["host"] == 0).all() and (np.asarray(found.tree["x"]) == 0).all()


def test_the_next_save_waits_for_the_last(tmp_path, slow):
    saver = checkpoints.Saver(tmp_path)
    saver.save(1, {"x": jnp.zeros(10)})
    threading.Timer(0.3, slow.set).start()
    begin = time.perf_counter()
    saver.save(2, {"x": jnp.ones(10)})
    assert time.perf_counter() - begin > 0.2
    assert steps(saver) == [1, 2]
    found = saver.restore(template={"x": jnp.zeros(10)}, step=1)
    assert float(found.tree["x"][0]) == 0  # the memory of copies was not used again too early


def test_memory_of_copies_is_kept(tmp_path):
    saver = checkpoints.Saver(tmp_path)
    saver.save(1, {"x": jnp.zeros(10**6)})
    saver.wait()
    address = saver._staging._memory.ctypes.data
    saver.save(2, {"x": jnp.ones(10**6)})
    saver.wait()
    assert saver._staging._memory.ctypes.data == address
    ahead = checkpoints.Saver(tmp_path, every=10)
    assert not ahead.save(3, {"x": jnp.ones(10**6)})
    for _ in range(100):
        if ahead._staging._memory is not None:
            break
        time.sleep(0.05)
    assert len(ahead._staging._memory) >= 4 * 10**6


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda d: checkpoints.Saver(d, every=0), "every must be a positive integer; got 0"),
        (lambda d: checkpoints.Saver(d, max_to_keep=1.5), "max_to_keep must be a positive integer; got 1.5"),
        (lambda d: checkpoints.Saver(d, mode="least"), "mode must be 'min' or 'max'; got 'least'"),
        (lambda d: checkpoints.Saver(d, every=None), "every must be a positive integer; got None"),
        (lambda d: checkpoints.Saver(d).save(3, {}, metrics=3.0), "metrics must be a dict of numbers; got 3.0"),
        (lambda d: checkpoints.Saver(d).save(3, {}, metrics={"a": "b"}), "metrics must be a dict of numbers"),
        (lambda d: checkpoints.Saver(d).save(3, {}, metadata={"a": {1}}), "metadata must be JSON-serializable"),
        (lambda d: checkpoints.Saver(d).save("3", {}), "the step must be an integer; got '3'"),
        (lambda d: checkpoints.Saver(d).save(-1, {}), "the step must not be negative; got -1"),
    ],
)
def test_mistakes(tmp_path, make, says):
    with pytest.raises((TypeError, ValueError), match=says):
        make(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_object_store(tmp_path):
    """The same through tensorstore, whose memory driver is an object store without a network."""
    pytest.importorskip("tensorstore")
    saver = checkpoints.Saver("memory://bucket/run", max_to_keep=2)
    for step in range(4):
        saver.save(step, {"x": jnp.full(5, step)})
    saver.wait()
    other = saver.restore(template={"x": jnp.zeros(5, "int32")})
    assert saver.steps() == [2, 3] and (np.asarray(other.tree["x"]) == 3).all()
    checkpoints.verify(saver.directory.inside("step-00000003"))
    with pytest.raises(checkpoints.CheckpointError, match="could not be opened"):
        checkpoints.save("nothing://x", {"x": 1})


def files_in(place):
    return sorted([str(p.relative_to(place)) for p in place.rglob("*") if p.is_file()])


def test_directories_of_others_stay(tmp_path):
    """Whatever they are called, and also what was put beside a checkpoint that is removed."""
    own = tmp_path / "step-00000001" / "samples"
    own.mkdir(parents=True)
    (own / "image.png").write_text("mine")
    (tmp_path / "step-00000002").mkdir()
    (tmp_path / "step-00000002" / "notes.txt").write_text("mine")
    with checkpoints.Saver(tmp_path, max_to_keep=1) as saver:
        for s in (3, 4, 5):
            saver.save(s, {"w": np.ones(3)})
            saver.wait()
            (tmp_path / f"step-0000000{s}" / "curve.csv").write_text("mine")
    assert saver.steps() == [5]
    left = [n for n in files_in(tmp_path) if not n.startswith("step-00000005")]
    assert left == [
        "step-00000001/samples/image.png", "step-00000002/notes.txt", "step-00000003/curve.csv",
        "step-00000004/curve.csv",
    ]  # fmt: skip


def test_leftovers_of_interrupted_saves_go(tmp_path):
    (tmp_path / "step-00000001").mkdir()
    (tmp_path / "step-00000001" / "0123abcd-0-0.data").write_bytes(b"x")
    (tmp_path / "step-00000001" / ".manifest.0123abcd").write_bytes(b"x")
    with checkpoints.Saver(tmp_path) as saver:
        saver.save(2, {"w": np.ones(3)})
    assert not (tmp_path / "step-00000001").exists()


def test_checkpoints_of_save_are_left_alone(tmp_path):
    for more in ({"step": 3}, None, [1], {"step": 3, "metrics": {}}):
        checkpoints.save(tmp_path / "step-00000003", {"w": np.ones(3)}, metadata=more)
        with checkpoints.Saver(tmp_path, best="loss") as saver:
            with pytest.raises(checkpoints.CheckpointError, match="that a saver did not write"):
                saver.save(3, {"w": np.zeros(3)}, metrics={"loss": 1.0})
            with pytest.raises(checkpoints.CheckpointError, match="that a saver did not write"):
                saver.restore(step=3)
            assert saver.restore() is None
            for s in (4, 5, 6, 7):
                saver.save(s, {"w": np.zeros(3)}, metrics={"loss": 1.0})
            assert steps(saver) == [4, 5, 6, 7]  # the best one, and the newest three
            saver.rewind(5)
            saver.save(6, {"w": np.zeros(3)}, metrics={"loss": 1.0})
        assert checkpoints.load(tmp_path / "step-00000003")["w"].tolist() == [1.0] * 3
        for place in tmp_path.glob("step-0000000[4-7]"):
            for file in place.iterdir():
                file.unlink()
            place.rmdir()


def test_a_checkpoint_of_a_later_version_is_not_damaged(tmp_path):
    """An older step must not be used instead."""
    with checkpoints.Saver(tmp_path) as saver:
        saver.save(1, {"w": np.ones(3)})
        saver.save(2, {"w": np.ones(3)})
    manifest = tmp_path / "step-00000002" / "manifest"
    manifest.write_bytes(manifest.read_bytes().replace(b"checkpoint 2 ", b"checkpoint 3 "))
    for look in (
        lambda s: s.restore(),
        lambda s: s.latest(),
        lambda s: s.steps(),
        lambda s: s.save(3, {"w": np.ones(3)}),
    ):
        with pytest.raises(checkpoints.CheckpointError, match="reads checkpoints of version 2 and earlier; got 3"):
            look(checkpoints.Saver(tmp_path))


def test_the_template_may_depend_on_the_metadata(tmp_path):
    with checkpoints.Saver(tmp_path) as saver:
        saver.save(1, {"w": np.ones(3)}, metadata={"names": ["w"]})
        found = saver.restore(template=lambda more: {n: np.zeros(3) for n in more["names"]})
    assert found.tree["w"].tolist() == [1.0] * 3
