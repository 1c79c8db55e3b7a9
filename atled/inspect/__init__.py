"""Inspection of arrays and programs over several devices: shardings and collectives."""

from atled.core import lazy_imports

_AT_ONCE = {
    "collective_parser": "Collective",
    "sharding_picture": "Picture sharding",
    "collective_table": "Collectives collectives expect",
}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, {}, "", _AT_ONCE)
