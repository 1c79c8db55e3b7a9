"""Creation of sparse arrays: `empty`, `eye` and `random_bcoo`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from atled import numpy as jnp
from atled import random
from atled.core import errors
from atled.jax.experimental.sparse.base import JAXSparse
from atled.jax.experimental.sparse.bcoo import BCOO
from atled.jax.experimental.sparse.bcsr import BCSR
from atled.jax.experimental.sparse.coo import COO
from atled.jax.experimental.sparse.csr import CSC, CSR
from atled.transforms.vmap import vmap

__all__ = ["empty", "eye", "random_bcoo"]

_FORMATS: dict[str, Any] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str, sparse_format: str) -> Any:
    if sparse_format not in _FORMATS:
        says = f"{name}: sparse_format must be one of {', '.join(_FORMATS)}; got {sparse_format!r}."
        raise ValueError(errors.explained(says))
    return _FORMATS[sparse_format]


def empty(
    shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32", sparse_format: str = "bcoo", **kwds: Any
) -> JAXSparse:
    """A sparse array without entries.

    >>> empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    return _format("empty", sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",  # noqa: N803
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:  # fmt: skip
    """A sparse matrix with ones on its k-th diagonal.

    >>> eye(2, 3, k=1).todense()
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    build = _format("eye", sparse_format)._eye
    return build(int(N), int(N if M is None else M), int(k), dtype=dtype, index_dtype=index_dtype, **kwds)


def random_bcoo(
    key: Any, shape: Sequence[int], *, dtype: Any = jnp.float64, indices_dtype: Any = None, nse: float = 0.2,
    n_batch: int = 0, n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform, **kwds: Any,
) -> BCOO:  # fmt: skip
    """An array with random values at random indices.

    `nse` is the number of entries or, if less than one, a fraction of the size; `generator(key, shape, dtype, **kwds)`
    returns the values.

    >>> import atled
    >>> random_bcoo(atled.random.key(0), (3, 4), nse=5, dtype="float32")
    BCOO(float32[3, 4], nse=5)
    """
    shape = tuple([int(n) for n in shape])
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        says = f"random_bcoo: n_batch + n_dense must be from 0 to {len(shape)}; got {n_batch} and {n_dense}."
        raise ValueError(errors.explained(says))
    batch, dims, dense = shape[:n_batch], shape[n_batch : len(shape) - n_dense], shape[len(shape) - n_dense :]
    size = math.prod(dims)
    count = math.ceil(size * nse) if 0 < nse < 1 else int(nse)
    if (count != nse and not 0 < nse < 1) or count < 0 or (unique_indices and count > size):
        says = f"random_bcoo: nse must be a fraction, or a number of entries up to {size}; got {nse}."
        raise ValueError(errors.explained(says))
    index_dtype = jnp.int32 if indices_dtype is None else indices_dtype
    data_key, place_key = random.split(key)

    def places(key: Any) -> Any:
        if not dims:
            return jnp.zeros((count, 0), index_dtype)
        if unique_indices:
            flat_indices = random.choice(key, size, (count,), replace=False)
        else:
            flat_indices = random.randint(key, (count,), 0, size)
        if sorted_indices:
            flat_indices = jnp.sort(flat_indices)
        return jnp.stack(jnp.unravel_index(flat_indices, dims), -1).astype(index_dtype)

    keys = random.split(place_key, math.prod(batch))
    indices = vmap(places)(keys).reshape(*batch, count, len(dims))
    data = generator(data_key, (*batch, count, *dense), dtype, **kwds)
    return BCOO((data, indices), shape=shape, indices_sorted=sorted_indices, unique_indices=unique_indices)
