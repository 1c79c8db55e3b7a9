"""Collectives inside `vmap(axis_name=...)`, against NumPy, with their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

N = 4
X = np.random.RandomState(0).randn(N, N, 3).astype("f4")


def close(a, b, tol=1e-5):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


CASES = {
    "psum": (lambda v: lax.psum(v, "x"), lambda x: np.broadcast_to(x.sum(0), x.shape)),
    "pmean": (lambda v: lax.pmean(v, "x"), lambda x: np.broadcast_to(x.mean(0), x.shape)),
    "pmax": (lambda v: lax.pmax(v, "x"), lambda x: np.broadcast_to(x.max(0), x.shape)),
    "pmin": (lambda v: lax.pmin(v, "x"), lambda x: np.broadcast_to(x.min(0), x.shape)),
    "all_gather": (lambda v: lax.all_gather(v, "x"), lambda x: np.broadcast_to(x, (N, *x.shape))),
    "all_gather axis": (
        lambda v: lax.all_gather(v, "x", axis=1),
        lambda x: np.broadcast_to(x.transpose(1, 0, 2), (N, N, N, 3)),
    ),
    "all_gather tiled": (
        lambda v: lax.all_gather(v, "x", axis=1, tiled=True),
        lambda x: np.broadcast_to(np.concatenate(list(x), 1), (N, N, 3 * N)),
    ),
    "ppermute": (lambda v: lax.ppermute(v, "x", [(i, (i + 3) % N) for i in range(N)]), lambda x: np.roll(x, 3, 0)),
    "ppermute partial": (
        lambda v: lax.ppermute(v, "x", [(0, 1)]),
        lambda x: np.concatenate([0 * x[:1], x[:1], 0 * x[2:]]),
    ),
    "pshuffle": (lambda v: lax.pshuffle(v, "x", [1, 0, 3, 2]), lambda x: x[[1, 0, 3, 2]]),
    "psum_scatter": (lambda v: lax.psum_scatter(v, "x"), lambda x: x.sum(0)),
    "psum_scatter tiled": (lambda v: lax.psum_scatter(v, "x", tiled=True), lambda x: x.sum(0)[:, None]),
    "all_to_all": (lambda v: lax.all_to_all(v, "x", 0, 0), lambda x: x.transpose(1, 0, 2)),
    "all_to_all tiled": (
        lambda v: lax.all_to_all(v, "x", 0, 1, tiled=True),
        lambda x: np.stack([np.concatenate([x[s, t : t + 1] for s in range(N)], 1) for t in range(N)]),
    ),
    "axis_index": (
        lambda v: v * 0 + lax.axis_index("x"),
        lambda x: np.broadcast_to(np.arange(N)[:, None, None], x.shape),
    ),
    "constant": (lambda v: v * 0 + lax.psum(1, "x"), lambda x: np.full_like(x, N)),
    "axis_size": (lambda v: v * 0 + lax.axis_size("x"), lambda x: np.full_like(x, N)),
}


@pytest.mark.parametrize("name", CASES)
def test_value(name):
    f, want = CASES[name]
    close(atled.vmap(f, axis_name="x")(X), want(X))
    close(atled.jit(atled.vmap(f, axis_name="x"))(X), want(X))


@pytest.mark.parametrize("name", CASES)
def test_another_batch_axis_passes_through(name):
    f, want = CASES[name]
    both = np.stack([X, 2 * X])
    inner_first = atled.vmap(atled.vmap(f, axis_name="x"))(both)
    outer_first = atled.vmap(atled.vmap(f), in_axes=1, out_axes=1, axis_name="x")(both)
    close(inner_first, np.stack([want(b) for b in both]))
    close(outer_first, np.stack([want(b) for b in both]))


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("axis_index", "constant", "axis_size")])
def test_derivatives(name):
    """Through the batch: jvp against differences, vjp its adjoint."""
    f, _ = CASES[name]
    g = lambda x: atled.vmap(f, axis_name="x")(x)
    with atled.enable_x64():
        r = np.random.RandomState(1)
        x, v = X.astype("f8"), r.randn(*X.shape)
        out, tangent = atled.jvp(g, (x,), (v,))
        close(tangent, (np.asarray(g(x + 1e-6 * v)) - np.asarray(g(x - 1e-6 * v))) / 2e-6, 1e-4)
        ct = r.randn(*out.shape)
        back = atled.vjp(g, x)[1](ct)[0]
        assert abs(np.sum(np.asarray(tangent) * ct) - np.sum(np.asarray(back) * v)) < 1e-8 * (
            1 + abs(np.sum(np.asarray(tangent) * ct))
        )


def test_derivative_inside_the_batch():
    """Each place differentiates its own loss; a sum over places hands its cotangent to all of them."""
    f = lambda x: lax.psum(x, "i") ** 2
    close(atled.vmap(atled.grad(f), axis_name="i")(jnp.arange(4.0)), [48.0] * 4)
    close(atled.grad(lambda x: jnp.sum(atled.vmap(f, axis_name="i")(x)))(jnp.arange(4.0)), [48.0] * 4)


def test_bad_permutations():
    with pytest.raises(ValueError, match="once"):
        atled.vmap(lambda v: lax.ppermute(v, "x", [(0, 1), (0, 2)]), axis_name="x")(X)
