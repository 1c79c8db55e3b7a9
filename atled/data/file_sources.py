"""Sources that need an extra package: images, Parquet files and ArrayRecord files."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled.core import errors
from atled.data.pipeline import Pipeline
from atled.data.random_access_nodes import Source
from atled.data.sources import Items, check_unchanged, paths_checked, stamp_of

_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")


def _package(name: str, module: str, extra: str) -> Any:
    """Import an optional package; the error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            errors.explained(
                f"data.{name}: it needs the Python package {module.split('.')[0]}: {error}.",
                f'pip install "atled[{extra}]".',
            )
        ) from error


@dataclasses.dataclass(frozen=True, eq=False)
class Images(Source):
    """Image files, in one folder for each class."""

    folder: str
    classes: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]  # the file names of each class
    mode: str

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum([0, *[len(n) for n in self.names]])

    @property
    def size(self) -> int:
        """See `Node`."""
        return int(self._starts[-1])

    def _file(self, index: int) -> tuple[int, str]:
        label = int(np.searchsorted(self._starts, index, "right")) - 1
        name = self.names[label][index - int(self._starts[label])]
        return label, os.path.join(self.folder, self.classes[label], name)

    def read(self, indices: np.ndarray) -> Sequence[Any]:
        """See `Source`."""
        pillow, examples = _package("images", "PIL.Image", "images"), []
        for i in indices.tolist():
            label, path = self._file(i)
            with pillow.open(path) as image:
                if image.mode[0] in "IF" and self.mode[0] not in "IF":
                    raise ValueError(
                        errors.explained(
                            f"data.images: {path} has mode {image.mode}; converting it to {self.mode!r} would clip "
                            "values above 255.",
                            f"images(folder, mode={image.mode[0]!r}).",
                        )
                    )
                examples.append({"image": np.array(image.convert(self.mode)), "label": np.int64(label)})
        return examples

    def record(self, index: int) -> str:
        """See `Source`."""
        return self._file(index)[1]

    def __str__(self) -> str:
        return f"images({os.path.basename(self.folder)}, {len(self.classes)} classes, {self.size}, {self.mode})"


def images(folder: str | os.PathLike[str], *, mode: str = "RGB") -> Pipeline:
    """The images of a folder with one folder for each class: `image`, uint8[height, width, channels], and `label`.

    Classes are numbered in the order of their names, and images are sorted by file name. `mode` is a mode of Pillow,
    such as "L" for grayscale images, which have no channel axis.

    >>> import os, tempfile
    >>> from PIL import Image
    >>> from atled import data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         os.mkdir(f"{folder}/{name}")
    ...         Image.new("RGB", (4, 3)).save(f"{folder}/{name}/0.png")
    ...     [(e["image"].shape, int(e["label"])) for e in data.images(folder)]
    [((3, 4, 3), 0), ((3, 4, 3), 1)]
    """
    _package("images", "PIL.Image", "images")
    folder = os.path.abspath(folder)
    classes = tuple(sorted([d.name for d in os.scandir(folder) if d.is_dir()]))
    names = tuple(
        [
            tuple(sorted([f for f in os.listdir(os.path.join(folder, c)) if f.lower().endswith(_ENDINGS)]))
            for c in classes
        ]
    )
    if not any(names):
        raise FileNotFoundError(
            errors.explained(f"data.images: {folder} must have folders, one for each class, with images in them.")
        )
    return Pipeline(Images(folder, classes, names, mode))


@dataclasses.dataclass(frozen=True, eq=False)
class Parquet(Source):
    """Rows of Parquet files."""

    paths: tuple[str, ...]
    columns: tuple[str, ...]
    starts: np.ndarray  # the number of the first row of each row group
    groups: tuple[tuple[int, int], ...]  # the file index and row group index of each
    rows: int
    stamps: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """See `Node`."""
        return self.rows

    def read(self, indices: np.ndarray) -> Sequence[Any]:
        """See `Source`."""
        rows: list[Any] = [None] * len(indices)
        groups = np.searchsorted(self.starts, indices, "right") - 1
        for g in np.unique(groups).tolist():
            file, number = self.groups[g]
            where = np.flatnonzero(groups == g)
            path = self.paths[file]
            check_unchanged("parquet", path, self.stamps[file])
            table = _row_group(path, self.stamps[file], number, self.columns).take(indices[where] - self.starts[g])
            columns = {name: _values(table.column(name)) for name in table.column_names}
            for i, place in enumerate(where.tolist()):
                rows[place] = {name: values[i] for name, values in columns.items()}
        return rows

    def record(self, index: int) -> str:
        """See `Source`."""
        g = int(np.searchsorted(self.starts, index, "right")) - 1
        file, number = self.groups[g]
        return f"{self.paths[file]}, row group {number}, row {index - int(self.starts[g])}"

    def __str__(self) -> str:
        return f"parquet({os.path.basename(self.paths[0])}, {len(self.paths)} files, {self.rows}, {self.columns})"


def _values(column: Any) -> Sequence[Any]:
    """The values of a column: numbers as NumPy scalars, lists as arrays, everything else as Python objects."""
    kind = column.type
    if _dtype_of(kind) is not None and not column.null_count:
        return column.to_numpy()
    return [_value(v, kind) for v in column.to_pylist()]


def _value(v: Any, kind: Any) -> Any:
    types = _package("parquet", "pyarrow.types", "parquet")
    dtype = _dtype_of(kind)
    if v is None or dtype is not None:
        return v if v is None else dtype.type(v)
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return v
    inner = _dtype_of(kind.value_type)
    if inner is not None and None not in v:
        return np.array(v, inner)
    parts = [_value(x, kind.value_type) for x in v]
    if parts and all([isinstance(x, np.ndarray) for x in parts]) and len({x.shape for x in parts}) == 1:
        return np.stack(parts)
    out = np.empty(len(parts), object)  # strings, bytes, and lists of different lengths
    out[:] = parts
    return out


def _dtype_of(kind: Any) -> Any:
    """The dtype of numbers and booleans; None for other types."""
    types = _package("parquet", "pyarrow.types", "parquet")
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else None


@functools.lru_cache(maxsize=8)
def _row_group(path: str, stamp: tuple[int, int], number: int, columns: tuple[str, ...]) -> Any:
    """A row group of a file. The last eight are cached, for shuffled reads."""
    with _package("parquet", "pyarrow.parquet", "parquet").ParquetFile(path) as file:
        return file.read_row_group(number, columns=list(columns))


def parquet(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, columns: Sequence[str] | None = None
) -> Pipeline:
    """The rows of Parquet files as dicts of NumPy scalars of the column's type, strings, bytes, and lists as arrays.

    A row group is read as a whole, and the last eight are cached, so shuffling rows of many large groups is slow: write
    small groups, or keep the order.

    >>> from atled import data
    >>> rows = data.parquet(["a.parquet", "b.parquet"], columns=["text", "label"])  # doctest: +SKIP
    >>> batches = rows.shuffle(0).batch(32)  # doctest: +SKIP
    """
    package, checked_paths = _package("parquet", "pyarrow.parquet", "parquet"), paths_checked("parquet", paths)
    groups, counts, names, kinds = [], [0], None, None
    stamps = tuple([stamp_of(path) for path in checked_paths])
    for i, path in enumerate(checked_paths):
        with package.ParquetFile(path) as file:
            here = tuple(columns) if columns is not None else tuple(file.schema_arrow.names)
            missing = sorted(set(here) - set(file.schema_arrow.names))
            if missing or here != (names or here):
                raise ValueError(
                    errors.explained(
                        f"data.parquet: all files must have the same columns; {path} has {file.schema_arrow.names}.",
                        "columns=[…], the columns that all files have.",
                    )
                )
            names, types = here, [str(file.schema_arrow.field(c).type) for c in here]
            if types != (kinds or types):
                raise ValueError(
                    errors.explained(
                        f"data.parquet: all files must have the same types; {path} has {', '.join(types)}, "
                        f"previous files have {', '.join(kinds or ())}."
                    )
                )
            kinds = types
            for g in range(file.metadata.num_row_groups):
                groups.append((i, g))
                counts.append(file.metadata.row_group(g).num_rows)
    starts = np.cumsum(counts)
    return Pipeline(Parquet(checked_paths, names or (), starts[:-1], tuple(groups), int(starts[-1]), stamps))


def array_record(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Pipeline:
    """The records of ArrayRecord files, as bytes.

    >>> import json
    >>> from atled import data
    >>> examples = data.array_record(["a.array_record"]).map(json.loads)  # doctest: +SKIP
    """
    package = _package("array_record", "array_record.python.array_record_data_source", "array_record")
    checked_paths = paths_checked("array_record", paths)
    name = f"array_record {os.path.basename(checked_paths[0])}, {len(checked_paths)} files"
    return Pipeline(Items(package.ArrayRecordDataSource(list(checked_paths)), name))
