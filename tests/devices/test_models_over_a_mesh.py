"""Models over a mesh of 4 × 2 devices: the same numbers as on one, split as rules say, from the first moment on."""

import pathlib
import re
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, optim, random, train, tree
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "nn"))
import layer_cases as rows


@pytest.fixture
def mesh():
    return atled.make_mesh((4, 2), ("data", "model"))


@pytest.mark.parametrize("case", rows.CASES, ids=[c.name for c in rows.CASES])
def test_layers_give_the_numbers_of_one_device(case, mesh):
    layer, args = case.make(random.key(0)), case.inputs(random.key(1))
    more = {"key": random.key(5)} if case.takes_key else {}

    def loss(layer, args):
        out = layer(*args, **more)
        return sum([jnp.sum(jnp.sin(x.astype("float32"))) for x in tree.leaves(out)]), (out, layer)

    run = atled.jit(atled.value_and_grad(loss, has_aux=True))
    want = run(layer, args)
    split = tree.map(lambda x: atled.device_put(x, NamedSharding(mesh, P("data"))), args)
    last = [P(*[None] * (x.ndim - 1), "model") if x.shape[-1] % 2 == 0 else P() for x in tree.leaves(layer)]
    leaves, structure = tree.flatten(layer)
    spread = [atled.device_put(x, NamedSharding(mesh, s)) for x, s in zip(leaves, last, strict=True)]
    got = run(structure.unflatten(spread), split)
    tolerance = 3e-2 if "bfloat16" in case.name else 2e-5
    for a, b in zip(tree.leaves(want), tree.leaves(got), strict=True):
        np.testing.assert_allclose(np.asarray(a, "float32"), np.asarray(b, "float32"), rtol=tolerance, atol=tolerance)


class Model(nn.Module):
    def __init__(self, key):
        keys = nn.Keys(key)
        self.tokens = nn.Embedding(16, 8, key=keys())
        self.blocks = nn.Stack(lambda k: nn.Linear(8, 8, key=k), 3, key=keys())
        self.norm = nn.BatchNorm(8)

    def __call__(self, ids):
        return self.tokens.attend(self.norm(jnp.tanh(self.blocks(self.tokens(ids)))))


RULES = {"tokens": P("model"), "blocks/**/weight": P(None, "model"), "blocks/**/bias": P("model")}


def test_a_model_is_made_split_and_is_the_same_model(mesh):
    model = nn.create(Model, random.key(0), rules=RULES, mesh=mesh)
    assert model.tokens.weight.sharding.spec == P("model")
    assert model.blocks.layers.weight.sharding.spec == P(None, None, "model")  # the axis of layers is not split
    assert model.blocks.layers.weight.addressable_shards[0].data.shape == (3, 8, 4)
    one = atled.jit(Model)(random.key(0))
    for a, b in zip(tree.leaves(one), tree.leaves(model), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def test_no_device_holds_all_of_a_model_that_is_made(mesh):
    def make(key):
        return nn.Linear(512, 512, use_bias=False, key=key)

    compiled = nn.creator(make, {"weight": P("data", "model")}, mesh).lower(random.key(0)).compile()
    assert compiled.memory_analysis().output_size_in_bytes <= 512 * 512 * 4 // 8 + 64
    assert not re.search(r"[us32f]\w+\[(512,512|262144|512,256|128,512)\]", compiled.as_text())


def test_a_rule_that_does_not_fit_names_the_path(mesh):
    with pytest.raises(ValueError, match="norm/scale"):
        nn.shardings(nn.Stack(Block, 2, key=random.key(0)), {"norm/scale": P("model")}, mesh)
    with pytest.raises(ValueError, match="'heads' matches no path"):
        nn.shardings(Model(0), {"heads": P("model")}, mesh)


class Block(nn.Module):
    def __init__(self, key):
        self.norm = nn.LayerNorm(3)


def loss(model, ids):
    logits = nn.log_softmax(model(ids))
    return -jnp.take_along_axis(logits, ids[..., None], -1).mean()


@pytest.mark.parametrize("split", [None, "data"])
def test_training_over_a_mesh(mesh, split):
    ids = random.randint(random.key(3), (8, 5), 0, 16)
    step = train.step(loss)
    one = train.State(atled.jit(Model)(random.key(0)), optim.AdamW(1e-2))
    many = train.State(nn.create(Model, random.key(0), rules=RULES, mesh=mesh), optim.AdamW(1e-2), mesh_axis=split)
    first = many.opt_state.slots["first"]
    assert first.tokens.weight.sharding.spec == (P("model") if split is None else P(("model", "data")))
    batch = atled.device_put(ids, NamedSharding(mesh, P("data")))
    for _ in range(4):
        one, a = step(one, ids)
        many, b = step(many, batch)
        np.testing.assert_allclose(float(a["loss"]), float(b["loss"]), rtol=1e-4)
    assert many.model.tokens.weight.sharding.spec == P("model")
    assert many.opt_state.slots["first"].tokens.weight.sharding.spec == first.tokens.weight.sharding.spec
    np.testing.assert_allclose(one.model.norm.mean, many.model.norm.mean, rtol=1e-3, atol=1e-5)
    assert len(step.compiles) == 2


def test_statistics_over_a_named_axis(mesh):
    norm = nn.BatchNorm(3, axis_name="data")
    x = random.normal(random.key(0), (8, 3))

    def run(norm, x):
        return norm(x), norm

    out, after = atled.shard_map(run, mesh=mesh, in_specs=(P(), P("data")), out_specs=(P("data"), P()))(norm, x)
    whole = nn.BatchNorm(3)
    np.testing.assert_allclose(out, whole(x), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(after.mean, whole.mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("groups", [2, 8])
@pytest.mark.parametrize("specs", [(P(None, None, "model"), P("data")), (P(), P("data")), (P(), P())])
def test_kernel_gradients_of_grouped_convolutions(mesh, groups, specs):
    """The partitioner adds up too often in convolutions with batch groups whose sum is split."""
    layer = nn.Conv1d(8, 8, 3, groups=groups, use_bias=False, key=random.key(0))
    x = random.normal(random.key(1), (4, 7, 8))
    grads = atled.jit(atled.grad(lambda m, x: jnp.sin(m(x)).sum()))
    want = grads(layer, x).weight
    layer.weight = atled.device_put(layer.weight, NamedSharding(mesh, specs[0]))
    got = grads(layer, atled.device_put(x, NamedSharding(mesh, specs[1]))).weight
    np.testing.assert_allclose(want, got, rtol=1e-5, atol=1e-5)


def test_like_functions_keep_the_place(mesh):
    x = atled.device_put(jnp.arange(16.0), NamedSharding(mesh, P("data")))
    for f in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda a: jnp.full_like(a, 3)):
        assert f(x).sharding == x.sharding
    assert jnp.zeros_like(x, "int8").sharding == x.sharding
    assert jnp.zeros_like(atled.device_put(1.0, atled.devices()[3])).device == atled.devices()[3]
