"""Optimizers: plain structs with `init`, `update` and `step`, and rates that are functions of the step."""

from atled.optim.combining import Chain, Clip, Groups, chain, clip, groups
from atled.optim.optimizer import Optimizer, Rule, State, apply, change, norm
from atled.optim.rules import SGD, Adam, AdamW
from atled.optim.schedules import Schedule, cosine, linear, warmup

__all__ = [
    "SGD", "Adam", "AdamW", "Chain", "Clip", "Groups", "Optimizer", "Rule", "Schedule", "State", "apply", "chain",
    "change", "clip", "cosine", "groups", "linear", "norm", "warmup",
]  # fmt: skip
