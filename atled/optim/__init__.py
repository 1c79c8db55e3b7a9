"""Optimizers: plain structs with `init`, `update` and `step`, and learning-rate schedules."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atled.optim.adaptive import Adadelta, Adagrad, AdaMax, AMSGrad, Lion, NAdam, NAdamW, RMSprop
    from atled.optim.adjusting import Noise, Plateau, noise, plateau
    from atled.optim.averaging import Average, Lookahead, ScheduleFree, average, schedule_free_adamw
    from atled.optim.clipping import (
        Clip,
        ClipAdaptive,
        ClipLayers,
        ClipValues,
        clip,
        clip_adaptive,
        clip_layers,
        clip_values,
    )
    from atled.optim.combining import Chain, Groups, chain, groups
    from atled.optim.layerwise import LAMB, LARS, Adafactor
    from atled.optim.line_search import LBFGS, Minimum, minimize
    from atled.optim.matrices import SOAP, Muon, orthogonalized
    from atled.optim.optimizer import Optimizer, Rule, State, apply, change, norm
    from atled.optim.rate_free import Prodigy
    from atled.optim.rules import SGD, Adam, AdamW, Decay, decay
    from atled.optim.schedules import (
        Schedule,
        cosine,
        exponential,
        inverse_sqrt,
        joined,
        linear,
        one_cycle,
        piecewise,
        polynomial,
        restarts,
        warmup,
    )
    from atled.optim.wrapping import (
        SAM,
        Accumulate,
        LossScale,
        SkipNotFinite,
        Wrapped,
        accumulate,
        skip_not_finite,
    )

# Imported lazily.
_NAMES = {
    "adaptive": ("RMSprop", "Adadelta", "Adagrad", "AdaMax", "AMSGrad", "Lion", "NAdam", "NAdamW"),
    "adjusting": ("Noise", "Plateau", "noise", "plateau"),
    "averaging": ("Average", "Lookahead", "ScheduleFree", "average", "schedule_free_adamw"),
    "clipping": (
        "Clip", "ClipAdaptive", "ClipLayers", "ClipValues", "clip", "clip_adaptive", "clip_layers", "clip_values",
    ),
    "combining": ("Chain", "Groups", "chain", "groups"),
    "layerwise": ("LAMB", "LARS", "Adafactor"),
    "line_search": ("LBFGS", "Minimum", "minimize"),
    "matrices": ("SOAP", "Muon", "orthogonalized"),
    "optimizer": ("Optimizer", "Rule", "State", "apply", "change", "norm"),
    "rate_free": ("Prodigy",),
    "rules": ("SGD", "Adam", "AdamW", "Decay", "decay"),
    "schedules": (
        "Schedule", "cosine", "exponential", "inverse_sqrt", "joined", "linear", "one_cycle", "piecewise", "polynomial",
        "restarts", "warmup",
    ),
    "wrapping": ("SAM", "Accumulate", "LossScale", "SkipNotFinite", "Wrapped", "accumulate", "skip_not_finite"),
}  # fmt: skip
_FILES = {name: file for file, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _FILES:
        attribute = globals()[name] = getattr(importlib.import_module(f"atled.optim.{_FILES[name]}"), name)
        return attribute
    raise AttributeError(f"module 'atled.optim' has no attribute {name!r}")


__all__ = [
    "LAMB", "LARS", "LBFGS", "SAM", "SGD", "SOAP", "AMSGrad", "Accumulate", "AdaMax", "Adadelta", "Adafactor",
    "Adagrad", "Adam", "AdamW", "Average", "Chain", "Clip", "ClipAdaptive", "ClipLayers", "ClipValues", "Decay",
    "Groups", "Lion", "Lookahead", "LossScale", "Minimum", "Muon", "NAdam", "NAdamW", "Noise", "Optimizer", "Plateau",
    "Prodigy", "RMSprop", "Rule", "Schedule", "ScheduleFree", "SkipNotFinite", "State", "Wrapped", "accumulate",
    "apply", "average", "chain", "change", "clip", "clip_adaptive", "clip_layers", "clip_values", "cosine", "decay",
    "exponential", "groups", "inverse_sqrt", "joined", "linear", "minimize", "noise", "norm", "one_cycle",
    "orthogonalized", "piecewise", "plateau", "polynomial", "restarts", "schedule_free_adamw", "skip_not_finite",
    "warmup",
]  # fmt: skip
