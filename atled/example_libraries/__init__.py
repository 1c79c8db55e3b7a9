"""Two small libraries that JAX's examples use: networks built from functions (`stax`), and optimizers.

New programs should use `atled.nn` and `atled.optim`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atled.example_libraries import optimizers, stax

_LAZY = ("optimizers", "stax")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"atled.example_libraries.{name}")
    raise AttributeError(f"module 'atled.example_libraries' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_LAZY]


__all__ = ["optimizers", "stax"]
