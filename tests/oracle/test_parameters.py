"""Parameters of JAX's functions that NumPy's do not have, or that few use: values as JAX gives them."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy

jax = pytest.importorskip("jax")

X = np.asarray([[1.0, np.nan, 3.0], [4.0, 5.0, -6.0]], np.float32)
Y = np.asarray([[2.0, 7.0, 1.0], [-4.0, 0.5, 6.5]], np.float32)
M = np.asarray([[True, True, False], [True, False, True]])
P = np.asarray([[0, -1], [2, 5]], np.int32)
NUMPY = {
    "take_along_axis fill_value": lambda np_: np_.take_along_axis(Y, P, 1, fill_value=9.0),
    "take_along_axis mode and fill_value": lambda np_: np_.take_along_axis(Y, P, 1, "fill", -1.0),
    "take_along_axis of integers": lambda np_: np_.take_along_axis(P, P, 1, fill_value=3),
    "take_along_axis without wrapping": lambda np_: np_.take_along_axis(Y, P, 1, wrap_negative_indices=False),
    "take_along_axis clip, no wrapping": lambda np_: np_.take_along_axis(Y, P, 1, "clip", wrap_negative_indices=False),
    "nansum dtype": lambda np_: np_.nansum(X, 0, "float16"),
    "nansum initial, where, keepdims": lambda np_: np_.nansum(X, 1, None, None, True, 10.0, M),
    "nanprod initial, where": lambda np_: np_.nanprod(X, axis=0, initial=2.0, where=M),
    "nanprod of integers": lambda np_: np_.nanprod(P, axis=1, keepdims=True),
    "nanvar mean": lambda np_: np_.nanvar(X, 1, mean=np.ones((2, 1), "f4")),
    "nanstd mean, where": lambda np_: np_.nanstd(X, 1, where=M, mean=np.ones((2, 1), "f4")),
    "fmax by name": lambda np_: np_.fmax(x1=X, x2=Y),
    "fmin by name": lambda np_: np_.fmin(x1=X, x2=Y),
    "gcd by name": lambda np_: np_.gcd(x1=P, x2=np.asarray(4, "i4")),
    "lcm by name": lambda np_: np_.lcm(x1=P, x2=np.asarray(4, "i4")),
    "i0 by name": lambda np_: np_.i0(x=Y),
    "trunc by name": lambda np_: np_.trunc(x=Y),
    "empty_like by name": lambda np_: np_.empty_like(prototype=Y, shape=(2,)),
    "round": lambda np_: np_.round(Y, 1, None),
    "modf": lambda np_: np_.modf(Y, None),
    "isposinf": lambda np_: np_.isposinf(X / 0, None),
    "issubdtype by name": lambda np_: np.asarray(np_.issubdtype(arg1="float32", arg2=np.floating)),
    "reshape copy": lambda np_: np_.reshape(Y, (3, 2), copy=True),
}  # fmt: skip

K = np.random.RandomState(1).randn(3, 2, 4).astype("f4")
IMAGE = np.random.RandomState(2).randn(2, 5, 2).astype("f4")
A = np.random.RandomState(3).randn(4, 4).astype("f4")


def under_jit(lax, f, index):
    return (jax if lax is jax.lax else atled).jit(f)(np.int32(index))


ACCURATE = (
    "cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt", "tan", "tanh",
)  # fmt: skip
LAX = {
    "mul out_dtype": lambda lax: lax.mul(np.full(2, 100, "i1"), np.full(2, 3, "i1"), out_dtype="int32"),
    "accuracy": lambda lax: [
        getattr(lax, n)(abs(Y), accuracy=a)
        for n in ACCURATE
        for a in (lax.AccuracyMode.HIGHEST, lax.Tolerance(ulps=3))
    ],
    "reshape dimensions": lambda lax: lax.reshape(Y, (6,), (1, 0)),
    "dot dimension_numbers": lambda lax: lax.dot(Y, Y, dimension_numbers=(((0,), (0,)), ((), ()))),
    "dot precision": lambda lax: lax.dot(Y, Y.T, precision=lax.Precision.HIGHEST, preferred_element_type="float32"),
    "dynamic_slice": lambda lax: under_jit(
        lax, lambda i: lax.dynamic_slice(Y, (0, i), (2, 1), allow_negative_indices=False), -2
    ),
    "dynamic_slice by axis": lambda lax: under_jit(
        lax, lambda i: lax.dynamic_slice(Y, (-1, i), (1, 1), allow_negative_indices=(True, False)), -2
    ),
    "dynamic_slice_in_dim": lambda lax: under_jit(
        lax, lambda i: lax.dynamic_slice_in_dim(Y, i, 2, 1, allow_negative_indices=False), -1
    ),
    "dynamic_index_in_dim": lambda lax: under_jit(
        lax, lambda i: lax.dynamic_index_in_dim(Y, i, 1, False, allow_negative_indices=False), -1
    ),
    "dynamic_update_slice": lambda lax: under_jit(
        lax, lambda i: lax.dynamic_update_slice(Y, Y[:1, :1], (i, i), allow_negative_indices=False), -1
    ),
    "dynamic_update_slice_in_dim": lambda lax: under_jit(
        lax, lambda i: lax.dynamic_update_slice_in_dim(Y, Y[:, :1], i, 1, allow_negative_indices=False), -1
    ),
    "dynamic_update_index_in_dim": lambda lax: under_jit(
        lax, lambda i: lax.dynamic_update_index_in_dim(Y, Y[:, :1], i, 1, allow_negative_indices=False), -1
    ),
    "reduce_window": lambda lax: lax.reduce_window(Y, np.float32(0), lax.add, (1, 2)),
    "fori_loop unroll": lambda lax: lax.fori_loop(0, 5, lambda i, x: x + i, 0, unroll=2),
    "switch operand": lambda lax: lax.switch(1, [lambda x: x, lambda x: x + 1], operand=np.float32(2)),
    "by name": lambda lax: [
        lax.sin(x=Y), lax.add(x=Y, y=Y), lax.clamp(min=np.float32(0), x=Y, max=np.float32(1)),
        lax.integer_pow(x=Y, y=3),
        lax.select(pred=M, on_true=Y, on_false=-Y), lax.nextafter(x1=Y, x2=-Y), lax.polygamma(m=Y * 0 + 1, x=Y * Y),
        lax.slice(operand=Y, start_indices=(0, 1), limit_indices=(2, 3), strides=None), lax.zeta(x=Y * 0 + 2, q=Y * Y),
        lax.reduce_sum(operand=Y, axes=(0,)), lax.reduce_precision(operand=Y, exponent_bits=5, mantissa_bits=3),
        lax.bitcast_convert_type(operand=Y, new_dtype="int32"),
    ],
    "scatter_sub": lambda lax: lax.scatter_sub(
        Y[0], P[:, :1], Y[:, 0], lax.ScatterDimensionNumbers((), (0,), (0,)), mode="clip", indices_are_sorted=True
    ),
    "eig": lambda lax: [abs(np.asarray(v)) for v in lax.linalg.eig(A)],
    "eig without left": lambda lax: [abs(np.asarray(v)) for v in lax.linalg.eig(A, compute_left_eigenvectors=False)],
    "eig values": lambda lax: lax.linalg.eig(A, compute_left_eigenvectors=False, compute_right_eigenvectors=False),
    "eigh": lambda lax: abs(lax.linalg.eigh(A, sort_eigenvalues=True, subset_by_index=(0, 4))[0]),
    "schur without vectors": lambda lax: abs(lax.linalg.schur(A @ A.T, compute_schur_vectors=False)[0]).sum(),
}  # fmt: skip


def compare(ours, theirs):
    ours, theirs = atled.tree.leaves(ours), jax.tree.leaves(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_numpy(name):
    compare(NUMPY[name](atled.numpy), NUMPY[name](jax.numpy))


@pytest.mark.parametrize("name", LAX)
def test_lax(name):
    compare(LAX[name](atled.lax), LAX[name](jax.lax))


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2),), ((0, 0),)], ids=str)
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_conv_transpose_with_consistent_padding(padding, stride):
    compare(*[
        m.lax.conv_transpose(IMAGE, K, (stride,), padding, use_consistent_padding=True) for m in (atled.jax, jax)
    ])  # fmt: skip


def test_parts_of_decompositions():
    """Which JAX has on TPUs only."""
    whole, part = atled.lax.linalg.eigh(A), atled.lax.linalg.eigh(A, subset_by_index=(1, 3))
    compare(part, (whole[0][:, 1:3], whole[1][1:3]))
    u, s, v = atled.lax.linalg.svd(A, full_matrices=False)
    compare(atled.lax.linalg.svd(A, full_matrices=False, subset_by_index=(1, 3)), (u[:, 1:3], s[1:3], v[1:3]))
    compare(atled.lax.linalg.svd(A, compute_uv=False, subset_by_index=(1, 3)), s[1:3])
    values, left, _ = atled.lax.linalg.eig(A)
    np.testing.assert_allclose(np.conj(left).T @ A, np.asarray(values)[:, None] * np.conj(left).T, atol=1e-4)


@pytest.mark.parametrize("call, message", [
    (lambda lax: lax.sin(Y, accuracy="high"), "sin: the accuracy is an AccuracyMode, a Tolerance or None; got 'high'"),
    (lambda lax: lax.linalg.qr(A, pivoting=True), "qr: pivoting is not supported"),
    (lambda lax: lax.linalg.eigh(A, subset_by_index=(2, 5)), "eigh: subset_by_index must satisfy 0 <= start < end"),
    (lambda lax: lax.linalg.schur(A, sort_eig_vals=True), "schur: sorting is not supported"),
    (lambda lax: lax.linalg.svd(A, subset_by_index=(0, 1)), "svd: subset_by_index needs full_matrices=False"),
    (lambda lax: lax.dynamic_slice(Y, (0, -1), (1, 1), allow_negative_indices=False), "=False: indices must not be"),
    (lambda lax: lax.dynamic_slice(Y, (0, 0), (1, 1), allow_negative_indices=(True,)), "one value for each of 2 axes"),
    (lambda lax: lax.linalg.tridiagonal_solve(Y[0], Y[0], Y[0], Y.T, perturb_singular=True), "perturb_singular=True"),
])  # fmt: skip
def test_what_is_not_there(call, message):
    with pytest.raises((NotImplementedError, ValueError, TypeError), match=message):
        call(atled.lax)
