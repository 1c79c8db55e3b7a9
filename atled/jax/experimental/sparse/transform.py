"""`sparsify`: makes functions of dense arrays accept sparse arrays.

`sparsify` traces the function with dense types, then runs its program on sparse arrays by the rules of `rules.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from atled import numpy as jnp
from atled.core import tree
from atled.core.array import Array, type_of
from atled.core.program import Literal, record
from atled.core.trace import Tracer, bind
from atled.core.types import ArrayType
from atled.higher_order import remat
from atled.jax.experimental.sparse.base import JAXSparse
from atled.jax.experimental.sparse.bcoo import BCOO
from atled.jax.experimental.sparse.rules import DENSE, run

__all__ = ["SparseTracer", "sparsify", "todense"]

SparseTracer = Tracer  # in a sparsified function, sparse arrays are ordinary tracers
_is_sparsifying: ContextVar[bool] = ContextVar("is_sparsifying", default=False)


@contextlib.contextmanager
def _sparsifying() -> Iterator[None]:
    token = _is_sparsifying.set(True)
    try:
        yield
    finally:
        _is_sparsifying.reset(token)


def _as_bcoo(x: Any) -> Any:
    return x.to_bcoo() if hasattr(x, "to_bcoo") else x


def is_sparse_array(x: Any) -> bool:
    """Whether a value is a sparse array of any format."""
    return isinstance(x, JAXSparse)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A version of `f` that accepts sparse arguments and computes on them without making them dense.

    The ops of `f` must preserve zeros or reduce: products, sums, slices, reshapes and many more. Ops that would need a
    dense array raise `NotImplementedError`. `use_tracer` is accepted for compatibility and has no effect.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> f = sparsify(lambda m, v: 2 * jnp.dot(jnp.log1p(m).T, v) + 1)
    >>> f(sparse.eye(2), jnp.array([0.0, 1.0]))
    Array([1.       , 2.3862944], dtype=float32)
    """
    name = getattr(f, "__name__", "f")

    def sparse_f(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs), is_leaf=is_sparse_array)
        operands = [_as_bcoo(x) if is_sparse_array(x) else x for x in leaves]
        types = [ArrayType(x.shape, x.dtype) if isinstance(x, BCOO) else type_of(x) for x in operands]
        form: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            a, k = structure.unflatten(xs)
            out_leaves, out_tree = tree.flatten(f(*a, **k))
            form.append(out_tree)
            return out_leaves

        with _sparsifying():
            program, captured = record(flat, types, name)
        return form[0].unflatten([_output(x) for x in run(program, [*captured, *operands])])

    sparse_f.__name__ = name
    sparse_f.__doc__ = getattr(f, "__doc__", None)
    sparse_f.__wrapped__ = f  # type: ignore[attr-defined]
    return sparse_f


def _output(x: Any) -> Any:
    return jnp.asarray(x.value, x.type.dtype) if type(x) is Literal else x


def todense(arr: Any) -> Array:
    """Convert to a dense array, also inside a sparsified function; dense arrays are returned unchanged.

    >>> from atled.jax.experimental import sparse
    >>> todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if is_sparse_array(arr):
        return arr.todense()
    if isinstance(arr, Tracer) and _is_sparsifying.get():
        return bind(remat.Name(DENSE), arr)
    return arr
