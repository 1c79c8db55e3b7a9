"""Who launches what: the bookkeeping, without processes."""

from __future__ import annotations

from atled.engine.multiprocess.launch_order import Launched, LaunchOrder

F, G = Launched("f", "step", "train.py:3"), Launched("g", "eval", "train.py:9")


def agreed(*programs: Launched) -> LaunchOrder:
    order = LaunchOrder(range(2))
    for number, program in enumerate(programs):
        for rank in range(2):
            assert order.agree(rank, number, program) == ""
        assert order.is_agreed(number)
    return order


def test_the_same_programs():
    order = agreed(F, G)
    for _ in range(3):
        assert order.report(0, [0, 1, 0]) == "" and order.report(1, [0]) == "" and order.report(1, [1, 0]) == ""
    assert order.counts == {0: 9, 1: 9} and order._reference == []


def test_other_programs_at_first():
    order = LaunchOrder(range(3))
    assert order.agree(0, 0, F) == "" and not order.is_agreed(0) and order.missing(0) == [1, 2]
    wrong = order.agree(2, 0, G)
    assert "rank 0 launches step (train.py:3), rank 2 launches eval (train.py:9)." in wrong


def test_another_order():
    order = agreed(F, G)
    assert order.report(0, [0, 0]) == ""
    assert "rank 0 launches step (train.py:3), rank 1 launches eval (train.py:9)." in order.report(1, [0, 1])


def test_one_waits_for_a_new_program_and_the_other_goes_on_with_an_old_one():
    order = agreed(F)
    assert order.report(0, [0]) == "" and order.report(1, [0]) == ""
    assert order.agree(1, 1, G) == ""
    assert "rank 0 launches step (train.py:3), rank 1 launches eval (train.py:9)." in order.report(0, [0])


def test_the_other_way_round():
    order = agreed(F)
    assert order.report(0, [0, 0]) == "" and order.report(1, [0]) == ""
    assert "rank 0 launches step (train.py:3), rank 1 launches eval (train.py:9)." in order.agree(1, 1, G)


def test_what_was_agreed_need_not_be_launched():
    order = agreed(F, G)
    assert order.report(0, [0]) == "" and order.report(1, [0]) == ""
