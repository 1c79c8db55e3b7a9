"""Inspection of multi-device arrays and programs: shardings and collectives."""

from atled.inspect.reading import Collective
from atled.inspect.shards import Picture, sharding
from atled.inspect.traffic import Collectives, collectives, expect

__all__ = ["Collective", "Collectives", "Picture", "collectives", "expect", "sharding"]
