"""`NormalForm`: the normal form of a pipeline.

A normal form is a node, which fetches examples by position (`random_access_nodes.py`), steps for single examples,
packing, steps for packed rows, a group (batch or bucket), steps for batches, and a number of epochs. `positions.py`
iterates over normal forms. `str` of a pipeline describes it completely, and states contain this text, so that a state
cannot be restored into another pipeline.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Self

from atled.core import errors
from atled.data import batching, example_transforms
from atled.data.random_access_nodes import ENDLESS, Node, Staged


@dataclasses.dataclass(frozen=True, eq=False)
class NormalForm:
    """A pipeline in normal form."""

    node: Node
    steps: tuple[example_transforms.Stage, ...] = ()
    packing: batching.Pack | None = None
    row_steps: tuple[example_transforms.Stage, ...] = ()
    group: batching.Batch | batching.Bucket | None = None
    batch_steps: tuple[example_transforms.Stage, ...] = ()
    limit: int | None = None  # the maximum number of batches in an epoch
    epochs: int | None = 1
    process: tuple[int, int] = (0, 1)

    def __len__(self) -> int:
        size, count = self.node.size, self.process[1]
        if isinstance(self.group, batching.Batch):
            share, up = self.group.size, not self.group.drop_last
        else:
            share, up = count, False
        unknown = self.packing or self.filters() or isinstance(self.group, batching.Bucket)
        if unknown or size is None or size == ENDLESS or self.epochs is None:
            raise TypeError(errors.explained("data: this pipeline is infinite, or its length is not known."))
        batches = -(-size // share) if up else size // share
        return (batches if self.limit is None else min(batches, self.limit)) * self.epochs

    def __str__(self) -> str:
        return self.text

    @functools.cached_property
    def text(self) -> str:
        """A complete description of the pipeline, which is part of its states."""
        parts = [self.node, *self.steps, self.packing or "", *self.row_steps, self.group or "", *self.batch_steps]
        rest = (f".take({self.limit})" if self.limit else "") + (
            "" if self.epochs == 1 else f".repeat({self.epochs or ''})"
        )
        return "".join([str(p) for p in parts]) + rest

    def __repr__(self) -> str:
        return f"data.{self}"

    def check_process(self) -> None:
        """Raise if batches cannot be split evenly over the processes."""
        count, group = self.process[1], self.group
        sizes = () if group is None else (group.size,) if isinstance(group, batching.Batch) else group.sizes
        uneven = [n for n in sizes if n % count]
        if uneven:
            raise ValueError(
                errors.explained(
                    f"data.sharded: the batch size, the total over all processes, must be a multiple of their "
                    f"number; got {uneven[0]} for {count} processes.",
                    f"a batch of {-(-uneven[0] // count) * count}.",
                )
            )
        if count > 1 and group is not None and not group.drop_last:
            raise ValueError(
                errors.explained(
                    "data.sharded: with drop_last=False the last batch could have different shapes in "
                    "different processes.",
                    "drop_last=True, or repeat() before batch.",
                )
            )

    def filters(self) -> bool:
        """Whether a step may drop examples."""
        return any([isinstance(s, example_transforms.Filter) for s in self.steps])

    def takes_uneven(self) -> bool:
        """Whether processes may consume different numbers of examples for a batch."""
        return (self.filters() or self.packing is not None) and not isinstance(self.group, batching.Bucket)

    def indexed(self, name: str) -> Node:
        """The pipeline as a node; raises if it has steps without random access."""
        if self.packing or self.group or self.filters() or self.epochs != 1 or self.process != (0, 1):
            raise ValueError(
                errors.explained(
                    f"data.{name}: {name} needs random access to examples by position, so it must come before "
                    "filter, pack, bucket, batch and sharded.",
                    f".{name}(…) first.",
                )
            )
        return Staged(self.node, self.steps) if self.steps else self.node

    def examples_only(self, name: str) -> None:
        """Raise unless the elements of the pipeline are single examples, in one epoch."""
        if self.packing or self.group or self.epochs != 1:
            raise ValueError(
                errors.explained(f"data.{name}: {name} needs single examples: before pack, bucket, batch and repeat.")
            )

    def with_step(self, step: example_transforms.Stage) -> Self:
        """The pipeline with a step appended."""
        if self.epochs != 1 and not self.group:
            raise ValueError(errors.explained("data: after filter and pack, repeat must come last."))
        where = "batch_steps" if self.group else "row_steps" if self.packing else "steps"
        return dataclasses.replace(self, **{where: (*getattr(self, where), step)})
