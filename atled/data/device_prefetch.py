"""`to_devices`: prefetches batches to devices in a background thread."""

from __future__ import annotations

import contextlib
import copy
import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from atled.core import errors, tree
from atled.core.former_names import formerly
from atled.core.sharding import Sharding
from atled.data.random_access_nodes import count_checked
from atled.engine.global_arrays import make_array_from_process_local_data
from atled.staging.device_put import device_put


class OnDevices:
    """Batches on devices. `state()` is the position after the last returned batch, not after prefetched batches."""

    def __init__(self, iterator: Any, sharding: Any, ahead: int) -> None:
        self._iterator, self._sharding, self._ahead = iterator, sharding, ahead
        self._state = iterator.state() if hasattr(iterator, "state") else None
        self._run: _Run | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._run is None:
            self._run = _Run(self._iterator, self._sharding, self._ahead)
            weakref.finalize(self, self._run.is_over.set)
        kind, payload, state = self._run.next()
        if kind == "batch":
            self._state = state
            return payload
        self._stop()
        if kind == "end":
            raise StopIteration
        raise payload

    @property
    def place(self) -> dict[str, Any] | None:
        """The state, not copied; None if the iterator has none."""
        return self._state

    def state(self) -> dict[str, Any]:
        """The position after the last returned batch."""
        if self._state is None:
            raise TypeError(
                errors.explained(
                    f"data.to_devices: a {type(self._iterator).__name__} has no state().", "pipeline.iterator()."
                )
            )
        return copy.deepcopy(self._state)

    def restore(self, state: dict[str, Any]) -> Self:
        """Continue after a state, without the prefetched batches; returns the iterator."""
        self._stop()
        self._iterator.restore(state)
        self._state = self._iterator.state()
        return self

    def _stop(self) -> None:
        """Stop the thread, and rewind the iterator to the last returned batch."""
        if self._run is not None:
            self._run.stop()
            self._run = None
            if self._state is not None:
                self._iterator.restore(self._state)

    def close(self) -> None:
        """End the thread and the iterator."""
        self._stop()
        if hasattr(self._iterator, "close"):
            self._iterator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Run:
    """A thread that prefetches from an iterator."""

    def __init__(self, iterator: Iterator[Any], sharding: Any, ahead: int) -> None:
        self.found: queue.Queue[Any] = queue.Queue(ahead)
        self.is_over = threading.Event()
        args = (iterator, sharding, self.found, self.is_over)
        self.thread = threading.Thread(target=_go, args=args, daemon=True, name="atled-data-to-devices")
        self.thread.start()

    def next(self) -> Any:
        """The next prefetched item."""
        return self.found.get()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self.is_over.set()
        self.thread.join()


def _go(iterator: Any, sharding: Any, found: queue.Queue[Any], is_over: threading.Event) -> None:
    """Transfer batches to the devices until the iterator ends or the thread is stopped."""
    kind = "batch"
    while not is_over.is_set() and kind == "batch":
        batch = state = None
        try:
            batch = _put(next(iterator), sharding)
            state = iterator.state() if hasattr(iterator, "state") else None
        except StopIteration:
            kind = "end"
        except BaseException as error:
            kind, batch = "error", error
        while not is_over.is_set():
            with contextlib.suppress(queue.Full):
                found.put((kind, batch, state), timeout=0.1)
                break


def _put(batch: Any, sharding: Any) -> Any:
    """A batch on devices: all of it, or the rows of this process if the sharding spans several processes."""
    for path, leaf in tree.leaves_with_path(batch):
        if isinstance(leaf, (str, bytes)) or np.asarray(leaf).dtype.hasobject:
            field = "".join([str(k) for k in path])
            raise TypeError(
                errors.explained(
                    f"data.to_devices: devices cannot hold strings or other objects; the field {field} has them.",
                    "a map after batch that removes it.",
                )
            )
    is_sharding = lambda s: isinstance(s, Sharding)  # noqa: E731
    sharding = sharding(batch) if callable(sharding) else sharding
    if all([s.is_fully_addressable for s in tree.leaves(sharding, is_sharding) if is_sharding(s)]):
        return device_put(batch, sharding)
    leaves, structure = tree.flatten(batch)
    several = tree.spread(sharding, batch, is_sharding, "data.to_devices: sharding", "one sharding for all of it.")
    put = make_array_from_process_local_data
    return structure.unflatten([put(s, np.asarray(x)) for s, x in zip(several, leaves, strict=True)])


@formerly(ahead="prefetch")
def to_devices(iterator: Any, sharding: Any = None, *, prefetch: int = 2) -> OnDevices:
    """The batches of an iterator on devices; a thread prefetches up to `prefetch` of them.

    `sharding` is a `NamedSharding`, a tree of them like the batches, a function of a batch that returns either, or
    None for the default device. If the sharding spans several processes, each process supplies its own rows. `state()`
    is the position after the last returned batch, for `restore(state)`.

    >>> from atled import data
    >>> [float(x.sum()) for x in data.to_devices(data.source([1.0, 2.0, 3.0, 4.0]).batch(2).iterator())]
    [3.0, 7.0]
    """
    count_checked("to_devices", "prefetch", prefetch)
    return OnDevices(iter(iterator), sharding, prefetch)
