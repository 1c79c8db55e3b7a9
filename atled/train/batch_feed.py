"""The batches of a run: from a pipeline of `atled.data` or any other iterable, prefetched to devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from atled import data, distributed
from atled.core import errors, tree
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec
from atled.data.pipeline import Pipeline
from atled.data.random_access_nodes import ENDLESS


def feed(batches: Any, sharding: Any, workers: int, epochs: int | None, is_kept: bool) -> tuple[Any, int | None]:
    """Batches on devices, endless unless `epochs` is given, and their number, or None if unknown.

    Args:
        is_kept: whether the position in the data must be saved, so that a run can be resumed.
    """
    if isinstance(batches, Pipeline):
        if distributed.is_initialized() and batches.process == (0, 1):
            batches = batches.sharded()
        batches, count = _repeated(batches, epochs)
        return data.to_devices(batches.iterator(num_workers=workers), sharding), count
    if workers:
        raise TypeError(errors.explained("train.fit: num_workers needs an atled.data pipeline.", "data.source(list)."))
    iterator = iter(batches)
    if epochs not in (None, 1) and iterator is batches:
        raise TypeError(
            errors.explained(
                "train: an iterator can be used for one epoch only.", "the iterable itself instead of its iterator."
            )
        )
    if not hasattr(iterator, "state"):
        if is_kept:
            raise TypeError(
                errors.explained(
                    f"train.fit: with a checkpoint, the position in the data must be saved; a "
                    f"{type(batches).__name__} has no position to save.",
                    "a pipeline of atled.data, such as data.source(list_of_batches).",
                )
            )
        iterator = _again(batches, iterator, epochs)
    return data.to_devices(iterator, sharding), None


def _repeated(batches: Pipeline, epochs: int | None) -> tuple[Pipeline, int | None]:
    """A pipeline repeated for at least `epochs`, and the number of batches, if known.

    If the number is known, the pipeline is repeated without end, so that a run can be resumed with more epochs.
    """
    has_end = batches.epochs is not None and batches.node.size != ENDLESS
    length = _length(batches)
    if length == 0:
        raise ValueError(
            errors.explained(
                f"train: an epoch has no batches, as there are only {batches.node.size} examples.",
                "smaller batches, or drop_last=False.",
            )
        )
    if epochs is None:
        return (batches.repeat() if has_end and batches.epochs == 1 else batches), None
    if not has_end:
        raise ValueError(errors.explained("train: the pipeline is infinite.", "steps=…, not epochs."))
    if epochs > 1 and batches.epochs != 1:
        raise ValueError(errors.explained("train: the pipeline is already repeated.", "either repeat or epochs."))
    if batches.epochs == 1 and length is not None:
        return batches.repeat(), length * epochs
    return (batches.repeat(epochs) if epochs > 1 else batches), length


def _length(batches: Pipeline) -> int | None:
    try:
        return len(batches)
    except TypeError:
        return None


def _again(batches: Any, first: Iterator[Any], epochs: int | None) -> Iterator[Any]:
    """Yields the batches of an iterable, restarted for each epoch; an iterator has one epoch."""
    done = 0
    while True:
        is_empty = True
        for batch in first:
            is_empty = False
            yield batch
        done += 1
        if is_empty or first is batches or done == epochs:
            return
        first = iter(batches)


def sharding_of(where: Any) -> Any:
    """The sharding of batches: `where` itself, or, for a mesh, a split along its first axis."""
    return NamedSharding(where, PartitionSpec(where.axis_names[0])) if isinstance(where, Mesh) else where


def fitting(where: Any) -> Any:
    """Like `sharding_of`, for batches of different sizes: replicates a batch that cannot be split evenly."""
    sharding = sharding_of(where)
    if not isinstance(sharding, NamedSharding) or not sharding.is_fully_addressable:
        return sharding

    def of(batch: Any) -> Any:
        try:
            for x in tree.leaves(batch):
                sharding.shard_shape(np.shape(x))
        except ValueError:
            return NamedSharding(sharding.mesh, PartitionSpec())
        return sharding

    return of


def arguments(batch: Any) -> tuple[Any, ...]:
    """A batch as the arguments of a loss: a tuple is unpacked, anything else is one argument."""
    return tuple(batch) if isinstance(batch, tuple) else (batch,)
