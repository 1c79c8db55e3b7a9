"""The larger catalogue of optimizers against optax: a hundred steps in float64 from the same start; and schedules."""

from __future__ import annotations

import numpy as np
import pytest
from optax_rows import START, STEPS, bowl, largest_error, marked, run_ours, run_theirs, slope, slopes, wide

import atled
import atled.numpy as jnp
from atled import optim, tree

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")


def adafactor(rate, least=2, power=0.8, momentum=None, decay=None, is_relative=True):
    """optax's Adafactor, with the fading of squares in float64; its own computes that in float32."""
    parts = [
        optax.scale_by_factored_rms(
            min_dim_size_to_factor=least, decay_rate_fn=lambda i, _: 1.0 - (i + 1).astype("float64") ** -power
        ),
        optax.clip_by_block_rms(1.0),
        optax.scale_by_learning_rate(rate, flip_sign=False),
    ]
    parts += [optax.scale_by_param_block_rms()] if is_relative else []
    parts += [optax.ema(momentum, debias=False)] if momentum else []
    parts += [optax.add_decayed_weights(decay)] if decay else []
    return optax.chain(*parts, optax.scale(-1))


def looking_ahead(fast, every, share):
    """optax's lookahead, which has parameters of its own kind, as a transformation of the fast ones."""
    inner = optax.lookahead(fast, every, share)

    def init(params):
        return inner.init(optax.LookaheadParams.init_synced(params)), params

    def update(grads, state, params):
        own, slow = state
        updates, own = inner.update(grads, own, optax.LookaheadParams(fast=params, slow=slow))
        return updates.fast, (own, optax.apply_updates(slow, updates.slow))

    return optax.GradientTransformation(init, update)


def only_weights(p):
    return marked(p, "weight")


CASES = {
    "nadam": (optim.NAdam(0.02), lambda: optax.nadam(0.02)),
    "nadamw": (optim.NAdamW(0.02, weight_decay=0.1), lambda: optax.nadamw(0.02, weight_decay=0.1)),
    "nadamw, decays": (
        optim.NAdamW(0.02, weight_decay=0.1, weight_decay_mask="weight"),
        lambda: optax.nadamw(0.02, weight_decay=0.1, mask=only_weights),
    ),
    "amsgrad": (optim.AMSGrad(0.05, b2=0.9), lambda: optax.amsgrad(0.05, b2=0.9)),
    "adamax": (optim.AdaMax(0.03), lambda: optax.adamax(0.03)),
    "adagrad": (optim.Adagrad(0.1), lambda: optax.adagrad(0.1)),
    "adagrad, from 0": (
        optim.Adagrad(0.1, initial_accumulator_value=0.0), lambda: optax.adagrad(0.1, initial_accumulator_value=0.0),
    ),
    "adadelta": (optim.Adadelta(0.5, rho=0.8, eps=1e-4), lambda: optax.adadelta(0.5, rho=0.8, eps=1e-4)),
    "rmsprop": (optim.RMSprop(0.01), lambda: optax.rmsprop(0.01)),
    "rmsprop, momentum": (optim.RMSprop(0.01, momentum=0.8), lambda: optax.rmsprop(0.01, momentum=0.8)),
    "rmsprop, nesterov": (
        optim.RMSprop(0.01, rho=0.95, momentum=0.8, nesterov=True),
        lambda: optax.rmsprop(0.01, decay=0.95, momentum=0.8, nesterov=True),
    ),
    "rmsprop, centered": (
        optim.RMSprop(0.01, centered=True, eps=1e-4), lambda: optax.rmsprop(0.01, centered=True, eps=1e-4),
    ),
    "rmsprop, centered, momentum": (
        optim.RMSprop(optim.cosine(0.01, 80), centered=True, momentum=0.9, eps=1e-3),
        lambda: optax.rmsprop(wide(optax.cosine_decay_schedule(0.01, 80)), centered=True, momentum=0.9, eps=1e-3),
    ),
    "lion": (optim.Lion(0.01), lambda: optax.lion(0.01)),
    "lion, decays": (
        optim.Lion(0.01, b1=0.8, b2=0.9, weight_decay=0.2, weight_decay_mask="weight"),
        lambda: optax.lion(0.01, b1=0.8, b2=0.9, weight_decay=0.2, mask=only_weights),
    ),
    "lars": (  # no turns at the bottom
        optim.LARS(1.0, trust_coefficient=0.005), lambda: optax.lars(1.0, trust_coefficient=0.005),
    ),
    "lars, nesterov, decay": (
        optim.LARS(
            1.0, trust_coefficient=0.02, weight_decay=0.05, weight_decay_mask="weight", eps=1e-3, nesterov=True,
            momentum=0.8,
        ),
        lambda: optax.lars(
            1.0, 0.05, only_weights, trust_coefficient=0.02, eps=1e-3, nesterov=True, momentum=0.8
        ),
    ),
    "lamb": (optim.LAMB(0.02), lambda: optax.lamb(0.02)),
    "lamb, decay": (optim.LAMB(0.02, weight_decay=0.1, b1=0.8), lambda: optax.lamb(0.02, weight_decay=0.1, b1=0.8)),
    "adafactor": (optim.Adafactor(0.05, min_dim_size_to_factor=2), lambda: adafactor(0.05)),
    "adafactor, all squares": (optim.Adafactor(0.05), lambda: adafactor(0.05, least=128)),
    "adafactor, momentum, decay": (
        optim.Adafactor(
            0.05, min_dim_size_to_factor=2, momentum=0.8, weight_decay=0.01, decay_rate=0.7,
            multiply_by_parameter_scale=False,
        ),
        lambda: adafactor(0.05, power=0.7, momentum=0.8, decay=0.01, is_relative=False),
    ),
    "muon": (optim.Muon(0.02), lambda: optax.contrib.muon(0.02)),
    "muon, plain": (
        optim.Muon(0.02, nesterov=False, ns_steps=3, momentum=0.9),
        lambda: optax.contrib.muon(0.02, nesterov=False, ns_steps=3, beta=0.9),
    ),
    "muon, decay, another rate": (
        optim.Muon(0.02, weight_decay=0.1, adam_learning_rate=0.01, adam_weight_decay=0.2, b1=0.8),
        lambda: optax.contrib.muon(
            0.02, weight_decay=0.1, adam_learning_rate=0.01, adam_weight_decay=0.2, adam_b1=0.8
        ),
    ),
    "schedule-free adamw": (
        optim.schedule_free_adamw(0.05), lambda: optax.contrib.schedule_free_adamw(0.05),
    ),
    "schedule-free adamw, decay": (
        optim.schedule_free_adamw(0.05, b1=0.8, eps=1e-3, weight_decay=0.1),
        lambda: optax.contrib.schedule_free_adamw(0.05, b1=0.8, eps=1e-3, weight_decay=0.1),
    ),
    "schedule-free sgd": (
        optim.ScheduleFree(optim.SGD(0.2)), lambda: optax.contrib.schedule_free_sgd(0.2),
    ),
    "prodigy": (optim.Prodigy(), lambda: optax.contrib.prodigy()),
    "prodigy, numbers": (
        optim.Prodigy(0.5, b1=0.8, b2=0.99, weight_decay=0.1, estim_lr0=1e-3, estim_lr_coef=2.0, safeguard_warmup=True),
        lambda: optax.contrib.prodigy(
            0.5, (0.8, 0.99), weight_decay=0.1, estim_lr0=1e-3, estim_lr_coef=2.0, safeguard_warmup=True
        ),
    ),
    "lookahead": (
        optim.Lookahead(optim.SGD(0.1, momentum=0.9), sync_period=7, slow_step_size=0.3),
        lambda: looking_ahead(optax.sgd(0.1, momentum=0.9), 7, 0.3),
    ),
    "accumulate": (
        optim.accumulate(optim.Adam(0.1), 3),
        lambda: optax.MultiSteps(optax.adam(0.1), 3, accumulator_dtype="float64").gradient_transformation(),
    ),
    "clip values": (
        optim.chain(optim.clip_by_value(0.3), optim.SGD(0.1)), lambda: optax.chain(optax.clip(0.3), optax.sgd(0.1)),
    ),
    "clip adaptive": (
        optim.chain(optim.adaptive_grad_clip(0.1), optim.SGD(0.1)),
        lambda: optax.chain(optax.adaptive_grad_clip(0.1), optax.sgd(0.1)),
    ),
    "decay": (
        optim.chain(optim.add_decayed_weights(0.1, "weight"), optim.SGD(0.1, momentum=0.5)),
        lambda: optax.chain(optax.add_decayed_weights(0.1, only_weights), optax.sgd(0.1, momentum=0.5)),
    ),
    "skip not finite": (
        optim.apply_if_finite(optim.Adam(0.05)), lambda: optax.apply_if_finite(optax.adam(0.05), 10),
    ),
}  # fmt: skip
VALUED = {
    "plateau": (
        optim.chain(optim.SGD(0.1), optim.reduce_on_plateau(0.5, 4)),
        lambda: optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(0.5, 4)),
    ),
    "plateau, cooldown, means, least": (
        optim.chain(
            optim.SGD(0.1),
            optim.reduce_on_plateau(0.3, 3, cooldown=2, accumulation_size=4, min_scale=0.05, rtol=0.0, atol=0.01),
        ),
        lambda: optax.chain(
            optax.sgd(0.1),
            optax.contrib.reduce_on_plateau(
                0.3, 3, cooldown=2, accumulation_size=4, min_scale=0.05, rtol=0.0, atol=0.01
            ),
        ),
    ),
}


def compared(ours, theirs, of=slope, takes_value=False):
    got, state = run_ours(ours, of)
    with jax.enable_x64(True):
        want, their_state = run_theirs(theirs(), of, takes_value)
    error = largest_error(got, want)
    assert error <= 1e-9, f"{error:.2g}"
    for (path, x), start in zip(tree.leaves_with_path(got), tree.leaves(START), strict=True):
        assert (x != start).any(), path
    return got, state, their_state


@pytest.mark.parametrize("name", CASES)
def test_a_hundred_steps(name):
    compared(*CASES[name])


@pytest.mark.parametrize("name", VALUED)
def test_a_hundred_steps_with_values(name):
    _, state, _ = compared(*VALUED[name], takes_value=True)
    assert float(state[1].hyperparams["scale"]) < 1


def test_the_weights_of_schedule_free_to_use():
    ours, theirs = CASES["schedule-free adamw"]
    got, state, their_state = compared(ours, theirs)
    with jax.enable_x64(True):
        want = optax.contrib.schedule_free_eval_params(their_state, got)
    assert largest_error(ours.eval_model(got, state), want) <= 1e-9


def test_directions_of_lbfgs():
    compared(
        optim.LBFGS(0.02, memory_size=5, max_linesearch_steps=0),
        lambda: optax.lbfgs(0.02, memory_size=5, linesearch=None),
        of=bowl,
    )


def test_directions_of_lbfgs_over_ripples_go_downhill():
    """Pairs of negative curvature do not count: every direction goes downhill, also over ripples."""
    run = atled.jit(optim.LBFGS(0.1, max_linesearch_steps=0).step)
    params, state = START, optim.LBFGS(0.1, max_linesearch_steps=0).init(START)
    for _ in range(30):
        grads = slopes(params)
        after, state = run(params, grads, state)
        assert sum([np.sum((np.asarray(a) - p) * g) for a, p, g in zip(*map(tree.leaves, (after, params, grads)))]) < 0
        params = tree.map(np.asarray, after)


def test_averages_of_weights():
    """The running average against optax's, of the parameters along the way."""
    ours = optim.average(optim.SGD(0.1), decay=0.9)
    params, state = START, ours.init(START)
    seen = []
    for _ in range(20):
        params, state = ours.step(params, slopes(params), state)
        params = tree.map(np.asarray, params)
        seen.append(params)
    with jax.enable_x64(True):
        ema = optax.ema(0.9)
        own = ema.init(START)
        for p in seen:
            want, own = ema.update(p, own)
    assert largest_error(ours.eval_model(params, state), want) <= 1e-12
    mean = optim.average(optim.SGD(0.1), begin=4, every=3)
    params, state = START, mean.init(START)
    for _ in range(20):
        params, state = mean.step(params, slopes(params), state)
        params = tree.map(np.asarray, params)
    want = tree.map(lambda *xs: np.mean(xs, axis=0), *seen[6::3])
    assert largest_error(mean.eval_model(params, state), want) <= 1e-12
    assert int(state.own.slots["count"]) == 5


SCHEDULES = {
    "polynomial": (
        optim.polynomial(0.3, 70, 2.5, end_value=0.02), lambda: optax.polynomial_schedule(0.3, 0.02, 2.5, 70),
    ),
    "polynomial, warmup": (
        optim.polynomial(0.3, 70, 2, warmup_steps=9, init_value=0.01),
        lambda: optax.join_schedules(
            [optax.linear_schedule(0.01, 0.3, 9), optax.polynomial_schedule(0.3, 0.0, 2, 61)], [9]
        ),
    ),
    "exponential": (optim.exponential(0.3, 0.5, 20), lambda: optax.exponential_decay(0.3, 20, 0.5)),
    "exponential, stepwise": (
        optim.exponential(0.3, 0.5, 20, transition_begin=7, staircase=True, end_value=0.06),
        lambda: optax.exponential_decay(0.3, 20, 0.5, transition_begin=7, staircase=True, end_value=0.06),
    ),
    "exponential, growing": (
        optim.exponential(0.1, 1.5, 20, end_value=0.4), lambda: optax.exponential_decay(0.1, 20, 1.5, end_value=0.4),
    ),
    "piecewise": (
        optim.piecewise(0.3, {50: 0.2, 20: 0.5}), lambda: optax.piecewise_constant_schedule(0.3, {20: 0.5, 50: 0.2}),
    ),
    "one cycle": (optim.one_cycle(0.3, 90), lambda: optax.cosine_onecycle_schedule(90, 0.3)),
    "one cycle, numbers": (
        optim.one_cycle(0.3, 80, pct_start=0.2, init_scale=0.1, end_scale=0.01),
        lambda: optax.cosine_onecycle_schedule(80, 0.3, 0.2, 10.0, 100.0),
    ),
    "one cycle, linear": (
        optim.one_cycle(0.3, 80, anneal_strategy="linear"), lambda: optax.linear_onecycle_schedule(80, 0.3),
    ),
    "joined": (
        optim.join_schedules([optim.warmup(0.3, 9), optim.cosine(0.3, 30), 0.01], [9, 50]),
        lambda: optax.join_schedules(
            [optax.linear_schedule(0.0, 0.3, 9), optax.cosine_decay_schedule(0.3, 30), lambda t: 0.01], [9, 50]
        ),
    ),
    "restarts": (
        optim.restarts(0.3, 20, 3, t_mul=2, m_mul=0.5, warmup_steps=3, init_value=0.01, end_value=0.001),
        lambda: optax.sgdr_schedule([
            {"init_value": 0.01, "peak_value": p, "warmup_steps": 3, "decay_steps": n, "end_value": 0.001}
            for p, n in ((0.3, 20), (0.15, 40), (0.075, 80))
        ]),
    ),
    "inverse square root": (
        optim.inverse_sqrt(0.3, 16),
        lambda: lambda t: 0.3 * min(t / 16, 1.0) if t < 16 else 0.3 * (16 / t) ** 0.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    """Step by step: float32 within four units in the last place of the largest, float64 to 1e-15."""
    ours, theirs = SCHEDULES[name]
    steps = np.arange(STEPS, dtype="int32")
    with jax.enable_x64(True):
        want = np.asarray([float(theirs()(int(t))) for t in steps])
    for got in (atled.jit(atled.vmap(ours))(steps), [float(ours(int(t))) for t in steps]):
        assert abs(np.asarray(got) - want).max() <= 4 * np.spacing(np.float32(want.max()))
    exact = np.asarray(atled.jit(lambda t: ours.at(t, "float64"))(steps))
    assert exact.dtype == np.float64
    assert abs(exact - want).max() <= 1e-15


def test_noise_has_the_variance_of_optax():
    part, zeros = optim.add_noise(0.5, 0.55, seed=3), {"w": jnp.zeros(40000), "v": jnp.zeros((200, 200))}
    state = part.init(zeros)
    seen = []
    for t in range(1, 6):
        noisy, state = part.update(zeros, state, zeros)
        seen.append(np.asarray(noisy["w"]))
        for x in tree.leaves(noisy):
            assert abs(np.std(x) / np.sqrt(0.5 / t**0.55) - 1) < 0.02 and abs(np.mean(x)) < 0.02
        assert abs(np.corrcoef(np.ravel(noisy["v"]), seen[-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(seen[0], seen[1])[0, 1]) < 0.02
