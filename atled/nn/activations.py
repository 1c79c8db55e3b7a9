"""Activations, the softmax family, and `one_hot`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from atled.core import dtypes
from atled.core.array import Array, ArrayLike, DTypeLike, type_of
from atled.core.axes import check_axes, check_axis
from atled.core.trace import bind
from atled.numpy.creation import asarray
from atled.numpy.elementwise import logaddexp
from atled.numpy.elementwise_family import to_bool
from atled.numpy.promotion import broadcast, broadcast_to, cast, promote_inexact
from atled.numpy.reductions import max as _max
from atled.numpy.reductions import mean as _mean
from atled.numpy.reductions import var as _var
from atled.ops import collectives, conversion, elementary, normalization, reduction, shape, special
from atled.ops import elementwise as ew
from atled.staging.jit import LibraryFunction, library_function

_P = ParamSpec("_P")


def _activation(f: Callable[_P, Array]) -> LibraryFunction[_P, Array]:
    """f as a library function of `atled.nn`, which runs on concrete arrays in one launch."""
    f.__module__ = "atled.nn"
    return library_function(f)


def _zero(x: Any) -> Any:
    return np.zeros((), type_of(x).dtype)


@_activation
def relu(x: ArrayLike) -> Array:
    """max(x, 0); the derivative at 0 is 0.

    >>> import atled.numpy as jnp
    >>> relu(jnp.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return ew.relu(cast(x, dtypes.int32) if type_of(x).kind == "b" else x)


@_activation
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6).

    >>> import atled.numpy as jnp
    >>> relu6(jnp.array([-1.0, 2.0, 8.0]))
    Array([0., 2., 6.], dtype=float32)
    """
    (x,) = promote_inexact("relu6", x)
    return ew.gate(ew.le(x, 0), _zero(x), ew.gate(ew.ge(x, 6), np.asarray(6, type_of(x).dtype), x))


@_activation
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    >>> import atled.numpy as jnp
    >>> sigmoid(jnp.array([-200.0, 0.0, 200.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return elementary.logistic(promote_inexact("sigmoid", x)[0])


@_activation
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)).

    >>> import atled.numpy as jnp
    >>> softplus(jnp.array([-200.0, 200.0]))
    Array([  0., 200.], dtype=float32)
    """
    (x,) = promote_inexact("softplus", x)
    if type_of(x).kind == "c":
        return logaddexp(x, np.zeros((), type_of(x).dtype))
    return special.logaddexp(x, 0, refined=False)  # avoids cancellation near zero


@_activation
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)).

    >>> import atled.numpy as jnp
    >>> log_sigmoid(jnp.array([-200.0, 200.0])) + 0.0
    Array([-200.,    0.], dtype=float32)
    """
    (x,) = promote_inexact("log_sigmoid", x)
    return ew.neg(softplus(ew.neg(x)))


@_activation
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, x above 1, and a parabola between.

    >>> import atled.numpy as jnp
    >>> sparse_plus(jnp.array([-1.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    (x,) = promote_inexact("sparse_plus", x)
    middle = ew.mul(ew.square(ew.add(x, 1)), 0.25)
    return ew.gate(ew.le(x, -1), _zero(x), ew.gate(ew.ge(x, 1), x, middle))


@_activation
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 below -1, 1 above 1, and a line between.

    >>> import atled.numpy as jnp
    >>> sparse_sigmoid(jnp.array([-1.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    (x,) = promote_inexact("sparse_sigmoid", x)
    inside = ew.minimum(ew.maximum(ew.add(x, 1), _zero(x)), np.asarray(2, type_of(x).dtype))
    return ew.mul(inside, 0.5)


@_activation
def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + abs(x)).

    >>> import atled.numpy as jnp
    >>> soft_sign(jnp.array([-1.0, 0.0, 3.0]))
    Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    (x,) = promote_inexact("soft_sign", x)
    return ew.div(x, ew.add(elementary.absolute(x), 1))


@_activation
def silu(x: ArrayLike) -> Array:
    """x * sigmoid(x), also called swish.

    >>> import atled.numpy as jnp
    >>> silu(jnp.array([-200.0, 0.0, 200.0])) + 0.0
    Array([  0.,   0., 200.], dtype=float32)
    """
    (x,) = promote_inexact("silu", x)
    return ew.mul(x, elementary.logistic(x))


swish = silu


@_activation
def mish(x: ArrayLike) -> Array:
    """x * tanh(softplus(x)).

    >>> round(float(mish(1.0)), 3)
    0.865
    """
    (x,) = promote_inexact("mish", x)
    return ew.mul(x, elementary.tanh(softplus(x)))


@library_function
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where it is 0 or more, negative_slope * x below 0.

    >>> import atled.numpy as jnp
    >>> leaky_relu(jnp.array([-4.0, 2.0]), negative_slope=0.25)
    Array([-1.,  2.], dtype=float32)
    """
    x, slope = broadcast("leaky_relu", promote_inexact("leaky_relu", x, negative_slope))
    return ew.gate(ew.ge(x, 0), x, ew.mul(x, slope))


@_activation
def hard_tanh(x: ArrayLike) -> Array:
    """x clipped to [-1, 1]; integers stay integers.

    >>> import atled.numpy as jnp
    >>> hard_tanh(jnp.array([-2.0, 0.5, 2.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    if type_of(x).kind not in "iu":
        (x,) = promote_inexact("hard_tanh", x)
    one = np.ones((), type_of(x).dtype)
    return ew.gate(ew.gt(x, 1), one, ew.gate(ew.lt(x, -1), -one, x))


@_activation
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6.

    >>> import atled.numpy as jnp
    >>> hard_sigmoid(jnp.array([-3.0, 0.0, 3.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    (x,) = promote_inexact("hard_sigmoid", x)
    return ew.div(relu6(ew.add(x, 3)), 6)


@_activation
def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x).

    >>> import atled.numpy as jnp
    >>> hard_silu(jnp.array([-3.0, 0.0, 3.0]))
    Array([-0.,  0.,  3.], dtype=float32)
    """
    (x,) = promote_inexact("hard_silu", x)
    return ew.mul(x, hard_sigmoid(x))


hard_swish = hard_silu


def _exponential_below(x: Any, alpha: Any, scale: Any = None) -> Any:
    """x above zero, alpha * (exp(x / scale) - 1) below; the exponential is never evaluated at a positive number."""
    is_positive = ew.gt(x, 0)
    safe = ew.select(is_positive, _zero(x), x)
    return ew.select(is_positive, x, ew.mul(elementary.expm1(safe if scale is None else ew.div(safe, scale)), alpha))


@library_function
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x above 0, alpha * (exp(x) - 1) below.

    >>> import atled.numpy as jnp
    >>> elu(jnp.array([-200.0, 3.0]))
    Array([-1.,  3.], dtype=float32)
    """
    x, alpha = broadcast("elu", promote_inexact("elu", x, alpha))
    return _exponential_below(x, alpha)


@library_function
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x above 0, alpha * (exp(x / alpha) - 1) below.

    >>> import atled.numpy as jnp
    >>> celu(jnp.array([-200.0, 3.0]), alpha=2.0)
    Array([-2.,  3.], dtype=float32)
    """
    x, alpha = broadcast("celu", promote_inexact("celu", x, alpha))
    return _exponential_below(x, alpha, alpha)


@_activation
def selu(x: ArrayLike) -> Array:
    """A scaled `elu` that preserves mean 0 and variance 1 of normal inputs.

    >>> round(float(selu(1.0)), 3)
    1.051
    """
    (x,) = promote_inexact("selu", x)
    return ew.mul(_exponential_below(x, np.asarray(1.6732632423543772, type_of(x).dtype)), 1.0507009873554805)


@library_function(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the standard normal CDF of x; computed with tanh if approximate.

    >>> import atled.numpy as jnp
    >>> float(gelu(jnp.float32(0.0)))
    0.0
    """
    (x,) = promote_inexact("gelu", x)
    if approximate:
        inner = ew.mul(ew.add(x, ew.mul(ew.integer_pow(x, 3), 0.044715)), math.sqrt(2 / math.pi))
        return ew.mul(x, ew.mul(ew.add(elementary.tanh(inner), 1), 0.5))
    return ew.mul(x, special.ndtr(x))


@library_function(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second.

    >>> import atled.numpy as jnp
    >>> glu(jnp.array([4.0, 6.0, 0.0, 0.0]))
    Array([2., 3.], dtype=float32)
    """
    (x,) = promote_inexact("glu", x)
    at = check_axis("glu", axis, type_of(x).ndim)
    n = type_of(x).shape[at]
    if n % 2:
        raise ValueError(f"glu: axis {axis} must have an even length; got {type_of(x)}.")
    first, second = shape.slice_in_axis(x, 0, n // 2, at), shape.slice_in_axis(x, n // 2, n, at)
    return ew.mul(first, elementary.logistic(second))


@library_function
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2.

    >>> import atled.numpy as jnp
    >>> squareplus(jnp.array([0.0, 3.0]), 16.0)
    Array([2., 4.], dtype=float32)
    """
    x, b = broadcast("squareplus", promote_inexact("squareplus", x, b))
    return ew.mul(ew.add(x, elementary.sqrt(ew.add(ew.mul(x, x), b))), 0.5)


@_activation
def identity(x: Any) -> Array:
    """x.

    >>> import atled.numpy as jnp
    >>> identity(jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return x


@_activation
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for positive x, accurate near 0 and for large x.

    >>> round(float(log1mexp(1.0)), 3)
    -0.459
    """
    (x,) = promote_inexact("log1mexp", x)
    is_near = ew.lt(x, math.log(2))
    one = np.ones((), type_of(x).dtype)
    near = elementary.log(ew.neg(elementary.expm1(ew.neg(ew.select(is_near, x, one)))))
    far = elementary.log1p(ew.neg(elementary.exp(ew.neg(ew.select(is_near, one, x)))))
    return ew.select(is_near, near, far)


# -- the softmax family -----------------------------------------------------------------------------------------------


def _masked(x: Any, where: Any, fill: float) -> Any:
    return ew.select(broadcast_to(to_bool("where", where), type_of(x).shape), x, np.asarray(fill, type_of(x).dtype))


@library_function(static=("axis",))
def softmax(x: ArrayLike, axis: int | Sequence[int] = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) scaled to sum to 1 over the axes.

    >>> import atled.numpy as jnp
    >>> softmax(jnp.zeros(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    (x,) = promote_inexact("softmax", x)
    axes = check_axes("softmax", axis, type_of(x).ndim)
    picked = x if where is None else _masked(x, where, -np.inf)
    if type_of(x).kind == "c":
        shifted, total = _complex_shifted(picked, axes)
        out = ew.div(elementary.exp(shifted), total)
    else:
        out = normalization.softmax(picked, axes)
    return out if where is None else _masked(out, where, 0.0)


@library_function(static=("axis",))
def log_softmax(x: ArrayLike, axis: int | Sequence[int] = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)), without losing small probabilities.

    >>> import atled.numpy as jnp
    >>> log_softmax(jnp.array([0.0, -200.0]))
    Array([   0., -200.], dtype=float32)
    """
    (x,) = promote_inexact("log_softmax", x)
    axes = check_axes("log_softmax", axis, type_of(x).ndim)
    picked = x if where is None else _masked(x, where, -np.inf)
    if type_of(x).kind == "c":
        shifted, total = _complex_shifted(picked, axes)
        out = ew.sub(shifted, elementary.log(total))
    else:
        out = normalization.log_softmax(picked, axes)
    return out if where is None else _masked(out, where, -np.inf)


def _complex_shifted(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """x minus its lexicographic maximum over the axes, and the sum of the exponentials of the difference."""
    t = type_of(x)
    if not t.size:
        return x, x
    kept_axes = tuple([i for i in range(t.ndim) if i not in axes])
    shifted = ew.sub(x, shape.broadcast(_max(constant(x), axes), t.shape, kept_axes))
    return shifted, shape.broadcast(reduction.reduce_sum(elementary.exp(shifted), axes), t.shape, kept_axes)


def constant(x: Any) -> Any:
    """x, which derivatives treat as a constant."""
    return bind(ew.StopGradient(), x)


@library_function(static=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """log(sum(b * exp(a))) over the axes, without overflow.

    >>> import atled.numpy as jnp
    >>> float(logsumexp(jnp.array([1000.0, 1000.0]))) - 1000.0 < 0.7
    True
    """
    x, *weight = broadcast("logsumexp", promote_inexact("logsumexp", *([a] if b is None else [a, b])))
    x = broadcast_to(x, type_of(weight[0]).shape) if weight and not type_of(x).shape else x
    t = type_of(x)
    axes = check_axes("logsumexp", axis, t.ndim)
    if where is not None:
        x = _masked(x, where, -np.inf)
    keep = [1 if i in axes else n for i, n in enumerate(t.shape)]
    if b is None and t.kind == "f":
        out = normalization.logsumexp(x, axes)
        sign = ew.select(ew.eq(out, out), np.ones((), t.dtype), out)
    else:
        out, sign = _weighted_sum(x, broadcast_to(weight[0], t.shape) if weight else None, axes, return_sign)
    if keepdims:
        out, sign = shape.reshape(out, keep), shape.reshape(sign, keep) if return_sign else None
    return (out, sign) if return_sign else out


def _weighted_sum(x: Any, weight: Any, axes: tuple[int, ...], with_sign: bool) -> tuple[Any, Any]:
    """log(abs(sum(weight * exp(x)))) and the sign of the sum."""
    t = type_of(x)
    if weight is not None:
        x = ew.select(ew.eq(weight, 0), np.asarray(-np.inf, t.dtype), x)
    kept_axes = tuple([i for i in range(t.ndim) if i not in axes])
    top = reduction.reduce_max(conversion.real(x) if t.kind == "c" else x, axes)
    top = constant(ew.select(elementary.is_finite(top), top, _zero(top)))
    shift = cast(top, t.dtype)
    total = elementary.exp(ew.sub(x, shape.broadcast(shift, t.shape, kept_axes)))
    total = reduction.reduce_sum(total if weight is None else ew.mul(total, weight), axes)
    if with_sign:
        return ew.add(elementary.log(elementary.absolute(total)), top), elementary.sign(total)
    return ew.add(elementary.log(total), shift), None


@library_function(static=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: int | Sequence[int] | None = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """log(mean(exp(x))) over the axes.

    >>> import atled.numpy as jnp
    >>> round(float(logmeanexp(jnp.array([1000.0, 1000.0]))), 1)
    1000.0
    """
    (x,) = promote_inexact("logmeanexp", x)
    t = type_of(x)
    axes = check_axes("logmeanexp", axis, t.ndim)
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        return ew.sub(total, np.asarray(math.log(max(math.prod(t.shape[i] for i in axes), 1)), t.dtype))
    count = reduction.reduce_sum(conversion.convert(broadcast_to(to_bool("logmeanexp", where), t.shape), t.dtype), axes)
    return ew.sub(total, elementary.log(shape.reshape(count, type_of(total).shape)))


@library_function(static=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: int | Sequence[int] = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """x shifted and scaled to mean 0 and variance 1 over the axes.

    By default, the variance is the mean of (x - mean)**2. With a given `mean` and `algorithm="fast"`, the variance is
    mean(x**2) - mean**2 instead, as in JAX.

    >>> import atled.numpy as jnp
    >>> standardize(jnp.array([1.0, 3.0])).round()
    Array([-1.,  1.], dtype=float32)
    """
    (x,) = promote_inexact("standardize", x)
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable'; got {algorithm!r}.")
    t = type_of(x)
    over = {"axis": axis, "keepdims": True, "where": where}
    if variance is None and mean is not None and algorithm == "fast":
        variance = ew.maximum(*broadcast("standardize", [_mean(ew.square(x), **over) - mean**2, _zero(x)]))
    elif variance is None and mean is not None:
        variance = _mean((x - mean) ** 2, **over)
    elif variance is None:
        variance = _var(x, **over)
    if mean is None:
        mean = _mean(x, **over)
    scale = elementary.rsqrt(cast(variance + epsilon, t.dtype))
    return ew.mul(ew.sub(x, broadcast_to(cast(mean, t.dtype), t.shape)), broadcast_to(scale, t.shape))


@library_function(static=("num_classes", "dtype", "axis"))
def _one_hot(x: Any, num_classes: int, dtype: Any, axis: int) -> Any:
    t = type_of(x)
    at = check_axis("one_hot", axis, t.ndim + 1)
    dims = (*t.shape[:at], num_classes, *t.shape[at:])
    index_axes = tuple([i for i in range(len(dims)) if i != at])
    labels = shape.iota(t.dtype if t.kind in "iuf" else dtypes.int32, dims, at)
    indices = x if t.kind in "iuf" else conversion.convert(x, dtypes.int32)
    return conversion.convert(ew.eq(shape.broadcast(indices, dims, index_axes), labels), dtype)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: Any = -1) -> Array:
    """Each integer as a row of zeros with a one at its index; all zeros if it is out of range.

    If `axis` names a mapped axis of length `num_classes`, each position along that axis holds its own element of the
    row.

    >>> import atled.numpy as jnp
    >>> one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    indices, dtype = asarray(x), dtypes.canonical(float if dtype is None else dtype)
    if not isinstance(axis, str):
        return _one_hot(indices, int(num_classes), dtype, axis)
    size = collectives.named_axis(axis).size
    if size != num_classes:
        raise ValueError(f"one_hot: num_classes must be the length {size} of the axis {axis!r}; got {num_classes}.")
    return conversion.convert(ew.eq(indices, cast(collectives.axis_index(axis), indices.dtype)), dtype)
