"""Inspection of multi-device arrays and programs: shardings and collectives."""

from atled.core import lazy

_AT_ONCE = {
    "reading": "Collective",
    "shards": "Picture sharding",
    "traffic": "Collectives collectives expect",
}
__getattr__, __dir__, __all__ = lazy.public(__name__, {}, "", _AT_ONCE)
