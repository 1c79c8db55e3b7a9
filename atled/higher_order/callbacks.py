"""Host callbacks: `pure_callback`, `io_callback`, and the callbacks behind `atled.debug`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atled.core import errors, tree
from atled.core.array import Array, describe, type_of
from atled.core.list_partition import kept
from atled.core.trace import bind
from atled.core.types import ArrayType
from atled.engine.launch_control import effects_barrier as effects_barrier
from atled.ops.callback import DEBUG, IO, METHODS, Callback, Host


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function on NumPy arrays from inside compiled code.

    The function must have no side effects: it may be called any number of times, or not at all. Its result is checked
    against `result_shape_dtypes`, a tree of `ShapeDtypeStruct`s or arrays. Under `vmap`, the
    function is called for each example if `vmap_method` is `"sequential"`, or once for the batch, on arrays with a
    leading batch axis, if it is `"expand_dims"` or `"broadcast_all"`.

    >>> import numpy as np, atled, atled.numpy as jnp
    >>> host = lambda x: np.sqrt(x).astype("float32")
    >>> f = atled.jit(lambda x: pure_callback(host, atled.ShapeDtypeStruct(x.shape, x.dtype), x))
    >>> f(jnp.array([4.0, 9.0]))
    Array([2., 3.], dtype=float32)
    """
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs, None, vmap_method)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects from inside compiled code: exactly once, in program order.

    Under `vmap`, the function is called for one example after another.

    >>> import numpy as np, atled
    >>> rows = []
    >>> def log(x):
    ...     rows.append(float(x))
    ...     return np.int32(len(rows))
    >>> f = atled.jit(lambda x: io_callback(log, atled.ShapeDtypeStruct((), "int32"), x, ordered=True))
    >>> int(f(1.5)), int(f(2.5)), rows
    (1, 2, [1.5, 2.5])
    """
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs, IO[bool(ordered)], "sequential")


def effect_callback(
    callback: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], name: str, ordered: bool = False
) -> None:
    """Call a function for its side effect; arguments that are not arrays are passed unchanged."""
    _call(name, callback, None, tuple(args), kwargs, DEBUG[bool(ordered)], "sequential", is_mixed=True)


def _call(
    name: str, callback: Any, results: Any, args: tuple[Any, ...], kwargs: Any, effect: str | None,
    method: str | None,
    is_mixed: bool = False,
) -> Any:  # fmt: skip
    try:
        if not callable(callback):
            raise TypeError(f"{name}: expected a function; got {describe(callback)}.")
        if method is not None and method not in METHODS:
            raise ValueError(f"{name}: vmap_method must be one of {', '.join(METHODS)}; got {method!r}.")
        return _bind(name, callback, results, args, kwargs, effect, method, is_mixed)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _bind(
    name: str, callback: Any, results: Any, args: tuple[Any, ...], kwargs: Any, effect: str | None,
    method: str | None,
    is_mixed: bool,
) -> Any:  # fmt: skip
    leaves, structure = tree.flatten((args, kwargs))
    is_array = [isinstance(x, Array) or not is_mixed for x in leaves]
    announced, out_structure = tree.flatten(results)
    types = [ArrayType(tuple(x.shape), x.dtype) if hasattr(x, "dtype") else type_of(x) for x in announced]
    fixed = [None if a else x for x, a in zip(leaves, is_array, strict=True)]
    called = getattr(callback, "__name__", type(callback).__name__)

    def function(*arrays: Any) -> list[Any]:
        given = iter(arrays)
        found_args, found_kwargs = structure.unflatten(
            [next(given) if a else x for x, a in zip(fixed, is_array, strict=True)]
        )
        out = callback(*found_args, **found_kwargs)
        if not types:
            return []
        flat, got = tree.flatten(out)
        if got != out_structure:
            raise TypeError(
                f"{name}: {called} must return the tree {out_structure}, as declared in result_shape_dtypes; got {got}."
            )
        return flat

    op = Callback(Host(function, types, called), effect, method)
    out = bind(op, *kept(is_array, leaves))
    return out_structure.unflatten(list(out))
