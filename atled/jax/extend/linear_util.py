"""Functions with transformations around them, with the API of `jax.extend.linear_util`.

A transformation is a generator: it yields arguments for the wrapped function, receives the function's results, and
yields its own results. A transformation "with aux" yields (results, auxiliary output) and comes with a function that
returns the auxiliary output afterwards.

>>> @transformation
... def doubled(*args):
...     result = yield args, {}
...     yield 2 * result
>>> doubled(wrap_init(lambda x, y: x + y)).call_wrapped(1, 2)
6
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]  # fmt: skip
__dir__ = __all__.copy


class StoreException(Exception):  # noqa: N818, the name is JAX's
    """Raised when a transformation's auxiliary output is read before the transformation ran, or is set twice.

    >>> run, more = transformation_with_aux2(lambda f, store, x: f(x), wrap_init(abs))
    >>> more()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    StoreException: Store empty: the transformation has not run yet.
    """


class Store:
    """Storage for a transformation's auxiliary output."""

    def __init__(self, takes_equal: bool = False) -> None:
        self.values: list[Any] = []
        self.takes_equal = takes_equal

    def store(self, value: Any) -> None:
        """Store a value; raises if another value is stored already."""
        if self.values and self.takes_equal and self.values[0] == value:
            return
        if self.values:
            raise StoreException("Store occupied: the transformation ran already.")
        self.values.append(value)

    @property
    def val(self) -> Any:
        """The stored value; raises if there is none."""
        if not self.values:
            raise StoreException("Store empty: the transformation has not run yet.")
        return self.values[0]

    def __bool__(self) -> bool:
        return bool(self.values)


class WrappedFun:
    """A function with static parameters and the transformations that are applied to it.

    >>> wrap_init(lambda x, n: x**n, {"n": 2}).call_wrapped(3)
    9
    """

    def __init__(
        self, f: Callable[..., Any], call: Callable[..., Any], params: dict[str, Any], debug_info: Any
    ) -> None:
        self.f, self.call, self.params, self.debug_info = f, call, params, debug_info

    @property
    def __name__(self) -> str:  # type: ignore[override]
        return getattr(self.f, "__name__", "<unnamed function>")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the function with all its transformations."""
        return self.call(*args, **{**self.params, **kwargs})

    def __repr__(self) -> str:
        return f"Wrapped function: {self.__name__}"


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """A `WrappedFun` of `f` without transformations.

    >>> wrap_init(lambda x: x + 1).call_wrapped(2)
    3
    """
    return WrappedFun(f, f, dict(params or {}), debug_info)


def _around(fun: WrappedFun, call: Callable[..., Any]) -> WrappedFun:
    return WrappedFun(fun.f, call, {}, fun.debug_info)


def transformation(gen: Callable[..., Any], fun: WrappedFun | None = None, *gen_args: Any) -> Any:
    """Apply a transformation, defined by a generator, to `fun`; without `fun`, return a decorator.

    >>> def negated(*args):
    ...     result = yield args, {}
    ...     yield -result
    >>> transformation(negated, wrap_init(max)).call_wrapped(1, 2)
    -2
    """
    if fun is None:
        return functools.partial(transformation, gen)
    inner = fun

    def call(*args: Any, **kwargs: Any) -> Any:
        steps = gen(*gen_args, *args, **kwargs)
        given, named = next(steps)
        return steps.send(inner.call_wrapped(*given, **named))

    return _around(fun, call)


def transformation_with_aux(gen: Callable[..., Any], fun: WrappedFun | None = None, *gen_args: Any) -> Any:
    """Like `transformation`, with auxiliary output: also returns a function that reads it.

    >>> def counted(*args):
    ...     result = yield args, {}
    ...     yield result, len(args)
    >>> run, count = transformation_with_aux(counted, wrap_init(max))
    >>> run.call_wrapped(1, 2), count()
    (2, 2)
    """
    if fun is None:
        return functools.partial(transformation_with_aux, gen)
    aux = Store()
    both = transformation(gen, fun, *gen_args)

    def call(*args: Any, **kwargs: Any) -> Any:
        out, more = both.call_wrapped(*args, **kwargs)
        aux.store(more)
        return out

    return _around(fun, call), lambda: aux.val


def transformation2(gen: Callable[..., Any], fun: WrappedFun | None = None, *gen_args: Any) -> Any:
    """Like `transformation`, with a plain function of the inner function and the arguments in place of a generator.

    >>> transformation2(lambda f, *args: -f(*args), wrap_init(max)).call_wrapped(1, 2)
    -2
    """
    if fun is None:
        return functools.partial(transformation2, gen)
    return _around(fun, functools.partial(gen, fun.call_wrapped, *gen_args))


def transformation_with_aux2(
    gen: Callable[..., Any],
    fun: WrappedFun | None = None,
    *gen_args: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> Any:
    """Like `transformation2`, with a `Store` as its second argument for auxiliary output.

    With `use_eq_store`, the store may be set again to an equal value. `unk_names` has no effect: functions keep their
    names.

    >>> def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> run, count = transformation_with_aux2(counted, wrap_init(max))
    >>> run.call_wrapped(1, 2), count()
    (2, 2)
    """
    if fun is None:
        return functools.partial(transformation_with_aux2, gen, use_eq_store=use_eq_store)
    del unk_names
    aux = Store(use_eq_store)
    return _around(fun, functools.partial(gen, fun.call_wrapped, aux, *gen_args)), lambda: aux.val


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """The auxiliary output of the one of two transformations that ran: (whether it is the first, output).

    >>> empty, full = Store(), Store()
    >>> full.store(3)
    >>> merge_linear_aux(lambda: empty.val, lambda: full.val)
    (False, 3)
    """
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


def cache(call: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """A version of `call`, a function of a wrapped function and arguments, that caches its results.

    >>> traced = cache(lambda fun, x: print("once") or fun.call_wrapped(x))
    >>> fun = wrap_init(abs)
    >>> traced(fun, -2), traced(fun, -2)
    once
    (2, 2)
    """
    known: dict[Any, tuple[Any, Any]] = {}

    def remembered(fun: WrappedFun, *args: Any) -> Any:
        key = (id(fun), *args)
        if key not in known:
            known[key] = fun, call(fun, *args)
        return known[key][1]

    return remembered
