"""`experimental.sparse`: BCOO arrays and their functions, as JAX has them, in many layouts."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import atled
import atled.lax
import atled.numpy as jnp
from atled.jax.experimental import sparse

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.experimental.sparse")

R = np.random.RandomState(0)
OURS = (sparse, jnp, atled.lax)
THEIRS = (theirs, jax.numpy, jax.lax)
LAYOUTS = [((3, 4), 0, 0), ((2, 3, 4), 1, 0), ((2, 3, 4), 0, 1), ((2, 3, 4, 2), 1, 1), ((2, 2, 3), 2, 0), ((5,), 0, 0)]


def dense(shape, dtype="f4", density=0.5):
    x = (R.rand(*shape) < density) * (1 + R.randint(1, 9, shape))
    return (x + 1j * x[::-1] if dtype == "c8" else x).astype(dtype)


def made(s, shape, n_batch=0, n_dense=0, dtype="f4", seed=0, messy=False):
    """An array of either library; a messy one has duplicates and padding, in no order."""
    r = np.random.RandomState(seed)
    n = len(shape) - n_dense
    dims = shape[n_batch:n]
    nse = 6
    data = (r.randint(1, 9, (*shape[:n_batch], nse, *shape[n:]))).astype(dtype)
    if messy:
        indices = np.stack([r.randint(0, d, (*shape[:n_batch], nse)) for d in dims], -1) if dims else np.zeros((nse, 0))
        indices[..., 3, :] = indices[..., 1, :]
        indices[..., 4, :] = dims
        return s.BCOO((data, indices.astype("i4")), shape=shape)
    x = (r.rand(*shape) < 0.5) * r.randint(1, 9, shape)
    return s.BCOO.fromdense(x.astype(dtype), n_batch=n_batch, n_dense=n_dense)


def same(ours, wanted, tolerance=1e-5, with_nse=True):
    if isinstance(wanted, (tuple, list)):
        assert len(ours) == len(wanted)
        for a, b in zip(ours, wanted, strict=True):
            same(a, b, tolerance, with_nse)
        return
    assert isinstance(ours, sparse.JAXSparse) == isinstance(wanted, theirs.JAXSparse), (ours, wanted)
    assert tuple(ours.shape) == tuple(wanted.shape)
    assert ours.dtype == wanted.dtype, (ours.dtype, wanted.dtype)
    if isinstance(wanted, theirs.BCOO):
        assert (ours.n_batch, ours.n_sparse, ours.n_dense) == (wanted.n_batch, wanted.n_sparse, wanted.n_dense)
        assert not with_nse or ours.nse == wanted.nse, (ours, wanted)
        assert ours.indices.dtype == wanted.indices.dtype
    if isinstance(wanted, theirs.JAXSparse):
        ours, wanted = ours.todense(), wanted.todense()
    np.testing.assert_allclose(np.asarray(ours), np.asarray(wanted), tolerance, tolerance)


def both(f, with_nse=True):
    """Run a function with either library, and compare."""
    same(f(*OURS), f(*THEIRS), with_nse=with_nse)


MATRIX_MATRIX = (((1,), (0,)), ((), ()))
OUTER, ALL, SUMMED = (((), ()), ((), ())), (((0, 1), (1, 0)), ((), ())), (((0, 2), (1, 0)), ((), ()))
WIDE = {"shape": (2, 3, 1, 4), "broadcast_dimensions": (1, 3)}
DEEP = {"shape": (3, 4, 2, 5), "broadcast_dimensions": (0, 1, 2)}
PART = {"start_indices": (0, 1, 1), "limit_indices": (3, 4, 2)}


def dot(s, x, y, numbers, **options):
    return s.bcoo_dot_general(x, y, dimension_numbers=numbers, **options)


def sample(s, x, y, indices):
    return s.bcoo_dot_general_sampled(x, y, indices, dimension_numbers=MATRIX_MATRIX)


def gather(s, lax, x, where):
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    return s.bcoo_gather(x, where, numbers, (1, 4), mode="promise_in_bounds")


# name -> (shape, n_batch, n_dense), function of an array and the three modules
UNARY = {
    "neg": (((2, 3, 4), 1, 0), lambda x, s, m, lax: -x),
    "abs": (((2, 3, 4), 1, 0), lambda x, s, m, lax: abs(x)),
    "scaled": (((2, 3, 4), 0, 1), lambda x, s, m, lax: 3 * x / 2),
    "square": (((3, 4), 0, 0), lambda x, s, m, lax: x**2),
    "sum all": (((2, 3, 4, 2), 1, 1), lambda x, s, m, lax: x.sum()),
    "sum batch": (((2, 3, 4, 2), 1, 1), lambda x, s, m, lax: x.sum(0)),
    "sum sparse": (((2, 3, 4, 2), 1, 1), lambda x, s, m, lax: x.sum((1, 3))),
    "sum kept": (((3, 4), 0, 0), lambda x, s, m, lax: x.sum(1, keepdims=True)),
    "transpose": (((2, 3, 4, 2), 1, 1), lambda x, s, m, lax: x.transpose((0, 2, 1, 3))),
    "T": (((3, 4), 0, 0), lambda x, s, m, lax: x.T),
    "reshape": (((2, 6, 4), 1, 0), lambda x, s, m, lax: x.reshape(2, 3, 2, 2, 2)),
    "reshape to one": (((3, 4), 0, 0), lambda x, s, m, lax: x.reshape(-1)),
    "reshape dense": (((3, 4, 2), 0, 1), lambda x, s, m, lax: s.bcoo_reshape(x, new_sizes=(12, 2, 1))),
    "reshape turned": (((3, 4), 0, 0), lambda x, s, m, lax: s.bcoo_reshape(x, new_sizes=(2, 6), dimensions=(1, 0))),
    "row": (((3, 4), 0, 0), lambda x, s, m, lax: x[1]),
    "column": (((3, 4), 0, 0), lambda x, s, m, lax: x[:, -1]),
    "steps": (((3, 4), 0, 0), lambda x, s, m, lax: x[::2, 1::2]),
    "backwards": (((3, 4), 0, 0), lambda x, s, m, lax: x[::-1]),
    "new axis": (((3, 4), 0, 0), lambda x, s, m, lax: x[None, :, None]),
    "batch item": (((2, 3, 4), 1, 0), lambda x, s, m, lax: x[1, 1:]),
    "rows": (((3, 4), 0, 0), lambda x, s, m, lax: x[m.array([2, 0, -1])]),
    "one": (((3, 4), 0, 0), lambda x, s, m, lax: x[1, 2]),
    "dynamic": (((2, 3, 4), 1, 0), lambda x, s, m, lax: s.bcoo_dynamic_slice(x, (1, m.int32(2), 0), (1, 2, 3))),
    "dynamic dense": (((3, 4, 2), 0, 1), lambda x, s, m, lax: s.bcoo_dynamic_slice(x, (1, 1, 1), (2, 3, 1))),
    "slice": (((3, 4, 2), 0, 1), lambda x, s, m, lax: s.bcoo_slice(x, **PART)),
    "squeeze": (((1, 3, 1, 1), 1, 1), lambda x, s, m, lax: s.bcoo_squeeze(x, dimensions=(0, 2, 3))),
    "reversed": (((2, 3, 4, 2), 1, 1), lambda x, s, m, lax: s.bcoo_rev(x, (0, 2, 3))),
    "broadcast": (((3, 4), 0, 0), lambda x, s, m, lax: s.bcoo_broadcast_in_dim(x, **WIDE)),
    "broadcast dense": (((3, 4, 2), 0, 1), lambda x, s, m, lax: s.bcoo_broadcast_in_dim(x, **DEEP)),
    "joined": (((3, 4), 0, 0), lambda x, s, m, lax: s.bcoo_concatenate([x, x[:2]], dimension=0)),
    "joined batches": (((2, 3, 4), 1, 0), lambda x, s, m, lax: s.bcoo_concatenate([x, x], dimension=0)),
    "added": (((2, 3, 4), 1, 0), lambda x, s, m, lax: x + x),
    "taken": (((2, 3, 4), 1, 0), lambda x, s, m, lax: 2 * x - x),
    "times row": (((2, 3, 4), 1, 0), lambda x, s, m, lax: x * m.arange(4.0)),
    "times dense": (((2, 3, 4, 2), 1, 1), lambda x, s, m, lax: x * m.arange(48.0).reshape(2, 3, 4, 2)),
    "by column": (((3, 4), 0, 0), lambda x, s, m, lax: x / m.arange(1.0, 4.0)[:, None]),
    "plus dense": (((3, 4), 0, 0), lambda x, s, m, lax: x + m.ones((3, 4))),
    "at vector": (((3, 4), 0, 0), lambda x, s, m, lax: x @ m.arange(4.0)),
    "vector at": (((3, 4), 0, 0), lambda x, s, m, lax: m.arange(3.0) @ x),
    "at matrix": (((2, 3, 4), 1, 0), lambda x, s, m, lax: x @ m.arange(40.0).reshape(2, 4, 5)),
    "matrix at": (((2, 3, 4), 1, 0), lambda x, s, m, lax: m.arange(15.0).reshape(5, 3) @ x),
    "outer": (((3, 4), 0, 0), lambda x, s, m, lax: dot(s, x, m.arange(2.0), OUTER)),
    "all": (((3, 4), 0, 0), lambda x, s, m, lax: dot(s, x, m.arange(12.0).reshape(4, 3), ALL)),
    "batch summed": (((2, 3, 4), 1, 0), lambda x, s, m, lax: dot(s, x, m.arange(40.0).reshape(4, 2, 5), SUMMED)),
    "dense axis": (((3, 4, 2), 0, 1), lambda x, s, m, lax: dot(s, x, m.arange(20.0).reshape(4, 5), MATRIX_MATRIX)),
    "wide": (
        ((3, 4), 0, 0),
        lambda x, s, m, lax: dot(s, x, m.ones((4, 2)), MATRIX_MATRIX, preferred_element_type=m.bfloat16),
    ),
    "sampled": (((3, 4), 0, 0), lambda x, s, m, lax: sample(s, m.ones((3, 2)), m.arange(8.0).reshape(2, 4), x.indices)),
    "extracted": (((2, 3, 4), 1, 0), lambda x, s, m, lax: s.bcoo_extract(x, m.arange(24.0).reshape(2, 3, 4))),
    "gathered": (((3, 4), 0, 0), lambda x, s, m, lax: gather(s, lax, x, m.array([[2], [0]]))),
    "fewer batches": (((2, 3, 4), 1, 0), lambda x, s, m, lax: x.update_layout(n_batch=0)),
    "as ints": (((3, 4), 0, 0), lambda x, s, m, lax: x.astype("int32")),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions(name):
    """Of arrays with duplicates and padding, and some without."""
    layout, f = UNARY[name]
    for messy in {"extracted": [False], "row": [False, True], "joined": [False, True]}.get(name, [True]):
        both(lambda s, m, lax, messy=messy: f(made(s, *layout, messy=messy), s, m, lax))


GRADS = ["scaled", "sum sparse", "reshape", "row", "rows", "dynamic", "times dense", "at matrix", "batch summed"]


@pytest.mark.parametrize("name", GRADS)
def test_derivatives(name):
    """By numbers, under jit, of what has duplicates and padding."""
    layout, f = UNARY[name]

    def loss(s, m, lax):
        def of(x):
            y = f(x, s, m, lax)
            y = y.todense() if hasattr(y, "todense") else y
            return (y**2).sum()

        return of

    ours, wanted = made(sparse, *layout, messy=True), made(theirs, *layout, messy=True)
    a = atled.jit(sparse.grad(loss(*OURS)))(ours)
    b = theirs.grad(loss(*THEIRS))(wanted)
    same(a, b)
    np.testing.assert_allclose(a.data, b.data, 1e-5)


def test_derivative_by_the_dense_operand():
    f = lambda s: lambda v: ((made(s, (3, 4), messy=True) @ v) ** 2).sum()
    v = np.arange(4.0, dtype="f4")
    np.testing.assert_allclose(atled.grad(f(sparse))(v), jax.grad(f(theirs))(v), 1e-6)
    a = atled.jvp(f(sparse), (v,), (v + 1,))
    b = jax.jvp(f(theirs), (v,), (v + 1,))
    np.testing.assert_allclose(a, b, 1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_order_and_duplicates(layout, messy=True):
    both(lambda s, m, lax: made(s, *layout, messy=messy).sum_duplicates())
    both(lambda s, m, lax: s.bcoo_sum_duplicates(made(s, *layout, messy=messy), nse=4))
    f = lambda s, m, lax: made(s, *layout, messy=messy).sort_indices()
    both(f)
    np.testing.assert_array_equal(f(*OURS).indices, f(*THEIRS).indices)
    np.testing.assert_array_equal(f(*OURS).data, f(*THEIRS).data)


@pytest.mark.parametrize(
    "layout, dtype", [*zip([*LAYOUTS[:4], LAYOUTS[1]], ["f4", "i4", "c8", "f2", "u1"], strict=True)]
)
def test_dense_and_back(layout, dtype):
    x = dense(layout[0], dtype)
    kwargs = {"n_batch": layout[1], "n_dense": layout[2]}
    ours, wanted = sparse.BCOO.fromdense(x, **kwargs), theirs.BCOO.fromdense(x, **kwargs)
    same(ours, wanted)
    np.testing.assert_array_equal(ours.todense(), x)
    np.testing.assert_array_equal(ours.indices, wanted.indices)
    np.testing.assert_array_equal(ours.data, wanted.data)
    assert repr(ours) == repr(wanted) and (ours.indices_sorted, ours.unique_indices) == (True, True)
    for nse in (1, 7):
        same(sparse.bcoo_fromdense(x, nse=nse, **kwargs), theirs.bcoo_fromdense(x, nse=nse, **kwargs))


CHANGES = {
    (0, 0): [(0, 2), (1, 1), (3, 0)],
    (1, 0): [(0, 0), (0, 1), (2, 0)],
    (0, 1): [(0, 0), (2, 1)],
    (1, 1): [(3, 0)],
}


@pytest.mark.parametrize("start, n_batch, n_dense", [(a, *b) for a, many in CHANGES.items() for b in many])
def test_layouts(start, n_batch, n_dense):
    both(
        lambda s, m, lax: made(s, (2, 3, 4), *start, messy=True).update_layout(
            n_batch=n_batch, n_dense=n_dense, on_inefficient=None
        )
    )


def test_extract():
    x = np.arange(12.0, dtype="f4").reshape(3, 4)
    for unique in (None, True, False):
        f = lambda s, unique=unique: s.bcoo_extract(made(s, (3, 4), messy=True), x, assume_unique=unique).data
        np.testing.assert_array_equal(f(sparse), f(theirs))


PAIRS = {
    "alike": (((3, 4), 0, 0), ((3, 4), 0, 0)),
    "batches": (((2, 3, 4), 1, 0), ((2, 3, 4), 1, 0)),
    "fewer batches": (((2, 3, 4), 1, 0), ((2, 3, 4), 0, 0)),
    "dense": (((3, 4, 2), 0, 1), ((3, 4, 2), 0, 1)),
    "row": (((3, 4), 0, 0), ((1, 4), 0, 0)),
    "cross": (((3, 1), 0, 0), ((1, 4), 0, 0)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_products_of_entries(name, messy=True):
    a, b = PAIRS[name]
    both(lambda s, m, lax: s.bcoo_multiply_sparse(made(s, *a, messy=messy), made(s, *b, seed=1, messy=messy)))
    both(lambda s, m, lax: made(s, *a, messy=messy) * made(s, *b, seed=1, messy=messy))


DOTS = {
    "matrices": (((3, 4), 0), ((4, 5), 0), (((1,), (0,)), ((), ()))),
    "batches": (((2, 3, 4), 1), ((2, 4, 5), 1), (((2,), (1,)), ((0,), (0,)))),
    "free batch": (((2, 3, 4), 1), ((4, 5), 0), (((2,), (0,)), ((), ()))),
    "vectors": (((4,), 0), ((4,), 0), (((0,), (0,)), ((), ()))),
    "outer": (((3,), 0), ((4,), 0), (((), ()), ((), ()))),
}


@pytest.mark.parametrize("name", DOTS)
def test_products_of_sparse_matrices(name, messy=True):
    (a, m), (b, n), numbers = DOTS[name]
    both(
        lambda s, _, lax: s.bcoo_dot_general(
            made(s, a, m, messy=messy), made(s, b, n, seed=1, messy=messy), dimension_numbers=numbers
        )
    )


def test_sampled_batches():
    numbers = (((2,), (1,)), ((0,), (0,)))
    x, y = R.randn(2, 3, 5).astype("f4"), R.randn(2, 5, 4).astype("f4")
    f = lambda s, m, lax: s.bcoo_dot_general_sampled(
        m.asarray(x), m.asarray(y), made(s, (2, 3, 4), 1, messy=True).indices, dimension_numbers=numbers
    )
    both(f)
    where = np.array([[0], [2]], "i4")
    g = lambda s, m, lax: s.bcoo_dot_general_sampled(x[0], y[0], where, dimension_numbers=(((1,), (0,)), ((), ())))
    both(g)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(2, 1)]])
def test_convolution(padding):
    options = {"window_strides": (1,), "padding": padding}
    x, k = dense((1, 1, 10)), dense((1, 1, 3))
    f = lambda s, m, lax: s.bcoo_conv_general_dilated(
        s.BCOO.fromdense(x, n_batch=2), s.BCOO.fromdense(k, n_batch=2), **options
    )
    both(f)
    wanted = jax.lax.conv_general_dilated(x, k, (1,), padding)
    np.testing.assert_allclose(f(*OURS).todense(), wanted)


def test_vmap():
    """Batch axes are what vmap runs over, in and out."""
    f = lambda m: lambda x: x @ m.arange(4.0)
    a, b = made(sparse, (2, 3, 4), 1, messy=True), made(theirs, (2, 3, 4), 1, messy=True)
    same(atled.vmap(f(jnp))(a), jax.vmap(f(jax.numpy))(b))
    same(atled.vmap(lambda x: 2 * x.T)(a), jax.vmap(lambda x: 2 * x.T)(b))
    a, b = made(sparse, (2, 3, 4), 2), made(theirs, (2, 3, 4), 2)
    same(atled.vmap(lambda x: x.todense(), in_axes=1)(a), jax.vmap(lambda x: x.todense(), in_axes=1)(b))
    same(atled.vmap(lambda x: -x, in_axes=1, out_axes=1)(a), jax.vmap(lambda x: -x, in_axes=1, out_axes=1)(b))
    same(atled.jit(atled.vmap(atled.vmap(lambda x: x.sum())))(a), jax.vmap(jax.vmap(lambda x: x.sum()))(b))
    x = dense((2, 3, 4))
    same(
        atled.vmap(lambda x: sparse.BCOO.fromdense(x, nse=5))(x),
        jax.vmap(lambda x: theirs.BCOO.fromdense(x, nse=5))(x),
    )
    v = np.ones((3, 4), "f4")
    c, d = made(sparse, (3, 4)), made(theirs, (3, 4))
    same(atled.vmap(lambda v: c @ v)(v), jax.vmap(lambda v: d @ v)(v))
    with pytest.raises(ValueError, match="indices must be integers of the shape"):
        atled.vmap(lambda x: x * 2)(c)


def test_stored_once():
    """A batch axis of length one may stand for a longer one."""
    f = lambda s, m, lax: s.BCOO((m.arange(3.0)[None], m.array([[[0], [1], [3]]])), shape=(5, 4))
    both(f)
    both(lambda s, m, lax: f(s, m, lax) @ m.arange(4.0))
    both(lambda s, m, lax: f(s, m, lax)[2:])
    both(lambda s, m, lax: f(s, m, lax).sum(0), with_nse=False)


def test_trees():
    x = made(sparse, (3, 4))
    leaves, structure = atled.tree.flatten(x)
    assert leaves[0] is x.data and leaves[1] is x.indices
    y = structure.unflatten(leaves)
    assert y.shape == (3, 4) and y.unique_indices and structure == atled.tree.structure(y)
    assert atled.tree.map(lambda v: v, {"x": x})["x"].nse == x.nse
    assert atled.jit(lambda x: x)(x).indices_sorted
    assert atled.eval_shape(lambda x: x.T, x).shape == (4, 3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert len(x) == 3 and x.ndim == 2 and x.size == 12 and x.block_until_ready() is x
    assert [r.shape for r in x] == [(4,)] * 3


def test_numpy_operands():
    x = made(sparse, (3, 4))
    np.testing.assert_allclose(np.arange(3, dtype="f4") @ x, np.arange(3) @ x.todense())
    np.testing.assert_allclose((np.arange(4, dtype="f4") * x).todense(), np.arange(4) * x.todense())
    with pytest.raises(TypeError):
        x @ "a"


def test_large_matrices_stay_sparse():
    """10^6 numbers of a matrix that has 10^12: every function here takes far less."""
    n = 10**6
    r = np.random.RandomState(0)
    places = r.randint(0, n, (n, 2)).astype("i4")
    data, v = r.rand(n).astype("f4"), r.rand(n).astype("f4")
    x = sparse.BCOO((data, places), shape=(n, n))
    wanted = np.bincount(places[:, 0], data.astype("f8") * v[places[:, 1]], n)
    np.testing.assert_allclose(x @ v, wanted, 1e-4, 1e-5)
    compiled = atled.jit(lambda x, v: x @ v).lower(x, v).compile()
    used = compiled.memory_analysis()
    assert used is None or used.temp_size_in_bytes < 100 * n
    g = atled.grad(lambda v: (x @ v).sum())(v)
    np.testing.assert_allclose(g, np.bincount(places[:, 1], data, n), 1e-4, 1e-5)
    np.testing.assert_allclose((x * v).data, data * v[places[:, 1]], 1e-6)
    np.testing.assert_allclose((v[:, None] * x).data, data * v[places[:, 0]], 1e-6)
    assert (x + x.T).sum_duplicates(nse=2 * n)[:, None].shape == (n, 1, n)
    assert x[5:9].shape == (4, n) and x.sum(0).shape == (n,)


ERRORS = [
    (ValueError, "bcoo_fromdense: n_batch", lambda x: sparse.BCOO.fromdense(x.todense(), n_batch=2, n_dense=1)),
    (ValueError, "BCOO: data f32", lambda x: sparse.BCOO((jnp.ones(2), x.indices), shape=(3, 4))),
    (ValueError, "BCOO: indices must be", lambda x: sparse.BCOO((x.data, x.data), shape=(3, 4))),
    (TypeError, "must be a BCOO array", lambda x: sparse.bcoo_todense(x.todense())),
    (NotImplementedError, "sparsify: add", lambda x: x + 1),
    (NotImplementedError, "sparsify: sub", lambda x: x - x.todense()),
    (NotImplementedError, "sparsify: div", lambda x: 1 / x),
    (NotImplementedError, "integer_pow", lambda x: x**-1),
    (NotImplementedError, "compare", lambda x: x == x),
    (NotImplementedError, "same shape", lambda x: x + x[:1]),
    (NotImplementedError, "same layout", lambda x: x + x.update_layout(n_batch=1, on_inefficient=None)),
    (sparse.SparseEfficiencyError, "stores many zeros", lambda x: x.update_layout(n_dense=1)),
    (ValueError, "on_inefficient is", lambda x: x.update_layout(n_dense=1, on_inefficient="x")),
    (ValueError, "n_batch .* must be from", lambda x: x.update_layout(n_dense=3)),
    (TypeError, "bcoo_transpose", lambda x: x.transpose((0, 0))),
    (NotImplementedError, "must stay batch axes", lambda x: x.update_layout(n_batch=1, on_inefficient=None).T),
    (ValueError, "bcoo_reshape", lambda x: sparse.bcoo_reshape(x, new_sizes=(5, 3))),
    (ValueError, "bcoo_squeeze", lambda x: sparse.bcoo_squeeze(x, dimensions=(0,))),
    (ValueError, "bcoo_slice", lambda x: sparse.bcoo_slice(x, start_indices=(0, 0), limit_indices=(9, 1))),
    (TypeError, "bcoo_dynamic_slice", lambda x: sparse.bcoo_dynamic_slice(x, (0, 0), (9, 1))),
    (ValueError, "bcoo_reduce_sum", lambda x: sparse.bcoo_reduce_sum(x, axes=(2,))),
    (ValueError, "at least one array", lambda x: sparse.bcoo_concatenate([], dimension=0)),
    (TypeError, "dtypes must be equal", lambda x: sparse.bcoo_concatenate([x, x.astype("int32")], dimension=0)),
    (TypeError, "same lengths", lambda x: sparse.bcoo_dot_general(x, x, dimension_numbers=(((1,), (0,)), ((), ())))),
    (NotImplementedError, "broadcast to the shape", lambda x: sparse.bcoo_multiply_dense(x, jnp.ones((2, 3, 4)))),
    (NotImplementedError, "must have length one", lambda x: jnp.ones((3, 4)) * x[:, :1]),
    (atled.errors.ConcretizationTypeError, "nse", lambda x: atled.jit(sparse.BCOO.fromdense)(x.todense())),
    (ValueError, "nse", lambda x: atled.jit(lambda x: x.sum_duplicates())(x)),
    (ValueError, "bcoo_extract", lambda x: sparse.bcoo_extract(x, jnp.ones((4, 3)))),
    (NotImplementedError, "mode", lambda x: sparse.sparsify(lambda x: jnp.take(x, jnp.array([0]), axis=0))(x)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    kind, says, f = ERRORS[number]
    with pytest.raises(kind, match=says):
        f(made(sparse, (3, 4)))


def test_warning():
    with pytest.warns(sparse.SparseEfficiencyWarning, match="n_dense from 0 to 1"):
        made(sparse, (3, 4)).update_layout(n_dense=1, on_inefficient="warn")


NAMES = [
    n
    for n in dir(theirs)
    if not n.startswith("_") and not n.endswith("_p") and not inspect.ismodule(getattr(theirs, n))
]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_parameters(name):
    ours, wanted = getattr(sparse, name), getattr(theirs, name)
    if inspect.isfunction(wanted):
        a, b = inspect.signature(ours).parameters, inspect.signature(wanted).parameters
        assert [(p.name, p.kind) for p in a.values()] == [(p.name, p.kind) for p in b.values()]
        for key, p in a.items():
            if isinstance(b[key].default, (int, str, float, bool, type(None))):
                assert p.default == b[key].default
    if inspect.isclass(wanted) and issubclass(wanted, theirs.JAXSparse):
        missing = [n for n in dir(wanted) if (not n.startswith("_") or n.startswith("__")) and not hasattr(ours, n)]
        assert missing in ([], ["__annotations__"])
