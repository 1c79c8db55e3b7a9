"""Odd cases of single metrics: counts that do not saturate, zero denominators, ties, NaN, labels out of range."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import metrics


def test_counts_do_not_saturate():
    many = 10**12
    accuracy = metrics.Accuracy(hits=jnp.asarray(many, "int64"), count=jnp.asarray(2 * many, "int64"))
    after = atled.jit(lambda m: m.update(jnp.array([1, 1]), jnp.array([1, 0])))(accuracy)
    assert int(after.hits) == many + 1 and int(after.count) == 2 * many + 2
    assert int((after | after).hits) == 2 * many + 2
    mean = metrics.Mean(total=jnp.asarray(float(many), "float64"), weight=jnp.asarray(float(many), "float64"))
    assert float(mean.update(jnp.ones(3)).total) == many + 3
    matrix = metrics.ConfusionMatrix(2, counts=jnp.full((2, 2), many, "int64")).update(jnp.array([1]), jnp.array([0]))
    assert matrix.compute().tolist() == [[many, many + 1], [many, many]]
    f1 = metrics.F1(**{n: jnp.full(2, many, "int64") for n in ("hits", "predicted", "actual")})
    assert int(f1.update(jnp.array([1]), jnp.array([1])).hits[1]) == many + 1


def test_sums_of_float32_are_exact():
    x = np.full(2**20, 0.1, "f4")
    mean = metrics.Mean()
    for _ in range(4):
        mean = mean.update(x)
    assert float(mean.compute()) == float(np.float32(0.1))


def test_mean():
    x, w = np.array([1.0, 2.0, 5.0], "f4"), np.array([1, 0, 3])
    assert float(metrics.Mean().update(x, weights=w).compute()) == 4
    assert float(metrics.Mean().update(x, weights=w, where=np.array([True, True, False])).compute()) == 1
    assert float(metrics.Mean().update(3).update(True).compute()) == 2
    assert np.isnan(metrics.Mean().update(x, weights=0).compute())
    assert np.isnan(metrics.Mean().update(np.array([1.0, np.nan], "f4")).compute())
    assert np.isinf(metrics.Mean().update(np.array([1.0, np.inf], "f4")).compute())
    with pytest.raises(TypeError, match="Mean: the values must be real numbers; got c64"):
        metrics.Mean().update(jnp.ones(2, "complex64"))
    with pytest.raises(ValueError, match=r"Mean: weights must have the shape of the examples, \(3,\)"):
        metrics.Mean().update(x, weights=np.ones((3, 1)))


def test_scores_that_are_nan_are_mistakes():
    scores, labels = np.array([[np.nan, 0.0], [0.0, np.nan], [0.0, 1.0]], "f4"), np.array([0, 1, 1])
    assert float(metrics.Accuracy().update(scores, labels).compute()) == pytest.approx(1 / 3)
    assert float(metrics.TopK(2).update(scores, labels).compute()) == pytest.approx(1 / 3)
    assert float(metrics.Recall().update(scores, labels).compute()) == 0.5
    assert float(metrics.Precision().update(scores, labels).compute()) == 1
    assert metrics.ConfusionMatrix(2).update(scores, labels).compute().tolist() == [[0, 0], [0, 1]]
    one = np.array([np.nan, 0.9], "f4")
    assert float(metrics.Accuracy(0.5).update(one, np.array([0, 1])).compute()) == 0.5


def test_of_equal_scores_the_first_is_higher():
    scores, labels = np.zeros((3, 3), "f4"), np.array([0, 1, 2])
    for k, want in ((1, 1 / 3), (2, 2 / 3), (3, 1), (9, 1)):
        assert float(metrics.TopK(k).update(scores, labels).compute()) == pytest.approx(want)
    assert float(metrics.Accuracy().update(scores, labels).compute()) == pytest.approx(1 / 3)


@pytest.mark.parametrize("bad", [-1, 3, 7])
def test_labels_out_of_range(bad):
    predicted, labels = np.array([0, 1, 2, 2]), np.array([0, 1, bad, 2])
    assert float(metrics.Accuracy().update(predicted, labels).compute()) == 0.75
    assert float(metrics.TopK(3).update(np.eye(3, dtype="f4")[predicted], labels).compute()) == 0.75
    for made in (metrics.Precision, metrics.Recall, metrics.F1, metrics.IoU):
        for average in ("micro", "macro", "weighted", None):
            assert np.isnan(made(3, average).update(predicted, labels).compute()).all()
            assert np.isfinite(made(3, average).update(predicted, labels, where=labels != bad).compute()).all()
    matrix = metrics.ConfusionMatrix(3)
    with pytest.raises(ValueError, match=r"classes must be 0 or more and less than 3; 1 predictions"):
        matrix.update(predicted, labels).compute()
    assert (atled.jit(lambda m: m.update(predicted, labels).compute())(matrix) == -1).all()
    assert matrix.update(predicted, labels, where=labels != bad).compute().tolist() == np.eye(3).tolist()
    assert np.isnan(metrics.auc(np.array([0.1, 0.2, 0.3, 0.4], "f4"), np.array([0, 1, bad, 1])))
    assert np.isnan(metrics.AUC(9).update(np.array([0.1, 0.2, 0.3, 0.4], "f4"), np.array([0, 1, bad, 1])).compute())


def test_zero_denominators():
    """Class 1 is never predicted, class 2 never a label, class 3 neither."""
    predicted, labels = np.array([0, 2, 0]), np.array([0, 1, 1])
    for zero in (0.0, 1.0):
        got = metrics.Precision(4, None, zero).update(predicted, labels).compute()
        assert got.tolist() == [0.5, zero, 0, zero]
        assert metrics.Recall(4, None, zero).update(predicted, labels).compute().tolist() == [1, 0, zero, zero]
        assert metrics.F1(4, None, zero).update(predicted, labels).compute()[3] == zero
    left_out = metrics.Precision(4, "macro", np.nan).update(predicted, labels)
    assert float(left_out.compute()) == 0.25
    assert float(metrics.Precision(zero_division=1.0).update(np.array([0]), np.array([1])).compute()) == 1
    assert np.isnan(metrics.Precision(zero_division=np.nan).update(np.array([0]), np.array([1])).compute())


def test_r2():
    x = np.array([1.0, 2.0, 3.0], "f4")
    assert float(metrics.R2().update(x, x).compute()) == 1
    assert np.isnan(metrics.R2().update(x[:1], x[:1]).compute())
    same = np.ones(3, "f4")
    assert float(metrics.R2().update(same, same).compute()) == 1 and float(metrics.R2().update(x, same).compute()) == 0
    far = 1e8 + np.arange(1000.0)
    off = np.sin(np.arange(1000.0))
    metric = metrics.R2()
    for i in range(0, 1000, 100):
        metric = metric.update((far + off)[i : i + 100], far[i : i + 100])
    want = 1 - ((far + off - far) ** 2).sum() / ((np.arange(1000.0) - 499.5) ** 2).sum()
    assert float(metric.compute()) == pytest.approx(want, rel=1e-12)
    assert np.isnan(metrics.R2().update(np.array([1.0, np.nan]), np.array([1.0, 2.0])).compute())
    with pytest.raises(ValueError, match="R2: predictions and targets must have the same shape"):
        metrics.R2().update(x, x[:, None])


def test_rankings_at_the_edges():
    x = np.array([0.1, 0.5, 0.7], "f4")
    assert np.isnan(metrics.auc(x, np.ones(3, int))) and np.isnan(metrics.auc(x, np.zeros(3, int)))
    assert np.isnan(metrics.average_precision(x, np.zeros(3, int)))
    assert float(metrics.average_precision(x, np.ones(3, int))) == 1
    assert float(metrics.auc(np.zeros(4, "f4"), np.array([0, 1, 1, 0]))) == 0.5
    assert float(metrics.auc(np.array([-np.inf, np.inf, 0.0]), np.array([False, True, True]))) == 1
    assert float(metrics.auc(np.array([[1, 2], [3, 4]]), np.array([[0, 0], [1, 1]]))) == 1
    assert np.isnan(metrics.auc(np.array([0.1, np.nan]), np.array([0, 1])))
    assert np.isnan(metrics.auc(jnp.zeros(0), jnp.zeros(0, "int32")))
    mask = np.array([True, True, False])
    assert float(metrics.auc(np.array([0.0, 1.0, np.inf]), np.array([0, 1, 0]), where=mask)) == 1
    assert float(metrics.auc(np.array([0.0, 1.0, -np.inf]), np.array([0, 1, 1]), where=mask)) == 1


def test_a_store_that_is_full():
    x, y = np.array([0.1, 0.5, 0.7], "f4"), np.array([0, 1, 1])
    full = metrics.AUC(5).update(x, y)
    assert float(full.compute()) == 1
    for more in (full.update(x, y), full | full):
        with pytest.raises(ValueError, match=r"AUC: it holds at most 5 examples, but has seen 6.*\n(.*\n)*.*AUC\(6\)"):
            more.compute()
        assert np.isnan(atled.jit(lambda m: m.compute())(more))
    assert float(full.update(x, y, where=np.array([True, True, False])).compute()) == 1
    with pytest.raises(
        TypeError, match="AUC: scores are stored in float32, in which different scores may become equal; got f64"
    ):
        full.update(x.astype("f8"), y)
    fine = np.array([0.5, 0.5 + 1e-12])
    assert float(metrics.AUC(5, "float64").update(fine, np.array([0, 1])).compute()) == 1
    with pytest.raises(ValueError, match="AveragePrecision: size must be 1 or more; got 0"):
        metrics.AveragePrecision(0)


def test_settings_that_there_are_not():
    with pytest.raises(ValueError, match=r"Precision: average must be one of .*; got 'mean'"):
        metrics.Precision(3, "mean")
    with pytest.raises(ValueError, match=r"F1: the average 'binary' is for 2 classes; got 3[^✗]*F1\(3, 'macro'\)"):
        metrics.F1(3)
    with pytest.raises(ValueError, match=r"Accuracy: predictions for labels of the shape \(2,\) must be integers"):
        metrics.Accuracy().update(np.array([0.1, 0.2]), np.array([0, 1]))
    with pytest.raises(ValueError, match=r"Accuracy: predictions for labels of the shape \(2,\) must be scores"):
        metrics.Accuracy(0.5).update(np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(TypeError, match="Accuracy: the labels must be integers; got f64"):
        metrics.Accuracy().update(np.array([0, 1]), np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match="TopK: the scores must be numbers of the shape"):
        metrics.TopK(2).update(np.array([0, 1]), np.array([0, 1]))


def test_a_metric_is_a_value():
    empty = metrics.Accuracy()
    seen = empty.update(np.array([1]), np.array([1]))
    assert int(empty.count) == 0 and int(seen.count) == 1
    with pytest.raises(AttributeError):
        seen.count = 3
    step = atled.jit(lambda m, x, y: m.update(x, y))
    for _ in range(3):
        seen = step(seen, jnp.array([1]), jnp.array([0]))
    assert len(step.compiles) == 1 and float(seen.compute()) == 0.25
