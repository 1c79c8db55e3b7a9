"""`find_nans`: the op, line, loop step and vmap lane where the first NaN of a function arises, forward or backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from atled.core import errors, tree
from atled.core.settings import scope
from atled.engine.array import DeviceArray, as_array, suspect
from atled.engine.nan_watch import Finding, is_bad, known_origin, watched


def find_nans(f: Callable[..., Any], *, infs: bool = False) -> Callable[..., Finding | None]:
    """A function that calls `f` and returns the place where the first NaN in its results arises, or None.

    `f` runs op by op, without `jit`; loops run in Python. A NaN that does not reach a result, for example because
    a `where` discards it, is not reported. With `infs`, infinities are reported too.

    >>> import atled, atled.numpy as jnp
    >>> def loss(x):
    ...     return jnp.sum(jnp.log(x))
    >>> found = find_nans(atled.jit(loss))(jnp.array([1.0, -1.0]))
    >>> found.op, found.what, found.operands
    ('log', 'nan', ('f32[2] from -1.0 to 1.0',))
    """

    def run(*args: Any, **kwargs: Any) -> Finding | None:
        try:
            return _find(f, args, kwargs, True, infs)
        except Exception as error:
            raise errors.for_user(error)  # noqa: B904

    run.__name__ = getattr(f, "__name__", "f")
    run.__wrapped__ = f  # type: ignore[attr-defined]
    return run


def _find(f: Callable[..., Any], args: Any, kwargs: Any, nans: bool, infs: bool) -> Finding | None:
    args, kwargs = tree.map(lambda x: as_array(x) if isinstance(x, np.ndarray) else x, (args, kwargs))
    with watched(nans, infs) as seen:
        for path, x in tree.leaves_with_path((args, kwargs)):
            if isinstance(x, DeviceArray):
                seen.mark_argument(tree.keystr(path[1:]), x)
        return seen.origin(tree.leaves(f(*args, **kwargs)))


def check_results(shared: Any, call: Any, results: Any) -> None:
    """Raise if a result of a jitted function contains NaN (or infinity); reruns the function op by op for the origin.

    For a library function, only mark the results: a selection may discard them later.
    """
    nans, infs = scope().debug_nans, scope().debug_infs
    bad = [x for x in tree.leaves(results) if is_bad(x, nans, infs) is not None]
    if not bad:
        return
    origin = known_origin(call.leaves)
    if origin is None and not any([isinstance(x, DeviceArray) and x.is_deleted() for x in call.leaves]):
        origin = _find(shared.f, call.args, call.kwargs, nans, infs)
    if origin is None:
        what = "nan" if nans else "inf"
        origin = f"{shared.name}: a result has a {what}, which does not occur when the function runs op by op."
    if not shared.options.is_library:
        raise FloatingPointError(str(origin))
    for x in bad:
        suspect(x, origin)
