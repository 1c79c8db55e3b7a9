"""`save`, and `Saver`, which manages the checkpoints of a run and writes in the background during training."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import threading
import types
import warnings
from typing import Any, NamedTuple, Self

from atled import distributed
from atled.checkpoints import shard_reader, shard_writer
from atled.checkpoints.coordination import all_say, chosen_by_first
from atled.checkpoints.format import MANIFEST, CheckpointError, Damaged, Manifest
from atled.checkpoints.staging_buffers import Staging
from atled.checkpoints.storage import place
from atled.core import errors
from atled.core.former_names import formerly
from atled.engine import client


@formerly(more="metadata")
def save(path: Any, tree: Any, *, metadata: Any = None) -> None:
    """Write the arrays of a tree to a directory or a URL; the checkpoint is on disk when this returns.

    An old checkpoint at the path stays valid until then. With several processes, all must call `save`, and each writes
    the shards on its devices.

    Args:
        path: a directory, a URL such as `s3://bucket/run`, or a dict, the tensorstore spec of a key-value store.
        tree: a pytree of arrays and numbers, such as modules, dicts and lists; leaves are stored by their paths.
        metadata: JSON-serializable metadata; `manifest(path).metadata` returns it.

    >>> import tempfile
    >>> from atled import checkpoints
    >>> import atled.numpy as jnp
    >>> with tempfile.TemporaryDirectory() as path:
    ...     checkpoints.save(path, {"w": jnp.arange(3)})
    ...     print(checkpoints.load(path, template={"w": jnp.zeros(3, "int32")}))
    {'w': Array([0, 1, 2], dtype=int32)}
    """
    shard_writer.write(path, shard_writer.snapshot(tree), shard_writer.plain(metadata), "save")


@formerly(more="metadata")
class Restored(NamedTuple):
    """A restored checkpoint: the step, the tree, and the metadata."""

    step: int
    tree: Any
    metadata: Any


@formerly(keep="max_to_keep")
class Saver:
    """Keeps checkpoints of a run in a directory or under a URL, one for each saved step.

    Saves run in the background; each waits for the previous one. The next method call raises the error of a background
    save; errors that no call raises are printed at exit. `steps()` lists the checkpoints that are complete and on disk.

    Args:
        directory: a directory, a URL, or a dict, as for `save`.
        every: save only steps that are multiples of it.
        max_to_keep: the number of newest checkpoints to keep; None keeps all.
        best: the name of a metric; the checkpoint with the best value so far is kept as well.
        mode: "min" or "max": whether the smallest or the largest value is best.
        wait: whether `save` returns only when the checkpoint is on disk.

    >>> import tempfile
    >>> from atled import checkpoints
    >>> import atled.numpy as jnp
    >>> with tempfile.TemporaryDirectory() as path, checkpoints.Saver(path, max_to_keep=2) as saver:
    ...     for step in range(4):
    ...         _ = saver.save(step, {"w": jnp.full(2, step)})
    ...     saver.wait()
    ...     saver.steps(), saver.restore(template={"w": jnp.zeros(2, "int32")})
    ([2, 3], Restored(step=3, tree={'w': Array([3, 3], dtype=int32)}, metadata=None))
    """

    def __init__(
        self,
        directory: Any,
        *,
        every: int = 1,
        max_to_keep: int | None = 3,
        best: str | None = None,
        mode: str = "min",
        wait: bool = False,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(errors.explained(f"checkpoints.Saver: mode must be 'min' or 'max'; got {mode!r}."))
        for name, value in (("every", every), ("max_to_keep", 1 if max_to_keep is None else max_to_keep)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    errors.explained(f"checkpoints.Saver: {name} must be a positive integer; got {value!r}.")
                )
        self.directory = place(directory)
        self.every, self.max_to_keep, self.best, self.mode, self._waits = every, max_to_keep, best, mode, wait
        self._lock, self._is_saving, self._newest = threading.RLock(), False, -1
        self._written = threading.Event()  # set unless a save is in progress
        self._written.set()
        self._error: BaseException | None = None
        self._staging, self._is_prepared = Staging(), wait
        self._values: dict[int, Any] = {}  # metrics of complete steps

    @formerly(more="metadata")
    def save(self, step: int, tree: Any, *, metadata: Any = None, metrics: Any = None, force: bool = False) -> bool:
        """Save a tree if `step` is a multiple of `every`, or with `force`; returns whether it was saved.

        The tree is copied: after this call, arrays may be donated, and NumPy arrays may be changed.

        Args:
            metadata: JSON-serializable metadata, such as the state of a data iterator.
            metrics: numbers by name; must contain `best`, if the saver has one.
            force: whether to save a step that is not a multiple of `every`.
        """
        step = _checked_step(step)
        with self._lock:
            self._raise()
            if step % self.every and not force:
                self._prepare(tree)
                return False
            if self._is_saving:
                raise RuntimeError(
                    errors.explained(
                        "checkpoints.Saver: save was called by a signal handler in the middle of save.",
                        "set a flag in the handler, and save after the step.",
                    )
                )
            self._is_saving = True
            try:
                self._begin(step, tree, shard_writer.plain(metadata), _numbers(metrics))
            finally:
                self._is_saving = False
        return True

    def _begin(self, step: int, tree: Any, metadata: Any, metrics: dict[str, float]) -> None:
        """Save a tree, after the previous save has finished."""
        self.wait()
        self._check_order(step)
        self._check_place(step)
        if self.best is not None and self.best not in metrics:
            raise ValueError(
                errors.explained(
                    f"checkpoints.Saver: metrics must contain {self.best!r}, the metric of the best "
                    f"checkpoint; got "
                    f"{', '.join(metrics) or 'none'}."
                )
            )
        taken = shard_writer.snapshot(tree)
        record = {"step": step, "metrics": metrics, "more": metadata}
        if self._waits:
            return self._write(step, taken, record)
        # releases the arrays of the tree: donating an array that is still referenced would copy it
        taken = self._staging.copied(taken)
        _busy.add(self)
        self._written.clear()
        writer = threading.Thread(target=self._in_background, args=(step, taken, record))
        writer.name = f"atled-checkpoint-{step}"
        try:
            writer.start()
        except RuntimeError:  # the interpreter is shutting down, and starts no more threads
            self._in_background(step, taken, record)

    def wait(self) -> None:
        """Wait until pending saves are on disk."""
        self._written.wait()  # do not join the thread: an interrupted `join` would mark it as ended
        self._raise()

    def steps(self) -> list[int]:
        """The steps with complete checkpoints, oldest first: valid manifests, and all files of the right size."""
        self._raise()
        return [step for step in self._all_steps() if self._manifest(step) is not None]

    def latest(self) -> int | None:
        """The newest complete step; None if no step is complete."""
        self._raise()
        return next((s for s in reversed(self._all_steps()) if self._manifest(s) is not None), None)

    @formerly(like="template")
    def restore(self, template: Any = None, *, step: int | str | None = None, **options: Any) -> Restored | None:
        """The newest intact checkpoint, or that of `step`; None if the directory has no checkpoints.

        Args:
            template: as for `load`, or a function of the checkpoint's metadata that returns the template.
            step: the step to restore, or "best"; raises if it is missing or damaged.
            **options: `partial`, `rename` and `cast` of `load`.

        Without `step`, damaged checkpoints are skipped with a warning that names the array.
        """
        self.wait()
        if step == "best":
            return self._restored(chosen_by_first(self._best_step()), template, options)
        if step is not None:
            return self._restored(_checked_step(step), template, options)
        damaged: list[str] = []
        left = self._all_steps()
        while (s := chosen_by_first(left.pop() if left else -1)) >= 0:  # all processes try the same step
            restored = self._tried(s, template, options, damaged)
            if not all_say(restored is not None):
                damaged += [] if restored is None else [f"Another process could not read step {s}."]
                continue
            for text in damaged:
                says = f"checkpoints.Saver: step {s} is restored, because newer steps are damaged. {text}"
                warnings.warn(says, stacklevel=2)
            self._newest = s  # later saves continue from this step
            return restored
        if damaged:
            raise Damaged(f"checkpoints.Saver: no checkpoint in {self.directory} is intact. {damaged[0]}")
        return None

    def _best_step(self) -> int:
        """The step whose metric is best."""
        self._look(self._all_steps())
        if self.best is None or not self._numbers():
            raise CheckpointError(
                errors.explained(
                    f"checkpoints.Saver: there is no best step in {self.directory}.",
                    'Saver(…, best="eval/loss"), and save with metrics.',
                )
            )
        return self._of_best(self._numbers())

    def _numbers(self) -> dict[int, float]:
        """The metric of each step that has one, by step, without NaN."""
        return {s: v for s, v in self._values.items() if v is not None and v == v}

    def _of_best(self, numbers: dict[int, float]) -> int:
        return (min if self.mode == "min" else max)(sorted(numbers), key=lambda s: numbers[s])

    def _look(self, there: list[int]) -> None:
        """Read the metrics of steps that another process or an earlier run saved."""
        for step in there:
            if step not in self._values:
                manifest = self._manifest(step)
                if manifest is not None:
                    self._values[step] = manifest.metadata["metrics"].get(self.best)

    def _tried(self, step: int, template: Any, options: Any, damaged: list[str]) -> Restored | None:
        """The checkpoint of a step; None if it is missing or damaged, and then adds the error to `damaged`."""
        try:
            if self._manifest(step, is_strict=True) is not None:
                return self._restored(step, template, options)
        except Damaged as error:
            damaged.append(str(error))
        return None

    def rewind(self, step: int) -> None:
        """Remove the checkpoints after `step`, to continue from there. With several processes, all must call it."""
        self.wait()
        step = _checked_step(step)
        if self._manifest(step) is None:
            raise CheckpointError(
                errors.explained(
                    f"checkpoints.Saver: there is no step {step} in {self.directory} to rewind to.", "one of steps()."
                )
            )
        if client.process_index() == 0:
            for later in self._all_steps():
                if later > step:
                    self._remove(later)
        if distributed.is_initialized():
            distributed.sync("checkpoints.Saver.rewind")
        self._newest = step

    def close(self) -> None:
        """Wait for pending writes."""
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # -- internals ------------------------------------------------------------------------------------------------

    def _check_order(self, step: int) -> None:
        """Raise if a step is before the newest: its checkpoint would be pruned first, and never restored."""
        if self._newest < 0:
            self._newest = self.latest() or 0
        if step < self._newest:
            raise ValueError(
                errors.explained(
                    f"checkpoints.Saver: {self.directory} has step {self._newest} already; got the earlier step "
                    f"{step}.",
                    f"saver.rewind({step}), which removes later steps; or another directory.",
                )
            )

    def _check_place(self, step: int) -> None:
        """Raise if the save would replace a checkpoint that a saver did not write."""
        where = self.directory.inside(_name(step))
        with contextlib.suppress(Damaged):
            data = where.read(MANIFEST)
            if data is not None and not _is_record(Manifest.from_bytes(data, str(where)).metadata):
                raise CheckpointError(
                    errors.explained(
                        f"checkpoints.Saver: {where} is a checkpoint that a saver did not write.", "another directory."
                    )
                )

    def _in_background(self, *args: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            _give_way()
        try:
            self._write(*args)
            _busy.discard(self)
        except BaseException as error:
            self._error = error
        finally:
            self._written.set()

    def _prepare(self, tree: Any) -> None:
        """Allocate the staging memory for a tree in the background, before the first save."""
        if not self._is_prepared:
            self._is_prepared = True
            size = shard_writer.snapshot(tree).nbytes
            threading.Thread(target=self._staging.prepare, args=(size + 2**20,), daemon=True).start()

    def _write(self, step: int, taken: shard_writer.Snapshot, kept: Any) -> None:
        is_first = client.process_index() == 0
        if is_first:
            self._clear(step)
        shard_writer.write(self.directory.inside(_name(step)), taken, kept, str(self.directory))
        self._newest = step
        self._values[step] = kept["metrics"].get(self.best)
        if is_first:
            self._prune()

    def _raise(self) -> None:
        """Raise an error of the background thread."""
        error, self._error = self._error, None
        if error is not None:
            _busy.discard(self)
            raise error

    def _all_steps(self) -> list[int]:
        """The steps that have a directory, complete or not."""
        matches = [re.fullmatch(r"step-(\d+)", n) for n in self.directory.folders()]
        return sorted([int(m[1]) for m in matches if m])

    def _manifest(self, step: int, is_strict: bool = False) -> Manifest | None:
        """The manifest of a step; None if it is missing, and if damaged, unless `is_strict`, which raises `Damaged`."""
        where = self.directory.inside(_name(step))
        try:
            data = where.read(MANIFEST)
            if data is None:
                return None  # an unfinished save
            manifest = Manifest.from_bytes(data, str(where))
            shard_reader.check_files(where, manifest)
            if not _is_record(manifest.metadata):
                return None  # written by `save`, not by a saver
            saved_step = manifest.metadata["step"]
            if saved_step != step:
                raise Damaged(f"{where}: the manifest is damaged: it belongs to step {saved_step}.")
        except Damaged:
            if is_strict:
                raise
            return None
        return manifest

    def _restored(self, step: int, template: Any, options: Any) -> Restored:
        where = self.directory.inside(_name(step))
        record = shard_reader.manifest(where).metadata
        if not _is_record(record):
            raise CheckpointError(
                errors.explained(
                    f"checkpoints.Saver: {where} is a checkpoint that a saver did not write.", "checkpoints.load."
                )
            )
        template = template(record["more"]) if isinstance(template, types.FunctionType | types.MethodType) else template
        return Restored(step, shard_reader.load(where, template, **options), record["more"])

    def _clear(self, step: int) -> None:
        """Remove the files of interrupted saves of earlier steps."""
        for other in self._all_steps():
            where = self.directory.inside(_name(other))
            if other < step and other not in self._values and where.read(MANIFEST) is None:
                where.remove(shard_writer.own_files(where))

    def _prune(self) -> None:
        """Remove all checkpoints but the newest `max_to_keep` and the best."""
        if self.max_to_keep is None:
            return
        there = self._all_steps()
        self._look(there)
        whole = [s for s in there if s in self._values]
        kept_steps = set(whole[-self.max_to_keep :])
        numbers = {s: v for s, v in self._numbers().items() if s in whole}
        if self.best is not None and numbers:
            kept_steps.add(self._of_best(numbers))
        for step in whole:
            if step not in kept_steps:
                self._remove(step)

    def _remove(self, step: int) -> None:
        self._values.pop(step, None)
        where = self.directory.inside(_name(step))
        where.remove(shard_writer.own_files(where))  # the manifest first: a directory without it is no checkpoint


def _give_way() -> None:
    """Lower the priority of this thread and of threads that it starts, in favor of training (Linux only)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def _is_record(record: Any) -> bool:
    """Whether the metadata of a manifest was written by a saver."""
    return isinstance(record, dict) and {"step", "metrics", "more"} <= set(record)


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _checked_step(step: Any) -> int:
    try:
        number = step.__index__()
    except (AttributeError, TypeError):
        raise TypeError(errors.explained(f"checkpoints.Saver: the step must be an integer; got {step!r}.")) from None
    if number < 0:
        raise ValueError(errors.explained(f"checkpoints.Saver: the step must not be negative; got {number}."))
    return number


def _numbers(metrics: Any) -> dict[str, float]:
    try:
        return {str(k): float(v) for k, v in dict(metrics or {}).items()}
    except (TypeError, ValueError):
        raise TypeError(
            errors.explained(f"checkpoints.Saver: metrics must be a dict of numbers; got {metrics!r}.")
        ) from None


_busy: set[Saver] = set()  # savers with a save in progress, or an unreported error


def _at_exit() -> None:
    """Wait for pending writes, and report errors."""
    for saver in list(_busy):
        try:
            saver.wait()
        except BaseException as error:
            says = str(error) or f"{type(error).__name__} before it was complete"
            print(f"checkpoints: the last save failed: {says}", file=sys.stderr)


# runs before `concurrent.futures` closes the thread pools that write, which it does before `atexit`, in the same way
threading._register_atexit(_at_exit)  # type: ignore[attr-defined]
atexit.register(_at_exit)  # for saves by other functions that run at exit
