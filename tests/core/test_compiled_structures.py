"""Structures that are used often are compiled. Compiled or walked, a tree has the same leaves and structure."""

from __future__ import annotations

import collections
import dataclasses
import gc
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atled.numpy as jnp
from atled import jit, nn, random, tree
from atled.core import tree as core


class Point(NamedTuple):
    x: Any
    y: Any


@tree.register_dataclass
@dataclasses.dataclass
class Scaled:
    value: Any
    scale: Any = dataclasses.field(default=1, metadata={"static": True})


class Bare:
    """A leaf: no test registers it."""


LEAVES = st.sampled_from([1, True, 2.5, "text", np.float32(3), Bare()])
NAMES, NUMBERS = st.sampled_from("abc"), st.sampled_from([1, 2, True, False])
STATIC = st.sampled_from([1, 1.0, True, 0.0, -0.0, "s", None, (1, 2), (1.0, 2)])


def inner(trees):
    return (
        st.lists(trees, max_size=3)
        | st.lists(trees, max_size=3).map(tuple)
        | st.dictionaries(NAMES, trees, max_size=3)
        | st.dictionaries(NUMBERS, trees, max_size=3)
        | st.dictionaries(NAMES, trees, max_size=3).map(collections.OrderedDict)
        | st.builds(Point, trees, trees)
        | st.builds(Scaled, trees, STATIC)
        | st.none()
    )


TREES = st.recursive(LEAVES, inner, max_leaves=8)


def walked(x):
    return core._flattened(x, None)


def warmed(x):
    """A structure that has been used until it is compiled, if structures like it are."""
    for _ in range(core._MANY + 2):
        flat, structure = tree.flatten(x)
        tree.unflatten(structure, flat)
    return structure


def check_alike(x):
    expected, structure = walked(x)
    flat, found = tree.flatten(x)
    assert len(flat) == len(expected) and all(a is b for a, b in zip(flat, expected))
    assert found == structure and repr(found) == repr(structure)
    again, found_again = walked(tree.unflatten(found, flat))
    assert found_again == structure and all(a is b for a, b in zip(again, flat))


@settings(max_examples=300, deadline=None)
@given(TREES, TREES)
def test_any_two_trees_one_after_the_other(first, second):
    """The second tree may be taken for one of the structure of the first."""
    warmed(first)
    for x in (first, second, [first], [second], (first, second), (second, first)):
        check_alike(x)
    warmed([first])
    check_alike([second])
    check_alike([[first], second])
    structure = walked([first])[1]
    for x in ([first], [second]):
        is_alike = walked(x)[1] == structure
        try:
            assert all(a is b for a, b in zip(structure.flatten_up_to(x), walked(x)[0])) or not is_alike
        except ValueError:
            assert not is_alike


PAIRS = [
    ({"a": [1, 2]}, {"a": [1, [2]]}), ({"a": [1, 2]}, {"a": [1, None]}), ({"a": [1, 2]}, {"a": [1, Point(1, 2)]}),
    ({1: 5}, {True: 5}), ({"a": 1, "b": 2}, {"a": 1, "c": 2}), ([1, (2, 3)], [1, [2, 3]]), ([1, ()], [1, 2]),
    (Scaled(1, 0.0), Scaled(1, -0.0)), (Scaled(1, 1), Scaled(1, True)), ([Scaled(1, (1,))], [Scaled(1, (1.0,))]),
    ({"a": 1, "b": {"c": 2}}, {"b": {"c": 2}, "a": 1}), ((1, {"a": 2}), (1, collections.OrderedDict(a=2))),
    ([Scaled(1)], [Scaled([1])]), ((1, 2), (1, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("usual", "other"), PAIRS)
def test_trees_that_resemble_each_other(usual, other):
    assert warmed(usual).take is not None
    check_alike(other)
    check_alike(usual)


def test_a_class_that_becomes_a_node():
    class Late:
        pass

    late = Late()
    warmed([late, 2])
    assert tree.flatten([late, 2])[0] == [late, 2]
    tree.register_node(Late, lambda x: ((7,), None), lambda _, xs: Late())
    assert tree.flatten([late, 2])[0] == [7, 2]


def test_data_that_are_changed_in_place():
    x = [Scaled(1, {"mode": "train"})]
    before = warmed(x)
    x[0].scale["mode"] = "test"
    assert tree.structure(x) != before
    check_alike(x)
    rebuilt = tree.unflatten(before, [1])
    assert rebuilt[0].scale == {"mode": "train"}
    rebuilt[0].scale["mode"] = "other"
    assert tree.unflatten(before, [1])[0].scale == {"mode": "train"}


def test_errors_are_those_of_the_class():
    class Fails:
        fails = False

    def flatten(x):
        if x.fails:
            raise TypeError("cannot be flattened today")
        return (1,), None

    tree.register_node(Fails, flatten, lambda _, xs: Fails())
    x = Fails()
    warmed([x])
    x.fails = True
    with pytest.raises(TypeError, match="cannot be flattened today"):
        tree.flatten([x])


def test_messages_are_those_of_a_walk():
    warmed({"a": [1, 2]})
    with pytest.raises(core.TreeError, match=r"differ at \['a'\]"):
        tree.map(lambda a, b: a, {"a": [1, 2]}, {"a": (1, 2)})
    with pytest.raises(ValueError, match="has 2 leaves; got 3"):
        tree.unflatten(tree.structure({"a": [1, 2]}), [1, 2, 3])


def test_functions_in_data_are_not_kept_alive():
    def made():
        def f():
            pass

        warmed([Scaled(1, f)])
        return weakref.ref(f)

    reference = made()
    gc.collect()
    assert reference() is None


def test_keys_of_dicts_are_not_kept_alive():
    class Key:
        def __lt__(self, other):
            return id(self) < id(other)

    key = Key()
    reference = weakref.ref(key)
    warmed({key: 1})
    del key
    gc.collect()
    assert reference() is None


def test_modules_belong_to_the_trace_that_rebuilds_them():
    class Counter(nn.Module):
        def __init__(self):
            self.count = nn.Buffer(jnp.zeros(()))

        def __call__(self, x):
            self.count = self.count + x

    counter = Counter()
    warmed(counter)

    @jit
    def step(counter, x):
        counter = tree.map(lambda v: v, counter)
        counter(x)
        return counter

    assert float(step(counter, 3.0).count) == 3


def test_modules_with_lists_of_layers_and_settings():
    class Net(nn.Module):
        def __init__(self):
            self.parts = [nn.Linear(2, 2, key=random.key(0)), "relu", {"last": nn.Linear(2, 1, key=random.key(1))}, 0.0]
            self.scale = 3

    net = Net()
    warmed(net)
    assert tree.structure(net).build is not None
    again = tree.map(lambda v: v, net)
    assert type(again) is Net and again.parts[1] == "relu" and again.scale == 3
    assert type(again.parts[3]) is float and type(again.parts[2]["last"]) is nn.Linear
    assert again.parts[0].weight is net.parts[0].weight and again.parts[0] is not net.parts[0]
    assert tree.structure(again) == tree.structure(net)
    again.parts[0].bias = jnp.ones(2)  # a copy: assigning does not reach the other
    assert float(net.parts[0].bias.sum()) == 0


def test_deep_and_wide_trees():
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    for _ in range(core._MANY + 2):
        flat, structure = tree.flatten(deep)
        assert flat == [1]
    assert walked(tree.unflatten(structure, [1]))[1] == structure
    wide = {f"k{i}": [i, i] for i in range(2000)}
    warmed(wide)
    check_alike(wide)


def test_threads():
    trees = [{"a": [i, {"b": i}], f"k{i % 3}": i} for i in range(12)]
    wrong = []

    def work(mine):
        for _ in range(300):
            for x in mine:
                flat, structure = tree.flatten(x)
                if tree.unflatten(structure, flat) != x:
                    wrong.append(x)

    threads = [threading.Thread(target=work, args=(trees[i:] + trees[:i],)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
