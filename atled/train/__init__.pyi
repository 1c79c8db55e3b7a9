# Written by scripts/stubs.
from atled.engine.progress import Progress as Progress
from atled.engine.progress import progress as progress
from atled.train.drawing import curves as curves
from atled.train.evaluating import evaluate as evaluate
from atled.train.events import TensorBoard as TensorBoard
from atled.train.fitting import fit as fit
from atled.train.logs import JSONL as JSONL
from atled.train.logs import Logger as Logger
from atled.train.logs import records as records
from atled.train.running import Run as Run
from atled.train.state import State as State
from atled.train.state import gradients as gradients
from atled.train.stepping import step as step

__all__ = [
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
