"""Mixtures of experts: cost, dropping, keys, losses, statistics, dtypes, what is refused."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree


class Expert(nn.Module):
    def __init__(self, features, hidden, key):
        a, b = random.split(key)
        self.up, self.down = nn.Linear(features, hidden, key=a), nn.Linear(hidden, features, key=b)

    def __call__(self, x):
        return self.down(nn.relu(self.up(x)))


def mixture(make=lambda key: nn.Linear(4, 4, key=key), num_experts=3, seed=0, **settings):
    return nn.MixtureOfExperts(make, num_experts, in_features=4, key=random.key(seed), **settings)


X = random.normal(random.key(1), (12, 4))


def dense(moe, x):
    """All experts for all tokens, and then the weighted sum of those that were chosen."""
    logits = jnp.dot(x, moe.router)
    best, chosen = atled.lax.top_k(logits, moe.k)
    out = atled.vmap(lambda expert: expert(x))(moe.experts.layers)
    picked = (
        jnp.take_along_axis(out, chosen.T[..., None], 0)
        if moe.k == moe.num_experts
        else out[chosen.T, jnp.arange(len(x))]
    )
    return (nn.softmax(best).T[..., None] * picked).sum(0)


def test_only_the_chosen_experts_cost_something():
    moe = nn.MixtureOfExperts(
        lambda key: Expert(256, 1024, key), 8, in_features=256, k=2, capacity_factor=1.0, key=random.key(0)
    )
    shapes = [tree.map(lambda x: atled.ShapeDtypeStruct(x.shape, x.dtype), t) for t in (moe, jnp.ones((2048, 256)))]
    sparse, full = [
        atled.jit(run).lower(*shapes).compile().cost_analysis()["flops"] for run in (lambda m, x: m(x), dense)
    ]
    assert sparse <= 1.2 * 2 / 8 * full
    assert full >= 2 * 2048 * 8 * 2 * 256 * 1024


def test_with_room_for_all_it_is_the_dense_sum():
    moe = mixture(capacity_factor=None)
    np.testing.assert_allclose(moe(X), dense(moe, X), rtol=1e-5, atol=1e-6)
    for wrt in (lambda m: m.router, lambda m: m.experts.layers.weight):
        a, b = [wrt(atled.grad(lambda m, run=run: jnp.sin(run(m, X)).sum())(moe)) for run in (lambda m, x: m(x), dense)]
        assert float(abs(b).max()) > 1e-3
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_first_choices_come_before_second_ones_and_earlier_tokens_before_later_ones():
    moe = mixture(
        lambda key: nn.Lambda(jnp.abs), num_experts=2, k=2, capacity_factor=0.5
    )  # each expert has room for 2 of 4
    moe.router = jnp.zeros((4, 2)).at[0, 0].set(1.0)
    x = jnp.array([[-1.0, 1, 1, 1], [1.0, 1, 1, 1], [1.0, 1, 1, 1], [1.0, 1, 1, 1]])
    high, low = float(nn.sigmoid(1.0)), float(nn.sigmoid(-1.0))
    # token 0 prefers expert 1; the others prefer 0, which has room for two; one more place in 1 is left for token 1
    want = [high, high + low, high, 0.0]
    y, losses = moe(x, return_losses=True)
    np.testing.assert_allclose(y[:, 1], want, rtol=1e-6)
    assert float(losses["dropped"]) == 0.5


def test_capacity_is_rounded_up_and_never_more_than_the_tokens():
    assert [mixture(capacity_factor=c)._room(12) for c in (None, 100.0, 1.0, 1.01, 0.001)] == [12, 12, 8, 9, 1]
    assert (
        mixture(num_experts=5, k=1, capacity_factor=1.1)._room(50) == 11
    )  # 1.1 * 50 / 5 is a little more in floating point


def test_one_choice_teaches_the_router():
    grads = atled.grad(lambda m: m(X).sum())(mixture(k=1))
    assert float(abs(grads.router).max()) > 1e-3
    flat = atled.grad(lambda m: m(X).sum())(mixture(k=1, normalize=True))
    assert float(abs(flat.router).max()) == 0
    y = mixture(k=2, normalize=False, capacity_factor=None)(X)
    assert not np.allclose(y, mixture(k=2, capacity_factor=None)(X))


def test_losses_teach_the_router_and_are_least_for_even_choices():
    moe = mixture()
    for name in ("balance", "z"):
        grads = atled.grad(lambda m, name=name: m(X, return_losses=True)[1][name])(moe)
        assert float(abs(grads.router).max()) > 1e-4
    moe.router = jnp.zeros((4, 3))
    assert float(moe(X, return_losses=True)[1]["balance"]) == pytest.approx(1)
    moe.router = jnp.zeros((4, 3)).at[:, :2].set(100.0)
    assert float(moe(abs(X), return_losses=True)[1]["balance"]) == pytest.approx(1.5, rel=1e-4)


def test_noise_is_for_training_and_takes_a_key():
    moe = mixture(noise=1.0, capacity_factor=None)
    with pytest.raises(TypeError, match="MixtureOfExperts: a key must be given while training, for the noise"):
        moe(X)
    a, b = [moe(X, key=random.key(i)) for i in (0, 1)]
    assert not np.allclose(a, b)
    np.testing.assert_allclose(moe.eval()(X), mixture(capacity_factor=None)(X), rtol=1e-6)


def test_experts_with_dropout_get_keys_of_their_own():
    moe = mixture(
        lambda key: nn.Sequential(nn.Lambda(jnp.ones_like), nn.Dropout(0.5)), num_experts=2, k=2, capacity_factor=None
    )
    seen = nn.capture(moe, "experts")(X, key=random.key(0))[1]["experts"]
    assert seen.shape == (2, 12, 4) and not np.array_equal(seen[0], seen[1])


def test_values_inside_of_experts_are_captured():
    moe = mixture(lambda key: Expert(4, 5, key))
    out, seen = nn.capture(moe, "up")(X)
    assert seen["experts/layers/up"].shape == (3, moe._room(12), 5)
    np.testing.assert_array_equal(out, moe(X))


def test_statistics_of_experts_are_kept():
    moe = mixture(lambda key: nn.BatchNorm(4, momentum=0.0), capacity_factor=None)
    moe(X)
    assert moe.experts.layers.mean.shape == (3, 4) and float(abs(moe.experts.layers.mean).min()) > 0

    def loss(moe):
        return moe(X).sum(), moe

    _, after = atled.grad(loss, has_aux=True)(mixture(lambda key: nn.BatchNorm(4, momentum=0.0), capacity_factor=None))
    np.testing.assert_allclose(after.experts.layers.mean, moe.experts.layers.mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_routes_in_single(dtype):
    moe = mixture(lambda key: nn.Linear(4, 4, param_dtype=dtype, key=key), capacity_factor=None)
    y, losses = moe(X.astype(dtype), return_losses=True)
    assert y.dtype == dtype and losses["z"].dtype == np.float32
    wide = nn.cast(moe, param_dtype="float32")
    np.testing.assert_allclose(np.asarray(y, "float32"), wide(X.astype(dtype).astype("float32")), atol=3e-2, rtol=3e-2)
    assert nn.cast(mixture(), compute_dtype="bfloat16")(X, return_losses=True)[1]["z"].dtype == np.float32
    half = nn.cast(mixture(), param_dtype=dtype)
    assert half.router.dtype == dtype and half(X.astype(dtype), return_losses=True)[1]["z"].dtype == np.float32


def test_odd_inputs():
    moe = mixture()
    y, losses = moe(X[:0].reshape(0, 3, 4), return_losses=True)
    assert y.shape == (0, 3, 4) and not any([bool(jnp.isnan(v)) for v in losses.values()])
    assert moe(X[0]).shape == (4,) and moe(X[:1, None, None]).shape == (1, 1, 1, 4)
    bad = X.at[5, 0].set(jnp.nan)
    y = mixture(capacity_factor=None)(bad)
    assert bool(jnp.isnan(y[5]).all()) and not bool(jnp.isnan(jnp.delete(y, 5, axis=0)).any())
    assert mixture(num_experts=1, k=1)(X).shape == X.shape
    many = atled.vmap(moe)(jnp.stack([X, X + 1]))
    np.testing.assert_allclose(many[1], moe(X + 1), rtol=1e-5, atol=1e-6)
    second = atled.grad(lambda s: atled.grad(lambda s: jnp.sin(mixture(capacity_factor=None)(X * s)).sum())(s))(1.0)
    assert np.isfinite(float(second))


def test_low_rank_changes_of_stacked_experts_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match="LoRA: the weight must be that of one layer"):
        nn.LoRA(mixture().experts.layers, 2, key=random.key(0))
    moe = mixture(capacity_factor=None)
    tuned = moe.__copy__()
    tuned.experts = moe.experts.mapped(lambda layer, key: nn.LoRA(layer, 2, key=key), random.key(0))
    np.testing.assert_allclose(tuned(X), moe(X), rtol=1e-6, atol=1e-6)
    assert tuned.experts.layers.down.weight.shape == (3, 4, 2)


@pytest.mark.parametrize(
    "run, match",
    [
        (
            lambda: mixture(nn.Dropout(0.5)),
            "MixtureOfExperts: the first argument must be a function that makes an expert from a key; got",
        ),
        (lambda: mixture(num_experts=0), "MixtureOfExperts: k must be from 1 to the number of experts; got 2 of 0"),
        (lambda: mixture(k=4), "MixtureOfExperts: k must be from 1 to the number of experts; got 4 of 3"),
        (lambda: mixture(k=0), "MixtureOfExperts: k must be from 1 to the number of experts; got 0 of 3"),
        (lambda: mixture(capacity_factor=0.0), "MixtureOfExperts: capacity_factor must be more than 0; got 0.0"),
        (
            lambda: mixture(capacity_factor=float("nan")),
            "MixtureOfExperts: capacity_factor must be more than 0; got nan",
        ),
        (lambda: mixture(noise=-1.0), "MixtureOfExperts: the noise must be 0 or more"),
        (lambda: mixture(num_groups=0), "MixtureOfExperts: num_groups must be 1 or more"),
        (lambda: mixture(num_groups=5)(X), "MixtureOfExperts: num_groups must divide the tokens; got 5 for 12"),
        (lambda: mixture()(X[:, :3]), "MixtureOfExperts: the last axis of the input must have length 4"),
        (lambda: mixture()(jnp.ones((2, 4), "int32")), "MixtureOfExperts: the input must be floating-point"),
        (lambda: mixture(lambda key: nn.Lambda(jnp.sum))(X), "an expert must return a vector for each token"),
        (lambda: mixture(lambda key: nn.Lambda(lambda x: (x, x)))(X), "an expert must return a vector for each token"),
        (
            lambda: nn.MixtureOfExperts(lambda key: nn.Linear(4, 4, key=key), 3, in_features=4),
            "MixtureOfExperts: a key must be given",
        ),
    ],
)
def test_what_makes_no_mixture_is_refused(run, match):
    with pytest.raises((TypeError, ValueError), match=match):
        run()
