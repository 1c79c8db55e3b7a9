"""`Batch`, `Pack` and `Bucket`, the steps that combine several examples, and `Pad`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from atled.core import errors


@dataclasses.dataclass(frozen=True)
class Batch:
    """Stacks `size` examples into a batch."""

    size: int
    drop_last: bool

    def __str__(self) -> str:
        return f".batch({self.size}{'' if self.drop_last else ', drop_last=False'})"


@dataclasses.dataclass(frozen=True)
class Bucket:
    """Batches of examples of similar length: bucket i has `sizes[i]` examples of length up to `bounds[i]`."""

    bounds: tuple[int, ...]
    sizes: tuple[int, ...]
    fields: tuple[str, ...] | None
    fill: Any
    drop_last: bool

    def number(self, example: Any) -> int:
        """The index of the bucket for an example."""
        length = ragged_length("bucket", example, self.fields)
        bucket = int(np.searchsorted(self.bounds, length))
        if bucket == len(self.bounds):
            raise ValueError(
                errors.explained(
                    f"data.bucket: examples must not be longer than the last boundary, {self.bounds[-1]}; got "
                    f"{length}.",
                    "a larger boundary, or filter or truncate examples first.",
                )
            )
        return bucket

    def __str__(self) -> str:
        rest = "" if self.drop_last else ", drop_last=False"
        fields = f", {list(self.fields)}" if self.fields else ""
        return f".bucket({list(self.bounds)}, {list(self.sizes)}{fields}, fill={self.fill!r}{rest})"


@dataclasses.dataclass(frozen=True)
class Pad:
    """Pads ragged examples to `length`, or to the next multiple of `multiple`, and adds a mask."""

    length: int | None
    multiple: int | None
    fields: tuple[str, ...] | None
    fill: Any
    cut: bool
    name: str = "pad"
    step: ClassVar[str] = "pad"

    def __call__(self, example: Any) -> dict[str, Any]:
        """The padded example."""
        example, names, n = _ragged(self.name, example, self.fields)
        length = self.length if self.length is not None else -(-n // (self.multiple or 1)) * (self.multiple or 1)
        if n > length and not self.cut:
            raise ValueError(
                errors.explained(
                    f"data.{self.name}: an example must not be longer than {length}; got {n}.",
                    "truncate=True, a longer length, or filter first.",
                )
            )
        padded = dict(example)
        for name in names:
            x = exact_text(np.asarray(example[name])[:length])
            padded[name] = _filled(self.name, name, (length, *x.shape[1:]), self.fill, x.dtype)
            padded[name][: len(x)] = x
        padded["mask"] = np.arange(length) < n
        return padded

    def __str__(self) -> str:
        size = self.length if self.length is not None else f"multiple={self.multiple}"
        return (
            f"{size}{', cut' if self.cut else ''}{f', {list(self.fields)}' if self.fields else ''}, fill={self.fill!r}"
        )


def exact_text(x: np.ndarray) -> np.ndarray:
    """Converts strings to objects, because an array of fixed-width strings would truncate longer strings."""
    return x.astype(object) if x.dtype.kind in "SU" else x


def _is_plain(x: np.ndarray) -> bool:
    """Whether an array holds numbers, or only str and bytes objects."""
    return x.dtype != object or all([isinstance(v, (str, bytes)) for v in x.ravel().tolist()])


def _filled(who: str, field: str, shape: tuple[int, ...], fill: Any, dtype: Any) -> np.ndarray:
    """An array filled with `fill`; raises if the dtype cannot hold it."""
    is_text, holds_text = np.asarray(fill).dtype.kind in "SUO", dtype.kind == "O"
    out = np.zeros(shape, dtype)
    with np.errstate(all="ignore"):
        try:
            number = np.asarray(fill, None if holds_text else dtype)[()]
        except (OverflowError, ValueError, TypeError):
            number = None
        fits = is_text if holds_text else number is not None and not is_text and _is_close(number, fill)
    if not fits and out.size:
        raise ValueError(
            errors.explained(
                f"data.{who}: padding_value must fit into the field {field}, {dtype}; got {fill!r}.",
                "another value, or fields=[…], the names of ragged fields." if who == "pad" else "another value.",
            )
        )
    out[...] = fill if holds_text else number
    return out


def _is_close(number: Any, fill: Any) -> bool:
    """Whether `number` equals `fill`, from which it was converted: exactly for integers, up to rounding for floats."""
    got, asked = np.asarray(number), np.asarray(fill)
    if got.dtype.kind in "biu":
        return bool((got == asked).all())
    return bool((np.isfinite(got) | ~np.isfinite(asked)).all())


def _ragged(name: str, example: Any, fields: Sequence[str] | None) -> tuple[dict[str, Any], list[str], int]:
    """An example as a dict, the names of its ragged fields, and their length."""
    if isinstance(example, tuple):
        raise TypeError(
            errors.explained(
                f"data.{name}: an example must be one sequence, or a dict of them; got a {type(example).__name__} of "
                f"{len(example)}.",
                "a map that converts it to a dict.",
            )
        )
    if not isinstance(example, dict):
        example = {"tokens": example}
    if "mask" in example and name != "pack":
        raise ValueError(errors.explained(f"data.{name}: the example has a field 'mask', which {name} adds.", "a map."))
    names = [k for k in example if np.ndim(example[k])] if fields is None else list(fields)
    lengths = {k: np.shape(example[k])[:1] for k in names if k in example}
    if len(lengths) < len(names) or len(set(lengths.values())) != 1 or () in lengths.values():
        shown = ", ".join([f"{k}: {list(np.shape(v))}" for k, v in example.items()])
        raise ValueError(
            errors.explained(
                f"data.{name}: the ragged fields of an example must have the same length; got {shown}.",
                f"{name}(…, fields=['tokens']), the names of the ragged fields.",
            )
        )
    return example, names, next(iter(lengths.values()))[0]


def ragged_length(name: str, example: Any, fields: Sequence[str] | None) -> int:
    """The length of the ragged fields of an example."""
    return _ragged(name, example, fields)[2]


@dataclasses.dataclass(frozen=True)
class Pack:
    """Rows of `length` tokens, packed from sequences of any length."""

    length: int
    cut: bool
    fill: Any

    def fields(self, example: Any) -> dict[str, np.ndarray]:
        """The sequences of an example, by name; all have the same length."""
        example, _, _ = _ragged("pack", example, list(example) if isinstance(example, dict) else None)
        arrays = {k: exact_text(np.asarray(v)) for k, v in example.items()}
        if any([x.ndim != 1 or not _is_plain(x) for x in arrays.values()]) or {"segments", "positions"} & set(arrays):
            shown = ", ".join([f"{k}: {x.dtype}{list(x.shape)}" for k, x in arrays.items()])
            raise ValueError(
                errors.explained(
                    f"data.pack: examples must be 1-d arrays, or dicts of 1-d arrays, without 'segments' and "
                    f"'positions', which pack adds; got {shown}.",
                    "a map before pack that keeps only the tokens.",
                )
            )
        n = len(next(iter(arrays.values())))
        if n > self.length and not self.cut:
            raise ValueError(
                errors.explained(
                    f"data.pack: with truncate=False, an example must not be longer than {self.length}; got {n}.",
                    "truncate=True, or filter or shorten examples first.",
                )
            )
        return arrays

    def row(self, pieces: list[tuple[dict[str, np.ndarray], int, int, str]]) -> dict[str, np.ndarray]:
        """One packed row from pieces, each (fields, start, stop, name of the example)."""
        first = pieces[0][0]
        packed = {k: _filled("pack", k, (self.length,), self.fill, x.dtype) for k, x in first.items()}
        packed["segments"], packed["positions"] = (np.zeros(self.length, np.int32) for _ in range(2))
        at = 0
        for number, (fields, start, stop, name) in enumerate(pieces, 1):
            if {k: x.dtype for k, x in fields.items()} != {k: x.dtype for k, x in first.items()}:
                raise TypeError(
                    errors.explained(
                        f"data.pack: all examples must have the same fields and dtypes; {name} differs from "
                        f"{pieces[0][3]}.",
                        "a map before pack.",
                    )
                )
            here = slice(at, at + stop - start)
            for k, x in fields.items():
                packed[k][here] = x[start:stop]
            packed["segments"][here], packed["positions"][here] = number, np.arange(stop - start)
            at += stop - start
        return packed

    def __str__(self) -> str:
        return f".pack({self.length}{'' if self.cut else ', cut=False'}, fill={self.fill!r})"


def sizes_of(size: Any, bounds: Sequence[int]) -> tuple[int, ...]:
    """One batch size for each bucket."""
    sizes = tuple(size) if isinstance(size, Sequence) else (size,) * len(bounds)
    good = [isinstance(n, (int, np.integer)) and n > 0 for n in (*sizes, *bounds)]
    if len(sizes) != len(bounds) or not sizes or not all(good) or sorted(set(bounds)) != list(bounds):
        raise ValueError(
            errors.explained(
                "data.bucket: boundaries must be increasing lengths, and batch_size one number or one for "
                "each boundary; got "
                f"{list(bounds)} and {size!r}.",
                "bucket([64, 128, 256], 32).",
            )
        )
    return sizes
