"""These tests need eight devices, so they have a process of their own: `pytest tests/devices`."""

import os

os.environ.setdefault("ATLED_NUM_CPU_DEVICES", "8")

import pytest

import atled


@pytest.fixture(autouse=True, scope="session")
def eight_devices():
    if atled.device_count() < 8:
        pytest.skip("run by itself, with ATLED_NUM_CPU_DEVICES=8: the devices were made before")
