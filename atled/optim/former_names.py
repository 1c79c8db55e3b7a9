"""What functions and classes of `optim` were called before 0.1. This file goes with 0.2."""

FORMER = {
    "apply": "apply_updates", "change": "set_hyperparams", "clip": "clip_by_global_norm", "Clip": "ClipByGlobalNorm",
    "clip_adaptive": "adaptive_grad_clip", "ClipAdaptive": "AdaptiveGradClip", "clip_layers": "clip_by_norm",
    "ClipLayers": "ClipByNorm", "clip_values": "clip_by_value", "ClipValues": "ClipByValue",
    "decay": "add_decayed_weights", "Decay": "AddDecayedWeights", "groups": "partition", "Groups": "Partition",
    "joined": "join_schedules", "noise": "add_noise", "Noise": "AddNoise", "norm": "global_norm",
    "plateau": "reduce_on_plateau", "Plateau": "ReduceOnPlateau", "skip_not_finite": "apply_if_finite",
    "SkipNotFinite": "ApplyIfFinite",
}  # fmt: skip
