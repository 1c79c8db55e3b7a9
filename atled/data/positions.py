"""`Cursor`: a position in a pipeline, and the next batch. A few integers determine a position."""

from __future__ import annotations

from typing import Any

from atled.core import errors
from atled.data import example_transforms
from atled.data.batching import Bucket
from atled.data.epoch_readers import Buckets, Rows, Stripe


class End(Exception):  # noqa: N818
    """Raised when there are no more batches."""


class Cursor:
    """Reads the batches of a pipeline from a position on."""

    def __init__(self, pipeline: Any, watch: Any = None) -> None:
        self.pipeline, self.memory = pipeline, {"watch": watch}
        self.go_to({"epoch": 0, "batches": 0, "position": 0})

    def go_to(self, place: dict[str, Any]) -> None:
        """Move to another position."""
        self.epoch, self.batches = place["epoch"], place["batches"]
        self._read(place)

    def _read(self, place: dict[str, Any]) -> None:
        p = self.pipeline
        reads_ahead = p.takes_uneven() or (p.group is None and p.process[1] == 1)
        kind = Buckets if isinstance(p.group, Bucket) else Stripe if reads_ahead else Rows
        self.reader = kind(p, self.memory, self.epoch, place)

    def place(self) -> dict[str, Any]:
        """The position, as a dict of numbers."""
        return {"epoch": self.epoch, "batches": self.batches, **self.reader.place()}

    def next(self, build: bool = True) -> Any:
        """The next batch, or a `Stack` that can build it; raises `End` after the last batch."""
        p = self.pipeline
        while True:
            batch = self.reader.pull(build) if p.limit is None or self.batches < p.limit else None
            if batch is not None:
                self.batches += 1
                return self._finished(batch) if build else None
            if p.epochs is not None and self.epoch + 1 >= p.epochs:
                raise End
            if not self.batches:
                raise ValueError(
                    errors.explained(
                        f"data.repeat: an epoch of {p} has no batches to repeat.",
                        "smaller batches, or repeat() before batch.",
                    )
                )
            self.epoch, self.batches = self.epoch + 1, 0
            self._read({"position": 0})

    def _finished(self, found: Any) -> Any:
        """A batch after the batch steps of the pipeline."""
        steps = self.pipeline.batch_steps
        if not steps:
            return found
        return example_transforms.run(steps, found.made(), lambda: f"batch {self.batches - 1} of epoch {self.epoch}")
