"""Image resampling: `resize` and `scale_and_translate`.

Along each axis, every element of the result is a weighted sum of nearby elements of the image. The weights of an axis
form a matrix; the image is multiplied by the matrix of each axis in turn.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.axes import check_axes
from atled.lax import Precision
from atled.lax.precision import PrecisionLike
from atled.numpy.creation import static_shape
from atled.numpy.promotion import cast, operand_type, promote_inexact
from atled.staging.jit import library_function

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]
__dir__ = __all__.copy


class ResizeMethod(enum.Enum):
    """The interpolation method: nearest neighbor, a kernel, or area.

    >>> ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method with the given name, which must be in lower case."""
        if s not in _METHODS:
            names = ", ".join(map(repr, _METHODS))
            raise ValueError(errors.explained(f"ResizeMethod: unknown method {s!r}; names are {names}."))
        return _METHODS[s]


_METHODS = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}
_LEAST = 1000 * float(np.finfo(np.float32).eps)  # a point whose weights have a smaller sum is outside of the image

# -- kernels: functions of a nonnegative distance ---------------------------------------------------------------------


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _lanczos(radius: int) -> Callable[[Any], Any]:
    return lambda x: jnp.where(x > radius, 0, jnp.sinc(x) * jnp.sinc(x / radius))


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys' piecewise cubic kernel (1981), with slope `a` at distance 1, where its pieces meet."""

    def kernel(x: Any) -> Any:
        near = 1 + x * x * ((a + 2) * x - (a + 3))
        far = a * (((x - 5) * x + 8) * x - 4)
        return jnp.where(x >= 2, 0, jnp.where(x >= 1, far, near))

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
}

# -- weights of an axis -----------------------------------------------------------------------------------------------


def _weights(m: int, n: int, scale: Any, shift: Any, method: ResizeMethod, antialias: bool) -> Any:
    """An (m, n) matrix: the weight of each element of the image's axis in each element of the result."""
    dtype = type_of(scale).dtype
    inverse = 1 / scale
    # the coordinates of the result's elements in the image
    middle = (np.arange(n, dtype=dtype) + np.asarray(0.5, dtype)) * inverse - shift * inverse - 0.5
    margin = 2 if method is ResizeMethod.CUBIC_PYTORCH else 0  # elements beyond each border: the kernel's radius
    places = np.arange(-margin, m + margin).astype(dtype)[:, None]
    if method is ResizeMethod.AREA:
        half = 0.5 * abs(inverse)
        low, high = jnp.maximum(middle - half, places - 0.5), jnp.minimum(middle + half, places + 0.5)
        weights = jnp.maximum(high - low, 0)
    else:
        width = jnp.maximum(inverse, 1) if antialias else 1
        weights = _KERNELS[method](abs(middle - places) / width)
    total = jnp.sum(weights, axis=0)
    is_inside = abs(total) > _LEAST
    if not margin:
        is_inside = is_inside & (middle >= -0.5) & (middle <= m - 0.5)
    weights = jnp.where(is_inside, weights / jnp.where(is_inside, total, 1), 0)
    if margin:  # elements beyond a border repeat the edge element
        before, after = jnp.sum(weights[:margin], axis=0), jnp.sum(weights[margin + m :], axis=0)
        weights = weights[margin : margin + m].at[0].add(before).at[-1].add(after)
    return weights


@library_function(static=("dims", "axes", "method", "antialias", "precision"))
def _resampled(
    image: Any, scales: Any, shifts: Any, dims: Any, axes: Any, method: Any, antialias: bool, precision: Any
) -> Any:
    """An image multiplied by the weight matrix of each axis in `axes`, the axes that shrink most first."""
    (image,) = promote_inexact("resize", image)
    t = type_of(image)
    image = jnp.asarray(image)
    letters = "abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXY"[: t.ndim]
    for i, axis in sorted(enumerate(axes), key=lambda pair: dims[pair[1]] / max(t.shape[pair[1]], 1)):
        weights = _weights(t.shape[axis], dims[axis], scales[i], shifts[i], method, antialias)
        equation = f"{letters},{letters[axis]}z->{letters[:axis]}z{letters[axis + 1 :]}"
        image = jnp.einsum(equation, image, cast(weights, t.dtype), precision=precision)
    return image


@library_function(static=("dims",))
def _nearest(image: Any, dims: tuple[int, ...]) -> Any:
    image = jnp.asarray(image)
    for axis, (m, n) in enumerate(zip(image.shape, dims, strict=True)):
        if m != n:
            # rounded as in JAX, so ties between two equally near elements give the same element
            step = np.float32(m) * (np.float32(1) / np.float32(max(n, 1)))
            index = np.minimum(np.floor((np.arange(n, dtype=np.float32) + 0.5) * step), m - 1).astype(np.int32)
            image = image[(slice(None),) * axis + (index,)]
    return image


# -- public functions ------------------------------------------------------------------------------------------------


def _checked(name: str, image: Any, shape: Any, method: Any) -> tuple[tuple[int, ...], ResizeMethod]:
    """The requested shape as a tuple, and the method as a `ResizeMethod`; raises if they do not fit the image."""
    t = operand_type(name, image)
    dims = static_shape(name, shape)
    if len(dims) != t.ndim:
        says = f"{name}: the shape must have a length for each axis of the image; got {dims} for {t}."
        raise ValueError(
            errors.explained(says, "the image's own length for axes that do not change, such as channels.")
        )
    if any([m == 0 < n for m, n in zip(t.shape, dims, strict=True)]):
        says = f"{name}: an empty axis cannot be resized; got {t} (shape {t.shape}) for shape {dims}."
        raise ValueError(errors.explained(says))
    method = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if not isinstance(method, ResizeMethod):
        says = f"{name}: the method must be a name or a ResizeMethod; got {method!r}."
        raise TypeError(errors.explained(says, '"linear", or another name of ResizeMethod.'))
    return dims, method


def _kernel_of(method: ResizeMethod, antialias: bool) -> ResizeMethod:
    return ResizeMethod.CUBIC if method is ResizeMethod.CUBIC_PYTORCH and antialias else method


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resize an image to a shape, which has a length for each axis; axes whose length stays the same are unchanged.

    The method is a `ResizeMethod` or its name: "nearest", "linear", "cubic", "lanczos3", "lanczos5", "area", or
    "cubic-pytorch", which without `antialias` matches PyTorch. All methods but "nearest" return floating point. With
    `antialias`, the kernel is widened along axes that shrink, so every element of the image contributes.

    >>> import atled.numpy as jnp
    >>> resize(jnp.array([[0.0, 2.0, 4.0, 6.0]]), (1, 2), "linear", antialias=False)
    Array([[1., 5.]], dtype=float32)
    """
    dims, method = _checked("resize", image, shape, method)
    if method is ResizeMethod.NEAREST:
        return _nearest(image, dims)
    t = type_of(image)
    axes = tuple([i for i, (m, n) in enumerate(zip(t.shape, dims, strict=True)) if m != n])
    work = dtypes.float64 if dtypes.bits(dtypes.real_part(t.dtype)) == 64 and t.kind in "fc" else dtypes.default("f")
    scales = np.array([max(dims[i], 1) / max(t.shape[i], 1) for i in axes], work)
    method = _kernel_of(method, antialias)
    return _resampled(image, scales, np.zeros_like(scales), dims, axes, method, bool(antialias), precision)


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Scale and translate an image along the axes `spatial_dims`; the result has the given shape.

    The point at x along axis `spatial_dims[i]` of the image is at `x * scale[i] + translation[i]` in the result;
    the center of the first element is at 0.5. Points outside of the image are 0. The result is differentiable with
    respect to `scale` and `translation`. The methods are those of `resize` except "nearest".

    >>> import atled.numpy as jnp
    >>> row, one = jnp.array([[1.0, 2.0, 3.0]]), jnp.array([1.0])
    >>> scale_and_translate(row, (1, 4), (1,), one, one, "linear")
    Array([[0., 1., 2., 3.]], dtype=float32)
    """
    name = "scale_and_translate"
    dims, method = _checked(name, image, shape, method)
    if method is ResizeMethod.NEAREST:
        says = f'{name}: the method "nearest" is not available here; got {method}.'
        raise ValueError(errors.explained(says, 'resize(image, shape, "nearest"), or the method "linear".'))
    axes = check_axes(name, tuple(spatial_dims), len(dims))
    scale, translation = (jnp.asarray(x) for x in promote_inexact(name, scale, translation))
    for what, x in (("scale", scale), ("translation", translation)):
        if x.shape != (len(axes),):
            says = f"{name}: the {what} must have a number for each of {len(axes)} spatial_dims; got {type_of(x)}."
            raise ValueError(errors.explained(says, f"an array of shape ({len(axes)},)."))
    if scale.dtype.itemsize < 4:
        scale, translation = scale.astype(dtypes.float32), translation.astype(dtypes.float32)
    method = _kernel_of(method, antialias)
    return _resampled(image, scale, translation, dims, axes, method, bool(antialias), precision)
