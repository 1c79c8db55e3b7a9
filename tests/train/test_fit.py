"""`train.fit`: it trains, evaluates, saves and logs; a run in two calls is the run in one."""

import dataclasses
import json
import math
import signal

import numpy as np
import pytest

import atled.numpy as jnp
from atled import checkpoints, data, metrics, nn, optim, random, train, tree


class Net(nn.Module):
    def __init__(self, *, key):
        keys = nn.Keys(key)
        # no bias before a norm: its gradient is nothing but rounding, which Adam makes into steps
        self.first, self.norm = nn.Linear(5, 16, use_bias=False, key=keys()), nn.BatchNorm(16)
        self.drop, self.last = nn.Dropout(0.2), nn.Linear(16, 3, key=keys())

    def __call__(self, x, key=None):
        return self.last(self.drop(nn.relu(self.norm(self.first(x))), key=key))


rng = np.random.RandomState(0)
X = rng.randn(300, 5).astype("float32")
Y = X[:, :3].argmax(1).astype("int32")


def loss(net, batch, key):
    scores = nn.log_softmax(net(batch["x"], key=key))
    return -jnp.take_along_axis(scores, batch["y"][:, None], 1).mean()


def measure(net, batch):
    return {"accuracy": metrics.Accuracy().update(net(batch["x"]), batch["y"]), "x": batch["x"]}


def net():
    return Net(key=random.key(0))


def rows(n=200):
    return data.arrays(x=X[:n], y=Y[:n]).shuffle(1).batch(20)


def held_out():
    return data.arrays(x=X[200:], y=Y[200:]).batch(30, drop_last=False)


def run(steps=60, model=None, batches=None, optimizer=None, **options):
    options = {"key": random.key(1), "progress": False, **options}
    return train.fit(
        net() if model is None else model, loss, rows() if batches is None else batches,
        optim.AdamW(1e-2) if optimizer is None else optimizer, steps=steps, **options,
    )  # fmt: skip


class Kept:
    """A logger."""

    def __init__(self):
        self.seen = []

    def log(self, step, values):
        self.seen.append((step, values))


def losses(log):
    return [(one["step"], one["loss"]) for one in train.records(log)]


def same(a, b):
    """Two states have the same bits."""
    a, b = (tree.leaves((s.model, s.opt_state, s.step)) for s in (a, b))
    assert len(a) > 5 and all([np.array_equal(x, y) for x, y in zip(a, b, strict=True)])


def close(a, b):
    """Two states that other programs computed."""
    a, b = (tree.leaves((s.model, s.opt_state, s.step)) for s in (a, b))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def test_it_learns_and_leaves_the_model_alone():
    model, log = net(), Kept()
    before = np.asarray(model.first.weight).copy()
    state = run(model=model, loggers=[log])
    assert log.seen[-1][1]["loss"] < log.seen[0][1]["loss"] / 2
    assert [step for step, _ in log.seen] == list(range(1, 61)) and int(state.step) == 60
    assert np.array_equal(model.first.weight, before)


def test_it_is_the_loop_that_one_would_write():
    state = train.State(net(), optim.AdamW(1e-2), key=random.key(1))
    step, batches = train.step(loss), rows().repeat().iterator()
    for _ in range(25):
        state, values = step(state, next(batches))
    log = Kept()
    same(run(25, loggers=[log], nans=None), state)
    assert log.seen[-1][1]["loss"] == float(values["loss"])
    close(run(25), state)


def test_a_run_in_parts_is_the_run_in_one(tmp_path):
    whole = run(60, evaluation=train.Evaluation(held_out(), measure, every=20), checkpoint=tmp_path / "a")
    for steps in (7, 20, 33, 60):
        parts = run(steps, evaluation=train.Evaluation(held_out(), measure, every=20), checkpoint=tmp_path / "b")
    same(whole, parts)
    assert losses(tmp_path / "a") == losses(tmp_path / "b") and len(losses(tmp_path / "a")) == 60
    again = run(60, evaluation=train.Evaluation(held_out(), measure, every=20), checkpoint=tmp_path / "b")
    same(again, parts)
    assert len(losses(tmp_path / "b")) == 60


def test_what_was_logged_after_the_checkpoint_is_cut_off(tmp_path):
    run(20, checkpoint=checkpoints.Saver(tmp_path, every=10))
    before = (tmp_path / "log.jsonl").read_bytes()
    for more in (b'{"step": 21, "loss": 5.0}\n{"step": 22, "lo', b"\x00\xff\n", b'{"step": 99}\n'):
        (tmp_path / "log.jsonl").write_bytes(before + more)
        run(20, checkpoint=checkpoints.Saver(tmp_path, every=10))
        assert (tmp_path / "log.jsonl").read_bytes() == before


def test_evaluation(tmp_path):
    log = Kept()
    state = run(50, evaluation=train.Evaluation(held_out(), measure, every=20), loggers=[log])
    found = {step: values for step, values in log.seen if "eval/accuracy" in values}
    assert list(found) == [20, 40, 50] and len(log.seen) == 50
    want = train.evaluate(state.eval_model(), measure, held_out())
    assert found[50]["eval/accuracy"] == want["accuracy"]
    scores = np.asarray(state.eval_model()(X[200:]))
    assert want["accuracy"] == (scores.argmax(1) == Y[200:]).mean()
    assert math.isclose(want["x"], X[200:].mean(), rel_tol=1e-5, abs_tol=1e-7)


def test_the_loss_is_measured_if_nothing_else_is():
    log = Kept()
    run(10, evaluation=train.Evaluation(held_out(), every=10), loggers=[log])
    assert 0 < log.seen[-1][1]["eval/loss"] < 3


def test_averaged_weights_are_evaluated():
    seen = []

    def remember(model, batch):
        return {"w": model.last.weight[0, 0] + 0 * batch["x"].sum()}

    log = Kept()
    state = run(
        10,
        evaluation=train.Evaluation(held_out().take(1), remember, every=5),
        loggers=[log],
        optimizer=optim.average(optim.AdamW(1e-2), 0.9),
    )
    seen = log.seen[-1][1]["eval/w"]
    assert np.isclose(seen, float(state.eval_model().last.weight[0, 0])) and seen != float(
        state.model.last.weight[0, 0]
    )


def test_the_best_checkpoint_and_patience(tmp_path):
    values, steps = iter([3.0, 1.0, 2.0, 2.0, 0.0]), []

    def hook(run):
        steps.append(run.step)
        if run.step % 5 == 0:
            run.evaluation = dataclasses.replace(run.evaluation, batches=[{"v": np.full(1, next(values))}])

    state = run(
        100, evaluation=train.Evaluation([{"v": np.ones(1)}], lambda m, b: {"v": b["v"]}, every=5, patience=2),
        callbacks=[hook],
        checkpoint=checkpoints.Saver(tmp_path, every=5, max_to_keep=1, best="eval/v"),
    )  # fmt: skip
    assert int(state.step) == 20 and max(steps) == 20
    saver = checkpoints.Saver(tmp_path, best="eval/v")
    assert saver.steps() == [10, 20] and saver.restore(template=state, step="best").step == 10
    # the same call again does not go on
    again = train.Evaluation([{"v": np.ones(1)}], lambda m, b: {"v": b["v"]}, patience=2)
    assert int(run(100, checkpoint=saver, evaluation=again).step) == 20


def test_hooks():
    def hook(run):
        if run.step == 3:
            run.state = optim.set_hyperparams(run.state, learning_rate=0.0)
            run.log(changed=1)
        if run.step == 8:
            run.stop()
        weights.append(np.asarray(run.state.model.last.weight))

    weights, log = [], Kept()
    state = run(100, callbacks=[hook], loggers=[log], optimizer=optim.SGD(0.1))
    assert int(state.step) == 8 and [s for s, _ in log.seen] == list(range(1, 9))
    assert np.array_equal(weights[3], weights[7]) and not np.array_equal(weights[0], weights[1])
    assert log.seen[2][1]["changed"] == 1 and "changed" not in log.seen[3][1]


@pytest.mark.parametrize("parts", [2, 5])
def test_micro_batches(parts):
    def plain(model, x, y):
        return ((model(x) - y) ** 2).mean()

    x, y = X[:20], X[20:40, :2]
    model = nn.Linear(5, 2, key=random.key(0))
    one, _ = train.step(plain, donate=False)(train.State(model, optim.SGD(0.1)), x, y)
    two, values = train.step(plain, donate=False, gradient_accumulation_steps=parts)(
        train.State(model, optim.SGD(0.1)), x, y
    )
    np.testing.assert_allclose(two.model.weight, one.model.weight, rtol=1e-6, atol=1e-7)
    assert np.isclose(float(values["loss"]), float(plain(model, x, y)))
    with pytest.raises(ValueError, match="gradient_accumulation_steps=3 must divide the length of the batch"):
        train.step(plain, gradient_accumulation_steps=3)(train.State(model, optim.SGD(0.1)), x, y)


def test_micro_batches_have_keys_and_statistics():
    log = Kept()
    state = run(5, gradient_accumulation_steps=4, loggers=[log])
    assert np.isfinite(log.seen[-1][1]["loss"]) and not np.array_equal(state.model.norm.mean, np.zeros(16))


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_precision(precision):
    log = Kept()
    state = run(30, precision=precision, loggers=[log])
    assert state.model.first.weight.dtype == "float32" and log.seen[-1][1]["loss"] < log.seen[0][1]["loss"]
    assert state.optimizer.has_scale == (precision == "float16")


def test_epochs_and_iterables():
    log = Kept()
    assert int(run(None, epochs=2).step) == 20
    assert int(run(None).step) == 10  # once
    assert int(run(None, batches=rows().repeat(2)).step) == 20
    batches = [{"x": X[:10], "y": Y[:10]}] * 3
    assert int(run(None, batches=batches, epochs=2).step) == 6
    assert int(run(7, batches=batches, loggers=[log]).step) == 7
    with pytest.warns(UserWarning, match="ended after step 3 of 7"):
        assert int(run(7, batches=iter(batches)).step) == 3
    uneven = data.arrays(x=X, y=Y).filter(lambda e: e["y"] != 0).batch(10)
    log = Kept()
    run(None, batches=uneven, evaluation=train.Evaluation(held_out(), every=1000), loggers=[log])
    assert "eval/loss" in log.seen[-1][1]


def test_tuples_are_arguments():
    def plain(model, x, y):
        return ((model(x) - y) ** 2).mean()

    pairs = data.arrays((X[:40], X[40:80, :2])).batch(10)
    state = train.fit(
        nn.Linear(5, 2, key=random.key(0)), plain, pairs, optim.SGD(0.1), steps=5, evaluation=pairs, progress=False
    )
    assert int(state.step) == 5


def poisoned(at, n=10):
    """Batches of which one is bad."""
    batches = [{"x": X[20 * (i % 10) :][:20].copy(), "y": Y[20 * (i % 10) :][:20]} for i in range(n)]
    batches[at]["x"][3, 2] = np.nan
    return data.source(batches)


def test_a_nan_stops_the_run_and_names_the_line(tmp_path):
    for checkpoint in (None, checkpoints.Saver(tmp_path, every=4)):
        log = Kept()
        with pytest.raises(FloatingPointError, match=r"train.fit: step 6: loss nan, norm of gradients nan") as caught:
            run(30, batches=poisoned(5), loggers=[log], checkpoint=checkpoint)
        assert "argument [1]['x']" in str(caught.value) or "x" in str(caught.value)
        assert [s for s, _ in log.seen] == list(range(1, 7)) and math.isnan(log.seen[-1][1]["loss"])


def bad_log(net, batch, key):
    return jnp.log(loss(net, batch, key) - batch["x"][3, 2] * 1e3).mean()


def test_the_line_of_a_nan_is_the_users():
    batches = [{"x": X[:20].copy(), "y": Y[:20]} for _ in range(4)]
    for b in batches:
        b["x"][3, 2] = -1
    batches[2]["x"][3, 2] = 1
    with pytest.raises(FloatingPointError) as caught:
        train.fit(
            net(), bad_log, batches, optim.SGD(1e-3), steps=4, key=random.key(0), progress=False
        )  # fmt: skip
    assert "step 3" in str(caught.value) and "jnp.log(loss(" in str(caught.value)


def test_skipping_a_nan(tmp_path):
    log = Kept()
    with pytest.warns(UserWarning, match=r"step 6: loss nan(.|\n)*skipped"):
        state = run(
            10, batches=poisoned(5), nans="skip", loggers=[log], checkpoint=checkpoints.Saver(tmp_path, every=3)
        )
    assert [s for s, _ in log.seen] == list(range(1, 11)) and log.seen[5][1]["skipped"] == 1
    assert all([math.isfinite(v["loss"]) == (s != 6) for s, v in log.seen])
    # as if the batch had not been there, but for the numbers of the steps
    by_hand = train.State(net(), optim.AdamW(1e-2), key=random.key(1))
    step = train.step(loss)
    for i, batch in enumerate(poisoned(5)):
        if i != 5:
            by_hand, _ = step(by_hand, batch)
        else:
            by_hand.step = by_hand.step + 1
    close(state, by_hand)


def test_going_back_at_a_nan(tmp_path):
    log = []

    class Log(Kept):
        def rewind(self, step):
            log.append(("rewind", step))

        def log(self, step, values):
            log.append((step, values["loss"]))

    with pytest.warns(UserWarning, match=r"Restored step 4; continuing after this batch"):
        state = run(
            10, batches=poisoned(5, 20), nans="back", checkpoint=checkpoints.Saver(tmp_path, every=4), loggers=[Log()]
        )
    assert ("rewind", 4) in log and [s for s, _ in losses(tmp_path)] == list(range(1, 11))
    assert int(state.step) == 10
    # what came after the checkpoint is not in it: the batches are 0-3, then 6 on
    by_hand = train.State(net(), optim.AdamW(1e-2), key=random.key(1))
    step, batches = train.step(loss), list(poisoned(5, 20))
    for batch in [*batches[:4], *batches[6:12]]:
        by_hand, _ = step(by_hand, batch)
    close(state, by_hand)


def test_going_back_has_an_end(tmp_path):
    batches = data.source([{"x": np.full((2, 5), np.nan, "float32"), "y": Y[:2]}])
    with pytest.warns(UserWarning, match="Restored step 0"), pytest.raises(FloatingPointError, match="did not help"):
        run(10, batches=batches, nans="back", checkpoint=checkpoints.Saver(tmp_path, every=4))


def test_a_nan_at_the_very_end_goes_back_too(tmp_path):
    with pytest.warns(UserWarning, match="Restored step 8"):
        state = run(10, batches=poisoned(9, 10), nans="back", checkpoint=checkpoints.Saver(tmp_path, every=4))
    assert int(state.step) == 10 and [s for s, _ in losses(tmp_path)] == list(range(1, 11))


def test_without_looking():
    state = run(10, batches=poisoned(5), nans=None)
    assert np.isnan(np.asarray(state.model.last.weight)).any()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends(tmp_path, number):
    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as caught:
            run(
                60, checkpoint=checkpoints.Saver(tmp_path / "a", every=20),
                callbacks=[lambda r: signal.raise_signal(number) if r.step == 13 else None],
            )  # fmt: skip
        assert number == signal.SIGINT or caught.value.code == 143
        assert signal.getsignal(number) is not None and checkpoints.Saver(tmp_path / "a").latest() == 13
        assert [s for s, _ in losses(tmp_path / "a")] == list(range(1, 14))
    finally:
        signal.signal(number, before)
    same(
        run(60, checkpoint=checkpoints.Saver(tmp_path / "a", every=20)),
        run(60, checkpoint=checkpoints.Saver(tmp_path / "b", every=20)),
    )
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


def test_a_handler_of_the_user_is_called(tmp_path):
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *args: seen.append(args[0]))
    try:
        with pytest.raises(SystemExit):
            run(60, checkpoint=tmp_path, callbacks=[lambda r: signal.raise_signal(signal.SIGTERM)])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM] and checkpoints.Saver(tmp_path).latest() == 1


MISTAKES = {
    "what to do": (ValueError, 'nans must be "stop"', {"nans": "ignore"}),
    "back to where": (ValueError, 'nans="back" needs a checkpoint', {"nans": "back"}),
    "both": (TypeError, "give either steps or epochs", {"epochs": 2}),
    "patience": (TypeError, "needs a best metric", {"evaluation": train.Evaluation(held_out(), patience=2)}),
    "unknown": (
        ValueError, "best='eval/nothing' must be a metric",
        {"evaluation": train.Evaluation(held_out(), best="eval/nothing")},
    ),
    "no end": (ValueError, "is infinite", {"steps": None, "batches": rows().repeat()}),
    "twice": (ValueError, "already repeated", {"steps": None, "epochs": 2, "batches": rows().repeat(2)}),
    "empty": (ValueError, "an epoch has no batches, as there are only", {"batches": data.arrays(x=X[:20]).batch(30)}),
    "workers": (TypeError, "num_workers needs an atled.data pipeline", {"num_workers": 1, "batches": [1]}),
    "dict": (
        TypeError, "must return a dict of metrics", {"evaluation": train.Evaluation(held_out(), lambda m, b: 1.0)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    kind, text, options = MISTAKES[name]
    with pytest.raises(kind, match=text):
        run(**{"steps": 5, **options})


EVALUATIONS = {
    "steps": (ValueError, "every must be a positive integer; got 0", {"every": 0}),
    "patience": (ValueError, "patience must be a positive integer; got 1.5", {"patience": 1.5}),
    "mode": (ValueError, 'mode must be "min" or "max"; got .minimum.', {"best": "eval/loss", "mode": "minimum"}),
    "an iterator": (TypeError, "an iterator can be used only once", {"batches": iter([1])}),
    "nothing": (TypeError, "the batches are iterated many times", {"batches": None}),
}


@pytest.mark.parametrize("name", EVALUATIONS)
def test_evaluations_that_cannot_be(name):
    kind, text, options = EVALUATIONS[name]
    with pytest.raises(kind, match=text):
        train.Evaluation(**{"batches": [1], **options})


OLD_WORDS = {
    "evaluate": r"evaluation=train\.Evaluation\(batches\)", "measure": r"train\.Evaluation\(batches, metrics_fn\)",
    "every": r"checkpoints\.Saver\(path, every=", "best": "best=", "mode": "mode=", "patience": "patience=",
    "hooks": "callbacks=", "workers": "num_workers=", "micro": "gradient_accumulation_steps=",
    "tokens": "tokens_per_batch=", "average": r"optim\.average\(optimizer, decay\)",
}  # fmt: skip


@pytest.mark.parametrize("name", OLD_WORDS)
def test_old_words_say_the_new_ones(name):
    with pytest.raises(TypeError, match=rf"fit: '{name}' was .* in 0\.1(.|\n)*try: .*{OLD_WORDS[name]}"):
        run(5, **{name: None})


def test_more_mistakes(tmp_path):
    with pytest.raises(TypeError, match="a list has no position to save"):
        run(5, batches=[{"x": X, "y": Y}], checkpoint=tmp_path)
    with pytest.raises(TypeError, match="an optimizer must be given"):
        train.fit(net(), loss, rows(), steps=5)
    with pytest.raises(TypeError, match="a State already has an optimizer"):
        train.fit(train.State(net(), optim.SGD(0.1)), loss, rows(), optim.SGD(0.1), steps=5)
    with pytest.raises(TypeError, match="there is no evaluation"):
        run(5, checkpoint=checkpoints.Saver(tmp_path, best="eval/loss"))
    with pytest.raises(TypeError, match="must be given to the saver"):
        run(5, checkpoint=checkpoints.Saver(tmp_path), evaluation=train.Evaluation(held_out(), best="eval/loss"))
    with pytest.raises(ValueError, match="there are no batches"):
        train.evaluate(net(), measure, [])
    run(5, checkpoint=checkpoints.Saver(tmp_path, every=5))
    with pytest.raises(ValueError, match=r"The saved pipeline has .*, this pipeline has"):
        run(
            10,
            checkpoint=checkpoints.Saver(tmp_path, every=5),
            batches=data.arrays(x=X[:200], y=Y[:200]).shuffle(1).batch(40),
        )


def test_numbers_in_the_log_are_exact(tmp_path):
    log = train.JSONL(tmp_path / "l")
    for i, x in enumerate((0.1, float(np.float32(0.1)), 1e-45, math.inf, -math.inf, math.nan)):
        log.log(i, {"x": x})
        log.flush()
        found = train.records(tmp_path / "l")[-1]["x"]
        assert found == x or (math.isnan(x) and math.isnan(found))
    for line in (tmp_path / "l").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))
