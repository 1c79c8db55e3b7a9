"""The methods of elementwise functions, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp

R = np.random.RandomState(0)
FLOATS = R.randn(5, 4).astype("f4")
INTEGERS = R.randint(0, 100, (5, 4)).astype("i4")
TRUTH = R.rand(5, 4) > 0.4
NAMES = {
    "add": FLOATS, "subtract": FLOATS, "multiply": FLOATS, "maximum": FLOATS, "minimum": FLOATS, "logaddexp": FLOATS,
    "logaddexp2": FLOATS, "bitwise_and": INTEGERS, "bitwise_or": INTEGERS, "bitwise_xor": INTEGERS,
    "logical_and": TRUTH, "logical_or": TRUTH, "logical_xor": TRUTH,
}  # fmt: skip
PLACES = np.array([0, 3, 3, 4])


def check(got, want):
    want = np.asarray(want)
    assert got.shape == want.shape and np.dtype(got.dtype).kind == want.dtype.kind
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_methods(name):
    ours, theirs, x = getattr(jnp, name), getattr(np, name), NAMES[name]
    assert isinstance(ours, jnp.ufunc) and ours.__name__ == name and (ours.nin, ours.nout) == (2, 1)
    assert ours.identity == (theirs.identity if ours.identity is not None else None)
    check(ours.reduce(x), theirs.reduce(x))
    check(ours.reduce(x, axis=-1, keepdims=True), theirs.reduce(x, axis=-1, keepdims=True))
    check(ours.accumulate(x), theirs.accumulate(x))
    check(ours.accumulate(x, axis=1), theirs.accumulate(x, axis=1))
    check(ours.outer(x[0], x), theirs.outer(x[0], x))
    check(ours.reduceat(x, [0, 3, 1, 1, 4]), theirs.reduceat(x, [0, 3, 1, 1, 4]))
    want = x.copy()
    theirs.at(want, PLACES, x[:4])
    check(ours.at(x, PLACES, x[:4], inplace=False), want)
    check(atled.jit(ours.reduce)(x), theirs.reduce(x))


@pytest.mark.parametrize("name", ["add", "maximum", "logaddexp", "bitwise_or"])
def test_reduce_with_a_start_and_a_mask(name):
    ours, theirs, x = getattr(jnp, name), getattr(np, name), NAMES[name]
    check(ours.reduce(x, initial=3), theirs.reduce(x, initial=x.dtype.type(3)))
    check(ours.reduce(x, initial=3, where=TRUTH), theirs.reduce(x, initial=x.dtype.type(3), where=TRUTH))
    if ours.identity is not None:
        check(ours.reduce(x, where=TRUTH), theirs.reduce(x, where=TRUTH))
        check(ours.reduce(x[:0]), theirs.reduce(x[:0]))
    if name != "add":
        check(ours.reduce(x.ravel()), theirs.reduce(x.ravel()))
    check(jnp.add.reduce(x, axis=None), np.add.reduce(x, axis=None))


def test_dtypes():
    small = np.full(4, 100, "i1")
    assert (
        jnp.add.reduce(small) == 400
        and jnp.add.accumulate(small)[-1] == 400
        and jnp.add.reduceat(small, [0, 1])[1] == 300
    )
    assert jnp.add.reduce(FLOATS, dtype="float64").dtype == np.float64
    assert jnp.logaddexp.reduce(INTEGERS).dtype == np.float32
    check(jnp.maximum.accumulate(np.array([1.0, np.nan, 2.0], "f4")), [1, np.nan, np.nan])


def test_negative_has_one_operand():
    want = FLOATS.copy()
    np.negative.at(want, PLACES)
    check(jnp.negative.at(FLOATS, PLACES, inplace=False), want)
    assert isinstance(jnp.negative, jnp.ufunc) and jnp.negative.nin == 1 and not isinstance(jnp.sin, jnp.ufunc)
    with pytest.raises(ValueError, match=r"negative.reduce: the function must have two operands and one result"):
        jnp.negative.reduce(FLOATS)


def test_functions_of_the_user():
    ours = jnp.frompyfunc(lambda x, y: x * y + x, 2, 1)
    theirs = np.frompyfunc(lambda x, y: x * y + x, 2, 1)
    assert isinstance(ours, jnp.ufunc) and (ours.nin, ours.nout, ours.identity) == (2, 1, None)
    check(ours(FLOATS, FLOATS[0]), theirs(FLOATS, FLOATS[0]).astype("f4"))
    check(ours.reduce(FLOATS), theirs.reduce(FLOATS).astype("f4"))
    check(ours.accumulate(FLOATS), theirs.accumulate(FLOATS.astype("O")).astype("f4"))
    check(ours.outer(FLOATS[0], FLOATS[1]), theirs.outer(FLOATS[0], FLOATS[1]).astype("f4"))
    two = jnp.frompyfunc(lambda x: (x + 1, -x), 1, 2)
    np.testing.assert_allclose(two(FLOATS)[1], -FLOATS)
    kept = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    check(kept.reduce(FLOATS, where=TRUTH), np.where(TRUTH, FLOATS, 0).sum(0))
    check(kept.reduce(FLOATS[:0]), np.zeros(4, "f4"))


def test_derivatives_and_batches():
    x = FLOATS.astype("f8")
    for f in (
        lambda v: jnp.multiply.reduce(v),
        lambda v: jnp.subtract.accumulate(v),
        lambda v: jnp.logaddexp.reduce(v, initial=0.5, where=TRUTH),
        lambda v: jnp.multiply.reduceat(v, np.array([0, 2, 1])),
        lambda v: jnp.frompyfunc(lambda p, q: jnp.sin(p) * q, 2, 1).reduce(v),
    ):
        total = lambda v, f=f: jnp.sum(jnp.sin(f(v)))
        found = np.asarray(atled.grad(total)(x))
        way = R.randn(*x.shape)
        difference = (float(total(x + 1e-6 * way)) - float(total(x - 1e-6 * way))) / 2e-6
        np.testing.assert_allclose(np.sum(found * way), difference, rtol=1e-5, atol=1e-7)
    rows = np.stack([x, 2 * x])
    np.testing.assert_allclose(
        atled.vmap(jnp.subtract.reduce)(rows), np.stack([np.subtract.reduce(v) for v in rows]), rtol=1e-6
    )


@pytest.mark.parametrize(
    "bad, kind, message",
    [
        (lambda: jnp.add.at(FLOATS, 0, 1.0), NotImplementedError, "add.at: arrays are immutable"),
        (lambda: jnp.add.reduce(FLOATS, out=FLOATS), NotImplementedError, "out"),
        (lambda: jnp.subtract.reduce(FLOATS[:0]), ValueError, "subtract.reduce: without an identity"),
        (lambda: jnp.subtract.reduce(FLOATS, where=TRUTH), ValueError, "subtract.reduce: without an identity"),
        (lambda: jnp.add.reduceat(FLOATS, [0.5]), TypeError, "add.reduceat: indices are a vector of integers"),
        (lambda: jnp.frompyfunc(3, 1, 1), TypeError, "frompyfunc: a function and its numbers of"),
        (lambda: jnp.frompyfunc(lambda x, y: x, 2, 1)(1.0), TypeError, "2 operands are needed; got 1"),
    ],
)  # fmt: skip
def test_bad_arguments(bad, kind, message):
    with pytest.raises(kind, match=message):
        bad()
