"""Square roots and other functions of matrices, Sylvester's equation, pivots, structured matrices, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy_checks import check_derivatives, check_transforms, same

import atled
import atled.numpy as jnp
from atled.scipy import linalg

scipy_linalg = pytest.importorskip("scipy.linalg")
R = np.random.RandomState(0)
A = R.randn(4, 4)
C = A + 1j * R.randn(4, 4)
S = A @ A.T + np.eye(4)
ROTATIONS = np.array([[0.0, 1, 2, 3], [-2, 0, 1, 1], [0, 0, 1, 4], [0, 0, -1, 1]])  # two pairs of eigenvalues
b, B = R.randn(4), R.randn(4, 3)
d, e = R.randn(5), R.randn(4)


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


def test_sqrtm():
    for x in (
        S,
        A,
        C,
        ROTATIONS,
        np.triu(S),
        np.diag([0.0, 1, 4]),
        np.zeros((3, 3)),
        A[:1, :1],
        np.arange(4).reshape(2, 2),
    ):
        got = np.asarray(linalg.sqrtm(x))
        assert got.dtype == np.complex128
        same(got @ got, x.astype(complex))
        assert np.all(np.linalg.eigvals(got).real >= -1e-12)
    same(linalg.sqrtm(S), scipy_linalg.sqrtm(S).astype(complex))
    same(linalg.sqrtm(np.stack([A, S])), np.stack([np.asarray(linalg.sqrtm(x)) for x in (A, S)]))
    single = linalg.sqrtm(jnp.asarray(S, "float32"))
    assert single.dtype == np.complex64 and linalg.sqrtm(jnp.ones((0, 0))).shape == (0, 0)
    same(np.asarray(single).real, scipy_linalg.sqrtm(S), 1e-5)
    assert np.isnan(np.asarray(linalg.sqrtm(np.full((2, 2), np.nan)))).all()


def test_funm():
    for x in (S, A, C, ROTATIONS, A[:1, :1]):
        same(linalg.funm(x, jnp.exp), scipy_linalg.expm(x).astype(complex), 1e-8)
        same(linalg.funm(x, lambda v: v**2), (x @ x).astype(complex), 1e-8)
        got, error = linalg.funm(x, jnp.sin, disp=False)
        want, expected = scipy_linalg.funm(x, np.sin, disp=False)
        same(got, np.asarray(want, complex), 1e-8)
        assert error.dtype == np.float64 and (expected == 0 or float(error) <= 10 * max(expected, 1e-15))
    same(linalg.funm(np.stack([A, S]), jnp.exp), np.stack([scipy_linalg.expm(x) for x in (A, S)]).astype(complex), 1e-8)
    same(linalg.funm(np.eye(3), jnp.exp), np.e * np.eye(3, dtype=complex))  # equal eigenvalues without blocks
    assert linalg.funm(np.ones((0, 0)), jnp.exp).shape == (0, 0)


def test_rsf2csf():
    for x in (ROTATIONS, A, S, A[:1, :1], A[:3, :3], np.stack([A, ROTATIONS])):
        t, z = (np.asarray(v) for v in linalg.rsf2csf(*linalg.schur(x)))
        same(z @ t @ np.conj(np.swapaxes(z, -1, -2)), x.astype(complex))
        same(np.conj(np.swapaxes(z, -1, -2)) @ z, np.broadcast_to(np.eye(x.shape[-1], dtype=complex), x.shape))
        assert np.all(np.tril(t, -1) == 0)


@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_solve_sylvester(method):
    for x, y, right in (
        (A, A[:3, :3] + 5 * np.eye(3), B),
        (C, S[:3, :3], B),
        (A, ROTATIONS + 4 * np.eye(4), C),
        (A[:1, :1], S, b[None]),
        (np.eye(2, dtype=int), np.eye(2, dtype=int), np.arange(4).reshape(2, 2)),
    ):
        got = np.asarray(linalg.solve_sylvester(x, y, right, method=method))
        same(x @ got + got @ y, right.astype(got.dtype))
        if np.isrealobj(right) or np.iscomplexobj(x):  # SciPy is wrong where C alone is complex
            same(got, scipy_linalg.solve_sylvester(x, y, right))
    many = np.stack([B, 2 * B])
    got = np.asarray(linalg.solve_sylvester(A, 5 * np.eye(3), many, method=method))
    same(A @ got + 5 * got, many)
    assert np.isnan(np.asarray(linalg.solve_sylvester(A, -A, A, method=method))).all()
    assert (
        linalg.solve_sylvester(
            jnp.ones((2, 2), "float16"), jnp.eye(2, dtype="float16"), jnp.ones((2, 2), "float16")
        ).dtype
        == np.float16
    )
    assert linalg.solve_sylvester(np.ones((0, 0)), A, np.ones((0, 4)), method=method).shape == (0, 4)


def test_eigh_tridiagonal():
    dense = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    w, v = (np.asarray(x) for x in linalg.eigh_tridiagonal(d, e))
    same(w, scipy_linalg.eigh_tridiagonal(d, e)[0])
    same(dense @ v, v * w)
    same(linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 3)), w[1:4])
    w, v = (np.asarray(x) for x in linalg.eigh_tridiagonal(d, e, select="i", select_range=(0, 1)))
    same(dense @ v, v * w)
    turned = e * np.exp(1j * np.arange(4))
    w, v = (np.asarray(x) for x in linalg.eigh_tridiagonal(d.astype(complex), turned))
    same((np.diag(d) + np.diag(turned, 1) + np.diag(turned.conj(), -1)) @ v, v * w)
    for n in (0, 1, 2):
        w, v = linalg.eigh_tridiagonal(d[:n], e[: max(n - 1, 0)])
        assert w.shape == (n,) and v.shape == (n, n)
    assert linalg.eigh_tridiagonal(jnp.ones(2, "float32"), jnp.ones(1, "float32"))[0].dtype == np.float32


def test_qr_with_pivots():
    for x in (A, A[:3], A[:, :2], C):
        for mode in ("full", "economic"):
            q, r, p = (np.asarray(v) for v in linalg.qr(x, mode=mode, pivoting=True))
            _, want, order = scipy_linalg.qr(x, mode=mode, pivoting=True)
            same(q @ r, x[:, p])
            assert p.tolist() == order.tolist() and p.dtype == np.int32
            same(np.abs(r), np.abs(want))
        r, p = linalg.qr(x, mode="r", pivoting=True)
        same(np.abs(r), np.abs(scipy_linalg.qr(x, mode="r", pivoting=True)[0]))
    stacked = [np.asarray(v) for v in linalg.qr(np.stack([A, S]), pivoting=True)]
    for i, x in enumerate((A, S)):
        same(stacked[0][i] @ stacked[1][i], x[:, stacked[2][i]])


def test_qr_multiply():
    for x in (A, A[:3], A[:, :2], C, C[:, :2]):
        m, k = x.shape[0], min(x.shape)
        for mode, shapes in (("right", ((m,), (3, m))), ("left", ((k,), (k, 3)))):
            for size in shapes:
                c = np.random.RandomState(1).randn(*size)
                for conjugate in (False, True):
                    for pivoting in (False, True):
                        got = linalg.qr_multiply(x, c, mode, pivoting, conjugate)
                        want = scipy_linalg.qr_multiply(x, c, mode, pivoting, conjugate)
                        assert len(got) == len(want)
                        for g, w in zip(got, want, strict=True):
                            same(g, w)


def test_structured_matrices():
    for name, args in (
        ("fiedler_companion", (b,)),
        ("fiedler_companion", (d,)),
        ("fiedler_companion", (np.arange(1, 9),)),
        ("fiedler_companion", (b[:2],)),
        ("fiedler_companion", (b[:3],)),
        *[("convolution_matrix", (x, n, m)) for x in (b, C[0]) for n in (1, 3, 6) for m in ("full", "same", "valid")],
        ("helmert", (1,)),
        ("helmert", (4,)),
        ("helmert", (4, True)),
        ("invhilbert", (4,)),
        ("invhilbert", (9,)),
    ):  # fmt: skip
        same(getattr(linalg, name)(*args), getattr(scipy_linalg, name)(*args), 1e-13)
    for kind in ("symmetric", "lower", "upper"):
        same(linalg.invpascal(6, kind), scipy_linalg.invpascal(6, kind).astype(float))
    same(linalg.convolution_matrix(np.stack([b, b]), 3)[1], linalg.convolution_matrix(b, 3))
    same(linalg.fiedler_companion(np.stack([b, b]))[1], linalg.fiedler_companion(b))
    assert (
        linalg.fiedler_companion(b[:1]).shape == (0, 0) and linalg.convolution_matrix(np.arange(3), 2).dtype.kind == "i"
    )
    assert np.isinf(np.asarray(linalg.invhilbert(60).astype("float32"))).any()


POSITIVE = lambda m: m @ m.T + jnp.eye(4)
DERIVATIVES = {
    "sqrtm": (lambda m: linalg.sqrtm(POSITIVE(m)).real, (A,)),
    "solve_sylvester": (linalg.solve_sylvester, (A, S[:3, :3] + 3 * np.eye(3), B)),
    "solve_sylvester, eigen": (lambda *a: linalg.solve_sylvester(*a, method="eigen"), (A, S[:3, :3], B)),
    "eigh_tridiagonal": (lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), (d, e)),
    "qr, pivots": (lambda m: linalg.qr(m, pivoting=True)[1], (A,)),
    "qr_multiply": (lambda m, c: linalg.qr_multiply(m, c)[0], (A, B.T)),
    "convolution_matrix": (lambda a: linalg.convolution_matrix(a, 3, "same") ** 2, (b,)),
    "fiedler_companion": (lambda a: linalg.fiedler_companion(a) ** 2, (b,)),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    f, xs = DERIVATIVES[name]
    check_derivatives(f, *xs, order=2 if name in ("sqrtm", "solve_sylvester") else 1)


def test_vmap_is_a_loop_and_jit_changes_nothing():
    xs = R.randn(3, 4, 4) + 3 * np.eye(4)
    check_transforms(linalg.sqrtm, xs)
    check_transforms(lambda x: linalg.solve_sylvester(x, x, x + 1), xs)
    check_transforms(lambda x: linalg.rsf2csf(*linalg.schur(x)), xs)
    check_transforms(lambda x: linalg.funm(x, jnp.sin, disp=False), xs, tol=1e-7)
    check_transforms(lambda x: linalg.qr(x, pivoting=True), xs)
    check_transforms(lambda x: linalg.eigh_tridiagonal(x[0], x[1, :3], eigvals_only=True), xs)


COMPLAINTS = [
    (lambda: linalg.sqrtm(B), r"sqrtm: expected square matrices on the last two axes; got f64\[4,3\]"),
    (lambda: linalg.funm(B, jnp.exp), "funm: expected square matrices"),
    (lambda: linalg.funm(A, jnp.sum), r"funm: the function must return one number for each of c128\[4\]; got c128\[\]"),
    (lambda: linalg.rsf2csf(A, B), "rsf2csf: T and Z must be square matrices of the same size"),
    (lambda: linalg.solve_sylvester(A, A, B), "solve_sylvester: A and B must be square"),
    (lambda: linalg.solve_sylvester(A, A, A, method="no"), "solve_sylvester: the method is"),
    (lambda: linalg.eigh_tridiagonal(d, d), "eigh_tridiagonal: e must have one element fewer than d"),
    (lambda: linalg.eigh_tridiagonal(d, e, select="x"), "eigh_tridiagonal: select is"),
    (lambda: linalg.eigh_tridiagonal(d, e, select="i"), "eigh_tridiagonal: select='i' needs"),
    (lambda: linalg.qr_multiply(A, B), "qr_multiply: Q is 4 by 4, which cannot be multiplied on the right"),
    (lambda: linalg.qr_multiply(A, b, "up"), "qr_multiply: the mode is"),
    (lambda: linalg.fiedler_companion(b[:0]), "fiedler_companion: at least one coefficient"),
    (lambda: linalg.convolution_matrix(b, 0), "convolution_matrix: vectors have at least one element"),
    (lambda: linalg.convolution_matrix(b, 2, "no"), "convolution_matrix: the mode is"),
    (lambda: linalg.convolution_matrix(1.0, 2), "convolution_matrix: a must have one element or more"),
    (lambda: linalg.helmert(0), "helmert: the size must be positive"),
    (lambda: linalg.invpascal(3, "left"), "invpascal: the kind is"),
]


@pytest.mark.parametrize("call, message", COMPLAINTS)
def test_complaints(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match="sqrtm: the blocked algorithm is not supported"):
        linalg.sqrtm(A, 2)
    with pytest.raises(NotImplementedError, match="eigh_tridiagonal: select='v' is not supported"):
        linalg.eigh_tridiagonal(d, e, select="v", select_range=(0, 1))
