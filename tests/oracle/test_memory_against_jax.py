"""`memory.Space` as a target of `device_put`, and warnings for imaginary parts that are lost: as JAX has them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.jax.memory import Space

jax = pytest.importorskip("jax")
X = np.arange(3, dtype="float32")
KINDS = {"Device": (None, "device"), "Host": ("pinned_host", "pinned_host")}


def test_spaces():
    ours, theirs = (list(m.memory.Space.__members__.items()) for m in (atled.jax, jax))
    assert [(n, s.value) for n, s in ours] == [(n, s.value) for n, s in theirs]


@pytest.mark.parametrize("name", KINDS)
def test_arrays_are_put_into_a_memory(name):
    for lib, kind in zip((atled.jax, jax), KINDS[name], strict=True):
        space = lib.memory.Space[name]
        for x in (X, lib.numpy.asarray(X), lib.device_put(X, lib.memory.Space.Host)):
            y = lib.device_put(x, space)
            assert y.sharding.memory_kind == kind and y.committed
            np.testing.assert_array_equal(y, X)
        both = lib.device_put({"a": X, "b": 1}, {"a": space, "b": lib.memory.Space.Device})
        assert both["a"].sharding.memory_kind == kind and int(both["b"]) == 1


@pytest.mark.parametrize("name", KINDS)
def test_in_compiled_code(name):
    for lib in (atled.jax, jax):
        space = lib.memory.Space[name]
        np.testing.assert_array_equal(lib.jit(lambda x: lib.device_put(x, space) * 2)(X), X * 2)  # noqa: B023
        np.testing.assert_array_equal(lib.vmap(lambda x: lib.device_put(x, space))(X), X)  # noqa: B023
        (e,) = lib.make_jaxpr(lambda x: lib.device_put(x, space))(X).eqns  # noqa: B023
        assert e.primitive.name in ("to_memory", "device_put")


def test_derivatives():
    """In JAX, the cotangent of an array on the host has another type than its tangent."""
    for space in (Space.Host, Space.Device):
        f = lambda x: jnp.sum(atled.device_put(x, space) ** 2)  # noqa: B023
        np.testing.assert_array_equal(atled.grad(f)(X), 2 * X)
        np.testing.assert_array_equal(atled.jvp(f, (X,), (X,))[1], 2 * (X * X).sum())


def test_ops_take_arrays_of_both():
    host = atled.device_put(X, Space.Host)
    np.testing.assert_array_equal(host + jnp.asarray(X), 2 * X)
    np.testing.assert_array_equal(atled.jit(lambda a, b: a * b)(host, X), X * X)
    assert atled.random.key_data(atled.device_put(atled.random.key(1), Space.Host)).tolist() == [0, 1]


def test_over_a_mesh():
    mesh = atled.make_mesh((1,), ("i",), devices=atled.devices()[:1])
    x = atled.device_put(X, atled.NamedSharding(mesh, atled.P("i")))
    y = atled.device_put(x, Space.Host)
    assert y.sharding == x.sharding.with_memory_kind("pinned_host")
    assert atled.device_put(y, Space.Device).sharding == x.sharding


def test_any_is_no_place():
    with pytest.raises(ValueError, match=r"device_put: the memory must be Space.Device or Space.Host"):
        atled.device_put(X, Space.Any)


# -- imaginary parts -------------------------------------------------------------------------------------------------

LOSING = {
    "asarray": lambda lib, z: lib.numpy.asarray(z, "float32"),
    "array": lambda lib, z: lib.numpy.array(np.asarray(z), dtype="float32"),
    "convert_element_type": lambda lib, z: lib.lax.convert_element_type(z, "int32"),
    "sum": lambda lib, z: lib.numpy.sum(z, dtype="float32"),
    "prod": lambda lib, z: lib.numpy.prod(z, dtype="float32"),
    "mean": lambda lib, z: lib.numpy.mean(z, dtype="float32"),
    "cumsum": lambda lib, z: lib.numpy.cumsum(z, dtype="float32"),
    "set": lambda lib, z: lib.numpy.ones(3).at[0].set(z[0]),
    "jit": lambda lib, z: lib.jit(lambda z: lib.lax.convert_element_type(z, "float32"))(z),
}
KEEPING = {
    "bool": lambda lib, z: z.astype(bool),
    "complex128": lambda lib, z: z.astype("complex64"),
    "real": lambda lib, z: lib.numpy.real(z),
    "norm": lambda lib, z: lib.numpy.linalg.norm(z),
    "var": lambda lib, z: lib.numpy.var(z),
    "grad": lambda lib, z: lib.grad(lambda x: lib.numpy.real(lib.numpy.sum(x * z)))(1.0),
}


def warned(f):
    """The warnings of a first call, and of a second one, which is compiled."""
    for _ in range(2):
        with warnings.catch_warnings(record=True, action="always") as found:
            f()
        yield [w for w in found if issubclass(w.category, jnp.ComplexWarning)]


@pytest.mark.parametrize("name", LOSING)
def test_lost_imaginary_parts(name):
    assert jnp.ComplexWarning is jax.numpy.ComplexWarning is np.exceptions.ComplexWarning
    for lib in (atled.jax, jax):
        z = lib.numpy.asarray(np.array([1 + 2j, 3, 4], "complex64"))
        first, again = warned(lambda: LOSING[name](lib, z))  # noqa: B023
        assert str(first[0].message).startswith("Casting complex values to real discards the imaginary part")
        if lib is atled and name != "jit":  # JAX warns when a function is traced
            assert first[0].filename == again[0].filename == __file__


@pytest.mark.parametrize("name", KEEPING)
def test_kept_imaginary_parts(name):
    for lib in (atled.jax, jax):
        z = lib.numpy.asarray(np.array([1 + 2j, 3, 4], "complex64"))
        assert [*warned(lambda: KEEPING[name](lib, z))] == [[], []]  # noqa: B023


def test_astype_warns_as_numpy_does():
    """JAX announces an error there."""
    with pytest.warns(jnp.ComplexWarning, match="use numpy.real"):
        jnp.asarray([1 + 2j]).astype("float32")
