"""Conversion of optimizers to plain data, for checkpoints, and back.

A record has the class of an optimizer, its numbers, its schedules, and the optimizers inside it. Of a function, only
the name and a hash of the code are recorded, which detect whether the function has changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from atled.core import former_names
from atled.optim.optimizer import Optimizer
from atled.optim.schedules import Schedule

FORMER = {
    **former_names.FORMER["atled.optim"],
    "Falling": "WarmupDecay",
    "Joined": "JoinedSchedules",
}  # classes in records from before 0.1


class UnknownError(LookupError):
    """A record cannot be turned back into an optimizer."""


def record(x: Any) -> Any:
    """An optimizer, or a part of one, as JSON-serializable data."""
    if isinstance(x, np.generic) or (hasattr(x, "dtype") and np.ndim(x) == 0):
        number = np.asarray(x)
        return {"number": record(number.item()), "dtype": number.dtype.name}
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return {"float": x.hex()}
    if isinstance(x, (tuple, list)):
        return {type(x).__name__: [record(v) for v in x]}
    if isinstance(x, Mapping):
        return {"dict": [[record(k), record(v)] for k, v in x.items()]}
    if isinstance(x, (Optimizer, Schedule)):
        return {"class": _name_of(type(x)), "fields": {n: record(getattr(x, n)) for n in _fields(x)}}
    code = getattr(x, "__code__", None)
    hashed = "" if code is None else _hash_of(x)
    return {"function": getattr(x, "__qualname__", shown(x)), "hash": hashed}


def recalled(found: Any, now: Any) -> Any:
    """The recorded optimizer; functions are taken from the same place in the optimizer `now`.

    Raises `UnknownError` if a class is not defined here, or a function is missing.
    """
    if not isinstance(found, dict):
        return found
    kind, value = next(iter(found.items()))
    if kind == "float":
        return float.fromhex(value)
    if kind in ("tuple", "list"):
        parts = [recalled(v, w) for v, w in zip(value, _padded(now, (tuple, list), len(value)))]
        return tuple(parts) if kind == "tuple" else parts
    if kind == "dict":
        return {recalled(k, None): recalled(v, now.get(k) if isinstance(now, Mapping) else None) for k, v in value}
    if kind == "number":
        return np.dtype(found["dtype"]).type(recalled(value, None))
    if kind == "class":
        name = FORMER.get(value, value)
        cls = next((c for c in _classes() if _name_of(c) == name), None)
        if cls is None:
            raise UnknownError(value)
        names, today = getattr(cls, "_former", {}), getattr(cls, "__dataclass_fields__", {})
        fields = {n if n in today else names.get(n, n): v for n, v in found["fields"].items()}
        fields = {n: recalled(v, getattr(now, n, None)) for n, v in fields.items()}
        try:
            return cls(**fields)
        except TypeError:  # the fields of the class have changed
            raise UnknownError(value) from None
    if not callable(now) or isinstance(now, (Optimizer, Schedule)):
        raise UnknownError(value)
    return now


def changed_functions(found: Any, now: Any) -> list[str]:
    """The names of functions in an optimizer that differ from those recorded."""
    then, here = dict(_functions(found)), dict(_functions(record(now)))
    return [name for place, (name, hashed) in then.items() if here.get(place, (name, None))[1] != hashed]


def _fields(x: Any) -> list[str]:
    return [f.name for f in dataclasses.fields(x)] if dataclasses.is_dataclass(x) else list(vars(x))


def _functions(x: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[str, str]]]:
    if isinstance(x, dict) and "function" in x:
        yield place, (x["function"], x["hash"])
    elif isinstance(x, (dict, list)):
        for key, value in x.items() if isinstance(x, dict) else enumerate(x):
            yield from _functions(value, (*place, key))


def _hash_of(f: Any) -> str:
    """A hash of a function's code, and of the representation of its defaults and closure."""
    hashed = hashlib.sha256()

    def feed(code: types.CodeType) -> None:
        hashed.update(code.co_code + repr((code.co_names, code.co_varnames)).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                feed(constant)
            else:
                hashed.update(repr(constant).encode())

    feed(f.__code__)
    cells = [c.cell_contents for c in f.__closure__ or () if c != types.CellType()]
    hashed.update(shown((f.__defaults__, f.__kwdefaults__, cells)).encode())
    return hashed.hexdigest()[:16]


def shown(x: Any) -> str:
    """The representation of an optimizer, without addresses of functions."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(x))


def _name_of(cls: type) -> str:
    is_ours = cls.__module__.startswith("atled.")
    return cls.__qualname__ if is_ours else f"{cls.__module__}:{cls.__qualname__}"


def _classes() -> Iterator[type]:
    """All classes of optimizers and schedules, including user-defined ones."""
    waiting: list[type] = [Optimizer, Schedule]
    while waiting:
        cls = waiting.pop()
        yield cls
        waiting += cls.__subclasses__()


def _padded(now: Any, kinds: tuple[type, ...], length: int) -> list[Any]:
    have = list(now) if isinstance(now, kinds) else []
    return [*have, *[None] * (length - len(have))]
