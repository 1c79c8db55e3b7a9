# Written by scripts/stubs.
from atled.optim import schedules as schedules
from atled.optim.adam_family import AMSGrad as AMSGrad
from atled.optim.adam_family import AdaMax as AdaMax
from atled.optim.adam_family import Adadelta as Adadelta
from atled.optim.adam_family import Adagrad as Adagrad
from atled.optim.adam_family import Lion as Lion
from atled.optim.adam_family import NAdam as NAdam
from atled.optim.adam_family import NAdamW as NAdamW
from atled.optim.adam_family import RMSprop as RMSprop
from atled.optim.basic_optimizers import Adam as Adam
from atled.optim.basic_optimizers import AdamW as AdamW
from atled.optim.basic_optimizers import AddDecayedWeights as AddDecayedWeights
from atled.optim.basic_optimizers import SGD as SGD
from atled.optim.basic_optimizers import add_decayed_weights as add_decayed_weights
from atled.optim.chain_and_groups import Chain as Chain
from atled.optim.chain_and_groups import Partition as Partition
from atled.optim.chain_and_groups import chain as chain
from atled.optim.chain_and_groups import partition as partition
from atled.optim.gradient_clipping import AdaptiveGradClip as AdaptiveGradClip
from atled.optim.gradient_clipping import ClipByGlobalNorm as ClipByGlobalNorm
from atled.optim.gradient_clipping import ClipByNorm as ClipByNorm
from atled.optim.gradient_clipping import ClipByValue as ClipByValue
from atled.optim.gradient_clipping import adaptive_grad_clip as adaptive_grad_clip
from atled.optim.gradient_clipping import clip_by_global_norm as clip_by_global_norm
from atled.optim.gradient_clipping import clip_by_norm as clip_by_norm
from atled.optim.gradient_clipping import clip_by_value as clip_by_value
from atled.optim.layerwise import Adafactor as Adafactor
from atled.optim.layerwise import LAMB as LAMB
from atled.optim.layerwise import LARS as LARS
from atled.optim.lbfgs import LBFGS as LBFGS
from atled.optim.lbfgs import Minimum as Minimum
from atled.optim.lbfgs import minimize as minimize
from atled.optim.matrix_optimizers import Muon as Muon
from atled.optim.matrix_optimizers import SOAP as SOAP
from atled.optim.matrix_optimizers import orthogonalized as orthogonalized
from atled.optim.noise_and_plateau import AddNoise as AddNoise
from atled.optim.noise_and_plateau import ReduceOnPlateau as ReduceOnPlateau
from atled.optim.noise_and_plateau import add_noise as add_noise
from atled.optim.noise_and_plateau import reduce_on_plateau as reduce_on_plateau
from atled.optim.optimizer import Optimizer as Optimizer
from atled.optim.optimizer import Rule as Rule
from atled.optim.optimizer import State as State
from atled.optim.optimizer import apply_updates as apply_updates
from atled.optim.optimizer import global_norm as global_norm
from atled.optim.optimizer import set_hyperparams as set_hyperparams
from atled.optim.prodigy import Prodigy as Prodigy
from atled.optim.schedules import Schedule as Schedule
from atled.optim.schedules import cosine as cosine
from atled.optim.schedules import exponential as exponential
from atled.optim.schedules import inverse_sqrt as inverse_sqrt
from atled.optim.schedules import join_schedules as join_schedules
from atled.optim.schedules import linear as linear
from atled.optim.schedules import one_cycle as one_cycle
from atled.optim.schedules import piecewise as piecewise
from atled.optim.schedules import polynomial as polynomial
from atled.optim.schedules import restarts as restarts
from atled.optim.schedules import warmup as warmup
from atled.optim.weight_averaging import Average as Average
from atled.optim.weight_averaging import Lookahead as Lookahead
from atled.optim.weight_averaging import ScheduleFree as ScheduleFree
from atled.optim.weight_averaging import average as average
from atled.optim.weight_averaging import schedule_free_adamw as schedule_free_adamw
from atled.optim.wrappers import Accumulate as Accumulate
from atled.optim.wrappers import ApplyIfFinite as ApplyIfFinite
from atled.optim.wrappers import LossScale as LossScale
from atled.optim.wrappers import SAM as SAM
from atled.optim.wrappers import Wrapped as Wrapped
from atled.optim.wrappers import accumulate as accumulate
from atled.optim.wrappers import apply_if_finite as apply_if_finite

__all__ = [
    "AMSGrad",
    "Accumulate",
    "AdaMax",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "AdaptiveGradClip",
    "AddDecayedWeights",
    "AddNoise",
    "ApplyIfFinite",
    "Average",
    "Chain",
    "ClipByGlobalNorm",
    "ClipByNorm",
    "ClipByValue",
    "LAMB",
    "LARS",
    "LBFGS",
    "Lion",
    "Lookahead",
    "LossScale",
    "Minimum",
    "Muon",
    "NAdam",
    "NAdamW",
    "Optimizer",
    "Partition",
    "Prodigy",
    "RMSprop",
    "ReduceOnPlateau",
    "Rule",
    "SAM",
    "SGD",
    "SOAP",
    "Schedule",
    "ScheduleFree",
    "State",
    "Wrapped",
    "accumulate",
    "adaptive_grad_clip",
    "add_decayed_weights",
    "add_noise",
    "apply_if_finite",
    "apply_updates",
    "average",
    "chain",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "cosine",
    "exponential",
    "global_norm",
    "inverse_sqrt",
    "join_schedules",
    "linear",
    "minimize",
    "one_cycle",
    "orthogonalized",
    "partition",
    "piecewise",
    "polynomial",
    "reduce_on_plateau",
    "restarts",
    "schedule_free_adamw",
    "schedules",
    "set_hyperparams",
    "warmup",
]
