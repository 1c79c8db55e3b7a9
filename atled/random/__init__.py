"""Random numbers as functions of keys: the same key gives the same numbers, in any order, on any number of devices."""

from atled.random.keys import (
    KeyReuseWarning,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_impl,
    split,
    wrap_key_data,
)  # fmt: skip
from atled.random.samplers import (
    bernoulli,
    bits,
    categorical,
    choice,
    gumbel,
    normal,
    permutation,
    randint,
    uniform,
)  # fmt: skip

__all__ = [
    "KeyReuseWarning", "PRNGKey", "bernoulli", "bits", "categorical", "choice", "clone", "fold_in", "gumbel", "key",
    "key_data", "key_impl", "normal", "permutation", "randint", "split", "uniform", "wrap_key_data",
]  # fmt: skip
