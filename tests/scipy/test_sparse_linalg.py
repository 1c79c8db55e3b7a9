"""Iterative solvers against direct ones; derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy_checks import check_derivatives, check_transforms, same

import atled
import atled.numpy as jnp
from atled.scipy.sparse import linalg

R = np.random.RandomState(0)
N = 8
A = R.randn(N, N) + 6 * np.eye(N)
C = A + 1j * R.randn(N, N)
S = A @ A.T / 10 + np.eye(N)
H = C @ C.conj().T / 10 + np.eye(N)
b, c = R.randn(N), R.randn(N) + 1j * R.randn(N)
TIGHT = {"tol": 1e-12}
GMRES = lambda *a, **k: linalg.gmres(*a, **k)
STEPWISE = lambda *a, **k: linalg.gmres(*a, solve_method="incremental", **k)
SOLVERS = {
    "cg": (linalg.cg, S, H),
    "bicgstab": (linalg.bicgstab, A, C),
    "gmres": (GMRES, A, C),
    "gmres, incremental": (STEPWISE, A, C),
}


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(name):
    f, real, full = SOLVERS[name]
    want = np.linalg.solve(real, b)
    solve = atled.jit(lambda m, y, tol, atol: f(m, y, tol=tol, atol=atol)[0])
    same(solve(real, b, 1e-12, 0.0), want)
    same(solve(real, np.zeros(N), 1e-5, 0.0), np.zeros(N))
    for tol, atol in ((0.1, 0.0), (0.0, 0.5)):
        rough = np.asarray(solve(real, b, tol, atol))
        assert np.linalg.norm(real @ rough - b) <= tol * np.linalg.norm(b) + atol
    same(f(full, c, **TIGHT)[0], np.linalg.solve(full, c))
    same(f(real, b, b, M=np.linalg.inv(real), maxiter=1, **TIGHT)[0], want)  # a perfect preconditioner
    single = f(jnp.asarray(real, "float32"), jnp.asarray(b, "float32"))[0]
    assert single.dtype == np.float32
    same(single, want, 1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_trees(name):
    f, real, _ = SOLVERS[name]
    whole = jnp.asarray(real)

    def matvec(x):
        y = whole @ jnp.concatenate([jnp.ravel(x["u"]), x["v"]])
        return {"u": jnp.reshape(y[:4], (2, 2)), "v": y[4:]}

    got, _ = f(matvec, {"u": b[:4].reshape(2, 2), "v": b[4:]}, **TIGHT)
    want = np.linalg.solve(real, b)
    same(got["u"], want[:4].reshape(2, 2))
    same(got["v"], want[4:])


def test_restarts_and_singular_matrices():
    n = 30
    x = np.eye(n) * 3 + np.diag(np.ones(n - 1), 1) + R.randn(n, n) / 10
    y = R.randn(n)
    for f in (GMRES, STEPWISE):
        got, info = f(x, y, restart=4, **TIGHT)
        same(got, np.linalg.solve(x, y), 1e-8)
        assert int(info) == 0
        few = np.asarray(f(x, y, restart=4, maxiter=1, tol=0.0)[0])  # the least residual that 4 steps can reach
        space = np.stack([np.linalg.matrix_power(x, k) @ y for k in range(4)], 1)
        least = np.linalg.lstsq(x @ space, y, rcond=None)[1][0] ** 0.5
        np.testing.assert_allclose(np.linalg.norm(x @ few - y), least, rtol=1e-9)
        flat = np.diag([1.0, 2.0, 0.0])
        same(f(flat, np.array([1.0, 2.0, 0.0]))[0], np.array([1.0, 1.0, 0.0]))
        assert int(f(np.full((2, 2), np.nan), np.ones(2))[1]) == -1  # and not what it began with
    assert linalg.cg(S, b)[1] is None and linalg.bicgstab(A, b)[1] is None


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives(name):
    f, real, full = SOLVERS[name]
    symmetric = (lambda m: (m + m.T) / 2) if name == "cg" else (lambda m: m)
    check_derivatives(atled.jit(lambda m, y: f(symmetric(m), y, **TIGHT)[0]), real, b, order=1)
    if not name.startswith("gmres,"):
        check_derivatives(atled.jit(lambda y: f(full, y + 1j * y**2, **TIGHT)[0].real), b, order=1)


def test_second_derivatives_and_preconditioners():
    inverse = np.linalg.inv(A) + R.randn(N, N) / 100
    check_derivatives(atled.jit(lambda m, y: linalg.gmres(m, y, M=inverse, **TIGHT)[0]), A, b, order=1)
    check_derivatives(
        atled.jit(lambda m: linalg.cg(m @ m.T + jnp.eye(3), jnp.ones(3), **TIGHT)[0]), A[:3, :3], tol=1e-4
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_vmap_is_a_loop_and_jit_changes_nothing(name):
    f, real, _ = SOLVERS[name]
    both = np.stack([np.eye(N), real])  # each takes its own number of steps
    check_transforms(lambda m, y: f(m, y, **TIGHT)[0], both, R.randn(2, N))


COMPLAINTS = [
    (lambda: linalg.cg(A[:3], b), ValueError, r"cg: A must be a square matrix, or a function; got f64\[3,8\]"),
    (lambda: linalg.cg("A", b), TypeError, "cg: A must be a square matrix, or a function; got str"),
    (lambda: linalg.bicgstab(A, b, (b,)), ValueError, "bicgstab: x0 must have the structure of b"),
    (lambda: linalg.gmres(A, b, b[:3]), ValueError, "gmres: x0 must have the shapes of b"),
    (lambda: linalg.gmres(A, b, solve_method="no"), ValueError, "gmres: the solve_method is"),
]


@pytest.mark.parametrize("call, kind, message", COMPLAINTS)
def test_complaints(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
