"""Trees: taken apart, put together, mapped, compared; structures compiled to code."""

from __future__ import annotations

import collections
import dataclasses
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atled.core import tree, tree_registry
from atled.core.tree_codegen import Code, builder, matcher
from atled.tree import static, struct

Point = collections.namedtuple("Point", "x y")


class Custom:
    def __init__(self, children, tag):
        self.children, self.tag = list(children), tag

    def __eq__(self, other):
        return type(other) is Custom and (self.children, self.tag) == (other.children, other.tag)

    def __repr__(self):
        return f"Custom({self.children}, {self.tag!r})"


tree_registry.register_node(Custom, lambda c: (c.children, c.tag), lambda tag, xs: Custom(xs, tag))

leaf = st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=3))
trees = st.recursive(
    st.one_of(leaf, st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=4), inner, max_size=4),
        st.tuples(inner, inner).map(lambda p: Point(*p)),
        st.tuples(st.lists(inner, max_size=3), st.text(max_size=2)).map(lambda p: Custom(*p)),
        st.dictionaries(st.integers(), inner, max_size=3).map(collections.OrderedDict),
    ),
    max_leaves=20,
)


@given(trees)
@settings(max_examples=200, deadline=None)
def test_flatten_and_back(t):
    leaves, structure = tree.flatten(t)
    assert structure.unflatten(leaves) == t
    assert structure.num_leaves == len(leaves) and structure == tree.structure(t)
    assert hash(structure) == hash(tree.structure(t))
    assert structure.flatten_up_to(t) == leaves
    assert tree.map(lambda x: x, t) == t
    assert [x for _, x in tree.leaves_with_path(t)] == leaves
    assert pickle.loads(pickle.dumps(structure)) == structure


def compiled(structure):
    """The generated functions that take a tree apart and put it together."""
    code = Code("v")
    parts = matcher(code, structure, "t", "{}", " ")
    lines = ["def take(t):", *code.lines, f" return [{', '.join(parts)}]"]
    namespace = {**code.namespace, "Mismatch": ValueError}
    exec("\n".join(lines), namespace)
    code = Code("w")
    expression = builder(code, structure, iter([f"xs[{i}]" for i in range(structure.num_leaves)]))
    namespace |= code.namespace
    exec(f"def build(xs): return {expression}", namespace)
    return namespace["take"], namespace["build"]


@given(trees)
@settings(max_examples=200, deadline=None)
def test_generated_code_agrees(t):
    leaves, structure = tree.flatten(t)
    take, build = compiled(structure)
    assert take(t) == leaves and build(leaves) == t


@given(trees, trees)
@settings(max_examples=200, deadline=None)
def test_generated_code_refuses_other_trees(a, b):
    take, _ = compiled(tree.structure(a))
    if tree.structure(a) == tree.structure(b):
        assert take(b) == tree.leaves(b)
        return
    try:
        found = take(b)
    except (ValueError, TypeError, KeyError, AttributeError):
        return
    # a subtree may stand where a leaf is expected: the caller looks at the leaves next
    assert found == tree.structure(a).flatten_up_to(b)


def test_dicts_are_sorted_and_none_is_no_leaf():
    assert tree.leaves({"b": 1, "a": [2, None]}) == [2, 1]
    assert tree.leaves([1, None], is_leaf=lambda x: x is None) == [1, None]
    with pytest.raises(ValueError, match="sortable"):
        tree.flatten({1: 0, "a": 0})


def test_defaultdict_keeps_its_factory():
    d = collections.defaultdict(list, a=1)
    back = tree.map(lambda x: x + 1, d)
    assert back == {"a": 2} and back.default_factory is list


def test_map_says_where_trees_differ():
    with pytest.raises(tree.TreeError, match=r"\['a'\]\[1\].*expected tuple, got list"):
        tree.map(lambda x, y: x, {"a": [1, (2,)]}, {"a": [1, [2]]})
    with pytest.raises(tree.TreeError, match="expected 2 children, got 1"):
        tree.map(lambda x, y: x, [1, 2], [1])
    with pytest.raises(ValueError, match="2 leaves; got 1"):
        tree.structure([1, 2]).unflatten([1])


def test_transpose_compose_reduce():
    assert tree.transpose(tree.structure([0, 0]), tree.structure((0, 0)), [(1, 2), (3, 4)]) == ([1, 3], [2, 4])
    assert tree.structure([0]).compose(tree.structure((0, 0))).num_leaves == 2
    assert tree.reduce(lambda a, b: a + b, {"a": 1, "b": [2, 3]}) == 6
    assert tree.reduce(lambda a, b: a + b, [], 5) == 5
    assert tree.all([True, {"a": True}]) and not tree.all([True, False])
    assert tree.broadcast(1, {"a": 0, "b": [0, 0]}) == {"a": 1, "b": [1, 1]}


def test_registering_twice_is_refused():
    with pytest.raises(ValueError, match="already registered"):
        tree_registry.register_node(Custom, lambda c: ((), None), lambda _, xs: None)


def test_dataclasses_and_structs():
    @tree_registry.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: object
        name: str = dataclasses.field(default="a", metadata={"static": True})

    layer = Layer(1.0, "b")
    leaves, structure = tree.flatten(layer)
    assert leaves == [1.0] and structure.unflatten([2.0]) == Layer(2.0, "b")
    assert tree.structure(Layer(1.0, "c")) != structure
    assert tree.keystr(tree.leaves_with_path(layer)[0][0]) == ".w"

    @struct
    class Line:
        slope: float
        name: str = static(default="line")

    line = Line(2.0)
    assert tree.map(lambda v: v * 2, line) == Line(4.0) and line.replace(slope=1.0) == Line(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        line.slope = 3.0
    with pytest.raises(ValueError, match="name each field once"):
        tree_registry.register_dataclass(
            dataclasses.make_dataclass("Odd", ["a", "b"]), data_fields=["a"], meta_fields=[]
        )


def test_static_nodes():
    @tree_registry.register_static
    class Mode(str):
        pass

    assert tree.leaves([Mode("x"), 1]) == [1]
    assert tree.structure(Mode("x")) == tree.structure(Mode("x")) != tree.structure(Mode("y"))


def test_partial_is_a_tree():
    p = tree.Partial(lambda a, b: a * b, 3.0)
    assert tree.leaves(p) == [3.0] and tree.map(lambda x: x * 2, p)(2.0) == 12.0


def test_large_trees():
    t = {f"k{i}": [i, (i, {"a": i})] for i in range(3000)}
    leaves, structure = tree.flatten(t)
    assert len(leaves) == 9000 and structure.unflatten(leaves) == t
    take, build = compiled(structure)
    assert take(t) == leaves and build(leaves) == t
