"""Parameters and methods are called by the words of the table, which says what other libraries call the same."""

import sys

import pytest

sys.path.insert(0, __file__.rpartition("/")[0])
import words

ROWS = words.words()
NAMES = [row.name for row in ROWS]


def test_every_word_is_in_the_table():
    ours = words.ours()
    missing = {word: sorted(places)[:3] for word, places in ours.items() if word not in NAMES}
    assert not missing, "a new word: is there one for it in tests/names/words.txt, or do other libraries have one?"
    assert not set(NAMES) - set(ours), "rows of words that are gone"


def test_each_word_has_one_row():
    assert not [name for name in NAMES if NAMES.count(name) > 1]


@pytest.mark.parametrize("peer", words.PEERS)
def test_what_another_library_says(peer):
    """Words that the table says a library uses, it uses."""
    known = words.counts()[peer]
    assert not [(row.name, word) for row in ROWS for word in row.peers.get(peer, []) if word not in known]


def test_an_old_word_is_not_a_word_of_today_for_the_same_thing():
    for row in ROWS:
        assert row.name.removesuffix("()") not in [w for w in row.was.split(", ") if w], row


def test_the_page():
    assert words.PAGE.read_text() == words.page(), "python tests/names/words.py writes it"
