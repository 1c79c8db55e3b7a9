"""Optimizers: plain structs with `init`, `update` and `step`, and learning-rate schedules."""

from atled.core import lazy

_NAMES = {
    "adaptive": "Adadelta Adagrad AdaMax AMSGrad Lion NAdam NAdamW RMSprop",
    "adjusting": "Noise noise Plateau plateau",
    "averaging": "Average average Lookahead schedule_free_adamw ScheduleFree",
    "clipping": "Clip clip clip_adaptive clip_layers clip_values ClipAdaptive ClipLayers ClipValues",
    "combining": "Chain chain Groups groups",
    "layerwise": "Adafactor LAMB LARS",
    "line_search": "LBFGS minimize Minimum",
    "matrices": "Muon orthogonalized SOAP",
    "optimizer": "apply change norm Optimizer Rule State",
    "rate_free": "Prodigy",
    "rules": "Adam AdamW Decay decay SGD",
    "schedules": """
        cosine exponential inverse_sqrt joined linear one_cycle piecewise polynomial restarts Schedule warmup""",
    "wrapping": "Accumulate accumulate LossScale SAM skip_not_finite SkipNotFinite Wrapped",
}
__getattr__, __dir__, __all__ = lazy.public(__name__, _NAMES, "schedules")
