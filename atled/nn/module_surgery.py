"""`replace`: substitutes modules, also inside stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled import random
from atled.core import errors, tree_registry
from atled.core.array import ArrayLike
from atled.nn.module import Module
from atled.nn.module_filters import modules, names
from atled.nn.stack import Stack, Stacked, Unstacked


def replace(module: Any, pattern: str | type, make: Callable[..., Any], key: ArrayLike | None = None) -> Any:
    """A copy in which modules that match a pattern or a class are replaced by `make(module)`.

    With a `key`, `make(module, key)` gets a separate key for each module. In a `Stack`, `make` runs under `vmap` over
    the layers.

    >>> from atled import nn, random
    >>> attention = nn.MultiHeadAttention(8, 2, key=random.key(0))
    >>> nn.replace(attention, "query_proj", lambda old: nn.Dropout(0.1)).query_proj
    Dropout(rate=0.1)
    """

    def is_meant(path: str, m: Any) -> bool:
        return isinstance(m, pattern) if isinstance(pattern, type) else names(pattern, path)

    matched_paths = [path for path, m in modules(module) if is_meant(path, m)]
    if not matched_paths:
        described = pattern.__name__ if isinstance(pattern, type) else repr(pattern)
        raise ValueError(
            errors.explained(
                f"nn.replace: a pattern must match a module; {described} matches none.",
                "one of " + ", ".join([p for p, _ in modules(module) if p][:6]),
            )
        )

    def of(x: Any, path: str, key: Any) -> Any:
        if isinstance(x, Module) and is_meant(path, x):
            return make(x) if key is None else make(x, key)
        node = tree_registry.node_of(type(x))
        if node is None:
            return x
        children, meta = node.flatten(x)
        children = list(children)
        paths = ["/".join([path, str(k[0])]).strip("/") for k in node.keys(x, len(children))]
        keys = (
            [None] * len(children) if key is None else list(random.split(key, max(len(children), 1)))[: len(children)]
        )
        if isinstance(x, Stacked):
            return x.mapped(lambda layer, k: of(layer, paths[0], k), keys[0])
        return node.unflatten(meta, [of(c, p, k) for c, p, k in zip(children, paths, keys, strict=True)])

    return of(module, "", key)


def unstack(module: Any) -> Any:
    """A copy in which the layers of each `Stack` have their own arrays and run without a loop.

    Programs are larger and take longer to compile; they run faster where slices of the stacked arrays would be copied,
    as in decoding on the CPU.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> deep = nn.Stack(lambda key: nn.Linear(2, 2, key=key), 12, key=random.key(0))
    >>> bool((nn.unstack(deep)(jnp.ones(2)) == deep(jnp.ones(2))).all())
    True
    """
    return replace(module, Stack, Unstacked) if any([isinstance(m, Stack) for _, m in modules(module)]) else module
