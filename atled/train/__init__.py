"""Training: the training state, gradients of a loss, one step; `fit`, the training loop, and its parts."""

from atled.core import lazy

_AT_ONCE = {
    "state": "gradients State",
    "stepping": "step",
}
_NAMES = {
    "atled.engine.progress": "Progress progress",
    "drawing": "curves",
    "evaluating": "evaluate",
    "events": "TensorBoard",
    "fitting": "fit",
    "logs": "JSONL Logger records",
    "running": "Run",
}
__getattr__, __dir__, __all__ = lazy.public(__name__, _NAMES, "", _AT_ONCE)
