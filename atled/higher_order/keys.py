"""When two functions are the same function, for the trace cache.

A lambda, partial or bound method that is made anew in a loop should hit the cache, and nobody should be able to tell: a
function that was never traced behaves as if there were no cache. So functions are compared by their code and by all
that it reads, at the time of the trace: globals, closure cells, defaults, attributes of modules, classes and objects,
and the same of every function that is called. Where that cannot be told (`Heavy`), a function is equal to itself alone:
if it reads arrays, lists, dicts or objects as a whole, changes something, or calls what may give another result next
time. `remembered` keeps what loops and branches are recorded as by such keys.
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
from atled.core.exact import Interned, Same, exact
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec, Sharding
from atled.core.source import is_library_file
from atled.core.trace import state
from atled.higher_order.reads import reads_of

_PLAIN = {int, float, complex, bool, str, bytes, type(None), type(...), range, slice}
_FROZEN = (np.dtype, np.generic, Mesh, PartitionSpec, Sharding)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType)
_MOST = 256  # functions and classes that one function may refer to, before it is taken to be equal to itself alone

# Modules whose functions give the same result for the same arguments, and what of them does not
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
_OF_CLASSES = {  # what classes have of their own, and no function reads
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


class Heavy(Exception):  # noqa: N818
    """A function refers to something that cannot be part of a key."""


def call_key(functions: Iterable[Any], statics: Iterable[Any], structures: Iterable[tree.Structure]) -> Any:
    """A hashable key, equal for functions that do the same now with the same values and classes of arguments.

    Raises `Heavy` if there is none.
    """
    reader = _Reader()
    found = [reader.value(f) for f in functions]
    found += [reader.value(x) for x in statics]
    for structure in structures:
        reader.structure(structure)
    return tuple(found), tuple(reader.classes)


class _Reader:
    """Reads what functions refer to. What comes up again is told by its number, so that the key is of finite size."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, ...], int] = {}
        self.kept: list[Any] = []  # so that no two objects have one id
        self.classes: dict[Any, None] = {}  # of arguments

    def value(self, x: Any) -> Any:
        """The key of a value that is used as a whole."""
        kind = type(x)
        if kind in _PLAIN:
            return exact(x)
        if kind is types.FunctionType:
            return self.function(x)
        if kind is tuple or kind is frozenset:
            found = [self.value(v) for v in x]
            return (tuple, *found) if kind is tuple else (frozenset, frozenset(found))
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
            return (Same(x), *[self.value(v) for v in x.parts()])
        if _is_frozen_record(kind):
            return (self.class_(kind), *[(k, self.value(v)) for k, v in x.__dict__.items()])
        if kind.__module__ == "atled.numpy.scalar_types":
            return kind, x.dtype
        raise Heavy

    def number(self, *xs: Any) -> Any:
        """The number of something that has come up before; None if it is new."""
        key = tuple([id(x) for x in xs])
        found = self.numbers.get(key)
        if found is None:
            if len(self.kept) >= _MOST:
                raise Heavy
            self.numbers[key] = len(self.kept)
            self.kept.append(xs)
            return None
        return "again", found

    # -- functions ----------------------------------------------------------------------------------------------------

    def function(self, f: Any, is_method: bool = False) -> Any:
        code, known = f.__code__, f.__globals__
        if code.co_filename == "<atled>":  # a compiled function, which keeps its traces until it is cleared
            more = [(k, self.value(v)) for k, v in f.__dict__.items() if k not in _OF_COMPILED]
            return (Same(f), Same(known.get("miss")), f.__name__, f.__qualname__, *more)
        found = self.number(f)
        if found is not None:
            return found
        named = [(k, self.value(v)) for k, v in (f.__kwdefaults__ or {}).items()]
        more = [(k, self.wrapped(v, is_method) if k == "__wrapped__" else self.value(v)) for k, v in f.__dict__.items()]
        more += [(k, Same(v)) for k, v in annotations_of(f).items()]
        words = (f.__name__, f.__qualname__, exact(f.__doc__))
        own = (Same(code), words, self.value(f.__defaults__), len(named), *named, len(more), *more)
        if str(known.get("__name__")).startswith("namedtuple_"):  # written by `collections`
            return own
        if is_library_file(code.co_filename) or _trusts(str(known.get("__name__"))):
            if not f.__closure__ or not is_library_file(code.co_filename):
                return _offered(f)
            return (*own, *[self.content(content_of(c)) for c in f.__closure__])
        reads = reads_of(code)
        if not reads.is_closed or (reads.changes_first and not is_method):
            raise Heavy
        cells = dict(zip(code.co_freevars, f.__closure__ or (), strict=True))
        inside = [self.chain(content_of(cells[n]), rest) for n, *rest in reads.cells]
        outside = [self.name(f, n, rest) for n, *rest in reads.names]
        return (*own, *inside, *outside)

    def wrapped(self, f: Any, is_method: bool) -> Any:
        """The key of what a function wraps: a method, if it is one."""
        return self.function(f, is_method) if type(f) is types.FunctionType else self.value(f)

    def method(self, f: Any, owner: Any) -> Any:
        if type(f) is not types.FunctionType or f.__code__.co_filename == "<atled>":
            raise Heavy
        reads = reads_of(f.__code__)
        if reads.first is None or reads.changes_first:
            raise Heavy
        found = self.number(f, owner)
        if found is not None:
            return found
        return ("method", self.function(f, True), *[self.chain(owner, rest) for rest in reads.first])

    def content(self, x: Any) -> Any:
        """The key of something that a function of the library holds: its containers count by what is in them."""
        if type(x) in (list, dict):
            items = x.items() if type(x) is dict else enumerate(x)
            return (type(x), *[(exact(k), self.content(v)) for k, v in items])
        return self.value(x)

    # -- names and attributes -----------------------------------------------------------------------------------------

    def name(self, f: Any, name: str, rest: Sequence[str]) -> Any:
        """The key of what a function finds under a global name."""
        if name in f.__globals__:
            return self.chain(f.__globals__[name], rest)
        found = f.__builtins__.get(name, _ABSENT) if isinstance(f.__builtins__, dict) else _ABSENT
        if found is _ABSENT:
            return _ABSENT, name
        if name not in _BUILTINS or found is not _BUILTIN_VALUES[name]:
            raise Heavy
        return "builtin", name, *rest

    def chain(self, x: Any, rest: Sequence[str]) -> Any:
        """The key of an attribute of an attribute of x."""
        for i, name in enumerate(rest):
            if isinstance(x, types.ModuleType) and _is_trusted(x):
                x = getattr(x, name, _ABSENT)
                if not isinstance(x, types.ModuleType):
                    if type(x) is types.FunctionType and not _is_ours(x):  # somebody put it there
                        return self.value(x), *rest[i + 1 :]
                    _check_pure(x, name)
                    return Same(x), *rest[i + 1 :]
                continue
            x = _attribute(x, name)
        return self.value(x)

    # -- classes ------------------------------------------------------------------------------------------------------

    def class_(self, cls: Any) -> Any:
        if _is_offered(cls):
            return Same(cls)
        if not cls.__flags__ & (1 << 9):  # written in C, of a module that is not trusted
            raise Heavy
        if type(cls).__getattribute__ is not type.__getattribute__ or hasattr(type(cls), "__getattr__"):
            raise Heavy
        found = self.number(cls)
        if found is not None:
            return found
        parts: list[Any] = [Same(cls), cls.__name__, cls.__qualname__]
        if type(cls) is not type:
            parts.append(self.class_(type(cls)))
        node = tree_nodes.nodes.get(cls)
        if node is not None and not is_library_file(getattr(node.flatten, "__code__", _NO_CODE).co_filename):
            parts += [self.value(f) for f in (node.flatten, node.unflatten)]
        for base in cls.__mro__:
            if _is_offered(base):
                parts.append(Same(base))
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
            return Same(type(x))
        return self.value(x)

    def structure(self, structure: tree.Structure) -> None:
        """Note the classes of the nodes of an argument: their methods read from outside as well."""
        if structure.kind is not None and structure.kind not in _CONTAINERS:
            self.classes[self.class_(structure.kind)] = None
            self.classes[self.value(structure.meta)] = None
        for child in structure.children:
            if child is not tree.LEAF:
                self.structure(child)


_CONTAINERS = {tuple, list, dict, type(None)}


def _is_frozen_record(kind: Any) -> bool:
    """Whether objects of a class are what their fields are: frozen dataclasses that look attributes up as usual."""
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
            raise Heavy
        return x.__dict__[name]
    if isinstance(x, type):
        if kind.__getattribute__ is not type.__getattribute__ or _looked_up(kind, name) is not _ABSENT:
            raise Heavy
        return _bound(_looked_up(x, name), None, x)
    if kind.__getattribute__ is not object.__getattribute__ or hasattr(kind, "__getattr__"):
        raise Heavy
    found = _looked_up(kind, name)
    if isinstance(found, types.MemberDescriptorType):
        try:
            return found.__get__(x, kind)
        except AttributeError:  # it was never assigned
            raise Heavy from None
    if hasattr(type(found), "__set__"):
        raise Heavy
    own = getattr(x, "__dict__", {})
    return own[name] if name in own else _bound(found, x, kind)


def _looked_up(cls: Any, name: str) -> Any:
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), _ABSENT)


def _bound(found: Any, x: Any, cls: Any) -> Any:
    """What looking up an attribute of a class gives, on an object of it or on itself."""
    if isinstance(found, (types.FunctionType, staticmethod, classmethod)):
        return found.__get__(x, cls)
    if found is _ABSENT or hasattr(type(found), "__get__"):
        raise Heavy
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
        raise Heavy


def _offered(x: Any) -> Same:
    """The key of a function or class of a module that is trusted."""
    if isinstance(x, types.BuiltinFunctionType) and not isinstance(x.__self__, types.ModuleType):
        raise Heavy  # a method of some object
    module = x.__globals__.get("__name__") if isinstance(x, types.FunctionType) else getattr(x, "__module__", None)
    name = getattr(x, "__name__", "")
    if module == "builtins" and name not in _BUILTINS:
        raise Heavy
    if isinstance(x, np.ufunc):
        if getattr(np, name, None) is not x:
            raise Heavy  # of `frompyfunc`
    elif module != "builtins" and not _trusts(str(module)):
        raise Heavy
    _check_pure(x, name)
    return Same(x)


def _is_offered(cls: Any) -> bool:
    """Whether a module that is trusted has this class."""
    module = sys.modules.get(cls.__module__)
    if module is builtins:
        return not cls.__flags__ & (1 << 9)
    return module is not None and _is_trusted(module) and getattr(module, cls.__name__, None) is cls


class WeakIdentityDict:
    """A dict by identity of objects, whose entries go when the object does."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Any]] = {}

    def get(self, anchor: Any) -> Any:
        """What is kept for an object, or None."""
        found = self._entries.get(id(anchor))
        return found[1] if found is not None and found[0]() is anchor else None

    def set(self, anchor: Any, value: Any) -> bool:
        """Keep something for as long as an object lives; says no for objects that cannot be watched."""
        key = id(anchor)
        try:
            watch = weakref.ref(anchor, lambda _: self._entries.pop(key, None))
        except TypeError:
            return False
        self._entries[key] = (watch, value)
        return True


recordings: dict[Any, Any] = {}  # what loops and branches were recorded as, where nothing is being traced
_RECORDINGS_LIMIT = 1024


def remembered(functions: Sequence[Callable[..., Any]], key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What `make()` gives, kept for functions that do the same: called outside of `jit`, a loop is recorded once.

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
        found = recordings.get(whole)
    except Exception:  # Heavy, or an error of something that is looked at and would not be without a key
        return make()
    if found is None:
        found = make()
        if keeps(whole, now) and all([s.is_plain for s in _structures(found)]):
            while len(recordings) >= _RECORDINGS_LIMIT:
                recordings.pop(next(iter(recordings), None), None)
            recordings[whole] = found
    return found


def _structures(found: Any) -> list[tree.Structure]:
    """The trees of results, whose data would be those of another function."""
    parts = found if isinstance(found, tuple) else (found,)
    trees = [getattr(x, "structure", x) for x in parts]
    return [t for t in trees if isinstance(t, tree.Structure)]


def keeps(key: Any, now: Callable[[], Any]) -> bool:
    """Whether what was made under a key may be kept: nobody changed meanwhile what the key is made of."""
    try:
        return bool(key == now())
    except Exception:
        return False
