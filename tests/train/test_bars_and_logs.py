"""What a run shows and keeps: bars on terminals, in notebooks and in files; event files; curves."""

import builtins
import io
import math
import re
import struct
import sys
import types

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import train
from atled.engine import progress as bars
from atled.train import tensorboard


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, n=5, **options):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(bars, "REDRAW", 0)
    monkeypatch.setattr(bars._Terminal, "pause", 0)
    bar = train.progress(range(n), **options)
    for i in bar:
        bar.show(loss=jnp.float32(i))
    return stream.getvalue()


def test_a_terminal(monkeypatch):
    pictures = shown(monkeypatch, Terminal(), stop=5, tokens=10, label="net").split("\r\x1b[2K")
    assert pictures[1].startswith("net 0/5 ╌╌╌") and pictures[-1].startswith("net 5/5 ━━━") and pictures[-1][-1] == "\n"
    assert (
        "loss 4" in pictures[-1] and "steps/s" in pictures[-1] and "tokens/s" in pictures[-1] and "GB" in pictures[-1]
    )
    assert any(["left" in p for p in pictures[2:-1]])


@pytest.mark.parametrize("columns", [10, 40, 60, 200])
def test_a_line_is_never_longer_than_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for picture in shown(monkeypatch, Terminal(), stop=5, tokens=10, label="a label").split("\r\x1b[2K"):
        assert len(picture.rstrip("\n")) < columns


def test_a_file(monkeypatch):
    lines = shown(monkeypatch, io.StringIO(), stop=5).splitlines()
    assert len(lines) == 1 and lines[0].startswith("5/5  loss 4") and "\x1b" not in lines[0]


def test_a_notebook(monkeypatch):
    drawn = []

    class Handle:
        def update(self, x):
            drawn.append(x)

    def display(x, display_id):
        drawn.append(x)
        return Handle()

    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display))
    monkeypatch.setattr(bars._Notebook, "pause", 0)
    bar = train.progress(range(3), stop=3, label="<net>")
    for _ in bar:
        bar.show(loss=math.nan)
    assert 'value="3"' in drawn[-1] and "&lt;net&gt; 3/3" in drawn[-1] and "loss nan" in drawn[-1] and len(drawn) >= 4


def test_a_bar_does_not_wait():
    """A value that is not there yet is left out."""

    class Late:
        def is_ready(self):
            return False

        def __array__(self, *_):
            pytest.fail("it waited")

    bar = train.progress([], show=False)
    bar.begin()
    bar.show(loss=Late(), other=2)
    assert not any(["loss" in p for p in bar.parts()]) and "other 2" in bar.parts()


def test_values_that_are_gone_or_no_numbers(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(bars._Terminal, "pause", 0)
    f = atled.jit(lambda x: x + 1, donate_argnums=0)
    bar, x = train.progress(range(3)), jnp.ones(())
    for _ in bar:
        bar.show(loss=x)
        x = f(x)
    assert x == 4
    x.delete()
    with pytest.raises(RuntimeError, match=r"is_ready: .* was deleted or donated"):
        x.is_ready()
    for bad in ("abc", None, np.ones(2)):
        with pytest.raises(TypeError, match="progress: loss must be a number"):
            bar.show(loss=bad)
    with pytest.raises(TypeError, match="progress: loss must be a number"):
        atled.jit(lambda x: bar.show(loss=x))(1.0)


@pytest.mark.parametrize("stream", [None, object(), "closed"])
def test_loops_do_not_need_a_terminal(monkeypatch, stream):
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    carry, _ = atled.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(10.0), progress=True)
    assert carry == 45


def test_iteration_ends_at_stop():
    seen = []
    bar = train.progress(iter(range(100)), start=95, stop=98, show=False)
    for x in bar:
        seen.append(x)
    assert seen == [0, 1, 2] and bar.step == 98
    items = iter(range(10))
    assert list(train.progress(items, stop=3, show=False)) == [0, 1, 2] and next(items) == 3  # nothing is lost


NUMBERS = [(0, "0"), (0.03125, "0.03125"), (12345.678, "12.3k"), (1e6, "1M"), (2.5e9, "2.5G"), (1e-7, "1.00e-07")]


@pytest.mark.parametrize("x, text", [*NUMBERS, (math.nan, "nan"), (-math.inf, "-inf"), (-12345.678, "-12.3k")])
def test_numbers(x, text):
    assert bars.short(x) == text


@pytest.mark.parametrize("seconds, text", [(3, "3 s"), (99.6, "1:40 min"), (200, "3:20 min"), (7500, "2:05 h")])
def test_durations(seconds, text):
    assert bars.duration(seconds) == text


# -- event files ------------------------------------------------------------------------------------------------------


def test_checksums_are_those_of_the_standard():
    """Test vectors of RFC 3720, appendix B.4."""
    for data, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)):
        assert tensorboard._crc32c(data) == crc


def test_event_files(tmp_path):
    board = train.TensorBoard(tmp_path)
    for step in (1, 127, 128, 2**40):
        board.log(step, {"loss": step / 3, "eval/a": math.nan})
    board.flush()
    found = [(step, values) for _, step, values in train.TensorBoard(tmp_path).events()][1:]  # the same file
    assert [step for step, _ in found] == [1, 127, 128, 2**40]
    assert found[1][1]["loss"] == np.float32(127 / 3) and math.isnan(found[1][1]["eval/a"])
    data = board.path.read_bytes()
    at = 0
    while at < len(data):  # the form of records
        (size,) = struct.unpack_from("<Q", data, at)
        assert data[at + 8 : at + 12] == tensorboard._masked(data[at : at + 8])
        assert data[at + 12 + size : at + 16 + size] == tensorboard._masked(data[at + 12 : at + 12 + size])
        at += 16 + size
    assert at == len(data)


@pytest.mark.parametrize("cut", [0, 1, 20])
def test_events_after_a_step_are_cut_off(tmp_path, cut):
    board = train.TensorBoard(tmp_path)
    for step in (1, 2, 3):
        board.log(step, {"loss": 1.0})
    board.flush()
    data = board.path.read_bytes()
    board.path.write_bytes(data[: len(data) - cut])  # a record that is not whole
    board.rewind(2)
    board.log(3, {"loss": 2.0})
    assert [(s, v) for _, s, v in board.events()][1:] == [(1, {"loss": 1.0}), (2, {"loss": 1.0}), (3, {"loss": 2.0})]


# -- curves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_curves(tmp_path, kind, start):
    log = train.JSONL(tmp_path / "log.jsonl")
    for step in range(1, 101):
        more = {"eval/loss": 2 / step, "eval/accuracy": 0.5} if step % 20 == 0 else {}
        log.log(step, {"loss": math.nan if step == 7 else 1 / step, **more})
    log.flush()
    train.curves(tmp_path, tmp_path / f"curves.{kind}")
    assert (tmp_path / f"curves.{kind}").read_bytes().startswith(start)
    picture = train.curves(tmp_path)
    assert re.match(r'<div style="max-width:\d+pt"><svg[^>]* width="100%" viewBox', picture._repr_html_())
    figure = picture.figure
    assert [axes.get_title() for axes in figure.axes] == ["loss", "accuracy"] and len(figure.axes[0].lines) == 3
    assert len(train.curves(tmp_path, names=["accuracy"]).figure.axes) == 1
    with pytest.raises(ValueError, match="nothing to draw; the log has loss, eval/loss, eval/accuracy"):
        train.curves(tmp_path, names=["other"])


def test_a_log_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train.records: there is no log at"):
        train.curves(tmp_path / "no")
