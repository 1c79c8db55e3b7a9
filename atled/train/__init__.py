"""Training: the training state, gradients of a loss, one step; `fit`, the training loop, and its parts."""

from atled.core import lazy_imports

_AT_ONCE = {
    "state": "gradients State",
    "train_step": "step",
}
_NAMES = {
    "atled.engine.progress": "Progress progress",
    "learning_curves": "curves",
    "evaluation": "evaluate Evaluation",
    "tensorboard": "TensorBoard",
    "fitting_api": "fit",
    "logs": "JSONL Logger records",
    "training_loop": "Run",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, "", _AT_ONCE)
