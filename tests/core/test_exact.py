"""1, 1.0, True, NumPy's 1, 0.0 and -0.0 are different values wherever something is looked up."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import enum
import math
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import atled
import atled.numpy as jnp
from atled import lax, tree
from atled.core.cache_keys import exact
from atled.core.op import Op


class Color(enum.StrEnum):
    RED = "red"


class Real(float):
    pass


class Bag(frozenset):
    pass


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    p: object


@dataclasses.dataclass
class Open:
    p: object


Pair = collections.namedtuple("Pair", "a b")
NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
LEAVES = [
    0, 1, 2, 0.0, -0.0, 1.0, 2.0, True, False, None, np.float32(1), np.float64(1), np.int32(1), np.bool_(True),
    np.float32(0.0), np.float32(-0.0), math.nan, NAN, -math.nan, math.inf, 1j, complex(0.0, -0.0), complex(0.0, 0.0),
    "1", "red", b"1", Color.RED, Number.ONE, np.dtype("f4"), Real(0.0), Real(-0.0), Real(1), Real(NAN), Bag([1]),
    Bag([True]), frozenset([1]), *map(decimal.Decimal, ["0", "-0", "1", "1.0"]),
]  # fmt: skip
leaves = st.sampled_from(LEAVES)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        inner.map(Frozen),
        st.tuples(inner, inner).map(lambda ab: Pair(*ab)),
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["a", 1, 2.0]), inner, max_size=2),
        inner.map(Open),
    ),
    max_leaves=5,
)
quiet = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


def same(a, b):
    """The definition: one class, and the same contents."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, (Frozen, Open)):
        return same(a.p, b.p)
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, complex):
        return same((a.real, a.imag), (b.real, b.imag))
    if isinstance(a, decimal.Decimal):
        return str(a) == str(b)
    if isinstance(a, frozenset):
        return same(sorted(a), sorted(b))
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return a == b


@settings(quiet, max_examples=600)
@given(values, values)
def test_keys_are_equal_for_the_same_value_alone(a, b):
    assert (exact(a) == exact(b)) == same(a, b)
    assert exact(a) == exact(a)
    hash(exact(a))


@pytest.mark.parametrize("a", LEAVES, ids=repr)
def test_every_pair_of_leaves(a):
    for b in LEAVES:
        for wrap in (lambda v: v, lambda v: (v,), lambda v: (1, (v, "a")), Frozen, lambda v: Pair(v, 0)):
            assert (exact(wrap(a)) == exact(wrap(b))) == same(a, b), (a, b)


def test_containers_count_by_what_is_in_them_now():
    box = {"a": [1, 2]}
    before = exact(box)
    box["a"].append(3)
    assert exact(box) != before


def test_an_equality_of_its_own_is_respected():
    class Loose:
        def __init__(self, p, note):
            self.p, self.note = p, note

        def __eq__(self, other):
            return self.p == other.p

        def __hash__(self):
            return hash(self.p)

    assert exact(Loose(1, "a")) == exact(Loose(1, "b"))


# -- trees ------------------------------------------------------------------------------------------------------------

KEYS = [0, 1, 0.0, -0.0, 1.0, True, False, np.float32(1), np.int32(1), Number.ONE]


@pytest.mark.parametrize("make", [lambda k: {k: 3.0}, lambda k: collections.OrderedDict({k: 3.0}),
                                  lambda k: collections.defaultdict(int, {k: 3.0})])  # fmt: skip
def test_keys_of_dicts_survive_trees_and_jit(make):
    double = atled.jit(lambda t: tree.map(lambda x: x * 2, t))
    for _ in range(2):  # the second time from memory
        for key in KEYS:
            for out in (tree.map(lambda x: x, make(key)), double(make(key)), tree.flatten(make(key))[1].unflatten([1])):
                (found,) = out
                assert type(found) is type(key) and same(found, key), (key, found)


def test_structures_differ():
    structures = [tree.structure({k: 0}) for k in KEYS]
    for a, s in zip(KEYS, structures, strict=True):
        for b, t in zip(KEYS, structures, strict=True):
            assert (s == t) == same(a, b) and (not same(a, b) or hash(s) == hash(t))
    with pytest.raises(ValueError, match="structures differ"):
        tree.map(lambda a, b: a, {1: 0}, {True: 0})


def test_static_fields_of_nodes():
    @tree.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: object
        p: object = dataclasses.field(metadata={"static": True})

    f = atled.jit(lambda layer: Layer(layer.w * 2, layer.p))
    for _ in range(2):
        for p in LEAVES:
            assert same(f(Layer(1.0, p)).p, p) and same(tree.map(lambda x: x, Layer(1.0, p)).p, p)


def test_data_of_nodes_that_cannot_be_hashed():
    class Box:
        def __init__(self, x, data):
            self.x, self.data = x, data

    tree.register_node(Box, lambda b: ((b.x,), b.data), lambda data, xs: Box(*xs, data))
    f = atled.jit(lambda b, y: Box(b.x * b.data["k"] + y, {"k": b.data["k"], "more": [1]}))
    data = {"k": 2.0}
    assert float(f(Box(3.0, data), 1.0).x) == 7.0
    data["k"] = 5.0  # the same dict, changed
    out = f(Box(3.0, data), 1.0)
    assert float(out.x) == 16.0
    out.data["more"].append(2)  # the result is the caller's
    assert f(Box(3.0, data), 1.0).data["more"] == [1]
    for k in (1, True, 1.0, 1):
        assert same(f(Box(3.0, {"k": k}), 1.0).data["k"], k)
    assert float(atled.grad(lambda b: b.x**2 * b.data["k"])(Box(3.0, {"k": 2.0})).x) == 12.0


def test_data_that_has_no_key_is_refused():
    class Odd:
        __hash__ = None

        def __eq__(self, other):
            return True

    class Box:
        def __init__(self, x, data):
            self.x, self.data = x, data

    tree.register_node(Box, lambda b: ((b.x,), b.data), lambda data, xs: Box(*xs, data))
    with pytest.raises(TypeError, match="must be hashable"):
        atled.jit(lambda b: b.x)(Box(1.0, Odd()))


# -- static arguments, numbers in programs, ops ------------------------------------------------------------------------


@settings(quiet, max_examples=60)
@given(st.lists(values.filter(lambda v: _hashable(v)), min_size=2, max_size=4))
def test_static_arguments(given_values):
    f = atled.jit(lambda x, s: {"out": x, "static": _Static(s)}, static_argnums=1)
    g = atled.jit(lambda x, *, s: {"out": x, "static": _Static(s)}, static_argnames="s")
    for _ in range(2):
        for v in given_values:
            assert same(f(1.0, v)["static"].value, v) and same(g(1.0, s=v)["static"].value, v)


def _hashable(v):
    try:
        hash(v)
    except TypeError:
        return False
    return True


class _Static:
    def __init__(self, value):
        self.value = value


tree.register_node(_Static, lambda s: ((), s.value), lambda v, _: _Static(v))
NUMBERS = [0, 1, True, False, 0.0, -0.0, 1.0, math.nan, -math.nan, 2, 2.0, 1j, complex(-0.0, 1.0), complex(0.0, 1.0)]
WAYS = {
    "jit": lambda f, x: atled.jit(f)(x),
    "eager": lambda f, x: f(x),
    "vmap": lambda f, x: atled.vmap(f)(jnp.stack([x, x]))[0],
    "scan": lambda f, x: lax.scan(lambda c, _: (c, f(x)), x, None, length=1)[1][0],
    "jvp": lambda f, x: atled.jvp(f, (x,), (x,))[0],
}
USES = {
    "copysign": lambda x, s: jnp.copysign(x, s.real),
    "multiply": lambda x, s: x * s,
    "add": lambda x, s: s + x,
    "where": lambda x, s: jnp.where(x > 0, s, x),
    "full": lambda x, s: jnp.full((2,), s) + 0 * x,
    "pad": lambda x, s: jnp.pad(x.reshape(1), 1, constant_values=s.real),
    "maximum": lambda x, s: jnp.atleast_1d(jnp.stack([x * 0 + s, x * 0 + s])),
    "power": lambda x, s: x**s,
    "arctan2": lambda x, s: jnp.arctan2(s.real, -x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("use", USES)
def test_numbers_in_programs(use, way):
    x = jnp.float32(3.0)

    def bits(s):
        out = WAYS[way](lambda x: USES[use](x, s), x)
        host = np.asarray(out)
        return out.dtype, out.weak_type, np.where(np.isnan(host), 0, host).tobytes(), np.isnan(host).tobytes()

    want = []
    for s in NUMBERS:
        atled.clear_caches()
        want.append(bits(s))
    for _ in range(2):
        for s, w in zip(NUMBERS, want, strict=True):
            assert bits(s) == w, s


@pytest.mark.parametrize("kind", [float, Real, np.float64, np.float32])
def test_zeros_of_both_signs_as_operands(kind):
    for zero in (0.0, -0.0, 0.0, -0.0):
        assert float(jnp.copysign(jnp.float32(3.0), kind(zero))) == math.copysign(3.0, zero)


def test_attributes_in_modules():
    shown = {}
    for v in (0.0, -0.0, 0.0, -0.0, True, 1, (True, False), (1, 0)):
        f = atled.jit(lambda x, v=v: lax.composite(lambda x, *, a: x + 1, "test.plus")(x, a=v))
        line = next(t for t in f.lower(1.0).as_text().splitlines() if "composite" in t)
        shown.setdefault(repr(v), set()).add(line.partition("attributes")[2].partition("}")[0])
    assert all([len(texts) == 1 for texts in shown.values()])
    assert shown["0.0"] != shown["-0.0"] and "-0.0" in shown["-0.0"].pop()
    assert shown["True"] != shown["1"]


def test_ops_with_fields_that_python_takes_for_equal():
    class Probe(Op):
        p: object = None

    for a in LEAVES:
        for b in LEAVES:
            assert (Probe(a) == Probe(b)) == same(a, b)
            assert (Probe((0, (a,))) == Probe((0, (b,)))) == same(a, b)
            assert not same(a, b) or hash(Probe(a)) == hash(Probe(b))


def test_a_dataclass_with_its_own_equality_that_was_executed_from_text():
    """Code of `exec` and `python -c` has the file name of what `dataclass` writes."""
    names: dict = {}
    text = """
import dataclasses
@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    def __post_init__(self): object.__setattr__(self, "by", len(made)); made.append(self)
    def __eq__(self, other): return (self.name, self.by) == (other.name, other.by)
    def __hash__(self): return hash(self.name)
made = []
"""
    exec(text, names)
    f = atled.jit(lambda x, s: x * s.by, static_argnums=1)
    assert [float(f(2.0, names["Scale"]("a"))) for _ in range(3)] == [0.0, 2.0, 4.0]


def test_a_class_that_is_given_another_equality():
    @dataclasses.dataclass(frozen=True)
    class Record:
        name: str
        by: int = dataclasses.field(compare=False)

    class Pair(tuple):
        by = 0

    f = atled.jit(lambda x, s: x * s.by, static_argnums=1)
    for kind, make in ((Record, lambda by: Record("a", by)), (Pair, lambda by: Pair((1, 2)))):
        assert exact(make(1)) == exact(make(2))
        float(f(2.0, make(1)))
        kind.__eq__ = lambda self, other: self.by == other.by
        kind.__hash__ = lambda self: self.by
        one, two = make(1), make(2)
        if kind is Pair:
            one.by, two.by = 1, 2
        assert exact(one) != exact(two)
        assert [float(f(2.0, one)), float(f(2.0, two))] == [2.0, 4.0]


@pytest.mark.parametrize("kind", [tuple, list, dict, complex, np.ndarray])
def test_an_object_that_says_it_is_of_another_class(kind):
    class Proxy:
        by = 3
        __class__ = property(lambda self: kind)

    one = Proxy()
    assert exact(one) == exact(one) != exact(Proxy())
    assert float(atled.jit(lambda x, s: x * s.by, static_argnums=1)(2.0, one)) == 6.0
