# Written by scripts/stubs.
from atled.optim import schedules as schedules
from atled.optim.adaptive import AMSGrad as AMSGrad
from atled.optim.adaptive import AdaMax as AdaMax
from atled.optim.adaptive import Adadelta as Adadelta
from atled.optim.adaptive import Adagrad as Adagrad
from atled.optim.adaptive import Lion as Lion
from atled.optim.adaptive import NAdam as NAdam
from atled.optim.adaptive import NAdamW as NAdamW
from atled.optim.adaptive import RMSprop as RMSprop
from atled.optim.adjusting import Noise as Noise
from atled.optim.adjusting import Plateau as Plateau
from atled.optim.adjusting import noise as noise
from atled.optim.adjusting import plateau as plateau
from atled.optim.averaging import Average as Average
from atled.optim.averaging import Lookahead as Lookahead
from atled.optim.averaging import ScheduleFree as ScheduleFree
from atled.optim.averaging import average as average
from atled.optim.averaging import schedule_free_adamw as schedule_free_adamw
from atled.optim.clipping import Clip as Clip
from atled.optim.clipping import ClipAdaptive as ClipAdaptive
from atled.optim.clipping import ClipLayers as ClipLayers
from atled.optim.clipping import ClipValues as ClipValues
from atled.optim.clipping import clip as clip
from atled.optim.clipping import clip_adaptive as clip_adaptive
from atled.optim.clipping import clip_layers as clip_layers
from atled.optim.clipping import clip_values as clip_values
from atled.optim.combining import Chain as Chain
from atled.optim.combining import Groups as Groups
from atled.optim.combining import chain as chain
from atled.optim.combining import groups as groups
from atled.optim.layerwise import Adafactor as Adafactor
from atled.optim.layerwise import LAMB as LAMB
from atled.optim.layerwise import LARS as LARS
from atled.optim.line_search import LBFGS as LBFGS
from atled.optim.line_search import Minimum as Minimum
from atled.optim.line_search import minimize as minimize
from atled.optim.matrices import Muon as Muon
from atled.optim.matrices import SOAP as SOAP
from atled.optim.matrices import orthogonalized as orthogonalized
from atled.optim.optimizer import Optimizer as Optimizer
from atled.optim.optimizer import Rule as Rule
from atled.optim.optimizer import State as State
from atled.optim.optimizer import apply as apply
from atled.optim.optimizer import change as change
from atled.optim.optimizer import norm as norm
from atled.optim.rate_free import Prodigy as Prodigy
from atled.optim.rules import Adam as Adam
from atled.optim.rules import AdamW as AdamW
from atled.optim.rules import Decay as Decay
from atled.optim.rules import SGD as SGD
from atled.optim.rules import decay as decay
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
from atled.optim.wrapping import Accumulate as Accumulate
from atled.optim.wrapping import LossScale as LossScale
from atled.optim.wrapping import SAM as SAM
from atled.optim.wrapping import SkipNotFinite as SkipNotFinite
from atled.optim.wrapping import Wrapped as Wrapped
from atled.optim.wrapping import accumulate as accumulate
from atled.optim.wrapping import skip_not_finite as skip_not_finite

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
