"""Which classes are nodes of trees: how they are flattened and rebuilt, and the keys of their children.

`register_node` and `register_dataclass` register more node classes; `tree.py` has the functions of whole trees.
"""

from __future__ import annotations

import builtins
import collections
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from atled.core.tree import TreeDef

T = TypeVar("T")


class DictKey(NamedTuple):
    """A path key into a dict.

    >>> from atled.tree import flatten_with_path
    >>> [(path, str(path[0])) for path, _ in flatten_with_path({"w": 1})[0]]
    [((DictKey(key='w'),), "['w']")]
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(NamedTuple):
    """A path key into a list or tuple.

    >>> from atled.tree import flatten_with_path
    >>> [path for path, _ in flatten_with_path([5, 7])[0]]
    [(SequenceKey(idx=0),), (SequenceKey(idx=1),)]
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class GetAttrKey(NamedTuple):
    """A path key to an attribute.

    >>> from atled.core.tree import keystr
    >>> keystr((GetAttrKey("layers"), SequenceKey(0), GetAttrKey("weight")))
    '.layers[0].weight'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FieldKey(GetAttrKey):
    """A path key to an attribute declared with a kind, such as `nn.Param`. Equal to a plain attribute key."""

    kind: Any

    def __new__(cls, name: str, kind: Any) -> FieldKey:
        key = super().__new__(cls, name)
        key.kind = kind
        return key

    def __reduce__(self) -> Any:
        return FieldKey, (self.name, self.kind)


class FlattenedIndexKey(NamedTuple):
    """A path key into a custom node that defines no keys.

    >>> from atled.core.tree import keystr
    >>> keystr((DictKey("model"), FlattenedIndexKey(1)))
    "['model'][<flat index 1>]"
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


class Node(NamedTuple):
    """The functions that flatten and unflatten nodes of one class."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    keys: Callable[[Any, int], Sequence[Any]]  # (node, number of children) -> one key per child
    code: NodeCode | None = None


class NodeCode:
    """Generates code that flattens and rebuilds nodes of a class without function calls.

    The children of such nodes may have declared kinds; these are in their path keys (`FieldKey`).
    """

    def match(self, code: Any, structure: TreeDef, value: str, indent: str) -> list[str]:
        """Emit lines that `raise Mismatch` unless `value` has this structure; returns one expression per child."""
        raise NotImplementedError

    def build(self, code: Any, structure: TreeDef, parts: list[str]) -> str:
        """The expression for the node, given the expressions for its children; may emit preceding lines."""
        raise NotImplementedError

    def difference(self, before: TreeDef, now: TreeDef) -> tuple[str, str, str]:
        """How the static data of two nodes of the class differ: the path to the difference, and both values."""
        raise NotImplementedError


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    try:
        keys = sorted(d)
    except TypeError:
        raise ValueError(f"tree: the keys of a dict must be sortable; got {list(d)!r}.") from None
    return [d[k] for k in keys], tuple(keys)


def _dict_keys(d: dict[Any, Any], n: int) -> list[DictKey]:
    return [DictKey(k) for k in _dict_flatten(d)[1]]


def _sequence_keys(x: Any, n: int) -> list[SequenceKey]:
    return [SequenceKey(i) for i in range(n)]


def _named_tuple_node(cls: Any) -> Node:
    return Node(
        lambda x: (x, None),
        lambda _, xs: cls(*xs),
        lambda x, n: [GetAttrKey(f) for f in cls._fields],
    )


nodes: dict[type, Node] = {
    tuple: Node(lambda x: (x, None), lambda _, xs: tuple(xs), _sequence_keys),
    list: Node(lambda x: (x, None), lambda _, xs: list(xs), _sequence_keys),
    type(None): Node(lambda x: ((), None), lambda _, xs: None, lambda x, n: ()),
    dict: Node(_dict_flatten, lambda keys, xs: dict(zip(keys, xs, strict=True)), _dict_keys),
    collections.OrderedDict: Node(
        lambda d: (builtins.list(d.values()), tuple(d)),
        lambda keys, xs: collections.OrderedDict(zip(keys, xs, strict=True)),
        lambda d, n: [DictKey(k) for k in d],
    ),
    collections.defaultdict: Node(
        lambda d: (_dict_flatten(d)[0], (d.default_factory, _dict_flatten(d)[1])),
        lambda meta, xs: collections.defaultdict(meta[0], zip(meta[1], xs, strict=True)),
        _dict_keys,
    ),
}


def node_of(cls: type) -> Node | None:
    """The `Node` of a class, or None if its instances are leaves."""
    node = nodes.get(cls)
    if node is None and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        node = nodes[cls] = _named_tuple_node(cls)
    return node


def register_node(
    cls: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
    keys: Callable[[Any], Sequence[Any]] | None = None,
    code: NodeCode | None = None,
) -> None:
    """Register a class of nodes: `flatten(x)` returns children and hashable data, from which `unflatten(data,
    children)` rebuilds x.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_node(Pair, lambda p: ((p.a, p.b), None), lambda _, xs: Pair(*xs))
    >>> from atled.tree import leaves
    >>> leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    if cls in nodes:
        raise ValueError(f"tree: {cls.__name__} is already registered; a class can be registered only once.")
    named = keys and (lambda x, n: keys(x))
    nodes[cls] = Node(flatten, unflatten, named or (lambda x, n: [FlattenedIndexKey(i) for i in range(n)]), code)


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a node: `data_fields` are its children, `meta_fields` are compared by value.

    By default, every field is a child unless its metadata has `static=True`. Fields in `drop_fields` are dropped
    when flattening; when rebuilt, they get their defaults. A class that is not a dataclass needs both lists of names.

    >>> import dataclasses
    >>> from atled.tree import leaves
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     name: str = dataclasses.field(metadata={"static": True})
    >>> leaves(Point(1.5, "start"))
    [1.5]
    """
    import dataclasses  # slow to import, and rarely needed

    if nodetype is None:
        return functools.partial(
            register_dataclass, data_fields=data_fields, meta_fields=meta_fields, drop_fields=drop_fields
        )
    cls, has_fields = nodetype, hasattr(nodetype, "__dataclass_fields__")
    if not has_fields and (data_fields is None or meta_fields is None):
        raise TypeError(
            f"tree: {cls.__name__} is not a dataclass, so data_fields and meta_fields must name its fields."
        )
    fields = [f for f in dataclasses.fields(cls) if f.init] if has_fields else []
    retained = [f for f in fields if f.name not in drop_fields]
    meta = tuple(meta_fields if meta_fields is not None else [f.name for f in retained if f.metadata.get("static")])
    data = tuple(data_fields if data_fields is not None else [f.name for f in retained if f.name not in meta])
    named, missing = {f.name for f in retained}, {*data, *meta}
    if named != missing and has_fields:
        raise ValueError(
            f"tree: data_fields and meta_fields of {cls.__name__} must name each field once; "
            f"got {sorted(missing)} for {sorted(named)}."
        )
    is_complete = not has_fields or len(dataclasses.fields(cls)) == len(retained)

    def unflatten(values: tuple[Any, ...], children: Sequence[Any]) -> Any:
        if not is_complete:  # the constructor sets the other fields
            return cls(**dict(zip((*data, *meta), (*children, *values), strict=True)))
        new = object.__new__(cls)
        for name, value in zip(data, children, strict=True):
            object.__setattr__(new, name, value)
        for name, value in zip(meta, values, strict=True):
            object.__setattr__(new, name, value)
        return new

    register_node(
        cls,
        lambda x: ([getattr(x, n) for n in data], tuple([getattr(x, n) for n in meta])),
        unflatten,
        lambda x: [GetAttrKey(n) for n in data],
    )
    return cls


def static(**kwargs: Any) -> Any:
    """A static field of a dataclass: compared by value, not a child. Takes the arguments of `dataclasses.field`.

    >>> import dataclasses
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Scaled:
    ...     x: float
    ...     by: str = static(default="half")
    >>> from atled.tree import leaves
    >>> leaves(Scaled(1.0))
    [1.0]
    """
    import dataclasses  # slow to import, and rarely needed

    return dataclasses.field(**{**kwargs, "metadata": {"static": True, **(kwargs.get("metadata") or {})}})


@dataclass_transform(frozen_default=True, field_specifiers=(static,))
def struct(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree whose children are its fields. Optimizers and states are structs.

    >>> from atled.tree import map
    >>> @struct
    ... class Line:
    ...     slope: float
    ...     offset: float
    ...     name: str = static(default="line")
    >>> map(lambda x: 10 * x, Line(1.0, 2.0))
    Line(slope=10.0, offset=20.0, name='line')
    """
    import dataclasses  # slow to import, and rarely needed

    datacls = dataclasses.dataclass(frozen=True)(cls)
    register_dataclass(datacls)
    if not hasattr(datacls, "replace"):
        datacls.replace = lambda self, **changes: dataclasses.replace(self, **changes)  # type: ignore[attr-defined]
    return datacls


def register_static(cls: type) -> type:
    """Register a class whose instances are nodes without children: static while tracing, compared by value.

    >>> from atled.tree import leaves
    >>> @register_static
    ... class Mode(str): ...
    >>> leaves([Mode("train"), 1.0])
    [1.0]
    """
    register_node(cls, lambda x: ((), x), lambda x, _: x)
    return cls
