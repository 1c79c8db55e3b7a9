"""From each state on, an iterator gives what it would have given; on any number of processes, each example once."""

import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atled import data, tree

sys.path.insert(0, str(Path(__file__).parent))
import feeding_functions as f


def rows(n=60, start=0):
    return data.arrays(x=np.arange(start, start + 2 * n).reshape(n, 2), y=np.arange(start, start + n))


def same(a, b):
    assert tree.structure(a) == tree.structure(b)
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype and np.array_equal(x, y), (x, y)


def run(pipeline, most=200):
    iterator, found = pipeline.iterator(), [(None, pipeline.iterator().state())]
    for _, batch in zip(range(most), iterator):
        found.append((batch, iterator.state()))
    return found


def check_all_states(pipeline, most=40, then=3):
    """After each batch: the state goes through JSON into another iterator, which gives the batches that follow."""
    found = run(pipeline, most + then)
    assert len(found) > 1
    for i, (_, state) in enumerate(found[: most + 1]):
        again = pipeline.iterator().restore(json.loads(json.dumps(state)))
        assert again.state() == state
        for batch, after in found[i + 1 : i + 1 + then]:
            same(next(again), batch)
            assert again.state() == after
        if i + 1 + then > len(found):
            assert next(again, None) is None
    return found


def nodes():
    leaf = st.tuples(st.integers(1, 40), st.integers(0, 3)).map(lambda a: rows(a[0], 1000 * a[1]))

    def grown(inner):
        few = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            st.tuples(inner, st.integers(0, 9)).map(lambda a: a[0].shuffle(a[1])),
            inner.map(lambda p: p.map(f.to_float)),
            st.tuples(inner, st.integers(0, 9)).map(lambda a: a[0].random_map(f.noise, a[1]).map(f.plain)),
            st.tuples(inner, st.integers(1, 3)).map(lambda a: a[0].repeat(a[1])),
            st.tuples(inner, st.integers(1, 50)).map(lambda a: a[0].take(a[1])),
            few.map(lambda ps: data.concatenate(*ps).map(f.plain)),
            few.map(lambda ps: data.interleave(*ps).map(f.plain)),
            st.tuples(few, st.integers(0, 9)).map(
                lambda a: data.mix(a[0], [1 + i for i in range(len(a[0]))], a[1], exhausted="stop").map(f.plain)
            ),
        )

    return st.recursive(leaf, grown, max_leaves=4)


GROUPS = {
    "batch": lambda p, n, last: p.random_map(f.noise, 5).batch(n, drop_last=last),
    "filter": lambda p, n, last: p.filter(f.is_kept).random_map(f.noise, 5).batch(n, drop_last=last),
    "examples": lambda p, n, last: p.filter(f.is_kept) if last else p,
    "pack": lambda p, n, last: p.map(f.ragged).pack(n + 3).batch(2, drop_last=last),
    "whole": lambda p, n, last: p.filter(f.is_kept).map(f.ragged).pack(n + 7, truncate=False).map(f.same_row),
    "bucket": lambda p, n, last: p.map(f.ragged).bucket([2, 4, 7], [n, 2, 1], drop_last=last).map(f.same_row),
    "pad": lambda p, n, last: p.map(f.ragged).pad(7).batch(n, drop_last=last),
}


@settings(max_examples=100, deadline=None, derandomize=True)
@given(nodes(), st.sampled_from(sorted(GROUPS)), st.integers(1, 6), st.booleans(), st.booleans())
def test_random_pipelines(node, group, n, last, repeats):
    pipeline = GROUPS[group](node, n, last)
    if len(run(pipeline, 1)) < 2:
        return  # too few examples for a batch
    check_all_states(pipeline.repeat(2) if repeats else pipeline)


def everything():
    one = rows(50).shuffle(1).map(f.to_float)
    two = data.concatenate(rows(20, 5000), rows(31, 6000)).map(f.to_float).shuffle(2)
    three = data.interleave(rows(20, 7000), rows(7, 8000)).map(f.to_float).repeat(2)
    mixed = data.mix([one, two, three], [0.5, 0.3, 0.2], 3).take(170).skip(3).shuffle(4)
    return mixed.random_map(f.noise, 1).filter(f.is_kept).map(f.named).batch(7).map(f.summed).take(12).repeat(3)


def test_everything():
    found = check_all_states(everything())
    assert len(found) == 37 and found[-1][1]["epoch"] == 2
    assert found[1][0]["name"].dtype == object and found[1][0]["name"][0].startswith("example ")
    for a, b in zip(found[1:], found[13:]):
        assert not np.array_equal(a[0]["y"], b[0]["y"])  # another order, and other noise


def test_iterables():
    made = data.iterable(f.ten)
    for pipeline in (made.batch(3).repeat(), made.filter(f.is_kept).batch(2, drop_last=False), made.map(f.named)):
        check_all_states(pipeline, most=9)
    ys = [b["y"].tolist() for b in made.batch(4, drop_last=False).repeat(2)]
    assert ys == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [100, 101, 102, 103], [104, 105, 106, 107], [108, 109]]
    shards = [[b["y"].tolist() for b in made.batch(4).sharded(p, 2)] for p in range(2)]
    assert shards == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def test_iterables_are_not_kept():
    """What is skipped is dropped at once."""
    batches = data.iterable(f.many).batch(10)
    state = {**batches.iterator().state(), "position": 200_000, "batches": 20_000}
    tracemalloc.start()
    assert next(batches.iterator().restore(state))[0] == 200_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_other_numbers_of_processes():
    """4, then 3, then 4 processes in an epoch: each example once, in batches that do not depend on the processes."""
    batches = rows(144 * 9 + 5).shuffle(7).random_map(f.noise, 2).batch(144)
    want = [b for b, _ in run(batches)[1:]]
    state, got = batches.iterator().state(), []
    for count, steps in ((4, 3), (3, 2), (4, 4)):
        iterators = [batches.sharded(p, count).iterator().restore(state) for p in range(count)]
        for _ in range(steps):
            parts = [next(i) for i in iterators]
            got.append({k: np.concatenate([p[k] for p in parts]) for k in parts[0]})
        states = [i.state() for i in iterators]
        assert all([s == states[0] for s in states])
        state = states[0]
    assert all([next(i, None) is None for i in iterators])
    for a, b in zip(want, got, strict=True):
        same(a, b)
    ys = np.concatenate([b["y"] for b in got])
    assert len(ys) == len(set(ys.tolist())) == 144 * 9


def test_filters_on_several_processes():
    """Each process fills its rows from every P-th example; all together have each example that passes once."""
    odd = rows(101).shuffle(3).filter(f.is_kept).batch(6)
    iterators = [odd.sharded(p, 3).iterator() for p in range(3)]
    got = [np.concatenate([b["y"] for b in i]) for i in iterators]
    ys = np.concatenate(got)
    assert len(set(ys.tolist())) == len(ys) and set(ys.tolist()) <= {y for y in range(101) if y % 3}
    assert len(ys) >= 67 - 3 * 1 - 3
    for p in range(3):
        check_all_states(odd.sharded(p, 3))


def test_states_of_filters_on_other_numbers_of_processes():
    odd = rows(96).filter(f.is_kept).batch(4)
    iterators = [odd.sharded(p, 2).iterator() for p in range(2)]
    for i in iterators:
        next(i)
    states = [i.state() for i in iterators]
    assert [s["taken"] for s in states] == [3, 3]
    whole = data.merge_states(states)
    assert json.loads(json.dumps(whole)) == whole
    for p in range(2):
        same(next(odd.sharded(p, 2).iterator().restore(whole)), next(iterators[p]))
    rest = np.concatenate([b["y"] for b in odd.iterator().restore(whole)])  # both have used up 3 of the first 6
    assert rest.tolist() == [y for y in range(6, 96) if y % 3][: len(rest)] and len(rest) == 60
    with pytest.raises(ValueError, match=r"data.restore: the state was saved by 2 processes.*one process only"):
        odd.iterator().restore(states[0])
    with pytest.raises(ValueError, match=r"data.restore: each process has its own state"):
        odd.sharded(0, 2).iterator().restore(states[1])
    next(iterators[0])
    uneven = data.merge_states([i.state() for i in iterators])
    same(next(odd.sharded(0, 2).iterator().restore(uneven)), next(iterators[0]))
    with pytest.raises(ValueError, match=r"data.restore: the state was saved by 2 processes, but there are 4"):
        odd.sharded(0, 4).iterator().restore(uneven)
    with pytest.raises(ValueError, match=r"data.merge_states: the states must be those of all processes"):
        data.merge_states(states[:1])


def test_packing_cannot_be_split_within_an_example():
    packed = rows(40).map(f.ragged).pack(4).batch(2)
    iterator = packed.iterator()
    next(iterator)
    assert iterator.state()["offset"] > 0
    with pytest.raises(ValueError, match=r"data.restore: a packing pipeline cannot be redistributed"):
        packed.sharded(0, 2).iterator().restore(iterator.state())
    for p in range(2):
        check_all_states(packed.sharded(p, 2))


def test_buckets_on_several_processes():
    """All processes have the same shapes, and together the rows that one would have."""
    batches = rows(80).shuffle(1).map(f.ragged).bucket([2, 4, 7], 4)
    whole = run(batches)[1:]
    parts = [run(batches.sharded(p, 2))[1:] for p in range(2)]
    for (want, state), (a, s), (b, u) in zip(whole, *parts, strict=True):
        same(want, {k: np.concatenate([a[k], b[k]]) for k in want})
        assert s == u == state


def test_another_pipeline_is_refused():
    state = rows(60).shuffle(0).batch(4).iterator().state()
    for other in (
        rows(60).shuffle(1).batch(4),
        rows(61).shuffle(0).batch(4),
        rows(60).shuffle(0).map(f.named).batch(4),
    ):
        with pytest.raises(ValueError, match=r"data.restore: the state belongs to a different pipeline"):
            other.iterator().restore(state)
    with pytest.raises(ValueError, match=r"The saved pipeline has \.shuffle\(0\), this pipeline has \.shuffle\(1\)"):
        rows(60).shuffle(1).batch(4).iterator().restore(state)
    with pytest.raises(ValueError, match="version 1; got 7"):
        rows(60).shuffle(0).batch(4).iterator().restore({**state, "version": 7})
    with pytest.raises(ValueError, match=r"data.restore: the numbers of a state must be 0 or more"):
        rows(60).shuffle(0).batch(4).iterator().restore({**state, "position": -4})
    with pytest.raises(TypeError, match=r"data.restore: expected a state returned by iterator.state"):
        rows(60).batch(4).iterator().restore(3)


def test_an_error_leaves_the_place_as_it_was():
    iterator = rows(40).map(f.raise_at_13).batch(5).iterator()
    next(iterator), next(iterator)
    state = iterator.state()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            next(iterator)
        assert (
            "in map(raise_at_13), on example 13 of arrays(x=int64[40,2], y=int64[40]), epoch 0"
            in caught.value.__notes__[0]
        )
        assert iterator.state() == state


# -- what an attack found ----------------------------------------------------------------------------------------------


def numbers(n, start=0):
    return data.source(list(range(start, start + n)))


def test_generators_of_generators_depend_on_the_example():
    spawned = lambda x, rng: [int(child.integers(10**9)) for child in rng.spawn(2)]
    run = lambda seed: [tuple(x) for x in numbers(6).random_map(spawned, seed).repeat(2)]
    assert run(1) == run(1) and len({*run(1), *run(2)}) == 24
    iterator = numbers(6).random_map(spawned, 1).batch(1).repeat(2).iterator()
    all_of_them = list(numbers(6).random_map(spawned, 1).batch(1).repeat(2))
    for _ in range(4):
        next(iterator)
    again = numbers(6).random_map(spawned, 1).batch(1).repeat(2).iterator().restore(iterator.state())
    assert str(list(again)) == str(all_of_them[4:])


def test_endless_inside_of_endless_in_later_epochs():
    inner = data.mix([numbers(5), numbers(5, 10)], [1, 1], 0)
    mixed = data.mix([inner, numbers(5, 20).shuffle(1)], [1, 1], 0)
    for pipeline in (mixed.take(20), data.mix([numbers(5).shuffle(0).repeat().take(7), mixed], [1, 1], 0).take(20)):
        all_of_them = list(pipeline.repeat(3))
        assert len(all_of_them) == 60
        assert list(pipeline.iterator(epoch=1))[:20] == all_of_them[20:40]


def test_seeds_and_epochs_are_not_mixed_up():
    assert list(numbers(8).shuffle(5 + 2**32)) != list(numbers(8).shuffle(5).iterator(epoch=1))


def test_maps_in_place_do_not_change_the_source():
    def double(example):
        example["x"] = example["x"] * 2
        example["more"].append(1)
        return {"x": example["x"], "n": len(example["more"])}

    items = [{"x": i, "more": []} for i in range(4)]
    pipeline = data.source(items).map(double).batch(2).repeat(2)
    assert [b["x"].tolist() for b in pipeline] == [[0, 2], [4, 6]] * 2 and items[3] == {"x": 3, "more": []}
    with pytest.raises(ValueError, match="read-only"):
        list(data.source([np.zeros(2)]).map(lambda x: x.__iadd__(1)))


def test_files_that_change_are_refused(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\nthree\n")
    iterator = data.lines(file).batch(1).iterator()
    next(iterator)
    file.write_text("zero\none\ntwo\n")
    with pytest.raises(ValueError, match=r"lines\.txt has changed since the source was created"):
        next(iterator)


def test_states_are_copies():
    iterator = numbers(20).map(lambda n: np.zeros(n + 1)).bucket([10, 20], 3).iterator()
    next(iterator)
    state = iterator.state()
    state["waiting"].clear()
    assert iterator.state() != state
    feed = data.to_devices(numbers(8).batch(2).iterator(), None)
    next(feed)
    feed.state()["position"] = 0
    assert feed.state()["position"] == 2


def test_pads_and_packs_with_another_fill_are_other_pipelines():
    make = lambda fill: data.source([[1, 2], [3]]).pad(4, padding_value=fill).batch(1)
    assert str(make(0)) == "source(list, 2).pad(4, fill=0).batch(1)"
    iterator = make(0).iterator()
    next(iterator)
    with pytest.raises(ValueError, match="different pipeline"):
        make(9).iterator().restore(iterator.state())
    with pytest.raises(TypeError, match="an example must be one sequence, or a dict of them; got a tuple of 2"):
        list(data.arrays((np.ones((2, 3)), np.ones((2, 3)))).pad(4))
