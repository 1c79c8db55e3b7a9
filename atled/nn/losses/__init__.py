"""Losses: functions of what a model gives and of what it should have given.

One decision holds for all. A loss has one number for each example, or for each element where an example has no meaning
of its own. `where` selects some of them with booleans; what it leaves out has no influence on the value and none on
gradients, be it NaN or infinite. `weights` count some more than others. Both have as many axes as the losses, each as
long or of length 1. Then `reduction` says what becomes of the numbers:

- `"mean"`: sum(weights * losses) / sum(weights) over what is selected. A mean over nothing is 0, and so are its
  gradients: a batch of padding does not ruin a model.
- `"sum"`: sum(weights * losses) over what is selected.
- `None`: weights * losses, with 0 where nothing is selected.

Shapes must agree, nothing is broadcast: (n, 1) next to (n,) is a mistake. Half precision is computed in float32, and
such a loss is float32; targets are taken in the dtype of the predictions. Labels out of their range are an error where
they can be looked at, and make the loss of their example NaN in compiled code.
"""

from atled.nn.losses.chunked import linear_cross_entropy
from atled.nn.losses.classes import (
    binary_cross_entropy,
    cross_entropy,
    dice,
    focal,
    hinge,
    kl_divergence,
    squared_hinge,
)
from atled.nn.losses.elements import absolute_error, huber, log_cosh, poisson, smooth_l1, squared_error
from atled.nn.losses.sequences import ctc
from atled.nn.losses.vectors import contrastive, cosine_distance, cosine_embedding, info_nce, triplet

__all__ = [
    "absolute_error", "binary_cross_entropy", "contrastive", "cosine_distance", "cosine_embedding", "cross_entropy",
    "ctc", "dice", "focal", "hinge", "huber", "info_nce", "kl_divergence", "linear_cross_entropy", "log_cosh",
    "poisson", "smooth_l1", "squared_error", "squared_hinge", "triplet",
]  # fmt: skip
