"""Programs: recorded, printed with user lines, checked, pruned; and the rules of interpreters."""

from __future__ import annotations

import pathlib
import threading

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.core import program, source
from atled.core.program import Equation, Program, ProgramError, Var, check, evaluate, record
from atled.core.trace import bind, state
from atled.core.types import ArrayType
from atled.engine import stablehlo
from atled.ops import elementwise, shape

F3 = ArrayType((3,), np.float32)


def test_record_and_evaluate():
    made, captured = record(lambda x, y: [elementwise.mul(x, y), x], [F3, F3])
    check(made)
    assert not captured and [e.op.name for e in made.equations] == ["mul"]
    a, b = evaluate(made, [np.full(3, 2, "f4"), np.full(3, 5, "f4")])
    assert np.asarray(a).tolist() == [10, 10, 10] and b.tolist() == [2, 2, 2]


def test_closed_over_arrays_are_inputs_and_scalars_are_literals():
    w = jnp.arange(3.0)
    made, captured = record(lambda x: [elementwise.mul(elementwise.add(x, w), 2.0)], [F3])
    assert len(captured) == 1 and captured[0] is w and made.input_types == (F3, F3)
    assert "2.0:f32[]" in str(made)
    big = jnp.ones((1000, 1000))
    text = atled.jit(lambda x: x @ big).lower(big).as_text()
    assert "dense<" not in text and len(text) < 2000


def test_what_is_not_needed_is_dropped():
    def f(x):
        jnp.sin(x) * jnp.cos(x)
        return x + 1

    assert [e.op.name for e in atled.jit(f).trace(1.0).program.equations] == ["add"]
    assert [e.op.name for e in atled.make_program(f)(1.0).equations] == ["sin", "cos", "mul", "add"]


def test_tracers_have_the_methods_of_arrays():
    x = np.arange(6, dtype="f4").reshape(2, 3)
    names = [n for n in dir(jnp.ones(2)) if not n.startswith("_") and hasattr(np.ndarray, n)]
    methods = [n for n in names if callable(getattr(np.ndarray, n))]
    assert "var" in methods
    seen = []
    atled.grad(lambda v: atled.jit(lambda u: seen.extend([callable(getattr(u, n)) for n in methods]) or u.sum())(v))(x)
    assert seen == [True] * len(methods)
    np.testing.assert_allclose(atled.jit(lambda v: v.var(0))(x), x.var(0))


def test_printing_shows_user_lines():
    def loss(x):
        y = jnp.sin(x)  # LINE
        return y * 2.0

    text = str(atled.make_program(loss)(np.ones(3, "f4")))
    rows = pathlib.Path(__file__).read_text().splitlines()
    line = next(i for i, row in enumerate(rows, 1) if row.endswith("jnp.sin(x)  # LINE"))
    assert "b: f32[3] = sin a" in text and f"test_programs.py:{line}" in text
    assert text.startswith("program loss(a: f32[3]) {") and text.endswith("return c\n}")


def test_backward_equations_carry_the_forward_line():
    def loss(x):
        return jnp.sum(jnp.tanh(x))  # FORWARD

    made = atled.make_program(atled.grad(loss))(np.ones(3, "f4"))
    lines = {e.source.text for e in made.equations if e.op.name in ("mul", "broadcast", "sub") and e.source}
    assert any("FORWARD" in text for text in lines)


def test_lines_survive_into_the_compiled_program():
    def model(x):
        return jnp.exp(x)  # KERNEL

    # a shape of its own: what is in the compile cache keeps the lines that it was first compiled for
    lowered = atled.jit(model).lower(np.ones((3, 17, 19), "f4"))
    assert "test_programs.py" in lowered.as_text(debug_info=True) and "model/exp" in lowered.as_text(debug_info=True)
    assert "test_programs.py" in lowered.compile().as_text()


def test_library_frames_are_not_user_lines():
    assert source.here().file == __file__
    made = atled.make_program(lambda x: jnp.var(x))(np.ones(3, "f4"))
    assert {e.source.file for e in made.equations} == {__file__}


def test_the_checker_finds_what_is_wrong():
    a, b, c = Var(F3), Var(F3), Var(F3)
    fine = Equation(elementwise.Add(), (a, b), (c,), None)
    check(Program([a, b], [fine], [c]))
    with pytest.raises(ProgramError, match="before it is defined"):
        check(Program([a], [fine], [c]))
    with pytest.raises(ProgramError, match="its rule gives"):
        check(Program([a, b], [Equation(elementwise.Add(), (a, b), (Var(ArrayType((4,), np.float32)),), None)], [a]))
    with pytest.raises(ProgramError, match="again"):
        check(Program([a, b], [fine, fine], [c]))
    with pytest.raises(ProgramError, match="output"):
        check(Program([a, b], [], [c]))
    with pytest.raises(ProgramError, match="twice"):
        check(Program([a, a], [], [a]))


def test_pruned():
    made, _ = record(lambda x: [elementwise.neg(x), elementwise.add(x, x)], [F3])
    kept = program.pruned(made, [False, True])
    assert [e.op.name for e in kept.equations] == ["add"]


def test_long_programs():
    """A hundred thousand equations: recorded, checked, printed and lowered without a recursion."""

    def f(x):
        for _ in range(100_000):
            x = elementwise.add(x, 1.0)
        return [x]

    made, _ = record(f, [F3])
    check(made)
    assert len(made.equations) == 100_000 and str(made).count("\n") > 100_000
    module = stablehlo.build(made, "cpu")
    assert stablehlo.module_text(module).count("stablehlo.add") == 100_000


def test_values_that_depend_on_nothing_traced_stay_concrete():
    seen = []

    def f(x):
        c = jnp.arange(3.0).sum()
        seen.append(float(c))
        if x > 2:
            return x * c
        return -x

    assert float(atled.grad(f)(3.0)) == 3.0 and float(atled.grad(f)(1.0)) == -1.0 and seen == [3.0, 3.0]


def test_threads_trace_on_their_own():
    """Recording in one thread leaves another thread's eager work alone."""
    inside, done = threading.Event(), threading.Event()
    results = {}

    def slow(x):
        inside.set()
        assert done.wait(30)
        return x * 2.0

    def tracer():
        results["traced"] = float(atled.jit(slow)(3.0))

    thread = threading.Thread(target=tracer)
    thread.start()
    assert inside.wait(30)
    y = jnp.ones(3) + 1
    results["eager"] = float(y.sum())
    with atled.enable_x64():
        results["dtype"] = jnp.zeros(1).dtype
    assert state.level == 0
    done.set()
    thread.join()
    assert results == {"traced": 6.0, "eager": 6.0, "dtype": np.float64}


def test_shapes_of_ops_are_compared_by_value():
    assert shape.Reshape((2, 3)) == shape.Reshape((2, 3)) != shape.Reshape((3, 2))
    assert hash(shape.Reshape((2, 3))) == hash(shape.Reshape((2, 3)))
    assert elementwise.Add() != elementwise.Mul() and hash(elementwise.Add()) != hash(elementwise.Mul())
    assert repr(shape.Reshape((2, 3))) == "reshape[shape=(2, 3)]"
    assert float(bind(elementwise.Add(), 1.0, 2.0)) == 3.0
