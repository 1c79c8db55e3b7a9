"""Metrics under attack: scores of one class, stores that would lose differences between scores."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import metrics

LABELS = jnp.array([0, 1, 1])


@pytest.mark.parametrize("metric", [metrics.Accuracy(), metrics.TopK(1)], ids=["Accuracy", "TopK"])
@pytest.mark.parametrize("count", [0, 1])
def test_one_column_is_no_axis_of_classes(metric, count):
    for dtype in ("float32", "int32"):
        with pytest.raises(ValueError, match=rf"must have length 2 or more; got .*\[3,{count}\]"):
            metric.update(jnp.ones((3, count), dtype), LABELS)


@pytest.mark.parametrize(
    "metric",
    [
        metrics.Precision(3, "macro"),
        metrics.Recall(3, None),
        metrics.F1(3, "micro"),
        metrics.IoU(3),
        metrics.ConfusionMatrix(3),
    ],
    ids=lambda metric: type(metric).__name__,
)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_axis_of_classes_has_the_length_of_classes(metric, count):
    with pytest.raises(ValueError, match=rf"must have length 3; got f32\[3,{count}\]"):
        metric.update(jnp.ones((3, count)), LABELS)
    metric.update(jnp.ones((3, 3)), LABELS).compute()


@pytest.mark.parametrize("store", [metrics.AUC, metrics.AveragePrecision])
def test_a_store_holds_what_its_dtype_holds(store):
    for dtype, other in [("bfloat16", "float16"), ("float16", "bfloat16"), ("int32", "float32")]:
        with pytest.raises(
            TypeError, match=f"scores are stored in {dtype}, in which different scores may become equal"
        ):
            store(10, dtype).update(jnp.array([0.1, 0.2, 0.3], other), LABELS)
    for dtype in ("bfloat16", "float16", "float32"):
        assert float(store(10).update(jnp.array([0.1, 0.2, 0.3], dtype), LABELS).compute()) == 1


def test_large_integers_as_scores_are_not_rounded():
    scores, labels = np.array([2**53, 2**53 + 1]), np.array([0, 1])
    for of in (metrics.auc, metrics.average_precision, metrics.AUC(4, "float64").update):
        with pytest.raises(ValueError, match=r"integers must be below 2\*\*53"):
            of(scores, labels)
        with pytest.raises(ValueError, match=r"integers must be below 2\*\*53"):
            of(-scores, labels)
    assert np.isnan(atled.jit(metrics.auc)(scores, labels))
    small = np.array([2**53 - 2, 2**53 - 1, 2**62])
    where = np.array([True, True, False])
    assert float(metrics.auc(small, np.array([0, 1, 0]), where=where)) == 1
    assert float(atled.jit(metrics.auc)(small[:2], labels)) == 1


def test_a_label_out_of_range_is_never_a_hit():
    padded = jnp.array([-100, -100, -1, 0])
    accuracy = metrics.Accuracy().update(jnp.array([-100, -100, -1, 1]), padded)
    assert float(accuracy.compute()) == 0.0
    assert float(metrics.Accuracy().update(jnp.array([0, 0, 0, 0]), padded).compute()) == 0.25
