"""Structures with data of users: one object for equal ones while it is used, and nothing is kept alive by them."""

from __future__ import annotations

import gc
import weakref

import pytest

from atled.core import tree, tree_registry


class Node:
    def __init__(self, child, data):
        self.child, self.data = child, data


tree_registry.register_node(Node, lambda n: ((n.child,), n.data), lambda data, xs: Node(xs[0], data))


class Thing:
    """Equal to itself alone."""


class Alike:
    """Equal to all others, though each is another object."""

    def __eq__(self, other):
        return isinstance(other, Alike)

    def __hash__(self):
        return 1


def test_one_structure_for_the_same_object():
    thing = Thing()
    first = tree.structure([Node(1, (thing, 2)), 3])
    assert tree.structure([Node(5, (thing, 2)), 6]) is first
    assert tree.structure([Node(5, (thing, 2.0)), 6]) != first
    assert tree.structure([Node(5, (Thing(), 2)), 6]) != first


def test_equal_data_stays_the_data_of_its_tree():
    first, second = Alike(), Alike()
    for x in (first, second):
        leaves, structure = tree.flatten(Node(1, (x,)))
        assert tree.unflatten(structure, leaves).data[0] is x


def test_data_is_not_kept_alive():
    thing = Thing()
    ref = weakref.ref(thing)
    structure = tree.structure({"a": [Node(1, (thing, 2))]})
    assert tree.structure({"a": [Node(1, (thing, 2))]}) is structure
    del thing, structure
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("data", [None, 3, (), (1,)])
def test_other_data_is_another_structure(data):
    with pytest.raises(tree.TreeError, match="differ"):
        tree.map(lambda x, y: x, Node(1, (None, 2)), Node(1, data))


def test_the_same_objects_in_other_places_are_another_structure():
    """Structures are looked up by the identities of what they hold: an object, a tuple of it, and a child differ."""
    leaf = tree.structure(1)
    cases = [
        tree.structure_of(Node, leaf, ()), tree.structure_of(Node, (leaf,), ()), tree.structure_of(Node, None, (leaf,)),
        tree.structure_of(Node, (), (leaf,)), tree.structure_of(Node, (leaf, leaf), ()),
        tree.structure_of(Node, (leaf,), (leaf,)), tree.structure_of(Node, (None,), (leaf,)),
    ]  # fmt: skip
    for i, a in enumerate(cases):
        for b in cases[i + 1 :]:
            assert a != b


def test_data_that_change_are_read_again():
    names = ["a"]
    node = Node(1, (names, 2))
    before = tree.structure(node)
    names.append("b")
    assert tree.structure(node) != before
    assert before.flatten_up_to(Node(3, (["a"], 2))) == [3]
    with pytest.raises(tree.TreeError):
        before.flatten_up_to(node)


def test_an_object_at_the_place_of_a_dead_one_is_another():
    """The name of a structure holds identities, which Python gives to new objects when the old ones are gone."""
    structures, seen = [], set()
    for i in range(200):
        thing = Thing()
        seen.add(id(thing))
        structure = tree.structure(Node(1, (thing, i % 2)))
        assert structure.meta[0] is thing
        if i % 10 == 0:
            structures.append(structure)
        del thing, structure
    assert len(seen) < 200  # places were used again
    assert len(set(structures)) == 20
