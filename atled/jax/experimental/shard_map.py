"""`shard_map` with its older signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled.higher_order import shard_map as _now

__all__ = ["shard_map"]
__dir__ = __all__.copy


def shard_map(
    f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any, check_rep: bool = True, auto: Any = frozenset()
) -> Callable[..., Any]:
    """`atled.shard_map` with `auto`, the mesh axes left to the compiler, in place of `axis_names`.

    >>> import atled, atled.numpy as jnp
    >>> from atled.sharding import P
    >>> mesh = atled.make_mesh((1,), ("x",), devices=atled.devices()[:1])
    >>> shard_map(lambda v: v * 2, mesh, P("x"), P("x"))(jnp.arange(2))
    Array([0, 2], dtype=int32)
    """
    names = [a for a in mesh.axis_names if a not in auto] if auto else None
    return _now.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep)
