"""The bits of random draws: those of the published generator, under every transform."""

from __future__ import annotations

import pathlib
import sys
import warnings

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, random

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))
from cases import threefry
from draws import DRAWS

pytestmark = pytest.mark.filterwarnings("ignore::atled.errors.KeyReuseWarning")


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    np.testing.assert_array_equal(a, b)


def test_published_vectors():
    u = np.uint32
    for key, counter, want in [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]:
        got = atled.ops.random.threefry2x32(*[u(v) for v in (*key, *counter)])
        assert tuple(int(v) for v in got) == want


@pytest.mark.parametrize("seed", [0, 1, 42, 2**32 - 1])
def test_streams(seed):
    n = np.arange(1000, dtype=np.uint32)
    a, b = threefry(np.uint32(0), np.uint32(seed), np.zeros_like(n), n)
    k = random.key(seed)
    same(random.bits(k, (1000,), "uint32"), a ^ b)
    same(random.bits(k, (10, 100), "uint32"), (a ^ b).reshape(10, 100))
    same(random.bits(k, (1000,), "uint64"), (a.astype("u8") << np.uint64(32)) | b)
    same(random.key_data(random.split(k, 5)), np.stack([a[:5], b[:5]], 1))
    same(
        random.key_data(random.fold_in(k, 7)),
        np.stack(threefry(np.uint32(0), np.uint32(seed), np.uint32(0), np.uint32(7))),
    )


def test_all_bits_of_a_seed_count():
    found = {tuple(np.asarray(random.key_data(random.key(s))).tolist()) for s in (7, 2**40 + 7, -1, 2**63)}
    assert len(found) == 4
    with pytest.raises(OverflowError):
        random.key(2**64)
    with pytest.raises(TypeError):
        random.key(1.5)


@pytest.mark.parametrize("name", DRAWS)
def test_same_under_every_transform(name):
    k = random.key(3)
    f = lambda k: DRAWS[name](random, k, jnp)
    want = np.asarray(f(k))
    same(atled.jit(f)(k), want)
    ks = random.split(random.key(9), 3)
    same(atled.vmap(f)(ks), np.stack([np.asarray(f(ks[i])) for i in range(3)]))


def test_keys_are_opaque_arrays():
    k = random.key(0)
    assert k.shape == () and random.split(k).shape == (2,) and random.split(k, (2, 3)).shape == (2, 3)
    ks = random.split(random.clone(k), 4)
    data = np.asarray(random.key_data(ks))
    same(random.key_data(ks[1:3]), data[1:3])
    same(random.key_data(jnp.stack([ks[3], ks[0]])), data[[3, 0]])
    same(random.key_data(jnp.concatenate([ks[:1], ks])), data[[0, 0, 1, 2, 3]])
    same(random.key_data(ks.reshape(2, 2).T), data.reshape(2, 2, 2).transpose(1, 0, 2))
    same(random.key_data(random.wrap_key_data(data)), data)
    for bad in (
        lambda: k + 1, lambda: jnp.sin(k), lambda: np.asarray(k), lambda: k.astype("uint32"),
        lambda: random.normal(ks, (3,)), lambda: random.normal(jnp.zeros(3), (3,)), lambda: random.normal(0, (3,)),
        lambda: atled.grad(lambda k: 1.0)(k),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            bad()


def test_raw_keys_work_too():
    raw = random.PRNGKey(5)
    same(raw, np.array([0, 5], "u4"))
    same(random.normal(raw, (3,)), random.normal(random.key(5), (3,)))
    assert random.split(raw).dtype == np.uint32 and random.fold_in(raw, 1).shape == (2,)


def test_using_a_key_twice_is_reported_with_both_lines():
    k = random.key(0)
    random.normal(k, (2,))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        random.uniform(k, (2,))
        random.fold_in(k, 1)
        random.normal(random.clone(k), (2,))
    assert len(seen) == 1 and str(seen[0].message).count("test_bits.py") == 2


def test_uses_that_are_fine_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k = random.key(0)
        for _ in range(3):
            k, sub = random.split(k)
            random.normal(sub, (2,))
        for i in range(3):
            random.normal(random.fold_in(k, i), (2,))
        atled.jit(lambda k: random.normal(k, (2,)) + random.uniform(k, (2,)))(k)


def test_moments():
    k1, k2, k3 = random.split(random.key(1), 3)
    u, z, b = random.uniform(k1, (100_000,)), random.normal(k2, (100_000,)), random.bernoulli(k3, 0.25, (100_000,))
    assert abs(float(u.mean()) - 0.5) < 5e-3 and abs(float(u.var()) - 1 / 12) < 2e-3
    assert abs(float(z.mean())) < 0.02 and abs(float(z.var()) - 1) < 0.02 and abs(float((z**4).mean()) - 3) < 0.15
    assert abs(float(b.mean()) - 0.25) < 5e-3


def test_bad_arguments():
    k = random.key(0)
    for bad, kind in [
        (lambda: random.choice(k, 5, (6,), replace=False), ValueError),
        (lambda: random.uniform(k, (2,), "int32"), ValueError),
        (lambda: random.randint(k, (2,), 0, 5, "float32"), TypeError),
        (lambda: random.uniform(k, (2,), minval=jnp.zeros(3)), ValueError),
        (lambda: random.bits(k, (2,), "int32"), ValueError),
        (lambda: random.key(0, impl="rbg"), NotImplementedError),
    ]:
        with pytest.raises(kind):
            bad()


def test_keys_have_no_order():
    """Their words were sorted apart, which made keys that nobody had split."""
    keys = random.split(random.key(3), 4)
    for f in (jnp.sort, jnp.argsort, jnp.unique, lax.sort, atled.vmap(lambda k: jnp.sort(k[None]))):
        with pytest.raises(TypeError, match="random keys have no order"):
            f(keys)
    order, moved = lax.sort((jnp.array([3, 1, 2, 0]), keys))  # but they move with others
    assert order.tolist() == [0, 1, 2, 3]
    assert random.key_data(moved).tolist() == random.key_data(keys)[np.array([3, 1, 2, 0])].tolist()
    mixed = random.permutation(random.key(0), keys)
    assert {*map(tuple, np.asarray(random.key_data(mixed)))} == {*map(tuple, np.asarray(random.key_data(keys)))}
