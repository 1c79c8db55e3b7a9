"""Modules of the second face that are elsewhere: importing `atled.jax.numpy` gives the module `atled.numpy` itself."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

# Modules of atled that JAX has under the same name.
SHARED = (
    "debug", "distributed", "export", "image", "lax", "nn", "numpy", "ops", "profiler", "random", "scipy", "sharding",
    "test_util", "tree", "typing",
)  # fmt: skip
PLACES = {f"atled.jax.{name}": f"atled.{name}" for name in SHARED} | {
    "atled.jax.core": "atled.jax.extend.core",
    "atled.jax.lib": "atled.jax.extend.backend",
}
_FACE = os.path.dirname(__file__)


def _has_own(name: str) -> bool:
    """Whether a file of this package is the module."""
    path = os.path.join(_FACE, *name.split(".")[2:])
    return os.path.exists(f"{path}.py") or os.path.exists(os.path.join(path, "__init__.py"))


def place(name: str) -> str | None:
    """The module that an import of a name in `atled.jax` gives, if it is another one."""
    if name in PLACES and not _has_own(name):
        return PLACES[name]
    parent, _, last = name.rpartition(".")
    if not parent or _has_own(name):
        return None
    above = PLACES.get(parent) or place(parent)
    return f"{above}.{last}" if above else None


class Loader(importlib.abc.Loader):
    """Gives a module that exists already."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: Any) -> ModuleType:
        """A module with the attributes of the real one: a thread that imports meanwhile may get hold of it."""
        return _Standing(spec.name, self.real)

    def exec_module(self, module: ModuleType) -> None:
        """Replace it by the real one."""
        sys.modules[module.__name__] = importlib.import_module(self.real)


class _Standing(ModuleType):
    def __init__(self, name: str, real: str) -> None:
        super().__init__(name)
        self.__dict__["_real"] = real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__",):  # asked by the import system
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__dict__["_real"]), name)


class Finder(importlib.abc.MetaPathFinder):
    """An import finder for the modules of `atled.jax` that are elsewhere."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """The spec of such a module, or None."""
        if not fullname.startswith("atled.jax."):
            return None
        real = place(fullname)
        return spec_of(fullname, real) if real else None


def spec_of(name: str, real: str) -> Any:
    """The spec of a module that is another one, or None if that does not exist."""
    try:
        found = importlib.util.find_spec(real)
    except ModuleNotFoundError:
        found = None
    return None if found is None else importlib.machinery.ModuleSpec(name, Loader(real), is_package=True)


def install() -> None:
    """Let `import atled.jax.numpy` work; it is first, since Python's own finder would load submodules a second time."""
    if not any([isinstance(finder, Finder) for finder in sys.meta_path]):
        sys.meta_path.insert(0, Finder())
