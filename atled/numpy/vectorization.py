"""Higher-order functions: `vectorize`, `apply_along_axis` and `apply_over_axes`, by `vmap` instead of a loop."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from atled.core import tree
from atled.core.array import Array, ArrayLike, describe, type_of
from atled.core.axes import check_axis
from atled.numpy.creation import asarray
from atled.numpy.promotion import broadcast_shapes
from atled.ops import shape
from atled.transforms.vmap import vmap

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]

CoreAxes = tuple[str, ...]
_ARGUMENT = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*,?\s*)?\)"
_LIST = rf"{_ARGUMENT}(?:\s*,\s*{_ARGUMENT})*"
_SIGNATURE = re.compile(rf"\s*({_LIST})?\s*->\s*({_LIST})\s*")


def _parse(signature: str) -> tuple[list[CoreAxes], list[CoreAxes]]:
    """The names of the core axes of each argument and each result."""
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise ValueError(f"vectorize: a signature looks like '(n,m),(m)->(n)'; got {signature!r}.")
    sides = [re.findall(_ARGUMENT, text or "") for text in match.groups()]
    left, right = ([tuple(re.findall(r"\w+", part)) for part in side] for side in sides)
    return left, right


def _bind_lengths(lengths: dict[str, int], axes: CoreAxes, x: Any, signature: str, what: str) -> None:
    """Bind each core axis to its length; raise if it differs from an earlier one."""
    t = type_of(x)
    if t.ndim < len(axes):
        raise ValueError(
            f"vectorize: {what} must have the core axes ({','.join(axes)}) of signature {signature!r}; got {t}."
        )
    for name, n in zip(axes, t.shape[t.ndim - len(axes) :], strict=True):
        want = int(name) if name.isdigit() else lengths.setdefault(name, n)
        if want != n:
            raise ValueError(
                f"vectorize: core dimension {name!r} of signature {signature!r} must have the same length "
                f"everywhere; got {want} before, and {n} in {what}, {t}."
            )


def _checked(
    f: Callable[..., Any], lengths: dict[str, int], results: list[CoreAxes], signature: str
) -> Callable[..., Any]:
    """f, with the shapes of its results checked against the signature."""

    def run(*args: Any) -> Any:
        out = f(*args)
        if len(results) > 1 and not (isinstance(out, (tuple, list)) and len(out) == len(results)):
            got = f"{len(out)} results" if isinstance(out, (tuple, list)) else describe(out)
            raise TypeError(f"vectorize: signature {signature!r} has {len(results)} results, as a tuple; got {got}.")
        known = dict(lengths)
        for i, (x, axes) in enumerate(zip(out if len(results) > 1 else [out], results, strict=True)):
            if type_of(x).ndim != len(axes):
                raise ValueError(
                    f"vectorize: result {i} must have the core axes ({','.join(axes)}) of signature {signature!r}; "
                    f"got {type_of(x)}."
                )
            _bind_lengths(known, axes, x, signature, f"result {i}")
        return out

    return run


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Any:
    """A function of scalars, or of arrays with the signature's core axes, as a function that broadcasts its arguments.

    Arguments in `excluded`, by position or name, are passed to the function unchanged. Keyword arguments that are not
    excluded are vectorized after the positional ones, as in NumPy. `vmap` batches the function; there is no loop.

    >>> import atled.numpy as jnp
    >>> product = jnp.vectorize(lambda a, b: a @ b, signature="(n,m),(m)->(n)")
    >>> product(jnp.ones((5, 1, 2, 3)), jnp.ones((4, 3))).shape
    (5, 4, 2)
    """
    excluded_set = frozenset(excluded)
    if any(not isinstance(e, (int, str)) for e in excluded_set):
        raise TypeError(f"vectorize: excluded must hold positions and names of arguments; got {set(excluded_set)}.")
    if any(isinstance(e, int) and e < 0 for e in excluded_set):
        raise ValueError(f"vectorize: positions in excluded must not be negative; got {set(excluded_set)}.")
    parsed = None if signature is None else _parse(signature)

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        positions = [i for i, x in enumerate(args) if i not in excluded_set and x is not None]
        names = [k for k, x in kwargs.items() if k not in excluded_set and x is not None]
        given = [asarray(x) for x in (*[args[i] for i in positions], *[kwargs[k] for k in names])]

        def call(*values: Any) -> Any:
            rest = list(args)
            for i, x in zip(positions, values, strict=False):
                rest[i] = x
            return pyfunc(*rest, **{**kwargs, **dict(zip(names, values[len(positions) :], strict=True))})

        if parsed is None or signature is None:
            return _spread(call, given, [()] * len(given))
        absent = [i for i, x in enumerate(args) if i not in excluded_set and x is None]
        axes = _present_axes(
            parsed[0],
            len(args) - sum([i in excluded_set for i in range(len(args))]) + len(names),
            absent,
            excluded_set,
            signature,
        )
        lengths: dict[str, int] = {}
        for i, (x, core) in enumerate(zip(given, axes, strict=True)):
            _bind_lengths(lengths, core, x, signature, f"argument {i}")
        return _spread(_checked(call, lengths, parsed[1], signature), given, axes)

    return vectorized


def _present_axes(
    axes: list[CoreAxes], count: int, absent: list[int], kept: Collection[Any], signature: str
) -> list[CoreAxes]:
    """The core axes of the arguments that are not None."""
    if len(axes) != count:
        raise TypeError(f"vectorize: signature {signature!r} has {len(axes)} arguments; got {count}.")
    numbers = [i - sum([k in kept for k in range(i)]) for i in absent]  # positions in the signature
    for i in numbers:
        if axes[i]:
            raise ValueError(f"vectorize: argument {i} must have the core axes ({','.join(axes[i])}); got None.")
    return [a for i, a in enumerate(axes) if i not in numbers]


def _spread(f: Callable[..., Any], args: Sequence[Any], axes: Sequence[CoreAxes]) -> Any:
    """Map a function over the leading axes of its arguments, which broadcast."""
    leads = [x.shape[: x.ndim - len(a)] for x, a in zip(args, axes, strict=True)]
    lead = broadcast_shapes(*leads) if leads else ()
    full = [(1,) * (len(lead) - len(s)) + s for s in leads]
    mapped = [d for d, n in enumerate(lead) if n != 1]
    for d in reversed(mapped):  # vmap passes an argument without this axis to all examples
        f = vmap(f, in_axes=tuple([0 if s[d] != 1 else None for s in full]))
    out = f(
        *[shape.reshape(x, (*[n for n in s if n != 1], *x.shape[len(s) :])) for x, s in zip(args, leads, strict=True)]
    )
    if len(mapped) == len(lead):
        return out
    return tree.map(lambda x: shape.reshape(x, (*lead, *type_of(x).shape[len(mapped) :])), out)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """Apply a function to each 1-d slice along an axis; the axes of its result replace that axis.

    >>> import atled.numpy as jnp
    >>> jnp.apply_along_axis(jnp.cumsum, 1, jnp.ones((2, 3)))
    Array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    """
    x = asarray(arr)
    at = check_axis("apply_along_axis", axis, x.ndim)
    rows = shape.move_axis(x, at, x.ndim - 1)
    lead = type_of(rows).shape[:-1]
    f = lambda row: func1d(row, *args, **kwargs)  # noqa: E731
    for _ in lead:
        f = vmap(f)

    def back(out: Any) -> Any:
        ndim = type_of(out).ndim
        order = [*range(at), *range(len(lead), ndim), *range(at, len(lead))]
        return shape.transpose(out, order)

    return tree.map(back, f(rows))


def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """A function of an array and an axis, such as `sum`, applied along several axes in turn; the axes are kept.

    >>> import atled.numpy as jnp
    >>> apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), (0, 2))
    Array([[[8.],
            [8.],
            [8.]]], dtype=float32)
    """
    x = asarray(a)
    for axis in [axes] if isinstance(axes, int) else axes:
        at = check_axis("apply_over_axes", axis, x.ndim)
        out = asarray(func(x, at))
        if out.ndim == x.ndim - 1:
            out = shape.reshape(out, (*out.shape[:at], 1, *out.shape[at:]))
        if out.ndim != x.ndim:
            raise ValueError(
                "apply_over_axes: the function must keep all axes, or drop only the given one; "
                f"got {out.type} for {x.type}."
            )
        x = out
    return x
