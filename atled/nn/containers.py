"""Layers made of other layers or functions: `Sequential`, `Residual`, `Lambda`."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import atled.numpy as jnp
from atled import random
from atled.core import errors
from atled.core.array import Array, describe, type_of
from atled.core.source import is_library_file
from atled.nn.module import Module
from atled.nn.stack import Stacked
from atled.nn.variable_kinds import Kind
from atled.nn.weight_normalization import Reparametrized


class Sequential(Module):
    """Layers and plain functions in sequence: each gets the output of the previous one.

    The `key` of a call is split among the layers that take a `key`. `model[1]` is the second layer, `model[:2]` a
    shorter `Sequential` with the same arrays.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> keys = nn.Keys(0)
    >>> model = nn.Sequential(nn.Linear(2, 8, key=keys()), jnp.tanh, nn.Dropout(0.5), nn.Linear(8, 3, key=keys()))
    >>> model(jnp.ones((5, 2)), key=random.key(1)).shape, len(model)
    ((5, 3), 4)
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        self.layers = [as_layer(f"Sequential: layers[{i}]", layer) for i, layer in enumerate(layers)]

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """The output of the last layer."""
        taking = [i for i, layer in enumerate(self.layers) if key is not None and takes_key(layer)]
        keys = dict(zip(taking, random.split(key, len(taking)), strict=True)) if key is not None and taking else {}
        for i, layer in enumerate(self.layers):
            try:
                y = layer(x, key=keys[i]) if i in keys else layer(x)
            except (TypeError, ValueError) as error:
                raise _at(error, i, self.layers, x) from None
            x = y
        return x

    def __getitem__(self, i: Any) -> Any:
        return Sequential(*self.layers[i]) if isinstance(i, slice) else self.layers[i]

    def __len__(self) -> int:
        return len(self.layers)

    def __bool__(self) -> bool:
        return True  # a module is truthy, even an empty one

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)


class Residual(Module):
    """`x + layer(x)`, or `x + scale * layer(x)`: the layer must keep the shape.

    Args:
        scale: a number, or `nn.Param(x)` for a trained number or vector.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> nn.Residual(jnp.sin, scale=2.0)(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """

    def __init__(self, layer: Callable[..., Any], *, scale: Any = None) -> None:
        self.layer = as_layer("Residual: the layer", layer)
        self.scale: Any = scale if scale is None or isinstance(scale, (Kind, Array)) else float(scale)

    def __call__(self, x: Any, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        """The input plus the layer's output; further arguments are passed to the layer."""
        more = kwargs if key is None or not takes_key(self.layer) else {**kwargs, "key": key}
        y = self.layer(x, *args, **more)
        _same_shape(self, x, y)
        y = y if self.scale is None else self.scale * y
        _same_shape(self, x, y)
        return jnp.asarray(x) + y


class Lambda(Module):
    """A function as a layer; the function may use only its arguments and constants.

    Closing over modules or arrays raises: they would be neither trained nor saved.

    >>> from atled import nn
    >>> import atled.numpy as jnp
    >>> nn.Lambda(jnp.square)(jnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if isinstance(function, Module):
            raise TypeError(
                errors.explained(
                    f"Lambda: a function is expected; got a {type(function).__name__}.", "the layer itself."
                )
            )
        self.function = as_layer("Lambda: the function", function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the function."""
        return self.function(*args, **kwargs)


# -- layers and functions ---------------------------------------------------------------------------------------------


def as_layer(where: str, layer: Any) -> Any:
    """The layer, if it is a module, or a function that reads no modules or arrays but its arguments; else raises."""
    if isinstance(layer, Module):
        return layer
    if isinstance(layer, type) and issubclass(layer, Module):
        raise TypeError(
            errors.explained(f"{where} must be a layer; got the class {layer.__name__}.", f"{layer.__name__}(…).")
        )
    if not callable(layer):
        way = "*layers, with a star." if isinstance(layer, (list, tuple, types.GeneratorType)) else ""
        raise TypeError(errors.explained(f"{where} must be a layer or a function; got {describe(layer)}.", way))
    for name, value in _read_by(layer):
        if isinstance(value, (Module, Array)):
            what = f"a {type(value).__name__}" if isinstance(value, Module) else f"an array, {describe(value)}"
            raise TypeError(
                errors.explained(
                    f"{where} reads `{name}`, {what}, which is not a part of the model: it would be neither "
                    f"trained nor saved.",
                    "a custom module that owns it, with nn.Param(x) or nn.Buffer(x) for arrays.",
                )
            )
    return layer


def _read_by(function: Any, seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Names and values that a Python function reads besides its arguments: globals, closure variables and defaults, and
    those that functions among these values read.
    """
    seen = set() if seen is None else seen
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    code = function.__code__
    read = [(n, c.cell_contents) for n, c in zip(code.co_freevars, function.__closure__ or ()) if c != types.CellType()]
    names = code.co_varnames[: code.co_argcount]
    read += zip(reversed(names), reversed(function.__defaults__ or ()))
    read += (function.__kwdefaults__ or {}).items()
    if not is_library_file(code.co_filename):
        read += [(n, function.__globals__[n]) for n in _global_names(code) if n in function.__globals__]
    for name, value in [*read, ("__wrapped__", getattr(function, "__wrapped__", None))]:
        yield name, value
        yield from _read_by(value, seen)


def _global_names(code: types.CodeType) -> set[str]:
    """The names of the globals that a code object and the code objects nested in it read."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return found.union(*[_global_names(c) for c in code.co_consts if isinstance(c, types.CodeType)])


def takes_key(layer: Any) -> bool:
    """Whether a layer or function takes a keyword argument `key`; for a container, whether a layer inside does."""
    if isinstance(layer, Sequential):
        return any([takes_key(inner) for inner in layer.layers])
    if isinstance(layer, (Residual, Reparametrized)):
        return takes_key(layer.layer)
    if isinstance(layer, Lambda):
        return takes_key(layer.function)
    if isinstance(layer, Stacked):
        return takes_key(layer.layers)
    if isinstance(layer, Module):
        calls = [c.__dict__["__call__"] for c in type(layer).__mro__ if "__call__" in c.__dict__]
        return next((takes for f in calls if (takes := _takes_key(f)) is not None), False)
    return bool(_takes_key(layer)) if isinstance(layer, (types.FunctionType, functools.partial)) else False


def _takes_key(function: Any) -> bool | None:
    """Whether a function has a parameter `key`, or None if only its `**kwargs` could take a `key`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    if any([p.name == "key" and p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters[1:]]):
        return True
    return None if any([p.kind is p.VAR_KEYWORD for p in parameters]) else False


# -- messages ---------------------------------------------------------------------------------------------------------


def _at(error: Any, i: int, layers: list[Any], x: Any) -> Any:
    """The error of a layer, with the layer's position and input added to the message."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        before = f"layers[{i - 1}], {_name(layers[i - 1])}" if i else "the call"
        text = f"\n  at layers[{i}] of Sequential, {_name(layers[i])}, for {describe(x)} from {before}"
        says, tries, rest = error.args[0].partition("\n  try:")
        error.args = (says + text + tries + rest,)
    return error


def _name(layer: Any) -> str:
    return type(layer).__name__ if isinstance(layer, Module) else getattr(layer, "__name__", repr(layer))


def _same_shape(layer: Residual, x: Any, y: Any) -> None:
    """Raise unless the layer's output has the shape of the input."""
    try:
        is_same = type_of(x).shape == type_of(y).shape
    except TypeError:
        is_same = False
    if not is_same:
        name = _name(layer.layer) if layer.scale is None else f"scale times {_name(layer.layer)}"
        raise ValueError(
            errors.explained(
                f"Residual: the output of {name} must have the shape of its input; got {describe(y)} for "
                f"{describe(x)}.",
                "as many outputs as inputs, or write out the sum, with a Linear on the skip connection.",
            )
        )
