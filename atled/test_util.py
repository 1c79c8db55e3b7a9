"""Checks of derivatives against finite differences: `check_grads`, `check_jvp`, `check_vjp`.

Each function checks the derivative along one random direction, which is the same in every run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atled.core import dtypes, tree
from atled.core.array import type_of
from atled.transforms.grad import jvp, vjp

EPS = 1e-4
# tolerances and step sizes, by the bits of the narrowest dtype among arguments and results
_TOLERANCES = {8: 1.0, 16: 1e-1, 32: 2e-3, 64: 1e-5}
_STEPS = {8: 0.5, 16: 5e-2, 32: 1e-3, 64: 1e-5}


def _moves(x: Any) -> bool:
    return type_of(x).kind in "fc"


def _bits(*trees: Any) -> int:
    widths = [dtypes.bits(dtypes.real_part(type_of(x).dtype)) for x in tree.leaves(trees) if _moves(x)]
    return max(8, min(widths, default=64))


def _direction(rng: np.random.RandomState, values: Any) -> Any:
    """A pytree of normal random numbers in the shapes and dtypes of `values`; float0 zeros for integers."""

    def one(x: Any) -> Any:
        t = type_of(x)
        if not _moves(x):
            return np.zeros(t.shape, dtypes.float0)
        drawn = rng.randn(*t.shape) + (1j * rng.randn(*t.shape) if t.kind == "c" else 0)
        return np.asarray(drawn).astype(t.dtype)

    return tree.map(one, values)


def _wide(x: Any) -> np.ndarray:
    """A NumPy array, converted to float64 or complex128 if inexact."""
    host = np.asarray(x)
    kind = type_of(x).kind
    return host.astype(np.complex128 if kind == "c" else np.float64) if kind in "fc" else host


def _difference(f: Callable[..., Any], args: Any, direction: Any, eps: float) -> Any:
    """The derivative of f at `args` along a direction, by central differences."""

    def moved(by: float) -> Any:
        add = lambda x, v: (_wide(x) + by * _wide(v)).astype(type_of(x).dtype) if _moves(x) else x  # noqa: E731
        return f(*tree.map(add, args, direction))

    one = lambda a, b: (_wide(a) - _wide(b)) / (2 * eps) if _moves(a) else np.zeros(type_of(a).shape)  # noqa: E731
    return tree.map(one, moved(eps), moved(-eps))


def _inner(xs: Any, ys: Any) -> float:
    """The sum of the real parts of the products of corresponding elements in two pytrees."""
    pairs = zip(tree.leaves(xs), tree.leaves(ys), strict=True)
    return float(sum([np.sum(np.real(_wide(x) * _wide(y))) for x, y in pairs if np.asarray(x).dtype != dtypes.float0]))


def _check_close(says: str, got: Any, want: Any, atol: float, rtol: float, err_msg: str) -> None:
    """Raise AssertionError for the first leaf that differs beyond the tolerance, with the element that differs most."""
    structure = tree.structure(got)
    if structure != tree.structure(want):
        raise AssertionError(
            f"{says}: the trees differ; got {structure}, expected {tree.structure(want)}. {err_msg}".rstrip()
        )
    for (path, a), b in zip(tree.leaves_with_path(got), tree.leaves(want), strict=True):
        if getattr(a, "dtype", None) == dtypes.float0 or not _moves(a):
            continue
        x, y = _wide(a), _wide(b)
        where = tree.keystr(path) or "the result"
        if x.shape != y.shape:
            raise AssertionError(
                f"{says}: shapes differ at {where}; got {x.shape}, expected {y.shape}. {err_msg}".rstrip()
            )
        if x.size == 0 or np.allclose(x, y, atol=atol, rtol=rtol, equal_nan=True):
            continue
        distance = np.nan_to_num(np.abs(x - y) - rtol * np.abs(y), nan=np.inf)
        worst = np.unravel_index(np.argmax(distance), x.shape)
        place = f"{where}[{', '.join(map(str, worst))}]" if x.ndim else where
        raise AssertionError(
            f"{says}: at {place}, got {x[worst]:.8g}, expected {y[worst]:.8g}; "
            f"the tolerance is {atol:g} + {rtol:g} * |expected|. {err_msg}".rstrip()
        )


def _tolerances(values: Any, atol: float | None, rtol: float | None) -> tuple[float, float]:
    usual = _TOLERANCES[_bits(values)]
    return usual if atol is None else atol, usual if rtol is None else rtol


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Check `f_jvp`, such as `functools.partial(jvp, f)`, which returns results and tangents, against finite
    differences.

    >>> import functools
    >>> import atled, atled.numpy as jnp
    >>> check_jvp(jnp.sin, functools.partial(atled.jvp, jnp.sin), (0.5,), eps=1e-3)
    """
    args = tuple(args)
    direction = _direction(np.random.RandomState(0), args)
    out, tangent = f_jvp(args, direction)
    atol, rtol = _tolerances((args, out), atol, rtol)
    _check_close("check_jvp, the value", out, f(*args), atol, rtol, err_msg)
    _check_close("check_jvp, the tangent", tangent, _difference(f, args, direction, eps), atol, rtol, err_msg)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = EPS,
    err_msg: str = "",
) -> None:
    """Check `f_vjp`, such as `functools.partial(vjp, f)`, which returns results and a pullback, against finite
    differences.

    >>> import functools
    >>> import atled, atled.numpy as jnp
    >>> check_vjp(jnp.sin, functools.partial(atled.vjp, jnp.sin), (0.5,), eps=1e-3)
    """
    args = tuple(args)
    rng = np.random.RandomState(0)
    direction = _direction(rng, args)
    out, pullback = f_vjp(*args)
    atol, rtol = _tolerances((args, out), atol, rtol)
    _check_close("check_vjp, the value", out, f(*args), atol, rtol, err_msg)
    cotangent = _direction(rng, out)
    back = pullback(cotangent)
    got, want = _inner(back, direction), _inner(cotangent, _difference(f, args, direction, eps))
    says = "check_vjp, the cotangents times a direction"
    _check_close(says, np.float64(got), np.float64(want), atol, rtol, err_msg)


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of f against finite differences, up to `order` and in all combinations of `modes`.

    >>> import atled.numpy as jnp
    >>> check_grads(jnp.sin, (0.5,), order=2)
    """
    args = tuple(args)
    step = _STEPS[_bits(args)] if eps is None else eps
    unknown = [m for m in modes if m not in ("fwd", "rev")]
    if unknown:
        raise ValueError(f"check_grads: the modes are 'fwd' and 'rev'; got {unknown}.")
    options = {"atol": atol, "rtol": rtol, "eps": step}

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, said: str) -> None:
        rng = np.random.RandomState(order)
        if "fwd" in modes:
            words = f"{said}jvp"
            check_jvp(f, functools.partial(jvp, f), args, **options, err_msg=f"in the {words}")
            if order > 1:
                direction = _direction(rng, args)
                ahead = lambda *xs: _inexact(jvp(f, xs, direction)[1])  # noqa: E731
                check(ahead, args, order - 1, f"{words} of the ")
        if "rev" in modes:
            words = f"{said}vjp"
            check_vjp(f, functools.partial(vjp, f), args, **options, err_msg=f"in the {words}")
            if order > 1:
                out = f(*args)
                cotangent = _direction(rng, out)
                back = lambda *xs: _inexact(vjp(f, *xs)[1](cotangent))  # noqa: E731
                check(back, args, order - 1, f"{words} of the ")

    check(f, args, order, "")


def _inexact(values: Any) -> list[Any]:
    """The floating and complex leaves of a pytree, which can have nonzero tangents."""
    return [x for x in tree.leaves(values) if getattr(x, "dtype", None) != dtypes.float0 and _moves(x)]


__all__ = ["check_grads", "check_jvp", "check_vjp"]
__dir__ = __all__.copy
