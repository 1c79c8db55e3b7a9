"""Linear algebra against NumPy; derivatives against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.numpy import linalg

R = np.random.RandomState(0)
A, B, T = R.randn(3, 4), R.randn(3, 4), R.randn(2, 3, 4)
C = R.randn(3, 4) + 1j * R.randn(3, 4)
S = R.randn(4, 4) + 3 * np.eye(4)
S2 = R.randn(2, 5, 5)
Z = R.randn(5, 5) + 1j * R.randn(5, 5)
P = S @ S.T + np.eye(4)
H = Z @ Z.conj().T + np.eye(5)
V, W = R.randn(4), R.randn(4)
LOW = R.randn(5, 2) @ R.randn(2, 4)


def same(got, want, tol=1e-9):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


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
            gradient = lambda *a, i=i: atled.vjp(f, *a)[1](u)[i]
            check_derivatives(gradient, *xs, order=order - 1, tol=tol * 10, h=h)


# -- values -----------------------------------------------------------------------------------------------------------

SAME_AS_NUMPY = {
    "inv": (lambda xp: xp.linalg.inv, [(S,), (S2,), (Z,), (np.zeros((0, 0)),), (np.zeros((0, 3, 3)),)]),
    "det": (
        lambda xp: xp.linalg.det,
        [
            (S,),
            (S2,),
            (Z,),
            (S[:1, :1],),
            (S[:2, :2],),
            (S[:3, :3],),
            (np.zeros((0, 0)),),
            (np.ones((5, 5)),),
            (S2[None],),
        ],
    ),
    "slogdet": (lambda xp: lambda a: tuple(xp.linalg.slogdet(a)), [(S,), (S2,), (Z,), (np.zeros((0, 0)),), (-P,)]),
    "solve": (
        lambda xp: xp.linalg.solve,
        [
            (S, V),
            (S, A.T),
            (S2, R.randn(5)),
            (S2, R.randn(5, 3)),
            (S2[0], R.randn(3, 5, 2)),
            (Z, Z[:, :2]),
            (Z, R.randn(5)),
        ],
    ),
    "cholesky": (lambda xp: xp.linalg.cholesky, [(P,), (H,), (np.stack([P, 2 * P]),)]),
    "eigvalsh": (lambda xp: xp.linalg.eigvalsh, [(P,), (H,), (np.stack([P, 2 * P]),)]),
    "svdvals": (
        lambda xp: lambda a: xp.linalg.svd(a, compute_uv=False),
        [(A,), (T,), (C,), (A.T,), (np.zeros((0, 3)),)],
    ),
    "pinv": (
        lambda xp: lambda a: xp.linalg.pinv(a, rtol=1e-12),
        [(A,), (A.T,), (T,), (C,), (LOW,), (np.zeros((3, 2)),)],
    ),
    "rank": (
        lambda xp: xp.linalg.matrix_rank,
        [(A,), (LOW,), (np.stack([P, 0 * P]),), (np.zeros((2, 3)),), (V,), (0 * V,)],
    ),
    "power": (
        lambda xp: xp.linalg.matrix_power,
        [(S, 3), (S, 0), (S, 1), (S, -2), (S2, 7), (np.arange(9).reshape(3, 3), 5), (np.arange(4).reshape(2, 2), 0)],
    ),
    "matrix_norm": (lambda xp: lambda a: xp.linalg.matrix_norm(a, keepdims=True), [(A,), (T,), (C,)]),
    "cross": (lambda xp: lambda a, b: xp.linalg.cross(a, b, axis=0), [(A, B), (A[:, 0], B[:, 0])]),
    "outer": (lambda xp: xp.linalg.outer, [(V, W), (V, A[0])]),
    "trace": (lambda xp: lambda a: xp.linalg.trace(a, offset=1), [(A,), (T,), (np.arange(12).reshape(3, 4),)]),
    "diagonal": (lambda xp: lambda a: xp.linalg.diagonal(a, offset=-1), [(A,), (T,)]),
    "vecdot": (lambda xp: xp.linalg.vecdot, [(A, B), (C, C)]),
    "tensordot": (lambda xp: lambda a, b: xp.linalg.tensordot(a, b, axes=1), [(A, S)]),
    "transpose": (lambda xp: xp.linalg.matrix_transpose, [(A,), (T,)]),
    "matmul": (lambda xp: xp.linalg.matmul, [(A, S), (T, S)]),
    "tensorinv": (lambda xp: lambda a: xp.linalg.tensorinv(a, ind=1), [(R.randn(6, 2, 3),)]),
    "tensorsolve": (lambda xp: xp.linalg.tensorsolve, [(R.randn(2, 3, 6), R.randn(2, 3))]),
    "tensorsolve axes": (lambda xp: lambda a, b: xp.linalg.tensorsolve(a, b, (0, 2)), [(R.randn(2, 6, 3), R.randn(6))]),
}


class _Ours:
    linalg = linalg


@pytest.mark.parametrize("name", SAME_AS_NUMPY)
def test_values_are_those_of_numpy(name):
    make, cases = SAME_AS_NUMPY[name]
    with atled.enable_x64():
        for args in cases:
            got, want = make(_Ours)(*args), make(np)(*args)
            if not isinstance(want, tuple):
                got, want = (got,), (want,)
            for g, w in zip(got, want, strict=True):
                same(g, w)


VECTOR_ORDERS = (None, 0, 1, 2, 3, 0.5, 1.5, -1, -2.5, np.inf, -np.inf)
MATRIX_ORDERS = (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)


def test_norms_are_those_of_numpy():
    with atled.enable_x64():
        for x in (V, C[0], np.array([3, -4]), np.array([0.0, 2.0])):
            for ord in VECTOR_ORDERS:
                with np.errstate(divide="ignore"):
                    same(linalg.norm(x, ord), np.linalg.norm(x, ord))
        for x in (A, C, np.arange(6).reshape(2, 3)):
            for ord in MATRIX_ORDERS:
                same(linalg.norm(x, ord), np.linalg.norm(x, ord))
        for ord in VECTOR_ORDERS:
            same(linalg.norm(T, ord, axis=1, keepdims=True), np.linalg.norm(T, ord, axis=1, keepdims=True))
            same(
                linalg.vector_norm(T, ord=2 if ord is None else ord, axis=(0, -1)),
                np.linalg.vector_norm(T, ord=2 if ord is None else ord, axis=(0, -1)),
            )
        for ord in MATRIX_ORDERS:
            for axis in ((0, 1), (2, 0), [-1, -2]):
                for keepdims in (False, True):
                    want = np.linalg.norm(T, ord, axis=tuple(axis), keepdims=keepdims)
                    same(linalg.norm(T, ord, axis=axis, keepdims=keepdims), want)
        same(linalg.norm(T), np.linalg.norm(T))
        same(linalg.norm(T, keepdims=True), np.linalg.norm(T, keepdims=True))
        same(linalg.norm(np.zeros(0)), np.float64(0))
        same(linalg.norm(np.zeros(0), np.inf), np.float64(0))
        same(linalg.norm(np.float64(-2.0) * np.ones(())), np.float64(2.0))


def test_condition_numbers_are_those_of_numpy():
    with atled.enable_x64(), np.errstate(all="ignore"):
        for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
            same(linalg.cond(S, p), np.linalg.cond(S, p), 1e-8)
            same(linalg.cond(S2, p), np.linalg.cond(S2, p), 1e-8)
        same(linalg.cond(A), np.linalg.cond(A))
        assert np.isinf(linalg.cond(np.zeros((2, 2))))
        assert np.isinf(linalg.cond(np.zeros((2, 2)), 1))


def test_decompositions_give_their_operand_back():
    with atled.enable_x64():
        for x in (A, A.T, T, C, C.T):
            h = lambda v: np.conj(np.swapaxes(v, -1, -2))
            for full in (False, True):
                u, s, vt = (np.asarray(v) for v in linalg.svd(x, full_matrices=full))
                assert u.shape == np.linalg.svd(x, full_matrices=full)[0].shape
                k = s.shape[-1]
                np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vt[..., :k, :], x, atol=1e-12)
            for mode in ("reduced", "complete"):
                q, r = (np.asarray(v) for v in linalg.qr(x, mode))
                assert r.shape == np.linalg.qr(x, mode)[1].shape
                np.testing.assert_allclose(q @ r, x, atol=1e-12)
                np.testing.assert_allclose(
                    h(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*x.shape[:-2], *[q.shape[-1]] * 2)), atol=1e-12
                )
            np.testing.assert_allclose(np.abs(linalg.qr(x, mode="r")), np.abs(np.linalg.qr(x, mode="r")), atol=1e-12)
        same(linalg.qr(A, mode="raw")[0], np.linalg.qr(A, mode="raw")[0])
        same(linalg.qr(A, mode="raw")[1], np.linalg.qr(A, mode="raw")[1])
        for x in (P, H, np.stack([P, 2 * P])):
            w, v = (np.asarray(y) for y in linalg.eigh(x))
            np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=1e-10)
            u, s, vt = (np.asarray(y) for y in linalg.svd(x - 3 * np.eye(x.shape[-1]), hermitian=True))
            np.testing.assert_allclose(u * s[..., None, :] @ vt, x - 3 * np.eye(x.shape[-1]), atol=1e-10)
            assert np.all(np.diff(s) <= 0) and np.all(s >= 0)
        for x in (S, Z, S2):
            w, v = linalg.eig(x)
            assert w.dtype == v.dtype == np.complex128
            np.testing.assert_allclose(x @ np.asarray(v), np.asarray(v) * np.asarray(w)[..., None, :], atol=1e-10)
            np.testing.assert_allclose(np.sort(linalg.eigvals(x)), np.sort(w), atol=1e-10)


def test_results_have_names():
    assert linalg.svd(A)._fields == ("U", "S", "Vh")
    assert linalg.eigh(P)._fields == linalg.eig(P)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(A)._fields == ("Q", "R")
    assert linalg.slogdet(P)._fields == ("sign", "logabsdet")
    assert type(atled.jit(linalg.svd)(A)) is type(linalg.svd(A))


def test_triangles_that_are_read():
    with atled.enable_x64():
        skew = P + np.triu(np.ones((4, 4)), 1)
        same(linalg.cholesky(skew, symmetrize_input=False), np.linalg.cholesky(P))
        same(linalg.cholesky(skew.T, upper=True, symmetrize_input=False), np.linalg.cholesky(P).T)
        same(linalg.cholesky(H, upper=True), np.linalg.cholesky(H).conj().T)
        same(linalg.eigvalsh(skew, "L", symmetrize_input=False), np.linalg.eigvalsh(P))
        same(linalg.eigvalsh(skew.T, "U", symmetrize_input=False), np.linalg.eigvalsh(P))
        assert np.isnan(np.asarray(linalg.cholesky(-P))[np.tril_indices(4)]).all()


def test_lstsq():
    with atled.enable_x64():
        for a, b in ((A.T, V), (A.T, R.randn(4, 2)), (A, R.randn(3)), (LOW, R.randn(5, 2)), (C.T, V)):
            got, want = linalg.lstsq(a, b, numpy_resid=True), np.linalg.lstsq(a, b, rcond=None)
            same(got[0], want[0])
            same(got[1], want[1])
            assert int(got[2]) == want[2]
            same(got[3], want[3], 1e-8)
        x, squares, rank, _ = linalg.lstsq(T, R.randn(2, 3, 2))
        assert x.shape == (2, 4, 2) and squares.shape == (2, 2) and rank.shape == (2,)
        assert int(linalg.lstsq(P, V, rcond=0.9)[2]) == np.linalg.lstsq(P, V, rcond=0.9)[2]
        with pytest.raises(atled.errors.ConcretizationTypeError, match="numpy_resid"):
            atled.jit(lambda a: linalg.lstsq(a, V, numpy_resid=True))(A.T)


def test_tolerances():
    with atled.enable_x64():
        d = np.diag([10.0, 3.0, 1e-3])
        for options in ({"rtol": 0.5}, {"tol": 0.5}, {"tol": 5.0}, {"rtol": 1e-9}, {"hermitian": True}):
            assert int(linalg.matrix_rank(d, **options)) == np.linalg.matrix_rank(d, **options)
        stacked = np.stack([d, d])
        tolerances = np.array([0.5, 1e-6])
        same(linalg.matrix_rank(stacked, rtol=tolerances), np.linalg.matrix_rank(stacked, rtol=tolerances))
        same(linalg.pinv(stacked, tolerances), np.linalg.pinv(stacked, tolerances))
        same(linalg.pinv(d, rcond=0.5), np.linalg.pinv(d, 0.5))
        same(linalg.pinv(P - 3 * np.eye(4), hermitian=True), np.linalg.pinv(P - 3 * np.eye(4), hermitian=True))


def test_multi_dot_takes_the_cheapest_order():
    with atled.enable_x64():
        for shapes in (
            ((2, 3), (3, 4), (4, 5)),
            ((3,), (3, 4), (4,)),
            ((2, 9), (9, 1), (1, 8), (8, 2)),
            ((2, 3), (3,)),
            ((5,), (5, 2)),
        ):
            xs = [R.randn(*s) for s in shapes]
            same(linalg.multi_dot(xs), np.linalg.multi_dot(xs))
    xs = [jnp.ones((100, 1)), jnp.ones((1, 100)), jnp.ones((100, 1))]
    text = str(atled.make_program(lambda *x: linalg.multi_dot(x))(*xs))
    assert "[100,100]" not in text


def test_integers_and_half_precision():
    n = np.arange(1, 10).reshape(3, 3) + 5 * np.eye(3, dtype=int)
    assert linalg.inv(jnp.asarray(n, "int32")).dtype == np.float32
    assert linalg.norm(jnp.ones((2, 2), bool)).dtype == np.float32
    np.testing.assert_allclose(linalg.det(jnp.asarray(n, "int32")), np.linalg.det(n), rtol=1e-5)
    for dtype in ("float16", "bfloat16"):
        x = jnp.asarray(n / 8 + n.T / 8, dtype)
        for f in (
            linalg.inv,
            linalg.det,
            linalg.norm,
            linalg.pinv,
            linalg.eigvalsh,
            linalg.svdvals,
            lambda v: linalg.norm(v, 2),
            lambda v: linalg.norm(v, 3, axis=0),
            lambda v: linalg.solve(v, v),
            linalg.cond,
        ):
            got = f(x)
            assert got.dtype == x.dtype
            want = f(np.asarray(x).astype(np.float32))
            np.testing.assert_allclose(np.asarray(got).astype("f"), want, rtol=2e-2, atol=2e-2)
        assert linalg.eigvals(x).dtype == np.complex64
        assert all(v.dtype == x.dtype for v in (*linalg.svd(x), *linalg.qr(x), *linalg.slogdet(x), *linalg.eigh(x)))
    assert linalg.matrix_rank(A.astype("f")).dtype == np.int32


# -- derivatives ------------------------------------------------------------------------------------------------------

symmetric = lambda m: m @ m.T + 3 * jnp.eye(m.shape[0])
rebuilt = lambda f: lambda m: f(*linalg.svd(m, full_matrices=False))
DERIVATIVES = {
    "inv": (linalg.inv, (S,)),
    "solve": (linalg.solve, (S, R.randn(4, 2))),
    "solve, vector": (linalg.solve, (S, V)),
    "solve, batched": (linalg.solve, (S2, R.randn(5, 2))),
    "det 2": (linalg.det, (S[:2, :2],)),
    "det 3": (linalg.det, (S[:3, :3],)),
    "det 5": (linalg.det, (S2,)),
    "slogdet": (lambda m: linalg.slogdet(m)[1], (S2,)),
    "pinv": (linalg.pinv, (A,)),
    "pinv, tall": (linalg.pinv, (A.T,)),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], (A.T, V)),
    "lstsq, sums": (lambda a, b: linalg.lstsq(a, b)[1], (A.T, V)),
    "cholesky": (lambda m: linalg.cholesky(symmetric(m)), (S,)),
    "cholesky, upper": (lambda m: linalg.cholesky(symmetric(m), upper=True), (S,)),
    "eigvalsh": (lambda m: linalg.eigvalsh(symmetric(m)), (S,)),
    "eigh": (lambda m: (lambda w, v: (v * jnp.sqrt(w)) @ v.T)(*linalg.eigh(symmetric(m))), (S,)),
    "svdvals": (linalg.svdvals, (A,)),
    "svd": (rebuilt(lambda u, s, v: (u * s**2) @ v), (A,)),
    "svd, hermitian": (lambda m: (lambda u, s, v: (u * s**2) @ v)(*linalg.svd(symmetric(m), hermitian=True)), (S,)),
    "qr": (lambda m: linalg.qr(m)[1], (A,)),
    "eigvals": (lambda m: jnp.abs(linalg.eigvals(m)), (S,)),
    "cond": (linalg.cond, (S,)),
    "cond 1": (lambda m: linalg.cond(m, 1), (S,)),
    "matrix_power": (lambda m: linalg.matrix_power(m, -3), (S,)),
    "multi_dot": (lambda a, b: linalg.multi_dot([a, b, a]), (A, A.T)),
    "tensorsolve": (linalg.tensorsolve, (R.randn(2, 3, 6), R.randn(2, 3))),
    "cross": (linalg.cross, (A[:, :3], B[:, :3])),
}
for _ord in VECTOR_ORDERS[2:]:
    DERIVATIVES[f"norm {_ord}"] = (lambda x, o=_ord: linalg.norm(x, o, axis=1), (A,))
for _ord in MATRIX_ORDERS:
    DERIVATIVES[f"matrix norm {_ord}"] = (lambda x, o=_ord: linalg.norm(x, o, axis=(1, 2)), (T,))


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    f, xs = DERIVATIVES[name]
    with atled.enable_x64():
        check_derivatives(f, *xs)


def cofactors(a):
    n = len(a)
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) if n > 1 else 1.0
    return np.array([[(-1) ** (i + j) * minor(i, j) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_derivatives_of_det_where_the_matrix_is_singular(n):
    r = np.random.RandomState(n)
    direction = r.randn(n, n)
    with atled.enable_x64():
        for rank in range(n + 1):
            whole = (r.randint(-2, 3, (n, rank)) @ r.randint(-2, 3, (rank, n))).astype(float)
            for a in (
                whole,
                np.diag([2.0] * rank + [0.0] * (n - rank)),
                np.triu(np.ones((n, n)), n - rank),
                whole * 1e-3,
            ):
                scale = 1 + np.abs(cofactors(a)).max()
                np.testing.assert_allclose(
                    np.asarray(atled.grad(linalg.det)(jnp.asarray(a))), cofactors(a), atol=1e-11 * scale
                )
                slope = lambda h, a=a: (cofactors(a + h * direction) - cofactors(a - h * direction)) / (2 * h)
                want = (4 * slope(1e-3) - slope(2e-3)) / 3
                along = lambda x: jnp.sum(atled.grad(linalg.det)(x) * direction)
                got = [
                    atled.jvp(atled.grad(linalg.det), (jnp.asarray(a),), (jnp.asarray(direction),))[1],
                    atled.grad(along)(jnp.asarray(a)),
                ]
                for g in got:
                    np.testing.assert_allclose(np.asarray(g), want, atol=1e-5 * scale)


def test_third_derivative_of_det():
    with atled.enable_x64():
        line = lambda t: linalg.det(jnp.asarray(S) + t * jnp.asarray(P))
        third = atled.grad(atled.grad(atled.grad(line)))(0.0)
        coefficients = np.polyfit(np.linspace(-1, 1, 9), [np.linalg.det(S + t * P) for t in np.linspace(-1, 1, 9)], 4)
        np.testing.assert_allclose(float(third), 6 * coefficients[1], rtol=1e-8)


def test_complex_derivatives():
    """df = Re(c dz): the cotangent pairs with the tangent without conjugation."""
    r = np.random.RandomState(3)
    direction = r.randn(5, 5) + 1j * r.randn(5, 5)
    singular = Z.copy()
    singular[:, 0] = singular[:, 1]
    with atled.enable_x64():
        for f, z in (
            (linalg.det, Z),
            (linalg.det, singular),
            (lambda a: linalg.slogdet(a)[0], Z),
            (lambda a: linalg.slogdet(a)[1], Z),
            (linalg.inv, Z),
            (linalg.pinv, Z),
            (linalg.norm, Z),
            (lambda a: linalg.norm(a, "nuc"), Z),
            (lambda a: linalg.solve(a, a.T), Z),
            (lambda a: linalg.norm(a, 3, axis=0), Z),
            (lambda a: linalg.cholesky(a @ jnp.conj(a.T) + jnp.eye(5)), Z),
        ):
            h = 1e-6
            x, v = jnp.asarray(z), jnp.asarray(direction)
            out, tangent = atled.jvp(f, (x,), (v,))
            want = (np.asarray(f(x + h * v)) - np.asarray(f(x - h * v))) / (2 * h)
            np.testing.assert_allclose(np.asarray(tangent), want, rtol=1e-5, atol=1e-6 * (1 + np.abs(want).max()))
            u = jnp.asarray(r.randn(*out.shape)).astype(out.dtype)
            (c,) = atled.vjp(f, x)[1](u)
            left, right = float(jnp.real(jnp.sum(c * v))), float(jnp.real(jnp.sum(u * tangent)))
            np.testing.assert_allclose(left, right, rtol=1e-8)


def test_gradients_of_norms_at_the_origin_are_zero():
    for ord in VECTOR_ORDERS:
        f = lambda x, o=ord: linalg.norm(x, o)
        assert np.all(np.asarray(atled.grad(f)(jnp.zeros(3))) == 0), ord
        assert np.all(np.isfinite(np.asarray(atled.hessian(f)(jnp.zeros(3))))), ord
        assert np.all(np.isfinite(np.asarray(atled.grad(f)(jnp.array([0.0, 2.0, -1.0]))))), ord
    for ord in MATRIX_ORDERS:
        assert np.all(np.asarray(atled.grad(lambda x, o=ord: linalg.norm(x, o))(jnp.zeros((3, 2)))) == 0), ord
    assert np.all(np.asarray(atled.grad(lambda x: linalg.vector_norm(x))(jnp.zeros((3, 2)))) == 0)
    rows = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(
        atled.grad(lambda x: linalg.norm(x, axis=1).sum())(rows), [[0, 0], [0.6, 0.8]], rtol=1e-6
    )


def test_derivatives_of_eigh_with_equal_eigenvalues_are_finite():
    f = lambda a: jnp.sum(jnp.einsum("ij,j,kj->ik", linalg.eigh(a)[1], linalg.eigh(a)[0], linalg.eigh(a)[1]))
    assert np.all(np.isfinite(np.asarray(atled.grad(f)(jnp.eye(3)))))


def test_derivative_of_pinv_of_fixed_rank():
    """In a direction that keeps the rank."""
    r = np.random.RandomState(4)
    left, right, change = r.randn(5, 2), r.randn(2, 4), r.randn(5, 2)
    with atled.enable_x64():
        f = lambda t: linalg.pinv((jnp.asarray(left) + t * jnp.asarray(change)) @ jnp.asarray(right), rtol=1e-9)
        h = 1e-6
        want = (
            np.linalg.pinv((left + h * change) @ right, 1e-9) - np.linalg.pinv((left - h * change) @ right, 1e-9)
        ) / (2 * h)
        np.testing.assert_allclose(np.asarray(atled.jvp(f, (0.0,), (1.0,))[1]), want, atol=1e-7)


# -- transformations --------------------------------------------------------------------------------------------------

BATCHED = {
    "inv": linalg.inv,
    "det": linalg.det,
    "slogdet": linalg.slogdet,
    "pinv": linalg.pinv,
    "eigvalsh": linalg.eigvalsh,
    "svdvals": linalg.svdvals,
    "norm": linalg.norm,
    "norm 2": lambda m: linalg.norm(m, 2),
    "cond": linalg.cond,
    "rank": linalg.matrix_rank,
    "solve": lambda m: linalg.solve(m, m.T),
    "solve, shared": lambda m: linalg.solve(jnp.asarray(S2[0]), m),
    "r": lambda m: jnp.abs(linalg.qr(m, mode="r")),
    "raw": lambda m: linalg.qr(m, mode="raw"),
    "lstsq": lambda m: linalg.lstsq(m, m[0]),
    "grad det": atled.grad(linalg.det),
    "grad slogdet": atled.grad(lambda m: linalg.slogdet(m)[1]),
    "grad solve": atled.grad(lambda m: linalg.solve(m, m[0]).sum()),
    "grad pinv": atled.grad(lambda m: linalg.pinv(m).sum()),
}


@pytest.mark.parametrize("name", BATCHED)
def test_vmap_is_a_loop_and_jit_changes_nothing(name):
    f = BATCHED[name]
    with atled.enable_x64():
        xs = jnp.asarray(R.randn(3, 5, 5) + 2 * np.eye(5))
        flat = lambda y: [np.asarray(v) for v in atled.tree.leaves(y)]
        rows = [flat(f(xs[i])) for i in range(3)]
        got = flat(atled.vmap(f)(xs))
        for k, g in enumerate(got):
            np.testing.assert_allclose(g, np.stack([row[k] for row in rows]), rtol=1e-9, atol=1e-9)
        for g, w in zip(flat(atled.jit(f)(xs[0])), rows[0], strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-10)


def test_large_matrices_compile_in_reasonable_time():
    """Row exchanges are composed in log2(n) rounds, not one by one."""
    n = 300
    r = np.random.RandomState(5)
    a, b = r.randn(n, n), r.randn(n)
    np.testing.assert_allclose(linalg.solve(a, b), np.linalg.solve(a, b), rtol=1e-6)
    text = str(atled.make_program(linalg.solve)(jnp.asarray(a), jnp.asarray(b)))
    assert text.count("\n") < 200


# -- complaints -------------------------------------------------------------------------------------------------------

COMPLAINTS = [
    (lambda: linalg.inv(A), ValueError, r"inv: expected square matrices on the last two axes; got f64\[3,4\]"),
    (lambda: linalg.det(V), ValueError, "det: expected square matrices"),
    (lambda: linalg.inv([[1.0]]), TypeError, "inv: expected an array or a number; got list"),
    (lambda: linalg.solve(S, A), ValueError, r"solve: b must have as many rows as a; got f64\[4,4\] and f64\[3,4\]"),
    (lambda: linalg.solve(S2, R.randn(3, 5, 1)), ValueError, "solve: leading axes must broadcast"),
    (lambda: linalg.norm(T, 3), ValueError, "norm: an axis is needed"),
    (lambda: linalg.norm(A, 3), ValueError, "norm: the order of a matrix norm"),
    (lambda: linalg.norm(V, "fro"), ValueError, "norm: 'fro' is a matrix norm"),
    (lambda: linalg.norm(T, axis=(0, 1, 2)), ValueError, "norm: one axis, or two"),
    (lambda: linalg.norm(A, axis=5), ValueError, "norm: axis 5 is out of bounds"),
    (lambda: linalg.norm(np.zeros(0), -np.inf), ValueError, "norm: an empty vector"),
    (lambda: linalg.cond(np.zeros((0, 0))), ValueError, "cond: an empty matrix"),
    (lambda: linalg.cond(A, 1), ValueError, "cond: order 1.0 needs square"),
    (lambda: linalg.qr(A, "half"), ValueError, "qr: the mode is"),
    (lambda: linalg.eigh(P, "X"), ValueError, "eigh: UPLO is 'L' or 'U'"),
    (lambda: linalg.slogdet(P, method="svd"), ValueError, "slogdet: the method"),
    (lambda: linalg.svd(A, subset_by_index=(0, 1)), ValueError, "svd: subset_by_index needs full_matrices=False"),
    (lambda: linalg.svd(A, False, subset_by_index=(0, 9)), ValueError, "svd: subset_by_index must be"),
    (lambda: linalg.matrix_power(S, 1.5), TypeError, "matrix_power: the exponent must be an integer"),
    (lambda: linalg.matrix_power(A, 2), ValueError, "matrix_power: expected square"),
    (lambda: linalg.multi_dot([A]), ValueError, "multi_dot: at least two"),
    (lambda: linalg.multi_dot([A, T, A]), ValueError, "multi_dot: matrices are needed"),
    (lambda: linalg.outer(A, V), ValueError, "outer: vectors are needed"),
    (lambda: linalg.cross(V, W), ValueError, "cross: vectors must have three components"),
    (lambda: linalg.pinv(A, 0.1, rcond=0.1), ValueError, "pinv: rtol and rcond"),
    (lambda: linalg.matrix_rank(A, 0.1, tol=0.1), ValueError, "matrix_rank: give rtol or tol"),
    (lambda: linalg.matrix_norm(V), ValueError, "matrix_norm: at least two axes"),
    (lambda: linalg.tensorinv(A), ValueError, "tensorinv: the axes"),
    (lambda: linalg.tensorsolve(A, V), ValueError, "tensorsolve: "),
    (lambda: linalg.lstsq(A, V), ValueError, "lstsq: "),
]


@pytest.mark.parametrize("call, kind, message", COMPLAINTS)
def test_complaints(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_subset_of_singular_values():
    with atled.enable_x64():
        u, s, vt = linalg.svd(A, full_matrices=False, subset_by_index=(1, 3))
        full = linalg.svd(A, full_matrices=False)
        same(u, np.asarray(full.U)[:, 1:3])
        same(s, np.asarray(full.S)[1:3])
        same(vt, np.asarray(full.Vh)[1:3])


def test_everything_is_public():
    assert set(linalg.__all__) == {
        n for n in dir(np.linalg) if not n.startswith("_") and n not in ("LinAlgError", "linalg", "test")
    }
    assert all(getattr(linalg, name).__doc__ for name in linalg.__all__)
