"""`JAXSparse`, the base class of sparse arrays, and warnings and errors about inefficient operations.

A sparse array is a pytree: its leaves are data and indices, its shape is static. Functions of `atled.numpy` do not
accept sparse arrays; `sparsify(f)` does.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from atled.core import errors, tree, tree_registry
from atled.core.array import Array
from atled.core.trace import Tracer
from atled.transforms.vmap import vmap

__all__ = ["CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError", "SparseEfficiencyWarning"]


C_ = TypeVar("C_", bound=type)


class SparseEfficiencyError(ValueError):
    """The operation would store far more values than the array contains.

    >>> import atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.eye(3))
    >>> try:
    ...     sparse.bcoo_update_layout(x, n_batch=1)
    ... except sparse.SparseEfficiencyError as error:
    ...     print(str(error).splitlines()[0])
    bcoo_update_layout: n_batch from 0 to 1 stores many zeros for an array of the shape (3, 3).
    """


class SparseEfficiencyWarning(UserWarning):
    """The operation stores far more values than the array contains.

    >>> import warnings, atled.numpy as jnp
    >>> from atled.jax.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.eye(3))
    >>> with warnings.catch_warnings(record=True, action="always") as found:
    ...     _ = sparse.bcoo_update_layout(x, n_batch=1, on_inefficient="warn")
    >>> found[0].category.__name__
    'SparseEfficiencyWarning'
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """JAX's warning for products that cuSPARSE cannot run because indices are unsorted. atled never issues it.

    >>> from atled.jax.experimental import sparse
    >>> issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
    True
    """


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and whether its entries are sorted and unique."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class JAXSparse(abc.ABC):
    """The base class of sparse arrays: a shape, a dtype and stored entries.

    >>> from atled.jax.experimental import sparse
    >>> x = sparse.eye(3)
    >>> isinstance(x, JAXSparse), x.shape, x.size, x.nse
    (True, (3, 3), 9, 3)
    """

    data: Any
    shape: tuple[int, ...]
    nse: Any = property(abc.abstractmethod(lambda self: 0), doc="The number of stored entries.")
    dtype: Any = property(abc.abstractmethod(lambda self: None), doc="The dtype of the data.")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # makes NumPy's operators defer to ours

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        self.shape = tuple([int(n) for n in shape])

    @property
    def size(self) -> int:
        """The number of elements of the dense array."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(errors.explained(f"len: the array must have an axis; got {self!r}."))
        return self.shape[0]

    def __repr__(self) -> str:
        try:
            extra = "".join([f", {n}={v}" for n in ("n_batch", "n_dense") if (v := getattr(self, n, 0))])
            text = f"{type(self).__name__}({self.dtype.name}{list(self.shape)}, nse={self.nse}{extra})"
        except Exception:
            return f"{type(self).__name__}(<invalid>)"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def block_until_ready(self) -> Any:
        """Wait until the data is computed."""
        for x in tree.leaves(self):
            x.block_until_ready()
        return self

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[Sequence[Any], dict[str, Any]]:
        """The leaves and the static data, for the pytree registry."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Any:
        """The array from the results of `tree_flatten`."""

    @abc.abstractmethod
    def todense(self) -> Array:
        """The same array in dense form."""

    @abc.abstractmethod
    def transpose(self, axes: Any = None) -> Any:
        """The array with its axes in another order."""

    def _missing(self, name: str) -> NoReturn:
        says = f"{type(self).__name__}.{name}: this format does not support the operation."
        raise NotImplementedError(errors.explained(says, "a BCOO array, which supports it, or x.todense()."))

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The sum along axes."""
        return self._missing("sum")

    def __neg__(self) -> Any:
        return self._missing("__neg__")

    def __pos__(self) -> Any:
        return self._missing("__pos__")

    def __matmul__(self, other: Any) -> Any:
        return self._missing("__matmul__")

    def __rmatmul__(self, other: Any) -> Any:
        return self._missing("__rmatmul__")

    def __mul__(self, other: Any) -> Any:
        return self._missing("__mul__")

    def __rmul__(self, other: Any) -> Any:
        return self._missing("__rmul__")

    def __add__(self, other: Any) -> Any:
        return self._missing("__add__")

    def __radd__(self, other: Any) -> Any:
        return self._missing("__radd__")

    def __sub__(self, other: Any) -> Any:
        return self._missing("__sub__")

    def __rsub__(self, other: Any) -> Any:
        return self._missing("__rsub__")

    def __getitem__(self, item: Any) -> Any:
        return self._missing("__getitem__")


def register(cls: C_) -> C_:
    """Register a class of sparse arrays as a pytree node, with static data as a tuple that compares by value."""
    node_type: Any = cls
    tree_registry.register_node(
        node_type,
        lambda x: (lambda leaves, meta: (leaves, tuple(meta.items())))(*x.tree_flatten()),
        lambda meta, leaves: node_type.tree_unflatten(dict(meta), leaves),
    )
    return cls


def over_batches(f: Any, count: int) -> Any:
    """`f`, mapped by `vmap` over the first `count` axes of its operands."""
    for _ in range(count):
        f = vmap(f)
    return f


def fitted(shape: tuple[int, ...], batch: tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The shape of an array with `ndim` axes after `vmap` added leading axes to its leaves or removed them.

    The static `shape` of the pytree does not change with its leaves; `batch` are the leaves' current leading axes.
    """
    if batch is None or ndim == len(shape) or ndim < len(batch):
        return shape
    agrees = lambda stored, full: all([s in (1, n) for s, n in zip(stored, full, strict=False)])  # noqa: E731
    for _ in range(ndim - len(shape)):  # find the added axis: without it, the others agree with the shape
        before = batch[: len(batch) - (ndim - len(shape)) + 1]
        axis = next((i for i in range(len(before)) if agrees(before[:i] + before[i + 1 :], shape)), 0)
        shape = (*shape[:axis], before[axis], *shape[axis:])
    for _ in range(len(shape) - ndim):  # find the removed axis
        count = len(batch) + len(shape) - ndim
        axis = next((i for i in range(count) if agrees(batch, shape[:i] + shape[i + 1 :])), 0)
        shape = shape[:axis] + shape[axis + 1 :]
    return shape


def leading(count: int, *xs: Any) -> tuple[int, ...]:
    """The lengths of the first `count` axes, the batch axes, of several arrays; length one broadcasts."""
    return np.broadcast_shapes(*[x.shape[:count] for x in xs])
