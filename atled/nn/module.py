"""`Module`: a plain class with `__init__` and `__call__` that is a pytree, so every transform accepts it.

Arrays are declared: `self.weight = nn.Param(x)` stores the bare array and records its kind. Declared arrays,
modules, and lists and dicts that hold them are the children; everything else is static and compared by
value. A constructed module holds its children and a `ModuleDef`: its class, names of children, kinds and
static values. Equal `ModuleDef`s are one object, so comparing two structures is one identity check, and
generated launch code flattens modules without loops.

A transformed function gets copies of its module arguments, to which it may assign; only what it returns persists.
"""

from __future__ import annotations

import collections
import difflib
import enum
import functools
import inspect
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np

from atled.core import errors, tree, tree_registry
from atled.core.array import Array, describe, type_of
from atled.core.trace import Interpreter, Tracer, state
from atled.engine.array import to_device
from atled.nn.module_structure import FUNCTIONS, MODULE_CODE, ModuleDef, Static, key_of, lock, make_form
from atled.nn.variable_kinds import Kind, as_declared


class _Building(threading.local):
    depth = 0  # how many nested constructors are running


_building = _Building()


class Module:
    """Base class of layers and models: a class with `__init__` and `__call__` that is a pytree.

    >>> from atled import nn, random, grad
    >>> import atled.numpy as jnp
    >>> class Line(nn.Module):
    ...     def __init__(self, key):
    ...         self.slope = nn.Param(random.normal(key, ()))
    ...         self.calls = nn.Buffer(0)
    ...     def __call__(self, x):
    ...         return self.slope * x
    >>> line = Line(random.key(0))
    >>> line
    Line(slope=Param f32[], calls=Buffer i32[])
    >>> grad(lambda line: line(3.0))(line).slope, grad(lambda line: line(3.0))(line).calls
    (Array(3., dtype=float32), None)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("__slots__"):
            raise TypeError(
                f"{cls.__name__}: a module needs a __dict__ for its attributes; got __slots__."
                "\n  try: remove __slots__."
            )
        tree_registry.register_node(cls, _taken_apart, ModuleDef.build, lambda m: settled(m).keys, MODULE_CODE)
        if "__init__" in cls.__dict__:
            cls.__init__ = _watched(cls.__init__)  # type: ignore[method-assign]
        if "forward" in cls.__dict__ and not any(["__call__" in c.__dict__ for c in cls.__mro__]):
            cls.__call__ = _renamed  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An empty module, which remembers the trace that it was created in."""
        module = super().__new__(cls)
        if state.innermost is not None:
            module.__dict__["_home"] = (state.innermost, False)
        return module

    def __setattr__(self, name: str, value: Any) -> None:
        _assign(self, name, value)

    def __delattr__(self, name: str) -> None:
        kinds = _unsettled(self)
        if name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: there is no attribute {name!r} to delete.")
        kinds.pop(name, None)
        del self.__dict__[name]

    def __getattr__(self, name: str) -> Any:
        if name == "training":
            return True
        if name.startswith("__"):
            raise AttributeError(name)
        close = difflib.get_close_matches(name, [n for n in dir(self) if not n.startswith("_")], 1)
        raise AttributeError(
            f"{type(self).__name__} has no attribute {name!r}." + (f"\n  try: {close[0]}" if close else "")
        )

    def __dir__(self) -> list[str]:
        return [n for n in super().__dir__() if n not in _HIDDEN]

    def train(self, mode: bool = True) -> Self:
        """A copy in training mode: dropout is active, and batch norm uses batch statistics. The arrays are shared."""
        return _with_training(self, bool(mode))

    def eval(self) -> Self:
        """A copy in evaluation mode, for inference. The arrays are shared.

        >>> from atled import nn
        >>> nn.Dropout(0.5).eval().training
        False
        """
        return _with_training(self, False)

    def __copy__(self) -> Self:
        return tree.map(lambda x: x, self)

    def __getstate__(self) -> dict[str, Any]:
        kinds = dict(settled(self).kinds)
        return {**{n: v for n, v in self.__dict__.items() if n not in _HIDDEN}, "_kinds": kinds}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __repr__(self) -> str:
        from atled.nn.module_repr import text

        return text(self, _form_of)

    def _repr_html_(self) -> str:
        from atled.nn.module_repr import html  # for notebooks

        return html(self, _form_of)


_HIDDEN = ("_form", "_home", "_kinds")


# -- assigning --------------------------------------------------------------------------------------------------------


def _kinds_of(module: Any) -> dict[str, Any]:
    values = module.__dict__
    form = values.get("_form")
    return form.kinds if form is not None else values.setdefault("_kinds", {})


def _unsettled(module: Any) -> dict[str, Any]:
    """Discard the `ModuleDef` of a module; returns its kinds, to modify."""
    values = module.__dict__
    with lock:
        form = values.pop("_form", None)
        if form is not None:
            values["_kinds"] = dict(form.kinds)
        return values.setdefault("_kinds", {})


def _assign(module: Any, name: str, value: Any) -> None:
    own = getattr(type(module), name, None)
    if hasattr(type(own), "__set__"):  # a property with its own setter
        object.__setattr__(module, name, value)
        return
    values, kinds = module.__dict__, _kinds_of(module)
    if isinstance(value, Kind):
        _may_assign(module, name, value.value)
        if kinds.get(name) is not type(value):
            _unsettled(module)[name] = type(value)
        values[name] = value.value
    elif name in kinds and not isinstance(value, Module):
        value = None if value is None else _like(values.get(name), value)
        _may_assign(module, name, value)
        values[name] = value
    else:
        if isinstance(value, (Array, np.ndarray)):
            raise _undeclared(module, name)
        _may_assign(module, name, value)
        form = values.get("_form")
        if form is not None and name in form.statics and _is_fixed(value) and key_of(values.get(name)) == key_of(value):
            return  # nothing changes
        _unsettled(module).pop(name, None)
        values[name] = value
    home = values.get("_home")
    if home is not None and home[1] and home[0].is_open:
        if home[0].assigned is None:
            home[0].assigned = []
        home[0].assigned.append(functools.partial(_told, module, name))


def _like(old: Any, value: Any) -> Any:
    """The value as declared arrays; a number takes the dtype of the old array, if that is of its kind or wider."""
    if isinstance(old, Array) and isinstance(value, (int, float, complex)):
        kinds = "biufc"
        if kinds.index(type_of(value).kind) <= kinds.index(type_of(old).kind if type_of(old).kind != "k" else "b"):
            return to_device(np.asarray(value, old.dtype), type_of(old).strong().with_shape(()))
    return tree.map(as_declared, value)


def _undeclared(module: Any, where: str) -> TypeError:
    close = difflib.get_close_matches(where, list(_kinds_of(module)), 1, 0.75)
    hint = f"{close[0]}, which is declared; or " if close else ""
    return TypeError(
        errors.explained(
            f"{type(module).__name__}.{where}: arrays must be declared.",
            f"{hint}nn.Param(x) if it is trained, nn.Buffer(x) if it is not.",
        )
    )


def _may_assign(module: Any, name: str, value: Any) -> None:
    """Raise if a tracer is assigned to a module that was created outside of the tracer's transform."""
    if state.innermost is None:
        return
    home: Interpreter | None = module.__dict__.get("_home", (None,))[0]
    level = home.level if home is not None and home.is_open else 0
    for x in tree.leaves(value):
        if isinstance(x, Tracer) and x.interpreter.level > level:
            raise errors.UnexpectedTracerError(
                errors.explained(
                    f"{type(module).__name__}.{name}: the module comes from outside of {x.interpreter.transform}, and "
                    f"cannot keep a value that is traced there; got {x.type}.",
                    "pass the module as an argument and return it.",
                )
            )


def _told(module: Any, name: str, function: str, results: Any) -> bool:
    """Whether an assignment is lost, because the function returns neither the value nor the module; warns if it is."""
    mine = {id(x) for x in tree.leaves(module.__dict__.get(name))}
    leaves, structure = tree.flatten(results)
    if any([id(x) in mine for x in leaves]) or _has(structure, type(module)):
        return False
    errors.warn(
        f"{type(module).__name__}.{name}: assigned in {function}, which does not return the model, so it is lost.",
        instead="train.gradients(loss), return the model with has_aux=True, or model.eval().",
    )
    return True


def _has(structure: tree.TreeDef, cls: type) -> bool:
    return structure.kind is cls or any([_has(s, cls) for s in structure.children])


# -- construction -----------------------------------------------------------------------------------------------------


def _renamed(self: Any, *args: Any, **kwargs: Any) -> Any:
    name = type(self).__name__
    raise TypeError(
        errors.explained(f"{name}: a module is called by its __call__; got forward.", "def __call__(self, …) instead.")
    )


def _watched(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that finalizes the module; the outermost one checks for arrays that occur twice."""

    @functools.wraps(init)
    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        _building.depth += 1
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # raised by the call
                raise _misfit(self, init, error) from None
            raise
        finally:
            _building.depth -= 1
        if type(self).__init__ is watched:  # not a base-class constructor called by a subclass
            settled(self)
            if not _building.depth:
                _refuse_ties(self)

    return watched


def _misfit(module: Any, init: Any, error: TypeError) -> TypeError:
    """The message for unexpected constructor arguments."""
    name = type(module).__name__
    problem = str(error).partition("__init__() ")[2] or str(error)
    bare = [p.replace(annotation=p.empty, default=p.empty) for p in inspect.signature(init).parameters.values()]
    return TypeError(errors.explained(f"{name}: {problem}.", f"{name}{inspect.Signature(bare[1:])}."))


def settled(module: Any) -> ModuleDef:
    """The `ModuleDef` of a module, created if it has none."""
    form = module.__dict__.get("_form")
    return form if form is not None else _settle(module)


def _form_of(x: Any) -> ModuleDef | None:
    return settled(x) if isinstance(x, Module) else None


def _settle(module: Any) -> ModuleDef:
    values, cls = module.__dict__, type(module)
    with lock:  # several threads may do this for a module that was just loaded
        if "_form" in values:
            return values["_form"]
        kinds = dict(values.get("_kinds", ()))
        order: list[str] = []
        mixed: list[str] = []
        statics: dict[str, Any] = {}
        for name, value in list(values.items()):
            if name in _HIDDEN or isinstance(getattr(cls, name, None), functools.cached_property):
                continue
            order.append(name)
            if name in kinds:
                continue
            sort = _Sorted(module, name)
            resolved = sort.resolved(value, "")
            if resolved is not value:
                values[name] = resolved
            if sort.kinds:
                kinds[name] = sort.kind()
            if not (sort.has_children or not _is_fixed(resolved)):
                statics[name] = resolved
            elif name not in kinds and not isinstance(resolved, Module):
                mixed.append(name)
        form = values["_form"] = make_form(cls, order, kinds, statics, mixed)
        values.pop("_kinds", None)
    return form


class _Sorted:
    """Sorts the values in an undeclared attribute into declared arrays, modules and static values."""

    def __init__(self, module: Any, name: str) -> None:
        self.module, self.name = module, name
        self.kinds: set[Any] = set()  # kinds of arrays declared in a list
        self.has_children = self.has_modules = False
        self.is_pure = True  # no static values so far

    def kind(self) -> Any:
        """The common kind of the attribute's arrays; raises if there are several kinds, modules or static values."""
        if len(self.kinds) == 1 and self.is_pure and not self.has_modules:
            return next(iter(self.kinds))
        got = [k.__name__ for k in self.kinds] + (["something else"] if self.has_modules or not self.is_pure else [])
        raise TypeError(
            errors.explained(
                f"{type(self.module).__name__}.{self.name}: the arrays of one list or dict must have the same "
                f"kind; got "
                f"{' and '.join(sorted(got))}.",
                "a list for each kind.",
            )
        )

    def resolved(self, value: Any, path: str) -> Any:
        """The value with bare arrays in place of declarations; lists and dicts are modified in place."""
        if isinstance(value, Kind):
            self.kinds.add(type(value))
            self.has_children = True
            return value.value
        if isinstance(value, Module):
            self.has_children = self.has_modules = True
        elif type(value) is list:
            for i, v in enumerate(value):
                value[i] = self.resolved(v, f"{path}[{i}]")
        elif type(value) is dict:
            items = {k: self.resolved(v, f"{path}[{k!r}]") for k, v in value.items()}
            if self.has_children:  # in tree order, so that iteration is the same under every transform
                items = dict(sorted(items.items()))
            value.clear()
            value.update(items)
        elif type(value) is tuple:
            elements = tuple([self.resolved(v, f"{path}[{i}]") for i, v in enumerate(value)])
            return elements if any([a is not b for a, b in zip(elements, value, strict=True)]) else value
        elif isinstance(value, (Array, np.ndarray)):
            raise _undeclared(self.module, self.name + path)
        else:
            self.is_pure = False
            if hasattr(type(value), "not_an_argument"):
                raise TypeError(
                    errors.explained(
                        f"{type(self.module).__name__}.{self.name}{path}: {describe(value)} belongs to one function "
                        "call and cannot be stored in a module.", type(value).not_an_argument,
                    )
                )  # fmt: skip
            hidden = _hidden(value)
            if isinstance(hidden, Module):
                raise TypeError(
                    errors.explained(
                        f"{type(self.module).__name__}.{self.name}{path}: {describe(value)} holds a "
                        f"{type(hidden).__name__} which is not a part of the pytree: its arrays would be "
                        f"neither trained nor updated.",
                        "the module itself, in a list, tuple or dict; for a method, its name: getattr(self, name)(x).",
                    )
                )
            if hidden is not None:
                raise _undeclared(self.module, self.name + path)
        return value


def _hidden(value: Any, depth: int = 0) -> Any:
    """A module or an array inside a static value, or None; in closures of functions, only modules count."""
    if isinstance(value, (Module, Array)):
        return value
    if depth > 3:
        return None
    parts: Iterable[Any] = ()
    if isinstance(value, types.MethodType):
        parts = (value.__self__,)
    elif isinstance(value, functools.partial):
        parts = (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.FunctionType):
        cells = [c.cell_contents for c in value.__closure__ or () if _is_full(c)]
        parts = [c for c in cells if not isinstance(c, Array)]
    elif isinstance(value, (set, frozenset, list, tuple, collections.deque)):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    elif not isinstance(value, (type, types.ModuleType, enum.Enum, np.generic, np.dtype)):
        parts = list(getattr(value, "__dict__", {}).values())
    return next((x for x in [_hidden(p, depth + 1) for p in parts] if x is not None), None)


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


_FIXED = {int, float, complex, bool, str, bytes, type(None), type(...), range, slice}


def _is_fixed(value: Any) -> bool:
    """Whether a static value is immutable; lists, dicts, sets and dataclasses are compared on every call."""
    if type(value) in (tuple, frozenset):
        return all([_is_fixed(v) for v in value])
    if isinstance(value, functools.partial):
        return all([_is_fixed(v) for v in (value.func, *value.args, *value.keywords.values())])
    if getattr(getattr(type(value), "__dataclass_params__", None), "frozen", False) and hasattr(value, "__dict__"):
        return all([_is_fixed(v) for v in value.__dict__.values()])
    return type(value) in _FIXED or isinstance(
        value, (*FUNCTIONS, types.MethodType, np.dtype, np.generic, np.ufunc, enum.Enum)
    )


def _taken_apart(module: Any) -> tuple[list[Any], ModuleDef]:
    form = settled(module)
    values = module.__dict__
    children = [values[n] for n in form.names]
    if form.mixed:
        children = [_wrapped(module, n, c) if n in form.mixed else c for n, c in zip(form.names, children, strict=True)]
    return children, form


def _wrapped(module: Any, path: str, value: Any) -> Any:
    """A container with its static values wrapped; a container of only static values is itself static."""
    if isinstance(value, Module) or value is None:
        return value
    if isinstance(value, (Array, Kind)):  # added after construction
        raise _undeclared(module, path)
    if type(value) in (list, tuple) and holds_children(value):
        return type(value)([_wrapped(module, f"{path}[{i}]", v) for i, v in enumerate(value)])
    if type(value) is dict and holds_children(value):
        return {k: _wrapped(module, f"{path}[{k!r}]", v) for k, v in value.items()}
    return Static(value)


def holds_children(value: Any) -> bool:
    """Whether a value is an array or a module, or a container with one: part of the tree, not a static value."""
    if isinstance(value, (Module, Array, Kind)):
        return True
    parts = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return any([holds_children(v) for v in parts])


def _refuse_ties(module: Any) -> None:
    """Raise an error for an array or a module that occurs twice: in a pytree it would become two copies."""
    seen: dict[int, str] = {}
    for path, x in walk(module):
        if isinstance(x, (Module, Array)) and id(x) in seen:
            what = "array" if isinstance(x, Array) else "module"
            raise ValueError(
                errors.explained(
                    f"{type(module).__name__}: {seen[id(x)]} and {path} are the same {what}; in a pytree they would "
                    "become two copies.",
                    "let one module own it, and pass or call that module: self.tokens.attend(x), or f(self.tokens, x).",
                )
            )
        seen[id(x)] = path


# -- walking ----------------------------------------------------------------------------------------------------------


def walk(module: Any) -> Iterator[tuple[str, Any]]:
    """Paths such as `blocks/0/weight` with their modules and leaves, outermost first."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), module)]
    while waiting:
        path, x = waiting.pop()
        node = tree_registry.node_of(type(x))
        if node is None or isinstance(x, Module):
            yield "/".join(path), x
        if node is not None:
            children = list(node.flatten(x)[0])
            keys = node.keys(x, len(children))
            waiting.extend([((*path, str(k[0])), c) for k, c in zip(keys, children, strict=True)][::-1])


def changed(module: Any, change: Callable[[str, Any], Any]) -> Any:
    """A copy in which each module is replaced by `change(path, copy)`, innermost first; arrays are shared."""

    def of(x: Any, path: tuple[str, ...]) -> Any:
        node = tree_registry.node_of(type(x))
        if node is None:
            return x
        children, meta = node.flatten(x)
        children = list(children)
        keys = node.keys(x, len(children))
        rebuilt = node.unflatten(meta, [of(c, (*path, str(k[0]))) for k, c in zip(keys, children, strict=True)])
        return change("/".join(path), rebuilt) if isinstance(x, Module) else rebuilt

    return of(module, ())


def _with_training(module: Any, training: bool) -> Any:
    def change(path: str, m: Any) -> Any:
        if m.training is not training:
            _unsettled(m)
            if training:
                m.__dict__.pop("training", None)
            else:
                m.__dict__["training"] = False
            settled(m)
        return m

    return changed(module, change)


def with_kinds(module: Any, kinds: dict[str, Any]) -> Any:
    """Change the declared kinds of some arrays, in place."""
    if kinds:
        _unsettled(module).update(kinds)
        settled(module)
    return module


def with_statics(module: Any, statics: dict[str, Any]) -> Any:
    """Change static values of a module, in place."""
    _unsettled(module)
    module.__dict__.update(statics)
    settled(module)
    return module


def retyped(module: Any, cls: Any, name: str, value: Any) -> Any:
    """A new instance of the subclass `cls`, with the attributes of the module and one more static value."""
    instance = cls.__new__(cls)
    instance.__dict__.update({**module.__getstate__(), name: value})
    return instance
