"""Import aliases of modules that `atled.jax` shares with `atled`: `import atled.jax.numpy` imports `atled.numpy`."""

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
    """Whether this package has a file for the module."""
    path = os.path.join(_FACE, *name.split(".")[2:])
    return os.path.exists(f"{path}.py") or os.path.exists(os.path.join(path, "__init__.py"))


def place(name: str) -> str | None:
    """The real name of a module of `atled.jax` that is an alias, else None."""
    if name in PLACES and not _has_own(name):
        return PLACES[name]
    parent, _, last = name.rpartition(".")
    if not parent or _has_own(name):
        return None
    above = PLACES.get(parent) or place(parent)
    return f"{above}.{last}" if above else None


class Loader(importlib.abc.Loader):
    """A loader that replaces the imported module with the module named `real`."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: Any) -> ModuleType:
        """A placeholder that forwards to the real module, since other threads may see it during the import."""
        return _Standing(spec.name, self.real)

    def exec_module(self, module: ModuleType) -> None:
        """Replace the placeholder in `sys.modules` with the real module."""
        sys.modules[module.__name__] = importlib.import_module(self.real)


class _Standing(ModuleType):
    def __init__(self, name: str, real: str) -> None:
        super().__init__(name)
        self.__dict__["_real"] = real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__",):  # read by the import system
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__dict__["_real"]), name)


class Finder(importlib.abc.MetaPathFinder):
    """An import finder for the modules of `atled.jax` that are aliases."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """The spec of a module that is an alias, or None."""
        if not fullname.startswith("atled.jax."):
            return None
        real = place(fullname)
        return spec_of(fullname, real) if real else None


def spec_of(name: str, real: str) -> Any:
    """The spec that makes the module `name` an alias of the module `real`; None if `real` does not exist."""
    try:
        found = importlib.util.find_spec(real)
    except ModuleNotFoundError:
        found = None
    return None if found is None else importlib.machinery.ModuleSpec(name, Loader(real), is_package=True)


def install() -> None:
    """Put the finder first in `sys.meta_path`, because Python's own finder would load submodules a second time."""
    if not any([isinstance(finder, Finder) for finder in sys.meta_path]):
        sys.meta_path.insert(0, Finder())
