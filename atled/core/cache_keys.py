"""Exact cache keys: two keys are equal only if the values are the same.

In Python, 1, 1.0 and True are equal, and so are 0.0 and -0.0, while NaN is unequal to itself. A cache keyed by the
values themselves could return the entry of another value. Therefore `exact` makes the cache keys of all user values:
tree structures, static arguments, literals in programs, and parameters of ops.
"""

from __future__ import annotations

import collections
import functools
import operator
import struct
import weakref
from typing import Any

import numpy as np


def exact(x: Any) -> Any:
    """A hashable key, equal for values of the same class with the same contents.

    Strings, integers, None, nested tuples of these, and `Interned` objects are their own keys. All other keys are
    tuples that begin with a class, so keys of the two kinds cannot collide. The key of a container holds its current
    contents, so it does not change when the container does.

    >>> exact(1) == exact(True), exact(0.0) == exact(-0.0), exact(float("nan")) == exact(float("nan"))
    (False, False, True)
    """
    kind = type(x)  # the real class, not `__class__`
    if kind in _ATOMS:
        return x
    if kind is tuple:
        return x if _is_plain(x) else (tuple, *[v if v.__class__ in _ATOMS else exact(v) for v in x])
    return (_MAKERS.get(kind) or _maker(kind))(x)


_ATOMS = frozenset([str, int, type(None)])  # values that are their own keys


def _is_plain(x: tuple[Any, ...]) -> bool:
    """Whether a tuple holds only strings, integers, None and tuples of these."""
    for v in x:  # noqa: SIM110, faster than `all` of a generator
        if v.__class__ not in _ATOMS and not (v.__class__ is tuple and _is_plain(v)):
            return False
    return True


class Interned:
    """Base of classes whose equal instances are one object: such an object is its own key."""

    __slots__ = ()


class Plain(tuple[Any, ...]):
    """A tuple that is its own key. Its maker guarantees that it holds only strings, integers, None and such tuples."""

    __slots__ = ()


class IdentityKey:
    """A key that is equal only to itself, and keeps its object alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class WeakIdentityDict:
    """A dict keyed by object identity, whose entries are removed when the object dies."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}

    def get(self, anchor: Any) -> Any:
        """The value stored for an object, or None."""
        entry = self._entries.get(id(anchor))
        return entry[1] if entry is not None and entry[0]() is anchor else None

    def set(self, anchor: Any, value: Any) -> bool:
        """Store a value for as long as an object lives; returns False if weak references to it are impossible."""
        key = id(anchor)
        try:
            watch = weakref.ref(anchor, lambda _: self._entries.pop(key, None))
        except TypeError:
            return False
        self._entries[key] = (watch, value)
        return True


def _float(x: float) -> Any:
    return (float, x) if x == x and x != 0.0 else (float, struct.pack("<d", x))


def _dict(x: Any) -> Any:
    return (x.__class__, *[(exact(k), exact(v)) for k, v in x.items()])


def _array(x: Any) -> Any:
    return (np.ndarray, x.dtype, x.shape, x.tobytes() if not x.dtype.hasobject else exact(x.ravel().tolist()))


_MAKERS: dict[Any, Any] = {
    bool: lambda x: (bool, x),
    float: _float,
    complex: lambda x: (complex, struct.pack("<dd", x.real, x.imag)),
    list: lambda x: (list, *[v if v.__class__ in _ATOMS else exact(v) for v in x]),
    dict: _dict,
    set: lambda x: (set, frozenset([exact(v) for v in x])),
    frozenset: lambda x: (frozenset, frozenset([exact(v) for v in x])),
    range: lambda x: (range, x.start, x.stop, x.step),
    slice: lambda x: (slice, exact(x.start), exact(x.stop), exact(x.step)),
    functools.partial: lambda x: (functools.partial, exact(x.func), exact(x.args), _dict(x.keywords)),
    bytes: lambda x: (bytes, x),
    Plain: lambda x: (Plain, x),
    bytearray: lambda x: (bytearray, bytes(x)),
    np.ndarray: _array,
}


def _maker(kind: Any) -> Any:
    """Choose the key function of a class, and add it to `_MAKERS`."""
    if len(_MAKERS) > 2000:  # drop the key functions of the user's classes
        for of in [k for k in _MAKERS if k not in _OURS]:
            del _MAKERS[of]
    return _MAKERS.setdefault(kind, _choose(kind))


def _choose(kind: Any) -> Any:
    if issubclass(kind, Interned):
        return lambda x: x
    if issubclass(kind, np.generic) and kind.__module__ in ("numpy", "ml_dtypes"):
        return lambda x: (kind, x.dtype, x.tobytes())
    if kind.__module__ == "decimal":  # Decimal("1") == Decimal("1.0")
        return lambda x: (kind, str(x))
    parts: Any
    equal = kind.__eq__
    for base in (float, complex, list, set, frozenset):
        if issubclass(kind, base) and equal is base.__eq__:
            return lambda x, make=_MAKERS[base]: (kind, make(x)) if kind.__eq__ is equal else _again(x)
    names = _fields(kind)
    if issubclass(kind, tuple) and equal is tuple.__eq__:  # a named tuple
        parts = iter
    elif issubclass(kind, dict) and equal in (dict.__eq__, collections.OrderedDict.__eq__):
        return lambda x: _dict(x) if kind.__eq__ is equal else _again(x)
    elif names is None:
        return lambda x: (kind, x)
    elif len(names) > 1:
        parts = operator.attrgetter(*names)
    else:  # attrgetter of a single name returns no tuple
        parts = lambda x: [getattr(x, n) for n in names]  # noqa: E731

    def key(x: Any) -> Any:
        if kind.__eq__ is not equal:
            return _again(x)
        try:
            values = parts(x)
        except AttributeError:
            values = [getattr(x, n, None) for n in names or ()]
        return (kind, *[v if v.__class__ in _ATOMS else exact(v) for v in values])

    return key


def _again(x: Any) -> Any:
    """The key of an object whose class got a new `__eq__` after its key function was chosen."""
    _MAKERS.pop(type(x), None)
    return exact(x)


def _fields(kind: Any) -> tuple[str, ...] | None:
    """The fields that a dataclass's generated `__eq__` compares, or None for any other `__eq__`."""
    fields = getattr(kind, "__dataclass_fields__", None)
    code = getattr(kind.__eq__, "__code__", None)
    if fields is None or code is None or code.co_filename != "<string>":  # not generated by `dataclass`
        return None
    if not code.co_qualname.startswith("__create_fn__.<locals>."):  # an `__eq__` written in `exec` or `python -c`
        return None
    return tuple([name for name, f in fields.items() if f.compare and f._field_type.name == "_FIELD"])


_OURS = frozenset(_MAKERS)
