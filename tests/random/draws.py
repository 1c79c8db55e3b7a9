"""Draws of every kind, written for any library with JAX's names: of its `random`, a key, and its `numpy`."""

import numpy as np

LOGITS = np.random.RandomState(0).randn(4, 6).astype("f4")
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
    "randint8": lambda r, k, np_: r.randint(k, (500,), 0, 256, "uint8"),
    "bernoulli": lambda r, k, np_: r.bernoulli(k, 0.3, (500,)),
    "categorical": lambda r, k, np_: r.categorical(k, LOGITS),
    "categorical axis": lambda r, k, np_: r.categorical(k, LOGITS, axis=0, shape=(9, 6)),
    "categorical distinct": lambda r, k, np_: r.categorical(k, LOGITS, shape=(3, 4), replace=False),
    "permutation": lambda r, k, np_: r.permutation(k, 1000),
    "permutation rows": lambda r, k, np_: r.permutation(k, ROWS),
    "permutation free": lambda r, k, np_: r.permutation(k, ROWS, independent=True),
    "choice": lambda r, k, np_: r.choice(k, 50, (20,)),
    "choice distinct": lambda r, k, np_: r.choice(k, 50, (20,), replace=False),
    "choice weighted": lambda r, k, np_: r.choice(k, 3, (200,), p=P),
    "choice weighted distinct": lambda r, k, np_: r.choice(k, 3, (2,), p=P, replace=False),
    "choice rows": lambda r, k, np_: r.choice(k, ROWS, (5,)),
    "gumbel": lambda r, k, np_: r.gumbel(k, (100,)),
}
