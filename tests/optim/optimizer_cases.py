"""A row for each optimizer. Every law holds for every row."""

from atled import optim

CASES = {
    "SGD": optim.SGD(0.1),
    "SGD, momentum": optim.SGD(0.1, momentum=0.9),
    "SGD, nesterov": optim.SGD(optim.cosine(0.1, 50), momentum=0.9, nesterov=True),
    "Adam": optim.Adam(1e-2),
    "AdamW": optim.AdamW(optim.linear(1e-2, 30, warmup_steps=5), weight_decay=0.1, weight_decay_mask="**/weight"),
    "NAdam": optim.NAdam(1e-2),
    "NAdamW": optim.NAdamW(1e-2, weight_decay=0.1, weight_decay_mask="**/weight"),
    "AMSGrad": optim.AMSGrad(1e-2),
    "AdaMax": optim.AdaMax(1e-2),
    "Adagrad": optim.Adagrad(5e-2),
    "Adadelta": optim.Adadelta(10.0),
    "RMSprop": optim.RMSprop(1e-2),
    "RMSprop, all": optim.RMSprop(1e-3, momentum=0.9, centered=True, nesterov=True, eps=1e-3),
    "Lion": optim.Lion(5e-3, weight_decay_mask="**/weight"),
    "LARS": optim.LARS(0.1, trust_coefficient=0.1, weight_decay=1e-3),
    "LAMB": optim.LAMB(1e-2, weight_decay=1e-3),
    "Adafactor": optim.Adafactor(5e-2, min_dim_size_to_factor=2),
    "Adafactor, all squares": optim.Adafactor(optim.inverse_sqrt(5e-2, 3), momentum=0.9, weight_decay=1e-3),
    "Muon": optim.Muon(2e-2, adam_learning_rate=1e-2),
    "SOAP": optim.SOAP(1e-2, precondition_frequency=2),
    "Prodigy": optim.Prodigy(estim_lr0=1e-2),
    "LBFGS": optim.LBFGS(memory_size=3),
    "LBFGS, without a search": optim.LBFGS(0.1, memory_size=3, max_linesearch_steps=0),
    "AddDecayedWeights": optim.chain(optim.add_decayed_weights(1e-2, "**/weight"), optim.SGD(0.1)),
    "Chain": optim.chain(optim.clip_by_global_norm(0.5), optim.AdamW(1e-2)),
    "ClipByGlobalNorm": optim.chain(optim.clip_by_global_norm(0.5), optim.SGD(0.1)),
    "ClipByValue": optim.chain(optim.clip_by_value(0.1), optim.SGD(0.1)),
    "ClipByNorm": optim.chain(optim.clip_by_norm(0.2), optim.SGD(0.1)),
    "AdaptiveGradClip": optim.chain(optim.adaptive_grad_clip(0.1), optim.SGD(0.1)),
    "AddNoise": optim.chain(optim.add_noise(1e-4), optim.SGD(0.1)),
    "ReduceOnPlateau": optim.chain(optim.SGD(0.1), optim.reduce_on_plateau(0.5, 5)),
    "Partition": optim.partition({"first": optim.Adam(1e-2), "second/bias": None, "**": optim.SGD(0.1)}),
    "Accumulate": optim.accumulate(optim.Adam(1e-2), 2),
    "ApplyIfFinite": optim.apply_if_finite(optim.Adam(1e-2)),
    "LossScale": optim.LossScale(
        optim.chain(optim.clip_by_global_norm(1.0), optim.SGD(0.1)), 2.0**8, growth_interval=3
    ),
    "SAM": optim.SAM(optim.SGD(0.1)),
    "Average": optim.average(optim.SGD(0.1), decay=0.9),
    "Average, mean": optim.average(optim.SGD(0.1), begin=1, every=2),
    "Lookahead": optim.Lookahead(optim.Adam(1e-2), sync_period=2),
    "ScheduleFree": optim.ScheduleFree(optim.SGD(0.1)),
    "ScheduleFree, adamw": optim.schedule_free_adamw(
        optim.warmup(1e-2, 3), weight_decay=1e-2, weight_decay_mask="**/weight"
    ),
}
