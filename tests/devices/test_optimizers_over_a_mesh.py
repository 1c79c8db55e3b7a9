"""Optimizers over a mesh of 4 × 2 devices: the steps of one device, and states split as the parameters are."""

import pathlib
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, random, tree
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "optim"))
from optimizer_cases import CASES

RULES = {"inner/weight": P(None, "model"), "inner/bias": P("model"), "out/weight": P("model")}
STACKED = {"blocks/**/weight": P(None, "model"), "blocks/**/bias": P("model")}


@pytest.fixture
def mesh():
    return atled.make_mesh((4, 2), ("data", "model"))


class Model(nn.Module):
    def __init__(self, key):
        keys = nn.Keys(key)
        self.inner = nn.Linear(8, 16, key=keys())
        self.blocks = nn.Stack(lambda k: nn.Linear(16, 16, key=k), 4, key=keys())
        self.out = nn.Linear(16, 2, key=keys())

    def __call__(self, x):
        return self.out(jnp.tanh(self.blocks(jnp.tanh(self.inner(x)))))


X, Y = random.normal(random.key(1), (8, 8)), random.normal(random.key(2), (8, 2))


def one(optimizer, model, state):
    loss = lambda m: ((m(X) - Y) ** 2).mean()
    grads = atled.grad(lambda m: optimizer.scale_loss(loss(m), state))(model)
    return optimizer.step(model, grads, state, value=loss(model), loss=loss)


def specs(model, state):
    """The specs of all arrays in a state whose shape is that of a parameter with another spec, by path."""
    return {
        atled.jax.tree_util.keystr(path): x.sharding.spec
        for path, x in tree.leaves_with_path(state)
        if isinstance(getattr(x, "sharding", None), NamedSharding)
    }


@pytest.mark.parametrize("name", [n for n in CASES if n != "Partition"])
def test_steps_are_those_of_one_device_and_states_stay_where_they_are(mesh, name):
    optimizer = CASES[name]
    step = atled.jit(one, static_argnums=0)
    alone = atled.jit(Model)(random.key(0))
    many = nn.create(Model, random.key(0), rules={**RULES, **STACKED}, mesh=mesh)
    a, b = optimizer.init(alone), optimizer.init(many)
    start = specs(many, b)
    for path, spec in start.items():  # as the parameter of the same path
        for name_, want in (("inner.weight", P(None, "model")), ("out.weight", P("model")), ("inner.bias", P("model"))):
            if path.endswith(name_) and not any([w in path for w in ("rows", "columns", "left", "right")]):
                assert tuple(spec)[-len(want) :] == tuple(want), (path, spec)
    compiled = []
    for _ in range(3):
        alone, a = step(optimizer, alone, a)
        many, b = step(optimizer, many, b)
        compiled.append(len(step.compiles))
    far = 0.1 if name == "SOAP" else 2e-5  # where gradients have not full rank, rounding chooses SOAP's basis
    for x, y in zip(tree.leaves(alone), tree.leaves(many), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-3, atol=far)
    assert many.inner.weight.sharding.spec == P(None, "model")
    after = specs(many, b)
    for path, spec in start.items():
        assert NamedSharding(mesh, spec).is_equivalent_to(NamedSharding(mesh, after[path]), 8), path
    assert compiled[1] == compiled[2]  # what the compiler places, it places once


@pytest.mark.parametrize("name", ["Adam", "Adafactor", "SOAP", "Muon", "Average", "Prodigy", "LBFGS"])
def test_states_are_split_further_but_not_along_the_layers_of_a_stack(mesh, name):
    optimizer = CASES[name]
    model = nn.create(Model, random.key(0), rules=STACKED, mesh=mesh)
    state = optimizer.init(model, mesh_axis="data")
    found = specs(model, state)
    stacked = {p: s for p, s in found.items() if "blocks" in p}
    assert stacked and any(["data" in s.names for s in stacked.values()])
    first = 1 if name == "LBFGS" else 0  # its memory has an axis of its own
    for path, spec in stacked.items():
        lead = first if "steps" in path or "changes" in path else 0
        assert spec.axes(lead) == (), (path, spec)  # the axis of layers
    model, state = atled.jit(one, static_argnums=0)(optimizer, model, state)
    assert np.isfinite(np.asarray(model.blocks.layers.weight)).all()


def test_zeros_are_born_split(mesh):
    """No device ever holds more than its part of an array that is asked for with a sharding."""
    from atled.numpy import creation

    where = NamedSharding(mesh, P("data", "model"))
    compiled = creation._filler((512, 512), np.dtype("float32"), where).lower(0).compile()
    assert compiled.memory_analysis().output_size_in_bytes <= 512 * 512 * 4 // 8 + 64
    made = []
    real, creation._filled = creation._filled, lambda *args: made.append(args) or real(*args)
    try:
        for x, value in (
            (jnp.zeros((512, 512), out_sharding=where), 0), (jnp.ones((512, 512), device=where), 1),
            (jnp.full((512, 512), 3.0, out_sharding=where), 3),
        ):  # fmt: skip
            assert x.sharding == where and (np.asarray(x) == value).all()
    finally:
        creation._filled = real
    assert not made
    with pytest.raises(ValueError, match="zeros"):
        jnp.zeros((3, 3), out_sharding=where)
