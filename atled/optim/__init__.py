"""Optimizers: plain structs with `init`, `update` and `step`, and learning-rate schedules."""

from atled.core import lazy_imports

_NAMES = {
    "adam_family": "Adadelta Adagrad AdaMax AMSGrad Lion NAdam NAdamW RMSprop",
    "noise_and_plateau": "Noise noise Plateau plateau",
    "weight_averaging": "Average average Lookahead schedule_free_adamw ScheduleFree",
    "gradient_clipping": "Clip clip clip_adaptive clip_layers clip_values ClipAdaptive ClipLayers ClipValues",
    "chain_and_groups": "Chain chain Groups groups",
    "layerwise": "Adafactor LAMB LARS",
    "lbfgs": "LBFGS minimize Minimum",
    "matrix_optimizers": "Muon orthogonalized SOAP",
    "optimizer": "apply change norm Optimizer Rule State",
    "prodigy": "Prodigy",
    "basic_optimizers": "Adam AdamW Decay decay SGD",
    "schedules": """
        cosine exponential inverse_sqrt joined linear one_cycle piecewise polynomial restarts Schedule warmup""",
    "wrappers": "Accumulate accumulate LossScale SAM skip_not_finite SkipNotFinite Wrapped",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, "schedules")
