"""Lists that flags take apart, and put together again."""

from typing import Any

import pytest

from atled.core.list_partition import merged


def test_merged_takes_each_value_where_its_flag_says():
    assert merged([1, 0, 1], [1, 2], [3]) == [1, 3, 2]
    assert merged([True, False], ["a"], None) == ["a", None]


@pytest.mark.parametrize(
    ("flags", "chosen", "others"),
    [([1, 0], [1, 2], [3]), ([1, 1], [1], None), ([0], [], []), ([1], [1], [2])],
    ids=["one chosen too many", "one chosen too few", "one other too few", "one other too many"],
)
def test_merged_wants_as_many_values_as_flags(flags: list[Any], chosen: list[Any], others: list[Any] | None):
    with pytest.raises(ValueError, match=rf"{len(flags)} flags, but a different number of values"):
        merged(flags, chosen, others)
