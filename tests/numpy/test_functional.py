"""`vectorize` and the two `apply`s against NumPy and against loops."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.numpy import vectorization
from atled.numpy.vectorization import apply_along_axis, apply_over_axes, vectorize

R = np.random.RandomState(0)


def same(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


# -- vectorize --------------------------------------------------------------------------------------------------------

SIGNATURES = [
    ("(n,m),(m)->(n)", lambda a, b: a @ b, [(2, 3), (3,)]),
    ("(n,m),(m)->(n)", lambda a, b: a @ b, [(5, 1, 2, 3), (4, 3)]),
    ("(n,m),(m)->(n)", lambda a, b: a @ b, [(1, 1, 2, 3), (1, 3)]),
    ("(n),(n)->()", lambda a, b: (a * b).sum(), [(4, 1, 3), (2, 3)]),
    ("(n)->(n),()", lambda a: (a * 2, a.sum()), [(3, 2, 4)]),
    ("(),(n)->(n)", lambda a, b: a * b, [(3,), (1, 2)]),
    ("(n)->(n)", lambda a: a[::-1], [(1, 4)]),
    ("(n,n)->()", lambda a: a.trace(), [(2, 3, 3)]),
    ("( n , m ) -> ( m )", lambda a: a.sum(0), [(2, 3, 4)]),
    ("(3)->()", lambda a: a.sum(), [(2, 3)]),
    ("(n)->(k)", lambda a: a[:2], [(2, 3)]),
    ("(),()->()", lambda a, b: a + b, [(2, 1), (3,)]),
    ("(n)->()", lambda a: a.sum(), [(0, 3)]),
]


@pytest.mark.parametrize("signature, f, dims", SIGNATURES)
def test_signatures(signature, f, dims):
    xs = [R.randn(*d) for d in dims]
    got = vectorize(f, signature=signature)(*xs)
    if 0 in dims[0]:
        assert got.shape == (0,)
        return
    want = np.vectorize(f, signature=signature)(*xs)
    for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want], strict=True):
        same(g, w)


def test_scalars():
    a, b = R.randn(2, 1), R.randn(3)
    same(vectorize(lambda a, b: a * b + a)(a, b), a * b + a)
    same(vectorize(lambda a: a * 2)(np.asarray(3.0)), np.asarray(6.0))
    x, y = vectorize(lambda a: (a, jnp.stack([a, a])))(a)  # without a signature, results have any shape
    same(x, a), same(y, np.stack([a, a], -1))
    assert vectorize(lambda a: a)(3).shape == ()
    out = vectorize(lambda a: {"double": 2 * a})(np.ones((1, 2)))
    assert out["double"].shape == (1, 2)


def test_excluded_arguments():
    x = R.randn(2, 3)
    pick = vectorize(lambda a, k: a[k], signature="(n)->()", excluded={1})
    same(pick(x, 2), x[:, 2])
    mode = vectorize(lambda name, a: a * 2 if name == "double" else a, excluded={0})
    same(mode("double", x), 2 * x)
    named = vectorize(lambda a, *, scale: a * scale[1], excluded={"scale"})
    same(named(x, scale=(1, 3)), 3 * x)
    same(vectorize(lambda a, b=1.0: a * b)(x[0], b=x[:, :1]), x[0] * x[:, :1])  # keywords are vectorized too
    same(vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, b=x[0]), x @ x[0])
    same(vectorize(lambda a, b: a if b is None else a + b)(x, None), x)
    same(vectorize(lambda a, b: a.sum(), signature="(n),()->()")(x, None), x.sum(1))


def test_arguments_that_lack_an_axis_are_not_repeated():
    seen = []

    def f(a: Any, b: Any) -> Any:
        seen.append((a.shape, b.shape))
        return a @ b

    vectorize(f, signature="(n,m),(m)->(n)")(np.ones((5, 1, 2, 3)), np.ones((4, 3)))
    assert seen == [((2, 3), (3,))]  # called once, whatever the batch


def test_vectorize_is_transformed():
    f = vectorize(lambda a, b: a @ jnp.sin(b), signature="(n,m),(m)->(n)")
    a, b = R.randn(4, 2, 3), R.randn(3)
    same(atled.jit(f)(a, b), a @ np.sin(b))
    same(atled.vmap(f, in_axes=(0, None))(a, b), a @ np.sin(b))
    g = atled.grad(lambda b: jnp.sum(f(a, b)))(jnp.asarray(b))
    same(g, a.sum((0, 1)) * np.cos(b))
    assert vectorize(np.sin).__name__ == "sin"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda f: f(np.ones((2, 3)), np.ones(4)),
            ValueError,
            r"vectorize: core dimension 'm' .* got 3 before, and 4 in argument 1, f64\[4\]",
        ),
        (
            lambda f: f(np.ones(3), np.ones(3)),
            ValueError,
            r"vectorize: argument 0 must have the core axes \(n,m\) .*; got f64\[3\]",
        ),
        (
            lambda f: f(np.ones((2, 3))),
            TypeError,
            r"vectorize: signature '\(n,m\),\(m\)->\(n\)' has 2 arguments; got 1",
        ),
        (
            lambda f: f(np.ones((2, 3)), None),
            ValueError,
            r"vectorize: argument 1 must have the core axes \(m\); got None",
        ),
        (lambda f: f(np.ones((2, 2, 3)), np.ones((3, 3))), ValueError, r"broadcast: shapes \(2,\) and \(3,\)"),
        (
            lambda f: vectorize(lambda a: a[:2], signature="(n)->(n)")(np.ones(3)),
            ValueError,
            "core dimension 'n' .* in result 0",
        ),
        (
            lambda f: vectorize(lambda a: a, signature="(n)->()")(np.ones(3)),
            ValueError,
            r"result 0 must have the core axes \(\)",
        ),
        (
            lambda f: vectorize(lambda a: a, signature="(n)->(n),(n)")(np.ones(3)),
            TypeError,
            "has 2 results, as a tuple; got f64",
        ),
        (lambda f: vectorize(lambda a: a, signature="(4)->()")(np.ones(3)), ValueError, "core dimension '4'"),
        (lambda f: vectorize(lambda a: a, signature="n->n"), ValueError, "vectorize: a signature looks like"),
        (lambda f: vectorize(lambda a: a, signature="(n?)->()"), ValueError, "vectorize: a signature looks like"),
        (
            lambda f: vectorize(lambda a: a, excluded={1.5}),
            TypeError,
            "vectorize: excluded must hold positions and names",
        ),
        (
            lambda f: vectorize(lambda a: a, excluded={-1}),
            ValueError,
            "vectorize: positions in excluded must not be negative",
        ),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(vectorize(lambda a, b: a @ b, signature="(n,m),(m)->(n)"))


# -- apply ------------------------------------------------------------------------------------------------------------

ALONG: list[tuple[Any, Any]] = [
    (lambda v: v.sum(), lambda v: v.sum()),
    (lambda v: v[::-1] * 2, lambda v: v[::-1] * 2),
    (lambda v: v[:, None] * v[:2], lambda v: v[:, None] * v[:2]),
    (lambda v: v[:0], lambda v: v[:0]),
]


@pytest.mark.parametrize("dims, axis", [((3,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 4), 1), ((2, 3, 4), -3)])
@pytest.mark.parametrize("ours, theirs", ALONG)
def test_apply_along_axis(ours, theirs, dims, axis):
    x = R.randn(*dims)
    same(apply_along_axis(ours, axis, x), np.apply_along_axis(theirs, axis, x))
    same(atled.jit(lambda x: apply_along_axis(ours, axis, x))(x), np.apply_along_axis(theirs, axis, x))


def test_apply_along_axis_passes_arguments():
    x = R.randn(2, 3)
    f = lambda v, k, scale=1.0: v[k] * scale
    same(apply_along_axis(f, 1, x, 2, scale=3.0), np.apply_along_axis(f, 1, x, 2, scale=3.0))
    g = atled.grad(lambda x: jnp.sum(apply_along_axis(lambda v: v * v[0], 0, x)))(jnp.asarray(x))
    want = np.broadcast_to(x[0], x.shape).copy()
    want[0] += x.sum(0)
    same(g, want)
    with pytest.raises(ValueError, match="apply_along_axis: axis 2 is out of bounds"):
        apply_along_axis(f, 2, x, 0)


def test_apply_over_axes():
    x = R.randn(2, 3, 4)
    for axes in ((0, 2), [1], (-1, 0), 1, (0, 1, 2)):
        same(apply_over_axes(jnp.sum, x, axes), np.apply_over_axes(np.sum, x, axes))
        same(
            apply_over_axes(lambda a, i: jnp.max(a, axis=i, keepdims=True), x, axes),
            np.apply_over_axes(np.max, x, axes),
        )
    with pytest.raises(ValueError, match="apply_over_axes: the function must keep all axes, or drop only"):
        apply_over_axes(lambda a, i: jnp.sum(a), x, (0,))


def test_examples(monkeypatch):
    for name in vectorization.__all__:
        monkeypatch.setattr(jnp, name, getattr(vectorization, name), raising=False)
    for name in vectorization.__all__:
        for example in doctest.DocTestFinder().find(
            getattr(vectorization, name), name, module=False, globs=dict(vars(vectorization))
        ):
            assert doctest.DocTestRunner().run(example).failed == 0
