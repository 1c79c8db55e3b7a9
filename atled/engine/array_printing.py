"""Prints arrays: as text, and as tables in notebooks.

Only the corners of a large array are shown, as in NumPy, and only those are fetched: from a view of the memory, by a
slice on the device, or from the shards that hold them. NumPy's print options apply.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from atled.core import dtypes
from atled.core.sharding import SingleDeviceSharding
from atled.engine import client

if TYPE_CHECKING:  # arrays import this file for their repr
    from atled.engine.array import DeviceArray, Shard

_LIMIT = 100_000  # maximum elements in the corners; an array with many short axes exceeds it, and is not printed


def _positions(shape: tuple[int, ...], edge: int) -> list[np.ndarray]:
    """The positions to show along each axis; on a long axis also one in the middle, which is printed as an ellipsis."""
    positions = []
    for n in shape:
        ends = np.arange(n) if n <= 2 * edge + 1 else np.r_[0 : edge + 1, n - edge : n]
        positions.append(ends)
    return positions


def _fetched(x: DeviceArray, positions: list[np.ndarray]) -> np.ndarray:
    """The elements of an array on one device, at the given positions along each axis."""
    is_whole = all([len(p) == n for p, n in zip(positions, x.shape, strict=True)])
    is_narrow = dtypes.bits(x.dtype) < 8
    is_view = next(iter(x.devices())).platform == "cpu" and not is_narrow
    if is_view:
        return x._on_host()[np.ix_(*positions)] if positions else x._on_host()
    part: Any = x if is_whole else x[np.ix_(*positions)]
    if is_narrow:  # converted by a program that is compiled once
        wide = "float32" if x.type.kind == "f" else "int8" if x.type.kind == "i" else "uint8"
        return part.astype(wide)._on_host().astype(x.dtype)
    return part._on_host()


def _corners(x: DeviceArray, edge: int) -> tuple[np.ndarray, np.ndarray]:
    """The displayed elements of an array, and a mask of the elements that are in this process."""
    positions = _positions(x.shape, edge)
    if isinstance(x.sharding, SingleDeviceSharding):
        out = _fetched(x, positions)
        return out, np.ones(out.shape, bool)
    shape = tuple([len(p) for p in positions])
    out, is_here = np.zeros(shape, x.dtype), np.zeros(shape, bool)
    for part in x.addressable_shards:
        places, inside = _within(part, x.shape, positions)
        if all([p.size for p in places]) and not is_here[np.ix_(*places)].all():
            out[np.ix_(*places)] = _fetched(part.data, inside)
            is_here[np.ix_(*places)] = True
    return out, is_here


def _within(
    part: Shard, shape: tuple[int, ...], positions: list[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The indices of the positions that a shard holds, and these positions relative to the shard."""
    places, inside = [], []
    for window, n, shown in zip(part.index, shape, positions, strict=True):
        start, stop, _ = window.indices(n)
        held = np.flatnonzero((shown >= start) & (shown < stop))
        places.append(held)
        inside.append(shown[held] - start)
    return places, inside


def _shown(x: DeviceArray, threshold: int | None = None) -> tuple[np.ndarray, dict[str, Any], np.ndarray] | None:
    """Corners of `x`, options to print them as `x`, and a mask of this process's elements, or None if too large."""
    options = np.get_printoptions()
    edge, limit = options["edgeitems"], options["threshold"] if threshold is None else threshold
    is_cut = x.size > limit
    if not is_cut:
        edge = max((0, *x.shape))
    if int(np.prod([min(n, 2 * edge + 1) for n in x.shape], dtype=float)) > max(_LIMIT, limit):
        return None
    values, is_here = _corners(x, edge)
    return values, {"threshold": 0 if is_cut else values.size + 1, "edgeitems": edge}, is_here


def place(x: DeviceArray) -> str:
    """The device or sharding of an array as text, empty for the default device."""
    sharding = x.sharding
    if len(sharding.device_set) > 1:
        return f"sharding={sharding}"
    (device,) = sharding.device_set
    return "" if device is client.default_device() else f"device={device}"


def text(x: DeviceArray, *, separator: str, prefix: str = "", **options: Any) -> str | None:
    """The elements of an array as NumPy prints them, or None if even the corners have too many."""
    corners = _shown(x, options.pop("threshold", None))
    if corners is None:
        return None
    values, cut, is_here = corners
    if x.ndim == 0 and not prefix:
        return str(values[()])
    if not is_here.all():
        values, cut = _with_gaps(values, is_here), {**cut, "formatter": {"all": str}}
    return np.array2string(values, separator=separator, prefix=prefix, **{**options, **cut})


def _with_gaps(values: np.ndarray, is_here: np.ndarray) -> np.ndarray:
    """The elements as text, with a question mark for elements in other processes."""
    out = np.full(values.shape, "?", object)
    out[is_here] = _cells(values[is_here])
    return out


def as_repr(x: DeviceArray, **options: Any) -> str:
    """An array as text with its dtype: what `repr` gives."""
    if x.is_deleted():
        return f"Array({x.type}, deleted)"
    notes = [f"dtype={x.dtype.name}"]
    if x.type.weak:
        notes.append("weak_type=True")
    where = place(x)
    if where:
        notes.append(where)
    if x.type.kind == "k":
        return f"Array({x.shape}, {', '.join(notes)})"
    body = text(x, separator=", ", prefix="Array(", **options)
    if body is None or x.size > np.get_printoptions()["threshold"] or 0 in x.shape:
        notes.insert(0, f"shape={x.shape}")
    if not (x.is_fully_addressable or x.is_fully_replicated):
        notes.append("? in other processes")
    return f"Array({', '.join([*([body] if body is not None else []), *notes])})"


def as_str(x: DeviceArray, **options: Any) -> str:
    """The elements of an array as text: what `str` gives."""
    if x.type.kind == "k" or x.is_deleted():
        return as_repr(x)
    body = text(x, separator=" ", **options)
    return as_repr(x) if body is None else body


# -- notebooks --------------------------------------------------------------------------------------------------------

_EDGE = 5  # rows and columns at each end of a table
_TEXT = "font-family:monospace;font-size:90%;color:inherit"
_TABLE = f"border-collapse:collapse;margin:.3em 0;{_TEXT}"
_CELL = (
    "padding:.1em .6em;text-align:right;white-space:nowrap;border:1px solid rgba(128,128,128,.35);"
    "background:transparent;color:inherit"
)
_HEAD = _CELL + ";opacity:.55;font-weight:normal"
_DOTS = "\N{HORIZONTAL ELLIPSIS}"


def _cells(values: np.ndarray) -> list[str]:
    """Each element as text, with the digits that NumPy prints."""
    flat = values.reshape(-1)
    if not flat.size:
        return []
    whole = np.array2string(flat, separator="|", threshold=flat.size + 1, max_line_width=10**9)
    return [cell.strip() for cell in whole[1:-1].split("|")]


def _short(values: np.ndarray) -> list[str]:
    """Each element as text for a table: floats with five digits, unless NumPy's print options were changed."""
    options = np.get_printoptions()
    kind = dtypes.kind(values.dtype)
    if kind not in "fc" or options["precision"] != 8 or options["formatter"] or options["suppress"]:
        return _cells(values)
    if kind == "f":
        return [f"{float(v):.5g}" for v in values.reshape(-1)]
    return [f"{v.real:.5g}{v.imag:+.5g}j" for v in values.reshape(-1).tolist()]


def as_html(x: DeviceArray) -> str:
    """An array as HTML for a notebook: type, size, device, and the elements, as a table if there are 1 or 2 axes."""
    about = [f"<b>Array</b> {html.escape(repr(x.type))}"]
    if not x.is_deleted() and x.type.kind != "k":
        about.append(_bytes(x.nbytes))
    sharding = x.sharding
    about.append(html.escape(str(sharding.device if isinstance(sharding, SingleDeviceSharding) else sharding)))
    if x.is_deleted():
        about.append("deleted")
    head = f'<div style="{_TEXT}">{" · ".join(about)}</div>'
    if x.is_deleted() or x.type.kind == "k":
        return head
    if x.ndim not in (1, 2) or 0 in x.shape:
        body = text(x, separator=" ")
        return head if body is None else f'{head}<pre style="margin:.3em 0">{html.escape(body)}</pre>'
    return head + _table(x)


def _table(x: DeviceArray) -> str:
    values, is_here = _corners(x, _EDGE)
    cells = np.full(values.shape, "?", object)
    cells[is_here] = _short(values[is_here])
    rows = cells.reshape(1, -1) if x.ndim == 1 else cells
    down, across = ([np.zeros(1, int)] if x.ndim == 1 else []) + _positions(x.shape, _EDGE)
    columns = _marks(across, x.shape[-1])
    lines = ["<tr>" + "".join([f'<th style="{_HEAD}">{c}</th>' for c in (["", *columns] if x.ndim == 2 else columns)])]
    marks = _marks(down, x.shape[0]) if x.ndim == 2 else [""]
    for mark, row in zip(marks, rows, strict=True):
        shown = [_DOTS if _DOTS in (mark, column) else cell for column, cell in zip(columns, row, strict=True)]
        first = f'<th style="{_HEAD}">{mark}</th>' if x.ndim == 2 else ""
        lines.append(f"<tr>{first}" + "".join([f'<td style="{_CELL}">{html.escape(c)}</td>' for c in shown]))
    return f'<div style="overflow-x:auto"><table style="{_TABLE}">{"</tr>".join(lines)}</tr></table></div>'


def _marks(positions: np.ndarray, n: int) -> list[str]:
    """The numbers of rows or columns as text; an ellipsis marks the omitted ones of a long axis."""
    is_cut = len(positions) < n
    return [_DOTS if is_cut and i == _EDGE else str(p) for i, p in enumerate(positions)]


def _bytes(n: int) -> str:
    size, unit = float(n), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB"):  # noqa: B007
        if size < 1000:
            break
        size /= 1000
    return f"{size:.3g} {unit}"
