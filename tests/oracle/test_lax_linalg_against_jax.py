"""Updates, products, reductions and choices of `lax.linalg`: as JAX computes them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import atled
import atled.numpy as jnp

jax = pytest.importorskip("jax")

R = np.random.RandomState(0)
ours, theirs = atled.lax.linalg, jax.lax.linalg


def normal(*dims, dtype="f4"):
    x = R.randn(*dims) + 1j * R.randn(*dims) * (dtype[0] == "c")
    return x.astype(dtype) if dtype[0] == "c" else x.real.astype(dtype)


def symmetric(n, dtype="f4"):
    x = normal(n, n, dtype=dtype)
    return x @ x.conj().T + np.eye(n, dtype=dtype)


def close(a, b, tolerance=1e-5):
    a, b = atled.tree.leaves(a), jax.tree.leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x.dtype == y.dtype and x.shape == y.shape, (x.dtype, y.dtype, x.shape, y.shape)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


def both(f, *args, tolerance=1e-5):
    want = f(theirs, *args)
    close(f(ours, *args), want, tolerance)
    close(atled.jit(functools.partial(f, ours))(*args), want, tolerance)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_updates_of_cholesky_factors(n):
    a, w = symmetric(n), normal(n)
    r = np.linalg.cholesky(a).T.copy()
    both(lambda m, r, w: m.cholesky_update(r, w), r, w)
    both(lambda m, r, w: m.cholesky_update(r, w), -r, w)
    many = atled.vmap(ours.cholesky_update)(np.stack([r, r]), np.stack([w, 2 * w]))
    close(many[1], theirs.cholesky_update(r, 2 * w))
    # the factor of a changed matrix has the derivative of its decomposition
    f = lambda w: jnp.sum(jnp.sin(ours.cholesky_update(r, w)))
    g = lambda w: jnp.sum(jnp.sin(jnp.linalg.cholesky(a + jnp.outer(w, w)).T))
    np.testing.assert_allclose(atled.grad(f)(w), atled.grad(g)(w), rtol=1e-3, atol=1e-3)
    assert np.array_equal(ours.cholesky_update(np.zeros((n, n), "f4"), np.zeros(n, "f4")), np.zeros((n, n)))


def test_updates_that_do_not_fit():
    r, w = np.eye(3, dtype="f4"), np.ones(3, "f4")
    for a, b in ((r[:2], w), (r, w[:2]), (np.stack([r, r]), np.stack([w, w]))):
        with pytest.raises(ValueError, match="cholesky_update: a square matrix and a vector of its size"):
            ours.cholesky_update(a, b)
    for a, b in ((r, w.astype("f2")), (r.astype("c8"), w.astype("c8")), (r.astype("i4"), w.astype("i4"))):
        with pytest.raises(TypeError, match="cholesky_update: floating numbers of the same dtype"):
            ours.cholesky_update(a, b)


@pytest.mark.parametrize(
    ("swaps", "size"), [([2, 2, 3], 5), ([2, 2, 2], 3), ([[2, 2, 3], [0, 1, 2]], 4), ([], 2), ([[1], [0]], 2)]
)
def test_permutations_of_exchanges(swaps, size):
    swaps = np.array(swaps, "i4")
    both(lambda m, p: m.lu_pivots_to_permutation(p, size), swaps)
    rows = np.stack([swaps, swaps])
    both(lambda m, p: (atled if m is ours else jax).vmap(lambda v: m.lu_pivots_to_permutation(v, size))(p), rows)


def test_exchanges_that_do_not_fit():
    for p in (np.ones(2, "u4"), np.ones(2, "f4"), np.ones(2, "i2"), np.int32(1)):
        with pytest.raises(TypeError, match="pivots must be a vector of int32"):
            ours.lu_pivots_to_permutation(p, 3)
    with pytest.raises(ValueError, match="there cannot be more pivots than rows; got 3 for 2"):
        ours.lu_pivots_to_permutation(np.zeros(3, "i4"), 2)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (4, 4), (3, 5), (1, 1)])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_with_reflectors(dtype, m, n, left, transpose):
    a = normal(m, n, dtype=dtype)
    packed, taus = (np.asarray(x) for x in jax.numpy.linalg.qr(a, mode="raw"))
    packed = np.swapaxes(packed, -1, -2)
    c = normal(*((m, 2) if left else (2, m)), dtype=dtype)
    f = lambda linalg, *args: linalg.ormqr(*args, left=left, transpose=transpose)
    both(f, packed, taus, c)
    both(f, packed, taus[:-1], c)  # fewer reflectors
    stacks = [np.stack([x, x]) for x in (packed, taus, c)]
    both(f, *stacks)
    close(atled.vmap(functools.partial(f, ours))(*stacks), f(theirs, *stacks))
    slope = atled.jvp(lambda c: f(ours, packed, taus, c), (c,), (c,))[1]  # linear in c
    close(slope, f(theirs, packed, taus, c))


def test_products_with_reflectors_that_do_not_fit():
    packed, taus, c = normal(5, 3), normal(3), normal(5, 2)
    with pytest.raises(ValueError, match="ormqr: c must have 5 rows"):
        ours.ormqr(packed, taus, c[:3])
    with pytest.raises(ValueError, match="ormqr: c must have 5 columns"):
        ours.ormqr(packed, taus, c, left=False)
    for args in ((packed, normal(4), c), (packed, taus, c[:, 0]), (packed[None], taus[None], c)):
        with pytest.raises(TypeError, match=r"ormqr: reflectors .* have incompatible shapes"):
            ours.ormqr(*args)
    with pytest.raises(TypeError, match="ormqr: floating or complex numbers of the same dtype"):
        ours.ormqr(packed, taus, c.astype("c8"))


@pytest.mark.parametrize("options", [{}, {"alpha": 2.0}, {"beta": 3.0}, {"alpha": 2.0, "beta": -1.0}])
@pytest.mark.parametrize("symmetrize", [True, False])
def test_symmetric_products(options, symmetrize):
    a, c = normal(2, 4, 3), normal(2, 4, 4)
    f = lambda m, a, c: m.symmetric_product(a, c, **options, symmetrize_output=symmetrize)
    both(f, a, c)
    both(f, a[0], c[0])
    half = f(theirs, a.astype("f2"), c.astype("f2"))
    close(f(ours, a.astype("f2"), c.astype("f2")), half, 3e-2)
    both(lambda m, a, c: (atled if m is ours else jax).vmap(functools.partial(f, m))(a, c), a, c)
    alpha, mirrored = options.get("alpha", 1.0), lambda x: jnp.tril(x) + jnp.tril(x, -1).mT
    plain = lambda a: alpha * a @ a.mT + options.get("beta", 0.0) * c
    want = atled.grad(lambda a: jnp.sum(jnp.sin(mirrored(plain(a)) if symmetrize else plain(a))))(a)
    np.testing.assert_allclose(atled.grad(lambda a: jnp.sum(jnp.sin(f(ours, a, c))))(a), want, rtol=1e-4, atol=1e-4)


def test_symmetric_products_that_do_not_fit():
    with pytest.raises(ValueError, match=r"symmetric_product: matrices \[..., m, n\] and \[..., m, m\]"):
        ours.symmetric_product(normal(4, 3), normal(3, 3))
    for a, c in ((normal(4, 3, dtype="c8"), normal(4, 4, dtype="c8")), (normal(4, 3), normal(4, 4, dtype="f2"))):
        with pytest.raises(TypeError, match="symmetric_product: floating numbers of the same dtype"):
            ours.symmetric_product(a, c)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize("lower", [True, False])
def test_tridiagonal_forms(dtype, lower):
    for a in (symmetric(4, dtype), symmetric(1, dtype), np.stack([symmetric(3, dtype), symmetric(3, dtype)])):
        both(lambda m, a: m.tridiagonal(a, lower=lower), a, tolerance=1e-4)
    both(lambda m, a: (atled if m is ours else jax).vmap(m.tridiagonal)(a), a, tolerance=1e-4)
    for bad in (normal(3, 2), normal(0, 0), np.ones((2, 2), "i4"), np.ones((2, 2), "f2")):
        with pytest.raises(TypeError, match="tridiagonal: "):
            ours.tridiagonal(bad)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (4, 4), (40, 40), (1, 1)])
def test_polar_decompositions(dtype, m, n):
    a = normal(m, n, dtype=dtype)
    f = lambda linalg, a: linalg.qdwh(a)[:2]
    both(f, a, tolerance=2e-4)
    u, _, count, is_converged = ours.qdwh(a)
    assert count.dtype == "int32" and 0 < int(count) < 10 and bool(is_converged) and is_converged.dtype == "bool"
    np.testing.assert_allclose(np.asarray(u).conj().T @ u, np.eye(n), atol=1e-5)
    padded = np.pad(a, ((0, 2), (0, 1)), constant_values=7)
    masked = ours.qdwh(padded, dynamic_shape=(m, n))[:2]
    close(masked, theirs.qdwh(padded, dynamic_shape=(m, n))[:2], 2e-4)
    close(atled.jit(lambda a, s: ours.qdwh(a, dynamic_shape=s)[:2])(padded, (m, n)), masked, 1e-5)
    both(
        lambda linalg, a: (atled if linalg is ours else jax).vmap(functools.partial(f, linalg))(a),
        np.stack([a, 2 * a]),
        tolerance=2e-4,
    )


def test_polar_decompositions_that_are_hard():
    thin = np.diag([1, 1e-2, 1e-4]).astype("f4")
    close(ours.qdwh(thin)[:2], theirs.qdwh(thin)[:2], 1e-4)
    assert not np.any(ours.qdwh(np.zeros((3, 3), "f4"))[1])
    assert bool(ours.qdwh(normal(4, 4), is_hermitian=True, eps=1e-2)[3])
    assert ours.qdwh(normal(4, 4), max_iterations=2)[2:] == (2, False)
    with pytest.raises(ValueError, match="no more columns than rows"):
        ours.qdwh(normal(3, 5))
    with pytest.raises(ValueError, match="no more columns than rows"):
        ours.qdwh(normal(2, 3, 3))
    for bad in (np.ones((2, 2), "i4"), np.ones((2, 2), "f2")):
        with pytest.raises(TypeError, match="qdwh: float32"):
            ours.qdwh(bad)
    with atled.enable_x64(True), jax.enable_x64(True):
        a = normal(6, 4, dtype="f8")
        close(ours.qdwh(a)[:2], theirs.qdwh(a)[:2], 1e-10)
        v = normal(6, 4, dtype="f8")
        slope = lambda m, linalg: m.jvp(lambda a: linalg.qdwh(a)[:2], (a,), (v,))[1]
        close(slope(atled, ours), slope(jax, theirs), 1e-7)


def test_choices_of_implementations():
    for name in ("EigImplementation", "EighImplementation", "SvdAlgorithm"):
        assert [(e.name, e.value) for e in getattr(ours, name)] == [(e.name, e.value) for e in getattr(theirs, name)]
    a = symmetric(4)
    for f, parameter, choices in (
        (lambda m, **o: abs(m.eig(a, compute_left_eigenvectors=False, **o)[0]), "implementation", "EigImplementation"),
        (lambda m, **o: m.eigh(a, **o)[1], "implementation", "EighImplementation"),
        (lambda m, **o: m.svd(a, compute_uv=False, **o), "algorithm", "SvdAlgorithm"),
    ):
        for choice in getattr(ours, choices):
            try:
                want = f(theirs, **{parameter: getattr(getattr(theirs, choices), choice.name)})
            except (ValueError, NotImplementedError):
                with pytest.raises(NotImplementedError, match=f"{parameter} is None or"):
                    f(ours, **{parameter: choice})
            else:
                close(np.sort(f(ours, **{parameter: choice})), np.sort(want), 1e-4)
    close(ours.qr(a, use_magma=True)[1], theirs.qr(a, use_magma=True)[1], 1e-4)
    with pytest.raises(NotImplementedError, match="use_magma is None or False"):
        ours.eig(a, use_magma=True)
