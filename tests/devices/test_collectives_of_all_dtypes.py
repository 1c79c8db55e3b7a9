"""A collective is the same function of the stacked array, for all dtypes: over devices, under `vmap` and `pmap`."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.sharding import P

N = 4
DTYPES = (
    "bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def is_integer(x):
    return np.issubdtype(x.dtype, np.integer) or x.dtype == bool or "int" in x.dtype.name


def everywhere(row):
    return np.broadcast_to(row, (N, *row.shape))


def total(x):
    return x.astype("i8").sum(0).astype("i4" if x.dtype == bool else x.dtype) if is_integer(x) else x.sum(0)


def mean(x):
    x = x.astype("f4") if is_integer(x) else x
    return x.sum(0) / np.asarray(N, x.dtype)


CASES = {
    "psum": (lambda v: lax.psum(v, "i"), lambda x: everywhere(total(x))),
    "pmean": (lambda v: lax.pmean(v, "i"), lambda x: everywhere(mean(x))),
    "pmax": (lambda v: lax.pmax(v, "i"), lambda x: everywhere(x.max(0).astype(x.dtype))),
    "pmin": (lambda v: lax.pmin(v, "i"), lambda x: everywhere(x.min(0).astype(x.dtype))),
    "pbroadcast": (lambda v: lax.pbroadcast(v, "i", 2), lambda x: everywhere(x[2])),
    "all_gather": (lambda v: lax.all_gather(v, "i", axis=1), lambda x: everywhere(x.transpose(1, 0, 2))),
    "all_gather tiled": (lambda v: lax.all_gather(v, "i", tiled=True), lambda x: everywhere(x.reshape(-1, x.shape[2]))),
    "psum_scatter": (lambda v: lax.psum_scatter(v, "i"), lambda x: total(x)),
    "psum_scatter tiled": (lambda v: lax.psum_scatter(v, "i", tiled=True), lambda x: total(x)[:, None]),
    "ppermute": (lambda v: lax.ppermute(v, "i", [(0, 1), (3, 0)]),
                 lambda x: np.stack([x[3], x[0], np.zeros_like(x[0]), np.zeros_like(x[0])])),
    "pshuffle": (lambda v: lax.pshuffle(v, "i", [1, 0, 3, 2]), lambda x: x[[1, 0, 3, 2]]),
    "all_to_all": (lambda v: lax.all_to_all(v, "i", 0, 1), lambda x: x.transpose(1, 2, 0)),
    "all_to_all tiled": (lambda v: lax.all_to_all(v, "i", 0, 1, tiled=True),
                         lambda x: x.transpose(1, 0, 2).reshape(N, 1, -1)),
    "pswapaxes": (lambda v: lax.pswapaxes(v, "i", 0), lambda x: x.transpose(1, 0, 2)),
}  # fmt: skip
NOT_COMPLEX = ("pmax", "pmin")


def operand(dtype):
    r = np.random.RandomState(0)
    if dtype == "bool":
        return r.rand(N, N, 3) > 0.5
    if "int" in dtype:
        low = 0 if dtype.startswith("u") else -1
        return r.randint(low, 2, (N, N, 3)).astype(getattr(ml_dtypes, dtype, dtype))
    if "complex" in dtype:
        return (r.randn(N, N, 3) + 1j * r.randn(N, N, 3)).astype(dtype)
    x = np.round(r.randn(N, N, 3) * 2) / 2  # exact in every dtype, also after sums
    x[1, 2, 0] = np.nan
    return np.where(x == 0, -0.0, x).astype(getattr(ml_dtypes, dtype, dtype))


def ways(f):
    """The function over the whole: it takes and returns the stacked array."""
    mesh = atled.make_mesh((N,), ("i",))
    one = lambda x: f(x.reshape(x.shape[1:]))[None]
    return {
        "vmap": atled.vmap(f, axis_name="i"),
        "jit vmap": atled.jit(atled.vmap(f, axis_name="i")),
        "pmap": atled.pmap(f, axis_name="i", devices=atled.devices()[:N]),
        "shard_map": atled.jit(atled.shard_map(one, mesh=mesh, in_specs=P("i"), out_specs=P("i"))),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_the_same_function_of_the_stacked_array(name, dtype):
    f, reference = CASES[name]
    x = operand(dtype)
    if dtype.startswith("complex") and name in NOT_COMPLEX:
        for way in ways(f).values():
            with pytest.raises(TypeError, match=r"are not defined|cannot be reduced"):
                way(jnp.asarray(x))
        return
    with np.errstate(invalid="ignore"):
        want = reference(x)
    for way_name, way in ways(f).items():
        got = np.asarray(way(jnp.asarray(x)))
        assert got.dtype == want.dtype, way_name
        assert got.shape == want.shape, way_name
        if is_integer(x) and name != "pmean":
            assert np.array_equal(got, want), way_name
        else:
            tolerance = 1e-6 if want.dtype.itemsize >= 4 else float(ml_dtypes.finfo(want.dtype).eps)
            wide = np.complex128 if want.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=tolerance, err_msg=way_name)
            if name in ("pmax", "pmin", "all_gather", "pshuffle", "all_to_all"):
                signs = [np.signbit(np.real(v).astype("f8")) & (want == want) for v in (got, want)]
                assert np.array_equal(*signs), way_name


def test_constants():
    f = lambda v: v + lax.psum(1, "i") + lax.psum(2.5, "i") + lax.psum(True, "i")
    for way in ways(f).values():
        assert np.asarray(way(jnp.zeros((N, 1)))).ravel().tolist() == [18.0] * N
