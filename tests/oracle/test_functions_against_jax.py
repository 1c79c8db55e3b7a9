"""Functions of `lax` and `nn` on the same arrays as JAX's: values, dtypes and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.lax
import atled.nn

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

R = np.random.RandomState(0)
X, Y = R.randn(3, 4).astype("f4"), R.rand(3, 4).astype("f4") + 0.5
V = R.randn(4).astype("f4")
M, N = R.randint(1, 9, (3, 4)).astype("i4"), R.randint(1, 5, (3, 4)).astype("i4")
B = X > 0
IMAGE, KERNEL = R.randn(2, 3, 8, 7).astype("f4"), R.randn(6, 3, 3, 2).astype("f4")
GROUPED = R.randn(6, 1, 3, 2).astype("f4")

UNARY = (
    "abs", "sin", "cos", "tan", "tanh", "exp", "exp2", "expm1", "neg", "sign", "floor", "ceil", "square", "cbrt",
    "logistic", "erf", "erfc", "is_finite", "asinh", "sinh", "cosh",
)  # fmt: skip
UNARY_POSITIVE = (
    "log", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma", "bessel_i0e", "bessel_i1e",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "rem", "max", "min", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt", "ge",
)  # fmt: skip
BINARY_INTEGERS = (
    "add", "sub", "mul", "div", "rem", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical",
    "shift_right_arithmetic",
)  # fmt: skip
ACTIVATIONS = (
    "relu", "relu6", "sigmoid", "softplus", "silu", "gelu", "elu", "selu", "celu", "leaky_relu", "hard_tanh",
    "hard_sigmoid", "hard_swish", "log_sigmoid", "soft_sign", "mish", "squareplus", "softmax", "log_softmax",
    "standardize", "glu",
)  # fmt: skip
DIFFERENTIATED = (
    "relu6", "softplus", "silu", "gelu", "elu", "selu", "hard_swish", "mish", "softmax", "log_softmax", "standardize",
)  # fmt: skip

LAX = {
    **{n: (lambda lax, n=n: getattr(lax, n)(X)) for n in UNARY},
    **{n: (lambda lax, n=n: getattr(lax, n)(Y)) for n in UNARY_POSITIVE},
    **{n: (lambda lax, n=n: getattr(lax, n)(X, Y)) for n in BINARY},
    "pow": lambda lax: lax.pow(Y, X),
    "integer_pow": lambda lax: lax.integer_pow(X, -3),
    **{f"{n} of integers": (lambda lax, n=n: getattr(lax, n)(M, N)) for n in BINARY_INTEGERS},
    **{n: (lambda lax, n=n: getattr(lax, n)(M)) for n in ("population_count", "clz", "bitwise_not")},
    "clamp": lambda lax: lax.clamp(-0.5, X, 0.5),
    "select": lambda lax: lax.select(B, X, Y),
    "select_n": lambda lax: lax.select_n(B, X, Y),
    "reduce_sum": lambda lax: lax.reduce_sum(X, (0,)),
    "reduce_max": lambda lax: lax.reduce_max(X, (1,)),
    "reduce_prod": lambda lax: lax.reduce_prod(X, (0, 1)),
    "reduce_and": lambda lax: lax.reduce_and(B, (0,)),
    "argmax": lambda lax: lax.argmax(X, 1, np.int32),
    "argmin": lambda lax: lax.argmin(X, 0, np.int32),
    "cumsum": lambda lax: lax.cumsum(X, 1, reverse=True),
    "cumprod": lambda lax: lax.cumprod(X, 0),
    "cummax": lambda lax: lax.cummax(X, 0),
    "cumlogsumexp": lambda lax: lax.cumlogsumexp(X, 1),
    "reshape": lambda lax: lax.reshape(X, (2, 6)),
    "transpose": lambda lax: lax.transpose(X, (1, 0)),
    "broadcast_in_dim": lambda lax: lax.broadcast_in_dim(V, (2, 4, 3), (1,)),
    "concatenate": lambda lax: lax.concatenate([X, Y], 1),
    "split": lambda lax: lax.split(X, (1, 3), 1),
    "pad": lambda lax: lax.pad(X, np.float32(2), [(1, -1, 1), (0, 2, 0)]),
    "rev": lambda lax: lax.rev(X, (1,)),
    "slice": lambda lax: lax.slice(X, (0, 1), (3, 4), (2, 1)),
    "dynamic_slice": lambda lax: lax.dynamic_slice(X, (np.int32(2), np.int32(1)), (2, 2)),
    "dynamic_update_slice": lambda lax: lax.dynamic_update_slice(X, Y[:2, :2], (np.int32(2), np.int32(1))),
    "dot_general": lambda lax: lax.dot_general(X, Y, (((1,), (1,)), ((), ()))),
    "dot_general batched": lambda lax: lax.dot_general(X, Y, (((1,), (1,)), ((0,), (0,)))),
    "conv": lambda lax: lax.conv_general_dilated(IMAGE, KERNEL, (2, 1), "SAME"),
    "conv dilated": lambda lax: lax.conv_general_dilated(IMAGE, KERNEL, (1, 2), [(2, 1), (0, 3)], (2, 1), (1, 2)),
    "conv grouped": lambda lax: lax.conv_general_dilated(IMAGE, GROUPED, (1, 1), "VALID", feature_group_count=3),
    "conv channels last": lambda lax: lax.conv_general_dilated(
        IMAGE.transpose(0, 2, 3, 1), KERNEL.transpose(2, 3, 1, 0), (1, 1), "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    ),
    "conv_transpose": lambda lax: lax.conv_transpose(
        IMAGE.transpose(0, 2, 3, 1), KERNEL.transpose(2, 3, 1, 0)[:, :, :, :], (2, 2), "SAME"
    ),
    "reduce_window": lambda lax: lax.reduce_window(IMAGE, -np.inf, lax.max, (1, 1, 2, 3), (1, 1, 2, 2), "VALID"),
    "sort": lambda lax: lax.sort(X, dimension=0),
    "sort_key_val": lambda lax: lax.sort_key_val(M, X, dimension=1),
    "top_k": lambda lax: lax.top_k(X, 2),
    "iota": lambda lax: lax.broadcasted_iota("int32", (2, 3), 1),
    "convert": lambda lax: lax.convert_element_type(X, "bfloat16"),
    "bitcast": lambda lax: lax.bitcast_convert_type(X, "int32"),
    "reduce_precision": lambda lax: lax.reduce_precision(X, 5, 3),
    "expand_dims": lambda lax: lax.expand_dims(X, (0, 2)),
    "collapse": lambda lax: lax.collapse(IMAGE, 1, 3),
    "batch_matmul": lambda lax: lax.batch_matmul(IMAGE, IMAGE.transpose(0, 1, 3, 2)),
    "fft": lambda lax: lax.fft(X, "RFFT", (4,)),
}  # fmt: skip
NN = {
    **{n: (lambda m, n=n: getattr(m, n)(X)) for n in ACTIVATIONS},
    "gelu exact": lambda m: m.gelu(X, approximate=False),
    "softmax of an axis": lambda m: m.softmax(X, axis=0),
    "softmax where": lambda m: m.softmax(X, where=X > -1),
    "logsumexp": lambda m: m.logsumexp(X, axis=1),
    "one_hot": lambda m: m.one_hot(M[0], 5),
    "one_hot of an axis": lambda m: m.one_hot(M, 6, axis=1, dtype="int32"),
}  # fmt: skip


def compare(ours, theirs):
    ours, theirs = atled.tree.leaves(ours), jax.tree.leaves(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a.astype("c16"), b.astype("c16"), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", LAX)
def test_lax(name):
    compare(LAX[name](atled.lax), LAX[name](jax.lax))


@pytest.mark.parametrize("name", NN)
def test_nn(name):
    compare(NN[name](atled.nn), NN[name](jax.nn))


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_of_nn(name):
    compare(*[m.grad(lambda x, m=m: (getattr(m.nn, name)(x) * Y).sum())(X) for m in (atled.jax, jax)])
