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
from atled.optim.basic_optimizers import Decay as Decay
from atled.optim.basic_optimizers import SGD as SGD
from atled.optim.basic_optimizers import decay as decay
from atled.optim.chain_and_groups import Chain as Chain
from atled.optim.chain_and_groups import Groups as Groups
from atled.optim.chain_and_groups import chain as chain
from atled.optim.chain_and_groups import groups as groups
from atled.optim.gradient_clipping import Clip as Clip
from atled.optim.gradient_clipping import ClipAdaptive as ClipAdaptive
from atled.optim.gradient_clipping import ClipLayers as ClipLayers
from atled.optim.gradient_clipping import ClipValues as ClipValues
from atled.optim.gradient_clipping import clip as clip
from atled.optim.gradient_clipping import clip_adaptive as clip_adaptive
from atled.optim.gradient_clipping import clip_layers as clip_layers
from atled.optim.gradient_clipping import clip_values as clip_values
from atled.optim.layerwise import Adafactor as Adafactor
from atled.optim.layerwise import LAMB as LAMB
from atled.optim.layerwise import LARS as LARS
from atled.optim.lbfgs import LBFGS as LBFGS
from atled.optim.lbfgs import Minimum as Minimum
from atled.optim.lbfgs import minimize as minimize
from atled.optim.matrix_optimizers import Muon as Muon
from atled.optim.matrix_optimizers import SOAP as SOAP
from atled.optim.matrix_optimizers import orthogonalized as orthogonalized
from atled.optim.noise_and_plateau import Noise as Noise
from atled.optim.noise_and_plateau import Plateau as Plateau
from atled.optim.noise_and_plateau import noise as noise
from atled.optim.noise_and_plateau import plateau as plateau
from atled.optim.optimizer import Optimizer as Optimizer
from atled.optim.optimizer import Rule as Rule
from atled.optim.optimizer import State as State
from atled.optim.optimizer import apply as apply
from atled.optim.optimizer import change as change
from atled.optim.optimizer import norm as norm
from atled.optim.prodigy import Prodigy as Prodigy
from atled.optim.schedules import Schedule as Schedule
from atled.optim.schedules import cosine as cosine
from atled.optim.schedules import exponential as exponential
from atled.optim.schedules import inverse_sqrt as inverse_sqrt
from atled.optim.schedules import joined as joined
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
from atled.optim.wrappers import LossScale as LossScale
from atled.optim.wrappers import SAM as SAM
from atled.optim.wrappers import SkipNotFinite as SkipNotFinite
from atled.optim.wrappers import Wrapped as Wrapped
from atled.optim.wrappers import accumulate as accumulate
from atled.optim.wrappers import skip_not_finite as skip_not_finite

__all__ = [
    "AMSGrad",
    "Accumulate",
    "AdaMax",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Average",
    "Chain",
    "Clip",
    "ClipAdaptive",
    "ClipLayers",
    "ClipValues",
    "Decay",
    "Groups",
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
    "Noise",
    "Optimizer",
    "Plateau",
    "Prodigy",
    "RMSprop",
    "Rule",
    "SAM",
    "SGD",
    "SOAP",
    "Schedule",
    "ScheduleFree",
    "SkipNotFinite",
    "State",
    "Wrapped",
    "accumulate",
    "apply",
    "average",
    "chain",
    "change",
    "clip",
    "clip_adaptive",
    "clip_layers",
    "clip_values",
    "cosine",
    "decay",
    "exponential",
    "groups",
    "inverse_sqrt",
    "joined",
    "linear",
    "minimize",
    "noise",
    "norm",
    "one_cycle",
    "orthogonalized",
    "piecewise",
    "plateau",
    "polynomial",
    "restarts",
    "schedule_free_adamw",
    "schedules",
    "skip_not_finite",
    "warmup",
]
