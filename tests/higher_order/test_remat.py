"""Memory for time: values and derivatives stay, what is kept shrinks."""

from __future__ import annotations

import re

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.core.trace import Tracer
from atled.engine import stablehlo
from atled.jax.ad_checkpoint import checkpoint_name
from atled.transforms.linearize import linearize_flat

policies = atled.checkpoint_policies
W = np.random.RandomState(0).randn(4, 8, 8).astype("f4") / 3
X = np.random.RandomState(1).randn(2, 8).astype("f4")


def layer(w, x):
    h = checkpoint_name(jnp.tanh(x @ w), "hidden")
    return jnp.sin(h @ w.T) + x


def loss(f):
    def of(ws, x):
        for w in ws:
            x = f(w, x)
        return jnp.sum(x**2)

    return of


POLICIES = {
    "none": None,
    "nothing": policies.nothing_saveable,
    "everything": policies.everything_saveable,
    "dots": policies.dots_saveable,
    "dots without batch": policies.dots_with_no_batch_dims_saveable,
    "name": policies.save_only_these_names("hidden"),
    "but name": policies.save_anything_except_these_names("hidden"),
    "no names": policies.save_any_names_but_these("hidden"),
    "both": policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("hidden")),
    "offload": policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"]
    ),
}
WAYS = {
    "grad": lambda f: lambda w, x: atled.grad(f, (0, 1))(w, x),
    "jit": lambda f: atled.jit(atled.grad(f, (0, 1))),
    "jvp": lambda f: lambda w, x: atled.jvp(f, (w, x), (w * 0.5, x)),
    "vmap": lambda f: lambda w, x: atled.vmap(atled.grad(f), (None, 0))(w, x),
    "of vmap": lambda f: lambda w, x: atled.grad(lambda w: atled.vmap(f, (None, 0))(w, x).sum())(w),
    "twice": lambda f: lambda w, x: atled.grad(lambda x: jnp.sum(atled.grad(f, 1)(w, x) ** 2))(x),
    "forward over reverse": lambda f: lambda w, x: atled.jvp(lambda x: atled.grad(f)(w, x), (x,), (x,)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_changes(policy, way):
    f = atled.remat(layer, policy=POLICIES[policy])
    want = WAYS[way](loss(layer))(W, X)
    got = WAYS[way](loss(f))(W, X)
    for a, b in zip(atled.tree.leaves(got), atled.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def work(f, word):
    text = str(atled.make_program(atled.grad(lambda w: f(w, X).sum()))(W[0]))
    return len(re.findall(rf"\b{word}\b", text))


def test_what_the_policies_keep():
    count = lambda policy: [work(atled.remat(layer, policy=policy), op) for op in ("tanh", "dot_general")]
    plain = [work(layer, op) for op in ("tanh", "dot_general")]
    assert count(policies.everything_saveable) == plain
    assert count(policies.nothing_saveable) == [plain[0] + 1, plain[1] + 2]
    assert count(policies.dots_saveable) == [plain[0] + 1, plain[1]]
    assert count(policies.save_only_these_names("hidden")) == [plain[0], plain[1] + 1]
    assert count(policies.save_only_these_names("other")) == count(None)


def test_policies_see_through_calls():
    inner = lambda w, x: atled.jit(layer)(w, x)
    dots = atled.remat(inner, policy=policies.dots_saveable)
    assert work(dots, "dot_general") == work(layer, "dot_general")


def test_memory_is_saved():
    ws = np.random.RandomState(0).randn(12, 64, 64).astype("f4") / 8
    x = np.ones((512, 64), "f4")

    def deep(w, x):
        for _ in range(4):
            x = jnp.tanh(x @ w)
        return x

    def temporary(f):
        return atled.jit(atled.grad(loss(f))).lower(ws, x).compile().memory_analysis().temp_size_in_bytes

    assert temporary(atled.remat(deep)) < 0.5 * temporary(deep)

    def scanned(f):
        return lambda ws, x: jnp.sum(lax.scan(lambda x, w: (f(w, x), None), x, ws)[0])

    def of_scan(f):
        return atled.jit(atled.grad(scanned(f))).lower(ws, x).compile().memory_analysis().temp_size_in_bytes

    assert of_scan(atled.remat(deep)) < 0.5 * of_scan(deep)


def test_what_a_function_closes_over_is_not_kept_either():
    def taped(f):
        _, linear = linearize_flat(lambda x: [f(x)], [jnp.float32(0.5)])
        return [type(e.op).__name__ for e in linear.equations]

    one = jnp.float32(1.0)
    assert taped(lambda x: atled.remat(lambda a: jnp.sin(jnp.sin(a * x)))(one)) == ["Checkpoint"]
    assert float(atled.grad(lambda x: atled.remat(lambda: jnp.sin(x))())(0.0)) == 1.0


def test_static_arguments_and_keywords():
    f = atled.remat(lambda x, n, *, k: x**n * k, static_argnums=1)
    assert float(atled.grad(lambda x: f(x, 3, k=2.0))(2.0)) == 24.0
    assert float(f(2.0, 3, k=2.0)) == 16.0
    assert float(atled.jit(atled.grad(atled.remat(lambda x: jnp.sin(x))))(0.0)) == 1.0


def test_offloaded_values_go_to_the_host():
    f = atled.remat(layer, policy=POLICIES["offload"])
    program = atled.jit(atled.grad(lambda w: f(w, X).sum())).trace(W[0]).program
    text = stablehlo.module_text(stablehlo.build(program, "tpu"))
    assert text.count('_xla_buffer_placement = "pinned_host"') == 1
    assert text.count('_xla_buffer_placement = "device"') == 1
    assert "annotate_device_placement" not in stablehlo.module_text(stablehlo.build(program, "cpu"))


def test_values_are_traced_too():
    """So what would fail under `grad` fails at once; and the equations run one by one."""
    with pytest.raises(TypeError, match="truth value of a traced bool"):
        atled.remat(lambda x: x if x > 0 else -x)(1.0)
    seen = []
    f = atled.remat(lambda x, n: seen.append(isinstance(x, Tracer)) or {"a": jnp.sin(x) * n})
    np.testing.assert_allclose(f(0.5, n=3)["a"], 3 * np.sin(np.float32(0.5)), 1e-6)
    assert seen == [True]


def test_results_on_values_are_arrays():
    """Numbers in results, arguments and values closed over came back as they were, or as parts of the program."""
    given, inner = np.ones(3, "f4"), np.ones(2, "f4")
    out = atled.remat(lambda x: (x, 0.0, True, np.float32(2), inner, jnp.sin(x)))(given)
    assert all(type(y) is type(jnp.ones(1)) for y in out)
    assert not bool(out[1]) and bool(out[2]) and float(out[3]) == 2
    for array, result in ((given, out[0]), (inner, out[4])):
        array[0] = 7
        assert float(result[0]) == 1


def test_static_positions_out_of_range():
    x = jnp.ones(2)
    for wrong in (1, 5, -3):
        with pytest.raises(ValueError, match=f"1 positional arguments; got static_argnums={wrong}"):
            atled.remat(lambda x, scale=2: x * scale, static_argnums=wrong)(x)
    with pytest.raises(TypeError, match="static_argnums must be an int"):
        atled.remat(lambda x: x, static_argnums="a")
    for n in (1, -1):
        np.testing.assert_array_equal(atled.remat(lambda x, n: x * n, static_argnums=n)(x, 3), [3, 3])
