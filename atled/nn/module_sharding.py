"""Sharded models: sharding rules by path, and creation of sharded models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from atled import random
from atled.core import errors, tree
from atled.core.array import ArrayLike, type_of
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec, mesh_or_current
from atled.core.types import ShapeDtypeStruct
from atled.nn.module import Module
from atled.nn.module_filters import checked, depths, matches, paths_of
from atled.nn.stack import Stack
from atled.staging.jit import eval_shape, jit


def shardings(model: Any, rules: Mapping[str, Any], mesh: Mesh | None = None) -> Any:
    """A tree with the structure of a model, or of its shapes, and a sharding for each array.

    `rules` maps patterns of paths to specs; the first pattern that matches applies, and arrays that match none are
    replicated. The layer axis of a `Stack` is not sharded: a spec describes one layer.

    >>> import atled
    >>> from atled import nn, random
    >>> from atled.sharding import PartitionSpec as P
    >>> mesh = atled.make_mesh((1,), ("model",), devices=atled.devices()[:1])
    >>> nn.shardings(nn.Linear(2, 4, key=random.key(0)), {"weight": P(None, "model")}, mesh).weight.spec
    P(None, 'model')
    """
    mesh = mesh_or_current(mesh, "nn.shardings")
    paths = paths_of(model)
    checked("nn.shardings", rules, paths)
    leaves, structure = tree.flatten(model)
    leaf_shardings = []
    for path, x, depth in zip(paths, leaves, depths(structure, Stack), strict=True):
        spec = next((s for pattern, s in rules.items() if matches(pattern, path)), PartitionSpec())
        dims = x.shape if isinstance(x, ShapeDtypeStruct) else type_of(x).shape
        if len(spec) > len(dims) - depth:
            raise ValueError(
                errors.explained(
                    f"nn.shardings: the spec of {path} must have at most one entry for each axis; got {spec} for "
                    f"{dims[depth:]}."
                )
            )
        unknown = [n for d in range(len(spec)) for n in spec.axes(d) if n not in mesh.shape]
        if unknown:
            raise ValueError(
                errors.explained(
                    f"nn.shardings: the spec of {path} must name axes of the mesh, {', '.join(map(str, mesh.shape))}; "
                    f"got {unknown[0]!r}."
                )
            )
        sharding = NamedSharding(mesh, PartitionSpec(*[None] * depth, *spec))
        sharding.check(dims, f"nn.shardings, {path}")
        leaf_shardings.append(sharding)
    return structure.unflatten(leaf_shardings)


def creator(make: Callable[[Any], Module], rules: Mapping[str, Any], mesh: Mesh | None = None) -> Any:
    """A compiled function of a key that creates a model sharded by rules: no device or host ever holds all of it.

    >>> import atled
    >>> from atled import nn, random
    >>> from atled.sharding import PartitionSpec as P
    >>> mesh = atled.make_mesh((1,), ("model",), devices=atled.devices()[:1])
    >>> make = creator(lambda key: nn.Linear(2, 4, key=key), {"weight": P("model")}, mesh)
    >>> make(random.key(0)).weight.sharding.spec
    P('model')
    """
    mesh = mesh_or_current(mesh, "nn.create")
    shapes = eval_shape(make, random.key(0))
    return jit(make, out_shardings=shardings(shapes, rules, mesh))


def create(make: Callable[[Any], Module], key: ArrayLike, *, rules: Mapping[str, Any], mesh: Mesh | None = None) -> Any:
    """The model `make(key)`, created with the shardings given by rules.

    >>> import atled
    >>> from atled import nn, random
    >>> from atled.sharding import PartitionSpec as P
    >>> mesh = atled.make_mesh((1,), ("model",), devices=atled.devices()[:1])
    >>> model = nn.create(lambda key: nn.Linear(2, 4, key=key), random.key(0), rules={"weight": P("model")}, mesh=mesh)
    >>> model.weight.sharding.spec
    P('model')
    """
    return creator(make, rules, mesh)(key)
