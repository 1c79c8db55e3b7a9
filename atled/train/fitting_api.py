"""`fit`: the training loop with evaluation, checkpoints and logs; implemented in `training_loop.py`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import atled.numpy as jnp
from atled import checkpoints, metrics, nn, optim
from atled.checkpoints.storage import Local
from atled.core import errors, tree
from atled.core.array import ArrayLike
from atled.core.former_names import formerly
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.engine import client
from atled.engine.global_arrays import make_array_from_process_local_data
from atled.engine.progress import Progress
from atled.staging.device_put import device_put
from atled.train.batch_feed import feed, sharding_of
from atled.train.evaluation import Evaluation
from atled.train.logs import JSONL
from atled.train.state import State
from atled.train.train_step import takes_key
from atled.train.training_loop import Run


@formerly(
    evaluate="evaluation=train.Evaluation(batches)", measure="evaluation=train.Evaluation(batches, metrics_fn)",
    every="evaluation=train.Evaluation(batches, every=…), or checkpoint=checkpoints.Saver(path, every=…)",
    best="evaluation=train.Evaluation(batches, best=…), or checkpoint=checkpoints.Saver(path, best=…)",
    mode="evaluation=train.Evaluation(batches, best=…, mode=…)",
    patience="evaluation=train.Evaluation(batches, patience=…)",
    hooks="callbacks", workers="num_workers", micro="gradient_accumulation_steps", tokens="tokens_per_batch",
    average="optim.average(optimizer, decay)",
)  # fmt: skip
def fit(
    model: Any,
    loss: Callable[..., Any],
    batches: Any,
    optimizer: Any = None,
    *,
    steps: int | None = None,
    epochs: int | None = None,
    key: ArrayLike | None = None,
    has_aux: bool = False,
    evaluation: Any = None,
    checkpoint: Any = None,
    loggers: Sequence[Any] = (),
    callbacks: Sequence[Callable[[Any], Any]] = (),
    progress: bool = True,
    tokens_per_batch: Any = None,
    sharding: Any = None,
    num_workers: int = 0,
    gradient_accumulation_steps: int = 1,
    precision: Any = None,
    nans: str | None = "stop",
) -> State:
    """Train a model; returns the `State` after the last step. With a checkpoint, the same call again resumes the run.

    The loss is `loss(model, batch)`, or `loss(model, x, y)` if batches are tuples; a loss with a parameter `key` gets
    the key of the step.

    Args:
        model: a model, or a `State`, which includes the optimizer and key.
        batches: a pipeline of `atled.data`, which is repeated as long as needed; or any other iterable of batches.
        optimizer: an optimizer, such as `optim.AdamW(1e-3)`; `optim.average(optimizer, 0.999)` also averages the
            weights, and the model is evaluated with the averages.
        steps: the total number of steps; or `epochs`, the number of passes over the batches. The default is one epoch.
        key: a random key, for losses with a parameter `key`.
        has_aux: whether the loss returns (value, dict of more metrics).
        evaluation: a `train.Evaluation`, or just held-out batches, on which the loss is measured every 1000 steps and
            at the end.
        checkpoint: a directory, a URL or a `checkpoints.Saver`, which decides when to save; by default at evaluations,
            or every 1000 steps without any, and at the end. A local directory also gets the log, `log.jsonl`.
        loggers: more `Logger`s; only the first process calls them.
        callbacks: functions that are called with the `Run` after each step.
        tokens_per_batch: a number, or a function of the batch that returns it, to show tokens per second.
        sharding: how batches are split: a `NamedSharding`, or a mesh, whose first axis splits them.
        num_workers: the number of data-loading processes.
        gradient_accumulation_steps: the number of microbatches, which are computed one after the other to save memory.
        precision: the compute dtype of layers: "bfloat16", or "float16", with loss scaling.
        nans: what to do if a loss or gradient is not finite. "stop" raises FloatingPointError with the line that
            computed the NaN. "skip" skips the batch. "back" restores the last checkpoint and continues after the batch.
            None disables the check.

    SIGTERM, and with a checkpoint also Ctrl-C, ends the program after the current step has been saved.

    >>> from atled import data, nn, optim, random, train
    >>> import numpy as np
    >>> x = np.random.RandomState(0).randn(100, 3).astype("float32")
    >>> def loss(model, x, y):
    ...     return ((model(x)[:, 0] - y) ** 2).mean()
    >>> rows = data.arrays((x, x @ np.float32([1, 2, 3]))).shuffle(0).batch(20)
    >>> state = train.fit(nn.Linear(3, 1, key=random.key(0)), loss, rows, optim.SGD(0.1), steps=100, progress=False)
    >>> [round(float(w), 2) for w in state.model.weight[:, 0]]
    [1.0, 2.0, 3.0]
    """
    _check_nans(nans, checkpoint)
    _check_lengths(steps, epochs)
    evaluation = evaluation if evaluation is None or isinstance(evaluation, Evaluation) else Evaluation(evaluation)
    saver = _saver(checkpoint, evaluation)
    evaluation = _completed(evaluation, saver, _loss_of(loss, has_aux))
    sharding = sharding_of(sharding)
    state = _state(model, optimizer, key, precision, sharding)
    is_first = client.process_index() == 0
    if saver is not None and isinstance(saver.directory, Local) and is_first:
        loggers = [JSONL(saver.directory.path / "log.jsonl"), *loggers]
    epochs = 1 if steps is None and epochs is None else epochs
    fed, count = feed(batches, sharding, num_workers, epochs, saver is not None)
    if steps is None and count is not None:
        steps = int(state.step) + count
    bar = Progress((), int(state.step), steps, tokens_per_batch, is_shown=progress and is_first)
    run = Run(
        state, loss, fed, bar, steps, has_aux=has_aux, gradient_accumulation_steps=gradient_accumulation_steps,
        nans=nans, evaluation=evaluation, sharding=sharding, saver=saver,
        loggers=list(loggers) if is_first else [], callbacks=list(callbacks),
    )  # fmt: skip
    return _finished(run, fed, bar, saver)


def _check_nans(nans: str | None, checkpoint: Any) -> None:
    if nans not in ("stop", "skip", "back", None):
        raise ValueError(errors.explained(f'train.fit: nans must be "stop", "skip", "back" or None; got {nans!r}.'))
    if nans == "back" and checkpoint is None:
        raise ValueError(errors.explained('train.fit: nans="back" needs a checkpoint to go back to.', "checkpoint=…."))


def _check_lengths(steps: int | None, epochs: int | None) -> None:
    if steps is not None and epochs is not None:
        raise TypeError(errors.explained("train.fit: give either steps or epochs."))
    for name, n in (("steps", steps), ("epochs", epochs)):
        if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 1):
            raise ValueError(errors.explained(f"train.fit: {name} must be a positive integer; got {n!r}."))


def _completed(evaluation: Evaluation | None, saver: checkpoints.Saver | None, loss: Any) -> Evaluation | None:
    """The evaluation with its defaults filled in: the loss as metric, and `best` and `mode` of the saver."""
    if evaluation is None:
        if saver is not None and (saver.best or "").startswith("eval/"):
            raise TypeError(
                errors.explained(
                    f"train.fit: the saver keeps the best {saver.best}, but there is no evaluation.",
                    "evaluation=train.Evaluation(batches).",
                )
            )
        return None
    best, mode = (evaluation.best, evaluation.mode) if saver is None else (saver.best, saver.mode)
    if evaluation.patience is not None and best is None:
        raise TypeError(errors.explained("train.fit: patience needs a best metric.", 'best="eval/loss".'))
    return dataclasses.replace(evaluation, metrics_fn=evaluation.metrics_fn or loss, best=best, mode=mode or "min")


def _finished(run: Run, fed: Any, bar: Progress, saver: checkpoints.Saver | None) -> State:
    """The state after the last step. Also after an error, logs and checkpoints are flushed and `fed` is closed."""
    try:
        state = run.go()
        run.flush()
    except BaseException:
        with contextlib.suppress(Exception):
            run.flush()
        if saver is not None:
            with contextlib.suppress(Exception):
                saver.wait()  # otherwise the next call might find an older checkpoint
        raise
    finally:
        fed.close()
        bar.close()
    return state


def _state(model: Any, optimizer: Any, key: Any, precision: Any, sharding: Any) -> State:
    """The initial state. Each step donates its state, so the model of the user is copied first."""
    if isinstance(model, State):
        if any([x is not None for x in (optimizer, key, precision)]):
            raise TypeError(errors.explained("train.fit: a State already has an optimizer, a key and a precision."))
        return _spread(model, sharding)
    if optimizer is None:
        raise TypeError(
            errors.explained("train.fit: an optimizer must be given.", "fit(model, loss, batches, optim.AdamW(1e-3)).")
        )
    if precision is not None:
        model = nn.cast(model, compute_dtype=precision)
    if precision is not None and np.dtype(precision) == np.float16 and not optimizer.has_scale:
        optimizer = optim.LossScale(optimizer)
    model, key = tree.map(jnp.copy, (model, key))
    return State(_spread(model, sharding), optimizer, key=key)


def _spread(x: Any, sharding: Any) -> Any:
    """A tree, replicated over the mesh of `sharding` unless one of its leaves already has a `NamedSharding`."""
    some = next((s for s in tree.leaves(sharding, is_leaf=lambda s: isinstance(s, NamedSharding))), None)
    if some is None or any([isinstance(leaf.sharding, NamedSharding) for leaf in tree.leaves(x)]):
        return x
    whole = NamedSharding(some.mesh, PartitionSpec())
    if whole.is_fully_addressable:
        return device_put(x, whole)
    return tree.map(lambda leaf: make_array_from_process_local_data(whole, np.asarray(leaf)), x)


def _saver(checkpoint: Any, evaluation: Evaluation | None) -> checkpoints.Saver | None:
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, checkpoints.Saver):
        if evaluation is None:
            return checkpoints.Saver(checkpoint, every=1000)
        return checkpoints.Saver(
            checkpoint, every=evaluation.every, best=evaluation.best, mode=evaluation.mode or "min"
        )
    for name in ("best", "mode"):
        value = None if evaluation is None else getattr(evaluation, name)
        if value is not None and value != getattr(checkpoint, name):
            raise TypeError(
                errors.explained(f"train.fit: {name}={value!r} must be given to the saver.", f"Saver(…, {name}=…).")
            )
    return checkpoint


def _loss_of(loss: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """A `metrics_fn` that returns the loss, as a mean over batches weighted by their size."""
    more = {"key": None} if takes_key(loss)[1] else {}

    def measure(model: Any, *batch: Any) -> dict[str, Any]:
        out = loss(model, *batch, **more)
        value, extra = out if has_aux else (out, {})
        size = np.shape(tree.leaves(batch)[0])[0] if np.ndim(tree.leaves(batch)[0]) else 1
        return {k: metrics.Mean().update(v, weights=size) for k, v in {"loss": value, **extra}.items()}

    return measure
