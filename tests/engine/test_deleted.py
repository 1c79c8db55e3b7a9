"""An array whose memory was given away: every way to use it raises the same clear message, never the engine's own."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import lax
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

take = atled.jit(lambda x: x + 1, donate_argnums=0)
double = atled.jit(lambda x: x * 2)


def compiled(x):
    return double.lower(jnp.arange(4.0)).compile()(x)


def over_a_mesh(x):
    return atled.device_put(x, NamedSharding(atled.make_mesh((1,), ("a",)), P("a")))


USES = {
    "device_put": atled.device_put,
    "device_put to a device": lambda x: atled.device_put(x, atled.devices()[0]),
    "device_put over a mesh": over_a_mesh,
    "device_get": atled.device_get,
    "to_device": lambda x: x.to_device(atled.devices()[0]),
    "ahead of time": compiled,
    "jit": double,
    "copy": lambda x: x.copy(),
    "array": jnp.array,
    "asarray": np.asarray,
    "pickle": pickle.dumps,
    "eager": lambda x: x + 1,
    "index": lambda x: x[0],
    "iterate": list,
    "wait": lambda x: x.block_until_ready(),
    "dlpack": np.from_dlpack,
    "address": lambda x: x.unsafe_buffer_pointer(),
    "parts": lambda x: x.addressable_shards,
    "grad": atled.grad(jnp.sum),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c + x, x),
    "closure": lambda x: atled.jit(lambda y: y + x)(1.0),
}


@pytest.mark.parametrize("name", USES)
def test_every_use_says_that_it_is_gone(name):
    x = jnp.arange(4.0) + 0
    take(x)
    with pytest.raises(RuntimeError, match=r"deleted array: .*f32\[4\],? was deleted or donated") as caught:
        USES[name](x)
    assert "INVALID_ARGUMENT" not in str(caught.value)


def test_what_it_was_can_still_be_asked():
    x = jnp.arange(4.0) + 0
    take(x)
    assert (x.shape, str(x.dtype), x.is_deleted()) == ((4,), "float32", True)
    assert repr(x) == "Array(f32[4], deleted)"
