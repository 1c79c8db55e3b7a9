# Written by scripts/stubs.
from atled.random.counts import binomial as binomial
from atled.random.counts import geometric as geometric
from atled.random.counts import multinomial as multinomial
from atled.random.counts import poisson as poisson
from atled.random.counts import rademacher as rademacher
from atled.random.distributions import cauchy as cauchy
from atled.random.distributions import exponential as exponential
from atled.random.distributions import laplace as laplace
from atled.random.distributions import logistic as logistic
from atled.random.distributions import pareto as pareto
from atled.random.distributions import rayleigh as rayleigh
from atled.random.distributions import triangular as triangular
from atled.random.distributions import weibull_min as weibull_min
from atled.random.gammas import ball as ball
from atled.random.gammas import beta as beta
from atled.random.gammas import chisquare as chisquare
from atled.random.gammas import dirichlet as dirichlet
from atled.random.gammas import f as f
from atled.random.gammas import gamma as gamma
from atled.random.gammas import generalized_normal as generalized_normal
from atled.random.gammas import loggamma as loggamma
from atled.random.gammas import t as t
from atled.random.keys import KeyReuseWarning as KeyReuseWarning
from atled.random.keys import PRNGKey as PRNGKey
from atled.random.keys import clone as clone
from atled.random.keys import fold_in as fold_in
from atled.random.keys import key as key
from atled.random.keys import key_data as key_data
from atled.random.keys import key_dtype as key_dtype
from atled.random.keys import key_impl as key_impl
from atled.random.keys import split as split
from atled.random.keys import wrap_key_data as wrap_key_data
from atled.random.normals import double_sided_maxwell as double_sided_maxwell
from atled.random.normals import lognormal as lognormal
from atled.random.normals import maxwell as maxwell
from atled.random.normals import multivariate_normal as multivariate_normal
from atled.random.normals import orthogonal as orthogonal
from atled.random.normals import truncated_normal as truncated_normal
from atled.random.normals import wald as wald
from atled.random.samplers import bernoulli as bernoulli
from atled.random.samplers import bits as bits
from atled.random.samplers import categorical as categorical
from atled.random.samplers import choice as choice
from atled.random.samplers import gumbel as gumbel
from atled.random.samplers import normal as normal
from atled.random.samplers import permutation as permutation
from atled.random.samplers import randint as randint
from atled.random.samplers import uniform as uniform

__all__ = [
    "KeyReuseWarning",
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]
