"""The counts of Flax's and Optax's words, in the table of words, are those of the installed versions."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "names"))
import words


@pytest.mark.parametrize("peer", ["flax", "optax"])
def test_counts(peer):
    assert words.peer_counts(peer) == words.counts()[peer]
