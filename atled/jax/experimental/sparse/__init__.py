"""Sparse arrays with the API of `jax.experimental.sparse`: `BCOO`, `sparsify`, and older formats.

>>> import atled.numpy as jnp
>>> from atled.jax.experimental import sparse
>>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
>>> m, m @ jnp.ones(2)
(BCOO(float32[2, 2], nse=2), Array([1., 2.], dtype=float32))
"""

from __future__ import annotations

from atled.jax.experimental.sparse import linalg, operators  # noqa: F401
from atled.jax.experimental.sparse.ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from atled.jax.experimental.sparse.api import empty, eye, random_bcoo
from atled.jax.experimental.sparse.base import (
    CuSparseEfficiencyWarning,
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)
from atled.jax.experimental.sparse.bcoo import BCOO, bcoo_extract, bcoo_fromdense, bcoo_todense
from atled.jax.experimental.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from atled.jax.experimental.sparse.coo import COO, coo_fromdense, coo_matmat, coo_matvec, coo_todense
from atled.jax.experimental.sparse.csr import CSC, CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense
from atled.jax.experimental.sparse.layout import bcoo_sort_indices, bcoo_sum_duplicates, bcoo_update_layout
from atled.jax.experimental.sparse.parts import bcoo_dynamic_slice, bcoo_gather, bcoo_reduce_sum, bcoo_slice
from atled.jax.experimental.sparse.products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from atled.jax.experimental.sparse.shaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
    bcoo_transpose,
)
from atled.jax.experimental.sparse.transform import SparseTracer, sparsify, todense

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError",
    "SparseEfficiencyWarning", "SparseTracer", "bcoo_broadcast_in_dim", "bcoo_concatenate",
    "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_extract",
    "bcoo_fromdense", "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape",
    "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense",
    "bcoo_transpose", "bcoo_update_layout", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general",
    "bcsr_extract", "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense", "coo_matmat",
    "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense", "empty", "eye", "grad",
    "jacfwd", "jacobian", "jacrev", "linalg", "random_bcoo", "sparsify", "todense", "value_and_grad",
]  # fmt: skip
__dir__ = __all__.copy
