"""Training: the training state, gradients of a loss, one step; `fit`, the training loop, and its parts."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from atled.train.state import State, gradients
from atled.train.stepping import step

if TYPE_CHECKING:
    from atled.train.bars import Progress, progress
    from atled.train.drawing import curves
    from atled.train.evaluating import evaluate
    from atled.train.events import TensorBoard
    from atled.train.fitting import fit
    from atled.train.logs import JSONL, Logger, records
    from atled.train.running import Run

_FILES = {
    "curves": "drawing", "evaluate": "evaluating", "TensorBoard": "events", "Run": "running", "fit": "fitting",
    "JSONL": "logs", "Logger": "logs", "records": "logs", "Progress": "bars", "progress": "bars",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _FILES:
        attribute = globals()[name] = getattr(importlib.import_module(f"atled.train.{_FILES[name]}"), name)
        return attribute
    raise AttributeError(f"module 'atled.train' has no attribute {name!r}")


__all__ = [
    "JSONL", "Logger", "Progress", "Run", "State", "TensorBoard", "curves", "evaluate", "fit", "gradients", "progress",
    "records", "step",
]  # fmt: skip
