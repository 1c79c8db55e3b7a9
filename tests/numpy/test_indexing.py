"""Indexing is NumPy's: any index that Hypothesis can think of, read, written, differentiated and batched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import atled
import atled.numpy as jnp
from atled.numpy.index_parsing import ds, parse

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@st.composite
def arrays_and_indices(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    basic = hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)
    whole = hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3), dtype=np.int32)
    masks = hnp.arrays(bool, shape)
    mixed = st.tuples(*[_one(n) for n in shape])
    return shape, draw(st.one_of(basic, whole, masks, mixed))


def _one(n: int):
    """An index of one axis: a number, a slice, or two positions."""
    return st.one_of(
        st.integers(-n, n - 1),
        st.slices(n),
        hnp.arrays(np.int32, (2,), elements=st.integers(-n, n - 1)),
    )


def numbers(shape):
    return np.arange(np.prod(shape), dtype="f4").reshape(shape) + 1


@few
@given(arrays_and_indices())
def test_read(case):
    shape, index = case
    x = numbers(shape)
    np.testing.assert_array_equal(jnp.asarray(x)[index], x[index])


@few
@given(arrays_and_indices())
def test_read_under_jit(case):
    shape, index = case
    x = numbers(shape)
    np.testing.assert_array_equal(atled.jit(lambda x: x[index])(x), x[index])


@few
@given(arrays_and_indices())
def test_write(case):
    shape, index = case
    x = numbers(shape)
    want = x.copy()
    want[index] = -1
    np.testing.assert_array_equal(jnp.asarray(x).at[index].set(-1.0), want)
    want = x.copy()
    np.add.at(want, index, 0.5)
    np.testing.assert_array_equal(jnp.asarray(x).at[index].add(0.5), want)
    want = x.copy()
    np.multiply.at(want, index, 2)
    np.testing.assert_array_equal(jnp.asarray(x).at[index].multiply(2.0), want)


@few
@given(arrays_and_indices())
def test_gradient_counts_uses(case):
    shape, index = case
    x = numbers(shape)
    count = np.zeros(shape, "f4")
    np.add.at(count, index, 1)
    np.testing.assert_array_equal(atled.grad(lambda x: jnp.sum(x[index]))(x), count)


@few
@given(arrays_and_indices())
def test_batched(case):
    shape, index = case
    x = numbers((3, *shape))
    want = np.stack([row[index] for row in x])
    np.testing.assert_array_equal(atled.vmap(lambda x: x[index])(x), want)


def test_traced_positions():
    x, at = numbers((4, 5)), np.array([3, -1, 0], "i4")
    np.testing.assert_array_equal(atled.jit(lambda x, i: x[i])(x, at), x[at])
    np.testing.assert_array_equal(atled.jit(lambda x, i: x[1:, i])(x, at), x[1:, at])
    np.testing.assert_array_equal(atled.vmap(lambda i: jnp.asarray(x)[i, i])(at), x[at, at])


def test_beyond_the_end():
    x = jnp.arange(4.0)
    for index in (4, -5, (slice(None), 0), np.array([0, 9])):
        with pytest.raises(IndexError):
            x[index]
    i = jnp.asarray([9, -9])
    np.testing.assert_array_equal(x[i], [3, 0])
    np.testing.assert_array_equal(x.at[i].get(mode="fill", fill_value=-1), [-1, -1])
    np.testing.assert_array_equal(x.at[i].get(mode="wrap"), [1, 3])
    np.testing.assert_array_equal(x.at[i].set(7.0), x)
    np.testing.assert_array_equal(x.at[i].set(7.0, mode="clip"), [7, 1, 2, 7])


def test_masks_update_under_jit():
    x = numbers((3, 4))
    np.testing.assert_array_equal(atled.jit(lambda x: x.at[x > 5].set(0.0))(x), np.where(x > 5, 0, x))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("index", [None, (None,), (), ..., (None, ...), (..., None), (None, None)], ids=str)
def test_indices_that_use_no_axis(shape, index):
    x = np.asarray(numbers(shape))
    np.testing.assert_array_equal(jnp.asarray(x)[index], x[index])
    for value in (0.0, -0.0, 7.0):
        want = x.copy()
        want[index] = value
        for write in (lambda x: x.at[index].set(value), atled.jit(lambda x: x.at[index].set(value))):  # noqa: B023
            assert np.asarray(write(jnp.asarray(x))).tobytes() == want.tobytes()


def test_a_single_bool_among_the_indices_of_a_write():
    with pytest.raises(IndexError, match="a plain bool as index"):
        jnp.zeros((2, 3)).at[np.array(True), 0].set(1.0)


class Whole(int):
    pass


@pytest.mark.parametrize("is_eager", [True, False])
def test_a_parsed_index_is_made_of_integers_and_text(is_eager):
    """It is a cache key as it is."""
    starts = [jnp.asarray(1), np.int64(1), Whole(1), True, 1]
    sizes = [np.int64(2), Whole(2), np.uint8(2), 2]
    odd = [np.int8(-1), Whole(1), slice(np.int64(1), Whole(3)), slice(Whole(0), None, np.int32(2)), slice(True, 3)]
    for index in [*odd, *[ds(start, size) for start in starts for size in sizes]]:
        spec, _ = parse((index, None, ...), (5, 6), is_eager)
        assert {type(v) for entry in spec for v in entry} <= {int, str}, index
