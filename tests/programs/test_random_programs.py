"""Random programs under random compositions of transforms give what the reference says."""

from __future__ import annotations

import collections

import build
import numpy as np
import pytest
from compositions import DERIVATIVES, Composition, Point, Rough, Trial, Wrap, close, trials
from hypothesis import HealthCheck, Phase, given, seed, settings
from language import NESTED, Equation, Program, Var, closes
from reference import Run

import atled
import atled.numpy as jnp
from atled import lax

quiet = settings(
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[p for p in settings.default.phases if p in (Phase.generate, Phase.shrink)],
)


@seed(20000)
@settings(quiet, max_examples=160, report_multiple_bugs=False)
@given(trials)
def test_transforms_of_random_programs(found):
    for trial in found:
        try:
            trial.check()
        except Rough:
            continue
        except Exception as error:
            raise AssertionError(f"{trial.composition.name()}: {error}\n\n{trial.text()}") from error


# -- the parts ---------------------------------------------------------------------------------------------------------

X, Y = Var(0, (3,)), Var(1, ())
DOUBLED = Program(
    (Var(2, ()), Var(3, ())), (Equation("add", (Var(2, ()), Var(3, ())), (Var(4, ()),)),), (Var(4, ()),) * 2
)


def one(kind, operands, shapes, bodies=(), **options):
    """A program of x: f64[3] and y: f64[] with one equation."""
    results = tuple([Var(90 + i, s) for i, s in enumerate(shapes)])
    return Program((X, Y), (Equation(kind, operands, results, options, bodies),), results)


LOOP = {"reverse": False, "unroll": 1, "counted": False, "carried": 1}
BY_HAND = {
    "inverse": (one("inverse", (X,), [(3,)]), lambda x, y: [1 / (2 + x**2)]),
    "broadcasting": (one("sub", (X, Y), [(3,)]), lambda x, y: [x - y]),
    "max": (one("max", (X,), [()], axis=0), lambda x, y: [np.max(x + 0.31 * np.arange(3))]),
    "maximum": (one("maximum", (X, Y), [(3,)]), lambda x, y: [np.maximum(x, y + 0.375)]),
    "where": (one("where", (X, Y, X), [(3,)], threshold=0.5), lambda x, y: [np.where(x > 0.5, y, x)]),
    "pick": (one("pick", (X, Y), [()], threshold=0.25), lambda x, y: [x[1] if y > 0.25 else x[0]]),
    "slice": (one("slice", (X,), [(2,)], cut=(1, None, -1)), lambda x, y: [x[1::-1]]),
    "scan": (
        one("scan", (Y, X), [(), (3,)], (DOUBLED,), length=3, **LOOP),
        lambda x, y: [y + x.sum(), y + np.cumsum(x)],
    ),
    "scan reversed": (
        one("scan", (Y, X), [(), (3,)], (DOUBLED,), length=3, **{**LOOP, "reverse": True}),
        lambda x, y: [y + x.sum(), y + np.cumsum(x[::-1])[::-1]],
    ),
    "fori_loop": (
        one("fori_loop", (Y,), [()], (Program(DOUBLED.inputs, DOUBLED.equations, DOUBLED.outputs[:1]),),
            low=1, high=4, unroll=1, carried=1),
        lambda x, y: [y + 0.25 * (1 + 2 + 3)],
    ),
    "vmap": (
        one("vmap", (X, Y), [(3,), (3,)], (DOUBLED,), in_axes=(0, None), out_axes=(0, 0), size=3),
        lambda x, y: [x + y, x + y],
    ),
    "custom_vjp": (one("custom_vjp", (Y, Y), [(), ()], (DOUBLED,)), lambda x, y: [2 * y, 2 * y]),
}  # fmt: skip
INPUTS = np.array([0.3, -1.2, 0.9]), np.array(0.7)


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_and_text_mean_what_is_written_here(name):
    program, by_hand = BY_HAND[name]
    want = [np.asarray(y, np.float64) for y in by_hand(*INPUTS)]
    close(Run().program(program, INPUTS), want, 1e-14, "reference")
    close(build.function(program)(*[jnp.asarray(x) for x in INPUTS]), want, 1e-14, "atled")


def test_text_of_a_program():
    assert build.text(BY_HAND["scan"][0]) == (
        "def f(v0, v1):  # f64[3], f64[]\n"
        "    def step0(carry, xs):  # f64[], f64[]\n"
        "        (v2, v3) = (*carry, *xs)\n"
        "        v4 = v2 + v3\n"
        "        return ((v4,), (v4,))\n"
        "    (v90,), (v91,) = lax.scan(step0, (v1,), (v0,), length=3, reverse=False, unroll=1)\n"
        "    return (v90, v91)\n"
    )


def test_decisions_are_written_down():
    program, _ = BY_HAND["pick"]
    above, below, close_by = Run(), Run(), Run()
    above.program(program, [INPUTS[0], np.array(0.7)])
    below.program(program, [INPUTS[0], np.array(0.1)])
    close_by.program(program, [INPUTS[0], np.array(0.25 + 1e-9)])
    assert above.decisions == close_by.decisions != below.decisions
    assert above.margin == pytest.approx(0.45) and close_by.margin < 1e-8


def test_differences():
    def cubes(xs):
        return [xs[0] ** 3], Run()

    point = Point(cubes, [np.array([1.0, -2.0])], [np.array([1.0, 10.0])])
    d, e = [np.array([1.0, 0.5])], [np.array([2.0, 1.0])]
    close(point.slope(d), [np.array([3.0, 6.0])], 1e-10, "slope")
    assert point.curvature(d, e) == pytest.approx(6 * 1 * 2 + 10 * 6 * -2 * 0.5, rel=1e-7)


def test_a_kink_is_rough():
    program, _ = BY_HAND["pick"]

    def f(xs):
        run = Run()
        return run.program(program, xs), run

    point = Point(f, [INPUTS[0], np.array(0.25 + 1e-5)], [np.array(1.0)])
    with pytest.raises(Rough):
        point.slope([np.zeros(3), np.array(1.0)])


def test_a_wrong_derivative_is_found():
    program, _ = BY_HAND["custom_vjp"]
    trial = Trial(program, Composition((), "vjp", (), (Wrap("jit"),), 0))
    trial.check()
    right = trial.text
    trial.text = lambda: right().replace("[1](g)", "[1](atled.tree.map(lambda x: 1.01 * x, g))")
    with pytest.raises(AssertionError, match="gradient along d"):
        trial.check()


def test_the_language_is_used():
    kinds, names, sizes, open_ones = collections.Counter(), collections.Counter(), [], 0

    @seed(1)
    @settings(quiet, max_examples=600, phases=[Phase.generate])
    @given(trials)
    def look(found):
        nonlocal open_ones
        kinds.update(found[0].program.kinds())
        sizes.append(sum(found[0].program.kinds().values()))
        open_ones += any([closes(b) for e in found[0].program.all_equations() for b in e.bodies])
        names.update([t.composition.derivative for t in found])

    look()
    assert {*NESTED} <= {*kinds} and {*DERIVATIVES} == {*names}
    assert max(sizes) <= 30 and open_ones > 50


# -- found by these programs, and mended -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0.1, np.float64(0.1)], ids=["Python", "NumPy"])
def test_numbers_meet_float64_arrays_exactly(number):
    x = jnp.asarray(np.ones(2))
    f = atled.jit(lambda x, s: (x + s, s))
    for _ in range(3):  # the first call, and those that run generated code
        for out in (
            x + number,
            number + x,
            jnp.clip(x, 0.0, 1.0 + number),
            f(x, number)[0],
            atled.jit(f)(x, number)[0],
        ):
            assert out.dtype == np.float64 and float(out[0]) in (1.1, 1.0)
        assert (x[0] + number).item() == 1.1 and f(x, number)[1].item() == 0.1
        assert (jnp.ones(2) + number).dtype == np.float32 and f(jnp.ones(2), number)[1].dtype == np.float32
    assert f.lower(x, number).compile()(x, number)[0][0].item() == 1.1


@pytest.mark.parametrize("find", [jnp.max, jnp.min])
@pytest.mark.parametrize("in_loop", [False, True])
def test_the_derivative_of_an_extremum_is_the_same_when_compiled(find, in_loop):
    weights, _, x = np.random.default_rng(0).uniform(-1.5, 1.5, (3, 3))
    steps = 0.31 * np.arange(3)[:, None]

    def turn(x):
        return jnp.sin(find(x[:, None] * x + steps, axis=0))

    def f(x):
        return jnp.sum(weights * (lax.fori_loop(0, 2, lambda _, x: turn(x), x) if in_loop else turn(x)))

    slope = atled.grad(f)
    with atled.disable_jit():
        one_by_one = slope(jnp.asarray(x))
    np.testing.assert_allclose(atled.jit(slope)(jnp.asarray(x)), one_by_one, rtol=1e-9)
