# Written by scripts/stubs.
from atled.engine.progress import Progress as Progress
from atled.engine.progress import progress as progress
from atled.train.evaluation import Evaluation as Evaluation
from atled.train.evaluation import evaluate as evaluate
from atled.train.fitting_api import fit as fit
from atled.train.learning_curves import curves as curves
from atled.train.logs import JSONL as JSONL
from atled.train.logs import Logger as Logger
from atled.train.logs import records as records
from atled.train.state import State as State
from atled.train.state import gradients as gradients
from atled.train.tensorboard import TensorBoard as TensorBoard
from atled.train.train_step import step as step
from atled.train.training_loop import Run as Run

__all__ = [
    "Evaluation",
    "JSONL",
    "Logger",
    "Progress",
    "Run",
    "State",
    "TensorBoard",
    "curves",
    "evaluate",
    "fit",
    "gradients",
    "progress",
    "records",
    "step",
]
