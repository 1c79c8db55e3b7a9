"""Draws of every kind, written for any library with JAX's names: of its `random`, a key, and its `numpy`."""

import numpy as np

LOGITS = np.random.RandomState(0).randn(4, 6).astype("f4")
COVARIANCES = np.array([[2.0, 0.5], [0.5, 1.0]], "f4")
P = np.array([0.1, 0.2, 0.7], "f4")
ROWS = np.arange(12, dtype="i4").reshape(4, 3)
DRAWS = {
    "bits8": lambda r, k, np_: r.bits(k, (7, 3), "uint8"),
    "bits16": lambda r, k, np_: r.bits(k, (7, 3), "uint16"),
    "uniform": lambda r, k, np_: r.uniform(k, (500,)),
    "uniform f16": lambda r, k, np_: r.uniform(k, (500,), "float16"),
    "uniform bf16": lambda r, k, np_: r.uniform(k, (500,), "bfloat16"),
    "uniform range": lambda r, k, np_: r.uniform(k, (100,), minval=-2, maxval=np_.arange(100.0)),
    "normal": lambda r, k, np_: r.normal(k, (500,)),
    "normal bf16": lambda r, k, np_: r.normal(k, (500,), "bfloat16"),
    "normal complex": lambda r, k, np_: r.normal(k, (50,), "complex64"),
    "randint": lambda r, k, np_: r.randint(k, (500,), -5, 100),
    "randint full": lambda r, k, np_: r.randint(k, (500,), -(2**31), 2**31 - 1),
    "randint empty": lambda r, k, np_: r.randint(k, (5,), 7, 7),
    "randint each": lambda r, k, np_: r.randint(k, (2, 3), np_.array([0, 5, -9]), np_.array([1, 9, 100])),
    "randint16": lambda r, k, np_: r.randint(k, (500,), -(2**15), 2**15, "int16"),
    "randint8": lambda r, k, np_: r.randint(k, (500,), 0, 256, "uint8"),
    "bernoulli": lambda r, k, np_: r.bernoulli(k, 0.3, (500,)),
    "categorical": lambda r, k, np_: r.categorical(k, LOGITS),
    "categorical axis": lambda r, k, np_: r.categorical(k, LOGITS, axis=0, shape=(9, 6)),
    "categorical distinct": lambda r, k, np_: r.categorical(k, LOGITS, shape=(3, 4), replace=False),
    "permutation": lambda r, k, np_: r.permutation(k, 1000),
    "permutation rows": lambda r, k, np_: r.permutation(k, ROWS),
    "permutation free": lambda r, k, np_: r.permutation(k, ROWS, independent=True),
    "permutation axis": lambda r, k, np_: r.permutation(k, ROWS, 1),
    "permutation free axis": lambda r, k, np_: r.permutation(k, ROWS, axis=-1, independent=True),
    "choice": lambda r, k, np_: r.choice(k, 50, (20,)),
    "choice distinct": lambda r, k, np_: r.choice(k, 50, (20,), replace=False),
    "choice weighted": lambda r, k, np_: r.choice(k, 3, (200,), p=P),
    "choice weighted distinct": lambda r, k, np_: r.choice(k, 3, (2,), p=P, replace=False),
    "choice rows": lambda r, k, np_: r.choice(k, ROWS, (5,)),
    "choice columns": lambda r, k, np_: r.choice(k, ROWS, (2, 2), p=P, axis=1),
    "choice columns distinct": lambda r, k, np_: r.choice(k, ROWS, (2,), replace=False, axis=1),
    "bernoulli high": lambda r, k, np_: r.bernoulli(k, 1e-3, (2000,), mode="high"),
    "gumbel": lambda r, k, np_: r.gumbel(k, (100,)),
}
# Compared up to rounding, which can also decide whether a number is accepted. Of those made from gamma numbers, which
# are slow to compile, two.
ROUNDED = {
    "binomial": lambda r, k, np_: r.binomial(
        k, np_.array([5.0, 100.0, 1e4, 3.0, 0.0, -1.0]), np_.array([0.5, 0.3, 0.9, 1.0, 0.2, 0.5]), (100, 6)
    ),
    "cauchy": lambda r, k, np_: r.cauchy(k, (500,)),
    "exponential f16": lambda r, k, np_: r.exponential(k, (500,), "float16"),
    "f": lambda r, k, np_: r.f(k, 3.0, 7.0, (500,)),
    "gamma": lambda r, k, np_: r.gamma(k, np_.array([[0.1], [1.0], [9.0]]), (3, 200)),
    "geometric": lambda r, k, np_: r.geometric(k, 0.2, (500,)),
    "gumbel high": lambda r, k, np_: r.gumbel(k, (500,), mode="high"),
    "gumbel highest": lambda r, k, np_: r.gumbel(k, (500,), mode="highest"),
    "laplace": lambda r, k, np_: r.laplace(k, (500,)),
    "logistic": lambda r, k, np_: r.logistic(k, (500,)),
    "lognormal": lambda r, k, np_: r.lognormal(k, 0.5, (500,)),
    "lognormal complex": lambda r, k, np_: r.lognormal(k, 0.5, (500,), "complex64"),
    "maxwell": lambda r, k, np_: r.maxwell(k, (500,)),
    "multivariate_normal": lambda r, k, np_: r.multivariate_normal(k, np_.ones(2), COVARIANCES, (300,)),
    "orthogonal": lambda r, k, np_: r.orthogonal(k, 4, (3,)),
    "pareto": lambda r, k, np_: r.pareto(k, 3.0, (500,)),
    "poisson": lambda r, k, np_: r.poisson(k, np_.array([0.0, 1.0, 30.0, -1.0, np.nan, 1e3]), (200, 6)),
    "rademacher": lambda r, k, np_: r.rademacher(k, (500,)),
    "rayleigh": lambda r, k, np_: r.rayleigh(k, np_.float32(2.0), (500,)),
    "triangular": lambda r, k, np_: r.triangular(k, 0.0, 1.0, 3.0, (500,)),
    "truncated_normal": lambda r, k, np_: r.truncated_normal(k, -0.5, 2.0, (500,)),
    "wald": lambda r, k, np_: r.wald(k, np_.float32(2.0), (500,)),
    "weibull_min": lambda r, k, np_: r.weibull_min(k, 2.0, 3.0, (500,)),
}
