"""Makes `import jax` return atled, in processes that opt in.

After `import atled.jax.as_jax`, or under `python -m atled.jax.as_jax script.py`, programs and libraries that were
written for JAX import `atled.jax` under the name `jax`. The command also affects child processes. `jax.__version__` is
the version whose API is emulated.

64-bit NumPy arrays and scalars become 32 bits wide, as code for JAX expects, unless `jax_enable_x64` is on; without
`as_jax`, arrays keep their width.

Set `ATLED_AS_JAX_REPORT=1` to print at exit which requested names are missing.
"""

from __future__ import annotations

import atexit
import collections
import importlib.abc
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from typing import Any

from atled import jax
from atled.core import lazy_imports, settings
from atled.jax.finder import spec_of

VERSION = jax.__version__
missing: collections.Counter[str] = collections.Counter()  # requested names that are missing


class Finder(importlib.abc.MetaPathFinder):
    """An import finder for `jax` and its submodules, which are those of `atled.jax`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """The spec of a module of `jax` that atled has, or None."""
        if fullname.partition(".")[0] != "jax":
            return None
        spec = spec_of(fullname, f"atled.{fullname}")
        if spec is None:
            missing[fullname] += 1
        return spec


def _note(name: str) -> None:
    missing["jax." + name.removeprefix("atled.").removeprefix("jax.")] += 1


class Distributions(importlib.metadata.DistributionFinder):
    """A metadata finder: `importlib.metadata.version("jax")` returns the emulated version."""

    def find_spec(self, *_: Any, **__: Any) -> None:
        """None: this finder finds distributions, not modules."""

    def find_distributions(self, context: Any = None) -> Any:
        """A distribution named `jax`, whether or not JAX is installed; none for other names."""
        name = getattr(context, "name", None)
        return [_Distribution()] if name == "jax" else []


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: Any) -> str | None:
        return f"Metadata-Version: 2.1\nName: jax\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


def install() -> None:
    """Make `import jax` return atled in this process."""
    loaded = sys.modules.get("jax")
    if loaded is jax:
        return
    if loaded is not None:
        raise ImportError(
            "atled.jax.as_jax: the real jax is already imported."
            "\n  try: import it before anything that imports jax, or python -m atled.jax.as_jax script.py."
        )
    sys.meta_path.insert(0, Finder())
    sys.meta_path.insert(0, Distributions())
    lazy_imports.on_missing.append(_note)
    settings.update("narrow", True)
    os.environ["ATLED_AS_JAX"] = "1"
    if os.environ.get("ATLED_AS_JAX_REPORT", "") not in ("", "0"):
        atexit.register(report)


def report() -> None:
    """Print requested names that are missing, the most frequent first."""
    if missing:
        print("atled.jax.as_jax: these requested names are missing:", file=sys.stderr)
        for name, count in missing.most_common():
            print(f"  {name} ({count})", file=sys.stderr)


install()
