"""Settings of all tests: programs are checked after every transform, and compiled code is kept in a place of its own."""

import os
import tempfile

import pytest

os.environ.setdefault("ATLED_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"atled-tests-{os.getuid()}"))
os.environ.setdefault("ATLED_PLATFORMS", "cpu")

import atled


@pytest.fixture(autouse=True, scope="session")
def checked_programs():
    atled.config.update("check_programs", True)
