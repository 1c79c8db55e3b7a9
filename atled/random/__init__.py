"""Random numbers as functions of keys: the same key gives the same numbers, in any order, on any number of devices."""

from atled.random.counts import binomial, geometric, multinomial, poisson, rademacher
from atled.random.distributions import (
    cauchy,
    exponential,
    laplace,
    logistic,
    pareto,
    rayleigh,
    triangular,
    weibull_min,
)  # fmt: skip
from atled.random.gammas import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from atled.random.keys import (
    KeyReuseWarning,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)  # fmt: skip
from atled.random.normals import (
    double_sided_maxwell,
    lognormal,
    maxwell,
    multivariate_normal,
    orthogonal,
    truncated_normal,
    wald,
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
    "KeyReuseWarning", "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma",
    "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_dtype", "key_impl", "laplace", "loggamma",
    "logistic", "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto",
    "permutation", "poisson", "rademacher", "randint", "rayleigh", "split", "t", "triangular", "truncated_normal",
    "uniform", "wald", "weibull_min", "wrap_key_data",
]  # fmt: skip
