"""Losses: functions of predictions and targets.

All losses follow the same rules. A loss has one number for each example, or for each element. `where` is a
boolean mask; losses where it is False affect neither the value nor gradients, even if they are NaN or infinite.
`weights` are factors of the losses. `where` and `weights` have the shape of the losses, or length 1 along some
axes. Then the losses are reduced by `reduction`:

- `"mean"`: sum(weights * losses) / sum(weights) where `where` is True. The mean of no losses is 0, and so are its
  gradients, so a batch of padding is harmless.
- `"sum"`: sum(weights * losses) where `where` is True.
- `None`: weights * losses, with 0 where `where` is False.

Shapes must agree, without broadcasting: (n, 1) with (n,) raises. 16-bit floats are computed in float32, and the loss is
float32; targets are converted to the dtype of the predictions. Labels out of range raise if the labels are concrete; in
compiled code, they make the loss of their example NaN.
"""

from atled.core import lazy_imports

_AT_ONCE = {
    "chunked_cross_entropy": "linear_cross_entropy",
    "classification": "binary_cross_entropy cross_entropy dice focal hinge kl_divergence squared_hinge",
    "regression": "absolute_error huber log_cosh poisson smooth_l1 squared_error",
    "ctc_loss": "ctc",
    "similarity": "contrastive cosine_distance cosine_embedding info_nce triplet",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "", _AT_ONCE)
