"""BERT, ViT and ResNet, read shard by shard onto a mesh of 4 × 2 devices: split by rules, with the same outputs."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import models, random, tree
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

CASES = {
    "bert": (models.bert.Config(37, 16, 2, 2, 32, 12), lambda: jnp.arange(40).reshape(8, 5) % 37),
    "vit": (models.vit.Config(16, 2, 2, 32, 4, 8, num_labels=3), lambda: random.normal(random.key(1), (8, 8, 8, 3))),
    "resnet": (
        models.resnet.Config((1, 1), (8, 16), embedding_size=8, num_labels=3),
        lambda: random.normal(random.key(1), (8, 32, 32, 3)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_are_split_by_rules_and_outputs_are_the_same(name, tmp_path):
    architecture, (config, inputs) = getattr(models, name), CASES[name]
    mesh = atled.make_mesh((4, 2), ("data", "model"))
    model, x = architecture.Model(config, key=random.key(0)).eval(), inputs()
    models.save(tmp_path, model)
    split, _ = models.load(tmp_path, mesh=mesh)
    specs = {leaf.sharding.spec for leaf in tree.leaves(split) if leaf.sharding.spec != P(*[None] * leaf.ndim)}
    assert len(specs) >= len(set(architecture.SHARDING.values())) and tree.structure(split) == tree.structure(model)
    for a, b in zip(tree.leaves(model), tree.leaves(split), strict=True):
        np.testing.assert_array_equal(a, b)
    run = atled.jit(lambda model, x: model(x))
    got = run(split, atled.device_put(x, NamedSharding(mesh, P("data"))))
    np.testing.assert_allclose(got, run(model, x), rtol=2e-5, atol=2e-5)
