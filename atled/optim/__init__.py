"""Optimizers: plain structs with `init`, `update` and `step`, and learning-rate schedules."""

from atled.core import lazy_imports

_NAMES = {
    "adam_family": "Adadelta Adagrad AdaMax AMSGrad Lion NAdam NAdamW RMSprop",
    "noise_and_plateau": "add_noise AddNoise reduce_on_plateau ReduceOnPlateau",
    "weight_averaging": "Average average Lookahead schedule_free_adamw ScheduleFree",
    "gradient_clipping": """
        adaptive_grad_clip AdaptiveGradClip clip_by_global_norm clip_by_norm clip_by_value ClipByGlobalNorm ClipByNorm
        ClipByValue""",
    "chain_and_groups": "Chain chain Partition partition",
    "layerwise": "Adafactor LAMB LARS",
    "lbfgs": "LBFGS minimize Minimum",
    "matrix_optimizers": "Muon orthogonalized SOAP",
    "optimizer": "apply_updates global_norm Optimizer Rule set_hyperparams State",
    "prodigy": "Prodigy",
    "basic_optimizers": "Adam AdamW add_decayed_weights AddDecayedWeights SGD",
    "schedules": """
        cosine exponential inverse_sqrt join_schedules linear one_cycle piecewise polynomial restarts Schedule
        warmup""",
    "wrappers": "Accumulate accumulate LossScale SAM apply_if_finite ApplyIfFinite Wrapped",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, "schedules")
