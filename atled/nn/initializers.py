"""Weight initializers, with the same numbers as JAX's for the same key, up to rounding.

An initializer is a function of a key, a shape and a dtype; most functions in this module return an initializer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

import atled.numpy as jnp
from atled import random
from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike
from atled.core.sharding import NamedSharding, PartitionSpec
from atled.ops.placement import placed

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip
__dir__ = __all__.copy


@runtime_checkable
class Initializer(Protocol):
    """A function that makes the initial value of a weight from a key, a shape and a dtype.

    >>> from atled import random
    >>> make: Initializer = zeros
    >>> make(random.key(0), (2,), jnp.float32)
    Array([0., 0.], dtype=float32)
    """

    def __call__(self, key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
        """The initial value."""
        raise NotImplementedError


def _initializer(draw: Callable[[Any, tuple[int, ...], Any], Any], default: Any) -> Initializer:
    """An initializer from a function of a key, a shape and a dtype, with a default dtype."""

    def init(key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: Any = None) -> Any:
        canonical_dtype = dtypes.canonical(float if dtype is None else dtype)
        return placed(draw(key, tuple([int(n) for n in shape]), canonical_dtype), out_sharding, "initializers")

    return init


def zeros(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An initializer that fills arrays with zeros and ignores the key.

    >>> from atled import random
    >>> zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


def ones(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An initializer that fills arrays with ones and ignores the key.

    >>> from atled import random
    >>> ones(random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.ones(shape, dtype, out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that fills arrays with one value.

    >>> from atled import random
    >>> constant(-7)(random.key(0), (3,))
    Array([-7., -7., -7.], dtype=float32)
    """
    return _initializer(lambda key, shape, found: jnp.full(shape, value, found), dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with uniform numbers from [0, scale).

    >>> from atled import random
    >>> float(uniform(0.5)(random.key(0), (100,)).max()) < 0.5
    True
    """
    return _initializer(lambda key, shape, d: random.uniform(key, shape, d) * jnp.asarray(scale, d), dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with real or complex normal numbers of mean 0 and standard deviation `stddev`.

    >>> from atled import random
    >>> abs(float(normal(0.5)(random.key(0), (100, 100)).std()) - 0.5) < 0.02
    True
    """
    return _initializer(lambda key, shape, d: random.normal(key, shape, d) * jnp.asarray(stddev, d), dtype)


def truncated_normal(
    stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Initializer:
    """An initializer with normal numbers truncated to [lower, upper], then multiplied by `stddev`.

    `stddev` is the standard deviation before truncation; that of the result is smaller.

    >>> from atled import random
    >>> float(abs(truncated_normal(0.5)(random.key(0), (100, 100))).max()) <= 1.0
    True
    """
    draw = lambda key, shape, d: random.truncated_normal(key, lower, upper, shape, d) * jnp.asarray(stddev, d)  # noqa: E731
    return _initializer(draw, dtype)


# -- scaled by the shape ----------------------------------------------------------------------------------------------


def _fans(shape: tuple[int, ...], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """The fan-in and fan-out of a shape; other axes are spatial axes of a kernel."""
    if len(shape) < 2 and isinstance(in_axis, int) and in_axis == -2:
        raise ValueError(
            f"variance_scaling: the shape needs two axes, or in_axis must name the input axis; got shape {shape}."
        )
    size = lambda axes: math.prod([shape[a] for a in ((axes,) if isinstance(axes, int) else axes)])  # noqa: E731
    inputs, outputs, batch = size(in_axis), size(out_axis), size(batch_axis)
    places = math.prod(shape) / (inputs * outputs * batch) if inputs and outputs and batch else 0
    return inputs * places, outputs * places


_MODES = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: math.sqrt(inputs * outputs),
}
# The standard deviation of a normal distribution truncated to [-2, 2]
_KEPT = math.sqrt(1 - 4 * math.exp(-2) / (math.sqrt(2 * math.pi) * math.erf(math.sqrt(2))))
# JAX divides complex numbers truncated at absolute value 2 by this factor. Their standard deviation is 1 % larger,
# sqrt(1 - 4 exp(-4) / (1 - exp(-4))), but the numbers must be the same as JAX's.
_KEPT_COMPLEX = math.sqrt(1 - 5 * math.exp(-4))


def _disk(key: Any, shape: tuple[int, ...], dtype: Any, radius: Callable[[Any], Any]) -> Any:
    """Complex numbers with uniform phases, and `radius` of uniform numbers as absolute values."""
    sizes, angles = random.split(key)
    part = dtypes.real_part(dtype)
    turn = random.uniform(angles, shape, part) * np.asarray(2 * math.pi, part)
    return (radius(random.uniform(sizes, shape, part)) * jnp.exp(1j * turn)).astype(dtype)


def _unit_variance(distribution: str, key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Random numbers of mean 0 and variance 1."""
    is_complex = dtypes.kind(dtype) == "c"
    if distribution == "normal":
        return random.normal(key, shape, dtype)
    if distribution == "uniform" and is_complex:
        return _disk(key, shape, dtype, lambda u: jnp.sqrt(2 * u))
    if distribution == "uniform":
        return random.uniform(key, shape, dtype, -1) * jnp.asarray(math.sqrt(3), dtype)
    if is_complex:
        inner_mass = -math.expm1(-4)
        return _disk(key, shape, dtype, lambda u: jnp.sqrt(-jnp.log1p(-inner_mass * u))) / _KEPT_COMPLEX
    return random.truncated_normal(key, -2, 2, shape, dtype) / jnp.asarray(_KEPT, dtype)


def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """An initializer with mean 0 and variance scale / n, where n is the fan of a layer.

    `mode` selects n: "fan_in" is the number of inputs per output, "fan_out" of outputs per input, "fan_avg" their mean,
    "fan_geo_avg" their geometric mean. `distribution` is "truncated_normal" (at two standard deviations), "normal" or
    "uniform". Axes that are neither `in_axis` nor `out_axis` nor `batch_axis` are spatial axes of a kernel, which
    multiply both fans.

    >>> from atled import random
    >>> make = variance_scaling(1.0, "fan_in", "normal")
    >>> abs(float(make(random.key(0), (400, 100)).std()) - 0.05) < 0.002
    True
    """

    def draw(key: Any, shape: tuple[int, ...], found: Any) -> Any:
        if mode not in _MODES:
            raise ValueError(f"variance_scaling: mode must be one of {', '.join(_MODES)}; got {mode!r}.")
        if distribution not in ("truncated_normal", "normal", "uniform"):
            raise ValueError(
                f"variance_scaling: distribution must be truncated_normal, normal or uniform; got {distribution!r}."
            )
        count = _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        if count == 0:
            return jnp.zeros(shape, found)
        return _unit_variance(distribution, key, shape, found) * jnp.sqrt(jnp.asarray(scale / count, found))

    return _initializer(draw, dtype)


def _scaled(name: str, scale: float, mode: str, distribution: str, who: str):
    def make(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""The initializer of {who}: `variance_scaling({scale}, "{mode}", "{distribution}")`."""
    return make


glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot and Bengio (2010)")
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal", "Glorot and Bengio (2010)")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun et al. (1998)")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun et al. (1998)")
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", "He et al. (2015)")
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", "He et al. (2015)")


# -- orthogonal -------------------------------------------------------------------------------------------------------


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with orthogonal matrices: all axes but `column_axis` are flattened into rows.

    >>> from atled import random
    >>> w = orthogonal()(random.key(0), (4, 2))
    >>> bool(abs(w.T @ w - jnp.eye(2)).max() < 1e-6)
    True
    """

    def draw(key: Any, shape: tuple[int, ...], found: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(f"orthogonal: the shape must have two axes or more; got {shape}.")
        if 0 in shape:
            return jnp.zeros(shape, found)
        columns = shape[column_axis]
        rest = list(shape)
        del rest[column_axis]
        q = random.orthogonal(key, math.prod(rest), (), found, columns).reshape(*rest, columns)
        return jnp.asarray(scale, found) * jnp.moveaxis(q, -1, column_axis)

    return _initializer(draw, dtype)


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer for convolution kernels: an orthogonal matrix at the center, and zero elsewhere.

    The shape has one to three spatial axes, then inputs and outputs (Xiao et al., 2018, "Dynamical isometry").

    >>> from atled import random
    >>> kernel = delta_orthogonal()(random.key(0), (3, 2, 2))
    >>> float(abs(kernel[0]).max()), (kernel[1].T @ kernel[1]).round().trace()
    (0.0, Array(2., dtype=float32))
    """

    def draw(key: Any, shape: tuple[int, ...], found: Any) -> Any:
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal: the shape must have three to five axes; got {shape}.")
        if shape[-1] < shape[-2]:
            raise ValueError(f"delta_orthogonal: there must be no fewer outputs than inputs; got shape {shape}.")
        middle = tuple([(n - 1) // 2 for n in shape[:-2]])
        return jnp.zeros(shape, found).at[middle].set(orthogonal(scale, column_axis)(key, shape[-2:], found))

    return _initializer(draw, dtype)
