"""`qdwh`: the polar decomposition by dynamically weighted Halley iterations.

Each step maps the singular values s to s (a + b s^2) / (1 + c s^2), with weights that are optimal for singular values
from `low` to 1: Y. Nakatsukasa, Z. Bai and F. Gygi, SIAM J. Matrix Anal. Appl. 31 (2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import atled.numpy as jnp
from atled.core import dtypes, errors
from atled.core.array import Array, ArrayLike, type_of
from atled.core.trace import bind
from atled.higher_order.cond import cond
from atled.higher_order.while_loop import while_loop
from atled.numpy.creation import asarray
from atled.ops import linalg, matrix_ops
from atled.staging.jit import library_function

_STEPS = 10  # six are enough if the smallest singular value is machine epsilon
_STABLE = 100.0  # above this weight, a step needs the QR decomposition


def _weights(low: float, steps: int) -> np.ndarray:
    """A row for each step: a, b, c, and the smallest singular value before the step, which is `low` at first."""
    rows = []
    for _ in range(max(steps, 1)):
        square = low * low
        d = float(np.cbrt(4 * (1 - square) / (square * square)))
        root = np.sqrt(1 + d)
        a = root + 0.5 * np.sqrt(max(8 - 4 * d + 8 * (2 - square) / (square * root), 0.0))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        rows.append((a, b, c, low))
        low = min(low * (a + b * square) / (1 + c * square), 1.0)
    return np.array(rows)


def _by_qr(x: Any, a: Any, b: Any, c: Any) -> Any:
    m, n = x.shape
    q, _ = bind(linalg.Qr(False), jnp.concatenate([jnp.sqrt(c).astype(x.dtype) * x, jnp.eye(n, dtype=x.dtype)]))
    factor = ((a - b / c) / jnp.sqrt(c)).astype(x.dtype)
    return (b / c).astype(x.dtype) * x + factor * (q[:m] @ matrix_ops.adjoint(q[m:]))


def _by_cholesky(x: Any, a: Any, b: Any, c: Any) -> Any:
    n = x.shape[1]
    z = jnp.eye(n, dtype=x.dtype) + c.astype(x.dtype) * (matrix_ops.adjoint(x) @ x)
    root = bind(linalg.Cholesky(), z)
    y = matrix_ops.triangular_solve(root, x, False, True, "C", False)
    y = matrix_ops.triangular_solve(root, y, False, True, "N", False)
    return (b / c).astype(x.dtype) * x + (a - b / c).astype(x.dtype) * y


@library_function(static=("steps", "eps"))
def _qdwh(x: Any, m: Any, n: Any, steps: int, eps: float) -> tuple[Any, ...]:
    rows, columns = (jnp.arange(k) for k in x.shape)
    x = jnp.where((rows[:, None] < m) & (columns[None, :] < n), x, 0)
    real = dtypes.real_part(type_of(x).dtype)
    # an upper bound of the largest singular value: sqrt(|x|_1 |x|_inf)
    size = jnp.sqrt(jnp.max(jnp.sum(jnp.abs(x), 0)) * jnp.max(jnp.sum(jnp.abs(x), 1)))
    start = x / jnp.where(size == 0, 1, size).astype(x.dtype)
    close = (4 * eps) ** (1 / 3)

    weights = jnp.asarray(_weights(float(np.finfo(real).eps), steps), real)

    def goes_on(state: Any) -> Any:
        _, count, is_close = state
        return jnp.logical_not(is_close) & (count < steps)

    def step(state: Any) -> Any:
        x, count, _ = state
        a, b, c, low = weights[count]
        new = cond(c > _STABLE, _by_qr, _by_cholesky, x, a, b, c)
        is_still = jnp.linalg.norm(new - x) <= close * jnp.linalg.norm(new)
        return new, count + 1, is_still & (low >= 1 - close)

    u, count, is_close = while_loop(goes_on, step, (start, jnp.int32(0), jnp.asarray(False)))
    h = matrix_ops.adjoint(u) @ x
    return u, (h + matrix_ops.adjoint(h)) / 2, count, is_close


def qdwh(
    x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """The polar factors u and h of x = u h, the number of steps, and whether they converged.

    u has orthonormal columns, h is Hermitian and positive semidefinite. Steps end when x changes by less than
    (4 eps)^(1/3) of its norm. Elements outside `dynamic_shape` are ignored.

    >>> import atled.numpy as jnp
    >>> u, h, *_ = qdwh(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> u.round() + 0.0
    Array([[ 0., -1.],
           [ 1.,  0.]], dtype=float32)
    """
    t = type_of(x)
    if t.kind not in "fc" or dtypes.bits(dtypes.real_part(t.dtype)) < 32:
        raise TypeError(errors.explained(f"qdwh: float32, float64, complex64 or complex128 are needed; got {t}."))
    if t.ndim != 2 or t.shape[0] < t.shape[1]:
        raise ValueError(
            errors.explained(f"qdwh: a matrix with no more columns than rows is needed; got {t}.", "qdwh(x.T).")
        )
    m, n = t.shape if dynamic_shape is None else dynamic_shape
    steps = _STEPS if max_iterations is None else int(max_iterations)
    precision = float(np.finfo(dtypes.real_part(t.dtype)).eps) if eps is None else float(eps)
    return _qdwh(asarray(x), m, n, steps, precision)
