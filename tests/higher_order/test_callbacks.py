"""Python called from compiled code: values, order, batches, errors."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.engine import progress

F32 = atled.ShapeDtypeStruct((), "float32")


def like(x):
    return atled.ShapeDtypeStruct(x.shape, x.dtype)


def host_sin(x):
    return np.sin(x)


def sine(x, method="sequential"):
    return atled.pure_callback(host_sin, like(x), x, vmap_method=method)


X = np.arange(6, dtype="f4").reshape(2, 3)
PLACES = {
    "eager": lambda x: sine(x),
    "jit": lambda x: atled.jit(sine)(x),
    "vmap": lambda x: atled.vmap(sine)(x),
    "jit(vmap)": lambda x: atled.jit(atled.vmap(sine))(x),
    "expanded": lambda x: atled.vmap(lambda v: sine(v, "expand_dims"))(x),
    "broadcast": lambda x: atled.vmap(lambda v: sine(v, "broadcast_all"))(x),
    "scan": lambda x: lax.scan(lambda c, v: (c, sine(v)), 0, x)[1],
    "jit(scan)": atled.jit(lambda x: lax.scan(lambda c, v: (c, sine(v)), 0, x)[1]),
    "cond": lambda x: lax.cond(x[0, 0] == 0, sine, lambda v: v, x),
    "checkpoint": lambda x: atled.jit(atled.remat(sine))(x),
}


@pytest.mark.parametrize("place", PLACES)
def test_values(place):
    np.testing.assert_allclose(PLACES[place](X), np.sin(X), rtol=1e-6)


def test_trees_of_arguments_and_results():
    def host(a, *, b):
        return {"sum": a["x"] + b, "count": np.int32(a["n"])}

    f = atled.jit(
        lambda x: atled.pure_callback(host, {"sum": F32, "count": atled.ShapeDtypeStruct((), "int32")},
                                      {"x": x, "n": 3}, b=x * 2)
    )  # fmt: skip
    out = f(jnp.float32(1.0))
    assert float(out["sum"]) == 3.0 and int(out["count"]) == 3


BAD = {
    "shape": (lambda x: np.ones(2, "f4"), r"must return f32\[\], as declared; it returned f32\[2\]"),
    "dtype": (lambda x: np.ones((), "f8"), r"must return f32\[\], as declared; it returned f64\[\]"),
    "tree": (lambda x: (x, x), "must return the tree"),
    "nothing": (lambda x: None, "must return the tree"),
    "text": (lambda x: np.array("a"), r"must return f32\[\]"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, atled.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("bad", BAD)
def test_results_are_checked(bad, wrap):
    function, message = BAD[bad]
    with pytest.raises(TypeError, match=message):
        wrap(lambda x: atled.pure_callback(function, F32, x))(jnp.float32(1.0)).block_until_ready()
    assert float(atled.jit(lambda x: x + 1)(1.0)) == 2.0


class Mine(Exception):
    pass


@pytest.mark.parametrize("wrap", [lambda f: f, atled.jit, lambda f: lambda x: atled.vmap(f)(x[None])[0]])
def test_the_users_own_exception_comes_out(wrap):
    def boom(x):
        raise Mine("the flux came out")

    f = wrap(lambda x: atled.pure_callback(boom, F32, x, vmap_method="sequential"))
    with pytest.raises(Mine, match="the flux came out") as caught:
        f(jnp.float32(1.0)).block_until_ready()
    assert caught.traceback[-1].name == "boom"


def test_derivatives_are_refused_or_given():
    with pytest.raises(TypeError, match=r"derivative of host_sin.*(?s:.)*custom_jvp"):
        atled.grad(lambda x: sine(x))(1.0)
    f = atled.custom_jvp(lambda x: sine(x))
    f.defjvps(lambda t, out, x: t * jnp.cos(x))
    assert float(atled.jit(atled.grad(f))(0.0)) == 1.0
    with pytest.raises(NotImplementedError, match="vmap_method='sequential'"):
        atled.vmap(lambda x: atled.pure_callback(host_sin, like(x), x))(X)
    with pytest.raises(ValueError, match="vmap_method must be one of"):
        sine(X, "sideways")
    with pytest.raises(TypeError, match=r"random.key_data"):
        atled.jit(lambda k: atled.debug.callback(print, k))(atled.random.key(0))


def test_effects_keep_the_order_of_the_program():
    seen = []

    def note(x, tag):
        atled.debug.callback(lambda v: seen.append((tag, float(v))), x)

    @atled.jit
    def f(x):
        note(x, "first")
        x = lax.fori_loop(0, 2, lambda i, c: (note(c, "loop"), c + 1)[1], x)
        x = lax.cond(x > 0, lambda v: (note(v, "yes"), v * 2)[1], lambda v: (note(v, "no"), v)[1], x)
        x, _ = lax.scan(lambda c, _: ((note(c, "scan"), c + 1)[1], None), x, None, length=5, unroll=2)
        x = lax.while_loop(lambda c: c < 12, lambda c: (note(c, "while"), c + 1)[1], x)
        note(x, "last")
        return x

    for _ in range(3):
        seen.clear()
        assert float(f(1.0)) == 12.0
        atled.effects_barrier()
        want = [("first", 1), ("loop", 1), ("loop", 2), ("yes", 3)]
        want += [("scan", 6 + i) for i in range(5)] + [("while", 11), ("last", 12)]
        assert seen == want


def test_programs_with_effects_run_one_after_another():
    seen = []
    slow = atled.jit(
        lambda x: (atled.debug.callback(lambda v: seen.append(float(v)), (x @ x).sum() * 0 + x[0, 0]), x)[1]
    )
    big = jnp.ones((600, 600))
    for i in range(6):
        slow(big * i)
    atled.effects_barrier()
    assert seen == [0, 1, 2, 3, 4, 5]


def test_effects_happen_once_under_transforms():
    def f(x, log):
        atled.io_callback(lambda v: log.append(float(v)), None, x)
        return jnp.sin(x)

    for g, count in (
        (lambda x, log: atled.grad(f)(x, log), 1),
        (lambda x, log: atled.jit(atled.grad(lambda v: f(v, log)))(x), 1),
        (lambda x, log: atled.vmap(lambda v: f(v, log))(jnp.arange(3.0)), 3),
        (lambda x, log: atled.jit(atled.vmap(atled.grad(lambda v: f(v, log))))(jnp.arange(3.0)), 3),
        (lambda x, log: atled.grad(lambda v: lax.scan(lambda c, _: (f(c, log), None), v, None, length=4)[0])(x), 4),
        (lambda x, log: atled.eval_shape(lambda v: f(v, log), x), 0),
        (lambda x, log: atled.grad(atled.remat(lambda v: f(f(v, log), log)))(x), 2),
    ):
        log: list[float] = []
        g(1.0, log)
        atled.effects_barrier()
        assert len(log) == count


def test_io_callback_gives_values_back():
    counter = iter(range(100))
    f = atled.jit(lambda: [atled.io_callback(lambda: np.int32(next(counter)), atled.ShapeDtypeStruct((), "int32"))
                           for _ in range(3)])  # fmt: skip
    assert [int(v) for v in f()] == [0, 1, 2] and [int(v) for v in f()] == [3, 4, 5]


def test_print(capsys):
    @atled.jit
    def f(x):
        atled.debug.print("{} and {y:.2f} in {name}", x, y=x * 2, name="f")
        return x

    f(1.5)
    atled.effects_barrier()
    assert capsys.readouterr().out == "1.5 and 3.00 in f\n"
    with pytest.raises(ValueError, match="needs the argument 'z'"):
        atled.jit(lambda x: atled.debug.print("{z}", x=x))(1.0)


def test_what_was_printed_is_seen_before_an_error(capsys):
    def boom(x):
        raise Mine("late")

    @atled.jit
    def f(x):
        atled.debug.print("before {}", x)
        return atled.io_callback(boom, F32, x)

    with pytest.raises(Mine):
        f(1.0).block_until_ready()
    assert "before 1.0" in capsys.readouterr().out


def test_prints_are_not_lost_at_exit():
    code = (
        "import atled, atled.numpy as jnp\n"
        "f = atled.jit(lambda x: (atled.debug.print('sum {}', (x @ x).sum()), x)[1])\n"
        "f(jnp.ones((800, 800)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("sum 512000000") and done.returncode == 0, done.stderr


def test_breakpoint():
    out = io.StringIO()
    script = io.StringIO("h\na\np c * 10\nscale\nl\nnonsense\nw = 3\np w + 1\nc\nc\n")

    def step(c, x):
        scale = 7
        atled.debug.breakpoint(stdin=script, stdout=out)
        return c + x * scale / 7, c

    lax.scan(step, jnp.float32(0.0), jnp.array([1.0, 2.0]))
    atled.effects_barrier()
    text = out.getvalue()
    assert text.count("stopped in test_breakpoint.<locals>.step") == 2
    assert "c: float32[]" in text and "c = array(0., dtype=float32)" in text
    assert "\n(atled) 7\n" in text and "NameError" in text and "(atled) 4\n" in text
    assert "->" in text and "def step(c, x):" in text


def test_breakpoint_ends_the_program():
    def f(x):
        atled.debug.breakpoint(stdin=io.StringIO("q\n"), stdout=io.StringIO())
        return x + 1

    with pytest.raises(KeyboardInterrupt):
        atled.jit(f)(1.0).block_until_ready()


def test_programs_with_callbacks_are_not_kept_on_disk(tmp_path):
    with atled.settings.override(cache_dir=str(tmp_path), cache=True):
        atled.jit(lambda x: sine(x) * 3.0)(1.0)
        assert not [p for p in tmp_path.rglob("*") if p.is_file() and "sine" in p.name]
    with pytest.raises(TypeError, match="export: sine has a callback"):
        atled.export.export(atled.jit(sine))(like(X))


def loop(x, **options):
    return lax.scan(lambda c, v: (c + v, c * v), x, jnp.arange(250.0), **options)


@pytest.mark.parametrize("wrap", [lambda f: f, atled.jit, atled.grad, atled.vmap], ids=["eager", "jit", "grad", "vmap"])
def test_progress_of_a_scan(wrap, capsys):
    x = jnp.ones(3) if wrap is atled.vmap else jnp.float32(1.0)
    for options in ({}, {"reverse": True}, {"unroll": 3}):
        want = wrap(lambda v, options=options: loop(v, **options)[1].sum())(x)
        got = wrap(lambda v, options=options: loop(v, progress="steps", **options)[1].sum())(x)
        atled.effects_barrier()
        np.testing.assert_allclose(got, want)
        (line,) = capsys.readouterr().err.splitlines()  # in a file, a line each half minute and one at the end
        assert line.startswith("steps 250/250  ")


def test_progress_of_each_call(capsys, monkeypatch):
    """A program that is called again begins its bar again, and a bar shows the steps that the loop has done."""
    monkeypatch.setattr(progress, "LINES", 0)
    monkeypatch.setattr(progress._Lines, "pause", 0)
    f = atled.jit(lambda v: loop(v, progress="steps")[0])
    for _ in range(2):
        f(1.0)
        atled.effects_barrier()
        steps = [int(line.split()[1].partition("/")[0]) for line in capsys.readouterr().err.splitlines()]
        assert steps == [*range(0, 249, 2), 249, 250]


def test_progress_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    loop(1.0, progress=True)
    atled.effects_barrier()
    text = capsys.readouterr().err
    assert text.startswith("\r\x1b[2Kscan 0/250 ╌") and "scan 250/250 ━" in text and text.count("\n") == 1


def test_errors_of_a_scan_with_a_bar_are_those_without():
    for bar in (False, True):
        with pytest.raises(TypeError, match=r"the carry must keep its type; carry\['a'\]: starts as"):
            lax.scan(lambda c, x: ({"a": jnp.ones(2)}, x), {"a": 1.0}, jnp.arange(3.0), progress=bar)
        with pytest.raises(ValueError, match="sliced along their first axis"):
            lax.scan(lambda c, x: (c, x), 0.0, 1.0, progress=bar)


@pytest.mark.parametrize("off", [None, 0, np.False_])
def test_no_bar(off, capsys):
    loop(1.0, progress=off)
    atled.effects_barrier()
    assert capsys.readouterr().err == ""
