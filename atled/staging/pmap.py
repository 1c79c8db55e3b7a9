"""`pmap`: runs one example on each device, by `shard_map` over a mesh with one axis; its arguments are `vmap`'s."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.sharding import Mesh, NamedSharding, PartitionSpec
from atled.core.trace import Tracer, state
from atled.engine import array as engine
from atled.engine import client
from atled.engine.array import DeviceArray
from atled.engine.global_arrays import make_array_from_process_local_data
from atled.higher_order.shard_map import run
from atled.ops import shape
from atled.staging.jit import jit
from atled.transforms.vmap import _batch_size, _flat_axes, vmap


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Turn a function of one example into a function of a batch that runs one example on each device.

    The arguments are those of `vmap`. With `axis_name`, collectives such as `lax.psum` work over the devices. Arguments
    in `static_broadcasted_argnums` are Python values that all devices get. With several processes, each process passes
    the examples of its own devices. Inside another `pmap` or `shard_map`, `pmap` is a `vmap` on the device.

    >>> import atled.numpy as jnp
    >>> pmap(lambda x: x * 2)(jnp.ones((1, 3)))
    Array([[2., 2., 2.]], dtype=float32)
    """
    static = static_broadcasted_argnums
    static = (static,) if isinstance(static, int) else tuple(static)
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    name = axis_name if axis_name is not None else "<pmap>"

    axes_of = functools.partial(_mapped_axes, in_axes, static)
    whole = _over_devices(fun, name, axes_of, out_axes, static, lambda size: _mesh(name, devices, backend, size))
    compiled = jit(whole, static_argnums=static, donate_argnums=donated)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        try:
            if any([a.interpreter is None for a in state.axes.values()]):
                return _as_vmap(fun, in_axes, out_axes, axis_name, axis_size, static, args, kwargs)
            dynamic, fixed = _without(args, static)
            leaves, structure = tree.flatten((dynamic, kwargs))
            axes = axes_of(dynamic) + [0] * len(tree.leaves(kwargs))
            for x in leaves:
                type_of(x)  # raises if it is not an array
            size = _batch_size(leaves, axes, axis_size, structure)
            mesh = _mesh(name, devices, backend, size)
            placed = [_placed(x, a, mesh, name) for x, a in zip(leaves, axes, strict=True)]
            some, by_name = structure.unflatten(placed)
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904
        return compiled(*_with(some, fixed), **by_name)

    mapped.__name__ = str(getattr(fun, "__name__", "pmap"))
    mapped.__doc__ = getattr(fun, "__doc__", None)
    mapped.__wrapped__ = fun  # type: ignore[attr-defined]
    mapped.lower = compiled.lower  # type: ignore[attr-defined]
    return mapped


def _mapped_axes(in_axes: Any, static: tuple[int, ...], args: Any) -> list[Any]:
    """The mapped axis, or None, of each leaf of the dynamic arguments."""
    if static and isinstance(in_axes, (tuple, list)) and len(in_axes) == len(args) + len(static):
        in_axes = tuple([a for i, a in enumerate(in_axes) if i not in static])
    return _flat_axes("in_axes", in_axes, args)


def _over_devices(
    fun: Callable[..., Any], name: Any, axes_of: Any, out_axes: Any, static: tuple[int, ...], mesh_of: Any
) -> Callable[..., Any]:
    """The function of a whole batch, by `shard_map` with one example per shard."""

    def whole(*args: Any, **kwargs: Any) -> Any:
        dynamic, fixed = _without(args, static)
        leaves, structure = tree.flatten((dynamic, kwargs))
        axes = axes_of(dynamic) + [0] * len(tree.leaves(kwargs))
        mesh = mesh_of(_batch_size(leaves, axes, None, structure))
        specs = tuple([_spec(name, a, type_of(x).ndim) for x, a in zip(leaves, axes, strict=True)])

        def part(*parts: Any) -> Any:
            one = [x if a is None else _squeezed(x, a) for x, a in zip(parts, axes, strict=True)]
            some, by_name = structure.unflatten(one)
            out = fun(*_with(some, fixed), **by_name)
            flat, out_structure = tree.flatten(out)
            targets = _flat_axes("out_axes", out_axes, out)
            return out_structure.unflatten(
                [x if a is None else _expanded(x, a) for x, a in zip(flat, targets, strict=True)]
            )

        part.__name__ = str(getattr(fun, "__name__", "pmap"))

        def outs(result: Any, types: Sequence[Any]) -> tuple[PartitionSpec, ...]:
            targets = _flat_axes("out_axes", out_axes, result)
            return tuple([_spec(name, a, t.ndim) for a, t in zip(targets, types, strict=True)])

        return run(part, mesh, specs, outs, None, False, tuple(leaves))

    whole.__name__ = str(getattr(fun, "__name__", "pmap"))
    return whole


def _spec(name: Any, axis: int | None, ndim: int) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*([None] * (axis % ndim)), name)


def _without(args: Sequence[Any], static: Sequence[int]) -> tuple[tuple[Any, ...], dict[int, Any]]:
    """Split arguments into a tuple of the dynamic ones and a dict from position to static argument."""
    places = {n % len(args) for n in static} if args else set()
    return tuple([x for i, x in enumerate(args) if i not in places]), {i: args[i] for i in places}


def _with(dynamic: Sequence[Any], fixed: dict[int, Any]) -> list[Any]:
    rest = iter(dynamic)
    return [fixed[i] if i in fixed else next(rest) for i in range(len(dynamic) + len(fixed))]


def _mesh(name: Any, devices: Sequence[Any] | None, backend: str | None, size: int) -> Mesh:
    candidates = list(devices) if devices is not None else client.devices(backend)
    here = [d for d in candidates if d.process_index == d.client.process_index()]
    if len(here) < len(candidates) and len(here) == size:
        return Mesh(candidates, (name,))  # each process passes the examples of its own devices
    if size > len(candidates):
        raise ValueError(
            f"pmap: each example needs a device; got {size} examples, but there are {len(candidates)} devices."
            "\n  try: vmap inside pmap for several examples per device, on a batch of shape (devices, examples, ...)."
        )
    return Mesh(candidates[:size], (name,))


def _placed(x: Any, axis: int | None, mesh: Mesh, name: Any) -> Any:
    """An argument, split over the devices of the mesh along its mapped axis."""
    if isinstance(x, Tracer):
        return x
    t = type_of(x)
    sharding = NamedSharding(mesh, _spec(name, axis, t.ndim))
    is_local = not isinstance(x, DeviceArray) or x.is_fully_addressable
    if axis is not None and is_local and not sharding.is_fully_addressable:
        return make_array_from_process_local_data(sharding, x)
    return engine.device_put(x, sharding) if isinstance(x, DeviceArray) else engine.to_device(x, t, sharding)


def _squeezed(x: Any, axis: int) -> Any:
    dims = list(type_of(x).shape)
    del dims[axis]
    return shape.reshape(x, dims)


def _expanded(x: Any, axis: int) -> Any:
    dims = list(type_of(x).shape)
    dims.insert(axis % (len(dims) + 1), 1)
    return shape.reshape(x, dims)


def _as_vmap(
    f: Any, in_axes: Any, out_axes: Any, axis_name: Any, axis_size: Any, static: Sequence[int], args: Any, kwargs: Any
) -> Any:
    dynamic, fixed = _without(args, static)
    if static and isinstance(in_axes, (tuple, list)) and len(in_axes) == len(args):
        in_axes = tuple([a for i, a in enumerate(in_axes) if i not in fixed])
    g = lambda *xs, **more: f(*_with(xs, fixed), **more)  # noqa: E731
    return vmap(g, in_axes, out_axes, axis_name, axis_size)(*dynamic, **kwargs)
