"""The `ModuleDef` of a module: its class, names of children, kinds and static values.

Equal `ModuleDef`s are one object, so comparing two structures is one identity check, and generated launch code flattens
modules without loops.
"""

from __future__ import annotations

import reprlib
import threading
import types
import weakref
from collections.abc import Sequence
from typing import Any

from atled.core import tree, tree_registry
from atled.core.cache_keys import Interned, exact
from atled.core.trace import state
from atled.core.tree_codegen import Code


class Static:
    """Wraps a static value in a list or dict while it is flattened: a node without leaves."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _StaticCode(tree_registry.NodeCode):
    """Code generation for `Static`: generated code compares static values without wrapping them."""

    def match(self, code: Code, structure: tree.TreeDef, value: str, indent: str) -> list[str]:
        if structure.meta is None or type(structure.meta) in FUNCTIONS:
            code.lines.append(f"{indent}if {value} is not {code.name(structure.meta)}: raise Mismatch")
        else:
            code.lines.append(f"{indent}if exact({value}) != {code.name(structure.key)}: raise Mismatch")
        return []

    def build(self, code: Code, structure: tree.TreeDef, parts: list[str]) -> str:
        if structure.changes:
            return f"{code.name(structure.data)}()"
        return code.name(structure.meta)

    def difference(self, before: tree.TreeDef, now: tree.TreeDef) -> tuple[str, str, str]:
        return "", reprlib.repr(before.meta), reprlib.repr(now.meta)


FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type)
tree_registry.register_node(Static, lambda s: ((), s.value), lambda value, _: Static(value), code=_StaticCode())


class ModuleDef(Interned):
    """Everything about a module except its children; equal instances are one object."""

    __slots__ = ("__weakref__", "cls", "keys", "kinds", "mixed", "names", "order", "start", "statics")

    def __init__(
        self, cls: type, order: tuple[str, ...], kinds: dict[str, Any], statics: dict[str, Any], mixed: tuple[str, ...]
    ) -> None:
        self.cls = cls
        self.order = order  # attribute names in order of first assignment
        self.names = names = tuple([n for n in order if n not in statics])  # names of the children
        self.kinds = kinds  # kinds of the declared children
        self.statics = statics
        self.mixed = mixed  # children that are neither declared nor modules: lists, dicts, objects
        self.keys = [tree_registry.FieldKey(n, kinds[n]) if n in kinds else tree_registry.GetAttrKey(n) for n in names]
        self.start = {**{n: statics.get(n) for n in order}, "_form": self}  # a module's `__dict__` without its children

    def build(self, children: Sequence[Any]) -> Any:
        """A module with this `ModuleDef` and these children."""
        module = object.__new__(self.cls)
        values = module.__dict__
        values.update(self.start)
        values.update(zip(self.names, children, strict=True))
        for name in self.mixed:
            values[name] = unwrapped(values[name])
        if state.innermost is not None:
            values["_home"] = (state.innermost, state.is_receiving)
        return module

    def __reduce__(self) -> Any:
        return make_form, (self.cls, self.order, self.kinds, self.statics, self.mixed)


_forms: weakref.WeakValueDictionary[Any, ModuleDef] = weakref.WeakValueDictionary()
lock = threading.RLock()


def make_form(cls: type, order: Any, kinds: dict[str, Any], statics: dict[str, Any], mixed: Any) -> ModuleDef:
    """The `ModuleDef` of these parts; equal parts give the same object."""
    parts = sorted([(n, key_of(v)) for n, v in statics.items()], key=lambda item: item[0])
    declared = sorted(kinds.items(), key=lambda item: item[0])
    key = (cls, tuple(order), tuple(declared), tuple(parts), tuple(mixed))
    with lock:
        form = _forms.get(key)
        if form is None:
            form = _forms[key] = ModuleDef(cls, tuple(order), dict(kinds), dict(statics), tuple(mixed))
    return form


def key_of(value: Any) -> Any:
    """A key that is equal for equal static values; also compares fields that their class excludes from comparison."""
    if type(value) is tuple:
        return (tuple, *[key_of(v) for v in value])
    if hasattr(type(value), "__dataclass_fields__") and hasattr(value, "__dict__"):
        return (type(value), *[(n, key_of(v)) for n, v in value.__dict__.items()])
    return exact(value)


class _ModuleCode(tree_registry.NodeCode):
    def match(self, code: Code, structure: tree.TreeDef, value: str, indent: str) -> list[str]:
        values = code.name()
        code.lines.append(f"{indent}{values} = {value}.__dict__")
        code.lines.append(f"{indent}if {values}['_form'] is not {code.name(structure.meta)}: raise Mismatch")
        return [f"{values}[{n!r}]" for n in structure.meta.names]

    def build(self, code: Code, structure: tree.TreeDef, parts: list[str]) -> str:
        form, module, values = structure.meta, code.name(), code.name()
        stores = [f"{values}[{n!r}] = {p}" for n, p in zip(form.names, parts, strict=True)]
        code.lines.append(f" {'; '.join([f'{values} = {code.name(form.start.copy)}()', *stores])}")
        code.lines.append(f" {module} = {code.name(object.__new__)}({code.name(form.cls)})")
        code.lines.append(f" {code.name(object.__setattr__)}({module}, '__dict__', {values})")
        return module

    def difference(self, before: tree.TreeDef, now: tree.TreeDef) -> tuple[str, str, str]:
        a, b = before.meta, now.meta
        for name in {**a.statics, **b.statics}:
            if _said(a, name) != _said(b, name) or key_of(a.statics.get(name)) != key_of(b.statics.get(name)):
                return f".{name}", _said(a, name), _said(b, name)
        for name in {**a.kinds, **b.kinds}:
            if a.kinds.get(name) is not b.kinds.get(name):
                kinds = [f"declared as {f.kinds[name].__name__}" if name in f.kinds else "undeclared" for f in (a, b)]
                return f".{name}", kinds[0], kinds[1]
        return "", f"a {a.cls.__name__} with {', '.join(a.names)}", f"one with {', '.join(b.names)}"


def _said(form: ModuleDef, name: str) -> str:
    """The value of an attribute as text, for reporting how two modules differ."""
    if name in form.statics:
        return reprlib.repr(form.statics[name])
    return "an array or a module" if name in form.names else "True" if name == "training" else "not there"


MODULE_CODE = _ModuleCode()


def unwrapped(value: Any) -> Any:
    """A list or dict with its wrapped static values unwrapped."""
    if isinstance(value, Static):
        return value.value
    if type(value) in (list, tuple):
        return type(value)([unwrapped(v) for v in value])
    if type(value) is dict:
        return {k: unwrapped(v) for k, v in value.items()}
    return value
