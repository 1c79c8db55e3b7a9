"""Losses against those of PyTorch, in float64: each number, and gradients by all floating arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_rows import torch

import atled
import atled.numpy as jnp
from atled.nn import losses

F = torch.nn.functional
R = np.random.RandomState(0)
X, Y, Z = (R.randn(6, 7) for _ in range(3))
IDS, BITS, SIGNS = R.randint(0, 7, 6), R.randint(0, 2, (6, 7)), R.choice([-1, 1], 6)
SOFT = np.exp(Y) / np.exp(Y).sum(-1, keepdims=True)
WEIGHTS = R.rand(7) + 0.5
NONE = {"reduction": "none"}


def each(f: Any, **options: Any) -> Any:
    return lambda *a: f(*a, reduction=None, **options)


def peer(f: Any, **options: Any) -> Any:
    return lambda *a: f(*a, reduction="none", **options)


def info_nce(x: Any, y: Any) -> Any:
    logits = F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).T / 0.2
    at = torch.arange(len(x))
    return (F.cross_entropy(logits, at, **NONE) + F.cross_entropy(logits.T, at, **NONE)) / 2


CASES: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "cross_entropy": (each(losses.cross_entropy), peer(F.cross_entropy), (3 * X, IDS)),
    "cross_entropy, smoothing": (
        each(losses.cross_entropy, label_smoothing=0.2), peer(F.cross_entropy, label_smoothing=0.2), (3 * X, IDS),
    ),
    "cross_entropy, dense": (each(losses.cross_entropy), peer(F.cross_entropy), (3 * X, SOFT)),
    "cross_entropy, weights": (
        lambda x, y: losses.cross_entropy(x, y, weights=WEIGHTS[y]),
        lambda x, y: F.cross_entropy(x, y, weight=torch.tensor(WEIGHTS)),
        (X, IDS),
    ),
    "cross_entropy, ignored": (
        lambda x, y: losses.cross_entropy(x, y, where=y != 3),
        lambda x, y: F.cross_entropy(x, y, ignore_index=3),
        (X, IDS),
    ),
    "linear_cross_entropy": (
        lambda x, w, y: losses.linear_cross_entropy(x, w, y, chunk_size=4, label_smoothing=0.1),
        lambda x, w, y: F.cross_entropy(x @ w.T, y, label_smoothing=0.1),
        (X, Y, IDS % 6),
    ),
    "kl_divergence": (
        each(losses.kl_divergence), lambda x, y: F.kl_div(F.log_softmax(x, -1), y, **NONE).sum(-1), (X, SOFT),
    ),
    "binary_cross_entropy": (
        each(losses.binary_cross_entropy),
        lambda x, y: F.binary_cross_entropy_with_logits(x, y.double(), **NONE),
        (9 * X, BITS),
    ),
    "huber": (each(losses.huber, delta=0.6), peer(F.huber_loss, delta=0.6), (X, Y)),
    "smooth_l1": (each(losses.smooth_l1, beta=0.6), peer(F.smooth_l1_loss, beta=0.6), (X, Y)),
    "smooth_l1, 0": (each(losses.smooth_l1, beta=0.0), peer(F.smooth_l1_loss, beta=0.0), (X, Y)),
    "squared_error": (each(losses.squared_error), peer(F.mse_loss), (X, Y)),
    "absolute_error": (each(losses.absolute_error), peer(F.l1_loss), (X, Y)),
    "poisson": (each(losses.poisson), peer(F.poisson_nll_loss), (X, BITS)),
    "cosine_embedding": (
        each(losses.cosine_embedding, margin=0.1), peer(F.cosine_embedding_loss, margin=0.1), (X, Y, SIGNS),
    ),
    "triplet": (each(losses.triplet), peer(F.triplet_margin_loss, eps=0.0), (X, Y, Z)),
    "info_nce": (each(losses.info_nce, temperature=0.2, symmetric=True), info_nce, (X, Y)),
    "hinge": (each(losses.hinge), lambda x, y: (1 - x * y).clamp(min=0), (X[:, 0], SIGNS)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_numbers_and_gradients(name):
    ours, theirs, args = CASES[name]
    floats = tuple([i for i, x in enumerate(args) if x.dtype.kind == "f"])
    out = ours(*args)
    weights = np.cos(np.arange(out.size)).reshape(out.shape)
    grads = atled.grad(lambda *a: jnp.sum(ours(*a) * weights), floats)(*args)
    there = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in args]
    want = theirs(*there)
    (want * torch.tensor(weights)).sum().backward()
    # their cosines have 1e-8 and 1e-12 in their denominators
    limit = 1e-6 if "cosine" in name else 1e-10
    np.testing.assert_allclose(out, want.detach().numpy(), rtol=limit, atol=limit)
    for i, g in zip(floats, grads, strict=True):
        np.testing.assert_allclose(g, there[i].grad.numpy(), rtol=limit, atol=limit)


@pytest.mark.parametrize("seed", range(20))
def test_ctc(seed):
    r = np.random.RandomState(100 + seed)
    batch, steps, count, classes = r.randint(1, 4), r.randint(1, 14), r.randint(1, 6), r.randint(2, 5)
    logits, blank = 2 * r.randn(batch, steps, classes), int(r.randint(classes))
    labels = r.choice([c for c in range(classes) if c != blank], (batch, count))
    lengths, label_lengths = r.randint(1, steps + 1, batch), r.randint(0, count + 1, batch)
    more = {"lengths": lengths, "label_lengths": label_lengths, "blank": blank}
    each = np.asarray(losses.ctc(logits, labels, **more, reduction=None))
    x = torch.tensor(logits, requires_grad=True)
    given = [torch.tensor(a) for a in (labels, lengths, label_lengths)]
    logs = F.log_softmax(x, -1).transpose(0, 1)
    np.testing.assert_allclose(each, F.ctc_loss(logs, *given, blank=blank, **NONE).detach().numpy(), rtol=1e-10)
    F.ctc_loss(logs, *given, blank=blank, reduction="sum", zero_infinity=True).backward()
    grads = atled.grad(lambda x: losses.ctc(x, labels, **more, reduction="sum"))(logits)
    np.testing.assert_allclose(grads, x.grad.numpy(), atol=1e-10)
