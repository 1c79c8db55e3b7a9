"""Own derivatives and own batching: the rule is used, everywhere, and its mistakes are named."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.jax.custom_batching import custom_vmap, sequential_vmap

X = np.linspace(-1.0, 2.0, 6, dtype="f4")
W = np.random.RandomState(0).randn(3, 3).astype("f4")


def close(a, b, tolerance=1e-5):
    b = np.asarray(b) if isinstance(b, list) else b
    for x, y in zip(atled.tree.leaves(a), atled.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@atled.custom_jvp
def by_jvp(x, y):
    return jnp.sin(x) * y


@by_jvp.defjvp
def _(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return by_jvp(x, y), 3.0 * jnp.cos(x) * y * dx + 5.0 * jnp.sin(x) * dy  # off by 3 and 5, to be recognized


@atled.custom_vjp
def by_vjp(x, y):
    return jnp.sin(x) * y


by_vjp.defvjp(
    lambda x, y: (by_vjp(x, y), {"both": (x, y), "none": None, "text": "kept"}),
    lambda kept, g: (3.0 * g * jnp.cos(kept["both"][0]) * kept["both"][1], 5.0 * g * jnp.sin(kept["both"][0])),
)


def marked(x, y):
    """What the derivatives above are the derivatives of: values of sin(x) y, slopes that are off."""
    slope_x, slope_y = 3.0 * jnp.cos(x) * y, 5.0 * jnp.sin(x)
    stop = lax.stop_gradient
    return stop(jnp.sin(x) * y - slope_x * x - slope_y * y) + stop(slope_x) * x + stop(slope_y) * y


def in_scan(f):
    return lambda x, y: lax.scan(lambda c, s: (f(c, s) * 0.5, c), x, jnp.stack([y, y * 0.3]))[0]


def in_cond(f):
    return lambda x, y: lax.cond(x > 0.3, lambda: f(x, y), lambda: f(y, x))


def in_loop(f):
    return lambda x, y: lax.fori_loop(0, 2, lambda i, c: f(c, y), x)


PLACES = {
    "plain": lambda f: f,
    "jit": lambda f: atled.jit(f),
    "checkpoint": lambda f: atled.remat(f),
    "scan": in_scan,
    "cond": in_cond,
    "loop": in_loop,
    "scan of checkpoint": lambda f: in_scan(atled.remat(f)),
}
WAYS = {
    "grad": lambda f: lambda x: atled.grad(f, (0, 1))(x[0], x[1]),
    "jit(grad)": lambda f: lambda x: atled.jit(atled.grad(f, (0, 1)))(x[0], x[1]),
    "vmap(grad)": lambda f: lambda x: atled.vmap(atled.grad(f, (0, 1)))(x, x[::-1]),
    "vmap(grad) of one": lambda f: lambda x: atled.vmap(atled.grad(f, (0, 1)), (0, None))(x, x[4]),
    "grad(vmap)": lambda f: lambda x: atled.grad(lambda u, v: atled.vmap(f)(u, v).sum(), (0, 1))(x, x[::-1]),
    "grad(vmap) of one": lambda f: lambda x: atled.grad(
        lambda u, v: atled.vmap(f, (0, None))(u, v).sum(), (0, 1)
    )(x, x[4]),
    "jit(grad(jit(vmap)))": lambda f: atled.jit(
        lambda x: atled.grad(lambda u, v: atled.jit(atled.vmap(f))(u, v).sum(), (0, 1))(x, x[::-1])
    ),
    "value": lambda f: lambda x: atled.vmap(f)(x, x[::-1]),
}  # fmt: skip


@pytest.mark.parametrize("rule", [by_jvp, by_vjp], ids=["jvp", "vjp"])
@pytest.mark.parametrize("place, way", list(itertools.product(PLACES, WAYS)))
def test_the_rule_is_used(rule, place, way):
    close(WAYS[way](PLACES[place](rule))(X), WAYS[way](PLACES[place](marked))(X), 1e-4)


def test_forward_mode_uses_the_rule_of_custom_jvp():
    assert float(atled.jvp(by_jvp, (0.5, 2.0), (1.0, 0.0))[1]) == pytest.approx(3 * np.cos(0.5) * 2)
    hessian = atled.hessian(lambda x: by_jvp(x, 2.0))
    assert float(hessian(0.5)) == pytest.approx(-3.0 * 2.0 * np.sin(0.5), rel=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, atled.jit, atled.vmap], ids=["eager", "jit", "vmap"])
def test_forward_mode_of_custom_vjp_is_refused(wrap):
    with pytest.raises(TypeError, match="custom_vjp: forward mode"):
        atled.jvp(wrap(lambda x: by_vjp(x, x)), (jnp.ones(2),), (jnp.ones(2),))


def test_python_control_flow_where_values_are_known():
    @atled.custom_jvp
    def f(x):
        return x * 2 if x > 0 else -x

    @f.defjvp
    def _(primals, tangents):
        return f(*primals), tangents[0] * (7.0 if primals[0] > 0 else 11.0)

    assert [float(atled.grad(f)(x)) for x in (1.0, -1.0)] == [7.0, 11.0]
    assert float(f(-3.0)) == 3.0


def test_defaults_keywords_and_methods():
    class Scale:
        factor = 4.0

        @functools.partial(atled.custom_vjp, nondiff_argnums=(0,))
        def apply(self, x, power=2):
            return self.factor * x**power

        apply.defvjp(lambda self, x, power: (x, x), lambda self, x, g: (g * self.factor, None))

    assert float(Scale().apply(3.0)) == 36.0
    assert float(atled.grad(lambda x: Scale().apply(x, power=3))(3.0)) == 4.0
    assert float(atled.jit(atled.grad(lambda x: Scale().apply(x)))(3.0)) == 4.0


def test_rules_may_close_over_arrays():
    table = jnp.arange(3.0)

    @atled.custom_vjp
    def f(x):
        return x * table

    f.defvjp(lambda x: (x * table, None), lambda _, g: (g * table * 2.0,))
    for g in (f, atled.jit(f), atled.remat(f)):
        close(atled.grad(lambda x, g=g: g(x).sum())(jnp.ones(3)), 2 * np.arange(3))
    scanned = atled.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0].sum())
    close(scanned(jnp.ones(3)), 4 * np.arange(3.0) ** 2)


def test_closing_over_traced_values():
    def layer(w, x):
        @atled.custom_vjp
        def f(x):
            return x * w

        f.defvjp(lambda x: (x * w, None), lambda _, g: (g * w * 10.0,))
        return f(x)

    assert float(atled.jit(atled.grad(layer, 1))(2.0, 3.0)) == 20.0
    close(atled.vmap(atled.grad(layer, 1))(jnp.arange(3.0), jnp.ones(3)), [0, 10, 20])
    close(atled.jit(layer)(2.0, 3.0), 6.0)
    with pytest.raises(atled.errors.UnexpectedTracerError, match=r"leaked|closes over"):
        atled.grad(atled.jit(layer), 1)(2.0, 3.0)
    with pytest.raises(atled.errors.UnexpectedTracerError, match="closes over"):
        atled.grad(lambda w: atled.vmap(lambda x: layer(w, x))(jnp.ones(2)).sum())(2.0)


def closing(kind, in_function, in_rule):
    """A function of w and x that calls one of x alone, which closes over w in its value, its rule, or both."""

    def layer(w, x):
        @kind
        def f(x):
            return x * w if in_function else x * 1.0

        slope = w if in_rule else 2.0
        if kind is atled.custom_jvp:
            f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * slope * 10.0))
        else:
            f.defvjp(lambda x: (f(x), None), lambda _, g: (g * slope * 10.0,))
        return f(x)

    return layer


KINDS = pytest.mark.parametrize("kind", [atled.custom_jvp, atled.custom_vjp], ids=["jvp", "vjp"])
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, atled.jit], ids=["eager", "jit"])


@KINDS
@WRAPS
def test_closing_over_a_value_that_is_differentiated_is_refused(kind, wrap):
    layer = closing(kind, True, True)
    derivatives = {
        "closed over": atled.grad(layer),
        "both": atled.grad(layer, (0, 1)),
        "both, forward": lambda w, x: atled.jvp(layer, (w, x), (1.0, 1.0)),
        "closed over, of a derivative": atled.grad(lambda w, x: atled.grad(layer, 1)(w, x)),
        "argument, of a derivative": atled.grad(lambda x, w: atled.grad(layer, 0)(w, x)),
        "in lanes": lambda w, x: atled.grad(lambda w: atled.vmap(lambda w: layer(w, x))(w).sum())(w * jnp.ones(2)),
    }
    for name, derivative in derivatives.items():
        with pytest.raises(atled.errors.UnexpectedTracerError, match=f"{kind.__name__}: f closes over") as caught:
            wrap(derivative)(2.0, 3.0)
        assert "try: make it an argument of f." in str(caught.value), name


@WRAPS
def test_a_rule_that_closes_over_a_value_that_is_differentiated_with_its_arguments_is_refused(wrap):
    layer = closing(atled.custom_jvp, False, True)
    for derivative in (
        atled.grad(layer, (0, 1)),
        lambda w, x: atled.jvp(layer, (w, x), (1.0, 1.0)),
        lambda w, x: atled.grad(lambda x: atled.vmap(lambda w: layer(w, x))(w * jnp.ones(2)).sum())(x),
    ):
        with pytest.raises(atled.errors.UnexpectedTracerError, match="custom_jvp: f closes over"):
            wrap(derivative)(2.0, 3.0)


@KINDS
@WRAPS
def test_closing_over_a_value_that_is_not_differentiated(kind, wrap):
    both, rule = closing(kind, True, True), closing(kind, False, True)
    assert float(wrap(atled.grad(both, 1))(2.0, 3.0)) == 20.0
    assert float(wrap(atled.grad(lambda x, w: x * both(w, 3.0)))(4.0, 2.0)) == 6.0  # next to one that is
    close(wrap(atled.vmap(atled.grad(both, 1)))(jnp.arange(3.0), jnp.ones(3)), [0, 10, 20])
    close(wrap(lambda w: atled.vmap(lambda w: both(w, 3.0))(w))(jnp.arange(3.0)), [0, 3, 6])
    # the value does not depend on w, and its derivative does: the outer level differentiates the rule
    assert float(wrap(atled.grad(rule))(2.0, 3.0)) == 0.0
    assert float(wrap(atled.grad(lambda w, x: atled.grad(rule, 1)(w, x)))(2.0, 3.0)) == 10.0
    # a level that begins and ends inside of the function
    inner = atled.custom_jvp(lambda x: atled.grad(lambda y: both(x, y) * y)(1.0))
    inner.defjvps(lambda tangent, out, x: tangent)
    assert float(wrap(lambda x: inner(x) + atled.grad(lambda y: y * inner(x))(1.0))(2.0)) == 44.0


def test_integers_have_no_derivative():
    @atled.custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def _(primals, tangents):
        (x, n), (dx, dn) = primals, tangents
        assert dn.dtype == atled.float0
        return f(x, n), (dx * n * 2.0, None)

    for g in (f, atled.jit(f)):
        assert float(atled.grad(lambda x, g=g: g(x, 3)[0])(1.0)) == 6.0


BAD_RULES = {
    "number of cotangents": (lambda x, y: (x * y, (x, y)), lambda r, g: (g,), "for each of 2 arguments; got 1 of them"),
    "shape": (
        lambda x, y: (x * y, None),
        lambda r, g: (g, jnp.ones(3)),
        r"must give a cotangent f32\[\]; got f32\[3\]",
    ),
    "dtype": (lambda x, y: (x * y, None), lambda r, g: (g, jnp.int32(1)), r"must give a cotangent f32\[\]; got i32"),
    "no pair": (lambda x, y: x * y, lambda r, g: (g, g), "must return a pair"),
    "tree": (lambda x, y: ((x, y), None), lambda r, g: (g, g), "must return the tree"),
}


@pytest.mark.parametrize("name", BAD_RULES)
@pytest.mark.parametrize("wrap", [lambda f: f, atled.jit], ids=["eager", "jit"])
def test_bad_rules_are_named(name, wrap):
    forward, backward, message = BAD_RULES[name]
    f = atled.custom_vjp(lambda x, y: x * y)
    f.defvjp(forward, backward)
    if name == "tree" and wrap is not atled.jit:
        pytest.skip("the function itself does not run, so there is no tree to compare with")
    with pytest.raises(TypeError, match=message):
        atled.grad(wrap(f))(1.0, 2.0)


def test_missing_rules_and_wrong_arguments():
    with pytest.raises(AttributeError, match=r"custom_jvp: .* must have a rule"):
        atled.grad(atled.custom_jvp(lambda x: x))(1.0)
    with pytest.raises(AttributeError, match=r"custom_vjp: .* must have a rule"):
        atled.grad(atled.custom_vjp(lambda x: x))(1.0)
    with pytest.raises(TypeError, match="nondiff_argnums"):
        by_jvp("text", 1.0)
    f = atled.custom_jvp(lambda x: (x, x))
    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(TypeError, match="a tangent with the tree of the result"):
        atled.grad(lambda x: f(x)[0])(1.0)


def test_own_batching():
    @custom_vmap
    def f(x, y):
        return x * y

    seen = []

    @f.def_vmap
    def _(axis_size, in_batched, x, y):
        seen.append((axis_size, in_batched))
        return x * y + 100.0, in_batched[0] or in_batched[1]

    close(atled.vmap(f)(jnp.arange(3.0), jnp.ones(3)), [100, 101, 102])
    close(atled.jit(atled.vmap(f, (0, None)))(jnp.arange(3.0), 2.0), [100, 102, 104])
    assert seen == [(3, [True, True]), (3, [True, False])]
    close(atled.grad(lambda x: atled.vmap(f, (0, None))(x, 2.0).sum())(jnp.arange(3.0)), [2, 2, 2])
    close(atled.vmap(atled.grad(f), (0, None))(jnp.arange(3.0), 2.0), [2, 2, 2])
    assert float(f(2.0, 3.0)) == 6.0


def test_lanes_one_after_another():
    f = sequential_vmap(lambda x, y: lax.while_loop(lambda v: v < y, lambda v: v * 2, x))
    close(atled.vmap(f, (0, None))(jnp.arange(1.0, 4.0), 10.0), [16, 16, 12])


# -- solutions of equations --------------------------------------------------------------------------------------------

A = W + 4 * np.eye(3, dtype="f4")
B = np.arange(3, dtype="f4") + 1


def solved(a, b):
    return lax.custom_linear_solve(
        lambda x: a @ x, b, lambda _, y: jnp.linalg.solve(a, y), lambda _, y: jnp.linalg.solve(a.T, y)
    )


@pytest.mark.parametrize("wrap", [lambda f: f, atled.jit], ids=["eager", "jit"])
def test_linear_solve_is_differentiated_as_a_solution(wrap):
    def f(solve):
        return wrap(lambda a, b: jnp.sum(solve(a, b) ** 2))

    close(atled.grad(f(solved), (0, 1))(A, B), atled.grad(f(jnp.linalg.solve), (0, 1))(A, B), 1e-4)
    forward = [atled.jvp(f(s), (A, B), (W, B))[1] for s in (solved, jnp.linalg.solve)]
    close(*forward, 1e-4)
    batch = np.stack([A, A.T, A + 1])
    got = atled.vmap(atled.grad(f(solved), (0, 1)), (0, None))(batch, B)
    close(got, atled.vmap(atled.grad(f(jnp.linalg.solve), (0, 1)), (0, None))(batch, B), 1e-4)
    close(atled.hessian(f(solved), 1)(A, B), atled.hessian(f(jnp.linalg.solve), 1)(A, B), 1e-4)


def test_linear_solve_by_iteration():
    def conjugate(matvec, b):
        def step(state):
            x, r, p = state
            alpha = jnp.vdot(r, r) / jnp.vdot(p, matvec(p))
            new = r - alpha * matvec(p)
            return x + alpha * p, new, new + p * jnp.vdot(new, new) / jnp.vdot(r, r)

        return lax.while_loop(lambda s: jnp.vdot(s[1], s[1]) > 1e-12, step, (jnp.zeros_like(b), b, b))[0]

    symmetric = A @ A.T
    f = lambda b: lax.custom_linear_solve(lambda x: symmetric @ x, b, conjugate, symmetric=True)
    close(f(B), np.linalg.solve(symmetric, B), 1e-3)
    close(atled.jacrev(f)(B), np.linalg.inv(symmetric), 1e-3)
    with pytest.raises(TypeError, match="transpose_solve"):
        atled.grad(lambda b: lax.custom_linear_solve(lambda x: symmetric @ x, b, conjugate).sum())(B)


def test_roots_by_the_implicit_function_theorem():
    def newton(f, x):
        return lax.while_loop(lambda x: jnp.abs(f(x)) > 1e-6, lambda x: x - f(x) / atled.grad(f)(x), x)

    root = lambda t: lax.custom_root(lambda x: x**3 - t, 1.0, newton, lambda g, y: y / g(1.0))
    for f in (root, atled.jit(root)):
        assert float(f(8.0)) == pytest.approx(2.0)
        assert float(atled.grad(f)(8.0)) == pytest.approx(1 / 12, rel=1e-4)
        assert float(atled.grad(atled.grad(f))(8.0)) == pytest.approx(-2 / 9 * 8.0 ** (-5 / 3), rel=1e-3)
    close(atled.vmap(atled.grad(root))(jnp.array([8.0, 27.0])), [1 / 12, 1 / 27], 1e-4)
