"""Cache keys of functions, for the trace cache.

A lambda, partial or bound method that is re-created in a loop should hit the cache, without changing any result. So
functions are compared by their code and by everything it reads at trace time: globals, closure cells, defaults,
attributes of modules, classes and objects, and the same for every function that is called. If that cannot be
determined (`Unkeyable`), a function is equal only to itself: if it reads whole arrays, lists, dicts or objects,
modifies something, or calls a function whose result may change. `remembered` caches the programs of loops and branches
by such keys.
"""

from __future__ import annotations

import builtins
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from atled.core import config, tree, tree_nodes
from atled.core.annotations import annotations_of
from atled.core.config import changes, scope
from atled.core.exact import IdentityKey, Interned, exact
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec, Sharding
from atled.core.source import is_library_file
from atled.core.trace import state
from atled.higher_order.reads import reads_of

_PLAIN = {int, float, complex, bool, str, bytes, type(None), type(...), range, slice}
_FROZEN = (np.dtype, np.generic, Mesh, PartitionSpec, Sharding)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType)
_MOST = 256  # the maximum number of functions and classes in a key; with more, a function is equal only to itself

# Modules of pure functions, and the exceptions in them
_TRUSTED = {
    "atled", "numpy", "math", "cmath", "operator", "functools", "itertools", "ml_dtypes", "typing", "collections",
    "enum",
}  # fmt: skip
_UNTRUSTED = {"random", "config", "distributed", "debug", "profiler", "testing", "ctypeslib"}  # parts of those
_IMPURE = {
    "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "save", "savez", "savez_compressed", "savetxt", "fromregex",
    "device_put", "devices", "local_devices", "device_count", "pure_callback", "io_callback", "lru_cache", "cache",
    "geterr", "geterrcall", "get_printoptions", "array2string", "array_repr", "array_str", "vectorize", "frompyfunc",
    "poly1d",
}  # fmt: skip
_BUILTINS = {
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate", "filter",
    "float", "frozenset", "int", "isinstance", "issubclass", "len", "list", "map", "max", "min", "object", "ord", "pow",
    "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "zip", "Ellipsis",
    "NotImplemented", "ArithmeticError", "AssertionError", "AttributeError", "Exception", "IndexError", "KeyError",
    "NotImplementedError", "OverflowError", "RuntimeError", "StopIteration", "TypeError", "ValueError",
    "ZeroDivisionError",
}  # fmt: skip
_OF_CLASSES = {  # class attributes that functions do not read
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__dataclass_fields__",
    "__dataclass_params__", "__match_args__", "__slots__", "__abstractmethods__", "_abc_impl", "__parameters__",
    "__orig_bases__", "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__",
    "__annotations_cache__", "__conditional_annotations__", "_field_defaults",
}  # fmt: skip
_OF_COMPILED = {"trace", "lower", "eval_shape", "compiles", "clear_cache", "__wrapped__"}  # of jitted functions
_ABSENT = "absent"
_BUILTIN_VALUES = {name: getattr(builtins, name) for name in _BUILTINS}
_DISPATCHER = type(np.sum)  # of NumPy's functions
_NO_CODE = (lambda: None).__code__


class Unkeyable(Exception):  # noqa: N818
    """A function reads something that cannot be part of a key."""


def call_key(functions: Iterable[Any], statics: Iterable[Any], structures: Iterable[tree.Structure]) -> Any:
    """A hashable key, equal for functions that currently compute the same for the same values and classes of arguments.

    Raises `Unkeyable` if there is none.
    """
    reader = _Reader()
    keys = [reader.value(f) for f in functions]
    keys += [reader.value(x) for x in statics]
    for structure in structures:
        reader.structure(structure)
    return tuple(keys), tuple(reader.classes)


class _Reader:
    """Collects what functions read. Repeated objects are replaced by their number, so that the key is finite."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, ...], int] = {}
        self.kept: list[Any] = []  # kept alive so that ids stay unique
        self.classes: dict[Any, None] = {}  # of arguments

    def value(self, x: Any) -> Any:
        """The cache key of a value that is compared as a whole."""
        kind = type(x)
        if kind in _PLAIN:
            return exact(x)
        if kind is types.FunctionType:
            return self.function(x)
        if kind is tuple or kind is frozenset:
            elements = [self.value(v) for v in x]
            return (tuple, *elements) if kind is tuple else (frozenset, frozenset(elements))
        if kind is types.MethodType:
            return self.method(x.__func__, x.__self__)
        if kind is functools.partial:
            named = [(k, self.value(v)) for k, v in (*x.keywords.items(), *x.__dict__.items())]
            return (kind, self.value(x.func), self.value(x.args), len(x.keywords), *named)
        if isinstance(x, type):
            return self.class_(x)
        if isinstance(x, PartitionSpec):
            return (kind, *[exact(v) for v in x])
        if isinstance(x, NamedSharding):
            return kind, x.mesh, self.value(x.spec), x.memory_kind
        if issubclass(kind, _FROZEN) and kind.__module__.partition(".")[0] in ("numpy", "ml_dtypes", "atled"):
            return exact(x)
        if kind is types.BuiltinFunctionType or kind is np.ufunc or kind is _DISPATCHER:
            return _offered(x)
        if isinstance(x, Interned):
            return (IdentityKey(x), *[self.value(v) for v in x.parts()])
        if _is_frozen_record(kind):
            return (self.class_(kind), *[(k, self.value(v)) for k, v in x.__dict__.items()])
        if kind.__module__ == "atled.numpy.scalar_types":
            return kind, x.dtype
        raise Unkeyable

    def number(self, *xs: Any) -> Any:
        """The number of an object that occurred before; None if it is new."""
        key = tuple([id(x) for x in xs])
        index = self.numbers.get(key)
        if index is None:
            if len(self.kept) >= _MOST:
                raise Unkeyable
            self.numbers[key] = len(self.kept)
            self.kept.append(xs)
            return None
        return "again", index

    # -- functions ----------------------------------------------------------------------------------------------------

    def function(self, f: Any, is_method: bool = False) -> Any:
        code, known = f.__code__, f.__globals__
        if code.co_filename == "<atled>":  # a jitted function, which keeps its traces until it is cleared
            more = [(k, self.value(v)) for k, v in f.__dict__.items() if k not in _OF_COMPILED]
            return (IdentityKey(f), IdentityKey(known.get("miss")), f.__name__, f.__qualname__, *more)
        repeated = self.number(f)
        if repeated is not None:
            return repeated
        named = [(k, self.value(v)) for k, v in (f.__kwdefaults__ or {}).items()]
        more = [(k, self.wrapped(v, is_method) if k == "__wrapped__" else self.value(v)) for k, v in f.__dict__.items()]
        more += [(k, IdentityKey(v)) for k, v in annotations_of(f).items()]
        words = (f.__name__, f.__qualname__, exact(f.__doc__))
        own = (IdentityKey(code), words, self.value(f.__defaults__), len(named), *named, len(more), *more)
        if str(known.get("__name__")).startswith("namedtuple_"):  # written by `collections`
            return own
        if is_library_file(code.co_filename) or _trusts(str(known.get("__name__"))):
            if not f.__closure__ or not is_library_file(code.co_filename):
                return _offered(f)
            return (*own, *[self.content(content_of(c)) for c in f.__closure__])
        reads = reads_of(code)
        if not reads.is_closed or (reads.changes_first and not is_method):
            raise Unkeyable
        cells = dict(zip(code.co_freevars, f.__closure__ or (), strict=True))
        inside = [self.chain(content_of(cells[n]), rest) for n, *rest in reads.cells]
        outside = [self.name(f, n, rest) for n, *rest in reads.names]
        return (*own, *inside, *outside)

    def wrapped(self, f: Any, is_method: bool) -> Any:
        """The key of a wrapped function or method."""
        return self.function(f, is_method) if type(f) is types.FunctionType else self.value(f)

    def method(self, f: Any, owner: Any) -> Any:
        if type(f) is not types.FunctionType or f.__code__.co_filename == "<atled>":
            raise Unkeyable
        reads = reads_of(f.__code__)
        if reads.first is None or reads.changes_first:
            raise Unkeyable
        repeated = self.number(f, owner)
        if repeated is not None:
            return repeated
        return ("method", self.function(f, True), *[self.chain(owner, rest) for rest in reads.first])

    def content(self, x: Any) -> Any:
        """The key of an object held by a library function: containers count by their contents."""
        if type(x) in (list, dict):
            items = x.items() if type(x) is dict else enumerate(x)
            return (type(x), *[(exact(k), self.content(v)) for k, v in items])
        return self.value(x)

    # -- names and attributes -----------------------------------------------------------------------------------------

    def name(self, f: Any, name: str, rest: Sequence[str]) -> Any:
        """The key of a global that a function reads."""
        if name in f.__globals__:
            return self.chain(f.__globals__[name], rest)
        builtin = f.__builtins__.get(name, _ABSENT) if isinstance(f.__builtins__, dict) else _ABSENT
        if builtin is _ABSENT:
            return _ABSENT, name
        if name not in _BUILTINS or builtin is not _BUILTIN_VALUES[name]:
            raise Unkeyable
        return "builtin", name, *rest

    def chain(self, x: Any, rest: Sequence[str]) -> Any:
        """The key of a chain of attributes of x, such as x.a.b."""
        for i, name in enumerate(rest):
            if isinstance(x, types.ModuleType) and _is_trusted(x):
                x = getattr(x, name, _ABSENT)
                if not isinstance(x, types.ModuleType):
                    if type(x) is types.FunctionType and not _is_ours(x):  # it was monkey-patched
                        return self.value(x), *rest[i + 1 :]
                    _check_pure(x, name)
                    return IdentityKey(x), *rest[i + 1 :]
                continue
            x = _attribute(x, name)
        return self.value(x)

    # -- classes ------------------------------------------------------------------------------------------------------

    def class_(self, cls: Any) -> Any:
        if _is_offered(cls):
            return IdentityKey(cls)
        if not cls.__flags__ & (1 << 9):  # a C function of an untrusted module
            raise Unkeyable
        if type(cls).__getattribute__ is not type.__getattribute__ or hasattr(type(cls), "__getattr__"):
            raise Unkeyable
        repeated = self.number(cls)
        if repeated is not None:
            return repeated
        parts: list[Any] = [IdentityKey(cls), cls.__name__, cls.__qualname__]
        if type(cls) is not type:
            parts.append(self.class_(type(cls)))
        node = tree_nodes.nodes.get(cls)
        if node is not None and not is_library_file(getattr(node.flatten, "__code__", _NO_CODE).co_filename):
            parts += [self.value(f) for f in (node.flatten, node.unflatten)]
        for base in cls.__mro__:
            if _is_offered(base):
                parts.append(IdentityKey(base))
                continue
            for name, x in list(base.__dict__.items()):
                if name not in _OF_CLASSES and not isinstance(x, _DESCRIPTORS):
                    parts.append((name, self.member(x)))
        return tuple(parts)

    def member(self, x: Any) -> Any:
        if type(x) is types.FunctionType:
            return self.function(x, True)
        if isinstance(x, (staticmethod, classmethod)):
            return type(x), self.value(x.__func__)
        if type(x) is property:
            return tuple([f and self.member(f) for f in (x.fget, x.fset, x.fdel)])
        if type(x).__name__ == "_tuplegetter":
            return IdentityKey(type(x))
        return self.value(x)

    def structure(self, structure: tree.Structure) -> None:
        """Add the classes of an argument's tree nodes: their methods may read globals, too."""
        if structure.kind is not None and structure.kind not in _CONTAINERS:
            self.classes[self.class_(structure.kind)] = None
            self.classes[self.value(structure.meta)] = None
        for child in structure.children:
            if child is not tree.LEAF:
                self.structure(child)


_CONTAINERS = {tuple, list, dict, type(None)}


def _is_frozen_record(kind: Any) -> bool:
    """Whether objects of a class are determined by their fields: frozen dataclasses with default attribute lookup."""
    how = getattr(kind, "__dataclass_params__", None)
    is_plain = kind.__getattribute__ is object.__getattribute__ and not hasattr(kind, "__getattr__")
    return how is not None and how.frozen and is_plain and kind.__dictoffset__ != 0 and not _has_slots(kind)


def _has_slots(kind: Any) -> bool:
    return any(["__slots__" in base.__dict__ for base in kind.__mro__[:-1]])


def content_of(cell: Any) -> Any:
    """What a closure cell holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _ABSENT


def _attribute(x: Any, name: str) -> Any:
    """An attribute of a module, class, function or plain object, found without running any code."""
    kind = type(x)
    if kind is types.ModuleType or kind is types.FunctionType:
        if name not in x.__dict__:
            raise Unkeyable
        return x.__dict__[name]
    if isinstance(x, type):
        if kind.__getattribute__ is not type.__getattribute__ or _looked_up(kind, name) is not _ABSENT:
            raise Unkeyable
        return _bound(_looked_up(x, name), None, x)
    if kind.__getattribute__ is not object.__getattribute__ or hasattr(kind, "__getattr__"):
        raise Unkeyable
    attribute = _looked_up(kind, name)
    if isinstance(attribute, types.MemberDescriptorType):
        try:
            return attribute.__get__(x, kind)
        except AttributeError:  # it was never assigned
            raise Unkeyable from None
    if hasattr(type(attribute), "__set__"):
        raise Unkeyable
    own = getattr(x, "__dict__", {})
    return own[name] if name in own else _bound(attribute, x, kind)


def _looked_up(cls: Any, name: str) -> Any:
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), _ABSENT)


def _bound(found: Any, x: Any, cls: Any) -> Any:
    """The result of an attribute lookup on a class or an instance."""
    if isinstance(found, (types.FunctionType, staticmethod, classmethod)):
        return found.__get__(x, cls)
    if found is _ABSENT or hasattr(type(found), "__get__"):
        raise Unkeyable
    return found


def _is_trusted(module: Any) -> bool:
    return _trusts(getattr(module, "__name__", ""))


@functools.lru_cache(maxsize=1024)
def _trusts(name: str) -> bool:
    root, *parts = name.split(".")
    if name == "atled.random" or name.startswith("atled.random."):  # its functions have keys
        return True
    return root in _TRUSTED and _UNTRUSTED.isdisjoint(parts)


def _is_ours(f: Any) -> bool:
    code = f.__code__
    return is_library_file(code.co_filename) or _trusts(str(f.__globals__.get("__name__")))


def _check_pure(x: Any, name: str) -> None:
    if x is _ABSENT or name in _IMPURE or isinstance(x, (list, dict, set, np.ndarray)):
        raise Unkeyable


def _offered(x: Any) -> IdentityKey:
    """The key of a function or class of a trusted module."""
    if isinstance(x, types.BuiltinFunctionType) and not isinstance(x.__self__, types.ModuleType):
        raise Unkeyable  # a bound method
    module = x.__globals__.get("__name__") if isinstance(x, types.FunctionType) else getattr(x, "__module__", None)
    name = getattr(x, "__name__", "")
    if module == "builtins" and name not in _BUILTINS:
        raise Unkeyable
    if isinstance(x, np.ufunc):
        if getattr(np, name, None) is not x:
            raise Unkeyable  # of `frompyfunc`
    elif module != "builtins" and not _trusts(str(module)):
        raise Unkeyable
    _check_pure(x, name)
    return IdentityKey(x)


def _is_offered(cls: Any) -> bool:
    """Whether this class is from a trusted module."""
    module = sys.modules.get(cls.__module__)
    if module is builtins:
        return not cls.__flags__ & (1 << 9)
    return module is not None and _is_trusted(module) and getattr(module, cls.__name__, None) is cls


class WeakIdentityDict:
    """A dict keyed by object identity, whose entries are removed when the object dies."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}

    def get(self, anchor: Any) -> Any:
        """The value stored for an object, or None."""
        entry = self._entries.get(id(anchor))
        return entry[1] if entry is not None and entry[0]() is anchor else None

    def set(self, anchor: Any, value: Any) -> bool:
        """Store a value for as long as an object lives; returns False for objects without weak references."""
        key = id(anchor)
        try:
            watch = weakref.ref(anchor, lambda _: self._entries.pop(key, None))
        except TypeError:
            return False
        self._entries[key] = (watch, value)
        return True


recordings: dict[Any, Any] = {}  # programs of loops and branches that were called outside of a trace
_RECORDINGS_LIMIT = 1024


def remembered(functions: Sequence[Callable[..., Any]], key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """The result of `make()`, cached by the keys of functions: outside of `jit`, a loop body is traced only once.

    The structures of arguments are part of the key.
    """
    if state.level or state.base.is_watching:
        return make()
    structures = [x for x in key if isinstance(x, tree.Structure)]

    def now() -> Any:
        own = call_key(functions, (), structures)
        return own, key, config.trace_key(), scope().mesh, scope().check_programs, changes[0]

    try:
        whole = now()
        recording = recordings.get(whole)
    except Exception:  # Unkeyable, or an error from code that runs only to compute the key
        return make()
    if recording is None:
        recording = make()
        if keeps(whole, now) and all([s.is_plain for s in _structures(recording)]):
            while len(recordings) >= _RECORDINGS_LIMIT:
                recordings.pop(next(iter(recordings), None), None)
            recordings[whole] = recording
    return recording


def _structures(found: Any) -> list[tree.Structure]:
    """The result trees, whose static data may belong to another function."""
    parts = found if isinstance(found, tuple) else (found,)
    trees = [getattr(x, "structure", x) for x in parts]
    return [t for t in trees if isinstance(t, tree.Structure)]


def keeps(key: Any, now: Callable[[], Any]) -> bool:
    """Whether a result may be cached under a key: the values in the key did not change meanwhile."""
    try:
        return bool(key == now())
    except Exception:
        return False
