"""`Pipeline`: a source of examples and the steps applied to them. Pipelines are immutable; methods return new ones.

`normal_form.py` has the parts of a pipeline; `iterator.py` iterates over pipelines.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from atled import distributed
from atled.core import errors
from atled.core.former_names import formerly
from atled.data import batching, example_transforms
from atled.data.iterator import Iterator
from atled.data.normal_form import NormalForm
from atled.data.random_access_nodes import (
    ENDLESS,
    Part,
    Repeated,
    Shuffled,
    count_checked,
    function_checked,
    seed_checked,
    sized,
)  # fmt: skip
from atled.engine import client


@dataclasses.dataclass(frozen=True, eq=False)
class Pipeline(NormalForm):
    """Examples and the steps applied to them. Sources such as `data.arrays` return a pipeline, as do its methods.

    >>> from atled import data
    >>> batches = data.source([3, 1, 2]).map(float).batch(2)
    >>> [b.tolist() for b in batches]
    [[3.0, 1.0]]
    """

    def shuffle(self, seed: int) -> Pipeline:
        """Shuffle in an order that depends on seed and epoch. The order is computed on the fly and needs no memory.

        >>> from atled import data
        >>> list(data.source(range(5)).shuffle(0).repeat(2))
        [4, 2, 0, 1, 3, 0, 2, 3, 1, 4]
        """
        node = self.indexed("shuffle")
        sized("shuffle", [node])
        return Pipeline(Shuffled(node, seed_checked("shuffle", seed)))

    def map(self, f: Callable[[Any], Any]) -> Pipeline:
        """Replace each example by `f(example)`; after `batch`, each batch by `f(batch)`; after `pack`, each row.

        >>> from atled import data
        >>> list(data.source([1, 2]).map(lambda x: x * 10))
        [10, 20]
        """
        return self.with_step(example_transforms.Map(function_checked("map", f)))

    def random_map(self, f: Callable[..., Any], seed: int) -> Pipeline:
        """Replace each example by `f(example, rng)`.

        `rng` is a `np.random.Generator` for this call. Its numbers depend only on the seed, the epoch and the example's
        index in its source. Two random maps with the same seed get the same numbers.

        >>> from atled import data
        >>> noisy = data.source([0.0, 0.0]).random_map(lambda x, rng: x + rng.integers(100), 1)
        >>> list(noisy) == list(noisy)
        True
        """
        if self.packing or self.group:
            raise ValueError(
                errors.explained(
                    "data.random_map: random_map applies to single examples, so it must come before pack, bucket "
                    "and batch.",
                    ".random_map(…).batch(…).",
                )
            )
        return self.with_step(
            example_transforms.RandomMap(function_checked("random_map", f), seed_checked("random_map", seed))
        )

    def filter(self, f: Callable[[Any], Any]) -> Pipeline:
        """Keep examples for which `f(example)` is true. Every worker runs `f`, and steps before it, on all examples.

        >>> from atled import data
        >>> list(data.source(range(6)).filter(lambda x: x % 2))
        [1, 3, 5]
        """
        if self.packing or self.group:
            raise ValueError(
                errors.explained("data.filter: filter must come before pack, bucket and batch.", ".filter(…).batch(…).")
            )
        return self.with_step(example_transforms.Filter(function_checked("filter", f)))

    @formerly(multiple="pad_to_multiple_of", fill="padding_value", cut="truncate")
    def pad(
        self,
        length: int | None = None,
        *,
        pad_to_multiple_of: int | None = None,
        fields: Sequence[str] | None = None,
        padding_value: Any = 0,
        truncate: bool = False,
    ) -> Pipeline:
        """Pad ragged examples to `length`, or to a multiple of `pad_to_multiple_of`, and add a field `mask`.

        An example is an array, which becomes the field `tokens`, or a dict; `fields` are padded along their first axis,
        by default all that are not scalars. Longer examples raise; with `truncate=True` they are cut.

        >>> from atled import data
        >>> [e["tokens"].tolist() for e in data.source([[1], [2, 3]]).pad(3)]
        [[1, 0, 0], [2, 3, 0]]
        """
        if (length is None) == (pad_to_multiple_of is None):
            raise TypeError(errors.explained("data.pad: give either length or pad_to_multiple_of.", "pad(128)."))
        count_checked("pad", "length or pad_to_multiple_of", length if length is not None else pad_to_multiple_of)
        return self.map(
            batching.Pad(length, pad_to_multiple_of, tuple(fields) if fields else None, padding_value, truncate)
        )

    @formerly(fill="padding_value", cut="truncate")
    def pack(self, length: int, *, truncate: bool = True, padding_value: Any = 0) -> Pipeline:
        """Pack sequences into rows of `length` tokens, with `segments`, numbered from 1 (padding: 0), and `positions`.

        An example is a 1-d array, which becomes the field `tokens`, or a dict of 1-d arrays. An example that does not
        fit into the row is cut and continues in the next row, where its positions restart at 0; with `truncate=False`
        the whole example moves to the next row. The last row of an epoch is padded.

        >>> from atled import data
        >>> rows = list(data.source([[1, 2, 3], [4, 5]]).pack(4))
        >>> [r["tokens"].tolist() for r in rows], [r["segments"].tolist() for r in rows]
        ([[1, 2, 3, 4], [5, 0, 0, 0]], [[1, 1, 1, 2], [1, 0, 0, 0]])
        """
        self.examples_only("pack")
        return dataclasses.replace(
            self, packing=batching.Pack(count_checked("pack", "length", length), truncate, padding_value)
        )

    @formerly(size="batch_size", bounds="boundaries", fill="padding_value")
    def bucket(
        self,
        boundaries: Sequence[int],
        batch_size: int | Sequence[int],
        *,
        fields: Sequence[str] | None = None,
        padding_value: Any = 0,
        drop_last: bool = True,
    ) -> Pipeline:
        """Batches of examples of similar length, padded to the boundary of their bucket, with a field `mask`.

        `batch_size` is one number for all buckets, or a list of one for each. A batch is returned when its bucket is
        full. At the end of an epoch, incomplete buckets are dropped; with `drop_last=False`, they are smaller batches.

        >>> from atled import data
        >>> made = data.source([[1], [1, 2, 3], [2], [4, 5, 6, 7]]).bucket([2, 4], 2)
        >>> [b["tokens"].shape for b in made]
        [(2, 2), (2, 4)]
        """
        self.examples_only("bucket")
        names = tuple(fields) if fields else None
        sizes = batching.sizes_of(batch_size, list(boundaries))
        return dataclasses.replace(
            self, group=batching.Bucket(tuple(boundaries), sizes, names, padding_value, drop_last)
        )

    @formerly(size="batch_size")
    def batch(self, batch_size: int, *, drop_last: bool = True) -> Pipeline:
        """Stack `batch_size` examples, the total over all processes, into one tree of arrays; strings become object
        arrays.

        The remaining examples at the end of an epoch are dropped; with `drop_last=False` they form a smaller batch.
        With `repeat()` before `batch`, batches span epochs.

        >>> from atled import data
        >>> [b.tolist() for b in data.source([1, 2, 3]).batch(2, drop_last=False)]
        [[1, 2], [3]]
        """
        if self.group or self.epochs != 1:
            raise ValueError(
                errors.explained(
                    "data.batch: batch may occur once, and after filter and pack it must come before repeat.",
                    ".filter(…).batch(…).repeat(), or .repeat().filter(…).batch(…).",
                )
            )
        return dataclasses.replace(
            self, group=batching.Batch(count_checked("batch", "batch_size", batch_size), drop_last)
        )

    def repeat(self, times: int | None = None) -> Pipeline:
        """Repeat for a number of epochs, by default without end.

        >>> from atled import data
        >>> list(data.source("ab").repeat(2))
        ['a', 'b', 'a', 'b']
        """
        if times is not None:
            count_checked("repeat", "times", times)
        if self.epochs != 1 or self.node.size == ENDLESS:
            raise ValueError(errors.explained("data.repeat: the pipeline is already repeated, or infinite."))
        if self.group or self.packing or self.filters() or self.node.size is None:
            return dataclasses.replace(self, epochs=times)
        node = self.indexed("repeat")
        if not node.size:
            raise ValueError(errors.explained("data.repeat: there are no examples to repeat."))
        return Pipeline(Repeated(node, times), process=self.process)

    def take(self, count: int) -> Pipeline:
        """The first `count` examples of each epoch, or after `batch` the first `count` batches.

        >>> from atled import data
        >>> list(data.source("abc").take(2))
        ['a', 'b']
        """
        count_checked("take", "the number", count)
        if self.group and self.epochs == 1:
            return dataclasses.replace(self, limit=min(count, self.limit or count))
        node = self.indexed("take")
        sized("take", [node], may_be_endless=True)
        return Pipeline(Part(node, 0, count), process=self.process)

    def skip(self, count: int) -> Pipeline:
        """All but the first `count` examples of each epoch.

        >>> from atled import data
        >>> list(data.source("abc").skip(2))
        ['c']
        """
        count_checked("skip", "the number", count, 0)
        node = self.indexed("skip")
        sized("skip", [node], may_be_endless=True)
        return Pipeline(Part(node, count, ENDLESS), process=self.process)

    def sharded(self, process_index: int | None = None, process_count: int | None = None) -> Pipeline:
        """The rows of one process in each batch; by default, those of this process of `atled.distributed`.

        >>> from atled import data
        >>> batches = data.source(range(8)).batch(4)
        >>> [b.tolist() for b in batches.sharded(1, 2)]
        [[2, 3], [6, 7]]
        """
        if process_index is None and process_count is None:
            here = distributed.is_initialized()
            process_index, process_count = (client.process_index(), client.process_count()) if here else (0, 1)
        count = count_checked("sharded", "process_count", process_count)
        index = count_checked("sharded", "process_index", process_index, 0)
        if index >= count:
            raise ValueError(errors.explained(f"data.sharded: there is no process {index} of {count}."))
        shard = dataclasses.replace(self, process=(index, count))
        shard.check_process()
        return shard

    @formerly(workers="num_workers", ahead="prefetch")
    def iterator(self, *, num_workers: int = 0, prefetch: int = 2, epoch: int = 0) -> Iterator:
        """An iterator with `state()`, `restore(state)` and `close()`; see `data.Iterator`.

        `num_workers` processes make whole batches, and each prefetches `prefetch` batches; the batches are the same for
        any number. Worker processes must be able to import the functions. `epoch` is the first epoch.

        >>> from atled import data
        >>> batches = data.source(range(6)).batch(2)
        >>> with batches.iterator() as iterator:
        ...     _ = next(iterator)
        ...     state = iterator.state()
        >>> next(batches.iterator().restore(state)).tolist()
        [2, 3]
        """
        self.check_process()
        count_checked("iterator", "num_workers", num_workers, 0)
        count_checked("iterator", "prefetch", prefetch)
        return Iterator(self, num_workers, prefetch, count_checked("iterator", "epoch", epoch, 0))

    def __iter__(self) -> Iterator:
        return self.iterator()
