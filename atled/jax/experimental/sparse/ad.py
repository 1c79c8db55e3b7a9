"""Derivatives with respect to the data of sparse arrays; indices stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled import numpy as jnp
from atled.core import errors, tree
from atled.jax.experimental.sparse.base import JAXSparse
from atled.jax.experimental.sparse.bcoo import BCOO
from atled.jax.experimental.sparse.transform import is_sparse_array
from atled.transforms import grad as dense

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


class _Numbers:
    """`fun` as a function of the data of its sparse arguments; `rebuilt` makes sparse arrays of results again."""

    def __init__(self, fun: Callable[..., Any], argnums: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.is_one = isinstance(argnums, int)
        chosen = [argnums] if self.is_one else list(argnums)
        for i in chosen:
            if not -len(args) <= i < len(args):
                says = f"grad: argnums must be positions of arguments; got {argnums} for {len(args)} arguments."
                raise ValueError(errors.explained(says))
        self.chosen = [i % len(args) for i in chosen]
        self.fun, self.args, self.kwargs = fun, list(args), kwargs
        self.leaves, self.structure = tree.flatten([args[i] for i in self.chosen], is_leaf=is_sparse_array)
        self.numbers = [x.data if is_sparse_array(x) else x for x in self.leaves]

    def __call__(self, numbers: Sequence[Any]) -> Any:
        args = list(self.args)
        values = self.structure.unflatten([_with(x, v) for x, v in zip(self.leaves, numbers, strict=True)])
        for i, value in zip(self.chosen, values, strict=True):
            args[i] = value
        return self.fun(*args, **self.kwargs)

    def rebuilt(self, leaves: Sequence[Any]) -> Any:
        """The results in the tree structure of the arguments `argnums`."""
        results = self.structure.unflatten(leaves)
        return results[0] if self.is_one else tuple(results)


def _with(x: Any, data: Any) -> Any:
    """The sparse array `x` with other data; `data` itself if `x` is dense."""
    if not is_sparse_array(x):
        return data
    children, meta = x.tree_flatten()
    return type(x).tree_unflatten(meta, (data, *children[1:]))


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like `atled.value_and_grad`; the gradient with respect to a sparse array is sparse, with the same indices.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> value, g = value_and_grad(lambda m: (m @ jnp.ones(2)).sum())(sparse.eye(2))
    >>> float(value), g
    (2.0, BCOO(float32[2, 2], nse=2))
    """

    def found(*args: Any, **options: Any) -> Any:
        f = _Numbers(fun, argnums, args, options)
        value, grads = dense.value_and_grad(f, has_aux=has_aux, **kwargs)(f.numbers)
        return value, f.rebuilt([_with(x, g) for x, g in zip(f.leaves, grads, strict=True)])

    return found


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like `atled.grad`; the gradient with respect to a sparse array is sparse, with the same indices.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> grad(lambda m: (m @ jnp.array([1.0, 5.0])).sum())(sparse.eye(2)).data
    Array([1., 5.], dtype=float32)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    def found(*args: Any, **options: Any) -> Any:
        value, grads = both(*args, **options)
        return (grads, value[1]) if has_aux else grads

    return found


def _jacobian(transform: Callable[..., Any], fun: Any, argnums: Any, has_aux: bool, kwargs: dict[str, Any]) -> Any:
    def found(*args: Any, **options: Any) -> Any:
        f = _Numbers(fun, argnums, args, options)
        form: list[Any] = []

        def values(numbers: Any) -> Any:
            out = f(numbers)
            result = out[0] if has_aux else out
            if any([is_sparse_array(x) for x in tree.leaves(result, is_leaf=is_sparse_array)]):
                says = "jacobian: results must be dense; got a sparse array."
                raise NotImplementedError(errors.explained(says, ".todense() of the result."))
            form.append(tree.structure(result))
            return out

        transformed = transform(values, has_aux=has_aux, **kwargs)(f.numbers)
        columns, aux = transformed if has_aux else (transformed, None)
        flat, count = tree.leaves(columns), len(f.leaves)
        rows = [flat[i : i + count] for i in range(0, len(flat), count)] if count else []
        built = [f.rebuilt([_as_sparse(x, j) for x, j in zip(f.leaves, row, strict=True)]) for row in rows]
        out = form[0].unflatten(built)
        return (out, aux) if has_aux else out

    return found


def _as_sparse(x: Any, derivative: Any) -> Any:
    """The Jacobian for `x`, sparse if `x` is: axes of the result become leading batch axes."""
    if not isinstance(x, JAXSparse):
        return derivative
    lead = derivative.shape[: derivative.ndim - x.data.ndim]
    if not lead:
        return _with(x, derivative)
    if not isinstance(x, BCOO):
        says = f"jacobian: derivatives of arrays by {type(x).__name__} have no sparse form without batch axes."
        raise NotImplementedError(errors.explained(says, "a BCOO array."))
    indices = jnp.broadcast_to(x.indices, (*lead, *x.indices.shape))
    flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return BCOO((derivative, indices), shape=(*lead, *x.shape), **flags)


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like `atled.jacfwd`, for dense results; the Jacobian for a sparse array has the result's axes as batch axes.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> jacfwd(lambda m: m @ jnp.ones(3))(sparse.eye(3))
    BCOO(float32[3, 3, 3], nse=3, n_batch=1)
    """
    return _jacobian(dense.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Like `atled.jacrev`, for dense results; the Jacobian for a sparse array has the result's axes as batch axes.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> jacrev(lambda m: m @ jnp.ones(3))(sparse.eye(3))
    BCOO(float32[3, 3, 3], nse=3, n_batch=1)
    """
    return _jacobian(dense.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev
