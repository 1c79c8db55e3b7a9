"""Rotations and their interpolation against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy_checks import check_derivatives, check_transforms, same

import atled
import atled.numpy as jnp
from atled.scipy.spatial.transform import Rotation, Slerp

transform = pytest.importorskip("scipy.spatial.transform")
R = np.random.RandomState(0)
Q = R.randn(5, 4)
Q /= np.linalg.norm(Q, axis=1, keepdims=True)
VECTORS = np.concatenate([R.randn(3, 3), np.zeros((1, 3)), [[1e-5, -2e-5, 0]], [[0, np.pi, 0]]])
ours, scipys = Rotation(jnp.asarray(Q, "float64")), transform.Rotation.from_quat(Q)


@pytest.fixture(autouse=True)
def double_precision():
    with atled.enable_x64():
        yield


def turned(got, want):
    """The same rotations; of q and -q either will do."""
    got, want = np.asarray(got.as_quat() if isinstance(got, Rotation) else got), want.as_quat()
    assert got.shape == want.shape
    same(np.abs(np.sum(got * want, axis=-1)), np.ones(got.shape[:-1]), 1e-14)


def test_forms():
    same(ours.as_matrix(), scipys.as_matrix())
    same(ours.as_mrp(), scipys.as_mrp())
    same(ours.as_rotvec(), scipys.as_rotvec())
    same(ours.as_rotvec(degrees=True), scipys.as_rotvec(degrees=True))
    same(ours.as_quat(canonical=True), scipys.as_quat(canonical=True))
    same(ours.as_quat(scalar_first=True), np.roll(Q, 1, axis=1))
    same(ours.magnitude(), scipys.magnitude())
    turned(Rotation.from_matrix(scipys.as_matrix()), scipys)
    turned(Rotation.from_matrix(scipys[0].as_matrix()), scipys[0])
    turned(Rotation.from_mrp(scipys.as_mrp()), scipys)
    turned(Rotation.from_quat(3 * Q), scipys)
    turned(Rotation.from_rotvec(VECTORS), transform.Rotation.from_rotvec(VECTORS))
    turned(Rotation.from_rotvec(VECTORS * 50, degrees=True), transform.Rotation.from_rotvec(VECTORS * 50, degrees=True))
    same(Rotation.from_rotvec(VECTORS[:5]).as_rotvec(), VECTORS[:5], 1e-14)
    for axis in np.eye(3):  # half a turn, where the trace is least
        half = transform.Rotation.from_rotvec(np.pi * axis)
        turned(Rotation.from_matrix(half.as_matrix()), half)
    assert Rotation.from_rotvec(np.zeros(3, np.float32)).quat.dtype == np.float32


@pytest.mark.filterwarnings("ignore:Gimbal lock")
def test_euler_angles():
    for seq in ("xyz", "zyx", "XYZ", "ZXZ", "yxy", "ZYX"):
        same(ours.as_euler(seq), scipys.as_euler(seq))
        angles = scipys.as_euler(seq, degrees=True)
        turned(Rotation.from_euler(seq, angles, degrees=True), scipys)
        for middle in (0.0, np.pi / 2, np.pi) if len(set(seq)) == 2 else (-np.pi / 2, np.pi / 2):  # parallel axes
            locked = transform.Rotation.from_euler(seq, [0.3, middle, 0.4])
            got = Rotation(jnp.asarray(locked.as_quat())).as_euler(seq)
            turned(Rotation.from_euler(seq, got).as_quat(), locked)
            same(got, locked.as_euler(seq), 1e-7)
    turned(Rotation.from_euler("y", 0.3), transform.Rotation.from_euler("y", 0.3))
    turned(Rotation.from_euler("Y", [[0.3], [0.4]]), transform.Rotation.from_euler("Y", [[0.3], [0.4]]))
    turned(Rotation.from_euler("xz", [0.3, 0.4]), transform.Rotation.from_euler("xz", [0.3, 0.4]))
    same(ours.as_euler("xyz", degrees=True), scipys.as_euler("xyz", degrees=True))


def test_what_rotations_do():
    turned(ours * ours[::-1], scipys * scipys[::-1])
    turned(ours * ours[0], scipys * scipys[0])
    turned(ours.inv(), scipys.inv())
    turned(Rotation.concatenate([ours[:2], ours[3:]]), transform.Rotation.concatenate([scipys[:2], scipys[3:]]))
    turned(ours.mean(), scipys.mean())
    turned(ours.mean(weights=np.arange(5)), scipys.mean(weights=np.arange(5)))
    turned(Rotation.identity(), transform.Rotation.identity())
    turned(Rotation.identity(3), transform.Rotation.identity(3))
    v = R.randn(5, 3)
    for inverse in (False, True):
        same(ours.apply(v, inverse), scipys.apply(v, inverse))
        same(ours.apply(v[0], inverse), scipys.apply(v[0], inverse))
        same(ours[0].apply(v, inverse), scipys[0].apply(v, inverse))
    assert len(ours) == 5 and ours[0].single and not ours.single and repr(ours[0]).startswith("Rotation(quat=")


def test_slerp():
    times = np.array([0.0, 1.0, 1.5, 4.0, 5.0])
    got, want = Slerp.init(times, ours), transform.Slerp(times, scipys)
    for at in (np.array([0.0, 0.3, 1.0, 1.2, 3.9, 5.0]), np.float64(2.5)):
        turned(got(at), want(at))
    turned(atled.jit(lambda s, t: s(t))(got, 0.7), want(0.7))


def test_derivatives_and_transforms():
    to_matrix = atled.jit(lambda v: Rotation.from_rotvec(v).as_matrix())
    check_derivatives(to_matrix, VECTORS[0])
    check_derivatives(to_matrix, np.zeros(3))  # also where nothing turns
    check_derivatives(atled.jit(lambda v: Rotation.from_rotvec(v).as_rotvec()), np.zeros(3), order=1)
    check_derivatives(atled.jit(lambda q: Rotation.from_quat(q).as_euler("xyz")), Q[0], order=1)
    check_derivatives(atled.jit(lambda m: Rotation.from_matrix(m).as_mrp()), scipys[1].as_matrix(), order=1)
    check_transforms(lambda q: (Rotation(q) * Rotation(q)).as_rotvec(), Q)
    same(atled.vmap(lambda r, v: r.apply(v))(ours, R.randn(5, 3)).shape, np.array([5, 3]))


COMPLAINTS = [
    (lambda: Rotation.from_euler("xx", [0.1, 0.2]), ValueError, "Rotation.from_euler: neighbouring axes must differ"),
    (lambda: Rotation.from_euler("xY", [0.1, 0.2]), ValueError, "Rotation.from_euler: axes are one to three of"),
    (lambda: Rotation.from_euler("xyz", [0.1, 0.2]), ValueError, r"Rotation.from_euler: the last axes must have"),
    (lambda: ours.as_euler("xy"), ValueError, "Rotation.as_euler: axes are three of"),
    (lambda: Rotation.from_quat(np.ones(3)), ValueError, r"Rotation.from_quat: the last axes must have lengths \(4,\)"),
    (lambda: Rotation.from_matrix(np.ones(3)), ValueError, "Rotation.from_matrix: the last axes"),
    (lambda: ours.mean(weights=np.ones(2)), ValueError, "Rotation.mean: one weight for each of 5"),
    (lambda: ours[0][0], TypeError, "Rotation: a single rotation cannot be indexed"),
    (lambda: len(ours[0]), TypeError, "Rotation: a single rotation has no length"),
    (lambda: Rotation.random(None), NotImplementedError, "Rotation.random: not supported"),
    (lambda: Slerp.init(np.arange(3), ours), ValueError, "Slerp: one time for each of 5"),
    (lambda: Slerp.init(np.arange(1), ours[:1]), ValueError, "Slerp: at least two rotations"),
    (lambda: Slerp.init(np.arange(5), Q), TypeError, "Slerp: rotations must be a Rotation"),
]


@pytest.mark.parametrize("call, kind, message", COMPLAINTS)
def test_complaints(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
