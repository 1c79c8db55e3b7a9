"""Arguments that a function does not use: left out of what is compiled, unless they are asked for."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp

A, B = jnp.arange(3.0), jnp.arange(4.0)


def number_of_inputs(f, *args):
    return f.lower(*args).as_text().split("->")[0].count("%arg")


def second(x, y, z=1.0):
    return y * 2.0


def test_they_are_no_inputs_of_the_compiled_program():
    assert number_of_inputs(atled.jit(second), A, B, 3.0) == 1
    assert number_of_inputs(atled.jit(second, keep_unused=True), A, B, 3.0) == 3


@pytest.mark.parametrize("keep_unused", [False, True])
def test_values_and_new_arguments_are_right_on_every_path(keep_unused):
    f = atled.jit(second, keep_unused=keep_unused)
    ahead = f.lower(A, B).compile()
    for i in range(3):
        np.testing.assert_array_equal(f(A + i, B + i), 2 * (B + i))
        np.testing.assert_array_equal(ahead(A + i, B + i), 2 * (B + i))
    np.testing.assert_array_equal(f({}, y=B), 2 * B)
    assert float(atled.grad(lambda b: f(A, b).sum())(B)[0]) == 2.0


def test_a_function_that_uses_none_of_them():
    f = atled.jit(lambda x: jnp.float32(3))
    assert [float(f(A)), float(f(A))] == [3.0, 3.0]


def test_captured_arrays_come_before_the_arguments_that_are_left():
    w, f = jnp.arange(4.0) + 1, None
    f = atled.jit(lambda x, y: y * w)
    for i in range(3):
        np.testing.assert_array_equal(f(A, B + i), (B + i) * w)


def test_only_what_is_used_is_donated():
    f = atled.jit(lambda x, y: y + 1, donate_argnums=(0, 1))
    for _ in range(2):
        x, y = jnp.ones(5), jnp.ones(5)
        np.testing.assert_array_equal(f(x, y), np.full(5, 2))
        assert (x.is_deleted(), y.is_deleted()) == (False, True)


def test_input_shardings_are_told_for_what_is_used():
    (first, other), _ = atled.jit(second).lower(A, B).compile().input_shardings
    assert first is None
    assert other is not None


def test_the_recorded_program_has_all_arguments():
    assert len(atled.jit(second).trace(A, B).program.inputs) == 2
