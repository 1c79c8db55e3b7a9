"""Makes `import jax` return atled, in processes that opt in.

After `import atled.as_jax`, or under `python -m atled.as_jax script.py`, programs and libraries that were written for
JAX import atled under the name `jax`; with the command, so do child processes. `jax.__version__` is the version whose
API is emulated.

64-bit NumPy arrays and scalars become 32 bits wide, as that code expects, unless `jax_enable_x64` is on; code written
for atled keeps the width of its arrays.

Set `ATLED_AS_JAX_REPORT=1` to print at exit which requested names are missing.
"""

from __future__ import annotations

import atexit
import collections
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from atled.core import config

VERSION = "0.10.2"  # of JAX, whose names are offered
VERSION_INFO = (0, 10, 2)
# Modules that are somewhere else here, or only here.
PLACES = {
    "jax": "atled",
    "jax.core": "atled.extend.core",
    "jax.config": "atled.core.config",
    "jax._src": "atled.as_jax.src",
    "jax.api_util": "atled.as_jax.api_util",
    "jax.experimental.array_serialization": "atled.as_jax.remote",
    "jax.experimental.array_serialization.serialization": "atled.as_jax.remote",
    "jax.experimental.colocated_python": "atled.as_jax.remote",
    "jax.experimental.colocated_python.func": "atled.as_jax.remote",
    "jax.experimental.colocated_python.serialization": "atled.as_jax.remote",
    "jax.experimental.hijax": "atled.as_jax.hijax",
    "jax.extend.ifrt_programs": "atled.as_jax.remote",
    "jax.lib": "atled.extend.backend",
    "jax.version": "atled.as_jax.version",
}
missing: collections.Counter[str] = collections.Counter()  # requested names that are missing


class Alias(ModuleType):
    """A module under JAX's name with the contents of atled's."""

    def __init__(self, name: str, real: ModuleType) -> None:
        super().__init__(name, real.__doc__)
        self.__dict__["_real"] = real
        if hasattr(real, "__all__"):
            self.__dict__["__all__"] = list(real.__all__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__version_info__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if self.__name__ == "jax" and name in ("__version__", "__version_info__"):
            return VERSION if name == "__version__" else VERSION_INFO
        full = f"{self.__name__}.{name}"
        if full in PLACES and full != "jax.config":
            return importlib.import_module(full)
        try:
            value = getattr(self._real, name)
        except AttributeError:
            if importlib.util.find_spec(full) is not None:  # which notes what is missing
                return importlib.import_module(full)
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} in atled") from None
        if isinstance(value, ModuleType) and value.__name__.startswith("atled") and full not in ("jax.config",):
            return importlib.import_module(full) if _place(full) == value.__name__ else value
        if self._real is not config and name in vars(self._real):  # not one that is computed for each access
            self.__dict__[name] = value  # the next time, Python finds it
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._real)})


def _place(name: str) -> str:
    """The atled module that replaces a module of JAX."""
    if name in PLACES:
        return PLACES[name]
    for known in sorted(PLACES, key=len, reverse=True):
        if name.startswith(f"{known}."):
            return PLACES[known] + name[len(known) :]
    return name


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import finder for `jax` and its submodules."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """The spec of a module of `jax` that atled has, or None."""
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        place = _place(fullname)
        try:
            real = importlib.util.find_spec(place)
        except ModuleNotFoundError:
            real = None
        if real is None:
            missing[fullname] += 1
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        spec.loader_state = place
        return spec

    def create_module(self, spec: Any) -> ModuleType:
        """A module with the contents of atled's."""
        return Alias(spec.name, importlib.import_module(spec.loader_state))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: `create_module` returns a complete module."""


class Distributions(importlib.metadata.DistributionFinder):
    """A metadata finder that answers `importlib.metadata.version("jax")`."""

    def find_spec(self, *_: Any, **__: Any) -> None:
        """None: this finder finds distributions, not modules."""

    def find_distributions(self, context: Any = None) -> Any:
        """A distribution of JAX, which need not be installed."""
        name = getattr(context, "name", None)
        return [_Distribution()] if name == "jax" else []


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: Any) -> str | None:
        return f"Metadata-Version: 2.1\nName: jax\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


def install() -> None:
    """Make `import jax` return atled, in this process and its children."""
    loaded = sys.modules.get("jax")
    if isinstance(loaded, Alias):
        return
    if loaded is not None:
        raise ImportError(
            "atled.as_jax: the real jax is already imported."
            "\n  try: import atled.as_jax before anything that imports jax, or python -m atled.as_jax script.py."
        )
    sys.meta_path.insert(0, Finder())
    sys.meta_path.insert(0, Distributions())
    config.update("narrow", True)
    os.environ["ATLED_AS_JAX"] = "1"
    if os.environ.get("ATLED_AS_JAX_REPORT", "") not in ("", "0"):
        atexit.register(report)


def report() -> None:
    """Print requested names that are missing, the most frequent first."""
    if missing:
        print("atled.as_jax: these names were asked for and are missing:", file=sys.stderr)
        for name, count in missing.most_common():
            print(f"  {name} ({count})", file=sys.stderr)


install()
