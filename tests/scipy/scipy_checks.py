"""What tests of SciPy's functions share: closeness, derivatives against differences, vmap against a loop."""

from __future__ import annotations

import numpy as np

import atled
import atled.numpy as jnp


def same(got, want, tol=1e-9):
    """Equal shapes, kinds of dtype, and values up to `tol` of the largest one."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert got.dtype.kind == want.dtype.kind, (got.dtype, want.dtype)
    finite = np.abs(want[np.isfinite(want)]) if want.size else want
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * (1 + finite.max(initial=0)))


def check_derivatives(f, *xs, order=2, tol=1e-5, h=1e-5):
    """jvp against central differences, and vjp as its adjoint; then the same for the gradient."""
    r = np.random.RandomState(1)
    xs = [jnp.asarray(x) for x in xs]
    vs = [jnp.asarray(r.randn(*x.shape)) for x in xs]
    out, tangent = atled.jvp(f, tuple(xs), tuple(vs))
    step = lambda s: np.asarray(f(*[x + s * h * v for x, v in zip(xs, vs, strict=True)]))
    want = (step(1) - step(-1)) / (2 * h)
    np.testing.assert_allclose(np.asarray(tangent), want, rtol=tol, atol=tol * (1 + np.abs(want).max()))
    u = jnp.asarray(r.randn(*out.shape))
    cotangents = atled.vjp(f, *xs)[1](u)
    back = sum(float(jnp.sum(c * v)) for c, v in zip(cotangents, vs, strict=True))
    np.testing.assert_allclose(back, float(jnp.sum(u * tangent)), rtol=1e-8, atol=1e-8)
    if order > 1:
        for i in range(len(xs)):
            check_derivatives(lambda *a, i=i: atled.vjp(f, *a)[1](u)[i], *xs, order=order - 1, tol=tol * 10, h=h)


def check_transforms(f, *stacks, tol=1e-9):
    """vmap over leading axes against a loop, and jit against none."""
    stacks = [jnp.asarray(x) for x in stacks]
    flat = lambda y: [np.asarray(v) for v in atled.tree.leaves(y)]
    rows = [flat(f(*[x[i] for x in stacks])) for i in range(stacks[0].shape[0])]
    for k, got in enumerate(flat(atled.vmap(f)(*stacks))):
        same(got, np.stack([row[k] for row in rows]), tol)
    for got, want in zip(flat(atled.jit(f)(*[x[0] for x in stacks])), rows[0], strict=True):
        same(got, want, tol)
