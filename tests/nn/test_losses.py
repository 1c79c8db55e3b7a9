"""Losses: the rules that hold for all of them, what they refuse, and odd cases of each."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, nn
from atled.nn import losses

R = np.random.RandomState(0)
X, Y, Z = (R.randn(3, 4, 5).astype("f4") for _ in range(3))
IDS = R.randint(0, 5, (3, 4))
SIGNS = R.choice([-1, 1], (3, 4))
BITS = R.randint(0, 2, (3, 4, 5))
SOFT = np.exp(Y) / np.exp(Y).sum(-1, keepdims=True)


def rows(f: Any) -> Any:
    """A loss of (rows, features), as one of all rows of X."""
    return lambda *a, **o: f(*[x if x is None else x.reshape(12, -1) for x in a], **o)


# a loss, its floating arguments, the others, and the shape of its losses
LOSSES: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]] = {
    "squared_error": (losses.squared_error, (X, Y), (), (3, 4, 5)),
    "absolute_error": (losses.absolute_error, (X, Y), (), (3, 4, 5)),
    "huber": (losses.huber, (X, Y), (), (3, 4, 5)),
    "smooth_l1": (losses.smooth_l1, (X, Y), (), (3, 4, 5)),
    "log_cosh": (losses.log_cosh, (X, Y), (), (3, 4, 5)),
    "poisson": (losses.poisson, (X,), (BITS,), (3, 4, 5)),
    "cross_entropy": (losses.cross_entropy, (X,), (IDS,), (3, 4)),
    "cross_entropy, all": (
        lambda *a, **o: losses.cross_entropy(*a, label_smoothing=0.1, z_loss=0.01, **o), (X,), (IDS,), (3, 4)
    ),
    "cross_entropy, dense": (losses.cross_entropy, (X, SOFT), (), (3, 4)),
    "kl_divergence": (losses.kl_divergence, (X, SOFT), (), (3, 4)),
    "kl_divergence, logs": (lambda *a, **o: losses.kl_divergence(*a, log_target=True, **o), (X, Y), (), (3, 4)),
    "binary_cross_entropy": (losses.binary_cross_entropy, (X,), (BITS,), (3, 4, 5)),
    "focal": (losses.focal, (X,), (BITS,), (3, 4, 5)),
    "hinge": (losses.hinge, (X[..., 0],), (SIGNS,), (3, 4)),
    "squared_hinge": (losses.squared_hinge, (X[..., 0],), (SIGNS,), (3, 4)),
    "cosine_distance": (losses.cosine_distance, (X, Y), (), (3, 4)),
    "cosine_embedding": (losses.cosine_embedding, (X, Y), (SIGNS,), (3, 4)),
    "contrastive": (losses.contrastive, (X, Y), (SIGNS,), (3, 4)),
    "triplet": (losses.triplet, (X, Y, Z), (), (3, 4)),
    "info_nce": (rows(losses.info_nce), (X, Y), (), (12,)),
    "info_nce, symmetric": (rows(lambda *a, **o: losses.info_nce(*a, symmetric=True, **o)), (X, Y), (), (12,)),
    "ctc": (losses.ctc, (X,), (1 + IDS[:, :2] % 4,), (3,)),
    "linear_cross_entropy": (
        lambda x, w, y, **o: losses.linear_cross_entropy(x, w, y, chunk_size=5, **o), (X, Y[0]), (IDS % 4,), (3, 4)
    ),
}  # fmt: skip
PARAMETERS = pytest.mark.parametrize("name", LOSSES)


def run(name: str, *floats: Any, **options: Any) -> Any:
    f, _, others, _ = LOSSES[name]
    return f(*floats, *others, **options)


def wide(name: str) -> tuple[Any, ...]:
    return tuple([x.astype("f8") for x in LOSSES[name][1]])


@PARAMETERS
def test_reductions(name):
    floats, shape = wide(name), LOSSES[name][3]
    each = np.asarray(run(name, *floats, reduction=None))
    assert each.shape == shape and each.dtype == np.float64
    np.testing.assert_allclose(run(name, *floats), each.mean(), rtol=1e-12)
    np.testing.assert_allclose(run(name, *floats, reduction="sum"), each.sum(), rtol=1e-12)
    weights = np.linspace(0.5, 2, each.size).reshape(shape)
    np.testing.assert_allclose(run(name, *floats, weights=weights, reduction=None), each * weights, rtol=1e-12)
    np.testing.assert_allclose(run(name, *floats, weights=weights), (each * weights).sum() / weights.sum(), rtol=1e-12)
    np.testing.assert_allclose(run(name, *floats, weights=3), each.mean(), rtol=1e-12)
    if not name.startswith("info_nce"):  # rows that are left out are not found either
        mask = np.arange(each.size).reshape(shape) % 3 == 1
        kept = np.where(mask, each, 0)
        np.testing.assert_allclose(run(name, *floats, where=mask, reduction=None), kept, rtol=1e-12)
        np.testing.assert_allclose(run(name, *floats, where=mask), each[mask].mean(), rtol=1e-12)
        np.testing.assert_allclose(
            run(name, *floats, where=mask, weights=weights), (kept * weights).sum() / weights[mask].sum(), rtol=1e-12
        )
    with pytest.raises(ValueError, match="reduction must be 'mean', 'sum' or None; got 'none'"):
        run(name, *floats, reduction="none")


@PARAMETERS
def test_jit_and_vmap_give_the_same(name):
    floats = wide(name)
    want = run(name, *floats, reduction=None)
    np.testing.assert_allclose(atled.jit(lambda *a: run(name, *a, reduction=None))(*floats), want, rtol=1e-12)
    np.testing.assert_allclose(atled.jit(lambda *a: run(name, *a))(*floats), np.mean(want), rtol=1e-12)
    lanes = [np.stack([x, 0.5 * x]) for x in floats]
    got = atled.vmap(lambda *a: run(name, *a))(*lanes)
    np.testing.assert_allclose(got, [run(name, *[x[i] for x in lanes]) for i in range(2)], rtol=1e-12)


def difference(f: Any, args: tuple[Any, ...], moves: tuple[Any, ...], step: float) -> float:
    up, down = ([x + s * step * m for x, m in zip(args, moves)] for s in (1, -1))
    return float((f(*up) - f(*down)) / (2 * step))


@PARAMETERS
@pytest.mark.parametrize("reduction", ["mean", None])
def test_gradients_are_those_of_differences(name, reduction):
    floats, shape = wide(name), LOSSES[name][3]
    weights = np.linspace(-1, 2, int(np.prod(shape))).reshape(shape)
    f = (
        (lambda *a: run(name, *a, weights=abs(weights) + 1))
        if reduction
        else (lambda *a: jnp.sum(weights * run(name, *a, reduction=None)))
    )
    every = tuple(range(len(floats)))
    moves = tuple([np.random.RandomState(i).randn(*x.shape) for i, x in enumerate(floats)])
    if name == "kl_divergence" or name.endswith("dense"):
        moves = (moves[0], moves[1] * floats[1])
    grads = atled.jit(atled.grad(f, every))(*floats)
    slope = sum([np.sum(np.asarray(g) * m) for g, m in zip(grads, moves)])
    np.testing.assert_allclose(slope, difference(f, floats, moves, 1e-6), rtol=2e-6, atol=1e-8)
    second = atled.grad(lambda *a: sum([jnp.sum(g * m) for g, m in zip(atled.grad(f, every)(*a), moves)]), every)(
        *floats
    )
    if reduction is None:
        return
    along = lambda *a: sum([np.sum(np.asarray(g) * m) for g, m in zip(atled.grad(f, every)(*a), moves)])
    bend = sum([np.sum(np.asarray(g) * m) for g, m in zip(second, moves)])
    np.testing.assert_allclose(bend, difference(along, floats, moves, 1e-5), rtol=2e-5, atol=1e-6)


@PARAMETERS
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_left_out_has_no_influence(name, bad):
    _, floats, _, shape = LOSSES[name]
    mask = np.ones(shape, bool)
    mask[0] = False
    spoilt = [x.copy() for x in floats]
    is_shared = name == "linear_cross_entropy"
    for x in spoilt[: 1 if is_shared else None]:
        x.reshape(mask.shape[0], -1)[0] = bad
    every = tuple(range(len(floats)))
    for reduction in ("mean", "sum"):
        f = atled.value_and_grad(lambda *a, r=reduction: run(name, *a, where=mask, reduction=r), every)
        value, grads = f(*floats)
        for g in (f, atled.jit(f)):
            got, got_grads = g(*spoilt)
            np.testing.assert_allclose(got, value, rtol=1e-5)
            for a, b in zip(got_grads, grads):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
        assert not np.asarray(grads[0]).reshape(mask.shape[0], -1)[0].any()


@PARAMETERS
@pytest.mark.parametrize("nothing", [{"where": False}, {"weights": 0}, {"where": False, "weights": 2.0}])
def test_a_mean_over_nothing_is_zero(name, nothing):
    floats = LOSSES[name][1]
    value, grads = atled.value_and_grad(lambda *a: run(name, *a, **nothing), tuple(range(len(floats))))(*floats)
    assert float(value) == 0 and not any([np.asarray(g).any() for g in grads])


def test_an_empty_batch():
    assert float(losses.cross_entropy(jnp.zeros((0, 3)), jnp.zeros(0, "int32"))) == 0
    assert float(losses.squared_error(jnp.zeros((0, 3)), jnp.zeros((0, 3)))) == 0
    assert float(losses.ctc(jnp.zeros((0, 4, 3)), jnp.zeros((0, 2), "int32"))) == 0
    x, w = jnp.zeros((0, 3)), jnp.ones((4, 3))
    value, grad = atled.value_and_grad(lambda w: losses.linear_cross_entropy(x, w, jnp.zeros(0, "int32")))(w)
    assert float(value) == 0 and not grad.any()


def test_weights_that_cancel_are_seen():
    assert np.isinf(losses.squared_error(jnp.array([1.0, 2.0]), jnp.zeros(2), weights=jnp.array([1, -1])))


@PARAMETERS
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_computed_in_float32(name, dtype):
    short = [jnp.asarray(x).astype(dtype) for x in LOSSES[name][1]]
    exact = [np.asarray(x, "f8") for x in short]
    every = tuple(range(len(short)))
    value, grads = atled.value_and_grad(lambda *a: run(name, *a), every)(*short)
    want, want_grads = atled.value_and_grad(lambda *a: run(name, *a), every)(*exact)
    assert value.dtype == "float32"
    np.testing.assert_allclose(value, want, rtol=2e-5)
    for a, b in zip(grads, want_grads):
        assert a.dtype == dtype
        b = np.asarray(b)
        np.testing.assert_allclose(np.asarray(a, "f8"), b, rtol=2e-2, atol=2e-2 * abs(b).max())


@PARAMETERS
def test_nan_stays(name):
    spoilt = [x.copy() for x in LOSSES[name][1]]
    spoilt[0].reshape(-1)[3] = np.nan
    if name in ("hinge", "squared_hinge"):
        spoilt[0][:] = np.nan
    assert np.isnan(run(name, *spoilt))


@PARAMETERS
def test_refusals(name):
    floats = LOSSES[name][1]
    with pytest.raises(TypeError, match="must be floating-point numbers; got i32"):
        run(name, *[x.astype("i4") for x in floats])
    with pytest.raises(TypeError, match=r"must be floating-point numbers; got (NoneType|None)"):
        run(name, None, *floats[1:])
    with pytest.raises(TypeError, match="where must be booleans; got i"):
        run(name, *floats, where=np.ones(LOSSES[name][3], "i4"))
    with pytest.raises(TypeError, match="weights must be numbers; got bool"):
        run(name, *floats, weights=np.ones(LOSSES[name][3], bool))
    for what in ({"where": np.ones((2, 2, 2, 2), bool)}, {"weights": np.ones((7,) * len(LOSSES[name][3]))}):
        with pytest.raises(ValueError, match="must have the shape of the losses"):
            run(name, *floats, **what)


def test_nothing_is_broadcast():
    with pytest.raises(ValueError, match=r"squared_error: the targets must have the shape of the predictions, \(3,\)"):
        losses.squared_error(jnp.ones(3), jnp.ones((3, 1)))
    with pytest.raises(ValueError, match=r"where must have the shape of the losses, \(3, 3\)"):
        losses.squared_error(jnp.ones((3, 3)), jnp.ones((3, 3)), where=jnp.ones(3, bool))
    with pytest.raises(ValueError, match="cosine_distance: the y must have the shape of x"):
        losses.cosine_distance(jnp.ones((3, 2)), jnp.ones(2))
    with pytest.raises(ValueError, match=r"the labels must have the shape of the logits without axis -1, \(3,\)"):
        losses.cross_entropy(jnp.ones((3, 2)), jnp.zeros((3, 1), "int32"))
    with pytest.raises(ValueError, match="labels must have the shape of the logits"):
        losses.cross_entropy(jnp.ones((3, 2)), jnp.zeros(3))
    with pytest.raises(TypeError, match="cross_entropy: the labels must be integers; got bool"):
        losses.cross_entropy(jnp.ones((3, 2)), jnp.zeros(3, bool))


def test_targets_of_any_width_do_not_widen():
    assert losses.squared_error(jnp.ones(3), np.ones(3)).dtype == "float32"
    assert losses.squared_error(jnp.ones(3, "bfloat16"), np.ones(3)).dtype == "float32"
    assert losses.squared_error(np.ones(3), jnp.ones(3, "bfloat16")).dtype == "float64"


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [5, -1])
def test_labels_out_of_range(bad):
    ids = IDS.copy()
    ids[1, 2] = bad
    with pytest.raises(ValueError, match=rf"losses.cross_entropy: labels.*{bad}"):
        losses.cross_entropy(X, ids)
    with pytest.raises(ValueError, match=rf"losses.linear_cross_entropy: labels.*{bad}"):
        losses.linear_cross_entropy(X, Y[0, :, :], np.where(ids == bad, bad, 0))
    mask = ids != bad
    good = losses.cross_entropy(X, IDS, where=mask)
    np.testing.assert_allclose(losses.cross_entropy(X, ids, where=mask), good)
    f = atled.jit(lambda x, y: (losses.cross_entropy(x, y, reduction=None), atled.grad(losses.cross_entropy)(x, y)))
    f(X, IDS)
    each, grads = f(X, ids)
    assert (np.isnan(each) == ~mask).all() and (np.isnan(grads) == ~mask[..., None]).all()
    f = atled.jit(atled.value_and_grad(losses.linear_cross_entropy))
    f(X, X[0], IDS % 4)
    value, grads = f(X, X[0], np.where(ids == bad, bad, IDS % 4))
    assert np.isnan(value) and (np.isnan(grads) == ~mask[..., None]).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_labels_of_any_width(dtype):
    x = R.randn(3, 300).astype("f4")
    ids = np.array([0, 100, 7])
    want = losses.cross_entropy(x, ids)
    assert float(losses.cross_entropy(x, ids.astype(dtype))) == float(want)
    np.testing.assert_allclose(
        losses.linear_cross_entropy(x, np.eye(300, dtype="f4"), ids.astype(dtype)), want, rtol=1e-6
    )


def test_cross_entropy_along_another_axis():
    want = losses.cross_entropy(X, IDS, label_smoothing=0.2)
    np.testing.assert_allclose(
        losses.cross_entropy(np.moveaxis(X, -1, 0), IDS, axis=0, label_smoothing=0.2), want, rtol=1e-6
    )
    dense = losses.cross_entropy(np.moveaxis(X, -1, 1), np.moveaxis(SOFT, -1, 1), axis=1, where=IDS > 0)
    np.testing.assert_allclose(dense, losses.cross_entropy(X, SOFT, where=IDS > 0), rtol=1e-6)
    with pytest.raises(ValueError, match=r"losses.cross_entropy"):
        losses.cross_entropy(X, IDS, axis=3)


def test_small_losses_are_exact():
    x = np.array([[1000.0, 992.0], [-1000.0, -1008.0]], "f4")
    for labels in (np.zeros(2, "i4"), np.array([[1.0, 0.0]] * 2, "f4")):
        each = losses.cross_entropy(x, labels, reduction=None)
        np.testing.assert_allclose(each, np.log1p(np.exp(-8.0)), atol=1.2e-7)
    each = losses.binary_cross_entropy(np.array([30.0, -30.0], "f4"), np.array([1, 0]), reduction=None)
    np.testing.assert_allclose(each, np.exp(-30.0), rtol=1e-5)
    small = losses.log_cosh(np.array([1e-4, 0.999, 1.001, 300], "f4"), np.zeros(4), reduction=None)
    np.testing.assert_allclose(small, [0.5e-8, *np.log(np.cosh(np.array([0.999, 1.001]))), 300 - np.log(2)], rtol=2e-6)


def test_logits_that_are_minus_infinity():
    x = np.array([[0.0, -np.inf, 1.0]], "f4")
    each, grads = atled.value_and_grad(losses.cross_entropy)(x, np.array([2]))
    np.testing.assert_allclose([each, *grads[0]], [0.3132617, 0.2689414, 0, -0.2689414], rtol=1e-5)
    each, grads = atled.value_and_grad(losses.cross_entropy)(x, np.array([[0.0, 0.0, 1.0]], "f4"))
    np.testing.assert_allclose([each, *grads[0]], [0.3132617, 0.2689414, 0, -0.2689414], rtol=1e-5)
    each, grads = atled.value_and_grad(losses.cross_entropy)(x, np.array([1]))
    assert np.isinf(each) and np.isfinite(grads).all()
    assert np.isfinite(losses.kl_divergence(x, np.array([[0.5, 0.0, 0.5]], "f4")))
    assert np.isinf(losses.kl_divergence(x, np.array([[0.5, 0.1, 0.4]], "f4")))


def test_settings_out_of_range():
    for call in (
        lambda: losses.cross_entropy(X, IDS, label_smoothing=1.5),
        lambda: losses.huber(X, Y, delta=-1),
        lambda: losses.focal(X, BITS, gamma=-2),
        lambda: losses.linear_cross_entropy(X, Y[0], IDS % 4, chunk_size=0),
        lambda: losses.ctc(X, IDS[:, :2], blank=5),
        lambda: losses.info_nce(X[0], Y[0], temperature=0),
    ):
        with pytest.raises(ValueError, match=r"losses\.\w+: (the )?\w+ must be (between|\d)"):
            call()
    for call in (
        lambda: losses.ctc(X, IDS),
        lambda: losses.ctc(X[0], IDS),
        lambda: losses.linear_cross_entropy(X, Y[0].T, IDS),
        lambda: losses.info_nce(X, Y),
        lambda: losses.dice(X[0, 0], BITS[0, 0]),
        lambda: losses.cosine_distance(np.float32(1), np.float32(2)),
        lambda: losses.triplet(X, Y, Z[0]),
    ):
        with pytest.raises(ValueError, match=r"losses\.\w+: .* got "):
            call()


# -- one by one --------------------------------------------------------------------------------------------------------


def test_hinge_wants_signs():
    x = X[..., 0]
    np.testing.assert_allclose(losses.hinge(x, SIGNS == 1), losses.hinge(x, SIGNS))
    assert np.isnan(losses.hinge(x, np.where(SIGNS == 1, 1, 0)))
    assert np.isnan(losses.contrastive(X, Y, np.where(SIGNS == 1, 1, 0)))
    np.testing.assert_allclose(losses.contrastive(X, Y, SIGNS == 1), losses.contrastive(X, Y, SIGNS))


@pytest.mark.parametrize("gamma", [0, 0.5, 1, 2, 3.5])
def test_focal_is_flat_where_it_is_sure(gamma):
    x = np.array([0.3, 200.0, -200.0, 60.0], "f4")
    grads = atled.grad(lambda x: losses.focal(x, np.array([1, 1, 0, 1]), gamma=gamma))(x)
    assert np.isfinite(grads).all() and abs(grads[1:]).max() < 1e-12


def test_vectors_at_zero_and_far_out():
    zero, one = np.zeros((1, 3), "f4"), np.array([[1.0, 2.0, 2.0]], "f4")
    value, grads = atled.value_and_grad(losses.cosine_distance, (0, 1))(zero, one)
    assert float(value) == 1 and np.isfinite(grads[0]).all() and not grads[1].any()
    for scale in (1e-30, 1e30):
        x = (scale * np.array([[2.0, 1.0, 2.0]])).astype("f4")
        np.testing.assert_allclose(losses.cosine_distance(x, one), 1 - 8 / 9, rtol=1e-5)
    value, grads = atled.value_and_grad(losses.triplet, (0, 1, 2))(one, one, one)
    assert float(value) == 1 and not any([g.any() for g in grads])
    value, grads = atled.value_and_grad(losses.contrastive)(one, one, np.array([-1]))
    assert float(value) == 0.5 and not grads.any()


def test_info_nce_does_not_find_what_is_left_out():
    mask = np.array([True, True, False, True, False])
    want = losses.info_nce(X[0, :, :3][[0, 1, 3]], Y[0, :, :3][[0, 1, 3]], symmetric=True)
    x, y = np.concatenate([X[0], X[1, :1]])[:, :3], np.concatenate([Y[0], Y[1, :1]])[:, :3]
    np.testing.assert_allclose(losses.info_nce(x, y, symmetric=True, where=mask), want, rtol=1e-6)


def test_dice():
    x, y = R.randn(2, 3, 4).astype("f4"), R.randint(0, 2, (2, 3, 4))
    p = 1 / (1 + np.exp(-x))
    want = 1 - (2 * (p * y).sum((1, 2)) + 1) / (p.sum((1, 2)) + y.sum((1, 2)) + 1)
    np.testing.assert_allclose(losses.dice(x, y, reduction=None), want, rtol=1e-5)
    mask = R.randint(0, 2, (2, 3, 4)).astype(bool)
    m = mask * 1.0
    want = 1 - (2 * (p * y * m).sum((1, 2)) + 1) / ((p * m).sum((1, 2)) + (y * m).sum((1, 2)) + 1)
    np.testing.assert_allclose(losses.dice(np.where(mask, x, np.nan), y, where=mask, reduction=None), want, rtol=1e-5)
    mask[1] = False
    np.testing.assert_allclose(losses.dice(x, y, where=mask), losses.dice(x[:1], y[:1], where=mask[:1]), rtol=1e-6)
    ids, logits = R.randint(0, 3, (2, 5)), R.randn(2, 5, 3).astype("f4")
    q = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    hot = np.eye(3)[ids]
    want = (1 - (2 * (q * hot).sum(1) + 0.5) / (q.sum(1) + hot.sum(1) + 0.5)).mean(-1)
    np.testing.assert_allclose(losses.dice(logits, ids, smooth=0.5, reduction=None), want, rtol=1e-5)
    assert np.isfinite(atled.grad(losses.dice)(np.where(m > 0, x, np.inf), y, where=m > 0)).all()
    with pytest.raises(ValueError, match=r"losses.dice: labels"):
        losses.dice(logits, ids + 1)


# -- ctc ---------------------------------------------------------------------------------------------------------------


def written(path: tuple[int, ...], blank: int) -> tuple[int, ...]:
    """What a path says: without repetitions, without blanks."""
    short = [p for i, p in enumerate(path) if i == 0 or path[i - 1] != p]
    return tuple([p for p in short if p != blank])


@pytest.mark.parametrize("blank", [0, 1, 2])
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5])
def test_ctc_is_the_sum_over_all_paths(blank, steps):
    logits = R.randn(steps, 3)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    others = [c for c in range(3) if c != blank]
    for said in ((), (0,), (0, 0), (0, 1), (1, 1), (1, 0, 1)):
        labels = tuple([others[i] for i in said])
        total = sum(
            [
                np.prod([p[t, c] for t, c in enumerate(path)])
                for path in np.ndindex(*[3] * steps)
                if written(path, blank) == labels
            ]
        )
        padded = np.array([*labels, *[99, -7, 0, 1][len(labels) :]], "i4")
        got, grads = atled.value_and_grad(losses.ctc)(
            np.concatenate([logits, np.full((6 - steps, 3), np.nan)]), padded,
            lengths=np.int32(steps), label_lengths=np.int32(len(labels)), blank=blank,
        )  # fmt: skip
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(got, -np.log(total), rtol=1e-10, atol=1e-12)
        assert np.isfinite(grads).all() and not np.asarray(grads[steps:]).any()


def test_ctc_refuses_blanks_and_lengths():
    x, y = R.randn(2, 6, 4).astype("f4"), np.array([[1, 2], [3, 0]])
    with pytest.raises(ValueError, match=r"losses.ctc: labels"):
        losses.ctc(x, y)
    assert np.isfinite(losses.ctc(x, y, label_lengths=np.array([2, 1])))
    assert np.isnan(losses.ctc(x, np.array([[1, 2], [3, 1]]), blank=2))
    with pytest.raises(ValueError, match=r"losses.ctc: lengths"):
        losses.ctc(x, y, lengths=np.array([2, 7]), label_lengths=np.array([2, 1]))
    with pytest.raises(ValueError, match=r"losses.ctc: label_lengths"):
        losses.ctc(x, y, label_lengths=np.array([3, 1]))
    with pytest.raises(TypeError, match=r"losses.ctc: the lengths must be integers"):
        losses.ctc(x, y, lengths=np.array([2.0, 6.0]))


def test_ctc_of_steps_that_cannot_be():
    """A step with neither the label nor the blank leaves no state that can be."""
    x = np.array([[0.0, 1, 2], [-np.inf, -np.inf, 0], [0, 1, 2], [0, 1, 2]], "f4")
    value, grads = atled.value_and_grad(losses.ctc)(x, np.array([1]))
    assert value == np.inf and not grads.any()
    assert np.isfinite(losses.ctc(x, np.array([2])))


def test_ctc_without_a_batch():
    x, y = R.randn(3, 6, 4), np.array([[1, 2], [3, 3], [2, 1]])
    want = [losses.ctc(x[i : i + 1], y[i : i + 1]) for i in range(3)]
    np.testing.assert_allclose(atled.jit(losses.ctc)(x[0], y[0]), want[0], rtol=1e-12)
    np.testing.assert_allclose(atled.jit(atled.vmap(losses.ctc))(x, y), want, rtol=1e-12)


def test_ctc_of_a_long_sequence_does_not_underflow():
    x, y = R.randn(1, 2000, 20).astype("f4"), R.randint(1, 20, (1, 150))
    got, grads = atled.value_and_grad(losses.ctc)(x, y)
    want, want_grads = atled.value_and_grad(losses.ctc)(x.astype("f8"), y)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(grads, want_grads, atol=1e-4)


# -- linear_cross_entropy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 4, 5, 12, 100])
@pytest.mark.parametrize("reduction", ["mean", "sum", None])
def test_linear_cross_entropy_is_cross_entropy(chunk, reduction):
    x, w, ids = R.randn(3, 4, 5), R.randn(7, 5), R.randint(0, 7, (3, 4))
    weights, mask = R.rand(3, 4), R.rand(3, 4) > 0.3
    more = {"label_smoothing": 0.1, "z_loss": 0.02, "where": mask, "reduction": reduction}

    def plain(x, w, weights):
        return jnp.sum(jnp.cos(losses.cross_entropy(jnp.dot(x, w.T), ids, weights=weights, **more)))

    def ours(x, w, weights):
        return jnp.sum(jnp.cos(losses.linear_cross_entropy(x, w, ids, weights=weights, chunk_size=chunk, **more)))

    want, want_grads = atled.value_and_grad(plain, (0, 1, 2))(x, w, weights)
    for f in (lambda f: f, atled.jit):
        got, grads = f(atled.value_and_grad(ours, (0, 1, 2)))(x, w, weights)
        np.testing.assert_allclose(got, want, rtol=1e-12)
        np.testing.assert_allclose(f(ours)(x, w, weights), want, rtol=1e-12)
        for a, b in zip(grads, want_grads):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_linear_cross_entropy_in_bfloat16():
    """No worse than the plain one, whose logits are rounded."""
    x, w, ids = (R.randn(64, 32) / 2).astype("f4"), R.randn(200, 32).astype("f4"), R.randint(0, 200, 64)
    x, w = (np.asarray(jnp.asarray(a).astype("bfloat16")) for a in (x, w))

    def plain(x, w):
        return losses.cross_entropy(jnp.dot(x, w.T), ids)

    def ours(x, w):
        return losses.linear_cross_entropy(x, w, ids, chunk_size=10)

    both = lambda f, *a: atled.value_and_grad(f, (0, 1))(*a)
    want, want_grads = both(plain, x.astype("f8"), w.astype("f8"))
    _, their_grads = both(plain, jnp.asarray(x), jnp.asarray(w))
    got, grads = both(ours, jnp.asarray(x), jnp.asarray(w))
    assert abs(float(got) - float(want)) <= 1e-5 * float(want)
    for a, b, c in zip(grads, their_grads, want_grads):
        assert a.dtype == "bfloat16"
        c = np.asarray(c)
        assert abs(np.asarray(a, "f8") - c).max() <= 1.5 * abs(np.asarray(b, "f8") - c).max()


def test_linear_cross_entropy_of_mixed_dtypes():
    x, w, ids = jnp.asarray(X), jnp.asarray(Y[0]).astype("bfloat16"), IDS % 4
    grads = atled.grad(lambda x, w: losses.linear_cross_entropy(x, w, ids), (0, 1))(x, w)
    assert grads[0].dtype == "float32" and grads[1].dtype == "bfloat16"


def test_linear_cross_entropy_holds_a_chunk_of_logits():
    n, classes, features = 4096, 5000, 16
    args = [atled.ShapeDtypeStruct(s, d) for s, d in (((n, features), "f4"), ((classes, features), "f4"), ((n,), "i4"))]
    size = lambda f: atled.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes
    one = 256 * classes * 4
    for reduction in ("mean", None):
        f = lambda x, w, y, r=reduction: jnp.sum(losses.linear_cross_entropy(x, w, y, chunk_size=256, reduction=r))
        assert size(f) < 2.5 * one and size(atled.value_and_grad(f, (0, 1))) < 4 * one


def test_linear_cross_entropy_computes_gradients_only_if_asked():
    f = lambda x, w: losses.linear_cross_entropy(x, w, IDS % 4)
    count = lambda g: len(re.findall(r"= dot", str(atled.make_program(g)(X, Y[0]))))
    assert (count(f), count(atled.value_and_grad(f, (0, 1)))) == (1, 3)


def test_linear_cross_entropy_has_no_forward_mode():
    f = lambda x: losses.linear_cross_entropy(x, Y[0], IDS % 4)
    with pytest.raises(TypeError, match="forward mode"):
        atled.jvp(f, (X,), (X,))
    g = lambda x: losses.linear_cross_entropy(x, Y[0], IDS % 4, reduction=None)
    plain = lambda x: losses.cross_entropy(jnp.dot(x, Y[0].T), IDS % 4, reduction=None)
    np.testing.assert_allclose(atled.jvp(g, (X,), (Y,))[1], atled.jvp(plain, (X,), (Y,))[1], rtol=1e-4, atol=1e-5)


def test_losses_train_a_model():
    x, ids = R.randn(20, 5).astype("f4"), R.randint(0, 3, 20)
    layer = nn.Linear(5, 3, key=atled.random.key(0))
    loss = lambda layer: losses.cross_entropy(layer(x), ids)
    before = loss(layer)
    grads = atled.grad(loss)(layer)
    layer.weight = layer.weight - 0.5 * grads.weight
    assert loss(layer) < before


def test_losses_in_a_scan():
    total, _ = lax.scan(lambda s, b: (s + losses.cross_entropy(*b, reduction="sum"), None), jnp.float32(0), (X, IDS))
    np.testing.assert_allclose(total, losses.cross_entropy(X, IDS, reduction="sum"), rtol=1e-6)
