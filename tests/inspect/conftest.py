"""These tests look at programs over eight devices; ATLED_NUM_CPU_DEVICES=8 makes them."""

import pytest

import atled


@pytest.fixture(autouse=True, scope="session")
def eight_devices():
    if atled.device_count() < 8:
        pytest.skip(f"needs 8 devices, and there are {atled.device_count()}: set ATLED_NUM_CPU_DEVICES=8")


@pytest.fixture(scope="session")
def mesh():
    return atled.make_mesh((4, 2), ("data", "model"), devices=atled.devices()[:8])
