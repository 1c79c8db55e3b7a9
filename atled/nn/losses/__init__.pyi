# Written by scripts/stubs.
from atled.nn.losses.chunked import linear_cross_entropy as linear_cross_entropy
from atled.nn.losses.classes import binary_cross_entropy as binary_cross_entropy
from atled.nn.losses.classes import cross_entropy as cross_entropy
from atled.nn.losses.classes import dice as dice
from atled.nn.losses.classes import focal as focal
from atled.nn.losses.classes import hinge as hinge
from atled.nn.losses.classes import kl_divergence as kl_divergence
from atled.nn.losses.classes import squared_hinge as squared_hinge
from atled.nn.losses.elements import absolute_error as absolute_error
from atled.nn.losses.elements import huber as huber
from atled.nn.losses.elements import log_cosh as log_cosh
from atled.nn.losses.elements import poisson as poisson
from atled.nn.losses.elements import smooth_l1 as smooth_l1
from atled.nn.losses.elements import squared_error as squared_error
from atled.nn.losses.sequences import ctc as ctc
from atled.nn.losses.vectors import contrastive as contrastive
from atled.nn.losses.vectors import cosine_distance as cosine_distance
from atled.nn.losses.vectors import cosine_embedding as cosine_embedding
from atled.nn.losses.vectors import info_nce as info_nce
from atled.nn.losses.vectors import triplet as triplet

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
