"""`train.step` hands optimizers what they ask for: the value of the loss, the loss itself, a larger loss."""

import warnings

import numpy as np
import pytest

import atled.numpy as jnp
from atled import nn, optim, random, train, tree

X = random.normal(random.key(1), (16, 3))
Y = X.sum(-1, keepdims=True)


class Net(nn.Module):
    def __init__(self, key):
        keys = nn.Keys(key)
        self.first, self.norm = nn.Linear(3, 4, key=keys()), nn.BatchNorm(4)
        self.drop, self.last = nn.Dropout(0.1), nn.Linear(4, 1, key=keys())

    def __call__(self, x, key=None):
        return self.last(self.drop(jnp.tanh(self.norm(self.first(x))), key=key))


def loss(net, x, y, key):
    return ((net(x, key=key) - y) ** 2).mean()


OPTIMIZERS = {
    "SAM": optim.SAM(optim.Adam(1e-2)),
    "LBFGS": optim.LBFGS(),
    "LossScale": optim.LossScale(optim.Adam(1e-2)),
    "plateau": optim.chain(optim.Adam(1e-2), optim.reduce_on_plateau()),
    "average": optim.average(optim.Adam(1e-2), decay=0.9),
    "accumulate": optim.accumulate(optim.Adam(3e-2), 2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_make_the_loss_smaller_without_a_warning(name, caplog):
    state, step, seen = train.State(Net(0), OPTIMIZERS[name], key=random.key(3)), train.step(loss), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            state, metrics = step(state, X, Y)
            seen.append(float(metrics["loss"]))
    assert seen[-1] < 0.8 * seen[0] and len(step.compiles) == 1 and not caplog.records
    assert float(metrics["norm"]) < 100  # not that of a larger loss
    assert (np.asarray(state.model.norm.mean) != 0).all()  # statistics are those of the model, not of where SAM looked
    used = state.eval_model()
    assert not used.training and np.isfinite(float(loss(used, X, Y, None)))


def test_gradients_of_a_larger_loss():
    net = Net(0)
    plain = train.gradients(loss)(net, X, Y, random.key(1))
    larger = train.gradients(loss, scale=lambda value: 8 * value)(net, X, Y, random.clone(random.key(1)))
    assert float(plain[0]) == float(larger[0])
    for a, b in zip(tree.leaves(plain[2]), tree.leaves(larger[2]), strict=True):
        np.testing.assert_allclose(8 * a, b, rtol=1e-5, atol=1e-6)


def test_steps_of_complex_parameters_go_downhill():
    class Turned(nn.Module):
        def __init__(self):
            self.w = nn.Param(jnp.asarray(1 + 1j))

    state, step = train.State(Turned(), optim.SGD(0.2)), train.step(lambda m: jnp.abs(m.w - 3j) ** 2)
    for _ in range(40):
        state, metrics = step(state)
    assert float(metrics["loss"]) < 1e-6
    np.testing.assert_allclose(state.model.w, 3j, atol=1e-3)
