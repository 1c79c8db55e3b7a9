"""NumPy arrays as arguments: the same array under other settings is converted anew, and none is shared."""

from __future__ import annotations

import numpy as np
import pytest

import atled
import atled.numpy as jnp


@pytest.fixture
def total():
    return atled.jit(lambda x: x.sum(), keep_unused=True)


def test_a_changed_array_has_its_new_values(total):
    x = np.ones((64, 8), "float32")
    results = []
    for i in range(20):
        x[:] = i
        results.append(total(x))
        x[:] = -1
    assert [float(r) for r in results] == [512.0 * i for i in range(20)]


def test_arrays_do_not_share_memory():
    x = np.arange(4096, dtype="float32")  # large and aligned: the engine could take it as it is
    for _ in range(3):
        y = jnp.asarray(x)
        x += 1
        assert float(y[0]) == x[0] - 1


@pytest.mark.parametrize("dtype", [">f4", ">i8", "<f8", "bool", "uint8", "complex64", "float16"])
def test_dtypes_and_orders(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for _ in range(2):
        for part in (x, x.T, x[:, ::-1], x[::2], np.asfortranarray(x)):
            y = jnp.asarray(part)
            np.testing.assert_array_equal(np.asarray(y), part)
            assert y.dtype == np.dtype(dtype).newbyteorder("=")


def test_settings_count():
    x = np.arange(3, dtype="int64")
    f = atled.jit(lambda x: x * 1)
    assert f(x).dtype == "int64"
    atled.settings.update("narrow", True)
    try:
        assert f(x).dtype == "int32" and jnp.asarray(x).dtype == "int32"
        with atled.enable_x64(True):
            assert f(x).dtype == "int64"
        assert f(x).dtype == "int32"
    finally:
        atled.settings.update("narrow", False)
    assert f(x).dtype == "int64"


def test_the_default_device_counts(total):
    x = np.ones(3, "float32")
    for device in [*atled.devices(), atled.devices()[0]]:
        with atled.default_device(device):
            assert jnp.asarray(x).device == device
            assert total(x).device == device
    assert jnp.asarray(x).device == atled.devices()[0]


@pytest.mark.parametrize("x", [np.array(["a"]), np.array([None]), np.zeros(2, "datetime64[s]")])
def test_dtypes_that_arrays_do_not_have(total, x):
    for _ in range(2):
        with pytest.raises(TypeError, match=r"got ndarray of [<od]"):
            total(x)


def test_subclasses_and_empty_arrays(total):
    class Named(np.ndarray):
        pass

    assert float(total(np.ones(3, "float32").view(Named))) == 3
    for _ in range(2):
        with pytest.raises(TypeError, match="got MaskedArray of float32"):
            total(np.ma.masked_array(np.ones(3, "float32")))
        assert total(np.zeros((0, 3), "float32")) == 0 and jnp.asarray(np.zeros((0, 3))).shape == (0, 3)
        assert total(np.array(2.0, "float32")) == 2
