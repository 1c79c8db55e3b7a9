# Written by scripts/stubs.
from atled.metrics.classification import Accuracy as Accuracy
from atled.metrics.classification import ConfusionMatrix as ConfusionMatrix
from atled.metrics.classification import F1 as F1
from atled.metrics.classification import IoU as IoU
from atled.metrics.classification import Precision as Precision
from atled.metrics.classification import Recall as Recall
from atled.metrics.classification import TopK as TopK
from atled.metrics.means import Mean as Mean
from atled.metrics.means import Perplexity as Perplexity
from atled.metrics.means import R2 as R2
from atled.metrics.metric import Metric as Metric
from atled.metrics.ranking import AUC as AUC
from atled.metrics.ranking import AveragePrecision as AveragePrecision
from atled.metrics.ranking import auc as auc
from atled.metrics.ranking import average_precision as average_precision

__all__ = [
    "AUC",
    "Accuracy",
    "AveragePrecision",
    "ConfusionMatrix",
    "F1",
    "IoU",
    "Mean",
    "Metric",
    "Perplexity",
    "Precision",
    "R2",
    "Recall",
    "TopK",
    "auc",
    "average_precision",
]
