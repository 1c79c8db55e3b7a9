"""`out_sharding` of functions: the result is split as it says, in jit and out of it; a spec is one of the set mesh."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled.sharding import NamedSharding, P

X = np.arange(64.0, dtype=np.float32).reshape(16, 4)
FUNCTIONS = {
    "zeros": lambda s: jnp.zeros((16, 4), out_sharding=s),
    "ones": lambda s: jnp.ones((16, 4), out_sharding=s),
    "empty": lambda s: jnp.empty((16, 4), out_sharding=s),
    "full": lambda s: jnp.full((16, 4), 3.0, out_sharding=s),
    "zeros_like": lambda s: jnp.zeros_like(X, out_sharding=s),
    "ones_like": lambda s: jnp.ones_like(X, out_sharding=s),
    "full_like": lambda s: jnp.full_like(X, 3.0, out_sharding=s),
    "arange": lambda s: jnp.arange(16, out_sharding=s),
    "array": lambda s: jnp.array(X, out_sharding=s),
    "array ndmin": lambda s: jnp.array(X, ndmin=2, out_sharding=s),
    "asarray": lambda s: jnp.asarray(X, out_sharding=s),
    "zeros by device": lambda s: jnp.zeros((16, 4), device=s),
    "dot": lambda s: jnp.dot(jnp.asarray(X), X.T, out_sharding=s),
    "matmul": lambda s: jnp.matmul(jnp.asarray(X), X.T, out_sharding=s),
    "tensordot": lambda s: jnp.tensordot(X, X.T, 1, out_sharding=s),
    "linalg.tensordot": lambda s: jnp.linalg.tensordot(X, X.T, axes=1, out_sharding=s),
    "einsum": lambda s: jnp.einsum("ij,kj->ik", X, X, out_sharding=s),
    "reshape": lambda s: jnp.reshape(jnp.asarray(X), (8, 8), out_sharding=s),
    "reshape in order F": lambda s: jnp.reshape(jnp.asarray(X), (8, 8), "F", out_sharding=s),
    "ravel": lambda s: jnp.ravel(jnp.asarray(X), out_sharding=s),
    "broadcast_to": lambda s: jnp.broadcast_to(jnp.arange(4.0), (16, 4), out_sharding=s),
    "repeat": lambda s: jnp.repeat(jnp.arange(4.0), 4, out_sharding=s),
    "percentile": lambda s: jnp.percentile(X, 50.0, axis=1, out_sharding=s),
    "bincount": lambda s: jnp.bincount(jnp.arange(16), length=16, out_sharding=s),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_split(name):
    f, mesh = FUNCTIONS[name], atled.make_mesh((8,), ("x",))
    plain, wanted = f(None), NamedSharding(mesh, P("x"))
    given = f(wanted)
    assert given.sharding.is_equivalent_to(wanted, given.ndim)
    np.testing.assert_array_equal(np.asarray(given), np.asarray(plain))
    assert atled.jit(lambda: f(wanted))().sharding.is_equivalent_to(wanted, given.ndim)


@pytest.mark.parametrize("name", ["zeros", "dot", "reshape", "einsum"])
def test_a_spec_is_of_the_mesh_that_is_set(name):
    f = FUNCTIONS[name]
    for shape, names in (((8,), ("x",)), ((2, 4), ("x", "y"))):
        mesh = atled.make_mesh(shape, names)
        with atled.set_mesh(mesh):
            for out in (f(P("x")), atled.jit(lambda: f(P("x")))()):
                assert out.sharding.is_equivalent_to(NamedSharding(mesh, P("x")), out.ndim)


def test_meshes_in_meshes():
    inner, outer = atled.make_mesh((8,), ("x",)), atled.make_mesh((2, 4), ("x", "y"))
    x, f = jnp.ones((8, 8)), atled.jit(lambda x: atled.lax.with_sharding_constraint(2 * x, P("x")))
    place = lambda: (jnp.reshape(x, (64,), out_sharding=P("x")).sharding.mesh, f(x).sharding.mesh)
    with atled.set_mesh(outer):
        assert place() == (outer, outer)
        with atled.set_mesh(inner):
            assert place() == place() == (inner, inner)
        assert place() == (outer, outer)


def test_what_cannot_be():
    mesh = atled.make_mesh((8,), ("x",))
    with pytest.raises(ValueError, match="zeros: only one of device and out_sharding can be given"):
        jnp.zeros(8, device=atled.devices()[0], out_sharding=NamedSharding(mesh, P("x")))
    with pytest.raises(TypeError, match="reshape: out_sharding must be a NamedSharding or a PartitionSpec; got 'x'"):
        jnp.reshape(jnp.ones(8), (2, 4), out_sharding="x")
    with pytest.raises(ValueError, match="must be a multiple of 8"):
        jnp.zeros((3,), out_sharding=NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="tensordot: a mesh is needed, but none is set"):
        jnp.tensordot(X, X.T, 1, out_sharding=P("x"))
