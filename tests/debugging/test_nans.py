"""Planted NaNs are found: the op, the line, the step of the loop, the lane of the vmap, on the way there or back."""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax

LINES = pathlib.Path(__file__).read_text().splitlines()


def line_of(mark: str) -> int:
    """The line that is marked."""
    return next(n for n, text in enumerate(LINES, 1) if text.endswith(f"# {mark}"))


# -- where NaNs are planted --------------------------------------------------------------------------------------------


def log_of(x):
    return jnp.sum(jnp.log(x))  # LOG


def root_in_scan(x):
    def body(c, step):
        c = c * jnp.sqrt(5.5 - step)  # ROOT
        return c, c

    return lax.scan(body, x, jnp.arange(8.0))[0].sum()


def ratio_in_loop(x):
    def body(i, c):
        return c + (c - c) / (i - 3)  # RATIO

    return lax.fori_loop(0, 6, body, x).sum()


def product_in_while(x):
    def body(c):
        n, v = c
        return n + 1, v + v * 0.0 * jnp.exp(n * 30.0)  # PRODUCT

    return lax.while_loop(lambda c: c[0] < 5, body, (0, x))[1].sum()


def in_branch(x):
    def bad(v):
        return jnp.arccosh(v * 0.0)  # BRANCH

    return lax.cond(True, bad, lambda v: v, x).sum()


def only_back(x):
    y = jnp.abs(x) ** 1.5 / x  # BACK
    return jnp.sum(jnp.where(x == 0, 0.0, y) * 1.0)


def infinite_slope(x):
    y = x / jnp.inf  # SLOPE
    z = jnp.sqrt(y) * 2.0  # INFINITE
    return jnp.sum(z)


def slope_in_scan(x):
    def body(c, step):
        z = jnp.sqrt(c / jnp.where(step == 4, jnp.inf, 1.0))  # SCANNED
        return c, jnp.sum(z)

    return lax.scan(body, x, jnp.arange(6.0))[1].sum()


@atled.custom_vjp
def own(x):
    return x * 2.0


def own_back(kept, g):
    return (g * jnp.log(-jnp.abs(kept) - 1.0),)  # OWN


own.defvjp(lambda x: (x * 2.0, x), own_back)


def lanes_in_scan(x):
    def body(c, step):
        rows = atled.vmap(lambda v: jnp.log(v - step))(c)  # INNER
        return c, rows.sum()

    return lax.scan(body, x, jnp.arange(4.0))[1].sum()


def nested(x):
    def outer(c, i):
        def inner(d, j):
            return d + jnp.log(10.5 - i * 4.0 - j), None  # NESTED

        return lax.scan(inner, c, jnp.arange(4.0))[0], None

    return lax.scan(outer, x, jnp.arange(4.0))[0].sum()


class Plant(NamedTuple):
    """What to run, and what must be found."""

    name: str
    function: Any
    argument: Any
    op: str
    mark: str
    steps: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()
    is_backward: bool = False


one = np.float32(1.0)
batch = np.array([3.0, 2.0, -1.0, 4.0], "f4")
ones = np.ones(3, "f4")
PLANTS = [
    Plant("plain", log_of, batch, "log", "LOG"),
    Plant("jit", atled.jit(log_of), batch, "log", "LOG"),
    Plant("vmap", atled.vmap(log_of), batch, "log", "LOG", lanes=(2,)),
    Plant("jit(vmap)", atled.jit(atled.vmap(log_of)), batch, "log", "LOG", lanes=(2,)),
    Plant("vmap(vmap)", atled.vmap(atled.vmap(log_of)), batch.reshape(2, 2), "log", "LOG", lanes=(1, 0)),
    Plant("vmap(jit(vmap))", atled.vmap(atled.jit(atled.vmap(log_of))), batch.reshape(2, 2), "log", "LOG", (), (1, 0)),
    Plant("jvp", lambda x: atled.jvp(log_of, (x,), (x,)), batch, "log", "LOG"),
    Plant("value_and_grad", atled.value_and_grad(log_of), batch, "log", "LOG"),
    Plant("scan", root_in_scan, one, "sqrt", "ROOT", (6,)),
    Plant("jit(scan)", atled.jit(root_in_scan), one, "sqrt", "ROOT", (6,)),
    Plant("grad(scan)", atled.value_and_grad(root_in_scan), one, "sqrt", "ROOT", (6,)),
    Plant("vmap(scan)", atled.vmap(root_in_scan), ones, "sqrt", "ROOT", (6,)),
    Plant("checkpoint(scan)", atled.value_and_grad(atled.remat(root_in_scan)), one, "sqrt", "ROOT", (6,)),
    Plant("fori_loop", ratio_in_loop, one, "div", "RATIO", (3,)),
    Plant("vmap(fori_loop)", atled.jit(atled.vmap(ratio_in_loop)), ones, "div", "RATIO", (3,), (0,)),
    Plant("while", product_in_while, one, "mul", "PRODUCT", (3,)),
    Plant("jit(while)", atled.jit(product_in_while), one, "mul", "PRODUCT", (3,)),
    Plant("cond", in_branch, one, "acosh", "BRANCH"),
    Plant("jit(cond)", atled.jit(in_branch), ones, "acosh", "BRANCH"),
    Plant("vmap(cond)", atled.vmap(in_branch), ones, "acosh", "BRANCH", lanes=(0,)),
    Plant("grad", atled.grad(infinite_slope), ones, "div", "SLOPE", is_backward=True),
    Plant("jit(grad)", atled.jit(atled.grad(infinite_slope)), ones, "div", "SLOPE", is_backward=True),
    Plant("vmap(grad)", atled.vmap(atled.grad(infinite_slope)), ones, "div", "SLOPE", (), (0,), True),
    Plant("grad(vmap)", atled.grad(lambda x: atled.vmap(infinite_slope)(x).sum()), ones, "div", "SLOPE",
          lanes=(0,), is_backward=True),
    Plant("grad in scan", atled.grad(slope_in_scan), one, "div", "SCANNED", (4,), is_backward=True),
    Plant("jit(grad) in scan", atled.jit(atled.grad(slope_in_scan)), one, "div", "SCANNED", (4,), (), True),
    Plant("vmap(grad) in scan", atled.vmap(atled.grad(slope_in_scan)), ones, "div", "SCANNED", (4,), (0,), True),
    Plant("own rule", atled.grad(lambda x: own(x).sum()), ones, "log", "OWN"),
    Plant("vmap in scan", atled.jit(lanes_in_scan), np.array([9.0, 1.5, 9.0], "f4"), "log", "INNER", (2,), (1,)),
    Plant("scan in scan", atled.jit(atled.value_and_grad(nested)), one, "log", "NESTED", (2, 3)),
    Plant("batched scan in scan", atled.vmap(nested), ones, "log", "NESTED", (2, 3)),
    Plant("one lane of a while", atled.vmap(lambda x: lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.log(c[1])), (0, x))[1]),  # LANE
        np.array([1e30, 5.0, 1e30], "f4"), "log", "LANE", (3,), (1,)),
]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS, ids=[p.name for p in PLANTS])
def test_planted_nans_are_found(plant):
    found = atled.find_nans(plant.function)(plant.argument)
    assert found is not None and found.what == "nan"
    assert (found.op, found.line) == (plant.op, line_of(plant.mark)), found
    assert tuple(index for _, index, _ in found.steps) == plant.steps, found
    assert tuple(index for index, _ in found.lanes) == plant.lanes, found
    assert found.is_backward == plant.is_backward, found


def test_where_the_infinity_came_from():
    found = atled.find_nans(atled.grad(infinite_slope))(ones)
    assert found.because.line == line_of("INFINITE") and "The inf is from" in str(found)


def test_there_are_thirty():
    assert len(PLANTS) >= 30


@pytest.mark.parametrize("plant", PLANTS[::3], ids=[p.name for p in PLANTS[::3]])
def test_the_switch_says_the_same(plant):
    with atled.debug_nans(), pytest.raises(FloatingPointError) as caught:
        atled.block_until_ready(plant.function(plant.argument))
    assert f"test_nans.py:{line_of(plant.mark)}" in str(caught.value)


def test_nothing_is_found_where_nothing_is():
    assert atled.find_nans(atled.grad(lambda x: jnp.sum(jnp.sin(x))))(ones) is None
    guarded = lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0))
    assert atled.find_nans(guarded)(batch) is None
    assert atled.find_nans(atled.grad(only_back))(ones) is None
    with atled.debug_nans():
        assert float(jnp.sum(jnp.sqrt(ones))) == 3.0


OBSERVED = np.array([1.0, np.nan, 3.0], "f4")
GUARDS = [
    lambda x: jnp.where(x > 0, jnp.log(x), 0.0),
    lambda x: jnp.where(x > 0, jnp.sqrt(x) * jnp.log(x), 0.0),
    lambda x: jnp.where(x > 0, jnp.hypot(jnp.log(x), 1.0), 0.0),
    lambda x: jnp.where(jnp.isnan(OBSERVED), 0.0, (OBSERVED - x) ** 2),
    lambda x: jnp.sum(jnp.log(x), where=x > 0),
    lambda x: lax.scan(lambda c, v: (c + jnp.where(v > 0, jnp.log(v), 0), 0.0), 0.0, x)[0],
]


@pytest.mark.parametrize("guard", range(len(GUARDS)))
@pytest.mark.parametrize("way", [lambda f: f, atled.jit, atled.grad, lambda f: atled.jit(atled.grad(f)), atled.jacfwd],
                         ids=["value", "jit", "grad", "jit(grad)", "jacfwd"])  # fmt: skip
def test_what_is_left_out_is_not_reported(guard, way):
    x = jnp.array([-1.0, 0.0, 2.0])
    with atled.debug_nans():
        assert np.isfinite(way(lambda x: jnp.sum(GUARDS[guard](x)))(x)).all()


def test_what_is_read_is_reported_once():
    with atled.debug_nans():
        kept = jnp.log(jnp.float32(-1.0)) * 2.0
        assert float(jnp.where(jnp.isnan(kept), 1.0, kept)) == 1.0
        with pytest.raises(FloatingPointError, match="log"):
            float(kept)
        assert np.isnan(float(kept))


def test_bad_arguments_are_named():
    found = atled.find_nans(lambda p: p["w"] * 2.0)({"w": np.array([1.0, np.nan], "f4")})
    assert "argument [0]['w']" in found.op


def test_infinities():
    f = lambda x: 1.0 / x  # ENDLESS
    assert atled.find_nans(f)(np.zeros(2, "f4")) is None
    found = atled.find_nans(f, infs=True)(np.zeros(2, "f4"))
    assert (found.what, found.op, found.line) == ("inf", "div", line_of("ENDLESS"))
    with atled.debug_infs(), pytest.raises(FloatingPointError, match="inf"):
        atled.jit(f)(jnp.float32(0.0))


def test_the_setting_for_the_whole_process():
    atled.settings.update("debug_nans", True)
    try:
        with pytest.raises(FloatingPointError, match="log"):
            atled.jit(log_of)(batch)
    finally:
        atled.settings.update("debug_nans", False)
    assert np.isnan(float(atled.jit(log_of)(batch)))


def test_a_nan_in_a_derivative_is_told_without_reading_it():
    with atled.debug_nans():
        for f in (atled.grad, atled.value_and_grad, atled.jacfwd, atled.jacrev):
            for x in (0.0, jnp.float32(0.0)):
                with pytest.raises(FloatingPointError, match="nan"):
                    f(lambda x: jnp.sqrt(x) * 0.0)(x)


def test_python_numbers_as_arguments():
    f = lambda x: jnp.sqrt(x)  # NUMBER
    step = lambda x: x - 0.1 * atled.grad(f)(x)
    for g in (f, atled.grad(f), atled.jit(atled.grad(f)), step, atled.jit(step)):
        found = atled.find_nans(g)(-1.0)
        assert (found.op, found.line) == ("sqrt", line_of("NUMBER")), found
