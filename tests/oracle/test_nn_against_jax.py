"""`nn` against JAX: signatures, values, gradients, and the same numbers for the same key."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import random
from atled.nn import block_scaled, dot_product_attention, get_scaled_dot_general_config, initializers

jax = pytest.importorskip("jax")
R = np.random.RandomState(0)


def test_names_and_signatures():
    """All that JAX has, with the same parameters; defaults too, but for the types of numbers."""
    names = [n for n in dir(jax.nn) if not n.startswith("_") and callable(getattr(jax.nn, n))]
    assert set(names) <= set(atled.nn.__all__)
    for name in names:
        ours, theirs = (inspect.signature(getattr(m, name)).parameters.values() for m in (atled.nn, jax.nn))
        assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in theirs], name


X = R.randn(3, 4, 2).astype("f4")
WHERE = R.rand(3, 4, 2) > 0.4
WHERE[0, :2] = False
OVER_AXES = {
    **{
        f"{name} {axis} {'masked' if w is not None else ''}": (
            lambda nn, x, n=name, a=axis, w=w: getattr(nn, n)(x, axis=a, where=w)
        )
        for name in ("softmax", "log_softmax", "logsumexp", "logmeanexp")
        for axis, w in (((0, 2), None), (None, WHERE), (1, WHERE), ((0, 2), WHERE))
    },
    "logmeanexp keepdims": lambda nn, x: nn.logmeanexp(x, 1, WHERE, keepdims=True),
    "logsumexp weights": lambda nn, x: nn.logsumexp(x, 1, b=X[:, :1] ** 2, keepdims=True),
    "standardize": lambda nn, x: nn.standardize(x, (0, 1), epsilon=1e-2),
    "standardize stable": lambda nn, x: nn.standardize(x, -1, algorithm="stable"),
    "standardize mean": lambda nn, x: nn.standardize(x, 1, mean=np.float32(0.3)),
    "standardize mean stable": lambda nn, x: nn.standardize(x, 1, mean=np.float32(0.3), algorithm="stable"),
    "standardize mean masked": lambda nn, x: nn.standardize(x, (0, 1), mean=np.float32(0.1), where=WHERE),
    "standardize variance": lambda nn, x: nn.standardize(x, 0, variance=np.full((1, 4, 2), 2.0, "f4")),
    "standardize masked": lambda nn, x: nn.standardize(x, (0, 1), where=WHERE),
}  # fmt: skip


@pytest.mark.parametrize("name", OVER_AXES)
def test_functions_over_axes(name):
    f = OVER_AXES[name]
    value = jax.jit(lambda x: f(jax.nn, x))(X)
    is_finite = np.isfinite(np.asarray(value))

    def both(np_like, nn):
        def loss(x):
            out = f(nn, x)
            return np_like.sum(np_like.sin(np_like.where(is_finite, out, 0))), out

        return loss

    ours, got = atled.jit(atled.grad(both(jnp, atled.nn), has_aux=True))(X)
    theirs, want = jax.jit(jax.grad(both(jax.numpy, jax.nn), has_aux=True))(X)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-5)


def test_complex_logsumexp():
    z = (X[..., 0] + 3j * X[..., 1]).astype("c8")
    for options in ({}, {"b": X[..., 0]}, {"axis": 1, "keepdims": True}, {"axis": 0, "b": z}):
        for signed in (False, True):
            got, want = (m.logsumexp(z, **options, return_sign=signed) for m in (atled.nn, jax.nn))
            for x, y in zip(*((v if signed else [v]) for v in (got, want)), strict=True):
                assert x.dtype == y.dtype and x.shape == y.shape
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("x", [np.int32([0, 2, -1, 3]), np.int32([[0, 1], [2, 1]]), np.int32(1), np.uint8([200, 2])])
@pytest.mark.parametrize("dtype", [None, "float16", "int32", bool])
def test_one_hot(x, dtype):
    for axis in (-1, 0):
        got, want = (m.one_hot(x, 3, dtype=dtype, axis=axis) for m in (atled.nn, jax.nn))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_one_hot_over_a_named_axis():
    f = lambda nn: lambda x: nn.one_hot(x, 4, axis="i")
    x = np.int32([0, 3, 2, 2])
    got = atled.vmap(f(atled.nn), axis_name="i")(x)
    np.testing.assert_array_equal(got, jax.vmap(f(jax.nn), axis_name="i")(x))
    with pytest.raises(ValueError, match="num_classes must be the length 4"):
        atled.vmap(lambda v: atled.nn.one_hot(v, 3, axis="i"), axis_name="i")(x)


# -- attention ---------------------------------------------------------------------------------------------------------

B, T, S, N, H = 2, 5, 6, 4, 3
QUERY = R.randn(B, T, N, H).astype("f4")
KEYS = {k: R.randn(2, B, S, k, H).astype("f4") for k in (1, 2, 4)}
MASK = R.rand(B, N, T, S) > 0.4
MASK[0, 1, 2] = False  # a query that sees nothing
SHORT = MASK[:1, :1, :, :1]
ATTENTION = {  # heads of keys, options
    "plain": (4, {}),
    "groups": (2, {}),
    "one head of keys": (1, {}),
    "scale": (4, {"scale": 0.3}),
    "bias": (2, {"bias": R.randn(B, N, T, S).astype("f4")}),
    "bias for all heads": (2, {"bias": R.randn(1, 1, T, S).astype("f4")}),
    "bias of three axes": (4, {"bias": R.randn(N, T, S).astype("f4")}),
    "mask": (4, {"mask": MASK}),
    "mask in groups": (2, {"mask": MASK, "is_causal": True}),
    "mask that broadcasts": (2, {"mask": SHORT}),
    "causal": (4, {"is_causal": True}),
    "window": (4, {"local_window_size": 1}),
    "window of two sides": (1, {"local_window_size": (2, 0), "implementation": "xla"}),
    "lengths": (2, {"query_seq_lengths": np.int32([2, 5]), "key_value_seq_lengths": np.int32([6, 3])}),
    "lengths of keys": (4, {"key_value_seq_lengths": np.int32([1, 4]), "is_causal": True}),
    "no keys": (4, {"key_value_seq_lengths": np.int32([0, 4])}),
    "all": (
        2,
        {"bias": R.randn(N, 1, S).astype("f4"), "mask": MASK, "is_causal": True, "local_window_size": (3, 1),
         "query_seq_lengths": np.int32([4, 5]), "key_value_seq_lengths": np.int32([6, 5]), "scale": 2.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    heads, options = ATTENTION[name]
    key, value = KEYS[heads]

    def both(sin, f):
        def loss(*operands):
            out, total = f(*operands, **options, return_residual=True)
            return sin(out).sum(), (out, total)

        return loss

    ours = atled.jit(atled.grad(both(jnp.sin, dot_product_attention), (0, 1, 2), has_aux=True))
    theirs = jax.jit(jax.grad(both(jax.numpy.sin, jax.nn.dot_product_attention), (0, 1, 2), has_aux=True))
    got, want = (f(QUERY, key, value) for f in (ours, theirs))
    for x, y in zip(atled.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_sums_in_single(dtype):
    key, value = KEYS[2]
    operands = [np.asarray(x).astype(jnp.dtype(dtype)) for x in (QUERY, key, value)]
    for options in ({}, {"mask": MASK, "bias": np.float32(R.randn(1, 1, 1, S))}):
        got = dot_product_attention(*operands, **options)
        wide = [x.astype(np.float32) for x in operands]  # JAX refuses float16 here
        want = jax.jit(lambda *xs, o=options: jax.nn.dot_product_attention(*xs, **o))(*wide)
        assert got.dtype == dtype
        np.testing.assert_allclose(np.float32(got), want, atol=0.02)
        assert np.isfinite(np.float32(got)).all()


# -- initializers ------------------------------------------------------------------------------------------------------

INITIALIZERS = {
    "zeros": (lambda i: i.zeros, (2, 3), None),
    "ones": (lambda i: i.ones, (2, 3), "float16"),
    "constant": (lambda i: i.constant(-7), (2,), None),
    "constant of a dtype": (lambda i: i.constant(2.5, "bfloat16"), (2,), "default"),
    "uniform": (lambda i: i.uniform(10.0), (3, 4), None),
    "normal": (lambda i: i.normal(), (3, 4), None),
    "complex normal": (lambda i: i.normal(2.0), (3, 4), "complex64"),
    "truncated_normal": (lambda i: i.truncated_normal(5.0), (3, 40), None),
    "truncated_normal elsewhere": (lambda i: i.truncated_normal(5.0, None, -1.0, 0.5), (3, 40), None),
    **{
        f"variance_scaling {mode} {kind} {dtype}": (
            lambda i, m=mode, k=kind: i.variance_scaling(1.5, m, k), (6, 4), dtype,
        )
        for mode, kind, dtype in [
            ("fan_in", "normal", None), ("fan_out", "uniform", None), ("fan_avg", "truncated_normal", None),
            ("fan_geo_avg", "normal", None), ("fan_in", "uniform", "complex64"),
            ("fan_in", "truncated_normal", "complex64"), ("fan_in", "normal", "complex64"),
            ("fan_in", "truncated_normal", "float16"),
        ]
    },
    "kernel": (lambda i: i.variance_scaling(2.0, "fan_in", "normal"), (3, 3, 4, 5), None),
    "axes": (lambda i: i.variance_scaling(2.0, "fan_avg", "uniform", (0, 1), (3,), 2), (3, 2, 4, 5), None),
    "one axis": (lambda i: i.lecun_normal(in_axis=0, out_axis=()), (5,), None),
    **{
        name: (lambda i, n=name: getattr(i, n)(), (6, 4), None)
        for name in (
            "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform",
            "lecun_normal", "lecun_uniform", "xavier_normal", "xavier_uniform",
        )
    },
    "batch axis": (lambda i: i.he_normal(batch_axis=0), (3, 6, 4), None),
    "orthogonal": (lambda i: i.orthogonal(), (5, 5), None),
    "orthogonal tall": (lambda i: i.orthogonal(2.0), (3, 2, 4), None),
    "orthogonal wide": (lambda i: i.orthogonal(1.0, 0), (7, 2, 2), None),
    "orthogonal wide, last axis": (lambda i: i.orthogonal(), (2, 5), None),
    "orthogonal of nothing": (lambda i: i.orthogonal(), (0, 5), None),
    "unitary": (lambda i: i.orthogonal(), (4, 3), "complex64"),
    "delta_orthogonal 1": (lambda i: i.delta_orthogonal(), (3, 2, 4), None),
    "delta_orthogonal 2": (lambda i: i.delta_orthogonal(0.5), (4, 3, 2, 2), None),
    "delta_orthogonal 3": (lambda i: i.delta_orthogonal(), (1, 2, 3, 3, 3), None),
}  # fmt: skip


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers(name):
    make, dims, dtype = INITIALIZERS[name]
    rest = () if dtype == "default" else (dtype,)
    got, want = (
        make(initializers)(random.key(3), dims, *rest),
        make(jax.nn.initializers)(jax.random.key(3), dims, *rest),
    )
    assert got.dtype == want.dtype and got.shape == want.shape
    wide = complex if "complex" in str(want.dtype) else float
    tol = 2e-5 if got.dtype.itemsize > 2 else 4e-3
    np.testing.assert_allclose(np.asarray(got).astype(wide), np.asarray(want).astype(wide), rtol=tol, atol=tol / 10)


def test_names_and_signatures_of_initializers():
    theirs = jax.nn.initializers
    names = [n for n in dir(theirs) if not n.startswith("_")]
    assert sorted(initializers.__all__) == sorted(names)
    for name in names:
        ours, other = (inspect.signature(getattr(m, name)) for m in (initializers, theirs))
        if name != "Initializer":
            assert [(p.name, p.default, p.kind) for p in ours.parameters.values()] == [
                (p.name, p.default, p.kind) for p in other.parameters.values()
            ], name
    assert isinstance(initializers.zeros, initializers.Initializer)
    assert isinstance(initializers.normal(), initializers.Initializer)


# -- blocks that share a scale -----------------------------------------------------------------------------------------

BLOCKS = {
    "plain": R.randn(2, 3, 64).astype("f4"),
    "wide range": (R.randn(2, 3, 64) * 10.0 ** R.randint(-10, 10, (2, 3, 1))).astype("f4"),
    "half": R.randn(2, 3, 64).astype("f2"),
    "large": (R.randn(1, 3, 64) * 1e37).astype("f4"),
    "powers": np.exp2(R.randint(-8, 8, (1, 2, 64))).astype("f4") * 448,
}


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize("name", BLOCKS)
def test_quantization(mode, name):
    scaled_matmul_stablehlo = pytest.importorskip("jax._src.cudnn.scaled_matmul_stablehlo")
    x = BLOCKS[name]
    scale = np.float32([2.0])
    config = jax.nn.get_scaled_dot_general_config(mode, jax.numpy.asarray(scale))
    want = scaled_matmul_stablehlo.quantize(jax.numpy.asarray(x), config)
    ours = get_scaled_dot_general_config(mode, scale)
    assert (ours.block_size, ours.format.data_type) == (config.block_size, np.dtype(config.data_type))
    got = block_scaled.quantize(jnp.asarray(x), ours.format, ours.global_scale)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape
        a, b = np.asarray(a).astype("f4"), np.asarray(b).astype("f4")
        if i == 0:  # JAX divides in half precision, rounds to four bits twice, and divides by scales that are zero
            is_zero = np.repeat(np.asarray(got[1]).astype("f4") == 0, ours.block_size, -1)
            assert (a != b)[~is_zero].mean() < 0.05
            b = np.where((a != b) & is_zero, 0, b)
        np.testing.assert_allclose(a, b, rtol=0.5 if i == 0 else 0)
