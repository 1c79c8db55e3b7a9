"""What holds for every metric: any split of the examples gives the same, in all transforms; padding counts nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, metrics, tree

R = np.random.RandomState(0)
N = 24
SCORES = np.round(R.randn(N, 5), 1).astype("f4")
IDS, BITS = R.randint(0, 5, N), R.randint(0, 2, N)
ONE = SCORES[:, 0]
METRICS: dict[str, tuple[Any, tuple[Any, ...]]] = {  # an empty metric, and all examples
    "Mean": (metrics.Mean(), (ONE,)),
    "Perplexity": (metrics.Perplexity(), (SCORES, IDS)),
    "R2": (metrics.R2(), (ONE, ONE + SCORES[:, 1])),
    "Accuracy": (metrics.Accuracy(), (SCORES, IDS)),
    "Accuracy, threshold": (metrics.Accuracy(0.2), (ONE, BITS)),
    "TopK": (metrics.TopK(2), (SCORES, IDS)),
    "Precision": (metrics.Precision(5, "macro"), (SCORES, IDS)),
    "Recall": (metrics.Recall(5, "weighted"), (SCORES, IDS)),
    "F1": (metrics.F1(), (BITS, IDS % 2)),
    "IoU": (metrics.IoU(5), (SCORES, IDS)),
    "ConfusionMatrix": (metrics.ConfusionMatrix(5), (SCORES, IDS)),
    "AUC": (metrics.AUC(40), (ONE, BITS)),
    "AveragePrecision": (metrics.AveragePrecision(40), (ONE, BITS)),
}
EACH = pytest.mark.parametrize("name", METRICS)


def cut(args: tuple[Any, ...], start: int, stop: int) -> tuple[Any, ...]:
    return tuple([x[start:stop] for x in args])


def check(metric: Any, want: Any) -> None:
    np.testing.assert_allclose(metric.compute(), want, rtol=1e-12)


@EACH
def test_any_split_gives_the_same(name):
    empty, args = METRICS[name]
    update = atled.jit(lambda m, *a: m.update(*a))
    whole = empty.update(*args)
    want = whole.compute()
    for places in ((0, N), (0, 1, N), (0, 7, 7, 20, N)):
        parts = [cut(args, a, b) for a, b in itertools.pairwise(places)]
        one = empty
        for part in parts:
            one = one.update(*part)
        check(one, want)
        merged = empty
        for part in parts:
            merged = update(empty, *part) | merged
        check(merged, want)
    check(whole.merge(empty), want)
    check(empty | whole, want)


@EACH
def test_padding_counts_nothing(name):
    empty, args = METRICS[name]
    want = empty.update(*args).compute()
    mask = np.arange(N + 6) < N
    for fill in (0, np.nan, -1):
        padded = [
            np.concatenate([x, np.full((6, *x.shape[1:]), 99 if x.dtype.kind == "i" else fill, x.dtype)]) for x in args
        ]
        check(empty.update(*padded, where=mask), want)
        check(atled.jit(lambda m, w, *a: m.update(*a, where=w))(empty, mask, *padded), want)
    nothing = empty.update(*args, where=np.zeros(N, bool))
    for a, b in zip(tree.leaves(nothing), tree.leaves(empty), strict=True):
        np.testing.assert_array_equal(a, b)


@EACH
def test_in_a_scan_and_in_vmap(name):
    empty, args = METRICS[name]
    want = empty.update(*args).compute()
    batches = [x.reshape(4, 6, *x.shape[1:]) for x in args]
    last, _ = atled.jit(lambda m, b: lax.scan(lambda m, b: (m.update(*b), None), m, b))(empty, tuple(batches))
    check(last, want)
    each = atled.vmap(lambda *b: empty.update(*b))(*batches)
    for i in range(4):
        check(tree.map(lambda x, i=i: x[i], each), empty.update(*[b[i] for b in batches]).compute())
    results = atled.vmap(lambda *b: empty.update(*b).compute())(*batches)
    np.testing.assert_allclose(results[2], empty.update(*[b[2] for b in batches]).compute(), rtol=1e-12)
    over = atled.vmap(lambda *b: empty.update(*b).reduce("lanes"), axis_name="lanes")(*batches)
    for i in range(4):
        check(tree.map(lambda x, i=i: x[i], over), want)


@EACH
def test_types_do_not_change(name):
    """Neither by updates nor by the default width."""
    empty, args = METRICS[name]
    with atled.enable_x64():
        other = empty.update(*args)
    for a, b, c in zip(*[tree.leaves(m) for m in (empty, empty.update(*args), other)], strict=True):
        assert a.dtype == b.dtype == c.dtype and a.shape == b.shape == c.shape
    result = empty.update(*args).compute()
    assert result.dtype == ("int64" if name == "ConfusionMatrix" else "float64")


@EACH
def test_an_empty_metric(name):
    result = METRICS[name][0].compute()
    assert not result.any() if name == "ConfusionMatrix" else np.isnan(result).all()


@EACH
def test_half_precision(name):
    empty, args = METRICS[name]
    short = [jnp.asarray(x).astype("bfloat16") if x.dtype.kind == "f" else x for x in args]
    exact = [np.asarray(x).astype("f4") if x.dtype == "bfloat16" else x for x in short]
    np.testing.assert_allclose(empty.update(*short).compute(), empty.update(*exact).compute(), rtol=1e-6)


@EACH
def test_one_process_gathers_itself(name):
    empty, args = METRICS[name]
    check(empty.update(*args).gather(), empty.update(*args).compute())


@EACH
def test_refusals(name):
    empty, args = METRICS[name]
    other = metrics.Mean() if name != "Mean" else metrics.R2()
    with pytest.raises(
        TypeError, match=rf"it can only be merged with a {type(empty).__name__}; got {type(other).__name__}"
    ):
        empty | other
    with pytest.raises(TypeError, match="where must be booleans; got i"):
        empty.update(*args, where=np.ones(N, "i4"))
    with pytest.raises(ValueError, match=r"where must have the shape of the (examples|losses)"):
        empty.update(*args, where=np.ones((N, 1), bool))
    with pytest.raises((TypeError, ValueError), match=r"must"):
        empty.update(None, *args[1:])
    if len(args) == 2:
        with pytest.raises((TypeError, ValueError), match=r"must"):
            empty.update(args[0], args[1][:-1])


def test_metrics_with_other_settings_do_not_merge():
    for a, b in (
        (metrics.TopK(2), metrics.TopK(3)),
        (metrics.F1(3, "macro"), metrics.F1(4, "macro")),
        (metrics.F1(3, "macro"), metrics.F1(3, "micro")),
        (metrics.AUC(10), metrics.AUC(20)),
        (metrics.Accuracy(0.5), metrics.Accuracy()),
    ):
        with pytest.raises(ValueError, match=r"\w+: two metrics must have the same settings to be merged"):
            a | b
