"""Rotations in three dimensions, as unit quaternions (x, y, z, w), and interpolation between them.

Conversions are differentiable wherever SciPy's definitions are, including at the identity rotation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from atled import numpy as jnp
from atled.core import tree_registry
from atled.core.array import type_of
from atled.numpy.creation import asarray
from atled.numpy.promotion import cast, inexact_dtype
from atled.staging.jit import library_function

__all__ = ["Rotation", "Slerp"]
__dir__ = __all__.copy


def _floating(name: str, x: Any, *last: int) -> Any:
    """x as a floating-point array; raises unless its last axes have the lengths `last`."""
    x = asarray(x)
    t = type_of(x)
    if t.shape[max(t.ndim - len(last), 0) :] != last:
        raise ValueError(f"Rotation.{name}: the last axes must have lengths {last}; got {t}.")
    return cast(x, inexact_dtype(t.dtype))


def _length(v: Any) -> Any:
    """The length of the vectors on the last axis; its derivative is zero at the zero vector."""
    squares = jnp.sum(v * v, axis=-1)
    is_zero = squares == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, squares)))


@library_function
def _normalized(q: Any) -> Any:
    return q / jnp.sqrt(jnp.sum(q * q, axis=-1, keepdims=True))


@library_function
def _product(p: Any, q: Any) -> Any:
    u, v, a, b = p[..., :3], q[..., :3], p[..., 3:], q[..., 3:]
    vector = a * v + b * u + jnp.cross(u, v)
    return _normalized(jnp.concatenate([vector, a * b - jnp.sum(u * v, axis=-1, keepdims=True)], axis=-1))


# -- Euler angles -----------------------------------------------------------------------------------------------------


def _axes(name: str, seq: str, counts: Sequence[int]) -> tuple[list[int], bool]:
    """The indices of the axes that letters name, and whether the axes are fixed (lower case) or move with the body."""
    is_fixed = re.fullmatch("[xyz]{1,3}", seq) is not None
    if not (is_fixed or re.fullmatch("[XYZ]{1,3}", seq)) or len(seq) not in counts:
        many = "three" if list(counts) == [3] else "one to three"
        raise ValueError(f"Rotation.{name}: axes are {many} of 'xyz', or of 'XYZ'; got {seq!r}.")
    axes = ["xyz".index(c) for c in seq.lower()]
    if any([a == b for a, b in itertools.pairwise(axes)]):
        raise ValueError(f"Rotation.{name}: neighbouring axes must differ; got {seq!r}.")
    return axes, is_fixed


@library_function(static=("axes", "is_fixed", "degrees"))
def _from_euler(angles: Any, axes: tuple[int, ...], is_fixed: bool, degrees: bool) -> Any:
    half = (jnp.deg2rad(angles) if degrees else angles) / 2
    out: Any = None
    for i, axis in enumerate(axes):
        sine, cosine = jnp.sin(half[..., i]), jnp.cos(half[..., i])
        nothing = jnp.zeros_like(sine)
        turn = jnp.stack([*[sine if k == axis else nothing for k in range(3)], cosine], axis=-1)
        out = turn if out is None else _product(turn, out) if is_fixed else _product(out, turn)
    return out


@library_function(static=("axes", "is_fixed", "degrees"))
def _as_euler(q: Any, axes: tuple[int, ...], is_fixed: bool, degrees: bool) -> Any:
    """The Euler angles of quaternions: E. Bernardes and S. Viollet, Quaternion to Euler angles conversion (2022)."""
    i, j, k = axes if is_fixed else axes[::-1]
    is_symmetric = i == k
    k = 3 - i - j if is_symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    w, u, v, z = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    a, b, c, d = (w, u, v, z) if is_symmetric else (w - v, u + z, v + w, z - u)
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    # if the first and the last axis are parallel, only the sum or the difference of their angles is determined
    is_zero, is_half = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
    first, last = half_sum - half_difference, half_sum + half_difference
    alone = jnp.where(is_zero, 2 * half_sum, 2 * half_difference * (-1 if is_fixed else 1))
    is_locked, nothing = is_zero | is_half, jnp.zeros_like(alone)
    out = [first, middle, last] if is_fixed else [last, middle, first]
    out = [jnp.where(is_locked, alone, out[0]), middle, jnp.where(is_locked, nothing, out[2])]
    if not is_symmetric:
        third = 2 if is_fixed else 0
        out[third] = out[third] * sign
        out[1] = out[1] - np.pi / 2
    angles = jnp.stack(out, axis=-1)
    angles = jnp.where(angles > np.pi, angles - 2 * np.pi, jnp.where(angles < -np.pi, angles + 2 * np.pi, angles))
    return jnp.rad2deg(angles) if degrees else angles


# -- other forms ------------------------------------------------------------------------------------------------------


@library_function
def _as_matrix(q: Any) -> Any:
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


@library_function
def _from_matrix(m: Any) -> Any:
    """The quaternions of matrices, by the best conditioned of four formulas: it divides by the largest component."""
    at = lambda i, j: m[..., i, j]  # noqa: E731
    trace = at(0, 0) + at(1, 1) + at(2, 2)
    turn = [at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1)]
    forms = []
    for i in range(3):
        form = [1 - trace + 2 * at(i, i) if k == i else at(i, k) + at(k, i) for k in range(3)]
        forms.append(jnp.stack([*form, turn[i]], axis=-1))
    forms.append(jnp.stack([*turn, 1 + trace], axis=-1))
    best = jnp.argmax(jnp.stack([at(0, 0), at(1, 1), at(2, 2), trace], axis=-1), axis=-1)
    chosen = jnp.take_along_axis(jnp.stack(forms, axis=-2), best[..., None, None], axis=-2)[..., 0, :]
    return _normalized(chosen)


@library_function(static=("degrees",))
def _from_rotvec(v: Any, degrees: bool) -> Any:
    v = jnp.deg2rad(v) if degrees else v
    squares = jnp.sum(v * v, axis=-1, keepdims=True)
    is_small = squares < 1e-6
    angle = jnp.sqrt(jnp.where(is_small, 1, squares))
    scale = jnp.where(is_small, 0.5 - squares / 48 + squares**2 / 3840, jnp.sin(angle / 2) / angle)
    cosine = jnp.where(is_small, 1 - squares / 8 + squares**2 / 384, jnp.cos(angle / 2))
    return jnp.concatenate([scale * v, cosine], axis=-1)


@library_function(static=("degrees",))
def _as_rotvec(q: Any, degrees: bool) -> Any:
    q = jnp.where(q[..., 3:] < 0, -q, q)
    v, w = q[..., :3], q[..., 3:]
    squares = jnp.sum(v * v, axis=-1, keepdims=True)
    is_small = squares < 1e-6
    size = jnp.sqrt(jnp.where(is_small, 1, squares))
    whole = jnp.where(is_small, w, 1)
    ratio = jnp.where(is_small, squares, 0) / whole**2
    scale = jnp.where(is_small, 2 / whole * (1 - ratio / 3 + ratio**2 / 5), 2 * jnp.arctan2(size, w) / size)
    return (jnp.rad2deg(scale) if degrees else scale) * v


@library_function
def _from_mrp(v: Any) -> Any:
    total = jnp.sum(v * v, axis=-1, keepdims=True) + 1
    return jnp.concatenate([2 * v, 2 - total], axis=-1) / total


@library_function
def _as_mrp(q: Any) -> Any:
    sign = jnp.where(q[..., 3:] < 0, -1, 1)
    return sign * q[..., :3] / (1 + sign * q[..., 3:])


@library_function
def _canonical(q: Any) -> Any:
    """q or -q: the first nonzero component, in the order w, x, y, z, is positive."""
    is_negative = q[..., 2] < 0
    for k in (1, 0, 3):
        is_negative = (q[..., k] < 0) | ((q[..., k] == 0) & is_negative)
    return jnp.where(is_negative[..., None], -q, q)


@library_function
def _magnitude(q: Any) -> Any:
    return 2 * jnp.arctan2(_length(q[..., :3]), jnp.abs(q[..., 3]))


@library_function(static=("inverse",))
def _applied(q: Any, v: Any, inverse: bool) -> Any:
    m = _as_matrix(q)
    m = jnp.swapaxes(m, -1, -2) if inverse else m
    return jnp.sum(m * v[..., None, :], axis=-1)


@library_function
def _mean(q: Any, weights: Any) -> Any:
    return jnp.linalg.eigh(jnp.matmul(weights * q.T, q, precision="highest"))[1][:, -1]


class Rotation:
    """A rotation, or an array of rotations: `quat` holds unit quaternions (x, y, z, w) on its last axis.

    >>> import atled.numpy as jnp
    >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
    >>> turn.apply(jnp.array([1.0, 0.0, 0.0])).round(3) + 0.0
    Array([0., 1., 0.], dtype=float32)
    """

    __slots__ = ("quat",)

    def __init__(self, quat: Any) -> None:
        self.quat = quat

    def __repr__(self) -> str:
        return f"Rotation(quat={self.quat!r})"

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Concatenate several arrays of rotations."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """From angles of successive rotations about fixed axes (lower-case letters) or body axes (upper-case)."""
        axes, is_fixed = _axes("from_euler", seq, (1, 2, 3))
        x = jnp.atleast_1d(asarray(angles))
        x = _floating("from_euler", x, len(axes))
        return cls(_from_euler(x, tuple(axes), is_fixed, bool(degrees)))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """From orthogonal matrices with determinant 1."""
        return cls(_from_matrix(_floating("from_matrix", matrix, 3, 3)))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """From modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
        return cls(_from_mrp(_floating("from_mrp", mrp, 3)))

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """From quaternions (x, y, z, w) of any nonzero length."""
        return cls(_normalized(_floating("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """From rotation vectors: the axis times the angle."""
        return cls(_from_rotvec(_floating("from_rotvec", rotvec, 3), bool(degrees)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The identity rotation, or an array of `num` identity rotations."""
        quat = jnp.asarray([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Not supported: use `from_quat` of normally distributed quaternions, which are uniform as rotations."""
        raise NotImplementedError(
            "Rotation.random: not supported.\n  try: Rotation.from_quat(random.normal(key, (num, 4)))"
        )

    @property
    def single(self) -> bool:
        """Whether this is a single rotation rather than an array of rotations."""
        return type_of(self.quat).ndim == 1

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Rotation: a single rotation cannot be indexed; only an array of rotations can.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Rotation: a single rotation has no length; only an array of rotations has.")
        return type_of(self.quat).shape[0]

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other: Rotation) -> Rotation:
        """The rotation that applies `other` first, then this one."""
        return Rotation(_product(self.quat, other.quat))

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """Vectors rotated by this rotation, or by its inverse."""
        return _applied(self.quat, _floating("apply", vectors, 3), bool(inverse))

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """The Euler angles that `from_euler` accepts; where they are not unique, the third is zero."""
        axes, is_fixed = _axes("as_euler", seq, [3])
        return _as_euler(self.quat, tuple(axes), is_fixed, bool(degrees))

    def as_matrix(self) -> Any:
        """Orthogonal matrices."""
        return _as_matrix(self.quat)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
        return _as_mrp(self.quat)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """Quaternions (x, y, z, w), or (w, x, y, z); with `canonical`, the sign is chosen so that w is not negative."""
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Rotation vectors: the axis times the angle."""
        return _as_rotvec(self.quat, bool(degrees))

    def inv(self) -> Rotation:
        """The inverse rotation."""
        return Rotation(self.quat * np.asarray([-1, -1, -1, 1], type_of(self.quat).dtype))

    def magnitude(self) -> Any:
        """The angle, from 0 to pi."""
        return _magnitude(self.quat)

    def mean(self, weights: Any = None) -> Rotation:
        """The mean rotation, which minimizes the weighted sum of squared distances to all rotations."""
        n, dtype = len(self), type_of(self.quat).dtype
        w = jnp.ones(n, dtype) if weights is None else cast(asarray(weights), dtype)
        if type_of(w).shape != (n,):
            raise ValueError(f"Rotation.mean: one weight for each of {n} rotations is needed; got {type_of(w)}.")
        return Rotation(_mean(self.quat, w))


class Slerp:
    """Spherical linear interpolation between successive rotations, as a function of time; made by `init`.

    >>> import atled.numpy as jnp
    >>> ends = Rotation.from_rotvec(jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> turning = Slerp.init(jnp.array([0.0, 2.0]), ends)
    >>> turning(1.0).as_rotvec()
    Array([0. , 0. , 0.5], dtype=float32)
    """

    __slots__ = ("rotations", "rotvecs", "timedelta", "times")

    def __init__(self, times: Any, timedelta: Any, rotations: Rotation, rotvecs: Any) -> None:
        self.times, self.timedelta, self.rotations, self.rotvecs = times, timedelta, rotations, rotvecs

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Interpolation between rotations at ascending times.

        >>> import atled.numpy as jnp
        >>> ends = Rotation.from_rotvec(jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
        >>> Slerp.init(jnp.array([0.0, 2.0]), ends)(1.0).as_rotvec()
        Array([0. , 0. , 0.5], dtype=float32)
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp: rotations must be a Rotation; got {type(rotations).__name__}.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("Slerp: at least two rotations are needed.")
        at = cast(asarray(times), type_of(rotations.quat).dtype)
        if type_of(at).shape != (len(rotations),):
            raise ValueError(f"Slerp: one time for each of {len(rotations)} rotations is needed; got {type_of(at)}.")
        first = rotations[:-1]
        return cls(at, at[1:] - at[:-1], first, (first.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotation at a time, or at an array of times."""
        at = cast(asarray(times), type_of(self.times).dtype)
        if type_of(at).ndim > 1:
            raise ValueError(f"Slerp: times have at most one axis; got {type_of(at)}.")
        return Rotation(_at_times(self.times, self.timedelta, self.rotations.quat, self.rotvecs, at))


@library_function
def _at_times(times: Any, steps: Any, quat: Any, rotvecs: Any, at: Any) -> Any:
    k = jnp.clip(jnp.searchsorted(times, at) - 1, 0, type_of(steps).shape[0] - 1)
    share = (at - times[k]) / steps[k]
    return _product(quat[k], _from_rotvec(rotvecs[k] * share[..., None], False))


def _fields(cls: type, *names: str) -> None:
    """Register a class as a pytree node whose children are the fields `names`."""

    def unflatten(_: Any, children: Sequence[Any]) -> Any:
        out = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            setattr(out, name, child)
        return out

    tree_registry.register_node(cls, lambda x: (tuple([getattr(x, name) for name in names]), None), unflatten)


_fields(Rotation, "quat")
_fields(Slerp, "times", "timedelta", "rotations", "rotvecs")
