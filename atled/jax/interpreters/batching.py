"""Batching rules of user-defined primitives, with the API of `jax.interpreters.batching`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled import numpy as _numpy
from atled.core.array import type_of
from atled.jax.extend.primitive import batchers as fancy_primitive_batchers

__all__ = [
    "axis_primitive_batchers", "bdim_at_front", "broadcast", "defbroadcasting", "defreducer", "defvectorized",
    "fancy_primitive_batchers", "not_mapped", "primitive_batchers",
]  # fmt: skip
__dir__ = __all__.copy

not_mapped = None


class _Table:
    """A table of batching rules by primitive; `fitted` converts rules to the form of `fancy_primitive_batchers`."""

    def __init__(self, fitted: Callable[[Callable[..., Any]], Callable[..., Any]], words: str) -> None:
        self.fitted, self.__doc__ = fitted, words

    def __setitem__(self, primitive: Any, rule: Callable[..., Any]) -> None:
        fancy_primitive_batchers[primitive] = self.fitted(rule)

    def __delitem__(self, primitive: Any) -> None:
        del fancy_primitive_batchers[primitive]

    def __contains__(self, primitive: Any) -> bool:
        return primitive in fancy_primitive_batchers


primitive_batchers = _Table(
    lambda rule: lambda axis, args, dims, /, **params: rule(args, dims, **params),
    "Batching rules by primitive: `rule(values, axes, **params)` returns the result and its batch axis or None.",
)
axis_primitive_batchers = _Table(
    lambda rule: lambda axis, args, dims, /, **params: rule(axis.size, axis.name, None, args, dims, **params),
    "Batching rules by primitive: `rule(size, name, kind, values, axes, **params)`; `kind` is None.",
)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """A value repeated along a new axis. Types do not name mesh axes, so `mesh_axis` has no effect.

    >>> import atled.numpy as jnp
    >>> broadcast(jnp.array([1, 2]), 3, 0).shape
    (3, 2)
    """
    return _numpy.repeat(_numpy.expand_dims(x, axis), sz, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """A value with its batch axis moved to the front; without a batch axis, repeated `size` times.

    >>> import atled.numpy as jnp
    >>> bdim_at_front(jnp.ones((2, 3)), 1, 3).shape
    (3, 2)
    """
    return broadcast(x, size, 0, mesh_axis) if bdim is None else _numpy.moveaxis(x, bdim, 0)


def defvectorized(prim: Any) -> None:
    """Declare that a primitive also accepts operands with an additional batch axis, the same for all operands.

    >>> import atled, atled.numpy as jnp
    >>> from atled.jax.extend.core import Primitive
    >>> sine = Primitive("sine")
    >>> _ = sine.def_impl(jnp.sin)
    >>> defvectorized(sine)
    >>> atled.vmap(sine.bind)(jnp.zeros(3))
    Array([0., 0., 0.], dtype=float32)
    """

    def rule(args: Any, dims: Any, /, **params: Any) -> tuple[Any, Any]:
        if len({d for d in dims if d is not None}) > 1 or any(d is None for d in dims):
            raise NotImplementedError(f"{prim}: a vectorized rule needs all operands batched along the same axis.")
        return prim.bind(*args, **params), dims[0]

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Any) -> None:
    """Declare a primitive elementwise: its batching rule broadcasts the operands to a common shape.

    >>> import atled, atled.numpy as jnp
    >>> from atled.jax.extend.core import Primitive
    >>> plus = Primitive("plus")
    >>> _ = plus.def_impl(jnp.add)
    >>> defbroadcasting(plus)
    >>> atled.vmap(plus.bind, in_axes=(0, None))(jnp.arange(3), 10)
    Array([10, 11, 12], dtype=int32)
    """

    def rule(axis: Any, args: Any, dims: Any, /, **params: Any) -> tuple[Any, Any]:
        rank = max(type_of(x).ndim - (d is not None) for x, d in zip(args, dims, strict=True))
        fitted = []
        for x, d in zip(args, dims, strict=True):
            if d is not None:
                x = _numpy.moveaxis(x, d, 0)
                missing = rank - (type_of(x).ndim - 1)
                x = _numpy.reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))
            fitted.append(x if d is not None else broadcast(x, axis.size, 0))
        return prim.bind(*fitted, **params), 0

    fancy_primitive_batchers[prim] = rule


def defreducer(prim: Any) -> None:
    """Declare that a primitive of one operand reduces it along its parameter `axes`.

    >>> import atled, atled.numpy as jnp
    >>> from atled.jax.extend.core import Primitive, ShapedArray
    >>> total = Primitive("total")
    >>> _ = total.def_impl(lambda x, axes: jnp.sum(x, axes))
    >>> defreducer(total)
    >>> atled.vmap(lambda x: total.bind(x, axes=(0,)))(jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """

    def rule(args: Any, dims: Any, *, axes: Any, **params: Any) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        moved = tuple([a if a < d else a + 1 for a in axes])
        if "input_shape" in params:
            params = {**params, "input_shape": type_of(x).shape}
        return prim.bind(x, axes=moved, **params), d - len([a for a in moved if a < d])

    primitive_batchers[prim] = rule
