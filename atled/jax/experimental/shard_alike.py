"""Arrays that the compiler must give the same sharding, with the API of `jax.experimental.shard_alike`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atled.core import tree
from atled.core.array import type_of
from atled.core.op import LinearOp, instantiate
from atled.core.trace import bind
from atled.core.types import ArrayType, Linear, Zero
from atled.ops import shape

__all__ = ["shard_alike"]
__dir__ = __all__.copy


class ShardAlike(LinearOp):
    """Returns two arrays, to which the compiler gives the same sharding."""

    gives_tuple = True
    takes_keys = True
    linear_in = ((0, 1),)

    def result_type(self, x: ArrayType, y: ArrayType) -> tuple[ArrayType, ArrayType]:
        if x.shape != y.shape:
            raise ValueError(f"shard_alike: both arrays must have the same shape; got {x} and {y}.")
        return x, y

    def lower(self, build: Any, x: Any, y: Any) -> Any:
        build.alike((x, y))
        return x, y

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if any([type(t) is Zero for t in tangents]):
            return bind(self, *primals), tuple(tangents)
        return bind(self, *primals), bind(self, *tangents)

    def transpose(self, cotangent: Any, *operands: Any) -> Any:
        if any([type(c) is Zero for c in cotangent]):
            cotangents = [None if type(c) is Zero else c for c in cotangent]
        else:
            cotangents = bind(self, *[instantiate(c) for c in cotangent])
        return tuple([c if type(x) is Linear else None for c, x in zip(cotangents, operands, strict=True)])

    def batch(self, batched: tuple[bool, ...], x: Any, y: Any) -> Any:
        size = type_of(x if batched[0] else y).shape[0]
        given = [v if b else shape.add_axis(v, size) for v, b in zip((x, y), batched, strict=True)]
        return bind(self, *given)


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Two pytrees of arrays, unchanged; each array gets the same sharding as its counterpart in the other pytree.

    The compiler derives the sharding from the rest of the program.

    >>> import atled.numpy as jnp
    >>> shard_alike(jnp.ones(2), jnp.zeros(2))[1]
    Array([0., 0.], dtype=float32)
    """
    xs, structure = tree.flatten(x)
    ys, other = tree.flatten(y)
    if structure != other:
        raise ValueError(f"shard_alike: both trees must have the same structure; got {structure} and {other}.")
    pairs = [bind(ShardAlike(), a, b) for a, b in zip(xs, ys, strict=True)]
    return structure.unflatten([a for a, _ in pairs]), structure.unflatten([b for _, b in pairs])
