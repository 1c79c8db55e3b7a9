"""SciPy's linear algebra against SciPy; derivatives against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.scipy import linalg

scipy_linalg = pytest.importorskip("scipy.linalg")
R = np.random.RandomState(0)
A = R.randn(4, 4)
C = A + 1j * R.randn(4, 4)
S = A @ A.T + np.eye(4)
H = C @ C.conj().T + np.eye(4)
b, B = R.randn(4), R.randn(4, 3)


def same(got, want, tol=1e-9):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert got.dtype.kind == want.dtype.kind, (got.dtype, want.dtype)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * (1 + np.abs(want).max(initial=0)))


def check_derivatives(f, *xs, order=2, tol=1e-5, h=1e-5):
    """jvp against central differences, and vjp as its adjoint; then the same for the gradient."""
    r = np.random.RandomState(1)
    xs = [jnp.asarray(x) for x in xs]
    vs = [jnp.asarray(r.randn(*x.shape)) for x in xs]
    out, tangent = atled.jvp(f, tuple(xs), tuple(vs))
    step = lambda s: np.asarray(f(*[x + s * h * v for x, v in zip(xs, vs)]))
    want = (step(1) - step(-1)) / (2 * h)
    np.testing.assert_allclose(np.asarray(tangent), want, rtol=tol, atol=tol * (1 + np.abs(want).max()))
    u = jnp.asarray(r.randn(*out.shape))
    cotangents = atled.vjp(f, *xs)[1](u)
    back = sum(float(jnp.sum(c * v)) for c, v in zip(cotangents, vs))
    np.testing.assert_allclose(back, float(jnp.sum(u * tangent)), rtol=1e-9, atol=1e-9)
    if order > 1:
        for i in range(len(xs)):
            check_derivatives(lambda *a, i=i: atled.vjp(f, *a)[1](u)[i], *xs, order=order - 1, tol=tol * 10, h=h)


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


# -- values -----------------------------------------------------------------------------------------------------------


def test_lu():
    for x in (A, A[:3], A[:, :2], C, A[:1]):
        for permute_l in (False, True):
            for got, want in zip(linalg.lu(x, permute_l), scipy_linalg.lu(x, permute_l), strict=True):
                same(got, want)
        for got, want in zip(linalg.lu_factor(x), scipy_linalg.lu_factor(x), strict=True):
            same(got, want)
    p, low, up = linalg.lu(np.stack([A, S]))
    same(np.asarray(p) @ np.asarray(low) @ np.asarray(up), np.stack([A, S]))


def test_solving():
    for x in (A, C):
        for right in (b, B, C):
            same(linalg.solve(x, right), scipy_linalg.solve(x, right))
            for trans in (0, 1, 2):
                same(
                    linalg.lu_solve(linalg.lu_factor(x), right, trans),
                    scipy_linalg.lu_solve(scipy_linalg.lu_factor(x), right, trans),
                )
                for lower in (False, True):
                    for unit in (False, True):
                        options = {"trans": trans, "lower": lower, "unit_diagonal": unit}
                        same(
                            linalg.solve_triangular(x, right, **options),
                            scipy_linalg.solve_triangular(x, right, **options),
                        )
    same(linalg.solve_triangular(A, b, "T"), scipy_linalg.solve_triangular(A, b, "T"))
    for x in (S, H):
        for lower in (False, True):
            same(linalg.cholesky(x, lower), scipy_linalg.cholesky(x, lower))
            for right in (b, B):
                same(
                    linalg.cho_solve(linalg.cho_factor(x, lower), right),
                    scipy_linalg.cho_solve(scipy_linalg.cho_factor(x, lower), right),
                )
                triangle = np.tril(x) if lower else np.triu(x)
                same(linalg.solve(triangle, right, lower=lower, assume_a="pos"), scipy_linalg.solve(x, right))
        for assume in ("sym", "her"):
            same(linalg.solve(x, b, assume_a=assume), np.linalg.solve(x, b))
    same(linalg.inv(A), scipy_linalg.inv(A))
    same(linalg.det(A), scipy_linalg.det(A))


def test_batches_of_right_hand_sides():
    xs = np.stack([A, S])
    same(linalg.solve_triangular(xs, B), np.stack([scipy_linalg.solve_triangular(x, B) for x in xs]))
    same(linalg.solve(xs, b), np.stack([scipy_linalg.solve(x, b) for x in xs]))
    same(linalg.lu_solve(linalg.lu_factor(xs), B), np.stack([scipy_linalg.solve(x, B) for x in xs]))
    many = np.stack([B, 2 * B, 3 * B])
    same(linalg.lu_solve(linalg.lu_factor(A), many), np.stack([scipy_linalg.solve(A, y) for y in many]))
    same(linalg.cho_solve(linalg.cho_factor(S), many), np.stack([scipy_linalg.solve(S, y) for y in many]))


def test_decompositions():
    for x in (A, A[:3], A[:, :2]):
        for mode in ("full", "economic"):
            for got, want in zip(linalg.qr(x, mode=mode), scipy_linalg.qr(x, mode=mode), strict=True):
                same(np.abs(got), np.abs(want))
        same(np.abs(linalg.qr(x, mode="r")[0]), np.abs(scipy_linalg.qr(x, mode="r")[0]))
        for full in (False, True):
            for got, want in zip(linalg.svd(x, full), scipy_linalg.svd(x, full), strict=True):
                assert got.shape == want.shape
        same(linalg.svd(x, compute_uv=False), scipy_linalg.svd(x, compute_uv=False))
        for side in ("right", "left"):
            for got, want in zip(linalg.polar(x, side), scipy_linalg.polar(x, side), strict=True):
                same(got, want)
    for x, output in ((A, "real"), (A, "complex"), (C, "real"), (np.stack([A, S]), "real")):
        t, z = (np.asarray(v) for v in linalg.schur(x, output))
        same(np.real_if_close(z @ t @ np.conj(np.swapaxes(z, -1, -2))), x)
        assert np.all(np.tril(t, -1 if t.dtype.kind == "c" else -2) == 0)
    for x in (A, C, A[:1, :1], A[:2, :2], np.stack([A, S])):
        h, q = (np.asarray(v) for v in linalg.hessenberg(x, calc_q=True))
        same(q @ h @ np.conj(np.swapaxes(q, -1, -2)), x)
        same(linalg.hessenberg(x), h)
        assert np.all(np.tril(h, -2) == 0)


def test_eigh():
    for x in (S, H):
        same(linalg.eigh(x, eigvals_only=True), scipy_linalg.eigh(x, eigvals_only=True))
        for lower in (False, True):
            triangle = np.tril if lower else np.triu
            w, v = (np.asarray(y) for y in linalg.eigh(triangle(x), lower=lower))
            same(x @ v, v * w)
            w, v = (np.asarray(y) for y in linalg.eigh(triangle(x), triangle(2 * S + np.eye(4)), lower=lower))
            same(w, scipy_linalg.eigh(x, 2 * S + np.eye(4), eigvals_only=True))
            same(x @ v, (2 * S + np.eye(4)) @ v * w)


def test_expm():
    mpmath = pytest.importorskip("mpmath")
    for scale in (0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0):
        with mpmath.workdps(60):
            exact = mpmath.expm(mpmath.matrix((scale * A).tolist()), method="taylor")
            want = np.array(exact.tolist(), dtype=float)
        got = np.asarray(linalg.expm(scale * A))
        assert np.abs(got - want).max() <= 1e-13 * np.abs(want).max(), scale
        single = np.asarray(linalg.expm((scale * A).astype(np.float32)))
        assert single.dtype == np.float32
        assert np.abs(single - want).max() <= 2e-5 * max(1, scale) * np.abs(want).max(), scale
    same(linalg.expm(C), scipy_linalg.expm(C))
    same(linalg.expm(np.triu(A) * 9, upper_triangular=True), scipy_linalg.expm(np.triu(A) * 9))
    stacked = np.stack([A, 20 * A, 0 * A])  # each with its own number of squarings
    same(linalg.expm(stacked), np.stack([scipy_linalg.expm(x) for x in stacked]))
    same(linalg.expm(np.arange(4).reshape(2, 2)), scipy_linalg.expm(np.arange(4).reshape(2, 2)))
    assert linalg.expm(np.zeros((0, 0))).shape == (0, 0)
    assert np.isnan(np.asarray(linalg.expm(np.array([[1e7]]))))
    assert np.isfinite(np.asarray(linalg.expm(np.array([[-1e7]]), max_squarings=24)))
    assert np.isnan(np.asarray(linalg.expm(np.array([[np.nan, 0], [0, 1]])))).all()
    for got, want in zip(linalg.expm_frechet(A, S), scipy_linalg.expm_frechet(A, S), strict=True):
        same(got, want)
    same(linalg.expm_frechet(A, S, compute_expm=False), scipy_linalg.expm_frechet(A, S, compute_expm=False))


def test_special_matrices():
    r = B[:, 0]
    for name, args in (
        ("block_diag", (A, 2.0, b, B)),
        ("block_diag", (np.ones((1, 0)), A)),
        ("toeplitz", (b,)),
        ("toeplitz", (C[0],)),
        ("toeplitz", (b, r[:3])),
        ("toeplitz", (np.arange(3), np.arange(5))),
        ("hankel", (b,)),
        ("hankel", (b, r)),
        ("hankel", (b, r[:2])),
        ("circulant", (b,)),
        ("circulant", (C[0],)),
        ("companion", (b,)),
        ("companion", (b[:2],)),
        ("leslie", (b, r[:3])),
        ("fiedler", (b,)),
        ("hilbert", (4,)),
        ("hadamard", (1,)),
        ("hadamard", (8,)),
        ("dft", (5,)),
        ("dft", (6, "n")),
        ("dft", (6, "sqrtn")),
    ):
        same(getattr(linalg, name)(*args), getattr(scipy_linalg, name)(*args), 1e-13)
    for kind in ("symmetric", "lower", "upper"):
        same(linalg.pascal(5, kind), scipy_linalg.pascal(5, kind).astype(float))
    same(linalg.toeplitz(A), np.stack([scipy_linalg.toeplitz(row) for row in A]))
    assert linalg.block_diag().shape == (1, 0)
    assert linalg.hilbert(2).dtype == np.float64 and linalg.hadamard(2, "float32").dtype == np.float32


def test_half_precision():
    x = jnp.asarray(S, "float16")
    for f in (
        linalg.inv,
        linalg.det,
        linalg.cholesky,
        linalg.expm,
        lambda v: linalg.solve(v, v),
        lambda v: linalg.polar(v)[0],
        lambda v: linalg.schur(v)[0],
        lambda v: linalg.hessenberg(v),
        lambda v: linalg.lu(v)[2],
        lambda v: linalg.eigh(v)[1],
        lambda v: linalg.solve_triangular(v, v[0]),
    ):
        assert f(x / 8).dtype == np.float16


# -- derivatives ------------------------------------------------------------------------------------------------------

DERIVATIVES = {
    "lu": (lambda m: linalg.lu(m)[2], (A,)),
    "lu, both": (lambda m: linalg.lu(m, True)[0], (A,)),
    "lu_solve": (lambda m, v: linalg.lu_solve(linalg.lu_factor(m), v), (A + 3 * np.eye(4), B)),
    "lu_solve, transposed": (lambda m, v: linalg.lu_solve(linalg.lu_factor(m), v, 1), (A + 3 * np.eye(4), B)),
    "cho_solve": (lambda m, v: linalg.cho_solve(linalg.cho_factor(m @ m.T + jnp.eye(4)), v), (A, B)),
    "solve": (linalg.solve, (A + 3 * np.eye(4), B)),
    "solve, positive": (lambda m, v: linalg.solve(m @ m.T + jnp.eye(4), v, assume_a="pos"), (A, b)),
    "solve_triangular": (lambda m, v: linalg.solve_triangular(m, v, lower=True), (S, B)),
    "solve_triangular, unit": (lambda m, v: linalg.solve_triangular(m, v, 1, unit_diagonal=True), (A, b)),
    "eigh": (lambda m: linalg.eigh(m @ m.T, m.T @ m + jnp.eye(4), eigvals_only=True), (A,)),
    "polar": (lambda m: linalg.polar(m)[0], (A + 3 * np.eye(4),)),
    "expm": (lambda m: linalg.expm(m / 4), (A[:3, :3],)),
    "expm, squared": (lambda m: linalg.expm(m * 6) / 1e4, (A[:3, :3],)),
    "expm, triangular": (lambda m: linalg.expm(m, upper_triangular=True), (A[:3, :3],)),
    "toeplitz": (lambda c, r: linalg.toeplitz(c, r) ** 2, (b, B[:, 0])),
    "circulant": (lambda c: linalg.circulant(c) ** 2, (b,)),
    "block_diag": (lambda m, v: linalg.block_diag(m, v) ** 2, (A, b)),
    "companion": (lambda c: linalg.companion(c) ** 2, (b,)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    f, xs = DERIVATIVES[name]
    check_derivatives(f, *xs)


def test_gradient_of_expm_after_many_squarings_is_finite():
    """Squarings that are not taken must not leak into the gradient."""
    for scale in (1.0, 1e2, 3e4):
        x = jnp.asarray(np.array([[-1.0, 0.5], [0.0, -2.0]]) * scale)
        assert np.all(np.isfinite(np.asarray(atled.grad(lambda m: linalg.expm(m).sum())(x))))
    big = jnp.asarray(np.diag([600.0, 1.0]))  # its square would overflow
    assert np.all(np.isfinite(np.asarray(atled.grad(lambda m: linalg.expm(m)[1, 1])(big))))


# -- transformations and complaints -----------------------------------------------------------------------------------

BATCHED = {
    "expm": linalg.expm,
    "lu": linalg.lu,
    "lu_factor": linalg.lu_factor,
    "schur": linalg.schur,
    "polar": linalg.polar,
    "hessenberg": lambda m: linalg.hessenberg(m, calc_q=True),
    "solve": lambda m: linalg.solve(m, b),
    "toeplitz": lambda m: linalg.toeplitz(m[0]),
    "lu_solve": lambda m: linalg.lu_solve(linalg.lu_factor(m), b, 2),
    "eigh": lambda m: linalg.eigh(m, eigvals_only=True),
    "solve_triangular": lambda m: linalg.solve_triangular(m, b, lower=True),
    "block_diag": lambda m: linalg.block_diag(m, 1.0),
    "grad expm": atled.grad(lambda m: linalg.expm(m / 9).sum()),
    "cho": lambda m: linalg.cho_solve(linalg.cho_factor(m @ m.T), b),
}


@pytest.mark.parametrize("name", BATCHED)
def test_vmap_is_a_loop_and_jit_changes_nothing(name):
    f = BATCHED[name]
    xs = jnp.asarray(R.randn(3, 4, 4) + 3 * np.eye(4))
    flat = lambda y: [np.asarray(v) for v in atled.tree.leaves(y)]
    rows = [flat(f(xs[i])) for i in range(3)]
    for k, got in enumerate(flat(atled.vmap(f)(xs))):
        np.testing.assert_allclose(got, np.stack([row[k] for row in rows]), rtol=1e-8, atol=1e-8)
    for got, want in zip(flat(atled.jit(f)(xs[0])), rows[0], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


COMPLAINTS = [
    (lambda: linalg.expm(B), ValueError, r"expm: expected square matrices on the last two axes; got f64\[4,3\]"),
    (lambda: linalg.solve(A, B[:3]), ValueError, r"solve: f64\[4,4\] and f64\[3,3\] have incompatible shapes"),
    (lambda: linalg.solve(A, b, assume_a="nice"), ValueError, "solve: assume_a is"),
    (lambda: linalg.solve_triangular(A, b, 3), ValueError, "solve_triangular: trans is"),
    (lambda: linalg.schur(A, "both"), ValueError, "schur: the output is"),
    (lambda: linalg.polar(A, "top"), ValueError, "polar: the side is"),
    (lambda: linalg.qr(A, mode="raw"), ValueError, "qr: the mode is"),
    (lambda: linalg.eigh(A, type=2), NotImplementedError, "eigh: only problems of type 1"),
    (lambda: linalg.hadamard(6), ValueError, "hadamard: the size must be a power of two"),
    (lambda: linalg.pascal(3, "left"), ValueError, "pascal: the kind is"),
    (lambda: linalg.dft(3, "m"), ValueError, "dft: the scale is"),
    (lambda: linalg.companion(b[:1]), ValueError, "companion: at least two coefficients"),
    (lambda: linalg.leslie(b, b), ValueError, "leslie: s must have one element fewer"),
    (lambda: linalg.block_diag(np.ones((1, 1, 1))), ValueError, "block_diag: at most two axes"),
]


@pytest.mark.parametrize("call, kind, message", COMPLAINTS)
def test_complaints(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_everything_has_a_docstring():
    assert atled.scipy.linalg is linalg
    assert all(getattr(linalg, name).__doc__ for name in linalg.__all__)
