"""Random numbers as functions of keys: the same key gives the same numbers, in any order, on any number of devices."""

from atled.core import lazy_imports

_AT_ONCE = {
    "discrete_distributions": "binomial geometric multinomial poisson rademacher",
    "inverse_transform": "cauchy exponential laplace logistic pareto rayleigh triangular weibull_min",
    "gamma_distributions": "ball beta chisquare dirichlet f gamma generalized_normal loggamma t",
    "keys": "clone fold_in key key_data key_dtype key_impl KeyReuseWarning PRNGKey split wrap_key_data",
    "normal_distributions": """
        double_sided_maxwell lognormal maxwell multivariate_normal orthogonal truncated_normal wald""",
    "basic_samplers": "bernoulli bits categorical choice gumbel normal permutation randint uniform",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "", _AT_ONCE)
