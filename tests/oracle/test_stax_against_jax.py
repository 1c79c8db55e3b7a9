"""`example_libraries.stax`: the same parameters for the same key, the same results and derivatives as in JAX."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn
from atled.jax.example_libraries import stax

jax = pytest.importorskip("jax")
theirs = pytest.importorskip("jax.example_libraries.stax")

R = np.random.RandomState(0)
BN = (-1, 6, 5, 3)
IMAGE, NCHW, ROW, LINE = (2, 6, 5, 3), (2, 3, 6, 5), (4, 3), (2, 7, 3)
NUMBERS = ("NCHW", "OIHW", "NHWC")
# name -> (a layer, made with either library, shape of the inputs)
LAYERS = {
    "Dense": (lambda s: s.Dense(4), ROW),
    "Dense init": (lambda s: s.Dense(4, s.randn(0.5), s.ones), (2, 5, 3)),
    "Conv": (lambda s: s.Conv(4, (3, 2)), IMAGE),
    "Conv strides": (lambda s: s.Conv(4, (3, 2), strides=(2, 1), padding="SAME"), IMAGE),
    "Conv init": (lambda s: s.Conv(4, (3, 2), W_init=s.glorot(2, 3), b_init=s.normal(1.0)), IMAGE),
    "GeneralConv": (lambda s: s.GeneralConv(NUMBERS, 4, (2, 2), (1, 2), "SAME"), NCHW),
    "GeneralConv pairs": (lambda s: s.GeneralConv(("NCW", "WIO", "NCW"), 4, (2,), (1,), [(1, 2)]), (2, 3, 7)),
    "ConvTranspose": (lambda s: s.ConvTranspose(4, (3, 2), (2, 1), "SAME"), IMAGE),
    "ConvTranspose valid": (lambda s: s.ConvTranspose(4, (3, 2), (2, 3)), IMAGE),
    "Conv1DTranspose": (lambda s: s.Conv1DTranspose(4, (3,), (2,)), LINE),
    "GeneralConvTranspose": (lambda s: s.GeneralConvTranspose(("NCHW", "HWIO", "NCHW"), 4, (2, 2), (2, 2)), NCHW),
    "BatchNorm": (lambda s: s.BatchNorm(), IMAGE),
    "BatchNorm axis": (lambda s: s.BatchNorm(0, 1e-3), ROW),
    "BatchNorm init": (lambda s: s.BatchNorm((0, 2), beta_init=s.randn(1.0), gamma_init=s.randn(1.0)), LINE),
    "BatchNorm center": (lambda s: s.BatchNorm(center=False, gamma_init=s.randn(1.0)), IMAGE),
    "BatchNorm scale": (lambda s: s.BatchNorm(scale=False, beta_init=s.randn(1.0)), IMAGE),
    "BatchNorm neither": (lambda s: s.BatchNorm(scale=False, center=False), IMAGE),
    "MaxPool": (lambda s: s.MaxPool((2, 3)), IMAGE),
    "MaxPool spec": (lambda s: s.MaxPool((2, 3), (2, 2), "SAME", "NCHW"), NCHW),
    "SumPool": (lambda s: s.SumPool((2, 3), (1, 2), "SAME"), IMAGE),
    "AvgPool": (lambda s: s.AvgPool((2, 3), (1, 2), "SAME"), IMAGE),
    "AvgPool valid": (lambda s: s.AvgPool((2, 3), spec="NCHW"), NCHW),
    **{
        name: (lambda s, name=name: getattr(s, name), ROW)
        for name in ("Tanh", "Relu", "Exp", "LogSoftmax", "Softmax", "Softplus", "Sigmoid", "Elu", "LeakyRelu", "Selu",
                     "Gelu", "Identity")
    },
    "Flatten": (lambda s: s.Flatten, IMAGE),
    "elementwise": (lambda s: s.elementwise(lambda x, by: x * by, by=3.0), ROW),
    "Dropout": (lambda s: s.Dropout(0.3), ROW),
    "Dropout test": (lambda s: s.Dropout(0.3, mode="test"), ROW),
    "shape_dependent": (lambda s: s.shape_dependent(lambda dims: s.Dense(2 * dims[-1])), ROW),
    "residual": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.serial(s.Dense(3), s.Dropout(0.5)), s.Identity), s.FanInSum),
        ROW,
    ),
    "joined": (lambda s: s.serial(s.FanOut(3), s.parallel(s.Dense(2), s.Relu, s.Dense(4)), s.FanInConcat()), ROW),
    "joined axis": (lambda s: s.serial(s.FanOut(2), s.FanInConcat(1)), LINE),
    "network": (
        lambda s: s.serial(
            s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2), (2, 2)), s.Flatten, s.Dense(8),
            s.Dropout(0.7), s.Dense(3), s.LogSoftmax,
        ),
        IMAGE,
    ),
}  # fmt: skip


def key(number):
    return atled.random.key(number), jax.random.key(number)


def close(ours, wanted, tolerance=2e-5):
    assert ours.dtype == wanted.dtype and ours.shape == wanted.shape
    np.testing.assert_allclose(ours, wanted, tolerance, tolerance)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, dims = LAYERS[name]
    (init, apply), (their_init, their_apply) = make(stax), make(theirs)
    (k, their_k), (dropping, their_dropping) = key(3), key(4)
    shape, params = init(k, dims)
    their_shape, their_params = their_init(their_k, dims)
    assert tuple(shape) == tuple(their_shape) and type(shape) is type(their_shape)
    ours, form = atled.tree.flatten(params)
    wanted, their_form = jax.tree.flatten(their_params)
    assert str(form).count("*") == str(their_form).count("*") and type(params) is type(their_params)
    for a, b in zip(ours, wanted, strict=True):
        close(a, b, 1e-6)
    x = R.randn(*dims).astype("f4")
    out = apply(params, x, rng=dropping)
    want = their_apply(their_params, x, rng=their_dropping)
    assert out.shape == tuple(shape)
    close(out, np.asarray(want))

    def loss(apply, k):
        return lambda p, x: (apply(p, x, rng=k) ** 2).sum()

    ours = atled.tree.leaves(atled.jit(atled.grad(loss(apply, key(4)[0]), (0, 1)))(params, x))
    wanted = jax.tree.leaves(jax.jit(jax.grad(loss(their_apply, their_dropping), (0, 1)))(their_params, x))
    for a, b in zip(ours, wanted, strict=True):
        close(a, b, 1e-3)


def test_batches_and_unknown_lengths():
    init, apply = stax.serial(stax.Conv(4, (3, 3)), stax.Relu, stax.Flatten, stax.Dense(2))
    shape, params = init(key(0)[0], BN)
    assert shape == (-1, 2)
    x = R.randn(3, 2, 6, 5, 3).astype("f4")
    out = atled.vmap(apply, (None, 0))(params, x)
    close(out, np.stack([apply(params, v) for v in x]), 1e-5)
    assert stax.serial(stax.Relu)[1]([()], x).shape == x.shape  # without a key


def test_integers_in_windows():
    x = np.arange(16).reshape(1, 4, 4, 1).astype("i4")
    for name in ("MaxPool", "SumPool"):
        a, b = (getattr(s, name)((2, 2), padding="SAME")[1]((), x) for s in (stax, theirs))
        assert a.dtype == b.dtype and np.array_equal(a, b)


def test_names():
    same = ("elu", "gelu", "leaky_relu", "log_softmax", "relu", "selu", "sigmoid", "softmax", "softplus", "standardize")
    for name in same:
        assert getattr(stax, name) is getattr(nn, name)
    for name in ("glorot_normal", "normal", "ones", "zeros"):
        assert getattr(stax, name) is getattr(nn.initializers, name)
    assert stax.glorot is stax.glorot_normal and stax.randn is stax.normal and stax.logsoftmax is stax.log_softmax
    modules = {n for n in dir(theirs) if inspect.ismodule(getattr(theirs, n)) or n.startswith("_")}
    assert {*dir(theirs)} - modules - {*stax.__all__} == set()
    for name in stax.__all__:
        ours, wanted = getattr(stax, name), getattr(theirs, name)
        if getattr(wanted, "__module__", "") == theirs.__name__:
            assert [*inspect.signature(ours).parameters] == [*inspect.signature(wanted).parameters], name


MISTAKES = {
    "needs a random key": (ValueError, lambda: stax.Dropout(0.5)[1]((), jnp.ones(3))),
    "a pair of functions": (TypeError, lambda: stax.serial(stax.Dense)),
    "2 layers take 2 inputs; got 1": (
        ValueError,
        lambda: stax.parallel(stax.Relu, stax.Relu)[1](((), ()), [1.0]),
    ),
    "2 layers take 2 shapes": (ValueError, lambda: stax.parallel(stax.Relu, stax.Relu)[0](key(0)[0], [(2,)])),
    "a length for each spatial axis": (ValueError, lambda: stax.Conv(4, (3,))),
    "must name each axis of the window": (ValueError, lambda: stax.MaxPool((2, 2), spec="NC")),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_mistakes(says):
    error, call = MISTAKES[says]
    with pytest.raises(error, match=says):
        call()
