"""Products of sparse arrays with dense arrays and with sparse arrays; no sparse operand becomes dense.

A product with a dense array gathers the dense elements that each entry multiplies, and scatter-adds the results: the
cost is the number of entries times the size of the free axes of the dense array. A product of two sparse arrays
compares all pairs of entries, so its cost is the product of their numbers of entries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import lax
from atled import numpy as jnp
from atled.core import errors
from atled.core.array import Array, describe, is_array_like
from atled.jax.experimental.sparse.base import over_batches
from atled.jax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_extract,
    columns,
    dense_shape,
    inside,
    masked,
    sparse_shape,
    stored,
    validated,
)
from atled.jax.experimental.sparse.layout import batch_to_sparse, sum_duplicates
from atled.jax.experimental.sparse.shaping import bcoo_squeeze, bcoo_transpose, placed, with_batches
from atled.staging.jit import library_function
from atled.transforms.vmap import vmap

__all__ = [
    "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
]  # fmt: skip


# -- elementwise ------------------------------------------------------------------------------------------------------


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays; axes of length one broadcast.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_multiply_sparse(sparse.eye(2), sparse.eye(2)).todense()
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a, b = validated("bcoo_multiply_sparse", lhs), validated("bcoo_multiply_sparse", rhs)
    if lhs.ndim != rhs.ndim or any([m != n and 1 not in (m, n) for m, n in zip(lhs.shape, rhs.shape, strict=True)]):
        says = f"bcoo_multiply_sparse: shapes must be equal or have length 1; got {lhs.shape} and {rhs.shape}."
        raise TypeError(errors.explained(says))
    if a.n_dense != b.n_dense:
        says = f"bcoo_multiply_sparse: arrays must have the same number of dense axes; got {a.n_dense} and {b.n_dense}."
        raise NotImplementedError(errors.explained(says, "update_layout(n_dense=0) of one array."))
    return _multiplied(lhs, rhs)


@library_function
def _multiplied(lhs: BCOO, rhs: BCOO) -> BCOO:
    n = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = with_batches(lhs, n), with_batches(rhs, n)
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    pairs = list(zip(sparse_shape(lhs), sparse_shape(rhs), strict=True))

    def meet(x: Any, i: Any, y: Any, j: Any) -> Any:
        is_met = inside(i, sparse_shape(lhs))[:, None] & inside(j, sparse_shape(rhs))[None]
        coordinates = []
        for axis, (m, k) in enumerate(pairs):
            left, right = i[:, None, axis], j[None, :, axis]
            is_met = is_met & (left == right) if m == k else is_met
            coordinates.append(jnp.broadcast_to(left if m >= k else right, is_met.shape))
        positions = jnp.stack(coordinates, -1) if coordinates else jnp.zeros((*is_met.shape, 0), i.dtype)
        products = x[:, None] * y[None]
        count = is_met.size
        return (
            products.reshape(count, *products.shape[2:]), positions.reshape(count, len(pairs)), is_met.reshape(count)
        )  # fmt: skip

    (x, i), (y, j) = _spread(lhs, shape[:n]), _spread(rhs, shape[:n])
    data, indices, is_met = over_batches(meet, n)(x, i, y, j.astype(i.dtype))
    return placed(data, indices, is_met, shape, n, lhs.n_dense)


def _spread(mat: BCOO, batch: Sequence[int]) -> list[Any]:
    return [jnp.broadcast_to(x, (*batch, *x.shape[mat.n_batch :])) for x in (mat.data, mat.indices)]


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The data of the elementwise product of `sp_mat` and `v`, a dense array, which broadcasts; indices are unchanged.

    >>> from atled.jax.experimental import sparse
    >>> bcoo_multiply_dense(sparse.eye(3), [1.0, 2.0, 3.0])
    Array([1., 2., 3.], dtype=float32)
    """
    validated("bcoo_multiply_dense", sp_mat)
    v = jnp.asarray(v)
    fits = v.ndim <= sp_mat.ndim
    if not fits or any([a not in (1, n) for a, n in zip(v.shape[::-1], sp_mat.shape[::-1], strict=False)]):
        says = f"bcoo_multiply_dense: the dense array must broadcast to the shape {sp_mat.shape}; got {v.shape}."
        raise NotImplementedError(errors.explained(says))
    return _scaled(sp_mat, v)


@library_function
def _scaled(mat: BCOO, v: Any) -> Any:
    data, v = jnp.promote_types(mat.dtype, v.dtype), v
    values = mat.data.astype(data)
    v = v.astype(data)
    if v.ndim == 0:
        return values * v
    n, k = mat.n_batch, mat.n_sparse
    v = v.reshape((1,) * (mat.ndim - v.ndim) + v.shape)
    if math.prod(v.shape[: n + k]) == 1:
        return values * v.reshape((1,) * (n + 1) + v.shape[n + k :])
    wide = [a for a in range(k) if v.shape[n + a] > 1]
    batch = mat.shape[:n]
    if not wide:
        return values * v.reshape(*v.shape[:n], 1, *v.shape[n + k :])
    v = v.reshape(*v.shape[:n], *[v.shape[n + a] for a in wide], *v.shape[n + k :])
    (values, indices) = _spread(mat, batch)

    def scale(x: Any, i: Any, v: Any) -> Any:
        factors = v.at[tuple([i[:, a] for a in wide])].get(mode="fill", fill_value=0)
        return x * factors

    is_shared = math.prod(v.shape[:n]) == 1
    v = v.reshape(v.shape[n:]) if is_shared else jnp.broadcast_to(v, (*batch, *v.shape[n:]))
    for _ in range(n):
        scale = vmap(scale, (0, 0, None if is_shared else 0))
    return scale(values.astype(data), indices, v)


# -- contractions -----------------------------------------------------------------------------------------------------


def bcoo_dot_general(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:  # fmt: skip
    """A product summed over contracting axes, with the `dimension_numbers` of `lax.dot_general`.

    The result is sparse if both operands are sparse, else dense.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> bcoo_dot_general(sparse.eye(2), jnp.ones((2, 3)), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    for x in (lhs, rhs):
        if isinstance(x, BCOO):
            validated("bcoo_dot_general", x)
        elif not is_array_like(x):
            says = f"bcoo_dot_general: operands must be BCOO or dense arrays; got {describe(x)}."
            raise TypeError(errors.explained(says))
    lhs, rhs = [x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs)]
    numbers = _checked("bcoo_dot_general", lhs.shape, rhs.shape, dimension_numbers)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        out = _sparse_dot(lhs, rhs, numbers)
        return out if preferred_element_type is None else out.with_data(out.data.astype(preferred_element_type))
    if isinstance(lhs, BCOO):
        out = _dense_dot(lhs, rhs, numbers)
    elif isinstance(rhs, BCOO):
        (a, b), (c, d) = numbers
        out = _dense_dot(rhs, lhs, ((b, a), (d, c)))
        batch, free = len(c), rhs.ndim - len(b) - len(d)
        out = jnp.transpose(out, (*range(batch), *range(batch + free, out.ndim), *range(batch, batch + free)))
    else:
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        return lax.dot_general(lhs, rhs, numbers, **options)
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _checked(name: str, left: Sequence[int], right: Sequence[int], numbers: Any) -> Any:
    """Dimension numbers as tuples of integers; raises if they do not match the shapes."""
    (a, b), (c, d) = [[tuple([int(i) for i in axes]) for axes in pair] for pair in numbers]
    fits = len(a) == len(b) and len(c) == len(d) and len({*a, *c}) == len(a + c) and len({*b, *d}) == len(b + d)
    for dims, axes in ((left, a + c), (right, b + d)):
        fits = fits and all([0 <= i < len(dims) for i in axes])
    if not fits or [left[i] for i in a + c] != [right[i] for i in b + d]:
        says = f"{name}: contracting and batch axes must have the same lengths; got {tuple(left)} and {tuple(right)} "
        says += f"with {numbers}."
        raise TypeError(errors.explained(says))
    return (a, b), (c, d)


def _dense_dot(lhs: BCOO, rhs: Any, numbers: Any) -> Any:
    (contracting, _), (batch, _) = numbers
    if any([a >= lhs.n_batch for a in batch]):
        says = (
            f"bcoo_dot_general: batch axes must be among the batch axes of the sparse array; got {batch} for {lhs!r}."
        )
        raise NotImplementedError(errors.explained(says, "update_layout(n_batch=...) first."))
    if any([a >= lhs.n_batch + lhs.n_sparse for a in contracting]):
        says = "bcoo_dot_general: dense axes of the sparse array cannot be contracted."
        raise NotImplementedError(errors.explained(says, "update_layout(n_dense=0) first."))
    return _contracted(lhs, rhs, numbers)


@library_function(static=("numbers",))
def _contracted(lhs: BCOO, rhs: Any, numbers: Any) -> Any:
    """Reorder axes to (batch axes of both, free batch axes of lhs, others); contracted batch axes become sparse."""
    (contracting, others), (batch, rhs_batch) = numbers
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    summed = [a for a in contracting if a < lhs.n_batch]
    unsummed = [a for a in range(lhs.n_batch) if a not in batch and a not in summed]
    order = (*batch, *unsummed, *summed, *range(lhs.n_batch, lhs.ndim))
    lhs = bcoo_transpose(lhs, permutation=order)
    if summed:
        lhs = batch_to_sparse(lhs, len(summed))
    contracting = tuple([order.index(a) - lhs.n_batch for a in contracting])  # as sparse axes
    free = [a for a in range(rhs.ndim) if a not in others and a not in rhs_batch]
    met = sorted(range(len(contracting)), key=lambda i: contracting[i])
    rhs = jnp.transpose(rhs, (*rhs_batch, *[others[i] for i in met], *free)).astype(dtype)
    rows = [contracting[i] for i in met]
    left = [a for a in range(lhs.n_sparse) if a not in contracting]
    dims = sparse_shape(lhs)

    def contract(data: Any, indices: Any, rhs: Any) -> Any:
        values = masked(inside(indices, dims), data)
        gathered = rhs.at[tuple([indices[:, a] for a in rows])].get(mode="fill", fill_value=0) if rows else rhs
        n_dense = data.ndim - 1
        if rows and not left:  # the result is one sum over all entries
            return lax.dot_general(values, gathered, (((0,), (0,)), ((), ())))
        if rows:
            values = values.reshape(*values.shape, *[1] * (gathered.ndim - 1))
            terms = values * gathered.reshape(gathered.shape[0], *[1] * n_dense, *gathered.shape[1:])
        else:
            terms = values.reshape(*values.shape, *[1] * gathered.ndim) * gathered
        if not left:
            return jnp.sum(terms, 0, dtype=terms.dtype)
        zeros = jnp.zeros((*[dims[a] for a in left], *terms.shape[1:]), dtype)
        is_sorted = lhs.indices_sorted and left == list(range(len(left)))
        at = zeros.at[tuple([indices[:, a] for a in left])]
        return at.add(terms, mode="drop", indices_are_sorted=is_sorted)

    data, indices = stored(lhs)
    for axis in reversed(range(lhs.n_batch)):
        contract = vmap(contract, (0, 0, 0 if axis < len(batch) else None))
    return contract(data.astype(dtype), indices, rhs)


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:  # noqa: N803
    """A product of dense arrays, computed only at `indices`: the `data` of a BCOO array with these indices.

    >>> import atled.numpy as jnp
    >>> where = jnp.array([[0, 1], [1, 0]])
    >>> bcoo_dot_general_sampled(jnp.ones((2, 5)), jnp.ones((5, 2)), where, dimension_numbers=(((1,), (0,)), ((), ())))
    Array([5., 5.], dtype=float32)
    """
    a, b, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    numbers = _checked("bcoo_dot_general_sampled", a.shape, b.shape, dimension_numbers)
    return _sampled(a, b, indices, numbers)


@library_function(static=("numbers",))
def _sampled(a: Any, b: Any, indices: Any, numbers: Any) -> Any:
    (contracting, others), (batch, rhs_batch) = numbers
    n, k = indices.ndim - 2, indices.shape[-1]
    if n != len(batch):
        whole = lax.dot_general(a, b, numbers)
        zeros = jnp.zeros((*indices.shape[:-1], *whole.shape[n + k :]), whole.dtype)
        return bcoo_extract(BCOO((zeros, indices), shape=whole.shape), whole, assume_unique=True).data
    free = [i for i in range(a.ndim) if i not in (*contracting, *batch)]
    free_b = [i for i in range(b.ndim) if i not in (*others, *rhs_batch)]
    dtype = jnp.promote_types(a.dtype, b.dtype)
    a = jnp.transpose(a, (*batch, *free, *contracting)).astype(dtype)
    b = jnp.transpose(b, (*rhs_batch, *free_b, *others)).astype(dtype)
    count = min(k, len(free))
    dims = (*a.shape[n : n + count], *b.shape[n : n + k - count])

    def sample(a: Any, b: Any, i: Any) -> Any:
        m = len(contracting)
        if not k:
            out = jnp.tensordot(a, b, (range(a.ndim - m, a.ndim), range(b.ndim - m, b.ndim)))
            return jnp.broadcast_to(out, (i.shape[0], *out.shape))
        x = a.at[columns(i[:, :count])].get(mode="fill", fill_value=0) if count else a
        y = b.at[columns(i[:, count:])].get(mode="fill", fill_value=0) if k > count else b
        axes = (tuple(range(x.ndim - m, x.ndim)), tuple(range(y.ndim - m, y.ndim)))
        shared = ((0,), (0,)) if count and k > count else ((), ())
        products = lax.dot_general(x, y, (axes, shared))
        products = products if count else jnp.moveaxis(products, x.ndim - m, 0)
        return masked(inside(i, dims), products)

    if indices.shape[:n] != a.shape[:n]:
        indices = jnp.broadcast_to(indices, (*a.shape[:n], *indices.shape[n:]))
    return over_batches(sample, n)(a, b, indices)


# -- both sparse ------------------------------------------------------------------------------------------------------


def _sparse_dot(lhs: BCOO, rhs: BCOO, numbers: Any) -> BCOO:
    (contracting, others), (batch, rhs_batch) = numbers
    says = ""
    if lhs.n_dense or rhs.n_dense:
        says = "arrays must have no dense axes"
    elif any([a < lhs.n_batch for a in contracting]) or any([b < rhs.n_batch for b in others]):
        says = "contracting axes must be sparse in both arrays"
    elif any([a >= lhs.n_batch for a in batch]) or any([b >= rhs.n_batch for b in rhs_batch]):
        says = "batch axes must be among the batch axes of both arrays"
    if says:
        says = f"bcoo_dot_general: if both operands are sparse, {says}; got {lhs!r} and {rhs!r} with {numbers}."
        raise NotImplementedError(errors.explained(says, "update_layout first, or .todense() of one."))
    if rhs.n_batch > len(rhs_batch) and lhs.n_sparse > len(contracting):
        says = "bcoo_dot_general: if lhs has free sparse axes, all batch axes of rhs must be batch axes of the product"
        way_out = "update_layout(n_batch=...) of rhs."
        raise ValueError(errors.explained(f"{says}; got {lhs!r} and {rhs!r}.", way_out))
    out = _met(lhs, rhs, numbers)
    most = math.prod(sparse_shape(out))
    return sum_duplicates(out, most, False) if out.nse > most else out


@library_function(static=("numbers",))
def _met(lhs: BCOO, rhs: BCOO, numbers: Any) -> BCOO:
    (contracting, others), (batch, rhs_batch) = numbers
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    kept_lhs = [a for a in range(lhs.n_batch) if a not in batch]
    kept_rhs = [a for a in range(rhs.n_batch) if a not in rhs_batch]
    lhs = bcoo_transpose(lhs, permutation=(*batch, *kept_lhs, *range(lhs.n_batch, lhs.ndim)))
    rhs = bcoo_transpose(rhs, permutation=(*rhs_batch, *kept_rhs, *range(rhs.n_batch, rhs.ndim)))
    rows, cols = [a - lhs.n_batch for a in contracting], [b - rhs.n_batch for b in others]
    left = [a for a in range(lhs.n_sparse) if a not in rows]
    right = [b for b in range(rhs.n_sparse) if b not in cols]

    def meet(x: Any, i: Any, y: Any, j: Any) -> Any:
        is_met = inside(i, sparse_shape(lhs))[:, None] & inside(j, sparse_shape(rhs))[None]
        for a, b in zip(rows, cols, strict=True):
            is_met = is_met & (i[:, None, a] == j[None, :, b])
        parts = [i[:, None, np.array(left, int)], j[None, :, np.array(right, int)]]
        parts = [jnp.broadcast_to(p, (*is_met.shape, p.shape[-1])) for p in parts]
        count = is_met.size
        positions = jnp.concatenate(parts, -1).reshape(count, len(left) + len(right))
        return (x[:, None] * y[None]).reshape(count), positions, is_met.reshape(count)

    (x, i), (y, j) = stored(lhs), stored(rhs)
    both, first, second = len(batch), len(kept_lhs), len(kept_rhs)
    for _ in range(second):
        meet = vmap(meet, (None, None, 0, 0))
    for _ in range(first):
        meet = vmap(meet, (0, 0, None, None))
    results = over_batches(meet, both)(x.astype(dtype), i, y.astype(dtype), j.astype(i.dtype))
    dims = [sparse_shape(lhs)[a] for a in left] + [sparse_shape(rhs)[b] for b in right]
    n = both + first + second
    data, indices, is_met = results
    return placed(data, indices, is_met, (*data.shape[:n], *dims), n, 0)


def bcoo_conv_general_dilated(
    lhs: Any, rhs: Any, *, window_strides: Sequence[int], padding: Any, lhs_dilation: Any = None,
    rhs_dilation: Any = None, dimension_numbers: Any = None, feature_group_count: int = 1, batch_group_count: int = 1,
    precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None,
) -> BCOO:  # fmt: skip
    """The convolution of sparse arrays of the shapes (1, 1, n) and (1, 1, m), with stride one.

    >>> from atled.jax.experimental import sparse
    >>> x = sparse.BCOO.fromdense([[[0.0, 1.0, 0.0, 2.0]]])
    >>> y = sparse.BCOO.fromdense([[[1.0, 3.0]]])
    >>> bcoo_conv_general_dilated(x, y, window_strides=(1,), padding="VALID").todense()
    Array([[[3., 1., 6.]]], dtype=float32)
    """
    name = "bcoo_conv_general_dilated"
    mats = []
    for x in (lhs, rhs):
        x = x if isinstance(x, BCOO) else BCOO.fromdense(x, nse=math.prod(jnp.shape(x)))
        validated(name, x)
        if x.ndim != 3 or x.shape[:2] != (1, 1):
            says = f"{name}: arrays must have the shape (1, 1, n); got {lhs.shape} and {rhs.shape}."
            raise NotImplementedError(errors.explained(says))
        if dense_shape(x):
            raise NotImplementedError(errors.explained(f"{name}: arrays must have no dense axes; got {x!r}."))
        mats.append(bcoo_squeeze(x if x.n_batch < 3 else x.update_layout(n_batch=2), dimensions=(0, 1)))
    settings = (lhs_dilation, rhs_dilation)
    spec = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    if tuple(window_strides) != (1,) or any([tuple(x or (1,)) != (1,) for x in settings]):
        says = f"{name}: strides and dilations must be one; got {window_strides}, {lhs_dilation} and {rhs_dilation}."
        raise NotImplementedError(errors.explained(says))
    if feature_group_count != 1 or batch_group_count != 1 or [s[2] for s in spec] != [2, 2, 2]:
        says = f"{name}: there must be one group, and the spatial axis must be the last; got {dimension_numbers}."
        raise NotImplementedError(errors.explained(says))
    (n,), (m,) = mats[0].shape, mats[1].shape
    if isinstance(padding, str):
        ((low, high),) = lax.padtype_to_pads((n,), (m,), (1,), padding)
    else:
        ((low, high),) = padding
    out = _convolved(mats[0], mats[1], low, max(0, n + low + high - m + 1))
    return out if preferred_element_type is None else out.with_data(out.data.astype(preferred_element_type))


@library_function(static=("low", "length"))
def _convolved(x: BCOO, y: BCOO, low: int, length: int) -> BCOO:
    dtype = jnp.promote_types(x.dtype, y.dtype)
    i, j = x.indices[:, None, 0], y.indices[None, :, 0].astype(x.indices.dtype)
    place = i - j + low
    is_kept = inside(x.indices, x.shape)[:, None] & inside(y.indices, y.shape)[None] & (place >= 0) & (place < length)
    terms = x.data.astype(dtype)[:, None] * y.data.astype(dtype)[None]
    count = terms.size
    parts = (terms.reshape(1, 1, count), place.reshape(1, 1, count, 1), is_kept.reshape(1, 1, count))
    return placed(*parts, (1, 1, length), 2, 0)
