"""Optimizers that no peer has, or not so, against plain loops of NumPy in float64; messages; and odd cases."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, optim, random, tree

R = np.random.RandomState(1)
START = {"m": R.randn(4, 3), "v": R.randn(5), "t": R.randn(3, 4)}
TARGET = {n: R.randn(*x.shape) for n, x in START.items()}


def slopes(p):
    return {n: 0.7 * (np.asarray(x) - TARGET[n]) + 0.5 * np.sin(3 * np.asarray(x)) for n, x in p.items()}


def run(optimizer, steps=100):
    p, state = START, optimizer.init(START)
    step = atled.jit(optimizer.step)
    for _ in range(steps):
        p, state = step(p, slopes(p), state)
    return p, state


def close(got, want, tolerance=1e-9):
    for n, x in want.items():
        assert np.asarray(got[n]).dtype == np.float64
        np.testing.assert_allclose(got[n], x, rtol=tolerance, atol=tolerance, err_msg=n)


def soap(steps, rate, b1, b2, b, eps, decay, every):
    """SOAP as the paper has it: Adam in the eigenbasis of Shampoo, which orthogonal iteration keeps up to date."""
    p = {n: x.copy() for n, x in START.items()}
    first, second = ({n: np.zeros_like(x) for n, x in p.items()} for _ in range(2))
    sides, clipped = {}, []
    for t in range(1, steps + 1):
        for n, g in slopes(p).items():
            first[n] = b1 * first[n] + (1 - b1) * g
            q = r = None
            turned = g
            if g.ndim == 2:
                if t == 1:
                    left, right = g @ g.T, g.T @ g
                    q, r = np.linalg.eigh(left)[1][:, ::-1], np.linalg.eigh(right)[1][:, ::-1]
                else:
                    left, right, q, r = sides[n]
                    left, right = b * left + (1 - b) * g @ g.T, b * right + (1 - b) * g.T @ g
                    if t % every == 0:
                        q, r = np.linalg.qr(left @ q)[0], np.linalg.qr(right @ r)[0]
                sides[n] = left, right, q, r
                turned = q.T @ g @ r
            second[n] = b2 * second[n] + (1 - b2) * turned**2
            mean = first[n] if q is None else q.T @ first[n] @ r
            step = mean / (1 - b1**t) / (np.sqrt(second[n] / (1 - b2**t)) + eps)
            share = np.array([(1 - b1) * b1**k / (1 - b1**t) for k in range(t)])
            weight = np.array([(1 - b2) * b2**k / (1 - b2**t) for k in range(t)])
            most = np.sqrt(np.sum(share**2 / weight))  # by Cauchy and Schwarz
            clipped.append(abs(step).max() > most)
            step = step if q is None else q @ np.clip(step, -most, most) @ r.T
            p[n] = p[n] - rate * (step + decay * p[n])
    return p, any(clipped)


@pytest.mark.parametrize("every, b1, b2, eps", [(1, 0.9, 0.9, 1e-3), (10, 0.9, 0.95, 1e-3), (4, 0.95, 0.95, 1e-8)])
def test_soap(every, b1, b2, eps):
    got, state = run(
        optim.SOAP(0.01, b1=b1, b2=b2, shampoo_beta=0.8, eps=eps, weight_decay=0.1, precondition_frequency=every), 30
    )
    want, is_clipped = soap(30, 0.01, b1, b2, 0.8, eps, 0.1, every)
    if eps > 1e-6:
        close(got, want, 1e-8)
    else:  # what is rounding alone is another number here and there, and it is divided by its own size
        assert is_clipped
        for n, x in START.items():
            assert abs(np.asarray(got[n]) - x).max() <= 30 * 0.011 * (1 + abs(x).max()) * np.sqrt(3)
    basis = np.asarray(state.slots["left_basis"]["m"])
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-12)


def test_soap_is_adam_of_a_diagonal_in_its_basis_and_leaves_long_matrices_to_adam():
    long = optim.SOAP(0.01, max_precond_dim=2, b1=0.9, b2=0.95)
    close(run(long)[0], {n: np.asarray(x) for n, x in run(optim.AdamW(0.01, 0.9, 0.95))[0].items()}, 1e-12)


def test_sam():
    rho, rate = 0.3, 0.05
    target = {n: jnp.asarray(x) for n, x in TARGET.items()}
    loss = lambda p: sum([jnp.sum(0.35 * (x - target[n]) ** 2 - jnp.cos(3 * x) / 6) for n, x in p.items()])
    sam = optim.SAM(optim.SGD(rate), rho)
    p, state = START, sam.init(START)
    step = atled.jit(lambda p, g, s: sam.step(p, g, s, loss=loss))
    want = {n: x.copy() for n, x in START.items()}
    for _ in range(100):
        p, state = step(p, slopes(p), state)
        g = slopes(want)
        length = np.sqrt(sum([np.sum(x**2) for x in g.values()]))
        g = slopes({n: x + rho * g[n] / length for n, x in want.items()})
        want = {n: x - rate * g[n] for n, x in want.items()}
    close(p, want)


def test_clipping_by_layers():
    got, _ = run(optim.chain(optim.clip_by_norm(0.4), optim.SGD(0.1)))
    want = {n: x.copy() for n, x in START.items()}
    for _ in range(100):
        for n, g in slopes(want).items():
            want[n] = want[n] - 0.1 * g * min(1, 0.4 / np.linalg.norm(g))
    close(got, want)


def test_units_of_adaptive_clipping_are_outputs_whatever_the_number_of_axes():
    part = optim.adaptive_grad_clip(0.1, 1e-3)
    for shape in ((4, 3), (2, 4, 3), (2, 2, 4, 3)):
        p, g = R.randn(*shape), 10 * R.randn(*shape)
        got = part.update({"w": g}, part.init({"w": p}), {"w": p})[0]["w"]
        for o in range(3):
            length, own = np.linalg.norm(g[..., o]), max(np.linalg.norm(p[..., o]), 1e-3)
            np.testing.assert_allclose(np.asarray(got)[..., o], g[..., o] * min(1, 0.1 * own / length), rtol=1e-12)


def test_prodigy_finds_its_rate():
    prodigy = optim.Prodigy()
    p, state = {"w": jnp.zeros(3)}, prodigy.init({"w": jnp.zeros(3)})
    step = atled.jit(prodigy.step)
    for _ in range(300):
        p, state = step(p, {"w": p["w"] - 5.0}, state)
    assert float(jnp.max(jnp.abs(p["w"] - 5.0))) < 0.5 and float(state.slots["distance"]) > 0.1


def test_newton_schulz_makes_matrices_nearly_orthogonal():
    for shape in ((5, 3), (3, 5), (4, 4)):
        values = np.linalg.svd(np.asarray(optim.orthogonalized(jnp.asarray(R.randn(*shape)))), compute_uv=False)
        assert (values > 0.5).all() and (values < 1.3).all()


def test_skipping_leaves_everything_as_it_was():
    adam = optim.apply_if_finite(optim.Adam(0.1))
    p = {"a": jnp.ones(2), "b": jnp.ones(3)}
    p, state = adam.step(p, p, adam.init(p))
    for bad in (jnp.nan, jnp.inf):
        after, later = adam.step(p, {"a": jnp.ones(2), "b": jnp.array([1.0, bad, 1.0])}, state)
        for x, y in zip(tree.leaves((p, state.inner)), tree.leaves((after, later.inner)), strict=True):
            np.testing.assert_array_equal(x, y)
        assert int(later.own.slots["skipped"]) == int(later.own.slots["in_a_row"]) == 1
    assert int(adam.step(p, p, later)[1].own.slots["in_a_row"]) == 0


def test_the_scale_of_losses_grows_and_backs_off():
    sgd = optim.LossScale(optim.SGD(1.0), 8.0, growth_interval=2, min_scale=4.0)
    p = {"w": jnp.zeros(1)}
    state = sgd.init(p)
    seen = []
    for g in (8.0, 8.0, 16.0, jnp.inf, jnp.nan, 4.0):
        p, state = sgd.step(p, {"w": jnp.full(1, g)}, state)
        seen.append((float(p["w"][0]), float(state.own.hyperparams["scale"])))
    assert seen == [(-1.0, 8.0), (-2.0, 16.0), (-3.0, 16.0), (-3.0, 8.0), (-3.0, 4.0), (-4.0, 4.0)]
    assert int(state.own.slots["skipped"]) == 2
    assert float(optim.set_hyperparams(state, scale=2.0).own.hyperparams["scale"]) == 2.0
    assert float(sgd.scale_loss(jnp.float32(3.0), state)) == 12.0


def test_noise_is_that_of_the_seed_and_the_step():
    p = {"w": jnp.zeros(4)}

    def draw(seed, steps):
        part, found = optim.add_noise(1.0, seed=seed), []
        state = part.init(p)
        for _ in range(steps):
            noisy, state = part.update(p, state, p)
            found.append(np.asarray(noisy["w"]))
        return found

    a, b, c = draw(1, 2), draw(1, 2), draw(2, 1)
    np.testing.assert_array_equal(a, b)
    assert (a[0] != a[1]).all() and (a[0] != c[0]).all()


def test_states_inside_of_states_are_changed():
    deep = optim.average(optim.accumulate(optim.chain(optim.clip_by_global_norm(1.0), optim.Adam(0.1)), 2))
    state = optim.set_hyperparams(deep.init(START), learning_rate=0.5, max_norm=2.0)
    assert (
        float(state.inner.inner[1].hyperparams["learning_rate"]) == 0.5
        and float(state.inner.inner[0].hyperparams["max_norm"]) == 2.0
    )


def test_numbers_of_wrappers_may_be_scheduled():
    constant, rate = optim.SGD(0.1), optim.piecewise(0.5, {2: 0.5})
    loss = lambda p: sum([jnp.sum(x**2) for x in tree.leaves(p)])
    for made, plain in (
        (optim.SAM(constant, rate), optim.SAM(constant, 0.25)),
        (optim.Lookahead(constant, 1, rate), optim.Lookahead(constant, 1, 0.25)),
        (optim.average(constant, rate), optim.average(constant, 0.25)),
        (
            optim.chain(optim.clip_by_global_norm(rate), constant),
            optim.chain(optim.clip_by_global_norm(0.25), constant),
        ),
    ):
        state = made.init(START)
        for _ in range(3):
            p, state = made.step(START, slopes(START), state, loss=loss)
        q, _ = plain.step(START, slopes(START), plain.init(START), loss=loss)
        assert not tree.leaves(
            tree.map(lambda s: s.hyperparams.get("rho"), state, is_leaf=lambda s: isinstance(s, optim.State))
        )
        found = [s for s in tree.leaves(state, is_leaf=lambda s: isinstance(s, optim.State)) if s.scheduled]
        assert float(*found[0].scheduled.values()) == 0.25
        if not isinstance(made, optim.Lookahead | optim.Average):
            close(p, {n: np.asarray(x) for n, x in q.items()})


def test_evaluated_goes_through_chains_and_groups():
    averaging = optim.partition(
        {"m": optim.chain(optim.clip_by_global_norm(9.0), optim.average(optim.SGD(0.1))), "**": optim.SGD(0.1)}
    )
    p, state = START, averaging.init(START)
    for _ in range(3):
        p, state = averaging.step(p, slopes(p), state)
    used = averaging.eval_model(p, state)
    assert (np.asarray(used["m"]) != np.asarray(p["m"])).all()
    np.testing.assert_array_equal(used["v"], p["v"])


def test_slots_of_stacks_are_those_of_their_layers():
    stack = nn.Stack(lambda key: nn.Linear(4, 4, key=key), 3, key=random.key(0))
    slots = optim.SOAP().init(stack).slots
    assert slots["left"].layers.weight.shape == (3, 4, 4) and slots["left"].layers.bias is None
    slots = optim.Adafactor(min_dim_size_to_factor=2).init(stack).slots
    assert slots["rows"].layers.weight.shape == (3, 4) and slots["squares"].layers.bias.shape == (3, 4)
    assert optim.Muon().init(stack).slots["second"].layers.weight is None


def test_complex_squares_are_real():
    p = {"w": jnp.zeros((2, 2), "complex64")}
    for optimizer, name in ((optim.Adam(), "second"), (optim.Adagrad(), "total"), (optim.RMSprop(), "squares")):
        assert optimizer.init(p).slots[name]["w"].dtype == "float32"


def test_import_loads_nothing():
    import subprocess
    import sys

    code = "import sys, atled.optim; print([m for m in sys.modules if m.startswith('atled.optim.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


MESSAGES = {
    r"optim\.chain: the parts must be optimizers; got SGD|got float at position 1": lambda: optim.chain(
        optim.SGD(), 0.1
    ),
    r"optim\.chain: add_decayed_weights adds to gradients, so it goes before the optimizer": (
        lambda: optim.chain(optim.SGD(0.1), optim.add_decayed_weights(0.1))
    ),
    r"AddDecayedWeights, decays: a pattern must match something": lambda: optim.add_decayed_weights(0.1, "weight").init(
        START
    ),
    r"Prodigy, decays: a pattern must match something": lambda: optim.Prodigy(weight_decay_mask="weight").init(START),
    r"Accumulate: the first argument must be an optimizer; got float": lambda: optim.accumulate(0.1, 2),
    r"optim\.accumulate: every must be 1 or more; got 0": lambda: optim.accumulate(optim.SGD(), 0),
    r"Lookahead: sync_period must be 1 or more; got 0": lambda: optim.Lookahead(optim.SGD(), sync_period=0),
    r"ScheduleFree: b1 must be above 0, and at most 1; got 0": lambda: optim.ScheduleFree(optim.SGD(), b1=0.0),
    r"optim\.average: every must be 1 or more": lambda: optim.average(optim.SGD(), every=0),
    r"LossScale: scale must be above 0": lambda: optim.LossScale(optim.SGD(), growth_factor=1.0),
    r"LBFGS: memory_size must be 1 or more": lambda: optim.LBFGS(memory_size=0),
    r"optim\.reduce_on_plateau: factor must be between 0 and 1": lambda: optim.reduce_on_plateau(1.5),
    r"optim\.reduce_on_plateau: patience and accumulation_size must be 1 or more": lambda: optim.reduce_on_plateau(
        0.5, 0
    ),
    r"SAM: the loss, as a function of the model, must be given; got none": (
        lambda: optim.SAM(optim.SGD()).step(START, START, optim.SAM(optim.SGD()).init(START))
    ),
    r"ReduceOnPlateau: the value of the loss must be given; got none": (
        lambda: optim.reduce_on_plateau().step(START, START, optim.reduce_on_plateau().init(START))
    ),
    r"ScheduleFree: the inner optimizer must have one learning_rate; got 0": (
        lambda: optim.ScheduleFree(optim.clip_by_global_norm(1.0)).step(
            START, START, optim.ScheduleFree(optim.clip_by_global_norm(1.0)).init(START)
        )
    ),
    r"Average: the state must be that of this wrapper; got State": (
        lambda: optim.average(optim.SGD()).step(START, START, optim.SGD().init(START))
    ),
    r"optim\.polynomial: power must be above 0": lambda: optim.polynomial(1.0, 10, 0),
    r"optim\.exponential: decay_rate must be above 0": lambda: optim.exponential(1.0, 0.0),
    r"optim\.piecewise: boundaries must be steps from 1 on; got 0": lambda: optim.piecewise(1.0, {0: 0.5}),
    r"optim\.one_cycle: anneal_strategy must be 'cosine' or 'linear'": lambda: optim.one_cycle(
        1.0, 10, anneal_strategy="square"
    ),
    r"optim\.join_schedules: boundaries must be ascending, one for each schedule": lambda: optim.join_schedules(
        [0.1, 0.2], []
    ),
    r"optim\.restarts: num_cycles must be 1 or more": lambda: optim.restarts(1.0, 10, 0),
    r"optim\.inverse_sqrt: warmup_steps must be 1 or more": lambda: optim.inverse_sqrt(1.0, 0),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_messages(message):
    with pytest.raises((TypeError, ValueError), match=message):
        MESSAGES[message]()
