"""`platform_dependent`: run one of several functions, chosen by the platform that the program is compiled for.

The platform is known when the program is lowered, so `Cond` emits only the selected branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.compiler.builder import Value
from atled.core import dtypes, errors, tree
from atled.core.op import Op
from atled.core.program import Recorder
from atled.core.settings import scope
from atled.core.trace import Tracer, bind, state
from atled.core.types import ArrayType
from atled.engine import client
from atled.higher_order.cond import choose


class PlatformIndex(Op):
    """The index of the compiled program's platform in `names`; if it is missing, `len(names)`, for the default."""

    names: tuple[str, ...]
    has_default: bool

    def result_type(self) -> ArrayType:
        return ArrayType((), dtypes.int32)

    def lower(self, build: Any) -> Any:
        place = np.int32(_place(self.names, self.has_default, build.platform))
        return Value(None, self.result_type(), place)


def _place(names: Sequence[str], has_default: bool, platform: str) -> int:
    for name in {"gpu": ("cuda", "rocm"), "cuda": ("cuda",), "rocm": ("rocm",)}.get(platform, (platform,)):
        if name in names:
            return names.index(name)
    if not has_default:
        raise NotImplementedError(
            f"platform_dependent: a function for {platform} or a default is needed; got {', '.join(names) or 'none'}."
            f"\n  try: {platform}=f, or default=f."
        )
    return len(names)


def _platform_here(leaves: Sequence[Any]) -> str:
    """The platform of the first array that has one, else the default platform."""
    for x in leaves:
        while isinstance(x, Tracer) and hasattr(x, "primal"):
            x = x.primal  # type: ignore[attr-defined]
        if not isinstance(x, Tracer) and hasattr(x, "devices"):
            return next(iter(x.devices())).platform
    chosen = scope().default_device
    return getattr(chosen, "platform", None) or client.default_backend()


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Call the function given for the platform, such as `cpu=f`, `cuda=f`, `rocm=f` or `tpu=f`, or else `default`.

    Under `jit`, all functions are traced, and must return results of the same types.

    >>> import atled.numpy as jnp
    >>> platform_dependent(jnp.float32(4.0), tpu=jnp.cos, default=jnp.sqrt)
    Array(2., dtype=float32)
    """
    if "gpu" in per_platform:
        raise ValueError(
            errors.explained(
                "platform_dependent: 'gpu' stands for two platforms, cuda and rocm; got a function for it.",
                "cuda=f, rocm=f.",
            )
        )
    names = tuple(per_platform)
    functions = [*per_platform.values(), *([] if default is None else [default])]
    if type(state.base) is not Recorder:
        try:
            place = _place(names, default is not None, _platform_here(tree.leaves(args)))
        except NotImplementedError as error:
            raise errors.for_user(error) from None
        return functions[place](*args)
    if len(functions) == 1 and default is not None:
        return default(*args)
    return choose("platform_dependent", bind(PlatformIndex(names, default is not None)), functions, args)
