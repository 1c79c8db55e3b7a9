"""`reduce` and `reduce_window` by functions of the user's, against JAX: also by those that only sound familiar."""

import operator

import jax
import numpy as np
import pytest
from jax import lax as jlax

import atled
from atled import lax
from atled import numpy as jnp

X = np.random.RandomState(0).randn(3, 5, 7).astype("float32")
I = np.random.RandomState(1).randint(-9, 9, (3, 5, 7)).astype("int32")  # noqa: E741


def add(a, b):
    """Sounds familiar, and is not: it adds with saturation."""
    return (a + b).clip(-2, 2)


def first_nonzero(a, b):
    """Associative, and the order matters."""
    return a * (a != 0) + b * (a == 0)


FUNCTIONS = {
    "sum": (0, lambda a, b: a + b),
    "np.add": (0, np.add),
    "operator.mul": (1, operator.mul),
    "first": (0, first_nonzero),
    "hypot": (0, lambda a, b: (a * a + b * b) ** 0.5),
}


@pytest.mark.parametrize("name", ["sum", "operator.mul", "first", "hypot"])
@pytest.mark.parametrize("dims", [(1,), (0, 2), (2, 1, 0)])
def test_reduce(name, dims):
    start, f = FUNCTIONS[name]
    want = jlax.reduce(X, np.float32(start), f, dims)
    for how in (lambda g: g, atled.jit):
        np.testing.assert_allclose(how(lambda x: lax.reduce(x, np.float32(start), f, dims))(X), want, rtol=2e-5)


def test_what_only_sounds_familiar_is_what_it_is():
    """A function was taken for the sum because its name was `add`."""
    x = np.array([1.5, 1.5, -1.0, 0.25], "float32")
    assert float(lax.reduce(x, np.float32(0), add, (0,))) != x.sum()
    assert np.array_equal(lax.reduce_window(x, np.float32(0), add, (2,)), [2, 0.5, -0.75])


@pytest.mark.parametrize("name", ["sum", "np.add", "first", "hypot"])
@pytest.mark.parametrize(
    "options",
    [
        {"window_dimensions": (1, 2, 3), "window_strides": (1, 2, 2), "padding": "SAME"},
        {"window_dimensions": (2, 2, 1), "padding": [(1, 0), (0, 2), (0, 0)]},
        {"window_dimensions": (1, 2, 2), "window_dilation": (1, 2, 3), "base_dilation": (2, 1, 1)},
        {"window_dimensions": (4, 1, 1)},
    ],
)
def test_reduce_window(name, options):
    start, f = FUNCTIONS[name]
    args = (options["window_dimensions"], options.get("window_strides", (1, 1, 1)), options.get("padding", "VALID"))
    more = [options.get(k, (1, 1, 1)) for k in ("base_dilation", "window_dilation")]
    theirs = jlax.add if name == "np.add" else f
    want = jlax.reduce_window(X, np.float32(start), theirs, *args, *more)
    np.testing.assert_allclose(lax.reduce_window(X, np.float32(start), f, *args, *more), want, rtol=2e-5, atol=1e-6)


def test_trees():
    """The largest element and where it is: two arrays at once."""
    places = np.arange(X.size, dtype="int32").reshape(X.shape)

    def larger(numpy):
        def f(a, b):
            return numpy.where(a[0] >= b[0], a[0], b[0]), numpy.where(a[0] >= b[0], a[1], b[1])

        return f

    start = (np.float32(-np.inf), np.int32(-1))
    for dims in [(0,), (1, 2)]:
        want = jlax.reduce((X, places), start, larger(jax.numpy), dims)
        got = lax.reduce((X, places), start, larger(jnp), dims)
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))
    want = jlax.reduce_window((X, places), start, larger(jax.numpy), (1, 2, 2), (1, 1, 2), "SAME")
    got = lax.reduce_window((X, places), start, larger(jnp), (1, 2, 2), (1, 1, 2), "SAME")
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


def test_derivatives_and_batches():
    f = lambda x: lax.reduce(x, np.float32(0), FUNCTIONS["hypot"][1], (0,)).sum()
    want = X / np.sqrt((X**2).sum(0))
    np.testing.assert_allclose(atled.grad(f)(X), want, rtol=1e-5)
    window = lambda x: lax.reduce_window(x, np.int32(0), lambda a, b: a ^ b, (2, 2))
    np.testing.assert_array_equal(atled.vmap(window)(I), np.stack([window(i) for i in I]))


def test_nothing_to_reduce():
    empty = np.zeros((0, 3), "float32")
    assert np.array_equal(lax.reduce(empty, np.float32(7), FUNCTIONS["hypot"][1], (0,)), [7, 7, 7])
    assert lax.reduce(empty, np.float32(7), FUNCTIONS["hypot"][1], (1,)).shape == (0,)


CALLS = {
    "argmax": lambda lax, x: lax.argmax(x, 3, np.int32),
    "sort": lambda lax, x: lax.sort(x, dimension=3),
    "squeeze": lambda lax, x: lax.squeeze(x[:, :1], (4,)),
    "expand_dims": lambda lax, x: lax.expand_dims(x, (0, 0)),
    "slice_in_dim": lambda lax, x: lax.slice_in_dim(x, 0, 1, axis=3),
    "dynamic_slice_in_dim": lambda lax, x: lax.dynamic_slice_in_dim(x, 0, 1, axis=4),
    "dynamic_index_in_dim": lambda lax, x: lax.dynamic_index_in_dim(x, 0, axis=-4),
    "index_in_dim": lambda lax, x: lax.index_in_dim(x, 0, axis=8),
    "cumsum": lambda lax, x: lax.cumsum(x, axis=3),
    "cumlogsumexp": lambda lax, x: lax.cumlogsumexp(x, axis=5),
    "reduce": lambda lax, x: lax.reduce(x, np.float32(0), lax.add, (3,)),
    "reduce twice": lambda lax, x: lax.reduce(x, np.float32(0), lax.add, (0, 0)),
    "reduce_max": lambda lax, x: lax.reduce_max(x, (3,)),
    "rev": lambda lax, x: lax.rev(x, (0, 0)),
    "concatenate": lambda lax, x: lax.concatenate([x, x], 3),
    "top_k": lambda lax, x: lax.top_k(x, 1, axis=3),
    "split": lambda lax, x: lax.split(x, (1, 2), axis=3),
    "transpose": lambda lax, x: lax.transpose(x, (0, 1, 3)),
    "associative_scan": lambda lax, x: lax.associative_scan(lax.add, x, axis=3),
    "broadcasted_iota": lambda lax, x: lax.broadcasted_iota(np.int32, (2, 3), 2),
    "reduce_precision": lambda lax, x: lax.reduce_precision(x, 0, 3),
}


@pytest.mark.parametrize("name", CALLS)
def test_axes_that_are_not_there_are_errors(name):
    """Some of these wrapped around, and gave the result along another axis."""
    for one, array in ((jlax, jax.numpy.asarray(X)), (lax, jnp.asarray(X))):
        with pytest.raises((ValueError, TypeError, IndexError)) as error:
            CALLS[name](one, array)
        assert "UNKNOWN" not in str(error.value)


@pytest.mark.parametrize("start", [-1, 1, 2, 6])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_bits_of_integers(start, dtype):
    """One was taken for the value that changes nothing under `and`, where all bits are."""
    x, start = I.astype(dtype), np.asarray(start).astype(dtype)[()]
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        f, g = getattr(lax, name), getattr(jlax, name)
        np.testing.assert_array_equal(lax.reduce(x, start, f, (1,)), jlax.reduce(x, start, g, (1,)))
        how = ((2, 1, 2), (1, 1, 2), "SAME")
        np.testing.assert_array_equal(lax.reduce_window(x, start, f, *how), jlax.reduce_window(x, start, g, *how))


@pytest.mark.parametrize("padding", ["SAME", [(1, 0), (-1, 2), (0, 1)]])
def test_padding_does_not_count(padding):
    """By functions that are recognized it did not, by others it did."""
    for f in (lambda a, b: a + b, lambda a, b: a + b + 0, lambda a, b: a * 1 + b):
        options = {"window_dimensions": (2, 2, 2), "padding": padding, "base_dilation": (1, 2, 1)}
        if padding == "SAME":
            options = {"window_dimensions": (2, 2, 2), "padding": padding, "window_strides": (1, 2, 1)}
        got = lax.reduce_window(I, np.int32(2), f, **options)
        np.testing.assert_array_equal(got, jlax.reduce_window(I, np.int32(2), f, **options))


def test_dtypes_that_do_not_fit():
    for f in (lambda a, b: a + b * 1.5, lambda a, b: (a / 2 + b).astype("float32")):
        with pytest.raises(TypeError, match="dtype"):
            lax.reduce(I, 0, f, (0,))
        with pytest.raises(TypeError, match="dtype"):
            lax.reduce_window(I, 0, f, (1, 2, 2))
    with pytest.raises(TypeError, match="initial value must have the dtype of its operand, int32"):
        lax.reduce(I, 0.5, lax.add, (0,))
    assert int(lax.reduce(I, 0.0, lax.add, (0, 1, 2))) == I.sum()
    assert int(lax.reduce(I.astype("uint8"), 0, lax.max, (0, 1, 2))) == I.astype("uint8").max()


def test_sizes_of_windows():
    for wrong in ({"window_dimensions": (1, 0, 1)}, {"window_dimensions": (1, 1, 1), "window_strides": (1, 0, 1)}):
        for f in (lax.add, first_nonzero):
            with pytest.raises(TypeError, match="must be a positive number for each of 3 axes"):
                lax.reduce_window(X, np.float32(0), f, **wrong)
