"""`summary`: a table of a model's modules, with output types, parameters, bytes and flops."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from atled.core import tree
from atled.core.array import describe, type_of
from atled.core.program import subprograms
from atled.core.trace import state
from atled.core.types import ArrayType, ShapeDtypeStruct
from atled.higher_order.scan import Scan
from atled.nn.module import Module, changed, retyped
from atled.nn.module_filters import modules
from atled.ops.contraction import DotGeneral
from atled.ops.convolution import Convolution
from atled.staging.jit import eval_shape


class Row(NamedTuple):
    """A module: its output types, the number of its parameters, their bytes, and the flops of its calls."""

    path: str
    layer: str
    output: str
    params: int
    bytes: int
    flops: int


class Summary:
    """The rows of `summary`, printed as a table; also renders as a `rich` table."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def cells(self) -> list[tuple[str, ...]]:
        """All rows as text, the header first."""
        title = ("path", "layer", "output", "parameters", "bytes", "flops")
        return [title, *[(r.path, r.layer, r.output, *[_short(n) for n in r[3:]]) for r in self.rows]]

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max([len(row[i]) for row in cells]) for i in range(6)]
        lines = [
            "  ".join([c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))])
            for row in cells
        ]
        return "\n".join([line.rstrip() for line in lines])

    __repr__ = __str__

    def __rich__(self) -> Any:
        from rich.table import Table

        title, *rows = self.cells()
        table = Table()
        for i, name in enumerate(title):
            table.add_column(name, justify="left" if i < 3 else "right")
        for row in rows:
            table.add_row(*row)
        return table


def _short(n: int) -> str:
    """A number as text; from 1000 on, with three significant digits and a unit."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return str(n)


def summary(model: Any, *args: Any, **kwargs: Any) -> Summary:
    """A table of the modules of a model, for a call with these arguments, which is traced and not run.

    Arguments may be `ShapeDtypeStruct`s. `flops` counts the operations of the forward pass, two for each multiply-add
    of a product.

    >>> import atled
    >>> from atled import nn, random
    >>> nn.summary(nn.Linear(2, 3, key=random.key(0)), atled.ShapeDtypeStruct((5, 2), "float32"))
    path  layer   output    parameters  bytes  flops
          Linear  f32[5,3]           9     36     75
    """
    calls: dict[str, list[tuple[Any, int]]] = {}

    def marked(path: str, m: Any) -> Any:
        return retyped(m, _counted(type(m)), "_place", path)

    def run(model: Any, *args: Any, **kwargs: Any) -> Any:
        before, _counting.calls = _counting.calls, calls
        try:
            return changed(model, marked)(*args, **kwargs)
        finally:
            _counting.calls = before

    eval_shape(run, model, *args, **kwargs)
    rows = []
    for path, m in modules(model):
        leaves, structure = tree.flatten(m)
        params = [_type(x) for x, k in zip(leaves, structure.kinds, strict=True) if k is not None and k.is_trained]
        held = sum([math.prod(t.shape) * t.dtype.itemsize for t in params])
        records = calls.get(path, [])
        output = ", ".join([describe_tree(out) for out, _ in records[:2]]) + (", …" if len(records) > 2 else "")
        flops = sum([n for _, n in records])
        rows.append(Row(path, type(m).__name__, output, sum([t.size for t in params]), held, flops))
    return Summary(rows)


class _Counting(threading.local):
    calls: Any = None  # results and flops of calls by module path, while `summary` runs


_counting = _Counting()


_classes: dict[Any, Any] = {}


def _counted(cls: Any) -> Any:
    """A subclass of `cls` that records its calls and their flops."""
    if cls not in _classes:

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            before = len(state.base.equations)
            out = cls.__call__(self, *args, **kwargs)
            flops = sum([_flops(e) for e in state.base.equations[before:]])
            _counting.calls.setdefault(self._place, []).append((tree.map(_type, out), flops))
            return out

        _classes[cls] = type(cls.__name__, (cls,), {"__call__": __call__, "__module__": cls.__module__})
    return _classes[cls]


def _type(x: Any) -> ArrayType:
    return x.type if isinstance(x, ShapeDtypeStruct) else type_of(x)


def describe_tree(out: Any) -> str:
    """The types of a result as text."""
    if isinstance(out, ArrayType):
        return str(out)
    if isinstance(out, Module):
        return type(out).__name__
    if isinstance(out, (tuple, list)):
        return f"({', '.join([describe_tree(x) for x in out])})"
    return describe(out)


def _flops(e: Any) -> int:
    """The flops of an equation."""
    inner: Sequence[Any] = subprograms(e.op)
    if inner:
        times = e.op.length if isinstance(e.op, Scan) else 1
        return times * max([sum([_flops(i) for i in p.equations]) for p in inner])
    size = sum([v.type.size for v in e.results])
    if isinstance(e.op, DotGeneral):
        return 2 * size * math.prod([e.operands[0].type.shape[a] for a in e.op.contracting[0]])
    if isinstance(e.op, Convolution):
        kernel, axes = e.operands[1].type.shape, e.op.axes
        return 2 * size * math.prod(kernel) // max(kernel[axes.kernel[0]], 1)
    return size if e.results[0].type.kind in "fc" and e.op.name not in _MOVING else 0


_MOVING = {
    "reshape", "broadcast", "transpose", "slice", "pad", "concatenate", "gather", "convert", "rev", "dynamic_slice",
    "dynamic_update_slice", "stop_gradient", "sharding_constraint",
}  # fmt: skip
