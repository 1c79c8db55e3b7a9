"""Loops and branches against the same thing written in Python, under every composition of transforms."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax, random

R = np.random.RandomState(0)
W = R.randn(3, 3).astype("f4")
XS = R.randn(6, 3).astype("f4")


def close(a, b, tolerance=2e-5):
    for x, y in zip(atled.tree.leaves(a), atled.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def python_scan(f, carry, xs, reverse=False, **_):
    ys = []
    for x in reversed(list(xs)) if reverse else xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, jnp.stack(ys[::-1] if reverse else ys)


def recurrent(scan, **options):
    def f(w, xs):
        def step(h, x):
            h = jnp.tanh(h @ w + x)
            return h, h * x[0]

        h, ys = scan(step, jnp.zeros(3), xs, **options)
        return jnp.sum(h) + jnp.sum(ys * ys)

    return f


def branching(choose):
    def f(w, xs):
        total = 0.0
        for i in range(3):
            x = xs[i]
            total = total + choose(x[0] > 0, lambda v: jnp.sum(jnp.sin(v @ w)), lambda v: jnp.sum(v * v * w), x)
        return total

    return f


def both(pred, yes, no, *operands):
    return jnp.where(pred, yes(*operands), no(*operands))


def counted(loop):
    return lambda w, xs: jnp.sum(loop(0, 4, lambda i, v: jnp.sin(v @ w) + xs[i], xs[5]))


def python_loop(low, high, body, value):
    for i in range(low, high):
        value = body(i, value)
    return value


def bounded(w, xs):
    def body(c):
        return c[0] + 1, jnp.tanh(c[1] @ w)

    return jnp.sum(lax.while_loop(lambda c: c[0] < 3, body, (0, xs[0]), max_steps=5)[1])


PAIRS = {
    "scan": (recurrent(lax.scan), recurrent(python_scan)),
    "scan reversed": (recurrent(lax.scan, reverse=True), recurrent(python_scan, reverse=True)),
    "scan unrolled": (recurrent(lax.scan, unroll=4), recurrent(python_scan)),
    "scan all unrolled": (recurrent(lax.scan, unroll=True), recurrent(python_scan)),
    "cond": (branching(lax.cond), branching(both)),
    "fori_loop": (counted(lax.fori_loop), counted(python_loop)),
    "while_loop with max_steps": (
        bounded,
        lambda w, xs: jnp.sum(python_loop(0, 3, lambda i, v: jnp.tanh(v @ w), xs[0])),
    ),
}
USES = {
    "value": lambda f: f,
    "jit": atled.jit,
    "grad": lambda f: atled.grad(f, (0, 1)),
    "jit of grad": lambda f: atled.jit(atled.grad(f, (0, 1))),
    "grad of jit": lambda f: atled.grad(atled.jit(f), (0, 1)),
    "jvp": lambda f: lambda w, xs: atled.jvp(f, (w, xs), (xs[:3], xs * 0.5)),
    "hessian": atled.hessian,
    "jacfwd of grad": lambda f: atled.jit(atled.jacfwd(atled.grad(f))),
    "grad of grad": lambda f: atled.grad(lambda w, xs: jnp.sum(atled.grad(f)(w, xs) ** 2)),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", PAIRS)
def test_as_in_python(name, use):
    ours, plain = PAIRS[name]
    close(USES[use](ours)(jnp.asarray(W), jnp.asarray(XS)), USES[use](plain)(jnp.asarray(W), jnp.asarray(XS)))


BATCHES = {
    "arguments": ((0, 0), (np.stack([W, W.T]), np.stack([XS, -XS]))),
    "the first": ((0, None), (np.stack([W, W.T]), XS)),
    "the second": ((None, 0), (W, np.stack([XS, -XS]))),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", PAIRS)
def test_batches(name, batch):
    ours = PAIRS[name][0]
    axes, arguments = BATCHES[batch][0], [jnp.asarray(a) for a in BATCHES[batch][1]]
    one = lambda i: [a[i] if axis == 0 else a for a, axis in zip(arguments, axes, strict=True)]
    for f in (ours, atled.grad(ours)):
        want = np.stack([f(*map(jnp.asarray, one(i))) for i in range(2)])
        close(atled.vmap(f, axes)(*arguments), want)
        close(atled.jit(atled.vmap(f, axes))(*arguments), want)


def test_each_lane_stops_by_itself():
    f = lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2, jnp.int32(1))
    np.testing.assert_array_equal(atled.vmap(f)(jnp.array([1, 3, 100])), [1, 4, 128])
    g = lambda x: lax.while_loop(lambda c: c[0] < 10.0, lambda c: (c[0] * x, c[1] + 1), (jnp.float32(1.0), 0))
    value, steps = atled.vmap(g)(jnp.array([2.0, 5.0]))
    np.testing.assert_array_equal(value, [16, 25])
    np.testing.assert_array_equal(steps, [4, 2])


def test_forward_mode_through_while_loop():
    f = lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * x), (0, jnp.float32(1.0)))[1]
    value, change = atled.jit(lambda x: atled.jvp(f, (x,), (1.0,)))(3.0)
    assert float(value) == 81 and float(change) == 108
    with pytest.raises(ValueError, match="reverse mode would have to store every step"):
        atled.grad(f)(3.0)
    with pytest.raises(ValueError, match="linearize and reverse mode would have to store every step"):
        atled.linearize(f, 3.0)


def test_traced_bounds():
    f = atled.jit(lambda n, x: lax.fori_loop(0, n, lambda i, v: v + x[i], 0.0))
    assert float(f(3, jnp.arange(5.0))) == 3 and float(f(5, jnp.arange(5.0))) == 10 and len(f.compiles) == 1


def test_only_the_chosen_branch_runs():
    text = atled.jit(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)).lower(True, jnp.ones(3)).as_text()
    assert "stablehlo.case" in text
    batched = atled.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), (None, 0))
    assert "stablehlo.case" in atled.jit(batched).lower(True, jnp.ones((2, 3))).as_text()
    lanes = atled.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x))
    close(lanes(jnp.array([True, False]), jnp.ones((2, 3))), np.stack([np.sin(np.ones(3)), np.cos(np.ones(3))]))


def test_switch_takes_the_nearest():
    f = atled.jit(lambda i: lax.switch(i, [lambda: 0.0, lambda: 1.0, lambda: 2.0]))
    assert [float(f(i)) for i in (-3, 0, 1, 2, 9)] == [0, 0, 1, 2, 2]
    close(atled.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x))(jnp.arange(3), jnp.ones(3)),
          np.array([np.sin(1), np.cos(1), np.exp(1)]))  # fmt: skip


def test_trees_and_numbers_in_the_carry():
    carry, ys = lax.scan(lambda c, x: ({"n": c["n"] + 1, "s": c["s"] + x}, None), {"n": 0, "s": 0.0}, jnp.arange(4.0))
    assert int(carry["n"]) == 4 and float(carry["s"]) == 6 and ys is None
    # a Python number takes the type that the body gives it
    value, _ = lax.scan(lambda c, x: (c + x, None), 0, jnp.ones(3, "bfloat16"))
    assert value.dtype == jnp.bfloat16
    assert lax.scan(lambda c, x: (c, x), 1.0, jnp.zeros((0, 2)))[1].shape == (0, 2)


def test_keys_in_loops():
    key = random.key(0)

    def step(key, _):
        key, sub = random.split(key)
        return key, random.normal(sub)

    _, ys = lax.scan(step, key, length=3)
    want, k = [], random.clone(key)
    for _ in range(3):
        k, y = step(k, None)
        want.append(y)
    np.testing.assert_array_equal(ys, np.stack(want))
    keys = random.split(random.key(1), 4)
    _, ys = lax.scan(lambda c, k: (c, random.normal(k)), 0, keys)
    np.testing.assert_array_equal(ys, atled.vmap(random.normal)(random.clone(keys)))


def test_nested():
    def f(x):
        def outer(c, a):
            inner = lambda v: lax.fori_loop(0, 3, lambda i, u: jnp.sin(u) * a, v)
            return lax.cond(a > 1, inner, lambda v: v * v, c), lax.while_loop(
                lambda n: n < c, lambda n: n + a + 0.5, 0.0
            )

        return lax.scan(outer, x, jnp.arange(4.0))[0]

    def plain(x):
        for a in range(4):
            if a > 1:
                for _ in range(3):
                    x = jnp.sin(x) * a
            else:
                x = x * x
        return x

    for x in (0.7, -0.3):
        close(atled.jit(f)(x), plain(x))
        close(atled.jit(atled.grad(f))(x), atled.grad(plain)(x))
    close(atled.vmap(atled.grad(f))(jnp.array([0.7, -0.3])), np.stack([atled.grad(plain)(x) for x in (0.7, -0.3)]))


def test_what_is_closed_over_is_not_carried_or_stacked():
    w = jnp.asarray(W)
    program = atled.make_program(
        atled.grad(lambda x: jnp.sum(lax.scan(lambda h, y: (jnp.tanh(h @ w + y), None), x, XS)[0]))
    )(jnp.zeros(3))
    loops = [e for e in program.equations if e.op.name == "scan"]
    assert len(loops) == 2
    stacked = [v.type.shape for v in loops[0].results]
    assert (6, 3, 3) not in stacked and stacked.count((6, 3)) == 1  # one residual a step: tanh


def test_long_loops_compile_as_short_ones():
    text = lambda n: atled.jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c), c), x, length=n)).lower(1.0).as_text()
    assert abs(text(10_000).count("\n") - text(10).count("\n")) <= 1


def test_map():
    xs = jnp.arange(7.0)
    for size in (None, 1, 3, 7, 20):
        close(lax.map(lambda x: {"y": x * x}, xs, batch_size=size), {"y": np.arange(7.0) ** 2})


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: lax.scan(lambda c, x: (jnp.zeros(3), x), jnp.zeros(2), XS), r"carry: starts as f32\[2\], the body gives f32\[3\]"),  # noqa: E501
        (lambda: lax.scan(lambda c, x: ((c, c), x), jnp.zeros(2), XS), "scan: the carry must keep its tree"),
        (lambda: lax.scan(lambda c, x: c, 0.0, XS), "must return a pair"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0), "the length is unknown"),
        (lambda: lax.scan(lambda c, x: (c, x), 0.0, (XS, W)), "the same length along the first axis"),
        (lambda: lax.cond(jnp.ones(2) > 0, jnp.sin, jnp.cos, 1.0), "the predicate must be a scalar"),
        (lambda: lax.cond(True, lambda: jnp.zeros(2), lambda: jnp.zeros(3)), r"result: .* gives f32\[3\], .* gives f32\[2\]"),  # noqa: E501
        (lambda: lax.cond(True, lambda: 1.0, lambda: (1.0, 2.0)), "must return the same tree"),
        (lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0), "the condition must be a single boolean"),
        (lambda: lax.fori_loop(0.5, 3, lambda i, v: v, 0), "the bounds must be integers"),
        (lambda: lax.switch(1.0, [jnp.sin, jnp.cos], 1.0), "the index must be an integer"),
    ],
)  # fmt: skip
def test_mistakes(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()


def test_random_keys_go_through_everything():
    key = random.key(3)
    keys = random.split(random.clone(key), 3)

    def step(k, _):
        a, b = random.split(k)
        return a, b

    _, stacked = lax.scan(step, random.clone(key), None, length=3)
    want, k = [], random.clone(key)
    for _ in range(3):
        k, b = random.split(k)
        want.append(np.asarray(random.key_data(b)))
    np.testing.assert_array_equal(random.key_data(stacked), np.stack(want))
    one = atled.grad(atled.remat(lambda x, k: jnp.sum(x * random.normal(k, (3,)))))(2.0, random.clone(key))
    assert float(one) == pytest.approx(float(random.normal(random.clone(key), (3,)).sum()))
    drawn = lax.map(lambda k: random.uniform(k), random.clone(keys))
    np.testing.assert_array_equal(drawn, atled.vmap(random.uniform)(random.clone(keys)))


def test_a_bounded_while_loop_keeps_the_square_root_of_its_steps():
    x = np.ones((32, 32), "f4")

    def temporary(steps):
        loop = lambda x: lax.while_loop(
            lambda c: c.sum() < 1e9, lambda c: jnp.tanh(c @ c * 0.1) + c, x, max_steps=steps
        )
        compiled = atled.jit(atled.grad(lambda x: loop(x).sum())).lower(x).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert temporary(1600) < 6 * temporary(100)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9, 10, 30])
def test_a_bounded_while_loop_stops_where_it_should(steps):
    loop = lambda x: lax.while_loop(lambda c: c < 20.0, lambda c: c * 1.5, x, max_steps=steps)
    x = 1.0
    for _ in range(steps):
        if x < 20.0:
            x *= 1.5
    for f in (loop, atled.jit(loop)):
        assert float(f(1.0)) == pytest.approx(x)
        assert float(atled.grad(f)(1.0)) == pytest.approx(x)
    np.testing.assert_allclose(atled.vmap(atled.grad(loop))(jnp.ones(2)), [x, x], rtol=1e-6)


def test_cond_with_an_operand_for_each_branch():
    forms = [
        lambda p, a, b: lax.cond(p, a, lambda x: x * 2, b, lambda x: -x),
        lambda p, a, b: lax.cond(p, true_operand=a, true_fun=lambda x: x * 2, false_operand=b, false_fun=lambda x: -x),
    ]
    for form in forms:
        for f in (form, atled.jit(form)):
            assert float(f(True, 1.0, 2.0)) == 2.0 and float(f(False, 1.0, 2.0)) == -2.0
        assert [float(g) for g in atled.grad(form, (1, 2))(False, 1.0, 2.0)] == [0.0, -1.0]
        np.testing.assert_array_equal(atled.vmap(form, (0, None, None))(np.array([True, False]), 1.0, 2.0), [2.0, -2.0])
    assert float(lax.cond(True, {"a": 1.0}, lambda d: d["a"], 2.0, lambda x: x)) == 1.0
    assert float(lax.cond(False, lambda x: x, lambda x: -x, operand=3.0)) == -3.0
    with pytest.raises(TypeError, match="the branches must be functions"):
        lax.cond(True, 1.0, 2.0)
    with pytest.raises(TypeError, match="true_operand and false_operand must be given together"):
        lax.cond(True, true_operand=1.0, true_fun=lambda x: x, false_fun=lambda x: -x)
