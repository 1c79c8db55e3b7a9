"""Neural networks as pairs of functions, in the style of JAX's examples.

A layer is a pair: `init_fun(rng, input_shape)` returns the shape of the result and initial parameters, and
`apply_fun(params, inputs, **kwargs)` computes the result. `serial` and `parallel` combine several layers into one. The
same key gives the same initial parameters as in JAX.

>>> from atled import random
>>> init_fun, apply_fun = serial(Dense(8), Relu, Dense(2), LogSoftmax)
>>> shape, params = init_fun(random.key(0), (-1, 4))
>>> shape, apply_fun(params, random.normal(random.key(1), (3, 4))).shape
((-1, 2), (3, 2))
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from atled import lax, random
from atled import numpy as jnp
from atled.core import errors
from atled.core.array import describe
from atled.nn.activations import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from atled.nn.initializers import glorot_normal, normal, ones, zeros

Layer = tuple[Callable[..., Any], Callable[..., Any]]

logsoftmax = log_softmax
glorot = glorot_normal
randn = normal
_GLOROT, _NORMAL, _SMALL = glorot_normal(), normal(), normal(1e-6)

# -- layers with parameters -------------------------------------------------------------------------------------------


def Dense(
    out_dim: int,
    W_init: Callable[..., Any] = _GLOROT,  # noqa: N803
    b_init: Callable[..., Any] = _NORMAL,
) -> Layer:
    """A fully connected layer: `inputs @ W + b`.

    >>> from atled import random
    >>> shape, (W, b) = Dense(3)[0](random.key(0), (-1, 2))
    >>> shape, W.shape, b.shape
    ((-1, 3), (2, 3), (3,))
    """

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        for_weights, for_biases = random.split(rng)
        params = W_init(for_weights, (input_shape[-1], out_dim)), b_init(for_biases, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        weights, biases = params
        return jnp.dot(inputs, weights) + biases

    return init_fun, apply_fun


def _convolution(
    name: str, is_transposed: bool, numbers: Any, features: int, window: Any, strides: Any, padding: Any,
    kernel_init: Any, bias_init: Any,
) -> Layer:  # fmt: skip
    """A convolution or transposed convolution, with a bias for each feature."""
    data, weights, out = numbers
    window = tuple(window)
    strides = tuple(strides or (1,) * len(window))
    if not len(window) == len(strides) == len(weights) - 2:
        says = f"{name}: the filter and the strides must have a length for each spatial axis of {weights!r}"
        raise ValueError(errors.explained(f"{says}; got {window} and {strides}."))
    kernel_init = kernel_init or glorot_normal(weights.index("I"), weights.index("O"))
    shape_of = lax.conv_transpose_shape_tuple if is_transposed else lax.conv_general_shape_tuple
    convolve = lax.conv_transpose if is_transposed else lax.conv_general_dilated

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        places = iter(window)
        fixed = {"I": input_shape[data.index("C")], "O": features}
        dims = tuple([fixed[c] if c in fixed else next(places) for c in weights])
        for_weights, for_biases = random.split(rng)
        biases = bias_init(for_biases, tuple([features if c == "C" else 1 for c in out]))
        return shape_of(input_shape, dims, strides, padding, numbers), (kernel_init(for_weights, dims), biases)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        kernel, biases = params
        return convolve(inputs, kernel, strides, padding, dimension_numbers=numbers) + biases

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable[..., Any] | None = None,  # noqa: N803
    b_init: Callable[..., Any] = _SMALL,
) -> Layer:
    """A convolution with a bias; `dimension_numbers` names the axes of inputs, kernel and result.

    >>> from atled import random
    >>> init_fun, apply_fun = GeneralConv(("NCW", "WIO", "NCW"), 8, (3,), padding="SAME")
    >>> shape, (W, b) = init_fun(random.key(0), (1, 4, 10))
    >>> shape, W.shape, b.shape
    ((1, 8, 10), (3, 4, 8), (1, 8, 1))
    """
    return _convolution(
        "GeneralConv", False, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable[..., Any] | None = None,  # noqa: N803
    b_init: Callable[..., Any] = _SMALL,
) -> Layer:
    """A transposed convolution with a bias.

    >>> from atled import random
    >>> GeneralConvTranspose(("NWC", "WIO", "NWC"), 8, (3,), (2,), "SAME")[0](random.key(0), (1, 10, 4))[0]
    (1, 20, 8)
    """
    return _convolution(
        "GeneralConvTranspose", True, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: Any = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable[..., Any] = zeros,
    gamma_init: Callable[..., Any] = ones,
) -> Layer:
    """Batch normalization of inputs to mean 0 and variance 1 over `axis`.

    Parameters then scale and shift the result. Mean and variance are always those of the current inputs; there are no
    running averages.

    >>> import atled.numpy as jnp
    >>> BatchNorm(0, epsilon=0.0)[1]((jnp.zeros(1), jnp.ones(1)), jnp.array([[1.0], [3.0]]))
    Array([[-1.],
           [ 1.]], dtype=float32)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
        dims = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        for_beta, for_gamma = random.split(rng)
        beta = beta_init(for_beta, dims) if center else ()
        return input_shape, (beta, gamma_init(for_gamma, dims) if scale else ())

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = (jnp.expand_dims(p, axes) if is_used else p for p, is_used in zip(params, (center, scale)))
        out = standardize(x, axes, epsilon=epsilon)
        out = gamma * out if scale else out
        return out + beta if center else out

    return init_fun, apply_fun


# -- pooling ----------------------------------------------------------------------------------------------------------


def _pooling(combine: Callable[..., Any], doc: str, is_mean: bool = False) -> Callable[..., Layer]:
    def PoolingLayer(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        spec: str | None = None,
    ) -> Layer:
        window = tuple(window_shape)
        spec = spec or "N" + "w" * len(window) + "C"
        if len(spec) != len(window) + 2:
            says = f"a spec must name each axis of the window, N and C; got {spec!r} for the window {window}."
            raise ValueError(errors.explained(says))

        def spread(numbers: Sequence[int]) -> tuple[int, ...]:
            spatial = iter(numbers)
            return tuple([1 if c in "NC" else next(spatial) for c in spec])

        windows, steps = spread(window), spread(strides or (1,) * len(window))

        def init_fun(rng: Any, input_shape: Sequence[int]) -> Any:
            pads = padding
            if isinstance(padding, str):
                pads = lax.padtype_to_pads(input_shape, windows, steps, padding)
            return lax.reduce_window_shape_tuple(input_shape, windows, steps, pads), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            least = -math.inf if jnp.issubdtype(inputs.dtype, jnp.floating) else jnp.iinfo(inputs.dtype).min
            out = lax.reduce_window(inputs, least if combine is lax.max else 0, combine, windows, steps, padding)
            if not is_mean:
                return out
            counts = jnp.ones([1 if c in "NC" else n for c, n in zip(spec, inputs.shape, strict=True)], inputs.dtype)
            return out / lax.reduce_window(counts, 0, combine, windows, steps, padding)

        return init_fun, apply_fun

    PoolingLayer.__doc__ = doc
    return PoolingLayer


MaxPool = _pooling(
    lax.max,
    """The largest element of each window; `spec` names the axes, such as "NwC".

    >>> _, pool = MaxPool((2,), (2,))
    >>> pool((), jnp.arange(1.0, 5.0).reshape(1, 4, 1)).ravel()
    Array([2., 4.], dtype=float32)
    """,
)
SumPool = _pooling(
    lax.add,
    """The sum of each window; `spec` names the axes, such as "NwC".

    >>> _, pool = SumPool((2,), (2,))
    >>> pool((), jnp.arange(1.0, 5.0).reshape(1, 4, 1)).ravel()
    Array([3., 7.], dtype=float32)
    """,
)
AvgPool = _pooling(
    lax.add,
    """The mean of each window without its padding; `spec` names the axes, such as "NwC".

    >>> _, pool = AvgPool((2,), (2,))
    >>> pool((), jnp.arange(1.0, 5.0).reshape(1, 4, 1)).ravel()
    Array([1.5, 3.5], dtype=float32)
    """,
    True,
)


# -- layers without parameters ----------------------------------------------------------------------------------------


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies a function to its inputs and keeps their shape.

    >>> import atled.numpy as jnp
    >>> elementwise(jnp.clip, max=1.0)[1]((), jnp.array([0.5, 2.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return _unchanged, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


def _unchanged(rng: Any, input_shape: Any) -> Any:
    return input_shape, ()


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)
Flatten = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)


def FanOut(num: int) -> Layer:
    """A layer that returns a list of `num` references to its input, for `parallel`.

    >>> FanOut(2)[1]((), 3.0)
    [3.0, 3.0]
    """
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """A layer that concatenates a sequence of inputs along an axis.

    >>> FanInConcat()[0](None, [(4, 2), (4, 3)])
    ((4, 5), ())
    """

    def init_fun(rng: Any, input_shape: Sequence[Sequence[int]]) -> Any:
        dims = list(input_shape[0])
        dims[axis] = sum([shape[axis] for shape in input_shape])
        return tuple(dims), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Dropout: keeps each element with probability `rate`, divided by `rate`, and sets the others to 0.

    In modes other than "train", the layer returns its inputs. The apply function needs a key `rng` in every mode.

    >>> import atled.numpy as jnp
    >>> from atled import random
    >>> Dropout(0.5)[1]((), jnp.ones(4), rng=random.key(0))
    Array([0., 0., 2., 2.], dtype=float32)
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            says = "Dropout: the apply function needs a random key; got none."
            raise ValueError(errors.explained(says, "apply_fun(params, inputs, rng=key)."))
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, jnp.shape(inputs)), inputs / rate, 0)

    return _unchanged, apply_fun


# -- several layers as one --------------------------------------------------------------------------------------------


def _pairs(name: str, layers: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The init functions and the apply functions of layers."""
    for layer in layers:
        if not (isinstance(layer, (tuple, list)) and len(layer) == 2):
            says = f"{name}: a layer is a pair of functions, (init_fun, apply_fun); got {describe(layer)}."
            raise TypeError(
                errors.explained(says, f"{name}(Dense(8), Relu): layers such as Dense must be called first.")
            )
    return tuple([init for init, _ in layers]), tuple([apply for _, apply in layers])


def _keys(rng: Any, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """One layer that applies several layers in sequence; its parameters are a list.

    >>> from atled import random
    >>> serial(Dense(8), Relu, Dense(2))[0](random.key(0), (-1, 4))[0]
    (-1, 2)
    """
    inits, applies = _pairs("serial", layers)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init in inits:
            rng, own = random.split(rng)
            input_shape, layer_params = init(own, input_shape)
            params.append(layer_params)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(applies))
        for apply, own, key in zip(applies, params, keys):
            inputs = apply(own, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """One layer that applies each of several layers to its own input and returns a list of results.

    >>> from atled import random
    >>> init_fun, apply_fun = serial(FanOut(2), parallel(Dense(3), Identity), FanInConcat())
    >>> init_fun(random.key(0), (-1, 4))[0]
    (-1, 7)
    """
    inits, applies = _pairs("parallel", layers)

    def check(what: str, given: Any) -> None:
        if len(given) != len(layers):
            says = f"parallel: {len(layers)} layers take {len(layers)} {what}; got {len(given)}."
            raise ValueError(errors.explained(says, f"FanOut({len(layers)}) before parallel, for one input."))

    def init_fun(rng: Any, input_shape: Any) -> Any:
        check("shapes", input_shape)
        pairs = [init(key, shape) for init, key, shape in zip(inits, _keys(rng, len(inits)), input_shape)]
        return tuple([shape for shape, _ in pairs]), tuple([params for _, params in pairs])

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        check("inputs", inputs)
        keys = _keys(kwargs.pop("rng", None), len(applies))
        return [apply(own, x, rng=key, **kwargs) for apply, own, x, key in zip(applies, params, inputs, keys)]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that `make_layer` constructs from the input shape.

    >>> from atled import random
    >>> double = shape_dependent(lambda shape: Dense(2 * shape[-1]))
    >>> double[0](random.key(0), (-1, 4))[0]
    (-1, 8)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun


__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp",
    "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity",
    "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh",
    "elementwise", "elu", "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal",
    "ones", "parallel", "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus",
    "standardize", "zeros",
]  # fmt: skip
__dir__ = __all__.copy
