"""A function that was never traced behaves as if there were no cache."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings
from mutations import programs, run


@seed(1)
@settings(
    max_examples=250, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False,
    phases=[Phase.generate],
)  # fmt: skip
@given(programs())
def test_caches_cannot_be_seen(program):
    assert run(program, False) == run(program, True)
