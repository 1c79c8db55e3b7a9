"""Collectives in branches: devices that skip one leave the others waiting, so that programs that may are refused."""

import numpy as np
import pytest

import atled
from atled import lax
from atled import numpy as jnp
from atled.sharding import P

X = np.arange(8.0, dtype="float32")


def mapped(f):
    mesh, spec = atled.make_mesh((4, 2), ("a", "b")), P(("a", "b"))
    return atled.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)


def total(x):
    return lax.psum(x, "a")


def chosen_by_own_value(x):
    return lax.cond(x[0] > 3, total, lambda x: x, x)


def chosen_by_place(x):
    return lax.switch(lax.axis_index("a") % 2, [lambda x: lax.ppermute(x, "a", [(0, 1)]), lambda x: x], x)


def as_long_as_own_value(x):
    return lax.while_loop(lambda x: x[0] < 3, lambda x: total(x) + 1, x)


def asks_others_while(x):
    """The condition itself is the same everywhere, but devices leave an inner loop at different times."""
    inner = lambda x: lax.while_loop(lambda x: x[0] < 3, lambda x: x + lax.pmax(x, "b"), x)
    return lax.fori_loop(0, 2, lambda i, x: inner(x), x)


def deep_in_jit_and_scan(x):
    step = atled.jit(lambda x: lax.cond(x[0] > 1, lambda x: lax.all_gather(x, "a").sum(0), lambda x: x, x))
    return lax.scan(lambda c, _: (step(c), None), x, None, length=2)[0]


def after_one_step(x):
    """The predicate is shared at first, and differs from the second step on."""
    start = (jnp.zeros(()), x)
    return lax.fori_loop(0, 2, lambda i, c: (c[1][0], lax.cond(c[0] > 0, total, lambda x: x, c[1])), start)[1]


REFUSED = [chosen_by_own_value, chosen_by_place, as_long_as_own_value, asks_others_while, deep_in_jit_and_scan]


@pytest.mark.parametrize("f", [*REFUSED, after_one_step], ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", [lambda f: f, atled.jit, lambda f: atled.grad(lambda x: f(x).sum())])
def test_what_devices_may_decide_differently_is_refused(f, how):
    with pytest.raises(ValueError, match=r"(?s)deadlock.*test_divergence.py.*try: the same predicate on all devices"):
        how(mapped(f))(X)


def test_pmap_too():
    def f(x):
        return lax.cond(x > 3, lambda x: lax.psum(x, "i"), lambda x: x, x)

    with pytest.raises(ValueError, match=r"a collective over 'i'.*deadlock"):
        atled.pmap(f, axis_name="i")(X)
    agreed = lambda x: lax.cond(lax.pmax(x, "i") > 3, lambda x: lax.psum(x, "i"), lambda x: x, x)
    assert np.array_equal(atled.pmap(agreed, axis_name="i")(X), np.full(8, 28.0))


def by_agreement(x):
    return lax.cond(lax.pmax(x[0], ("a", "b")) > 3, total, lambda x: x, x)


def along_another_axis(x):
    """It differs along "b" only, and devices that differ along "a" decide alike."""
    return lax.cond(lax.psum(x[0], "a") > 13, total, lambda x: x, x)


def only_places(x):
    return lax.cond(x[0] > 3, lambda x: x + lax.axis_index("a"), lambda x: lax.pcast(x, "a", to="varying"), x)


def a_fixed_number_of_times(x):
    return lax.fori_loop(0, 3, lambda i, x: total(x) / 4 + i, x)


def until_all_are_done(x):
    return lax.while_loop(lambda x: lax.pmin(x[0], ("a", "b")) < 5, lambda x: lax.pmax(x, "a") + 1, x)


PLAIN = {
    by_agreement: lambda x: np.tile(x.reshape(4, 2).sum(0), 4),
    along_another_axis: lambda x: np.where(np.arange(8) % 2, 16, x),
    only_places: lambda x: np.where(x > 3, x + np.arange(8) // 2, x),
    a_fixed_number_of_times: lambda x: np.tile(x.reshape(4, 2).mean(0), 4) + 3,
    until_all_are_done: lambda x: np.tile(np.array([7.0, 8.0]), 4),
}


@pytest.mark.parametrize("f", PLAIN, ids=lambda f: f.__name__)
def test_what_all_decide_alike_runs(f):
    assert np.array_equal(atled.jit(mapped(f))(X), PLAIN[f](X))
    assert np.isfinite(atled.jvp(mapped(f), (X,), (X,))[1]).all()


def test_those_who_know_better_can_say_so():
    """The check reads the program, not values: here all parts are equal."""
    x = np.full(8, 4.0, "float32")
    with pytest.raises(ValueError, match="divergent_collectives"):
        mapped(chosen_by_own_value)(x)
    with atled.settings.override(divergent_collectives=True):
        assert np.array_equal(mapped(chosen_by_own_value)(x), np.full(8, 16.0))
    with pytest.raises(ValueError, match="divergent_collectives"):
        mapped(chosen_by_own_value)(x)


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: lax.ppermute(x, "a", [(0, 4)]), "ppermute: index 4 is out of bounds for the axis 'a' of size 4"),
        (lambda x: lax.ppermute(x, "a", [(-1, 0)]), "ppermute: index -1"),
        (lambda x: lax.all_gather(x, "a", axis=2), "all_gather: axis 2 is out of bounds"),
        (lambda x: lax.all_gather(x, "a", axis=1, tiled=True), "all_gather: axis 1"),
        (lambda x: lax.psum_scatter(x, "a", scatter_dimension=-2, tiled=True), "psum_scatter: axis -2"),
        (lambda x: lax.all_to_all(x, "a", 3, 0), "all_to_all: axis 3"),
    ],
)
def test_axes_and_places_out_of_bounds(f, said):
    with pytest.raises(ValueError, match=said):
        mapped(f)(X)
