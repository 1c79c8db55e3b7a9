"""`train.fit` in hostile hands: what an attack found, each with the case that showed it."""

import dataclasses
import math
import threading

import numpy as np
import pytest
from test_fit import Kept, X, Y, held_out, loss, losses, net, poisoned, rows, run, same

import atled.numpy as jnp
from atled import checkpoints, data, optim, random, train
from atled.checkpoints.storage import Local


def state_at(step):
    state = train.State(net(), optim.SGD(0.1), key=random.key(1))
    state.step = state.step + step
    return state


def test_epochs_of_a_state_that_has_trained_already():
    assert int(train.fit(state_at(20), loss, rows(), epochs=1, progress=False).step) == 30
    assert int(train.fit(state_at(15), loss, rows(), epochs=2, progress=False).step) == 35


@pytest.mark.parametrize("name", ["loss", "norm", "step", "skipped"])
def test_names_of_its_own(name):
    with pytest.raises(ValueError, match="are reserved names"):
        train.fit(
            net(), lambda m, b, key: (loss(m, b, key), {name: 1.0}), rows(), optim.SGD(0.1), steps=2, has_aux=True,
            key=random.key(0), progress=False,
        )  # fmt: skip
    with pytest.raises(ValueError, match="are reserved names"):
        run(2, callbacks=[lambda r: r.log(**{name: 1.0})])


def test_more_metrics_are_arrays():
    def nested(model, batch, key):
        return loss(model, batch, key), {"a": {"b": 1.0}}

    with pytest.raises(TypeError, match="dict of arrays"):
        train.step(nested, has_aux=True)(state_at(0), {"x": X[:4], "y": Y[:4]})


def test_a_line_of_the_log_always_has_its_step(tmp_path):
    log = train.JSONL(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        log.log(step, {"step": 7.5, "loss": 1.0})
    log.rewind(2)
    assert train.records(tmp_path) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 1.0}]


def series(values, metrics_fn=lambda m, b: {"v": b["v"]}, **settings):
    """Options with which evaluations give these values, one after the other."""
    values = iter(values)

    def hook(run):
        if run.step % 5 == 0:
            run.evaluation = dataclasses.replace(run.evaluation, batches=[{"v": np.full(1, next(values))}])

    evaluation = train.Evaluation([{"v": np.ones(1)}], metrics_fn, every=5, **settings)
    return {"evaluation": evaluation, "callbacks": [hook]}


def test_the_mode_is_not_ignored(tmp_path):
    with pytest.raises(TypeError, match="mode='max' must be given to the saver"):
        run(5, checkpoint=checkpoints.Saver(tmp_path, best="eval/v"), **series([1], best="eval/v", mode="max"))


def test_a_metric_that_is_nan_is_not_the_best():
    assert int(run(30, **series([math.nan, 5, 4, 3, 2, 1], best="eval/v", patience=3)).step) == 30


def test_the_best_is_saved_whenever_it_comes(tmp_path):
    saver = checkpoints.Saver(tmp_path, every=100, best="eval/v")
    run(30, checkpoint=saver, **series([5, 4, 1, 3, 2, 6]))
    found = saver.restore(step="best")
    assert found is not None and found.step == 15


def test_another_best_metric_begins_anew(tmp_path):
    run(10, checkpoint=checkpoints.Saver(tmp_path, every=5, best="eval/v"), **series([1, 1]))
    options = series([9, 8, 7, 6], lambda m, b: {"w": b["v"]}, patience=2)
    saver = checkpoints.Saver(tmp_path, every=5, best="eval/w")
    assert int(run(30, checkpoint=saver, **options).step) == 30


def test_hooks_see_steps_that_are_taken(tmp_path):
    """A bad step is known before hooks run, if batches are skipped: the result does not depend on when one looks."""

    def hook(run):
        run.state = optim.set_hyperparams(run.state, learning_rate=0.1 / (1 + run.step))
        run.log(mine=float(run.metrics["loss"]))

    found = []
    for checkpoint in (None, checkpoints.Saver(tmp_path)):
        log = Kept()
        options = {"callbacks": [hook], "nans": "skip", "optimizer": optim.SGD(0.1)}
        with pytest.warns(UserWarning, match="is skipped"):
            found.append(run(10, batches=poisoned(5), loggers=[log], checkpoint=checkpoint, **options))
        good = [(s, v) for s, v in log.seen if s != 6]
        assert all([v["mine"] == v["loss"] for _, v in good]) and [s for s, _ in log.seen] == list(range(1, 11))
    same(*found)


def test_an_error_waits_for_the_save(tmp_path, monkeypatch):
    """Or the next call finds nothing, and cuts the log."""
    write, gate = Local.write, threading.Event()
    monkeypatch.setattr(Local, "write", lambda self, *args: gate.wait(30) and write(self, *args))

    def hook(run):
        if run.step == 6:
            threading.Timer(0.2, gate.set).start()
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        run(8, checkpoint=checkpoints.Saver(tmp_path, every=4), callbacks=[hook])
    run(8, checkpoint=checkpoints.Saver(tmp_path, every=4))
    assert [s for s, _ in losses(tmp_path)] == list(range(1, 9))


def test_the_end_of_data_that_nobody_knew(tmp_path):
    odd = data.arrays(x=X, y=Y).filter(lambda e: e["y"] != 0).batch(25)
    saver = checkpoints.Saver(tmp_path, every=4, best="eval/loss")
    for _ in range(2):
        state = run(None, batches=odd, evaluation=train.Evaluation(held_out(), every=1000), checkpoint=saver)
        last = train.records(tmp_path)[-1]
        assert set(last) == {"step", "loss", "norm", "eval/loss"} and last["step"] == int(state.step)
        found = saver.restore(step="best")
        assert found is not None and found.step == last["step"]


@pytest.mark.parametrize("nans", ["skip", "back"])
def test_stopping_beside_a_bad_step(tmp_path, nans):
    def hook(run):
        run.log(at=run.step)
        if run.step == 7:
            run.stop()

    options = {"evaluation": train.Evaluation(held_out(), every=4), "checkpoint": tmp_path, "callbacks": [hook]}
    with pytest.warns(UserWarning, match="step 6"):
        state = run(20, batches=poisoned(5, 20), nans=nans, **options)
    found = train.records(tmp_path)
    assert int(state.step) == 7 and [one["step"] for one in found] == list(range(1, 8)) and "eval/loss" in found[-1]
    assert [one["at"] for one in found if "skipped" not in one] == [s for s in range(1, 8) if nans == "back" or s != 6]


def test_a_bad_step_is_logged_where_the_model_is_evaluated_too():
    log = Kept()
    with pytest.raises(FloatingPointError):
        run(10, batches=poisoned(5), evaluation=train.Evaluation(held_out(), every=6), loggers=[log])
    assert [s for s, _ in log.seen] == list(range(1, 7))


def test_modules_in_containers_are_evaluated_too():
    found = []

    def boxed(model, batch, key):
        found.append(model["net"].training)
        return loss(model["net"], batch, key)

    options = {"steps": 2, "key": random.key(0), "evaluation": held_out(), "progress": False}
    train.fit({"net": net()}, boxed, rows(), optim.SGD(0.1), **options)
    assert set(found) == {True, False}


class Broken:
    """A screen that nobody looks at any more."""

    def isatty(self):
        return True

    def write(self, text):
        raise BrokenPipeError

    flush = write


@pytest.mark.parametrize("stream", [None, Broken()])
def test_nobody_looks_at_the_bar(monkeypatch, stream):
    monkeypatch.setattr("sys.stderr", stream)
    assert int(run(5, progress=True).step) == 5


def test_the_key_is_left_alone():
    key = random.key(1)
    run(2, key=key)
    run(2, key=key)


def test_more_epochs_go_on(tmp_path):
    for epochs, want in ((1, 10), (3, 30)):
        assert int(run(None, epochs=epochs, checkpoint=checkpoints.Saver(tmp_path, every=5)).step) == want
    same(run(40, checkpoint=checkpoints.Saver(tmp_path, every=5)), run(40))


def test_what_a_call_asks_for_in_vain_is_said(tmp_path):
    run(10, checkpoint=checkpoints.Saver(tmp_path, every=5))
    with pytest.warns(UserWarning, match=r"continues with its original optimizer, AdamW\(learning_rate=0.01"):
        run(15, checkpoint=checkpoints.Saver(tmp_path, every=5), optimizer=optim.AdamW(0.5))
    with pytest.warns(UserWarning, match="continues with its original key"):
        run(20, checkpoint=checkpoints.Saver(tmp_path, every=5), key=random.key(5))
    with pytest.warns(UserWarning, match="is at step 20 already"):
        run(10, checkpoint=checkpoints.Saver(tmp_path, every=5))
    checkpoints.Saver(tmp_path / "own", wait=True).save(3, train.State(net(), optim.AdamW(1e-2), key=random.key(1)))
    with pytest.raises(checkpoints.CheckpointError, match="that fit did not write"):
        run(10, checkpoint=tmp_path / "own")


def test_gradients_that_never_fit_into_float16():
    def steep(model, batch, key):
        nothing = model.last.weight - model.last.weight
        return loss(model, batch, key) + (0 * jnp.log(nothing + 1) / (nothing + 1e-30)).sum() + jnp.sqrt(nothing).sum()

    with pytest.raises(FloatingPointError, match="100 steps were not finite"):
        train.fit(
            net(), steep, rows(), optim.SGD(0.1), steps=300, key=random.key(0), precision="float16", progress=False
        )


def test_a_log_of_another_run_goes_on(tmp_path):
    log = train.JSONL(tmp_path / "log.jsonl")
    run(3, loggers=[log])
    run(3, loggers=[log])
    assert [one["step"] for one in train.records(tmp_path)] == [1, 2, 3, 1, 2, 3]


def test_loggers_may_change_what_they_get(tmp_path):
    class Clearing:
        def log(self, step, values):
            values.clear()

    run(
        10,
        loggers=[Clearing()],
        checkpoint=tmp_path,
        evaluation=train.Evaluation(held_out(), every=5, best="eval/loss"),
    )
    assert checkpoints.Saver(tmp_path, best="eval/loss").restore(step="best") is not None


def test_the_loss_of_a_smaller_batch_weighs_less():
    log = Kept()
    state = run(
        3,
        evaluation=train.Evaluation(data.arrays(x=X[:21], y=Y[:21]).batch(20, drop_last=False), every=3),
        loggers=[log],
    )
    want = float(loss(state.eval_model(), {"x": X[:21], "y": Y[:21]}, None))
    assert math.isclose(log.seen[-1][1]["eval/loss"], want, rel_tol=1e-5)


@pytest.mark.parametrize("wrong", [[{"z": X}], iter([1]), []])
def test_evaluation_is_tried_before_training(wrong):
    seen = []
    with pytest.raises((KeyError, TypeError, ValueError)):
        run(5, callbacks=[seen.append], evaluation=wrong)
    assert not seen


def test_an_iterator_has_one_epoch():
    with pytest.raises(TypeError, match="an iterator can be used for one epoch only"):
        run(None, batches=rows().iterator(), epochs=3)


def test_a_log_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log, board = train.JSONL("log.jsonl"), train.TensorBoard("board")
    for step in range(1, 6):
        for one in (log, board):
            one.log(step, {"loss": 1e300})
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    for one in (log, board):
        one.rewind(4)
    assert len(train.records(tmp_path)) == 4 and [s for _, s, _ in board.events()] == [0, 1, 2, 3, 4]
    board.path.write_bytes(board.path.read_bytes() + bytes(200))  # as some file systems leave it after a crash
    assert len(list(board.events())) == 5


def test_a_resumed_run_goes_on_with_its_optimizer(tmp_path):
    """Schedules, static fields and even the class are those that it began with; the warning says the same."""
    first = optim.SGD(optim.linear(0.1, 100), momentum=0.9, nesterov=True)
    whole = run(20, optimizer=first)
    for number, other in enumerate((
        optim.SGD(optim.linear(0.1, 1000), momentum=0.9, nesterov=True), optim.average(first), optim.AdamW(1e-2),
        optim.SGD(optim.linear(0.1, 100), momentum=0.9), optim.SGD(0.1, momentum=0.9, nesterov=True),
    )):  # fmt: skip
        place = tmp_path / str(number)
        run(10, checkpoint=checkpoints.Saver(place, every=5), optimizer=first)
        for steps in (15, 20):  # the second time, the checkpoint is one of the resumed run
            with pytest.warns(
                UserWarning, match=r"continues with its original optimizer, SGD\(learning_rate=WarmupDecay"
            ):
                state = run(steps, checkpoint=checkpoints.Saver(place, every=5), optimizer=other)
        assert state.optimizer == first
        same(state, whole)


def test_functions_of_an_optimizer_are_those_of_the_call(tmp_path):
    run(10, checkpoint=checkpoints.Saver(tmp_path, every=5), optimizer=optim.SGD(lambda t: 0.1))
    run(
        12, checkpoint=checkpoints.Saver(tmp_path, every=5), optimizer=optim.SGD(lambda t: 0.1)
    )  # no warning: it is the same code
    with pytest.warns(UserWarning, match="another function .*lambda.* in its optimizer"):
        state = run(15, checkpoint=checkpoints.Saver(tmp_path, every=5), optimizer=optim.SGD(lambda t: 0.2))
    assert abs(float(state.opt_state.scheduled["learning_rate"]) - 0.2) < 1e-6
    run(17, checkpoint=checkpoints.Saver(tmp_path, every=5), optimizer=optim.SGD(lambda t: 0.2))


def test_an_optimizer_that_is_not_defined_here(tmp_path):
    class Mine(optim.SGD):
        pass

    run(10, checkpoint=checkpoints.Saver(tmp_path, every=5), optimizer=Mine(0.1))
    Mine.__qualname__ = "Yours"
    with pytest.warns(UserWarning, match=r"cannot be restored; the run continues with SGD\(learning_rate=0.5"):
        state = run(15, checkpoint=checkpoints.Saver(tmp_path, every=5), optimizer=optim.SGD(0.5))
    assert type(state.optimizer) is optim.SGD


@pytest.mark.parametrize("best", ["eval/los", "los", "accuracy"])
def test_a_misspelt_best_is_found_before_the_first_step(tmp_path, best):
    seen = []
    options = {"checkpoint": tmp_path, "evaluation": train.Evaluation(held_out(), best=best)}
    with pytest.raises(ValueError, match=f"best='{best}' must be a metric of the run; it has"):
        train.fit(
            net(), lambda m, b, key=None: (loss(m, b, key), {"acc": 1.0}), rows(), optim.SGD(0.1), steps=20,
            key=random.key(0), has_aux=True, progress=False, loggers=[seen], **options,
        )  # fmt: skip
    assert not seen


def test_a_best_metric_of_the_loss_or_of_a_hook(tmp_path):
    def with_accuracy(model, batch, key):
        return loss(model, batch, key), {"acc": jnp.float32(1.0)}

    own = {"steps": 6, "key": random.key(0), "progress": False}
    for best, callbacks in (("acc", ()), ("own", [lambda r: r.log(own=1.0)]), ("norm", ())):
        train.fit(
            net(), with_accuracy, rows(), optim.SGD(0.1), callbacks=callbacks, has_aux=True,
            checkpoint=checkpoints.Saver(tmp_path / best, every=2, best=best), **own,
        )  # fmt: skip


@pytest.mark.parametrize("nothing", [list, tuple, lambda: iter([])])
def test_no_data_is_an_error(nothing):
    with pytest.raises(ValueError, match="there are no batches"):
        train.fit(net(), loss, nothing(), optim.SGD(0.1), key=random.key(0), progress=False)


def test_an_extra_evaluation_at_the_end_does_not_use_up_patience(tmp_path):
    """A run in two calls stops where the whole one does, wherever it was interrupted."""
    evaluation = train.Evaluation(held_out(), every=2, best="eval/loss", patience=2)
    options = {
        "optimizer": optim.SGD(optim.join_schedules([0.05, 5.0], [6])), "evaluation": evaluation, "nans": None,
    }  # fmt: skip
    whole = run(40, **options)
    for first in (3, 5, 7, 8, 9):
        run(first, checkpoint=tmp_path / str(first), **options)
        assert int(run(40, checkpoint=tmp_path / str(first), **options).step) == int(whole.step)
