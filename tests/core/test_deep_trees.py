"""Trees that are deeper than Python's parser and stack allow recursive code to go."""

import numpy as np
import pytest

import atled
import atled.numpy as jnp


def nested(depth, leaf):
    for i in range(depth):
        leaf = ([leaf], {"a": leaf, "b": None}, (leaf, ()))[i % 3]
    return leaf


def innermost(x):
    while isinstance(x, (list, dict, tuple)):
        x = x["a"] if isinstance(x, dict) else x[0]
    return x


@pytest.mark.parametrize("depth", [39, 40, 41, 250, 900])
def test_deep_trees_go_through_everything(depth):
    x = nested(depth, jnp.arange(3.0))
    double = lambda t: atled.tree.map(lambda v: v * 2, t)
    total = lambda t: innermost(t).sum()
    structure = atled.tree.structure(x)
    assert structure == atled.tree.structure(nested(depth, 0.0)) != atled.tree.structure(nested(depth + 3, 0.0))
    assert hash(structure) == hash(atled.tree.structure(nested(depth, 0.0)))
    compiled = atled.jit(double)
    for f in (double, compiled, compiled, atled.vmap(double), compiled.lower(x).compile()):
        out = f(x)
        assert atled.tree.structure(out) == structure
        np.testing.assert_array_equal(innermost(out), [0, 2, 4])
    for f in (atled.grad(total), atled.jit(atled.grad(total))):
        np.testing.assert_array_equal(innermost(f(x)), np.ones(3))
    carry, _ = atled.lax.scan(lambda c, _: (double(c), None), x, None, length=2)
    np.testing.assert_array_equal(innermost(carry), [0, 4, 8])
    added = atled.tree.map(lambda a, b: a + b, x, x)
    np.testing.assert_array_equal(innermost(added), [0, 2, 4])
    ((path, leaf),) = atled.tree.leaves_with_path(x)
    assert len(path) == depth and leaf is innermost(x)


def test_wide_and_deep_trees_keep_their_order():
    x = 0
    for i in range(400):
        x = [i, (x, i + 0.5), {"a": -i}]
    leaves, structure = atled.tree.flatten(x)
    assert structure.unflatten(leaves) == x and structure.flatten_up_to(x) == leaves
    assert atled.tree.leaves(atled.tree.map(lambda v: v + 1, x)) == [v + 1 for v in leaves]
