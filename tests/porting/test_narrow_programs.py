"""With 64-bit inputs narrowed, ops compute what they compute otherwise: 64 bits in their code are their own affair.

Functions that take a detour over float64, such as Bessel functions, stay in float32 then, and are less accurate.
"""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn, random
from atled.core import settings

X = np.random.RandomState(0).randn(40, 500).astype("float32")
CASES = {
    "normal": lambda: random.normal(random.key(3), (10, 512)),  # two words of a counter make one of 64 bits
    "bits": lambda: random.bits(random.key(3), (2000,)),
    "permutation": lambda: random.permutation(random.key(3), 3000),
    "split": lambda: random.key_data(random.split(random.key(3), 2000)),
    "sort": lambda: jnp.sort(X),
    "argsort": lambda: jnp.argsort(X),  # values and places make keys of 64 bits
    "top_k": lambda: lax.top_k(X, 7)[1],
    "median": lambda: jnp.median(X, axis=1),
    "round": lambda: jnp.round(X, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_narrow_programs_compute_the_same(name):
    want = np.asarray(CASES[name]())
    atled.clear_caches()
    with settings.override(narrow=True, cache=False):
        got = np.asarray(CASES[name]())
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "setting", [{"narrow": True}, {"x64": True}, {"promotion": "strict"}, {"matmul_precision": "highest"}], ids=str
)
def test_modules_do_not_depend_on_settings(setting):
    """Entries on disk are shared by processes with different settings."""

    def f(k):
        x = random.normal(k, (10, 512))
        return x, jnp.argsort(random.bits(k, (4000,), "uint32")), nn.softmax(x @ x.T), jnp.remainder(jnp.exp(x), 2.0)

    program = atled.jit(f).trace(random.key(0))
    plain = program.lower().as_text()
    with settings.override(**setting):
        assert program.lower().as_text() == plain
    assert "ui64" in plain
