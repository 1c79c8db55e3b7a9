"""A run that is killed at any moment and started again is the run that was not. `scripts/training-kills` does more."""

from kills import kills


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    killed, _, ended = kills(2, tmp_path, seed=0)
    assert killed >= 2 and ended >= 1
