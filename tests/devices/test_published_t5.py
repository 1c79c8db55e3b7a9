"""T5, read shard by shard onto a mesh of 4 × 2 devices: split by rules, with the same outputs and tokens."""

import numpy as np

import atled
from atled import generate, models, random, tree
from atled.models import t5
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P


def test_weights_are_split_by_rules_and_outputs_are_the_same(tmp_path):
    config = t5.Config(40, 16, 8, 32, 2, 4, None, "gated-gelu", False)
    mesh = atled.make_mesh((4, 2), ("data", "model"))
    model = t5.Model(config, key=random.key(0)).eval()
    models.save(tmp_path, model)
    split, _ = models.load(tmp_path, mesh=mesh)
    specs = {leaf.sharding.spec for leaf in tree.leaves(split) if leaf.sharding.spec != P(*[None] * leaf.ndim)}
    assert len(specs) >= len(set(t5.SHARDING.values())) and tree.structure(split) == tree.structure(model)
    assert split.decoder.blocks.layers.mlp["wo"].weight.sharding.spec == P(None, "model", "data")
    for a, b in zip(tree.leaves(model), tree.leaves(split), strict=True):
        np.testing.assert_array_equal(a, b)
    args = random.randint(random.key(1), (8, 6), 0, 40), random.randint(random.key(2), (8, 5), 0, 40)
    run = atled.jit(lambda model, *args: model(*args))
    got = run(split, *[atled.device_put(x, NamedSharding(mesh, P("data"))) for x in args])
    np.testing.assert_allclose(got, run(model, *args), rtol=2e-5, atol=2e-5)
    rows = [generate.tokens(m, [np.array([3, 4, 5]), np.array([6])], max_new_tokens=4) for m in (model, split)]
    for a, b in zip(*rows, strict=True):
        np.testing.assert_array_equal(a, b)
