"""Random numbers as functions of keys: the same key gives the same numbers, in any order, on any number of devices."""

from atled.random.distributions import (
    beta,
    cauchy,
    chisquare,
    dirichlet,
    exponential,
    gamma,
    laplace,
    logistic,
    pareto,
    poisson,
    t,
    truncated_normal,
)  # fmt: skip
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
    "KeyReuseWarning", "PRNGKey", "bernoulli", "beta", "bits", "categorical", "cauchy", "chisquare", "choice", "clone",
    "dirichlet", "exponential", "fold_in", "gamma", "gumbel", "key", "key_data", "key_impl", "laplace", "logistic",
    "normal", "pareto", "permutation", "poisson", "randint", "split", "t", "truncated_normal", "uniform",
    "wrap_key_data",
]  # fmt: skip
