"""Settings of all tests: programs are checked after every transform, and compiled code has a place of its own."""

import os
import re
import sys
import tempfile
import zlib

import pytest

os.environ.setdefault("ATLED_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"atled-tests-{os.getuid()}"))
os.environ.setdefault("ATLED_PLATFORMS", "cpu")

import atled
from atled.engine import memory_mappings

LONG = re.compile(  # tests that take minutes to compile what they test; `scripts/check --long` runs them, CI does not
    r"""tests/scipy/(
    test_incomplete.py::(test_under_transformations|test_derivatives_by_every_operand.(gammaincc|betainc).)
    |test_integrals.py::test_first_and_second_derivatives.(?!exp1|dawsn|spence)
    |test_scipy_linalg.py::test_derivatives.expm,[ ](squared|triangular).
    |test_stats.py::(test_derivatives|test_tails_in_single_precision)
        .(beta|betabinom|chi2|gamma|gennorm|poisson|truncnorm)[ .\]]
    )""",
    re.VERBOSE,
)


# Files and folders that test a long table by the same few laws, or train: CI runs a third of each, always the same one.
TABLES = {
    "examples", "nn/test_layer_laws", "nn/test_losses", "nn/test_places", "nn/test_sequences", "numpy/test_linalg",
    "numpy/test_mixed_numbers", "numpy/test_padding", "numpy/test_statistics", "numpy/test_table",
    "optim/test_optimizer_laws", "scipy", "structure/test_examples", "transforms/test_derivatives",
}  # fmt: skip
WHOLE = {"scipy/test_poles"}  # all of these


def _is_left_out(name):
    file = name.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    is_table = file not in WHOLE and (file in TABLES or file.partition("/")[0] in TABLES)
    return bool(LONG.match(name)) or (is_table and zlib.crc32(name.encode()) % 3 > 0)


def pytest_sessionfinish(session):
    """Save what was measured: a worker that takes long to exit is killed, and its lines would be lost."""
    coverage = sys.modules.get("coverage")
    measured = coverage.Coverage.current() if coverage and hasattr(session.config, "workerinput") else None
    if measured is not None:
        measured.stop()
        measured.save()


def pytest_collection_modifyitems(items):
    """With `ATLED_CI`, as `scripts/check` sets it without --long, leave out what is long."""
    if os.environ.get("ATLED_CI"):
        items[:] = [item for item in items if not _is_left_out(item.nodeid)]


@pytest.fixture(autouse=True, scope="session")
def checked_programs():
    atled.settings.update("check_programs", True)


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Between tests, not within one that counts its traces, drop the programs of thousands of tests before."""
    memory_mappings.relieve(memory_mappings.MAPPINGS * 3 // 4)


@pytest.fixture(autouse=True, scope="session")
def jax_stays_out(request):
    """After all of a process's tests, jax has not been imported, though it may be installed."""
    yield
    if not any("oracle" in item.path.parts for item in request.session.items):
        assert "jax" not in sys.modules
