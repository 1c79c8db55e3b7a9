"""`Iterator`: yields the batches of a pipeline, computed in this process or by workers, and has a state after each."""

from __future__ import annotations

import copy
from typing import Any, Self

from atled.core import errors
from atled.data import iterator_state
from atled.data.positions import Cursor, End
from atled.data.worker_pool import Pool


class Iterator:
    """Iterates over a pipeline. `state()` returns the position, `restore(state)` sets it, `close()` stops the workers.

    After an error in a function or a record, the position is still that after the last returned batch.

    >>> from atled import data
    >>> iterator = data.source(range(4)).batch(2).iterator()
    >>> next(iterator).tolist(), iterator.state()["position"]
    ([0, 1], 2)
    """

    def __init__(self, pipeline: Any, workers: int, ahead: int, epoch: int) -> None:
        self.pipeline, self.workers, self.ahead = pipeline, workers, ahead
        self._place: dict[str, Any] = {"epoch": epoch, "batches": 0, "position": 0}
        self._maker: Any = None  # a cursor, or a pool of workers
        self._is_closed = self._is_over = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._is_closed:
            raise ValueError(
                errors.explained(
                    "data: the iterator is closed.", "a new iterator, restored from the state of this one."
                )
            )
        if self._is_over:
            raise StopIteration
        try:
            if self._maker is None:
                self._maker = self._made()
            batch, self._place = self._maker.next() if self.workers else self._next_here()
        except End:
            self._stop()
            self._is_over = True
            raise StopIteration from None
        except StopIteration as error:  # otherwise the user's loop would end silently
            self._stop()
            raise RuntimeError(errors.explained("data: a function or a source raised StopIteration.")) from error
        except BaseException:  # restart from the position
            self._stop()
            raise
        return batch

    def _made(self) -> Any:
        if self.workers:
            return Pool(self.pipeline, self._place, self.workers, self.ahead)
        cursor = Cursor(self.pipeline)
        cursor.go_to(self._place)
        return cursor

    def _next_here(self) -> tuple[Any, dict[str, Any]]:
        batch = self._maker.next()
        return batch.made() if hasattr(batch, "made") else batch, self._maker.place()

    def state(self) -> dict[str, Any]:
        """The position after the last returned batch: plain numbers and strings, JSON-serializable."""
        return iterator_state.state_of(self.pipeline, self._place)

    def restore(self, state: dict[str, Any]) -> Self:
        """Continue with the batch after a state; returns the iterator."""
        place = iterator_state.place_in(state, self.pipeline)
        self._stop()
        self._is_over = False
        saved_place = {k: v for k, v in place.items() if k not in ("version", "pipeline", "process", "processes")}
        self._place = copy.deepcopy(saved_place)
        return self

    def _stop(self) -> None:
        if isinstance(self._maker, Pool):
            self._maker.close()
        self._maker = None

    def close(self) -> None:
        """Stop the workers. Batches already returned stay valid."""
        self._stop()
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
