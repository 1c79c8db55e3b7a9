"""Settings of all tests: programs are checked after every transform, and compiled code has a place of its own."""

import os
import sys
import tempfile
import zlib

import pytest

os.environ.setdefault("ATLED_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"atled-tests-{os.getuid()}"))
os.environ.setdefault("ATLED_PLATFORMS", "cpu")

import atled
from atled.engine import mappings

WIDE = {  # files that test a long table by the same few laws, or train: every run takes a third of each
    "examples", "nn/test_layer_laws", "nn/test_losses", "nn/test_places", "nn/test_sequences", "numpy/test_linalg",
    "numpy/test_mixed_numbers", "numpy/test_padding", "numpy/test_statistics", "numpy/test_table", "ops/test_laws",
    "optim/test_optimizer_laws", "scipy", "structure/test_examples", "transforms/test_derivatives",
    "transforms/test_edges",
}  # fmt: skip


def pytest_collection_modifyitems(items):
    """Tests marked as long take minutes to compile what they test; `scripts/check --long` runs them, too.

    `ATLED_SHARE=n/m` runs the n-th of m shares of the tests, by their names, and "not n/m" all others; `ATLED_WIDE=n`
    takes the n-th third of the files and folders in `WIDE`.
    """
    share, wide = os.environ.get("ATLED_SHARE"), os.environ.get("ATLED_WIDE")
    if share:
        items[:] = [x for x in items if _is_in(x.nodeid, share.removeprefix("not ")) != share.startswith("not ")]
    if wide:
        items[:] = [x for x in items if not _is_wide(x.nodeid) or _is_in(x.nodeid, f"{wide}/3")]
    if not os.environ.get("ATLED_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="long: scripts/check --long"))


def _is_wide(name):
    file = name.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    return file in WIDE or file.partition("/")[0] in WIDE


def _is_in(name, share):
    n, m = map(int, share.split("/"))
    return zlib.crc32(name.encode()) % m == n % m


@pytest.fixture(autouse=True, scope="session")
def checked_programs():
    atled.config.update("check_programs", True)


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Between tests, not within one that counts its traces, drop the programs of thousands of tests before."""
    mappings.relieve(mappings.MAPPINGS * 3 // 4)


@pytest.fixture(autouse=True, scope="session")
def jax_stays_out(request):
    """After all of a process's tests, jax has not been imported, though it may be installed."""
    yield
    if not any("oracle" in item.path.parts for item in request.session.items):
        assert "jax" not in sys.modules
