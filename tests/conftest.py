"""Settings of all tests: programs are checked after every transform, and compiled code has a place of its own."""

import os
import sys
import tempfile
import zlib

import pytest

os.environ.setdefault("ATLED_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"atled-tests-{os.getuid()}"))
os.environ.setdefault("ATLED_PLATFORMS", "cpu")

import atled


def pytest_collection_modifyitems(items):
    """Tests marked as long take minutes to compile what they test; `scripts/check --long` runs them, too."""
    tenth = os.environ.get("ATLED_TENTH")  # of the tests, by their names
    if tenth:
        items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % 10 == int(tenth)]
    if not os.environ.get("ATLED_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="long: scripts/check --long"))


@pytest.fixture(autouse=True, scope="session")
def checked_programs():
    atled.config.update("check_programs", True)


@pytest.fixture(autouse=True, scope="session")
def jax_stays_out(request):
    """After all of a process's tests, jax has not been imported, though it may be installed."""
    yield
    if not any("oracle" in item.path.parts for item in request.session.items):
        assert "jax" not in sys.modules
