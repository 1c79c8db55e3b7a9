"""Packages that only some tokenizers need: the extra `text`."""

from __future__ import annotations

import importlib
from typing import Any

from atled.core import errors


def package(name: str, where: str, what: str) -> Any:
    """A package of the extra. If it is not installed, the error says what needs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        says = f"{where}: {what} the package {name.split('.')[0]}, which is not installed."
        raise ImportError(errors.explained(says, 'pip install "atled[text]".')) from None
