"""All primitives by name, with the API of `jax.extend.core.primitives`, such as `add_p`.

>>> import atled
>>> from atled.jax.extend.core.primitives import jit_p, sin_p
>>> atled.jax.make_jaxpr(atled.numpy.sin)(1.0).eqns[0].primitive is sin_p
True
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from atled import higher_order, ops, random
from atled.core.op import Op
from atled.jax import custom_batching, linear_call  # noqa: F401, defines ops
from atled.jax.attributes import primitive_of
from atled.jax.experimental.checkify import checks  # noqa: F401
from atled.jax.extend.primitive import Primitive

# JAX's names of primitives whose ops have other names.
_NAMES = {
    "bitcast_convert_type": "bitcast_convert", "broadcast_in_dim": "broadcast", "clz": "count_leading_zeros",
    "conv_general_dilated": "convolution", "convert_element_type": "convert", "custom_jvp_call": "custom_jvp",
    "custom_vjp_call": "custom_vjp", "device_put": "to_memory", "jit": "call", "nextafter": "next_after",
    "remat": "checkpoint", "rev": "reverse", "select_n": "select",
}  # fmt: skip
_NEVER = {"call", "closed_call"}  # never in programs of atled, whose calls are jit_p


def _classes(of: type) -> Iterator[Any]:
    for kind in of.__subclasses__():
        yield kind
        yield from _classes(kind)


def __getattr__(name: str) -> Any:
    short = name.removesuffix("_p")
    if short == name or name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if short in _NEVER:
        primitive = globals()[name] = Primitive(short)
        return primitive
    for package in (ops, higher_order, random):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for kind in _classes(Op):
        if kind.name == _NAMES.get(short, short) and kind.__module__.startswith("atled."):
            primitive = globals()[name] = primitive_of(kind)
            return primitive
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: no op of atled is called {short}")
