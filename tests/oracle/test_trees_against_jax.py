"""`tree` and `tree_util`: the names, parameters and results of JAX."""

from __future__ import annotations

import collections
import dataclasses
import importlib
import inspect

import pytest

import atled.jax as atled
from atled.jax import tree, tree_util

jax = pytest.importorskip("jax")

Point = collections.namedtuple("Point", "a b")


def pairs(name):
    return [importlib.import_module(f"{m}.{name}") for m in ("atled.jax", "jax")]


@pytest.mark.parametrize("name", ["tree", "tree_util"])
def test_names_and_parameters(name):
    ours, theirs = pairs(name)
    public = [n for n in dir(theirs) if not n.startswith("_") and not inspect.ismodule(getattr(theirs, n))]
    assert [n for n in public if n not in ours.__all__] == []
    for n in public:
        there = getattr(theirs, n)
        if not inspect.isfunction(there):
            continue
        a, b = (inspect.signature(getattr(m, n)).parameters.values() for m in (ours, theirs))
        assert [(p.name, p.kind) for p in a] == [(p.name, p.kind) for p in b], n
        for x, y in zip(a, b):
            is_missing = y.default is y.empty or type(y.default).__name__ == "Unspecified"
            assert is_missing or x.default == y.default, n


def test_second_names():
    for n in ("all", "broadcast", "flatten", "leaves", "map", "reduce", "reduce_associative", "transpose", "unflatten"):
        assert getattr(tree, n) is getattr(tree_util, f"tree_{n}")


def nodes(module):
    """The same classes, registered with a module."""
    util = module.tree_util

    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def tree_flatten(self):
            return (self.x, self.y), "data"

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children)

    class Keyed(Pair):
        def tree_flatten_with_keys(self):
            return ((util.GetAttrKey("x"), self.x), (util.DictKey("y"), self.y)), "data"

    class Alone:
        def __init__(self, x):
            self.x = x

        def tree_flatten_with_keys(self):
            return ((util.GetAttrKey("x"), self.x),), None

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children)

    class Plain(Pair):
        pass

    class Named(Pair):
        pass

    util.register_pytree_node_class(Pair)
    assert util.register_pytree_with_keys_class(Keyed) is Keyed
    util.register_pytree_with_keys_class(Alone)
    util.register_pytree_node(
        nodetype=Plain, flatten_func=lambda p: p.tree_flatten(), unflatten_func=lambda d, xs: Plain(*xs),
        flatten_with_keys_func=lambda p: (((util.SequenceKey(7), p.x), (util.SequenceKey(8), p.y)), "data"),
    )  # fmt: skip
    util.register_pytree_with_keys(
        nodetype=Named, flatten_with_keys=lambda p: (((util.GetAttrKey("first"), p.x), (util.DictKey(2), p.y)), 1),
        unflatten_func=lambda d, xs: Named(*xs), flatten_func=None,
    )  # fmt: skip
    return [Pair(1, [2, 3]), Keyed(1, {"k": 2}), Alone((5,)), Plain(1, 2), Named([1], 2)]


NODES = {m: nodes(m) for m in (atled, jax)}
TREES = [
    {"b": 1, "a": [2]}, [1, (2, 3)], (), (1, (2,)), None, Point(1, [2]), collections.OrderedDict(b=1, a=2),
    collections.defaultdict(int, b=1, a=2), 3,
]  # fmt: skip


def plain(x):
    """Keys, structures and nodes of either library as text and tuples."""
    if type(x).__name__ in ("DictKey", "SequenceKey", "GetAttrKey", "FlattenedIndexKey"):
        return repr(x)
    if isinstance(x, (list, tuple)):
        return [plain(v) for v in x]
    return repr(x) if type(x).__name__ in ("Pair", "Keyed") else x


@pytest.mark.parametrize("i", range(len(TREES) + 5))
def test_paths_and_levels(i):
    ours, theirs = (([*TREES, *NODES[m]])[i] for m in (atled, jax))
    for f in ("tree_leaves", "tree_leaves_with_path"):
        assert plain(getattr(tree_util, f)(ours)) == plain(getattr(jax.tree_util, f)(theirs))
    found, other = tree_util.tree_flatten_with_path(ours), jax.tree_util.tree_flatten_with_path(theirs)
    assert plain(found[0]) == plain(other[0]) and found[1] == tree.structure(ours)
    assert [tree_util.keystr(p) for p, _ in found[0]] == [jax.tree_util.keystr(p) for p, _ in other[0]]
    simple = [
        [m.tree_util.keystr(p, simple=True, separator="/") for p, _ in v[0]] for m, v in ((atled, found), (jax, other))
    ]
    assert simple[0] == simple[1]
    assert tree_util.is_tree_node(type(ours)) == jax.tree_util.is_tree_node(type(theirs))
    if type(ours) is int:
        for f in ("flatten_one_level", "flatten_one_level_with_keys"):
            with pytest.raises(ValueError, match=f"{f}: a node is needed"):
                getattr(tree_util, f)(ours)
            assert getattr(tree_util.default_registry, f)(ours) is None
        return
    for f in ("flatten_one_level", "flatten_one_level_with_keys"):
        (a, data), (b, other_data) = getattr(tree_util, f)(ours), getattr(jax.tree_util, f)(theirs)
        if type(ours) is Point and f.endswith("keys"):
            b = [(jax.tree_util.GetAttrKey(n), v) for n, (_, v) in zip(Point._fields, b)]  # JAX repeats the first name
        assert plain(list(a)) == plain(list(b)) and data == other_data
        assert plain(getattr(tree_util.default_registry, f)(ours)[0]) == plain(list(b))


def test_nodes_are_put_together_again():
    for ours, theirs in zip(NODES[atled], NODES[jax]):
        doubled = [m.tree.map(lambda x: 2 * x, v) for m, v in ((atled, ours), (jax, theirs))]
        assert type(doubled[0]) is type(ours)
        assert tree.leaves(doubled[0]) == jax.tree.leaves(doubled[1])
    with pytest.raises(ValueError, match="already registered"):
        tree_util.default_registry.register_node(type(NODES[atled][0]), lambda x: ((), None), lambda d, xs: None)


def test_structures():
    s, t = tree.structure, jax.tree.structure
    for x in ([(1, 2), 3, {"a": 4}], 3, None, [], [1], Point(1, 2)):
        children = tree_util.treedef_children(s(x))
        assert [c.num_leaves for c in children] == [c.num_leaves for c in jax.tree_util.treedef_children(t(x))]
        assert tree_util.treedef_is_leaf(s(x)) == jax.tree_util.treedef_is_leaf(t(x))
        assert s(x).num_nodes == t(x).num_nodes and s(x).num_leaves == t(x).num_leaves
    assert tree_util.treedef_children(s([(1, 2), 3])) == [s((1, 2)), s(3)]
    assert tree_util.treedef_tuple(iter([s(1), s({"a": 2})])) == s((1, {"a": 2})) and tree_util.treedef_tuple([]) == s(
        ()
    )
    assert s(1).node_data() is None and s([1]).node_data() == t([1]).node_data()
    assert tree_util.default_registry.flatten([1, {"a": 2}]) == tree.flatten([1, {"a": 2}])
    assert tree_util.KeyPath and tree_util.KeyEntry.__name__ == "KeyEntry"


def test_leaves_by_path():
    x = {"a": [1, (2, 3)], "b": (4, [5])}
    for is_leaf in (lambda p, v: len(p) == 2, lambda p, v: isinstance(v, tuple), lambda p, v: False):
        for f in ("flatten_with_path", "leaves_with_path"):
            a, b = (getattr(m.tree, f)(x, is_leaf, True) for m in (atled, jax))
            a, b = (v[0] if isinstance(v, tuple) else v for v in (a, b))
            assert plain(a) == plain(b)
        found = [
            m.tree.map_with_path(
                lambda p, v, m=m: (m.tree_util.keystr(p), v), x, is_leaf=is_leaf, is_leaf_takes_path=True
            )
            for m in (atled, jax)
        ]
        assert found[0] == found[1]
        leaves, structure = tree.flatten_with_path(x, is_leaf=is_leaf, is_leaf_takes_path=True)
        assert structure.unflatten([v for _, v in leaves]) == x
    two = [m.tree.map_with_path(lambda p, v, w: (v, w), {"a": [1, 2]}, {"a": [3, (4, 5)]}) for m in (atled, jax)]
    assert two[0] == two[1]
    for args in (([1, 2],), ([1, [2]],), ([1, None],), ([1, [2]], lambda v: v == [2]), ([],)):
        assert tree_util.all_leaves(*args) == jax.tree_util.all_leaves(*args)


def test_prefixes():
    for args, options in (
        (({"a": 1, "b": 2}, {"a": [3, 4], "b": (5,)}), {}),
        ((1, {"a": [3, None]}), {}),
        (([1, None], [[3, 4], [5]]), {"is_leaf": lambda x: x is None}),
        ((1, [[3, 4], [5]]), {"is_leaf": lambda x: isinstance(x, list) and len(x) == 1}),
    ):
        assert tree.broadcast(*args, **options) == jax.tree.broadcast(*args, **options)
    assert tree.broadcast(prefix_tree=1, full_tree=[2, 3], is_leaf=None) == [1, 1]
    for prefix, full in (([1, 2], [3]), ({"a": {"b": 1}}, {"a": 3})):
        for m in (tree, jax.tree):
            with pytest.raises(ValueError):
                m.broadcast(prefix, full)


def test_reductions():
    join = lambda a, b: f"({a}{b})"
    for n in range(1, 14):
        letters = list("abcdefghijklm"[:n])
        assert tree.reduce_associative(join, letters) == jax.tree.reduce_associative(join, letters)
    for m in (tree, jax.tree):
        assert m.reduce_associative(join, [], identity=None) is None
        assert m.reduce_associative(join, [3], identity=10) == 3
        assert m.reduce_associative(lambda a, b: a + b, [[1], [2]], is_leaf=lambda x: x in ([1], [2])) == [1, 2]
        with pytest.raises(TypeError, match="identity"):
            m.reduce_associative(join, [])
        assert m.reduce(function=lambda a, b: a + b, tree=[], initializer=5) == 5
        assert m.reduce(lambda a, b: a + b, [1, [2]]) == 3
        with pytest.raises(TypeError):
            m.reduce(lambda a, b: a + b, [])
        s = m.structure
        rows = [{"a": 1}, {"a": 2}]
        turned = m.transpose(outer_treedef=s([0, 0]), inner_treedef=s({"a": 0}), pytree_to_transpose=rows)
        assert turned == {"a": [1, 2]}
        assert m.transpose(s([0, 0]), None, [{"a": 1}, {"a": 2}]) == {"a": [1, 2]}
        assert m.unflatten(treedef=s([0, 0]), leaves=iter([1, 2])) == [1, 2]


def records(m):
    static = m.tree.static

    @dataclasses.dataclass
    class Op:
        x: int
        y: int = 2
        op: str = static(default="add", metadata={"note": 1})
        made: int = dataclasses.field(init=False)

        def __post_init__(self):
            self.made = 7

    m.tree_util.register_dataclass(Op, ["x", "y"], ["op"])

    @m.tree_util.register_dataclass
    @dataclasses.dataclass
    class Simple:
        x: int
        op: str = static(default="add")

    @dataclasses.dataclass
    class Dropping:
        x: int
        y: int = 2
        z: list = dataclasses.field(default_factory=lambda: ["new"])

    m.tree_util.register_dataclass(nodetype=Dropping, data_fields=["x"], meta_fields=["y"], drop_fields=["z"])

    class Free:
        def __init__(self, a, b):
            self.a, self.b = a, b

    m.tree_util.register_dataclass(Free, ["a"], ["b"])
    return Op(1), Simple(1), Dropping(1, 5, ["old"]), Free(1, "b")


def test_dataclasses():
    for ours, theirs in zip(records(atled), records(jax)):
        assert tree.leaves(ours) == jax.tree.leaves(theirs)
        assert vars(tree.map(lambda x: 10 * x, ours)) == vars(jax.tree.map(lambda x: 10 * x, theirs))
    for m in (tree, jax.tree):
        assert dict(m.static(default=1, metadata={"x": 1}).metadata) == {"static": True, "x": 1}
        assert dict(m.static(metadata={"static": False}).metadata) == {"static": False}
        with pytest.raises(TypeError):
            m.static(3)
    odd = dataclasses.make_dataclass("Odd", ["x", "y"])
    for u in (tree_util, jax.tree_util):
        for args in ((["x"], []), (["x", "y"], ["q"])):
            with pytest.raises(ValueError, match="data_fields and meta_fields"):
                u.register_dataclass(odd, *args)
        with pytest.raises(TypeError, match="data_fields and meta_fields"):
            u.register_dataclass(type("Free", (), {}))
