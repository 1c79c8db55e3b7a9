"""Training: the state of a run, gradients of a loss, and one step."""

from atled.train.state import State, gradients, step

__all__ = ["State", "gradients", "step"]
