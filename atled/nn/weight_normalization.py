"""Layers whose weight is computed from other parameters: `WeightNorm`, `SpectralNorm`.

These layers wrap any module. The wrapped module has None in place of its own weight, so each array has one owner; a
call puts the computed weight into a copy of the module.
"""

from __future__ import annotations

import operator
from typing import Any

import atled.numpy as jnp
from atled import lax, random
from atled.core import errors, tree
from atled.core.array import Array, type_of
from atled.core.former_names import formerly
from atled.nn.module import Module, settled
from atled.nn.normalization import wide
from atled.nn.variable_kinds import Buffer, Frozen, Param
from atled.transforms.grad import stop_gradient


class Reparametrized(Module):
    """A layer whose weight is the result of `computed`."""

    def _take(self, layer: Any, name: str, axis: int) -> tuple[Any, type]:
        """Store a copy of a layer without the named array; returns the array and its kind."""
        own = type(self).__name__
        if not isinstance(layer, Module):
            raise TypeError(
                errors.explained(
                    f"{own}: the first argument must be a layer; got a {type(layer).__name__}.", "nn.Linear(…)."
                )
            )
        self.layer, self.name = layer.__copy__(), name
        owner, last = _owner(self.layer, name)
        kind = None if owner is None else settled(owner).kinds.get(last)
        if kind is None or not issubclass(kind, (Param, Frozen)) or not isinstance(getattr(owner, last), Array):
            param_names = [n for n, k in settled(layer).kinds.items() if issubclass(k, (Param, Frozen))]
            raise ValueError(
                errors.explained(
                    f"{own}: the layer must have a Param called {name!r}; got a {type(layer).__name__} with "
                    f"{', '.join(param_names) or 'none'}.",
                    "name='…', or a path to a layer inside: name='query_proj/weight'.",
                )
            )
        weight, axis = getattr(owner, last), _axis(own, axis)
        n = type_of(weight).ndim
        if not -n <= axis < n or n < 2:
            raise ValueError(
                errors.explained(
                    f"{own}: {name} must have two axes or more, and axis {axis} must be one of them; got "
                    f"{type_of(weight)}."
                )
            )
        self.axis = axis if axis < 0 else axis - n  # counted from the end, so that it is valid in a Stack
        setattr(owner, last, None)
        return weight, kind

    def computed(self) -> Any:
        """The weight that the layer is called with."""
        raise NotImplementedError

    def merged(self) -> Any:
        """The wrapped layer with its current weight, without the wrapper.

        >>> from atled import nn, random
        >>> layer = nn.Linear(2, 3, key=random.key(0))
        >>> nn.WeightNorm(layer).merged()
        Linear(weight=Param f32[2,3], bias=Param f32[3], in_features=2, out_features=3)
        """
        layer = self.layer.__copy__()
        owner, last = _owner(layer, self.name)
        setattr(owner, last, self.computed())
        return layer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the wrapped layer."""
        layer = self.merged()
        out = layer(*args, **kwargs)
        owner, last = _owner(layer, self.name)
        setattr(owner, last, None)
        pairs = zip(tree.leaves(self.layer), tree.leaves(layer), strict=True)
        if any([a is not b for a, b in pairs]):  # the call assigned statistics
            self.layer = layer
        return out


def _axis(name: str, axis: Any) -> int:
    """An axis as a Python integer."""
    try:
        return operator.index(axis)
    except TypeError:
        raise TypeError(errors.explained(f"{name}: axis must be an integer; got {axis!r}.", "axis=-1.")) from None


def _owner(layer: Any, name: str) -> tuple[Any, str]:
    """The module that owns the array at a path, or None if there is no such module, and the path's last component."""
    *steps, last = name.split("/")
    for step in steps:
        layer = layer.__dict__.get(step) if isinstance(layer, Module) else None
    return (layer if isinstance(layer, Module) else None), last


class WeightNorm(Reparametrized):
    """Weight normalization: the weight's norm and direction are separate parameters: `weight = scale * direction /
    norm(direction)`.

    Norms are over all axes but one: with `axis=-1`, each output feature of `Linear` and `Conv` has its own norm.
    `scale` and `direction` are parameters, in place of the layer's own weight; initially, the weight is unchanged. A
    direction of zeros has norm 0, and gives NaN. Corresponds to PyTorch's `parametrizations.weight_norm`.

    Args:
        layer: the module to wrap, which is not changed.
        name: the name of its parameter, or the path of one in a module inside, such as "cell/state_weight".

    >>> from atled import nn, random
    >>> nn.WeightNorm(nn.Linear(2, 3, key=random.key(0)))
    WeightNorm(
      layer=Linear(weight=None, bias=Param f32[3], in_features=2, out_features=3),
      scale=Param f32[1,3],
      direction=Param f32[2,3],
      name='weight',
      axis=-1,
    )
    """

    def __init__(self, layer: Any, name: str = "weight", axis: int = -1) -> None:
        weight, kind = self._take(layer, name, axis)
        self.scale = kind(self._norm(weight).astype(weight.dtype))
        self.direction = kind(weight)

    def _norm(self, x: Any) -> Any:
        x = wide(x)
        axes = tuple([i for i in range(type_of(x).ndim) if i != type_of(x).ndim + self.axis])
        return jnp.sqrt((x * x).sum(axes, keepdims=True))

    def computed(self) -> Any:
        """The weight that the layer is called with."""
        y = wide(self.direction) * (wide(self.scale) / self._norm(self.direction))
        return y.astype(self.direction.dtype)


@formerly(iterations="power_iterations")
class SpectralNorm(Reparametrized):
    """Spectral normalization: the weight is divided by its largest singular value.

    The weight is treated as a matrix, with one axis for its columns and all others for its rows. While training, each
    call moves the vectors `u` and `v` by power iteration towards the singular vectors of the largest singular value,
    `v @ weight @ u`; gradients treat both as constants. `u` and `v` are assigned, so transformed functions must return
    the module. Corresponds to PyTorch's `parametrizations.spectral_norm`.

    Args:
        layer: the module to wrap, which is not changed.
        name: the name of its parameter, or the path of one in a module inside, such as "cell/state_weight".
        power_iterations: the number of power iterations in each call while training.
        eps: the smallest norm that vectors are divided by.
        axis: the column axis; PyTorch uses the output axis, which is -2 for `ConvTranspose`.
        key: a random key for the initial vectors, to which fifteen power iterations are applied.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> layer = nn.SpectralNorm(nn.Linear(4, 3, key=random.key(0)), power_iterations=20)
    >>> _ = layer(jnp.ones(4))
    >>> jnp.linalg.norm(layer.merged().weight, 2).round(3)
    Array(1., dtype=float32)
    """

    def __init__(
        self,
        layer: Any,
        name: str = "weight",
        power_iterations: int = 1,
        eps: float = 1e-12,
        *,
        axis: int = -1,
        key: Any = None,
    ) -> None:
        if power_iterations < 1:
            raise ValueError(
                errors.explained(f"SpectralNorm: power_iterations must be 1 or more; got {power_iterations}.")
            )
        weight, kind = self._take(layer, name, axis)
        self.power_iterations, self.eps = int(power_iterations), float(eps)
        self.weight = kind(weight)
        matrix, (first, second) = self._matrix(), random.split(random.key(0) if key is None else key)
        dims = type_of(matrix).shape
        u, v = random.normal(first, dims[-1:], "float32"), random.normal(second, dims[:-1], "float32")
        u, v = self._iterated(matrix, self._unit(u, u), self._unit(v, v), 15)
        self.u, self.v = Buffer(u.astype("float32")), Buffer(v.astype("float32"))

    def _matrix(self) -> Any:
        """The weight with the column axis last, for products; the row axes are not flattened."""
        return stop_gradient(jnp.moveaxis(wide(self.weight), self.axis, -1))

    def _unit(self, x: Any, old: Any) -> Any:
        """x scaled to length 1; `old` if x is zero, as for a weight of zeros."""
        length = jnp.sqrt((x * x).sum())
        return jnp.where(length == 0, old, x / jnp.maximum(length, self.eps))

    def _iterated(self, matrix: Any, u: Any, v: Any, count: int) -> tuple[Any, Any]:
        def step(_: Any, state: Any) -> Any:
            u, v = state
            u = self._unit(jnp.tensordot(v, matrix, type_of(v).ndim), u)
            return u, self._unit(jnp.tensordot(matrix, u, 1), v)

        u, v = u.astype(matrix.dtype), v.astype(matrix.dtype)
        return step(0, (u, v)) if count == 1 else lax.fori_loop(0, count, step, (u, v))

    def computed(self) -> Any:
        """The weight that the layer is called with."""
        weight = wide(self.weight)
        columns = jnp.moveaxis(weight, self.axis, -1)
        u, v = self.u.astype(weight.dtype), self.v.astype(weight.dtype)
        largest = (jnp.tensordot(v, columns, type_of(v).ndim) * u).sum()
        return (weight / jnp.where(largest == 0, 1, largest)).astype(self.weight.dtype)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the wrapped layer."""
        if self.training:
            u, v = self._iterated(self._matrix(), self.u, self.v, self.power_iterations)
            self.u, self.v = u.astype(self.u.dtype), v.astype(self.v.dtype)
        return super().__call__(*args, **kwargs)
