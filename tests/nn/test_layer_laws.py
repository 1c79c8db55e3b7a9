"""Every layer obeys every law: see `layer_cases.py`."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from layer_cases import CASES

import atled
import atled.numpy as jnp
from atled import nn, random, tree
from atled.nn.module import settled
from atled.nn.module_filters import paths_of


def called(layer, args, case):
    more = {"key": random.key(5)} if case.takes_key else {}
    return layer(*args, **more)


def made(case, seed=0):
    return case.make(random.key(seed)), case.inputs(random.key(seed + 100))


def close(a, b, tolerance=1e-5):
    a, b = [[np.asarray(x, "float32") for x in tree.leaves(t)] for t in (a, b)]
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def exactly_equal(a, b):
    assert tree.structure(a) == tree.structure(b)
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def tolerance_of(case):
    return 2e-2 if "bfloat16" in case.name else 1e-5


def each(cases=CASES):
    return pytest.mark.parametrize("case", cases, ids=[c.name for c in cases])


@each()
def test_jit_changes_nothing(case):
    layer, args = made(case)
    run = atled.jit(lambda layer, *args: (called(layer, args, case), layer))
    for _ in range(3):  # slow, slow with code made, launched
        out, after = run(layer, *args)
        eager = layer.__copy__()
        want = called(eager, args, case)
        close(out, want, tolerance_of(case))
        close(after, eager, tolerance_of(case))


@each()
def test_jit_of_the_layer_sees_new_arrays(case):
    layer, args = made(case)
    layer = layer.eval()
    run = atled.jit(layer)
    close(run(*args), called(layer, args, case), tolerance_of(case))
    for path, x in tree.leaves_with_path(layer):
        owner = layer
        for key in path[:-1]:
            owner = owner[key.idx] if hasattr(key, "idx") else getattr(owner, key.name)
        setattr(owner, path[-1].name, x + 1 if x.dtype == np.float32 else x)
    close(run(*args), called(layer, args, case), tolerance_of(case))


@each()
def test_vmap_over_models(case):
    _, args = made(case)
    keys = random.split(random.key(7), 3)
    layers = atled.vmap(lambda k: case.make(k).eval())(keys)
    out = atled.vmap(lambda layer: called(layer, args, case), axis_size=3)(layers)
    for i in range(3):
        one = tree.map(lambda x, i=i: x[i], layers)
        close(tree.map(lambda x, i=i: x[i], out), called(one, args, case), tolerance_of(case))


@each([c for c in CASES if not c.is_mixing])
def test_vmap_over_data(case):
    layer, args = made(case)
    layer = layer.eval()
    alone = lambda *a: tree.map(lambda y: y[0], called(layer, tree.map(lambda x: x[None], a), case))
    close(atled.vmap(alone)(*args), called(layer, made(case)[1], case), tolerance_of(case))


@each()
def test_gradients_are_by_parameters_alone(case):
    layer, args = made(case)

    def loss(layer):
        out = called(layer, args, case)
        return sum([jnp.sum(jnp.sin(x.astype("float32"))) for x in tree.leaves(out)]), layer

    grads, _ = atled.grad(loss, has_aux=True)(layer)
    kinds = tree.structure(layer).kinds
    found = tree.structure(layer).flatten_up_to(grads)
    assert [g is not None for g in found] == [k is nn.Param for k in kinds]
    if nn.Param not in kinds:
        return
    direction = nn.filter(tree.map(lambda x: random.normal(random.key(3), x.shape, x.dtype), layer), nn.Param)
    _, slope, _ = atled.jvp(loss, (layer,), (direction,), has_aux=True)
    total = sum([jnp.vdot(a, b) for a, b in zip(tree.leaves(grads), tree.leaves(direction), strict=True)])
    np.testing.assert_allclose(float(slope), float(total), rtol=1e-3, atol=tolerance_of(case) * 10)


@each()
def test_backward_pass_equals_differences_in_float64(case):
    layer, args = made(case)
    wide = nn.cast(layer.eval(), param_dtype="float64")
    args = tree.map(lambda x: x.astype("float64") if x.dtype == np.float32 else x, args)
    if "bfloat16" in case.name or not tree.leaves(nn.params(wide)):
        pytest.skip("no float64 in it")

    def loss(layer):
        return sum([jnp.sum(jnp.sin(x)) for x in tree.leaves(called(layer, args, case))])

    grads = atled.grad(loss)(wide)
    rng = np.random.default_rng(0)
    step = nn.filter(tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), wide), nn.Param)
    moved = [nn.merge(tree.map(lambda p, d, s=s: p + s * d, nn.params(wide), step), wide) for s in (1e-5, -1e-5)]
    slope = float(loss(moved[0]) - loss(moved[1])) / 2e-5
    total = sum([float(jnp.vdot(a, b)) for a, b in zip(tree.leaves(grads), tree.leaves(step), strict=True)])
    np.testing.assert_allclose(slope, total, rtol=1e-6, atol=1e-7)


@each([c for c in CASES if c.keeps_shape])
@pytest.mark.parametrize("remat", [False, True])
def test_a_stack_is_its_layers_one_after_the_other(case, remat):
    _, args = made(case)
    stack = nn.Stack(case.make, 3, key=random.key(7), remat=remat)
    if case.kind == "BatchNorm":
        stack = stack.train()

    def loss(run, model):
        return jnp.sum(jnp.sin(run(model))), model

    def unrolled(layers):
        x = args[0]
        for layer in layers:
            x = layer(x)
        return x

    layers = stack.unrolled()
    (a, after), grads = atled.value_and_grad(lambda m: loss(lambda m: m(*args), m), has_aux=True)(stack)
    (b, parts), want = atled.value_and_grad(lambda ms: loss(unrolled, ms), has_aux=True)(layers)
    close(a, b)
    close(nn.buffers(after.layers), tree.map(lambda *xs: jnp.stack(xs), *[nn.buffers(p) for p in parts]))
    close(grads.layers, tree.map(lambda *xs: jnp.stack(xs), *want), 1e-4)


@each()
def test_copies_and_trees(case):
    layer, args = made(case)
    leaves, structure = tree.flatten(layer)
    for other in (
        copy.copy(layer),
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        structure.unflatten(leaves),
    ):
        assert tree.structure(other) is structure or tree.structure(other) == structure
        exactly_equal(other, layer)
        exactly_equal(called(other.eval(), args, case), called(layer.eval(), args, case))
    assert tree.structure(layer.eval().train()) == structure
    assert tree.structure(layer.eval()) != structure


@each()
def test_paths_stay_what_they_are(case):
    assert tuple(paths_of(made(case)[0])) == case.paths


@each()
def test_no_field_has_the_name_of_another_argument(case):
    """`layer.bias` is an array, so the argument that asks for one is `use_bias`."""
    for _, module in nn.modules(made(case)[0]):
        children = set(settled(module).names)
        assert not children & set(inspect.signature(type(module).__call__).parameters), type(module)
        for name, asked in inspect.signature(type(module)).parameters.items():
            assert name not in children or asked.annotation not in ("int", "bool", "float"), (type(module), name)


@each()
def test_a_second_layer_is_compiled_for_once(case):
    args = made(case)[1]
    run = atled.jit(lambda layer, *args: called(layer, args, case))
    for seed in range(3):
        run(case.make(random.key(seed)).eval(), *args)
    assert len(run.compiles) == 1


def test_every_layer_has_a_row():
    public = {n for n in nn.__all__ if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), nn.Module)}
    assert public - {"Module", "Dense", "Positions"} == {c.kind for c in CASES}
