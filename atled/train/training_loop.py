"""`Run`: the implementation of `fit`.

Steps are launched before the values of the previous steps are known (`AHEAD`, `LAG`); values are logged in order when
they are ready. A checkpoint is written after its steps were logged, and a resumed run removes later log entries, so
that the log has each step once, with the numbers of an uninterrupted run.

A method that waits for in-flight steps returns whether the run is still at the same step: it may have gone back to a
checkpoint.
"""

from __future__ import annotations

import collections
import difflib
import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

import atled.numpy as jnp
from atled import checkpoints, distributed, random
from atled.checkpoints.saver import Restored
from atled.core import errors
from atled.engine.progress import Progress
from atled.optim.serialization import UnknownError, changed_functions, recalled, record, shown
from atled.staging.find_nans import find_nans
from atled.train.batch_feed import arguments
from atled.train.evaluation import Evaluation, evaluate, tried
from atled.train.logs import from_plain, plain
from atled.train.state import State, gradients
from atled.train.stop_signals import Stopping
from atled.train.train_step import RESERVED, guarded, step, takes_key

AHEAD = 2  # steps that may be in flight before values are read
LAG = 0.1  # seconds of short steps that may be in flight, if more than AHEAD
LOOKS = 3  # how often a run locates the origin of a NaN, by running a step op by op
BACKS = 3  # how often a run goes back to the same checkpoint
SKIPS = 100  # how many steps in a row may be skipped
_END = object()


class _Sent(NamedTuple):
    """An in-flight step."""

    step: int
    metrics: dict[str, Any]
    batch: Any
    place: Any  # the position in the data after the batch


class Run:
    """A run of `fit`, for callbacks: `step`, `state` and `metrics` of this step, `values` of the last logged step.

    A callback may assign to `state`, call `stop()`, or `log(name=value)`, which adds values to this step's log entry.

    >>> from atled import data, nn, optim, random, train
    >>> import numpy as np
    >>> def halfway(run):
    ...     if run.step == 5:
    ...         run.stop()
    >>> ones = data.source([np.ones((2, 3), "float32")])
    >>> model = nn.Linear(3, 1, key=random.key(0))
    >>> state = train.fit(model, lambda m, x: (m(x) ** 2).mean(), ones, optim.SGD(0.1), steps=10, callbacks=[halfway],
    ...                   progress=False)
    >>> int(state.step)
    5
    """

    def __init__(
        self, state: State, loss: Callable[..., Any], batches: Any, bar: Progress, steps: int | None, *, has_aux: bool,
        gradient_accumulation_steps: int, nans: str | None, evaluation: Evaluation | None, sharding: Any,
        saver: checkpoints.Saver | None, loggers: list[Any], callbacks: list[Callable[[Any], Any]],
    ) -> None:  # fmt: skip
        self.state, self.loss, self.batches, self.bar, self.steps = state, loss, batches, bar, steps
        self.has_aux, self.gradient_accumulation_steps, self.nans = has_aux, gradient_accumulation_steps, nans
        self.evaluation, self.sharding = evaluation, sharding
        self.saver, self.loggers, self.callbacks = saver, loggers, callbacks
        chooses = saver if saver is not None else evaluation
        self.best = None if chooses is None else chooses.best
        self.step = int(state.step)
        self.metrics: dict[str, Any] = {}
        self.values: dict[str, float] = {}
        self.best_value: float | None = None
        self.waited = 0  # evaluations since the best value
        self._sent: collections.deque[_Sent] = collections.deque()
        self._extra: dict[int, dict[str, float]] = {}  # values that callbacks log, by step
        self._called = self.step  # the last step whose callbacks have run
        self._is_open = False  # whether `values` are those of a step that is not logged yet
        self._is_over = False
        self._is_first = True  # whether no step has been launched yet
        self._evaluated: list[str] = []  # names of evaluation metrics
        self._reach = AHEAD  # the number of steps that may be in flight
        self._looked = (time.perf_counter(), self.step)
        self._looks = self._skipped = 0
        self._backs: collections.Counter[int] = collections.Counter()
        self._saved = -1
        self._is_recalled = False  # whether the optimizer of the checkpoint was rebuilt from its record
        key = None if state.key is None else np.asarray(random.key_data(state.key)).tolist()
        # metadata of a checkpoint
        self._about = {"optimizer": shown(state.optimizer), "record": record(state.optimizer), "key": str(key)}

    def stop(self) -> None:
        """End the run after this step."""
        self._is_over = True

    def log(self, **values: Any) -> None:
        """Add numbers to this step's log entry."""
        if RESERVED & set(values):
            raise ValueError(errors.explained(f"train.fit: {', '.join(sorted(RESERVED))} are reserved names."))
        self._extra.setdefault(self.step, {}).update({k: float(v) for k, v in values.items()})

    # -- the loop -------------------------------------------------------------------------------------------------

    def go(self) -> State:
        """Run the whole loop: resume, train, evaluate, save; returns the last state."""
        if (e := self.evaluation) is not None:
            assert e.metrics_fn is not None
            found = tried(self.state.eval_model(), e.metrics_fn, e.batches)
            self._evaluated = [f"eval/{name}" for name in found]
        self._resume()
        make = step if self.nans is None else guarded
        self._run: Any = make(
            self.loss, has_aux=self.has_aux, gradient_accumulation_steps=self.gradient_accumulation_steps
        )
        self._held: Any = jnp.asarray(False)
        self.bar.begin()
        with Stopping(self.saver is not None) as stopping:
            while not self._is_done() or not self._settle(0):  # `_settle` may go back to a checkpoint
                batch = next(self.batches, _END)
                if batch is _END:
                    self._is_over = self._settle(0) and self._at_the_end()
                    continue
                self._send(batch)
                if self._settle(self._left()) and self._after_step() and stopping.decided(self.step):
                    break
            self._settle(0)
            if self.saver is not None:
                if self.step != self._saved:
                    self._save(force=True)
                self.saver.wait()
            stopping.end()
        return self.state

    def _left(self) -> int:
        """The number of steps that may be in flight now. The values of short steps are read in groups."""
        if self.callbacks and self.nans == "skip":
            return 0  # callbacks must not run twice
        if len(self._sent) <= self._reach:
            return self._reach
        now = time.perf_counter()
        pace, self._looked = (now - self._looked[0]) / max(self.step - self._looked[1], 1), (now, self.step)
        if not distributed.is_initialized():  # processes must launch the same steps
            self._reach = min(max(int(LAG / max(pace, 1e-6)), AHEAD), 16)
        return AHEAD

    def _is_done(self) -> bool:
        return self._is_over or (self.steps is not None and self.step >= self.steps)

    def _send(self, batch: Any, place: Any = None) -> None:
        """Start a step."""
        if place is None and self.saver is not None:
            place = self.batches.place
        own = [] if self.nans is None else [self._held]
        if self._is_first:
            self._is_first = False
            self._check_best(lambda: self._run.eval_shape(self.state, *own, *arguments(batch))[-1])
        self.state, *own, self.metrics = self._run(self.state, *own, *arguments(batch))
        (self._held,) = own or [None]
        self.step += 1
        self._sent.append(_Sent(self.step, self.metrics, batch, place))

    def _settle(self, left: int) -> bool:
        """Read values until at most `left` steps are in flight; returns False if the run went back to a checkpoint."""
        while len(self._sent) > left:
            sent = self._sent[0]
            values = {k: float(v) for k, v in sent.metrics.items() if np.ndim(v) == 0}
            if self.nans is not None and not self._is_good(values):
                if not self._heal(sent, values):
                    return False
                continue
            self._sent.popleft()
            self._count_skipped(values)
            self._keep(sent, values)
        return True

    def _keep(self, sent: _Sent, values: dict[str, float]) -> None:
        """Process the values of a step. The values are logged once the step's evaluation is also done."""
        self.values = {**values, **self._extra.pop(sent.step, {})}
        self.bar.show(**{k: v for k, v in self.values.items() if k == "loss" or self.has_aux})
        self.bar.advance(sent.batch)
        self._is_open = self._is_milestone(sent.step) or sent.step > self._called
        if not self._is_open:
            self._log(sent.step)

    def _log(self, step: int) -> None:
        self._is_open = False
        for logger in self.loggers:
            logger.log(step, dict(self.values))

    def _after_step(self) -> bool:
        """Run callbacks, evaluation and checkpoint of a step; returns False if the run went back to a checkpoint."""
        for callback in self.callbacks:
            callback(self)
        self._called = self.step
        is_better = False
        if self._is_milestone(self.step):
            if not self._settle(0):
                return False
            is_better = self._evaluate()
        if self._is_open:
            self.values |= self._extra.pop(self.step, {})
            self._log(self.step)
        if self.saver is None:
            return True
        if self.step % self.saver.every == 0 or (is_better and self.saver.best is not None):
            return self._save(force=True)
        if self._saved < 0:
            self._saved = 0
            self.saver.save(self.step, self.state)  # does not save here, but allocates staging memory in advance
        return True

    # -- evaluation -----------------------------------------------------------------------------------------------

    def _is_milestone(self, step: int) -> bool:
        """Whether the model is evaluated at this step."""
        is_last = step == self.steps or (self._is_over and step == self.step)
        return self.evaluation is not None and (is_last or step % self.evaluation.every == 0)

    def _at_the_end(self) -> bool:
        """The data ended: warn if steps are missing, evaluate, and log the last step again with the result."""
        if self._is_first and not self.step:
            raise ValueError(errors.explained("train.fit: there are no batches."))
        if self.steps is not None:
            warnings.warn(f"train.fit: the batches ended after step {self.step} of {self.steps}.", stacklevel=2)
        if self.evaluation is not None and self.values and not any([k.startswith("eval/") for k in self.values]):
            self._rewind(self.step - 1)
            self._evaluate()
            self._log(self.step)
            self._saved = -1
        return True

    def _evaluate(self) -> bool:
        """Measure the model; returns whether it is the best so far."""
        e = self.evaluation
        assert e is not None and e.metrics_fn is not None
        results = evaluate(
            self.state.eval_model(), e.metrics_fn, e.batches, sharding=self.sharding, progress=self.bar.is_shown
        )
        self.values |= {f"eval/{k}": float(v) for k, v in results.items() if isinstance(v, (int, float))}
        self.bar.show(**{k: v for k, v in self.values.items() if k.startswith("eval/")})
        return self.best is not None and self._compare(self.best, e)

    def _check_best(self, of_steps: Callable[[], Any]) -> None:
        """Raise if no step will have the best metric. Names that callbacks might log are accepted."""
        name, known = self.best, list(self._evaluated)
        if name is None or name in known:
            return
        if not name.startswith("eval/"):
            known += list(of_steps())
            if name in known or self.callbacks:
                return
        self._no_metric(name, known)

    def _no_metric(self, name: str, known: Sequence[str]) -> NoReturn:
        says = f"train.fit: best={name!r} must be a metric of the run; it has {', '.join(known)}."
        near = difflib.get_close_matches(name, known, 1, 0)
        raise ValueError(errors.explained(says, f"best={near[0]!r}." if near else ""))

    def _compare(self, name: str, evaluation: Evaluation) -> bool:
        """Whether the model improved; stops the run when patience is exhausted."""
        if name not in self.values:
            self._no_metric(name, list(self.values))
        value, before = self.values[name], self.best_value
        is_better = before is None or (value < before if evaluation.mode == "min" else value > before)
        is_better = is_better and not math.isnan(value)
        if self.step % evaluation.every:  # the last step: not counted, because a longer run would not evaluate here
            return is_better
        if is_better:
            self.best_value, self.waited = value, 0
            return True
        self.waited += 1
        if self._is_out_of_patience():
            self.bar.say(f"train.fit: {name} was not better than {before} in {self.waited} evaluations.")
            self.stop()
        return False

    def _is_out_of_patience(self) -> bool:
        patience = None if self.evaluation is None else self.evaluation.patience
        return patience is not None and self.waited >= patience

    # -- checkpoints ----------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Resume from the last checkpoint."""
        if self.saver is None:
            return
        restored = self.saver.restore(template=self._begun)
        if restored is not None:
            self._check(restored)
            self._go_to(restored)
            self.batches.restore(restored.metadata["data"])
            self._is_over = self._is_out_of_patience()
        self._rewind(self.step)
        if restored is None and self.nans == "back":
            self._save(force=True)

    def _begun(self, metadata: Any) -> State:
        """The template for restoring: this state, with the optimizer of the checkpoint if it can be rebuilt."""
        if not isinstance(metadata, dict) or not {"data", "about"} <= set(metadata):
            raise checkpoints.CheckpointError(
                errors.explained(
                    f"train.fit: {self.saver and self.saver.directory} has checkpoints that fit did not write.",
                    "another directory, or checkpoints.load and fit(state, …).",
                )
            )
        found = metadata["about"].get("record")
        if found == self._about["record"]:
            return self.state
        try:
            optimizer = recalled(found, self.state.optimizer)
        except UnknownError:
            return self.state
        self._is_recalled = True
        begun = self.state.__copy__()
        begun.optimizer, begun.opt_state = optimizer, optimizer.init(self.state.model)
        return begun

    def _check(self, found: Restored) -> None:
        """Warn about arguments that a resumed run ignores, and about functions that it cannot restore."""
        now, then = self._about, found.metadata["about"]
        for name in ("optimizer", "key"):
            is_same = name == "optimizer" and self._is_recalled and record(found.tree.optimizer) == now["record"]
            if then[name] != now[name] and not is_same:  # another version may print the optimizer differently
                says = f"the run continues with its original {name}, {then[name]}, not with {now[name]} of this call."
                if name == "optimizer" and found.tree.optimizer is self.state.optimizer:
                    says = f"the run began with the optimizer {then[name]}, which cannot be restored; "
                    says += f"the run continues with {now[name]}."
                warnings.warn(f"train.fit: {says}", stacklevel=2)
        for name in changed_functions(then.get("record"), found.tree.optimizer):
            says = f"the run began with another function {name} in its optimizer. Functions are not saved; the run "
            warnings.warn(f"train.fit: {says}continues with the function of this call.", stacklevel=2)
        self._about = {**then, "optimizer": shown(found.tree.optimizer), "record": record(found.tree.optimizer)}
        if self.steps is not None and found.step > self.steps:
            warnings.warn(f"train.fit: the run is at step {found.step} already.", stacklevel=2)

    def _go_to(self, found: Restored) -> None:
        self.state, self.step, self._saved = found.tree, found.step, found.step
        self.values = {k: from_plain(v) for k, v in found.metadata["values"].items()}
        self.best_value, self.waited = None, 0
        if found.metadata["best"][0] == self.best:
            _, self.best_value, self.waited = found.metadata["best"]
        self._called, self._is_open, self._is_over = self.step, False, False
        self._extra.clear()
        self.bar.back_to(found.step)

    def flush(self) -> None:
        """Flush all loggers."""
        for logger in self.loggers:
            if hasattr(logger, "flush"):
                logger.flush()

    def _rewind(self, step: int) -> None:
        for logger in self.loggers:
            if hasattr(logger, "rewind"):
                logger.rewind(step)

    def _save(self, force: bool = False) -> bool:
        """Wait for the values of this step and save it; returns False if the run went back to a checkpoint."""
        if not self._settle(0):
            return False
        if self._is_open:
            self._log(self.step)
        self.flush()
        assert self.saver is not None
        numbers = dict(self.values)
        if self.saver.best is not None and (self.saver.best.startswith("eval/") or not numbers):
            numbers.setdefault(self.saver.best, math.nan)  # not evaluated at this step
        more = {
            "data": self.batches.state(),
            "best": [self.best, self.best_value, self.waited],
            "values": {k: plain(v) for k, v in self.values.items()},
            "about": self._about,
        }
        self.saver.save(self.step, self.state, metadata=more, metrics=numbers, force=force)
        self._saved = self.step
        return True

    # -- losses and gradients that are not finite -----------------------------------------------------------------

    def _is_good(self, values: dict[str, float]) -> bool:
        is_scaled = (
            self.state.optimizer.has_scale
        )  # with loss scaling, gradients may overflow, and the scale is reduced
        return math.isfinite(values["loss"]) and (is_scaled or math.isfinite(values["norm"]))

    def _count_skipped(self, values: dict[str, float]) -> None:
        """Raise if a loss scale has skipped more than `SKIPS` steps in a row."""
        self._skipped = 0 if math.isfinite(values["norm"]) or self.nans is None else self._skipped + 1
        if self._skipped > SKIPS:
            raise FloatingPointError(
                errors.explained(f"train.fit: step {self.step}: the gradients of {SKIPS} steps were not finite.")
            )

    def _heal(self, sent: _Sent, values: dict[str, float]) -> bool:
        """Handle a non-finite step: stop, skip, or go back. `state` is the state before that step."""
        later = list(self._sent)[1:]
        self._sent.clear()
        self._held = jnp.asarray(False)
        what = f"loss {values['loss']:g}, norm of gradients {values['norm']:g}"
        says = f"train.fit: step {sent.step}: {what}.{self._look(sent.batch)}"
        if self.nans == "stop":
            self._keep(sent, values)
            if self._is_open:
                self._log(sent.step)
            raise FloatingPointError(
                errors.explained(says, 'a smaller rate, optim.clip_by_global_norm, or nans="skip" or "back".')
            )
        if self.nans == "skip":
            self._skip(sent, values, says)
            for one in later:
                self._send(one.batch, one.place)
            return True
        return self._go_back(sent, says)

    def _look(self, batch: Any) -> str:
        """The origin of a NaN as text for the message; empty after `LOOKS` calls."""
        self._looks += 1
        if self._looks > LOOKS:
            return ""
        must = takes_key(self.loss)[0] and self.state.key is not None
        more = {"key": self.state.step_key()} if must else {}
        try:
            whole = gradients(self.loss, has_aux=self.has_aux)
            origin = find_nans(whole, infs=True)(self.state.model, *arguments(batch), **more)
        except Exception as error:  # errors here must not stop the run
            return f" The origin could not be located: {error}"
        return f"\n{origin}" if origin is not None else " Run op by op, the step has only finite values."

    def _skip(self, sent: _Sent, values: dict[str, float], says: str) -> None:
        self._skipped += 1
        if self._skipped > SKIPS:
            raise FloatingPointError(errors.explained(f"{says}\n  The {SKIPS} previous steps were not finite either."))
        after = self.state.__copy__()
        after.step = after.step + 1
        warnings.warn(f"{says}\n  The batch is skipped.", stacklevel=2)
        self._keep(sent, {**values, "skipped": 1.0})
        self.state, self.step = after, sent.step

    def _go_back(self, sent: _Sent, says: str) -> bool:
        assert self.saver is not None
        restored = self.saver.restore(template=self.state)
        if restored is None or self._backs[restored.step] >= BACKS:
            raise FloatingPointError(errors.explained(f"{says}\n  Going back {BACKS} times did not help."))
        self._backs[restored.step] += 1
        warnings.warn(f"{says}\n  Restored step {restored.step}; continuing after this batch.", stacklevel=2)
        self._go_to(restored)
        self.batches.restore(sent.place)
        self._rewind(restored.step)
        return False
