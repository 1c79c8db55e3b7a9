"""`experimental.sparse`: `sparsify`, derivatives, the formats BCSR, COO, CSR and CSC, and `linalg`, as JAX has them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import atled
import atled.lax
import atled.numpy as jnp
import atled.scipy.optimize
from atled.jax.experimental import sparse
from atled.jax.experimental.sparse import linalg

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.experimental.sparse")
their_linalg = pytest.importorskip("jax.experimental.sparse.linalg")
their_optimize = pytest.importorskip("jax.scipy.optimize")

R = np.random.RandomState(0)
M = ((R.rand(3, 4) < 0.5) * R.randint(1, 9, (3, 4))).astype("f4")
V = np.arange(1.0, 5.0, dtype="f4")
MESSY = (np.array([1.0, 2, 3, 7, 5], "f4") / 10, np.array([[1, 1], [0, 0], [1, 1], [0, 2], [3, 4]], "i4"))


def made(s):
    return s.BCOO(MESSY, shape=(3, 4))


def same(ours, wanted, tolerance=1e-5):
    ours, wanted = [x.todense() if hasattr(x, "todense") else x for x in (ours, wanted)]
    assert tuple(np.shape(ours)) == tuple(np.shape(wanted))
    np.testing.assert_allclose(np.asarray(ours), np.asarray(wanted), tolerance, tolerance)


# name -> function of the array, a vector, and numpy and lax of either library
FUNCTIONS = {
    "documented": lambda a, v, m, lax: 2 * m.dot(m.log1p(a), v) + 1,
    "unary": lambda a, v, m, lax: m.sin(a) + m.tanh(m.sqrt(abs(a))) - m.expm1(m.sign(a)),
    "square": lambda a, v, m, lax: m.square(a) * 2,
    "twice": lambda a, v, m, lax: (a * v) @ (v / 2),
    "mean": lambda a, v, m, lax: m.mean(a, axis=0) * 3,
    "norm": lambda a, v, m, lax: m.linalg.norm(a),
    "einsum": lambda a, v, m, lax: m.einsum("ij,j->i", a, v),
    "stacked": lambda a, v, m, lax: m.stack([a, 2 * a]),
    "concatenated": lambda a, v, m, lax: m.concatenate([a, a], 1) @ m.concatenate([v, v]),
    "swapped": lambda a, v, m, lax: m.swapaxes(a, 0, 1)[1:, ::2],
    "rolled": lambda a, v, m, lax: m.roll(a, 1),
    "cond": lambda a, v, m, lax: lax.cond(v[0] > 0, lambda a: 2 * a, lambda a: a / 2, a),
    "while": lambda a, v, m, lax: lax.while_loop(lambda x: x.sum() < 50, lambda x: x + (a @ x).sum(), v),
    "loop": lambda a, v, m, lax: lax.fori_loop(0, 3, lambda i, x: x + (a @ x).sum(), v),
    "mask": lambda a, v, m, lax: a * (v > 2),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sparsify(name):
    f = FUNCTIONS[name]
    ours = sparse.sparsify(lambda a, v: f(a, v, jnp, atled.lax))
    wanted = theirs.sparsify(lambda a, v: f(a, v, jax.numpy, jax.lax))(made(theirs), V)
    same(ours(made(sparse), V), wanted)
    same(atled.jit(ours)(made(sparse), V), wanted)
    same(ours(made(sparse).todense(), V), wanted)


# functions that JAX has no rules for
MORE = {
    "relu": lambda a, v: atled.nn.relu(a - 0 * a),
    "where": lambda a, v: jnp.where(a > 0.2, a, 0),
    "rounded": lambda a, v: jnp.round(10 * a),
    "one more and less": lambda a, v: jnp.cos(a).sum() if a is None else jnp.exp(a) - 1,
    "lower": lambda a, v: jnp.tril(a),
    "split": lambda a, v: jnp.split(a, 2, axis=1)[1],
    "scan": lambda a, v: atled.lax.scan(lambda c, x: (c + a @ x, (a @ x).sum()), jnp.zeros(3), jnp.stack([v, v]))[0],
    "remat": lambda a, v: atled.remat(lambda a, v: a @ v)(a, v),
    "dense": lambda a, v: jnp.cos(sparse.todense(a)) + 1,
}


@pytest.mark.parametrize("name", MORE)
def test_more_rules(name):
    a = made(sparse)
    same(sparse.sparsify(MORE[name])(a, V), MORE[name](a.todense(), V))


@pytest.mark.parametrize("name", ["cos", "max", "cumsum", "sort", "exp"])
def test_missing_rules(name):
    with pytest.raises(NotImplementedError, match=f"sparsify: (reduce_)?{name}"):
        sparse.sparsify(getattr(jnp, name))(made(sparse))


def test_sparsify_takes_trees_and_closures():
    a = made(sparse)
    out = sparse.sparsify(lambda d, *, v: {"y": d["a"] @ v, "a": d["a"], "n": 3})({"a": a}, v=V)
    same(out["y"], a @ V)
    assert isinstance(out["a"], sparse.BCOO) and int(out["n"]) == 3
    same(sparse.sparsify(lambda x: a @ x)(V), a @ V)
    same(atled.grad(lambda v: sparse.sparsify(lambda a, v: (a @ v).sum())(a, v))(V), a.todense().sum(0))
    same(sparse.sparsify(lambda a, v: atled.grad(lambda v: (a @ v).sum())(v))(a, V), a.todense().sum(0))


def test_documented_examples():
    """What the documentation of JAX shows."""
    m = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]], "f4")
    x = sparse.BCOO.fromdense(m)
    assert repr(x) == "BCOO(float32[3, 4], nse=4)"
    assert x.data.tolist() == [1, 2, 3, 4] and x.indices.tolist() == [[0, 1], [0, 3], [1, 0], [2, 2]]
    y = jnp.array([3.0, 6.0, 5.0])
    assert (x.T @ y).tolist() == [18, 3, 20, 6]
    assert atled.jit(atled.grad(lambda y: (x.T @ y).sum()))(y).tolist() == [3, 3, 4]
    f = sparse.sparsify(lambda m, v: 2 * jnp.dot(jnp.log1p(m.T), v) + 1)
    np.testing.assert_allclose(f(x, y), [17.635532, 5.158883, 17.09438, 7.591674], 1e-6)
    a = sparse.BCOO.fromdense(jnp.arange(12).reshape(3, 4))
    assert sparse.sparsify(lambda m, v: 2 * m.T @ v)(a, jnp.array([3, 4, 2])).tolist() == [64, 82, 100, 118]
    z = sparse.BCOO.fromdense(jnp.arange(6.0))
    assert repr(sparse.value_and_grad(lambda x, y: x @ y)(z, jnp.ones(6))[1]) == "BCOO(float32[6], nse=5)"


def test_logistic_regression():
    """The longer example of JAX's documentation: a function with loops and derivatives, sparsified."""
    x = (R.randn(60, 5) * (R.rand(60, 5) < 0.6)).astype("f4")
    y = (x @ R.randn(5) + 3 * R.randn(60) > 0).astype("f4")

    def fit(m, optimize):
        def loss(params, x, y):
            p = 0.5 * (m.tanh((m.dot(x, params[1:]) + params[0]) / 2) + 1)
            return -m.mean(y * m.log(p) + (1 - y) * m.log(1 - p))

        def run(x, y):
            start = m.zeros(x.shape[1] + 1)
            return optimize.minimize(functools.partial(loss, x=x, y=y), x0=start, method="BFGS").x

        return run

    ours = sparse.sparsify(fit(jnp, atled.scipy.optimize))(sparse.BCOO.fromdense(x), y)
    wanted = theirs.sparsify(fit(jax.numpy, their_optimize))(theirs.BCOO.fromdense(x), y)
    np.testing.assert_allclose(ours, wanted, 2e-2, 2e-2)


# -- derivatives ------------------------------------------------------------------------------------------------------


def test_gradients():
    f = lambda d, v: (((d["a"] @ v) ** 2).sum(), 3)
    (ours, aux), grads = sparse.value_and_grad(f, (0, 1), has_aux=True)({"a": made(sparse)}, V)
    (wanted, _), others = theirs.value_and_grad(f, (0, 1), has_aux=True)({"a": made(theirs)}, V)
    assert aux == 3
    np.testing.assert_allclose(ours, wanted, 1e-6)
    np.testing.assert_allclose(grads[0]["a"].data, others[0]["a"].data, 1e-6)
    np.testing.assert_allclose(grads[1], others[1], 1e-6)
    g, aux = sparse.grad(f, has_aux=True)({"a": made(sparse)}, V)
    assert aux == 3 and g["a"].shape == (3, 4)
    with pytest.raises(ValueError, match="argnums"):
        sparse.grad(f, 5)({"a": made(sparse)}, V)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "jacobian"])
def test_jacobians(name):
    f = lambda a, v: a @ v
    ours = getattr(sparse, name)(f, (0, 1))(made(sparse), V)
    wanted = getattr(theirs, name)(f, (0, 1))(made(theirs), V)
    assert repr(ours[0]) == repr(wanted[0])
    same(ours[0], wanted[0])
    same(ours[1], wanted[1])
    out, aux = getattr(sparse, name)(lambda a, v: ({"y": a @ v}, 3), has_aux=True)(made(sparse), V)
    same(out["y"], wanted[0])
    assert aux == 3
    with pytest.raises(NotImplementedError, match="must be dense"):
        getattr(sparse, name)(lambda a: a * 2)(made(sparse))


# -- formats ----------------------------------------------------------------------------------------------------------


def parts(x):
    return [np.asarray(v) for v in x.tree_flatten()[0]]


def equal(ours, wanted):
    assert type(ours).__name__ == type(wanted).__name__ and repr(ours) == repr(wanted)
    for a, b in zip(parts(ours), parts(wanted), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["COO", "CSR", "CSC", "BCSR"])
def test_formats(name):
    ours, wanted = getattr(sparse, name), getattr(theirs, name)
    for nse in (None, 2, 8):
        equal(ours.fromdense(M, nse=nse), wanted.fromdense(M, nse=nse))
        same(ours.fromdense(M, nse=nse), wanted.fromdense(M, nse=nse))
    x = ours.fromdense(M, nse=8)
    same(x @ V, M @ V)
    same(x @ np.ones((4, 2), "f4"), M @ np.ones((4, 2)))
    same(atled.jit(lambda x, v: x @ v)(x, V), M @ V)
    low = name.lower()
    for shape in ((3, 4), (2, 2)):
        equal(sparse.empty(shape, sparse_format=low), theirs.empty(shape, sparse_format=low))
    for k in (-1, 0, 2):
        same(sparse.eye(3, 4, k, sparse_format=low), np.eye(3, 4, k))
        if name != "BCSR":
            equal(sparse.eye(3, 4, k, sparse_format=low), theirs.eye(3, 4, k, sparse_format=low))
    g = sparse.grad(lambda x: (x @ V).sum())(ours.fromdense(M))
    np.testing.assert_allclose(g.todense(), (M != 0) * V, 1e-6)
    if name != "BCSR":
        equal(x.T, wanted.fromdense(M, nse=8).T)
    with pytest.raises(NotImplementedError, match="does not support the operation"):
        x + x


def test_functions_of_matrices():
    for name in ("coo", "csr"):
        x, y = getattr(sparse, f"{name}_fromdense")(M), getattr(theirs, f"{name}_fromdense")(M)
        equal(x, y)
        for transpose in (False, True):
            v = np.arange(3 if transpose else 4, dtype="f4")
            for f, b in ((f"{name}_matvec", v), (f"{name}_matmat", np.stack([v, v + 1], 1))):
                same(getattr(sparse, f)(x, b, transpose=transpose), getattr(theirs, f)(y, b, transpose=transpose))
        same(getattr(sparse, f"{name}_todense")(x), M)
        with pytest.raises(TypeError, match="the argument must be"):
            getattr(sparse, f"{name}_todense")(M)
    x = sparse.COO((np.arange(3.0), np.array([2, 0, 1]), np.array([0, 1, 2])), shape=(3, 3))
    assert x._sort_indices().row.tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match="one of the operands must be dense"):
        x @ x


def test_bcsr():
    batch = np.stack([M, 2 * M])
    for kwargs in ({"n_batch": 1}, {"n_dense": 1}):
        x, y = sparse.BCSR.fromdense(batch, **kwargs), theirs.BCSR.fromdense(batch, **kwargs)
        equal(x, y)
        same(x, batch)
        same(x.to_bcoo(), batch)
    x, y = [s.BCSR.from_bcoo(made(s)) for s in (sparse, theirs)]
    equal(x, y)
    same(x.sum_duplicates(), y.sum_duplicates())
    same(sparse.bcsr_sum_duplicates(x, 4), theirs.bcsr_sum_duplicates(y, 4))
    same(sparse.bcsr_concatenate([x, x], dimension=1), theirs.bcsr_concatenate([y, y], dimension=1))
    kwargs = {"shape": (2, 3, 4), "broadcast_dimensions": (1, 2)}
    same(sparse.bcsr_broadcast_in_dim(x, **kwargs), theirs.bcsr_broadcast_in_dim(y, **kwargs))
    same(sparse.bcsr_extract(x.indices, x.indptr, M), theirs.bcsr_extract(y.indices, y.indptr, M))
    numbers = (((0,), (0,)), ((), ()))
    same(sparse.bcsr_dot_general(x, V[:3], dimension_numbers=numbers), x.todense().T @ V[:3])
    same(V[:3] @ x, V[:3] @ x.todense())
    same(sparse.bcsr_fromdense(M), M)
    same(sparse.bcsr_todense(x), made(sparse))
    z = sparse.BCSR.fromdense(batch, n_batch=1)
    same(atled.vmap(lambda x: x @ V)(z), batch @ V)
    with pytest.raises(ValueError, match="two sparse axes"):
        sparse.BCSR.fromdense(V)
    with pytest.raises(ValueError, match="must fit the shape"):
        sparse.BCSR((x.data, x.indices, x.indptr[1:]), shape=(3, 4))
    with pytest.raises(NotImplementedError, match="transpose"):
        x.T


def test_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    mat = scipy_sparse.random(3, 4, 0.5, format="csr", random_state=0, dtype="f4")
    for name in ("BCOO", "BCSR"):
        equal(getattr(sparse, name).from_scipy_sparse(mat), getattr(theirs, name).from_scipy_sparse(mat))
        assert getattr(sparse, name).from_scipy_sparse(mat, index_dtype="int16").indices.dtype == "int16"
        with pytest.raises(NotImplementedError, match="must be 0"):
            getattr(sparse, name).from_scipy_sparse(mat, n_batch=1)


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)])
def test_eye(n_batch, n_dense):
    for k in (-1, 0, 2, 9):
        kwargs = {"n_batch": n_batch, "n_dense": n_dense}
        a, b = sparse.eye(3, 4, k, **kwargs), theirs.eye(3, 4, k, **kwargs)
        assert repr(a) == repr(b)
        same(a, np.eye(3, 4, k))
    assert repr(sparse.empty((3, 4), **kwargs)) == repr(theirs.empty((3, 4), **kwargs))


def test_random():
    for kwargs in ({"nse": 0.3}, {"nse": 4, "n_batch": 1}, {"nse": 3, "n_dense": 1, "sorted_indices": True}):
        x = sparse.random_bcoo(atled.random.key(0), (3, 4, 5), dtype="float32", **kwargs)
        y = theirs.random_bcoo(jax.random.key(0), (3, 4, 5), dtype="float32", **kwargs)
        assert repr(x) == repr(y)
        assert (np.asarray(x.todense()) != 0).sum() == x.data.size
        assert x.sum_duplicates().nse == x.nse and np.all(np.asarray(x.data) < 1)
        if kwargs.get("sorted_indices"):
            np.testing.assert_array_equal(sparse.BCOO((x.data, x.indices), shape=x.shape).sort_indices().data, x.data)
    x = sparse.random_bcoo(
        atled.random.key(0), (2, 2), nse=9, unique_indices=False, dtype="float32", minval=3, maxval=4
    )
    assert x.nse == 9 and float(x.data.min()) >= 3
    with pytest.raises(ValueError, match="nse must be"):
        sparse.random_bcoo(atled.random.key(0), (2, 2), nse=9)
    with pytest.raises(ValueError, match="sparse_format must be one of"):
        sparse.empty((2, 2), sparse_format="zz")


# -- linear algebra ---------------------------------------------------------------------------------------------------


def test_eigenvalues():
    a = R.randn(40, 40).astype("f4")
    a = a @ a.T
    x = R.randn(40, 3).astype("f4")
    theta, u, i = linalg.lobpcg_standard(a, x)
    wanted, _, _ = their_linalg.lobpcg_standard(a, x)
    np.testing.assert_allclose(theta, wanted, 1e-4)
    np.testing.assert_allclose(a @ np.asarray(u), np.asarray(u) * np.asarray(theta), 1e-3, 2e-2)
    assert 0 < int(i) <= 100
    s = sparse.BCOO.fromdense(a)
    again, _, _ = atled.jit(lambda x: linalg.lobpcg_standard(lambda v: s @ v, x, m=60))(x)
    np.testing.assert_allclose(again, wanted, 1e-4)
    assert int(linalg.lobpcg_standard(a, x, m=2)[2]) == 2
    for bad in (np.ones((40, 0), "f4"), np.ones((40, 8), "f4"), np.ones(40, "f4"), np.ones((30, 1), "f4")):
        with pytest.raises(ValueError, match="lobpcg_standard"):
            linalg.lobpcg_standard(a, bad)


def test_linear_systems():
    a = (R.randn(6, 6) * (R.rand(6, 6) < 0.5) + 3 * np.eye(6)).astype("f4")
    b = R.randn(6).astype("f4")
    x = sparse.CSR.fromdense(a)
    solve = lambda f, m: lambda data, b: f(data, m.asarray(x.indices), m.asarray(x.indptr), b)
    ours, wanted = solve(linalg.spsolve, np), solve(their_linalg.spsolve, np)
    data = np.asarray(x.data)
    np.testing.assert_allclose(ours(data, b), np.linalg.solve(a, b), 1e-4, 1e-5)
    np.testing.assert_allclose(atled.jit(ours)(data, b), np.linalg.solve(a, b), 1e-4, 1e-5)
    mine = atled.grad(lambda d, b: (ours(d, b) ** 2).sum(), (0, 1))(data, b)
    others = jax.grad(lambda d, b: (wanted(d, b) ** 2).sum(), (0, 1))(data, b)
    for g, h in zip(mine, others, strict=True):
        np.testing.assert_allclose(g, h, 1e-3, 1e-4)
    np.testing.assert_allclose(atled.vmap(lambda b: ours(data, b))(np.stack([b, 2 * b]))[1], 2 * ours(data, b), 1e-5)
    with pytest.raises(ValueError, match="must be vectors"):
        linalg.spsolve(data, x.indices, x.indptr, np.ones((6, 2), "f4"))
