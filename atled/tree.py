"""Trees: nested containers of leaves. The functions of `atled.core.tree` under their short names."""

from atled.core.tree import (
    Partial,
    Structure,
    all,
    broadcast,
    flatten,
    flatten_with_path,
    leaves,
    leaves_with_path,
    map,
    map_with_path,
    reduce,
    register_dataclass,
    register_node,
    register_static,
    structure,
    transpose,
    unflatten,
)  # fmt: skip

__all__ = [
    "Partial", "Structure", "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "register_dataclass", "register_node", "register_static", "structure", "transpose",
    "unflatten",
]  # fmt: skip
