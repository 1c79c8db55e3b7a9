# Written by scripts/stubs.
from atled.nn.losses.chunked_cross_entropy import linear_cross_entropy as linear_cross_entropy
from atled.nn.losses.classification import binary_cross_entropy as binary_cross_entropy
from atled.nn.losses.classification import cross_entropy as cross_entropy
from atled.nn.losses.classification import dice as dice
from atled.nn.losses.classification import focal as focal
from atled.nn.losses.classification import hinge as hinge
from atled.nn.losses.classification import kl_divergence as kl_divergence
from atled.nn.losses.classification import squared_hinge as squared_hinge
from atled.nn.losses.ctc_loss import ctc as ctc
from atled.nn.losses.regression import absolute_error as absolute_error
from atled.nn.losses.regression import huber as huber
from atled.nn.losses.regression import log_cosh as log_cosh
from atled.nn.losses.regression import poisson as poisson
from atled.nn.losses.regression import smooth_l1 as smooth_l1
from atled.nn.losses.regression import squared_error as squared_error
from atled.nn.losses.similarity import contrastive as contrastive
from atled.nn.losses.similarity import cosine_distance as cosine_distance
from atled.nn.losses.similarity import cosine_embedding as cosine_embedding
from atled.nn.losses.similarity import info_nce as info_nce
from atled.nn.losses.similarity import triplet as triplet

__all__ = [
    "absolute_error",
    "binary_cross_entropy",
    "contrastive",
    "cosine_distance",
    "cosine_embedding",
    "cross_entropy",
    "ctc",
    "dice",
    "focal",
    "hinge",
    "huber",
    "info_nce",
    "kl_divergence",
    "linear_cross_entropy",
    "log_cosh",
    "poisson",
    "smooth_l1",
    "squared_error",
    "squared_hinge",
    "triplet",
]
