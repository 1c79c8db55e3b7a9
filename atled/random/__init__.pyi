# Written by scripts/stubs.
from atled.random.basic_samplers import bernoulli as bernoulli
from atled.random.basic_samplers import bits as bits
from atled.random.basic_samplers import categorical as categorical
from atled.random.basic_samplers import choice as choice
from atled.random.basic_samplers import gumbel as gumbel
from atled.random.basic_samplers import normal as normal
from atled.random.basic_samplers import permutation as permutation
from atled.random.basic_samplers import randint as randint
from atled.random.basic_samplers import uniform as uniform
from atled.random.discrete_distributions import binomial as binomial
from atled.random.discrete_distributions import geometric as geometric
from atled.random.discrete_distributions import multinomial as multinomial
from atled.random.discrete_distributions import poisson as poisson
from atled.random.discrete_distributions import rademacher as rademacher
from atled.random.gamma_distributions import ball as ball
from atled.random.gamma_distributions import beta as beta
from atled.random.gamma_distributions import chisquare as chisquare
from atled.random.gamma_distributions import dirichlet as dirichlet
from atled.random.gamma_distributions import f as f
from atled.random.gamma_distributions import gamma as gamma
from atled.random.gamma_distributions import generalized_normal as generalized_normal
from atled.random.gamma_distributions import loggamma as loggamma
from atled.random.gamma_distributions import t as t
from atled.random.inverse_transform import cauchy as cauchy
from atled.random.inverse_transform import exponential as exponential
from atled.random.inverse_transform import laplace as laplace
from atled.random.inverse_transform import logistic as logistic
from atled.random.inverse_transform import pareto as pareto
from atled.random.inverse_transform import rayleigh as rayleigh
from atled.random.inverse_transform import triangular as triangular
from atled.random.inverse_transform import weibull_min as weibull_min
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
from atled.random.normal_distributions import double_sided_maxwell as double_sided_maxwell
from atled.random.normal_distributions import lognormal as lognormal
from atled.random.normal_distributions import maxwell as maxwell
from atled.random.normal_distributions import multivariate_normal as multivariate_normal
from atled.random.normal_distributions import orthogonal as orthogonal
from atled.random.normal_distributions import truncated_normal as truncated_normal
from atled.random.normal_distributions import wald as wald

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
