"""Helpers to call functions with flat lists of leaves, with the API of `jax.api_util`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import tree
from atled.core.array import type_of as shaped_abstractify
from atled.jax.extend.core import DebugInfo
from atled.jax.extend.linear_util import WrappedFun, transformation_with_aux2

__all__ = [
    "argnums_partial", "debug_info", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs", "safe_map",
    "shaped_abstractify",
]  # fmt: skip


def debug_info(traced_for: str, fun: Callable[..., Any], args: Any = (), kwargs: Any = None, **_: Any) -> DebugInfo:
    """Debug information for a traced function: the transformation's name and the function's."""
    return DebugInfo(traced_for, getattr(fun, "__name__", "<unnamed function>"))


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Any, in_tree: Any, *flat: Any) -> list[Any]:
    """`f` on flat lists: leaves of (args, kwargs) to leaves of the result; stores the result's structure."""
    args, kwargs = tree.unflatten(in_tree, flat)
    leaves, structure = tree.flatten(f(*args, **kwargs))
    store.store(structure)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Any, in_tree: Any, *flat: Any) -> list[Any]:
    """`f` on flat lists: leaves of args to leaves of the result; stores the result's structure."""
    leaves, structure = tree.flatten(f(*tree.unflatten(in_tree, flat)))
    store.store(structure)
    return leaves


def argnums_partial(f: WrappedFun, dyn_argnums: Any, args: Sequence[Any], *_: Any, **__: Any) -> tuple[WrappedFun, Any]:
    """`f` as a function of the arguments `dyn_argnums`, with the others fixed; and the values of `dyn_argnums`."""
    dynamic = [n % len(args) for n in ((dyn_argnums,) if isinstance(dyn_argnums, int) else dyn_argnums)]

    def call(*given: Any, **kwargs: Any) -> Any:
        every = list(args)
        for i, x in zip(dynamic, given, strict=True):
            every[i] = x
        return f.call_wrapped(*every, **kwargs)

    return WrappedFun(f.f, call, {}, f.debug_info), tuple([args[i] for i in dynamic])


def flatten_axes(name: str, treedef: Any, axis_tree: Any, **_: Any) -> list[Any]:
    """The axis of each leaf, as a list; `axis_tree` may be a prefix of the tree."""
    dummies = tree.unflatten(treedef, [object()] * treedef.num_leaves)
    return tree.leaves(tree.broadcast(axis_tree, dummies, is_leaf=lambda x: x is None), is_leaf=lambda x: x is None)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """`map` as a list, for arguments of equal length."""
    return [f(*given) for given in zip(*map(list, args), strict=True)]
