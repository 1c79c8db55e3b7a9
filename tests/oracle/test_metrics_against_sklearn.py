"""Metrics against scikit-learn, on random problems with ties, rare classes and classes that do not occur."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from atled import metrics

sk = pytest.importorskip("sklearn.metrics")
SEEDS = pytest.mark.parametrize("seed", range(8))


def close(got, want) -> None:
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-14)


def classes(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    r = np.random.RandomState(seed)
    count = r.randint(2, 7)
    odds = r.dirichlet(np.ones(count) * 0.5)
    n = r.randint(3, 200)
    labels = r.choice(count, n, p=odds)
    return np.where(r.rand(n) < 0.5, labels, r.choice(count, n)), labels, count


@SEEDS
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
@pytest.mark.parametrize("zero", [0.0, 1.0, np.nan])
def test_classes(seed, average, zero):
    predicted, labels, count = classes(seed)
    more = {"labels": np.arange(count), "average": average, "zero_division": zero}
    peers = ((metrics.Precision, sk.precision_score), (metrics.Recall, sk.recall_score), (metrics.F1, sk.f1_score))
    for ours, theirs in peers:
        close(ours(count, average, zero).update(predicted, labels).compute(), theirs(labels, predicted, **more))
    if zero == zero:
        more["zero_division"] = zero
        want = sk.jaccard_score(labels, predicted, **more)
        close(metrics.IoU(count, average, zero).update(predicted, labels).compute(), want)


@SEEDS
def test_two_classes_and_counts(seed):
    predicted, labels, count = classes(seed)
    close(metrics.Accuracy().update(predicted, labels).compute(), sk.accuracy_score(labels, predicted))
    matrix = metrics.ConfusionMatrix(count).update(predicted, labels).compute()
    close(matrix, sk.confusion_matrix(labels, predicted, labels=np.arange(count)))
    p, y = predicted % 2, labels % 2
    for ours, theirs in (
        (metrics.Precision, sk.precision_score),
        (metrics.Recall, sk.recall_score),
        (metrics.F1, sk.f1_score),
    ):
        close(ours().update(p, y).compute(), theirs(y, p, zero_division=0.0))
    close(metrics.IoU(2, "binary").update(p, y).compute(), sk.jaccard_score(y, p, zero_division=0.0))


@SEEDS
def test_top_k(seed):
    r = np.random.RandomState(seed)
    scores, labels = r.randn(50, 6), r.randint(0, 6, 50)
    for k in (1, 2, 5):
        got = metrics.TopK(k).update(scores, labels).compute()
        close(got, sk.top_k_accuracy_score(labels, scores, k=k, labels=np.arange(6)))


@SEEDS
@pytest.mark.parametrize("digits", [0, 1, 8])  # of the scores: few make many ties
def test_rankings(seed, digits):
    r = np.random.RandomState(seed)
    n = r.randint(5, 400)
    labels = r.randint(0, 2, n)
    labels[:2] = 0, 1
    scores = np.round(r.randn(n) + labels, digits).astype("f4")
    auc, precision = sk.roc_auc_score(labels, scores), sk.average_precision_score(labels, scores)
    close(metrics.auc(scores, labels), auc)
    close(metrics.average_precision(scores, labels), precision)
    half = n // 2
    for ours, want in ((metrics.AUC(500), auc), (metrics.AveragePrecision(400), precision)):
        first, second = ours.update(scores[:half], labels[:half]), ours.update(scores[half:], labels[half:])
        close((first | second).compute(), want)
        close(first.update(scores[half:], labels[half:]).compute(), want)


@SEEDS
def test_numbers(seed):
    r = np.random.RandomState(seed)
    x, y = r.randn(30), r.randn(30)
    close(metrics.R2().update(x[:7], y[:7]).update(x[7:], y[7:]).compute(), sk.r2_score(y, x))
    logits, labels = r.randn(30, 4), r.randint(0, 4, 30)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    want = np.exp(sk.log_loss(labels, p, labels=np.arange(4)))
    np.testing.assert_allclose(metrics.Perplexity().update(logits, labels).compute(), want, rtol=1e-10)


def test_constant_targets():
    same = np.ones(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert metrics.R2().update(same, same).compute() == sk.r2_score(same, same)
        assert metrics.R2().update(np.arange(4.0), same).compute() == sk.r2_score(same, np.arange(4.0))
