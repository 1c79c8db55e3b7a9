"""Losses against optax: each number, and the gradients of a weighted sum of them, in float32, float64 and bfloat16."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import random
from atled.nn import losses

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

R = np.random.RandomState(0)
X, Y, Z = (R.randn(6, 7) for _ in range(3))
IDS, BITS, SIGNS = R.randint(0, 7, 6), R.randint(0, 2, (6, 7)), R.choice([-1, 1], (6, 7))
SOFT = np.exp(Y) / np.exp(Y).sum(-1, keepdims=True)


def each(f: Any, **options: Any) -> Any:
    return lambda *a: f(*a, reduction=None, **options)


def smoothed(x: Any, y: Any) -> Any:
    return optax.losses.softmax_cross_entropy(x, optax.losses.smooth_labels(jax.nn.one_hot(y, 7, dtype=x.dtype), 0.1))


def triplet(*a: Any) -> Any:
    return optax.losses.triplet_margin_loss(*a, eps=0.0)


CASES: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "cross_entropy": (
        each(losses.cross_entropy), optax.losses.softmax_cross_entropy_with_integer_labels, (3 * X, IDS),
    ),
    "cross_entropy, dense": (each(losses.cross_entropy), optax.losses.softmax_cross_entropy, (3 * X, SOFT)),
    "cross_entropy, smoothing": (each(losses.cross_entropy, label_smoothing=0.1), smoothed, (X, IDS)),
    "kl_divergence": (
        each(losses.kl_divergence), lambda x, y: optax.losses.kl_divergence(jax.nn.log_softmax(x), y), (X, SOFT),
    ),
    "kl_divergence, logs": (
        each(losses.kl_divergence, log_target=True),
        lambda x, y: optax.losses.kl_divergence_with_log_targets(jax.nn.log_softmax(x), jax.nn.log_softmax(y)),
        (X, Y),
    ),
    "binary_cross_entropy": (
        each(losses.binary_cross_entropy), optax.losses.sigmoid_binary_cross_entropy, (9 * X, BITS),
    ),
    "focal": (each(losses.focal), optax.losses.sigmoid_focal_loss, (3 * X, BITS)),
    "focal, alpha": (
        each(losses.focal, alpha=0.3, gamma=1.5),
        lambda x, y: optax.losses.sigmoid_focal_loss(x, y, alpha=0.3, gamma=1.5),
        (3 * X, BITS),
    ),
    "hinge": (each(losses.hinge), optax.losses.hinge_loss, (X, SIGNS)),
    "huber": (each(losses.huber, delta=0.7), lambda x, y: optax.losses.huber_loss(x, y, delta=0.7), (X, Y)),
    "log_cosh": (each(losses.log_cosh), optax.losses.log_cosh, (9 * X, Y)),
    "squared_error": (each(losses.squared_error), optax.losses.squared_error, (X, Y)),
    "cosine_distance": (each(losses.cosine_distance), optax.losses.cosine_distance, (X, Y)),
    "triplet": (each(losses.triplet), triplet, (X, Y, Z)),
}  # fmt: skip


def narrowed(args: tuple[Any, ...], dtype: str) -> list[Any]:
    return [x.astype(dtype) if x.dtype.kind == "f" else x for x in args]


def both(like: Any, f: Any, args: list[Any], grad: Any) -> tuple[np.ndarray, np.ndarray]:
    out = f(*args)
    weights = np.cos(np.arange(out.size)).reshape(out.shape)
    grads = grad(lambda x, *rest: like.sum(f(x, *rest) * weights.astype(f(x, *rest).dtype)))(*args)
    return np.asarray(out, "f8"), np.asarray(grads, "f8")


@pytest.mark.parametrize("name", CASES)
def test_float32_and_float64(name):
    ours, theirs, args = CASES[name]
    for dtype, limit in (("f4", 2e-5), ("f8", 1e-12)):
        got = both(jnp, ours, narrowed(args, dtype), atled.grad)
        with jax.enable_x64(dtype == "f8"):
            want = both(jax.numpy, theirs, [jax.numpy.asarray(x) for x in narrowed(args, dtype)], jax.grad)
        for a, b in zip(got, want, strict=True):
            assert abs(a - b).max() <= limit * max(1, abs(b).max()), (name, dtype, abs(a - b).max())


@pytest.mark.parametrize("name", CASES)
def test_bfloat16_is_no_worse(name):
    ours, theirs, args = CASES[name]
    short = [jax.numpy.asarray(x, "bfloat16") if x.dtype.kind == "f" else x for x in args]
    exact = [np.asarray(x, "f8") if x.dtype.name == "bfloat16" else x for x in short]
    want = both(jnp, ours, exact, atled.grad)
    got = both(jnp, ours, [jnp.asarray(np.asarray(x)) for x in short], atled.grad)
    peer = both(jax.numpy, theirs, short, jax.grad)
    for a, b, c in zip(got, peer, want, strict=True):
        assert abs(a - c).max() <= max(1.5 * abs(b - c).max(), 1e-6), (name, abs(a - c).max(), abs(b - c).max())


@functools.cache
def their_ctc(blank: int) -> Any:
    """The losses there and their gradients, without those of problems that have no solution."""

    def run(x: Any, off: Any, labels: Any, label_off: Any) -> Any:
        found = optax.losses.ctc_loss(x, off, labels, label_off, blank_id=blank)
        return jax.numpy.sum(jax.numpy.where(found < 1e4, found, 0)), found

    return jax.jit(jax.grad(run, has_aux=True))


@functools.cache
def our_ctc(blank: int) -> Any:
    def run(x: Any, labels: Any, lengths: Any, label_lengths: Any) -> Any:
        more = {"lengths": lengths, "label_lengths": label_lengths, "blank": blank}
        return losses.ctc(x, labels, **more, reduction="sum"), losses.ctc(x, labels, **more, reduction=None)

    return atled.jit(atled.grad(run, has_aux=True))


@pytest.mark.parametrize("seed", range(20))
def test_ctc(seed):
    """Random problems with odd lengths, repeated labels and padding; impossible ones are huge there, infinite here."""
    r = np.random.RandomState(seed)
    logits, blank = (2 * r.randn(3, 13, 4)).astype("f4"), seed % 4
    labels = r.choice([c for c in range(4) if c != blank], (3, 5))
    lengths, label_lengths = r.randint(1, 14, 3), r.randint(0, 6, 3)
    off = (np.arange(13) >= lengths[:, None]).astype("f4")
    label_off = (np.arange(5) >= label_lengths[:, None]).astype("f4")
    want_grads, want = map(np.asarray, their_ctc(blank)(logits, off, labels, label_off))
    grads, each = map(np.asarray, our_ctc(blank)(logits, labels, lengths, label_lengths))
    is_possible = want < 1e4
    assert (np.isfinite(each) == is_possible).all() and (each[~is_possible] == np.inf).all()
    np.testing.assert_allclose(each[is_possible], want[is_possible], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(grads, want_grads, atol=2e-5)


def test_ctc_by_key():
    """The same with our own random numbers, under jit and vmap."""
    logits, labels = random.normal(random.key(0), (3, 9, 4)), random.randint(random.key(1), (3, 3), 1, 4)
    want = optax.losses.ctc_loss(np.asarray(logits), np.zeros((3, 9)), np.asarray(labels), np.zeros((3, 3)))
    got = atled.jit(atled.vmap(lambda x, y: losses.ctc(x, y)))(logits, labels)
    np.testing.assert_allclose(got, want, rtol=2e-5)
