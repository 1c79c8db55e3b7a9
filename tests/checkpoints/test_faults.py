"""Faults: a checkpoint that was damaged in any way is refused by name, and no step that was acknowledged is lost.

`scripts/checkpoint-faults` runs many more of each.
"""

import contextlib
import os
import pathlib
import random as std_random
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from faults import equal, flip, harmless_or_refused, tree_for

from atled import checkpoints
from atled.checkpoints import CheckpointError, coordination
from atled.checkpoints.format import Damaged
from atled.checkpoints.storage import Local

HERE = pathlib.Path(__file__).parent


@pytest.fixture
def saved(tmp_path):
    checkpoints.save(tmp_path / "c", tree_for(1), metadata={"step": 1})
    return tmp_path / "c"


def test_no_flipped_bit_is_silent(saved):
    rng = std_random.Random(0)
    counts = {"refused": 0, "harmless": 0}
    for _ in range(300):
        with flip(rng, saved):
            counts[harmless_or_refused(saved, tree_for(1))] += 1
    assert counts["refused"] > 250  # the rest hit bytes between pieces, which mean nothing


@pytest.mark.parametrize("bit", range(8))
def test_every_bit_of_the_manifest_counts(saved, bit):
    data = bytearray((saved / "manifest").read_bytes())
    for i in range(0, len(data), 7):
        bad = bytearray(data)
        bad[i] ^= 1 << bit
        (saved / "manifest").write_bytes(bad)
        with pytest.raises(CheckpointError):
            checkpoints.load(saved)


@pytest.mark.parametrize("how", ["half", "empty", "gone", "one byte less", "longer"])
def test_files_that_are_cut(saved, how):
    for file in sorted(saved.iterdir()):
        whole = file.read_bytes()
        if how == "gone":
            file.unlink()
        else:
            size = {"half": len(whole) // 2, "empty": 0, "one byte less": len(whole) - 1}.get(how)
            file.write_bytes(whole + b"x" if size is None else whole[:size])
        found = harmless_or_refused(saved, tree_for(1))
        assert found == "refused" or (how == "longer" and file.suffix == ".data")
        file.write_bytes(whole)
    assert harmless_or_refused(saved, tree_for(1)) == "harmless"


def test_the_damaged_array_is_named(saved):
    file = max(saved.iterdir(), key=lambda f: f.stat().st_size)
    data = bytearray(file.read_bytes())
    entry = checkpoints.manifest(saved).arrays["params/w2"]
    data[entry.pieces[0].offset + 5] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"params/w2 is damaged: its checksum .* \d+ bytes at \d+"):
        checkpoints.load(saved)
    seen = []
    with pytest.raises(CheckpointError, match="1 of 5 arrays are damaged: params/w2"):
        checkpoints.verify(saved, lambda name, why: seen.append(name))
    assert seen == ["params/w2"]


def test_swapped_files(tmp_path):
    for step in (1, 2):
        checkpoints.save(tmp_path / str(step), tree_for(step))
    one, two = [next(f for f in (tmp_path / s).iterdir() if f.suffix == ".data") for s in "12"]
    shutil.copy(two, one)
    assert harmless_or_refused(tmp_path / "1", tree_for(1)) == "refused"
    shutil.copy(tmp_path / "2" / "manifest", tmp_path / "1" / "manifest")
    assert harmless_or_refused(tmp_path / "1", tree_for(1)) == "refused"


def test_a_saver_passes_over_what_is_damaged_and_says_so(tmp_path):
    saver = checkpoints.Saver(tmp_path, wait=True)
    for step in (1, 2, 3):
        saver.save(step, tree_for(step))
    newest = max((tmp_path / "step-00000003").iterdir(), key=lambda f: f.stat().st_size)
    data = bytearray(newest.read_bytes())
    data[64] ^= 4
    newest.write_bytes(data)
    with pytest.warns(UserWarning, match=r"step 2 is restored.*step-00000003: params/w0 is damaged"):
        assert saver.restore(template=tree_for(2)).step == 2
    newest.write_bytes(data[:100])
    assert saver.latest() == 2 and saver.steps() == [1, 2]
    with pytest.warns(UserWarning, match="its file .* is missing or has a different size"):
        assert saver.restore(template=tree_for(2)).step == 2
    with pytest.raises(CheckpointError, match="is damaged"):
        saver.restore(template=tree_for(3), step=3)
    for step in (1, 2):
        shutil.rmtree(tmp_path / f"step-{step:08d}")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* is intact"):
        saver.restore(template=tree_for(3))


def test_a_tree_that_does_not_fit_is_no_damage(tmp_path):
    saver = checkpoints.Saver(tmp_path, wait=True)
    saver.save(1, {"x": 1})
    saver.save(2, {"y": 1})
    with pytest.raises(CheckpointError, match="does not match the template"):  # and not step 1
        saver.restore(template={"x": 0})


def test_kills_lose_nothing(tmp_path):
    """SIGKILL at random moments: the newest acknowledged step is there, whole; nothing is left over for long."""
    rng, acknowledged = std_random.Random(0), 0
    for _ in range(6):
        command = [sys.executable, str(HERE / "faults.py"), str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for count, line in enumerate(process.stdout):
                word, step = line.split()
                if word == "AT":
                    assert int(step) >= acknowledged
                elif word == "SAVED":
                    acknowledged = int(step)
                if count > 3 and rng.random() < 0.3:
                    break
            os.kill(process.pid, signal.SIGKILL)
            for line in process.stdout:  # what was acknowledged before it died
                word, step = line.split()
                acknowledged = int(step) if word == "SAVED" else acknowledged
    assert acknowledged > 6
    saver = checkpoints.Saver(tmp_path, wait=True)
    latest = saver.latest()
    assert latest is not None and latest >= acknowledged
    saver.save(latest + 1, tree_for(latest + 1))
    assert len(list(tmp_path.iterdir())) <= 3


def test_a_read_only_directory(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="could not be created: Permission denied"):
        checkpoints.save(tmp_path / "c", {"x": 1})


def test_a_full_disk_is_said_and_what_was_there_stays(tmp_path, monkeypatch):
    saver = checkpoints.Saver(tmp_path)
    saver.save(1, tree_for(1))
    saver.wait()

    def write(self, name, chunks):
        raise self._failed(f"written ({name})", OSError(28, "No space left on device"))

    monkeypatch.setattr(Local, "write", write)
    saver.save(2, tree_for(2))
    with pytest.raises(CheckpointError, match="No space left on device"):
        saver.wait()
    monkeypatch.undo()
    assert saver.latest() == 1
    saver.save(3, tree_for(3))
    saver.wait()
    assert saver.steps() == [1, 3] and not (tmp_path / "step-00000002").exists()


def test_errors_in_the_background_come_with_the_next_call(tmp_path):
    for act in (
        lambda s: s.save(5, {"x": 1}), lambda s: s.steps(), lambda s: s.latest(), lambda s: s.restore(),
        lambda s: s.close(),
    ):  # fmt: skip
        (tmp_path / "file").write_text("")
        saver = checkpoints.Saver(tmp_path / "file")
        saver.save(1, {"x": np.ones(3)})
        saver._written.wait()
        with pytest.raises(CheckpointError, match="could not be created"):
            act(saver)


def test_an_error_is_printed_at_exit(tmp_path):
    (tmp_path / "file").write_text("")
    code = f"from atled import checkpoints\ncheckpoints.Saver({str(tmp_path / 'file')!r}).save(1, {{'x': 1}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "the last save failed" in done.stderr and "could not be created" in done.stderr


def test_what_is_being_saved_at_exit_is_saved(tmp_path):
    code = (
        "from atled import checkpoints; import numpy as np\n"
        f"checkpoints.Saver({str(tmp_path)!r}).save(1, {{'x': np.ones(10**7)}})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert checkpoints.Saver(tmp_path).latest() == 1


def test_an_error_of_a_saver_that_was_dropped_is_printed(tmp_path):
    (tmp_path / "file").write_text("")
    code = (
        "import gc, time; from atled import checkpoints\n"
        f"checkpoints.Saver({str(tmp_path / 'file')!r}).save(1, {{'x': 1}}); time.sleep(0.5); gc.collect()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "the last save failed" in done.stderr


def test_a_save_at_exit(tmp_path):
    code = (
        "import atexit; from atled import checkpoints; import numpy as np\n"
        f"atexit.register(lambda: checkpoints.Saver({str(tmp_path)!r}).save(1, {{'x': np.ones(10)}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and checkpoints.Saver(tmp_path).latest() == 1


def test_an_interrupted_wait_waits_again(tmp_path, monkeypatch):
    """Ctrl-C while a step is written: the next save may not touch its memory, and nothing is lost."""
    gate, write = threading.Event(), Local.write

    def slow(self, name, chunks):
        assert gate.wait(30)
        return write(self, name, chunks)

    monkeypatch.setattr(Local, "write", slow)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background may ignore it
    saver = checkpoints.Saver(tmp_path, max_to_keep=None)
    saver.save(1, {"x": np.full(1000, 1)})
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            saver.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    threading.Timer(0.3, gate.set).start()
    saver.save(2, {"x": np.full(1000, 2)})
    saver.wait()
    for step in (1, 2):
        assert (saver.restore(step=step).tree["x"] == step).all()


@pytest.mark.parametrize("after", range(4))
def test_ctrl_c_around_the_moment_of_the_manifest(tmp_path, monkeypatch, after):
    """The directory holds the old checkpoint or the new one, whole."""
    checkpoints.save(tmp_path, {"x": np.full(1000, 1)})
    calls = 0

    def interrupted(f):
        def g(*args):
            nonlocal calls
            calls += 1
            if calls == after + 1:
                raise KeyboardInterrupt
            return f(*args)

        return g

    for name in ("sync", "delete"):
        monkeypatch.setattr(Local, name, interrupted(getattr(Local, name)))
    with pytest.raises(KeyboardInterrupt) if after < 3 else contextlib.nullcontext():
        checkpoints.save(tmp_path, {"x": np.full(1000, 2)})
    monkeypatch.undo()
    assert (checkpoints.load(tmp_path)["x"] == (1 if after == 0 else 2)).all()


def test_a_signal_handler_in_the_middle_of_a_save(tmp_path, monkeypatch):
    saver = checkpoints.Saver(tmp_path)
    copied = saver._staging.copied

    def interrupted(taken):
        made = copied(taken)
        with pytest.raises(RuntimeError, match="by a signal handler in the middle of save"):
            saver.save(2, {"x": np.full(10, 2)})
        return made

    monkeypatch.setattr(saver._staging, "copied", interrupted)
    saver.save(1, {"x": np.full(10, 1)})
    assert (saver.restore(step=1).tree["x"] == 1).all()


def test_files_of_others_stay(tmp_path):
    (tmp_path / "train.py").write_text("")
    for step in (1, 2):
        checkpoints.save(tmp_path, tree_for(step))
    assert (tmp_path / "train.py").exists() and len(list(tmp_path.iterdir())) == 3
    with pytest.raises(TypeError, match="must be a directory, a URL or a dict; got ''"):
        checkpoints.save("", {"x": 1})


def test_two_saves_of_one_path_leave_one_of_them(tmp_path, monkeypatch):
    """One is written and done between the files and the manifest of the other."""
    collected, inner = coordination.World.collected, []

    def between(self, mine):
        if not inner:
            inner.append(True)
            checkpoints.save(tmp_path, tree_for(2))
        return collected(self, mine)

    monkeypatch.setattr(coordination.World, "collected", between)
    checkpoints.save(tmp_path, tree_for(1))
    assert harmless_or_refused(tmp_path, tree_for(1)) == "harmless"


def test_links_are_not_followed_when_removing(tmp_path):
    checkpoints.Saver(tmp_path / "other", wait=True).save(1, tree_for(1))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "step-00000001").symlink_to(tmp_path / "other" / "step-00000001")
    checkpoints.Saver(tmp_path / "run", max_to_keep=1, wait=True).save(5, tree_for(5))
    assert checkpoints.Saver(tmp_path / "other").latest() == 1 and not (tmp_path / "run" / "step-00000001").exists()


def test_after_a_damaged_step_the_run_goes_on(tmp_path):
    saver = checkpoints.Saver(tmp_path, wait=True)
    for step in (10, 20):
        saver.save(step, tree_for(step))
    with flip(std_random.Random(1), tmp_path / "step-00000020"), pytest.warns(UserWarning, match="step 10 is restored"):
        assert saver.restore(template=tree_for(1)).step == 10
        saver.save(15, tree_for(15))
    assert 15 in saver.steps()


def test_a_disk_that_is_full_at_the_manifest(tmp_path, monkeypatch):
    def replace(self, name, data):
        raise self._failed("written", OSError(28, "No space left on device"))

    saver = checkpoints.Saver(tmp_path, wait=True)
    with monkeypatch.context() as m:
        m.setattr(Local, "replace", replace)
        with pytest.raises(CheckpointError, match="No space left"):
            saver.save(1, tree_for(1))
    assert list(tmp_path.iterdir()) == []
    saver.save(1, tree_for(1))


def test_a_disk_that_cannot_read_the_newest(tmp_path, monkeypatch):
    saver = checkpoints.Saver(tmp_path, wait=True)
    for step in (1, 2):
        saver.save(step, tree_for(step))
    parts = Local.parts

    def failing(self, *args):
        if "step-00000002" in str(self):
            raise self._failed("read", OSError(5, "Input/output error"), Damaged)
        return parts(self, *args)

    monkeypatch.setattr(Local, "parts", failing)
    with pytest.warns(UserWarning, match="Input/output error"):
        assert saver.restore(template=tree_for(1)).step == 1


def test_a_checkpoint_of_somebody_else_among_the_steps(tmp_path):
    saver = checkpoints.Saver(tmp_path, wait=True, max_to_keep=1)
    checkpoints.save(tmp_path / "step-00000002", {"x": 1})
    for step in (1, 3):
        saver.save(step, tree_for(step))
    assert saver.steps() == [3] and (tmp_path / "step-00000002").exists()


def test_a_reader_beside_a_writer(tmp_path):
    """What is replaced while it is read is read again."""
    checkpoints.save(tmp_path, tree_for(0))
    stop = threading.Event()

    def replace():
        step = 0
        while not stop.is_set():
            step = (step + 1) % 3
            checkpoints.save(tmp_path, tree_for(step))

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(30):
            found = checkpoints.load(tmp_path, template=tree_for(0))
            assert equal(found, tree_for(int(found["step"])))
    finally:
        stop.set()
        writer.join()


def test_the_long_script_runs():
    script = HERE.parents[1] / "scripts" / "checkpoint-faults"
    done = subprocess.run([sys.executable, str(script), "--share", "0.003"], capture_output=True, text=True)
    assert done.returncode == 0 and "nothing was silent, nothing was lost" in done.stdout, done.stderr
